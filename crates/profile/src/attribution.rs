//! Attributes a difference between two machines or settings, per unit of work, to spin-waits,
//! memory, frequency and waiting.
//!
//! The parts and an unexplained rest sum to the whole difference. Causes that were not measured on
//! both sides are in the rest; nothing is fitted to make the rest small. `docs/method.md` says how
//! each part is computed, and what it assumes.

mod inputs;

use self::inputs::{CPU, CYCLE, IDLE, INPUT_COUNT, Inputs, Known, PAUSE, Times};
use super::pausing::logarithmic_mean;

/// Half-width of a 95 % interval, in standard errors.
const Z_95: f64 = 1.96;
/// Runs or nodes needed for their own spread.
const MIN_REPEATS: usize = 3;
/// Relative standard deviation between runs, assumed for fewer.
const ASSUMED_SPREAD: f64 = 0.03;
/// Smaller differences are ignored.
const MIN_EFFECT: f64 = 0.01;
/// Time away from memory shows how much slower other code became (it is a *control*) if it has at
/// least this many samples, and this share of the readable code's time.
const MIN_CONTROL_SAMPLES: f64 = 30.0;
const MIN_CONTROL_SHARE: f64 = 0.1;

/// A value with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Figure {
    /// A value with its 95 % interval, if known.
    #[must_use]
    pub fn new(value: f64, low: Option<f64>, high: Option<f64>) -> Self {
        let width = low.zip(high).map_or(0.0, |(low, high)| high - low);
        Self {
            value,
            error: width.max(0.0) / (2.0 * Z_95),
        }
    }
}

/// Measured facts of a machine; `None` if not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// Length of a spin-wait hint, ns.
    pub pause_ns: Option<Figure>,
    /// A core cycle, ns.
    pub cycle_ns: Option<Figure>,
    /// A load from memory, ns.
    pub memory_ns: Option<Figure>,
    /// Bandwidth of one CPU reading memory, 1e9 bytes per second.
    pub gb_per_s: Option<Figure>,
    /// The largest cache, bytes.
    pub cache_bytes: Option<u64>,
}

/// A run, or a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeat {
    /// Its units of work.
    pub units: f64,
    /// Elapsed time per unit, s; `None` if meaningless.
    pub wall_s: Option<f64>,
    /// CPU time per unit, s.
    pub cpu_s: f64,
    /// Number of samples behind the shares.
    pub samples: u64,
    /// Share of the CPU time that waits in spin hints.
    pub hints: f64,
    /// Share seen at memory accesses; `None` if unknown.
    pub accesses: Option<f64>,
    /// Share in code that could not be read.
    pub unread: f64,
}

/// One of two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    /// Its runs, or nodes; never empty.
    pub repeats: Vec<Repeat>,
    /// Its machine.
    pub facts: Facts,
}

/// Which time is attributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Elapsed time.
    Wall,
    /// CPU time.
    Cpu,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The cause of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// The same number of spin-wait hints, of another length.
    HintLength,
    /// Another number of hints.
    HintCount,
    /// In spin-wait hints, if the length of one is unknown.
    Hints,
    /// At memory accesses, beyond the slowdown of other code.
    Memory,
    /// Another length of a core cycle.
    Frequency,
    /// Not on a CPU.
    Waiting,
    /// None of these.
    Unexplained,
}

/// A part of the difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its cause.
    pub kind: PartKind,
    /// After minus before, s per unit; `None` if unknown.
    pub time_s: Option<Account>,
    /// Share of the whole difference; `None` if unknown, or if there is no difference.
    pub share: Option<Account>,
    /// The figures of both machines, or why it is unknown.
    pub detail: Option<String>,
}

/// A difference and its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// The attributed time.
    pub basis: Basis,
    /// Number of CPUs that count as the program's, busy or not: the larger average of busy CPUs of
    /// both sides, at least 1.
    pub lanes: f64,
    /// Before, s per unit.
    pub before_s: f64,
    /// After, s per unit.
    pub after_s: f64,
    /// After minus before, s per unit.
    pub total: Account,
    /// Does it exceed chance and 1 %?
    pub is_difference: bool,
    /// Its parts, the unexplained one last; they sum to the whole.
    pub parts: Vec<Part>,
}

/// Splits a difference into parts; `None` if a side has no repeats or uses no CPU time, or if the
/// requested elapsed time is unknown.
#[must_use]
pub fn attribute(before: &Repeats, after: &Repeats, basis: Basis) -> Option<Attribution> {
    let sides = [before, after];
    let lanes = match basis {
        Basis::Cpu => 1.0,
        Basis::Wall => sides
            .into_iter()
            .map(|side| Some(mean(side, |r| Some(r.cpu_s))? / mean(side, |r| r.wall_s)?))
            .try_fold(1.0, |lanes, busy| Some(f64::max(lanes, busy?)))?,
    };
    let [a, b] = sides.map(|side| Inputs::from_repeats(side, basis, lanes));
    let inputs = [a?, b?];
    let known = Known::from_repeats(before, after, basis, &inputs);
    let model = Model { known, lanes };
    Some(model.attribute(&inputs, [&before.facts, &after.facts], basis))
}

