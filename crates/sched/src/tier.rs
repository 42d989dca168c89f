//! The ways to observe a scheduler, and what each can show.

use std::fmt;
use std::str::FromStr;

/// A way to observe a scheduler; each shows more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// T0: polls `/proc/PID/task/*`. Always permitted.
    Proc,
    /// T1: perf's switch records of the program's own threads.
    Switch,
    /// T2: perf's switch records of whole CPUs.
    CpuWide,
    /// T3: the scheduler's tracepoints through perf.
    Tracepoint,
    /// T4: a BPF program at the scheduler's tracepoints.
    Bpf,
}

/// What a stream of events can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Every switch is recorded, instead of samples.
    pub has_switches: bool,
    /// Every thread of every CPU is seen, so that idle CPUs are known.
    pub has_all_cpus: bool,
    /// Wake-ups are reported.
    pub has_wakeups: bool,
}

impl Tier {
    /// All tiers, in order.
    pub const ALL: [Self; 5] = [
        Self::Proc,
        Self::Switch,
        Self::CpuWide,
        Self::Tracepoint,
        Self::Bpf,
    ];

    /// Its name for `--tier` and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proc => "proc",
            Self::Switch => "switch",
            Self::CpuWide => "cpu-wide",
            Self::Tracepoint => "tracepoint",
            Self::Bpf => "bpf",
        }
    }

    /// Its description for users.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Proc => "polling of /proc",
            Self::Switch => "perf switch records of the program's threads",
            Self::CpuWide => "perf switch records of all CPUs",
            Self::Tracepoint => "scheduler tracepoints through perf",
            Self::Bpf => "a BPF program at the scheduler's tracepoints",
        }
    }

    /// What its events can show.
    #[must_use]
    pub const fn scope(self) -> Scope {
        Scope {
            has_switches: !matches!(self, Self::Proc),
            has_all_cpus: matches!(self, Self::CpuWide | Self::Tracepoint | Self::Bpf),
            has_wakeups: matches!(self, Self::Tracepoint | Self::Bpf),
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Tier {
    type Err = String;

    /// Parses a name, or `T0` to `T4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let by_number = |tier: &&Self| text.eq_ignore_ascii_case(&format!("T{}", **tier as u8));
        Self::ALL
            .iter()
            .find(|tier| tier.name() == text || by_number(tier))
            .copied()
            .ok_or_else(|| {
                format!(
                    "'{text}' is not a tier: proc, switch, cpu-wide, tracepoint or bpf (T0 to T4)"
                )
            })
    }
}

/// Whether a tier is available here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// The tier.
    pub tier: Tier,
    /// Why it is not available; `None` if it is.
    pub refusal: Option<Refusal>,
}

/// Why a tier is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A clause such as "this process lacks `CAP_BPF`".
    pub reason: String,
    /// The exact command that permits it; `None` if there is none.
    pub remedy: Option<String>,
}
