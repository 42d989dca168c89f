//! Figures that pinwise measures in every run, and their sources.

use pinwise_stats::verdict::Words;

/// A figure that does not come from the program. Less is better.
#[derive(Debug)]
pub struct BuiltInMetric {
    /// Its names on the command line, the preferred one first.
    pub names: &'static [&'static str],
    /// Its name in sentences.
    pub label: &'static str,
    /// Unit of the value: `s`, or what is counted.
    pub unit: &'static str,
    /// Words for its cost.
    pub words: Words,
    /// Is it read from a hardware counter, which may slow the command down?
    pub needs_counter: bool,
    pub(super) read: fn(&RunFigures<'_>) -> Option<f64>,
}

pub(super) const WALL: BuiltInMetric = BuiltInMetric {
    names: &["wall", "time"],
    label: "wall-clock time",
    unit: "s",
    words: Words::SPEED,
    needs_counter: false,
    read: |run| Some(run.wall_s),
};
pub(super) const CPU: BuiltInMetric = BuiltInMetric {
    names: &["cpu"],
    label: "CPU time",
    unit: "s",
    words: Words::WORK,
    needs_counter: false,
    read: |run| Some(run.user_s? + run.sys_s?),
};
const MAX_RSS: BuiltInMetric = BuiltInMetric {
    names: &["max-rss"],
    label: "peak memory",
    unit: "bytes",
    words: Words::MEMORY,
    needs_counter: false,
    read: |run| run.max_rss_bytes.map(|bytes| bytes as f64),
};

/// All built-in metrics. A row says how its metric is parsed, read, printed and recorded.
pub(super) static BUILT_IN: [BuiltInMetric; 7] = [
    WALL,
    BuiltInMetric {
        names: &["user"],
        label: "CPU time in user mode",
        read: |run| run.user_s,
        ..CPU
    },
    BuiltInMetric {
        names: &["system", "sys"],
        label: "CPU time in the kernel",
        read: |run| run.sys_s,
        ..CPU
    },
    CPU,
    MAX_RSS,
    BuiltInMetric {
        names: &["cycles"],
        label: "cycles",
        unit: "cycles",
        needs_counter: true,
        read: |run| run.counts.cycles.map(|count| count as f64),
        ..CPU
    },
    BuiltInMetric {
        names: &["instructions"],
        label: "instructions",
        unit: "instructions",
        needs_counter: true,
        read: |run| run.counts.instructions.map(|count| count as f64),
        ..CPU
    },
];

/// What the kernel counted for a process tree; `None` if it did not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Moves of threads between CPUs.
    pub migrations: Option<u64>,
    /// Core cycles in user mode and, where permitted, the kernel.
    pub cycles: Option<u64>,
    /// Instructions in user mode and, where permitted, the kernel.
    pub instructions: Option<u64>,
}

impl Counts {
    /// The increase since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).map(|(now, then)| now.saturating_sub(then))
        };
        Self {
            migrations: difference(self.migrations, before.migrations),
            cycles: difference(self.cycles, before.cycles),
            instructions: difference(self.instructions, before.instructions),
        }
    }
}

/// The figures of a run that metrics can be read from.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFigures<'a> {
    /// Seconds.
    pub wall_s: f64,
    /// Seconds.
    pub user_s: Option<f64>,
    /// Seconds.
    pub sys_s: Option<f64>,
    /// Bytes.
    pub max_rss_bytes: Option<u64>,
    /// Events.
    pub counts: Counts,
    /// Standard output, then standard error, if they were kept.
    pub output: Option<&'a [u8]>,
}
