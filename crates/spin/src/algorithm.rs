//! Waiters' algorithms as parameters, and their waits on a machine.
//!
//! An [`Algorithm`] is a row of the table; with a number of CPUs and the cost of a hint it becomes
//! a [`Wait`]: runs of hints with a look after each. All predictions derive from that, and
//! experiments execute it.

/// The unit of a waiter's delay between looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// Spin-wait hints: PAUSE, on arm64 the program's choice.
    Hint,
    /// Runs of hints that the program calibrates at its start to about this length on any
    /// processor.
    Normalised {
        /// A unit, ns.
        unit_ns: f64,
        /// The longest time between two looks, ns.
        max_ns: f64,
    },
    /// Runs of hints of two lengths: the program checks at its start whether a hint is long.
    Graded {
        /// A hint longer than this is long, ns.
        above_ns: f64,
        /// Hints of a unit on processors with short hints.
        short: u64,
        /// Hints of a unit on processors with long hints.
        long: u64,
    },
    /// Time by the clock, filled with hints.
    Clock,
    /// Looks only: loads without hints.
    Load,
    /// Calls of `sched_yield`.
    Yield,
}

/// How the runs between looks grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// All have the same length.
    Constant,
    /// Each this many times the one before, up to the cap.
    Times(u64),
    /// As `Times`, plus a random part of up to the run's length minus one unit, drawn for each run.
    Jittered(u64),
    /// The square of the run's index, which counts from 0.
    Square,
    /// Each random, uniform up to the cap.
    Random,
}

/// A number that may depend on the number of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// This number on every machine.
    Fixed(u64),
    /// This number for each CPU.
    PerCpu(u64),
}

impl Bound {
    /// The number on a machine with this many CPUs.
    #[must_use]
    pub const fn for_cpus(self, cpus: u64) -> u64 {
        match self {
            Self::Fixed(value) => value,
            Self::PerCpu(value) => value.saturating_mul(cpus),
        }
    }
}

/// The backoff of a wait, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// `repetitions` times: runs from `first` on that grow and stay below `below`.
    Rounds {
        /// How many times the whole sequence of runs is repeated.
        repetitions: u64,
        /// The first run.
        first: u64,
        /// How runs grow.
        growth: Growth,
        /// The runs end before they reach this length.
        below: Bound,
    },
    /// This many runs from `first`, growing up to `cap`.
    Counted {
        /// Number of runs.
        runs: Bound,
        /// The first run.
        first: u64,
        /// How runs grow.
        growth: Growth,
        /// Limit of a run.
        cap: u64,
    },
    /// Runs from `first`, growing up to `cap`, while their sum stays below `below`.
    Budgeted {
        /// The sum stays below this.
        below: u64,
        /// The first run.
        first: u64,
        /// How runs grow.
        growth: Growth,
        /// The longest run, before the random part.
        cap: u64,
    },
    /// For this long, looking all the time.
    Timed {
        /// Duration, ns.
        ns: u64,
    },
    /// Until it has the lock, with this many units between looks.
    Endless {
        /// Units between looks.
        gap: u64,
    },
    /// Figures are unknown, or up to the caller.
    Unknown,
}

/// How well a row is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The source was read.
    Read,
    /// An excerpt, an issue or a manual was read.
    Excerpt,
}

/// A setting that changes how long something spins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunable {
    /// Its name, such as `GOMP_SPINCOUNT`.
    pub name: &'static str,
    /// Its usual value, as written by the user; empty if it has none.
    pub usual: &'static str,
    /// How to set it, such as `environment variable`.
    pub how: &'static str,
}

impl Tunable {
    /// Describes it: `GOMP_SPINCOUNT (environment variable; usually 300000)`.
    #[must_use]
    pub fn words(&self) -> String {
        let usual = match self.usual {
            "" => String::new(),
            usual => format!("; usually {usual}"),
        };
        format!("{} ({}{usual})", self.name, self.how)
    }
}

/// A waiter's algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Algorithm {
    /// Its id, such as `netfx_awarelock`.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Versions that have it.
    pub versions: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its backoff.
    pub backoff: Backoff,
    /// Its longest backoff, if it adapts to earlier success.
    pub longest: Option<Backoff>,
    /// The algorithm does not spin at all with fewer CPUs.
    pub min_cpus: u64,
    /// The action after spinning, such as `futex` or `sched_yield`.
    pub then: &'static str,
    /// Settings that change how long it spins.
    pub tunables: &'static [Tunable],
    /// The source of the row.
    pub source: &'static str,
    /// How well it is known.
    pub evidence: Evidence,
    /// Further notes; may be empty.
    pub note: &'static str,
}

/// Which wait to derive from a random or adaptive algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Random values at their mean, adaptive ones at their start.
    Typical,
    /// The longest possible one.
    Longest,
}

/// A machine's parameters for a waiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Number of CPUs that the program sees.
    pub cpus: u64,
    /// Latency of one hint, ns.
    pub hint_ns: f64,
}

/// Equal runs of hints, with a look after each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// How many runs.
    pub times: u64,
    /// Hints of each.
    pub hints: u64,
}

/// A waiter's actions on a machine until it stops spinning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Runs of hints in order; the first look comes before any of them.
    pub runs: Vec<Runs>,
    /// Does it never stop? The last runs then repeat for ever.
    pub is_endless: bool,
}
