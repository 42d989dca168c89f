//! Inputs of an attribution: figures of both sides with their errors, and which of them are known.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{
    ASSUMED_SPREAD, Basis, Facts, Figure, MIN_CONTROL_SAMPLES, MIN_CONTROL_SHARE, MIN_REPEATS,
    Repeat, Repeats, Z_95, mean,
};

/// Reads a figure of a repeat.
type ReadFigure<'a> = &'a dyn Fn(&Repeat) -> f64;

/// Indices of [`Inputs`].
pub(super) const CPU: usize = 0;
pub(super) const IDLE: usize = 1;
pub(super) const HINTS: usize = 2;
pub(super) const ACCESSES: usize = 3;
pub(super) const UNREAD: usize = 4;
pub(super) const PAUSE: usize = 5;
pub(super) const CYCLE: usize = 6;
pub(super) const INPUT_COUNT: usize = 7;

/// The inputs of one side: independent of each other, since each share is relative to what the
/// shares before it leave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs {
    pub(super) values: [f64; INPUT_COUNT],
    pub(super) errors: [f64; INPUT_COUNT],
    samples: f64,
}

impl Inputs {
    pub(super) fn from_repeats(side: &Repeats, basis: Basis, lanes: f64) -> Option<Self> {
        let mut inputs = Self {
            values: [0.0; INPUT_COUNT],
            errors: [0.0; INPUT_COUNT],
            samples: side.repeats.iter().map(|r| r.samples as f64).sum(),
        };
        let cpu = mean(side, |r| Some(r.cpu_s)).filter(|cpu_s| *cpu_s > 0.0)?;
        let error_by_spread = |figure: ReadFigure<'_>| error_by_spread(side, figure);
        let assumed = ASSUMED_SPREAD / (side.repeats.len() as f64).sqrt();
        inputs.set(
            CPU,
            cpu,
            error_by_spread(&|r| r.cpu_s).unwrap_or(assumed * cpu),
        );
        if basis == Basis::Wall {
            let idle = lanes * mean(side, |r| r.wall_s)? - cpu;
            let idle_of_repeat = |r: &Repeat| lanes * r.wall_s.unwrap_or(f64::NAN) - r.cpu_s;
            inputs.set(
                IDLE,
                idle,
                error_by_spread(&idle_of_repeat).unwrap_or(assumed * idle.abs()),
            );
        }
        let hints = |r: &Repeat| r.hints;
        let accesses = |r: &Repeat| share_of(r.accesses.unwrap_or(0.0), 1.0 - r.hints);
        let unread = |r: &Repeat| {
            let rest = 1.0 - r.hints - r.accesses.unwrap_or(0.0);
            share_of(r.unread, rest)
        };
        let mut left = inputs.samples;
        let shares: [(usize, ReadFigure<'_>); 3] =
            [(HINTS, &hints), (ACCESSES, &accesses), (UNREAD, &unread)];
        for (at, figure) in shares {
            let share = mean(side, |r| Some(figure(r)))?.clamp(0.0, 1.0);
            // Even none or all samples carry information.
            let near = (left * share + 0.5) / (left + 1.0);
            let counting = (near * (1.0 - near) / left.max(1.0)).sqrt();
            inputs.set(
                at,
                share,
                counting.max(error_by_spread(figure).unwrap_or(0.0)),
            );
            left *= 1.0 - share;
        }
        let facts = side.facts;
        for (at, fact) in [(PAUSE, facts.pause_ns), (CYCLE, facts.cycle_ns)] {
            let fact = fact.filter(is_known);
            let fact = fact.unwrap_or(Figure {
                value: 1.0,
                error: 0.0,
            });
            inputs.set(at, fact.value, fact.error.min(0.5 * fact.value));
        }
        Some(inputs)
    }

    const fn set(&mut self, at: usize, value: f64, error: f64) {
        self.values[at] = value;
        self.errors[at] = error;
    }
}

fn share_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

pub(super) fn is_known(figure: &Figure) -> bool {
    figure.value.is_finite() && figure.value > 0.0 && figure.error.is_finite()
}

/// Standard error of the mean from the variation between repeats, widened for their small number;
/// `None` for too few.
pub(super) fn error_by_spread(side: &Repeats, figure: ReadFigure<'_>) -> Option<f64> {
    let count = side.repeats.len();
    if count < MIN_REPEATS {
        return None;
    }
    let values: Vec<f64> = side.repeats.iter().map(figure).collect();
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let freedom = count as f64 - 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let error = (squares / freedom / count as f64).sqrt();
    Some(error * student.inverse_cdf(0.975) / Z_95)
}

/// Which figures are known on both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) waiting: bool,
    pub(super) pause: bool,
    pub(super) cycle: bool,
    pub(super) accesses: bool,
    /// Does time away from memory show how much slower other code became?
    pub(super) control: bool,
    /// Does neither side wait in hints?
    pub(super) no_hints: bool,
}

impl Known {
    pub(super) fn from_repeats(
        before: &Repeats,
        after: &Repeats,
        basis: Basis,
        inputs: &[Inputs; 2],
    ) -> Self {
        let both = |fact: fn(&Facts) -> Option<Figure>| {
            let mut sides = [before, after].into_iter();
            sides.all(|side| fact(&side.facts).as_ref().is_some_and(is_known))
        };
        let mut repeats = before.repeats.iter().chain(&after.repeats);
        let accesses = repeats.all(|repeat| repeat.accesses.is_some());
        let control = |inputs: &Inputs| {
            let times = Times::from_values(&inputs.values);
            let samples = inputs.samples * times.other / inputs.values[CPU];
            samples >= MIN_CONTROL_SAMPLES
                && times.other >= MIN_CONTROL_SHARE * (times.other + times.accesses)
        };
        Self {
            waiting: basis == Basis::Wall,
            pause: both(|facts| facts.pause_ns),
            cycle: both(|facts| facts.cycle_ns),
            accesses,
            control: accesses && inputs.iter().all(control),
            no_hints: inputs.iter().all(|inputs| inputs.values[HINTS] <= 0.0),
        }
    }

    /// Can time be attributed to memory? If the slowdown of other code is unknown, it cannot be
    /// separated from that.
    pub(super) const fn memory(&self) -> bool {
        self.accesses && (self.control || self.cycle)
    }
}

/// CPU time of one side by where it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) hints: f64,
    pub(super) accesses: f64,
    pub(super) unread: f64,
    pub(super) other: f64,
}

impl Times {
    pub(super) fn from_values(values: &[f64; INPUT_COUNT]) -> Self {
        let share = |at: usize| values[at].clamp(0.0, 1.0);
        let hints = values[CPU] * share(HINTS);
        let accesses = (values[CPU] - hints) * share(ACCESSES);
        let rest = values[CPU] - hints - accesses;
        let unread = rest * share(UNREAD);
        Self {
            hints,
            accesses,
            unread,
            other: rest - unread,
        }
    }
}
