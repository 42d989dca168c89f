//! The causes of a difference and their parts of it, as part of the records of differences; and the
//! figures of a profile from which they are computed.

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use super::profile::{ProbedFigure, ProfileRecord};
use super::trace::TraceSource;
use pinwise_profile::{
    Account, Attribution, Basis, Facts, Figure, Part, PartKind, Repeat, Repeats, attribute,
};

open_enum! {
    /// The time whose difference is attributed.
    AttributedTime from Basis {
        /// Elapsed time.
        Wall = "wall",
        /// CPU time.
        Cpu = "cpu",
    }
}

open_enum! {
    /// The cause of a part of a difference.
    AttributedPart from PartKind {
        /// Spin-wait hints take longer or shorter.
        HintLength = "spin-wait-length",
        /// More or fewer spin-wait hints.
        HintCount = "spin-wait-count",
        /// Length and number of hints together, if the length of one is unknown.
        Hints = "spin-waits",
        /// Memory accesses.
        Memory = "memory",
        /// The core's clock.
        Frequency = "frequency",
        /// Time not on a CPU.
        Waiting = "waiting",
        /// The rest.
        Unexplained = "unexplained",
    }
}

/// A difference per unit of work and its parts, which add up to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttributionRecord {
    /// The time whose difference is attributed.
    pub of: AttributedTime,
    /// CPUs that count as the program's own, busy or not: the larger average number of busy CPUs of
    /// both sides, at least 1.
    pub lanes: f64,
    /// Before, seconds per unit.
    pub before_s: f64,
    /// After, seconds per unit.
    pub after_s: f64,
    /// After minus before, seconds per unit.
    pub delta: AccountRecord,
    /// Is the difference significant and larger than 1 %?
    pub is_difference: bool,
    /// The parts of the difference, the unexplained one last.
    pub parts: Vec<PartRecord>,
    /// The answer in one sentence.
    pub sentence: String,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRecord {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartRecord {
    /// The cause.
    pub part: AttributedPart,
    /// Its name: `longer spin-waits`.
    pub name: String,
    /// After minus before, seconds per unit; `null` if unknown, and then included in the
    /// unexplained part.
    pub delta_s: Option<AccountRecord>,
    /// Share of the whole difference; `null` if unknown, or if there is no difference.
    pub share: Option<AccountRecord>,
    /// The figures of both machines that it is based on, or why it is unknown.
    pub detail: Option<String>,
}

impl AttributionRecord {
    /// Converts a difference to its record.
    #[must_use]
    pub fn new(found: &Attribution, unit: &str) -> Self {
        Self {
            of: found.basis.into(),
            lanes: found.lanes,
            before_s: found.before_s,
            after_s: found.after_s,
            delta: AccountRecord::new(found.total),
            is_difference: found.is_difference,
            parts: found.parts.iter().map(PartRecord::new).collect(),
            sentence: found.sentence(unit),
        }
    }

    /// Attributes the difference of elapsed time, if both sides know it, and that of CPU time.
    #[must_use]
    pub fn attribute_all(before: &Repeats, after: &Repeats, unit: &str) -> Vec<Self> {
        [Basis::Wall, Basis::Cpu]
            .into_iter()
            .filter_map(|basis| attribute(before, after, basis))
            .map(|found| Self::new(&found, unit))
            .collect()
    }
}

impl AccountRecord {
    const fn new(account: Account) -> Self {
        Self {
            value: account.value,
            low: account.low,
            high: account.high,
        }
    }
}

impl PartRecord {
    fn new(part: &Part) -> Self {
        Self {
            part: part.kind.into(),
            name: part.name().to_owned(),
            delta_s: part.time_s.map(AccountRecord::new),
            share: part.share.map(AccountRecord::new),
            detail: part.detail.clone(),
        }
    }
}

impl ProbedFigure {
    fn to_figure(self) -> Figure {
        Figure::new(self.value, self.low, self.high)
    }
}

impl ProfileRecord {
    /// Converts its runs for the attribution of differences.
    #[must_use]
    pub fn to_repeats(&self) -> Repeats {
        let runs = self.runs.iter().filter(|run| run.units > 0.0);
        let each: Option<Vec<Repeat>> = runs.map(|run| self.to_repeat(run)).collect();
        let each = each.filter(|each| !each.is_empty());
        Repeats {
            repeats: each.unwrap_or_else(|| vec![self.merge_runs()]),
            facts: self.collect_facts(),
        }
    }

    /// Converts a run; `None` if its time in spin-waits is unknown.
    fn to_repeat(&self, run: &super::ProfileRun) -> Option<Repeat> {
        let (waits_s, accesses_s) = (run.waits_s?, run.accesses_s);
        // If the kernel was not sampled, its time is the CPU time that the samples do not cover.
        let unseen_s = match (self.figures.kernel, run.used_cpu_s) {
            (None, Some(used_s)) => (used_s - run.cpu_s).max(0.0),
            _ => 0.0,
        };
        let seen_s = run.cpu_s + unseen_s;
        let share = |time_s: f64| if seen_s > 0.0 { time_s / seen_s } else { 0.0 };
        // The wall time of a running process is the requested duration, not the time of its work.
        let is_command = matches!(self.source, TraceSource::Command { .. });
        let has_wall = is_command && self.work.unit != "second" && run.used_cpu_s.is_some();
        Some(Repeat {
            units: run.units,
            wall_s: has_wall.then(|| run.wall_s / run.units),
            cpu_s: run.used_cpu_s.unwrap_or(run.cpu_s) / run.units,
            samples: run.samples,
            hints: share(waits_s),
            accesses: accesses_s.map(share),
            unread: share(run.unread_s.unwrap_or(0.0) + unseen_s),
        })
    }

    /// All runs as one, without elapsed time.
    fn merge_runs(&self) -> Repeat {
        let total = self.figures.total;
        let share = |part: &super::AmountRecord| match total.cpu_s > 0.0 {
            true => part.cpu_s / total.cpu_s,
            false => 0.0,
        };
        Repeat {
            units: self.work.count,
            wall_s: None,
            cpu_s: total.cpu_s / self.work.count,
            samples: total.samples,
            hints: share(&self.figures.waits),
            accesses: self.figures.accesses.as_ref().map(share),
            unread: self.figures.unread.as_ref().map_or(0.0, share),
        }
    }

    fn collect_facts(&self) -> Facts {
        let machine = self.machine.clone().unwrap_or_default();
        let pause = self.pause.as_ref();
        Facts {
            pause_ns: pause.map(|pause| Figure::new(pause.ns, pause.low_ns, pause.high_ns)),
            cycle_ns: machine.cycle_ns.map(ProbedFigure::to_figure),
            memory_ns: machine.memory_ns.map(ProbedFigure::to_figure),
            gb_per_s: machine.gb_per_s.map(ProbedFigure::to_figure),
            cache_bytes: machine.cache_bytes,
        }
    }
}
