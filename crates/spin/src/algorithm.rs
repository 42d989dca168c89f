//! Waiters' algorithms as parameters, and what they come to on a machine.
//!
//! An [`Algorithm`] is a row of the table; with a number of CPUs and the cost of
//! a hint it becomes a [`Wait`]: runs of hints with a look after each. All
//! predictions are made of that, and experiments execute it.

/// What a waiter does between looks, counted in these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// Spin-wait hints: PAUSE, on arm64 what the program uses there.
    Hint,
    /// Runs of hints whose length the program measures at its start, so that
    /// one takes about this long whatever the processor.
    Normalised {
        /// A unit, ns.
        unit_ns: f64,
        /// Most between two looks, ns.
        most_ns: f64,
    },
    /// Runs of hints of two lengths: the program finds out at its start whether a
    /// hint is a long one.
    Graded {
        /// Long is what takes longer than this, ns.
        above_ns: f64,
        /// Hints of a unit where they are short.
        short: u64,
        /// Hints of a unit where they are long.
        long: u64,
    },
    /// Time by the clock; hints fill it.
    Clock,
    /// Looks only: loads without hints.
    Load,
    /// Calls of `sched_yield`.
    Yield,
}

/// How the runs between looks grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// All alike.
    Constant,
    /// Each this many times the one before, up to the cap.
    Times(u64),
    /// Likewise, and anything from nothing to one unit less than as much again
    /// on top, drawn anew each time.
    Jittered(u64),
    /// The square of the number of the run, from 0.
    Square,
    /// Drawn anew each time, up to the cap, evenly.
    Random,
}

/// A number that may depend on how many CPUs there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The same everywhere.
    Fixed(u64),
    /// This many for each CPU.
    PerCpu(u64),
}

impl Bound {
    /// On a machine with this many CPUs.
    #[must_use]
    pub const fn on(self, cpus: u64) -> u64 {
        match self {
            Self::Fixed(value) => value,
            Self::PerCpu(value) => value.saturating_mul(cpus),
        }
    }
}

/// The backoff of a wait, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// `repetitions` times: runs from `first`, growing while below `below`.
    Rounds {
        /// Times.
        repetitions: u64,
        /// The first run.
        first: u64,
        /// How runs grow.
        growth: Growth,
        /// They stop before they reach this.
        below: Bound,
    },
    /// This many runs from `first`, growing to `cap` at most.
    Counted {
        /// Runs.
        runs: Bound,
        /// The first run.
        first: u64,
        /// How runs grow.
        growth: Growth,
        /// No run is longer.
        cap: u64,
    },
    /// Runs from `first`, growing to `cap` at most, while all of them together
    /// stay below `below`.
    Budgeted {
        /// The sum stays below this.
        below: u64,
        /// The first run.
        first: u64,
        /// How runs grow.
        growth: Growth,
        /// No run is longer, but for what is drawn on top.
        cap: u64,
    },
    /// For this long, looking all the time.
    Timed {
        /// ns.
        ns: u64,
    },
    /// Until it has the lock; this many units between looks.
    Endless {
        /// Units between looks.
        gap: u64,
    },
    /// Not known in figures, or up to the caller.
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
    /// Its name, as `GOMP_SPINCOUNT`.
    pub name: &'static str,
    /// Its usual value, as it is written; empty where it has none.
    pub usual: &'static str,
    /// Where and how it is set, as `environment variable`.
    pub how: &'static str,
}

impl Tunable {
    /// `GOMP_SPINCOUNT (environment variable; usually 300000)`.
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
    /// Its id, as `netfx_awarelock`.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Versions that have it.
    pub versions: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// How it goes.
    pub backoff: Backoff,
    /// How it goes at its longest, where it adapts to how well it went before.
    pub longest: Option<Backoff>,
    /// With fewer CPUs it does not spin at all.
    pub least_cpus: u64,
    /// What follows in the end, as `futex` or `sched_yield`.
    pub then: &'static str,
    /// How to change it.
    pub tunables: &'static [Tunable],
    /// Where it was read.
    pub source: &'static str,
    /// How well it is known.
    pub evidence: Evidence,
    /// What else; empty for nothing.
    pub note: &'static str,
}

/// Which of the waits of an algorithm that draws or adapts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Draws at their mean, what adapts where it begins.
    Typical,
    /// The longest that can be.
    Longest,
}

/// A machine as far as a waiter is concerned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// CPUs that the program counts.
    pub cpus: u64,
    /// One hint, ns.
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

/// What a waiter does on a machine until it gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Runs of hints in order; the first look comes before any of them.
    pub runs: Vec<Runs>,
    /// It never gives up: the last runs go on for ever.
    pub is_endless: bool,
}
