//! Which part of a difference comes from what, as part of the records of differences; and what of a
//! profile it is computed from.

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use super::profile::{ProbedFigure, ProfileRecord};
use super::trace::TraceSource;
use pinwise_profile::{
    Account, Attribution, Basis, Facts, Figure, Part, PartKind, Repeat, Repeats, attribute,
};

open_enum! {
    /// Which time is taken apart.
    AttributedTime from Basis {
        /// Elapsed time.
        Wall = "wall",
        /// CPU time.
        Cpu = "cpu",
    }
}

open_enum! {
    /// What a part of a difference comes from.
    AttributedPart from PartKind {
        /// Spin-wait hints take longer or shorter.
        HintLength = "spin-wait-length",
        /// More or fewer of them.
        HintCount = "spin-wait-count",
        /// Both, if it is not known what one hint takes.
        Hints = "spin-waits",
        /// Accesses of memory.
        Memory = "memory",
        /// The core's clock.
        Frequency = "frequency",
        /// Not on a CPU.
        Waiting = "waiting",
        /// None of these.
        Unexplained = "unexplained",
    }
}

/// A difference per unit of work and its parts, which add up to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttributionRecord {
    /// What is taken apart.
    pub of: AttributedTime,
    /// CPUs that count as its own, busy or not: the most that either side kept
    /// busy on average, at least 1.
    pub lanes: f64,
    /// Before, seconds per unit.
    pub before_s: f64,
    /// After, seconds per unit.
    pub after_s: f64,
    /// After less before, seconds per unit.
    pub delta: AccountRecord,
    /// Is it more than chance, and than 1 %?
    pub is_difference: bool,
    /// Its parts, the unexplained one last.
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
    /// What it comes from.
    pub part: AttributedPart,
    /// Its name: `longer spin-waits`.
    pub name: String,
    /// After less before, seconds per unit; `null` if unknown, and then included in the unexplained
    /// part.
    pub delta_s: Option<AccountRecord>,
    /// Share of the whole difference; `null` if unknown, or if there is no difference.
    pub share: Option<AccountRecord>,
    /// The figures of both machines that it is based on, or why it is not known.
    pub detail: Option<String>,
}

impl AttributionRecord {
    /// A difference as it is kept.
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

    /// Attribution of elapsed time, if both know it, and of CPU time.
    #[must_use]
    pub fn all(before: &Repeats, after: &Repeats, unit: &str) -> Vec<Self> {
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
    fn figure(self) -> Figure {
        Figure::new(self.value, self.low, self.high)
    }
}

impl ProfileRecord {
    /// Its runs, as differences are taken apart by.
    #[must_use]
    pub fn repeats(&self) -> Repeats {
        let runs = self.runs.iter().filter(|run| run.units > 0.0);
        let each: Option<Vec<Repeat>> = runs.map(|run| self.repeat(run)).collect();
        let each = each.filter(|each| !each.is_empty());
        Repeats {
            repeats: each.unwrap_or_else(|| vec![self.together()]),
            facts: self.facts(),
        }
    }

    /// A run; `None` if it is unknown where its time was seen.
    fn repeat(&self, run: &super::ProfileRun) -> Option<Repeat> {
        let (waits_s, accesses_s) = (run.waits_s?, run.accesses_s);
        // If the kernel was not sampled, its time is what the samples lack.
        let unseen_s = match (self.figures.kernel, run.used_cpu_s) {
            (None, Some(used_s)) => (used_s - run.cpu_s).max(0.0),
            _ => 0.0,
        };
        let seen_s = run.cpu_s + unseen_s;
        let share = |time_s: f64| if seen_s > 0.0 { time_s / seen_s } else { 0.0 };
        // A process that was already running was watched for the requested time, which is not the
        // time that its work took.
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

    /// All runs as one, of which only CPU time is known.
    fn together(&self) -> Repeat {
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

    fn facts(&self) -> Facts {
        let machine = self.machine.clone().unwrap_or_default();
        let pause = self.pause.as_ref();
        Facts {
            pause_ns: pause.map(|pause| Figure::new(pause.ns, pause.low_ns, pause.high_ns)),
            cycle_ns: machine.cycle_ns.map(ProbedFigure::figure),
            memory_ns: machine.memory_ns.map(ProbedFigure::figure),
            gb_per_s: machine.gb_per_s.map(ProbedFigure::figure),
            cache_bytes: machine.cache_bytes,
        }
    }
}