/// Mean of a figure of the repeats, weighted by their units of work.
fn mean(side: &Repeats, figure: impl Fn(&Repeat) -> Option<f64>) -> Option<f64> {
    let (mut sum, mut units) = (0.0, 0.0);
    for repeat in &side.repeats {
        let value = figure(repeat).filter(|value| value.is_finite())?;
        sum += repeat.units * value;
        units += repeat.units;
    }
    (units > 0.0).then(|| sum / units)
}

/// Parts in the order of [`Model::KINDS`], then the whole.
type Values = [f64; 7];
const WHOLE: usize = 6;

#[derive(Debug, Clone, Copy)]
struct Model {
    known: Known,
    lanes: f64,
}

impl Model {
    const KINDS: [PartKind; 6] = [
        PartKind::HintLength,
        PartKind::HintCount,
        PartKind::Memory,
        PartKind::Frequency,
        PartKind::Waiting,
        PartKind::Unexplained,
    ];

    /// Computes the parts. `slowed_share` is the share of the time at memory accesses that is slowed
    /// like all other code; `None` for the share that leaves the least to memory.
    fn compute_values(&self, sides: &[[f64; INPUT_COUNT]; 2], slowed_share: Option<f64>) -> Values {
        let [a, b] = sides.each_ref().map(Times::from_values);
        let ratio = |at: usize| (sides[1][at] / sides[0][at]).ln();
        let clock = if self.known.cycle { ratio(CYCLE) } else { 0.0 };
        let longer = if self.known.pause {
            logarithmic_mean_or_zero(a.hints, b.hints) * ratio(PAUSE)
        } else {
            0.0
        };
        let more = b.hints - a.hints - longer;
        let (memory, frequency) = if self.known.accesses {
            let control = match self.known.control {
                true => (b.other / a.other).ln(),
                false => clock,
            };
            let common = split_change(a.accesses, b.accesses, control, slowed_share);
            let weight = logarithmic_mean_or_zero(a.accesses, b.accesses);
            let memory = b.accesses - a.accesses - common.time;
            let unread = split_change(a.unread, b.unread, clock, slowed_share).time;
            let other = logarithmic_mean_or_zero(a.other, b.other);
            let frequency = (common.share * weight + other) * clock + unread;
            (if self.known.memory() { memory } else { 0.0 }, frequency)
        } else {
            let code = |times: &Times| times.accesses + times.other + times.unread;
            (
                0.0,
                split_change(code(&a), code(&b), clock, slowed_share).time,
            )
        };
        let waiting = sides[1][IDLE] - sides[0][IDLE];
        let whole = sides[1][CPU] - sides[0][CPU] + waiting;
        let rest = whole - longer - more - memory - frequency - waiting;
        [longer, more, memory, frequency, waiting, rest, whole].map(|time| time / self.lanes)
    }

    fn attribute(&self, inputs: &[Inputs; 2], facts: [&Facts; 2], basis: Basis) -> Attribution {
        let sides = inputs.each_ref().map(|inputs| inputs.values);
        let values = self.compute_values(&sides, None);
        let (errors, share_errors) = self.standard_errors(inputs, &values);
        let extremes = [0.0, 1.0].map(|share| self.compute_values(&sides, Some(share)));
        let account = |at: usize, scale: f64, error: f64| {
            let all = [values[at], extremes[0][at], extremes[1][at]].map(|v| v / scale);
            let (low, high) = all
                .iter()
                .fold((all[0], all[0]), |(l, h), v| (l.min(*v), h.max(*v)));
            Account {
                value: all[0],
                low: low - Z_95 * error,
                high: high + Z_95 * error,
            }
        };
        let total = account(WHOLE, 1.0, errors[WHOLE]);
        let elapsed = |side: usize| (sides[side][CPU] + sides[side][IDLE]) / self.lanes;
        let is_difference = total.value.abs() > Z_95 * errors[WHOLE]
            && total.value.abs() >= MIN_EFFECT * elapsed(0);
        let parts = (0..WHOLE).filter_map(|at| {
            let (kind, is_known) = self.kind_at(at)?;
            let share = is_known && is_difference;
            Some(Part {
                kind,
                time_s: is_known.then(|| account(at, 1.0, errors[at])),
                share: share.then(|| account(at, total.value, share_errors[at])),
                detail: self.describe_part(kind, is_known, facts),
            })
        });
        Attribution {
            basis,
            lanes: self.lanes,
            before_s: elapsed(0),
            after_s: elapsed(1),
            total,
            is_difference,
            parts: parts.collect(),
        }
    }

    /// Standard errors of the parts, and of their shares of the whole: each input is varied by its
    /// own error, and the effects are added in squares.
    fn standard_errors(&self, inputs: &[Inputs; 2], values: &Values) -> (Values, Values) {
        let (mut times, mut shares) = ([0.0; 7], [0.0; 7]);
        let sides = inputs.each_ref().map(|inputs| inputs.values);
        for side in 0..2 {
            for at in 0..INPUT_COUNT {
                let error = inputs[side].errors[at];
                let moved = |sign: f64| {
                    let mut sides = sides;
                    sides[side][at] += sign * error;
                    self.compute_values(&sides, None)
                };
                let (up, down) = (moved(1.0), moved(-1.0));
                for part in 0..7 {
                    times[part] += (0.5 * (up[part] - down[part])).powi(2);
                    // A whole that may be 0 has no shares.
                    let share = |all: &Values| all[part] / values[WHOLE];
                    let by_whole = share(values) * (up[WHOLE] - down[WHOLE]) / values[WHOLE];
                    let both = share(&up) - share(&down) - by_whole;
                    shares[part] += (0.5 * both).powi(2);
                }
            }
        }
        (times.map(f64::sqrt), shares.map(f64::sqrt))
    }

    /// The part at an index, and whether it is known; `None` if it does not apply.
    fn kind_at(&self, at: usize) -> Option<(PartKind, bool)> {
        let known = &self.known;
        let kind = Self::KINDS[at];
        Some(match kind {
            PartKind::HintLength if !known.pause => return None,
            PartKind::HintCount if !known.pause => (PartKind::Hints, true),
            PartKind::Memory => (kind, known.memory()),
            PartKind::Frequency => (kind, known.cycle),
            PartKind::Waiting if !known.waiting => return None,
            _ => (kind, true),
        })
    }

    /// The figures behind a part, or why it is unknown.
    fn describe_part(&self, kind: PartKind, is_known: bool, facts: [&Facts; 2]) -> Option<String> {
        let both =
            |of: fn(&Facts) -> Option<Figure>| Some((of(facts[0])?.value, of(facts[1])?.value));
        let against = |name: &str, pair: Option<(f64, f64)>, scale: &dyn Fn(f64) -> String| {
            pair.map(|(a, b)| format!("{name}{} against {}", scale(b), scale(a)))
        };
        let ns = |ns: f64| format!("{ns:.1} ns");
        match (kind, is_known) {
            (PartKind::HintLength, _) => against("PAUSE ", both(|f| f.pause_ns), &ns),
            (PartKind::Hints, _) if !self.known.no_hints => {
                Some("the length of a PAUSE is not known on both sides".to_owned())
            }
            (PartKind::Frequency, true) => against("", both(|f| f.cycle_ns), &|ns| {
                format!("{:.2} GHz", 1.0 / ns)
            }),
            (PartKind::Frequency, false) => {
                Some("the core clock was not measured on both sides".to_owned())
            }
            (PartKind::Memory, true) => {
                let latency = against("latency ", both(|f| f.memory_ns), &ns);
                let bandwidth = against("", both(|f| f.gb_per_s), &|gb| format!("{gb:.1} GB/s"));
                let caches = facts[0].cache_bytes.zip(facts[1].cache_bytes);
                let caches = caches.filter(|(a, b)| a != b).and_then(|(a, b)| {
                    let mb = |bytes: f64| format!("{:.0} MB", bytes / 1e6);
                    against("largest cache ", Some((a as f64, b as f64)), &mb)
                });
                let shown: Vec<String> =
                    [latency, bandwidth, caches].into_iter().flatten().collect();
                (!shown.is_empty()).then(|| shown.join(", "))
            }
            (PartKind::Memory, false) => Some(
                "time at memory accesses, or what slowed other code, is not known on both sides"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The part of a change that all code has in common.
struct CommonChange {
    /// This part, s.
    time: f64,
    /// Share of the time that changed like all code.
    share: f64,
}

/// Computes how much of a change a common factor explains. `factor` is its logarithm; it applies to a
/// share of the time or, if that is `None`, to the share that leaves the smallest remainder.
fn split_change(before: f64, after: f64, factor: f64, share: Option<f64>) -> CommonChange {
    let full = logarithmic_mean_or_zero(before, after) * factor;
    let time = match share {
        Some(share) => share * full,
        None => (after - before).clamp(full.min(0.0), full.max(0.0)),
    };
    let share = if full.abs() > 1e-12 * (before + after) {
        time / full
    } else {
        share.unwrap_or(1.0)
    };
    CommonChange { time, share }
}

/// As [`logarithmic_mean`]; 0 if either value is 0.
fn logarithmic_mean_or_zero(a: f64, b: f64) -> f64 {
    if a > 0.0 && b > 0.0 {
        logarithmic_mean(a, b)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
