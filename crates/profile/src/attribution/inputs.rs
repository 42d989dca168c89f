//! Inputs of an attribution: figures of both sides with their errors, and which of them are known.
//! Nothing is attributed here.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{
    ASSUMED_SPREAD, Basis, CONTROL_SHARE, Facts, Figure, MIN_CONTROL, MIN_REPEATS, NORMAL, Repeat,
    Repeats, mean,
};

/// A figure of a repeat.
type Of<'a> = &'a dyn Fn(&Repeat) -> f64;

/// Indices of [`Inputs`].
pub(super) const CPU: usize = 0;
pub(super) const IDLE: usize = 1;
pub(super) const HINTS: usize = 2;
pub(super) const ACCESSES: usize = 3;
pub(super) const UNREAD: usize = 4;
pub(super) const PAUSE: usize = 5;
pub(super) const CYCLE: usize = 6;
pub(super) const MANY: usize = 7;

/// The inputs of one side: independent of each other, since each share is relative to what the
/// shares before it leave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs {
    pub(super) values: [f64; MANY],
    pub(super) errors: [f64; MANY],
    samples: f64,
}

impl Inputs {
    pub(super) fn from_repeats(side: &Repeats, basis: Basis, lanes: f64) -> Option<Self> {
        let mut inputs = Self {
            values: [0.0; MANY],
            errors: [0.0; MANY],
            samples: side.repeats.iter().map(|r| r.samples as f64).sum(),
        };
        let cpu = mean(side, |r| Some(r.cpu_s)).filter(|cpu_s| *cpu_s > 0.0)?;
        let spread = |of: &dyn Fn(&Repeat) -> f64| spread(side, of);
        let usual = ASSUMED_SPREAD / (side.repeats.len() as f64).sqrt();
        inputs.set(CPU, cpu, spread(&|r| r.cpu_s).unwrap_or(usual * cpu));
        if basis == Basis::Wall {
            let idle = lanes * mean(side, |r| r.wall_s)? - cpu;
            let idle_of_repeat = |r: &Repeat| lanes * r.wall_s.unwrap_or(f64::NAN) - r.cpu_s;
            inputs.set(
                IDLE,
                idle,
                spread(&idle_of_repeat).unwrap_or(usual * idle.abs()),
            );
        }
        let hints = |r: &Repeat| r.hints;
        let accesses = |r: &Repeat| rest_of(r.accesses.unwrap_or(0.0), 1.0 - r.hints);
        let unread = |r: &Repeat| {
            let rest = 1.0 - r.hints - r.accesses.unwrap_or(0.0);
            rest_of(r.unread, rest)
        };
        let mut left = inputs.samples;
        let shares: [(usize, Of<'_>); 3] =
            [(HINTS, &hints), (ACCESSES, &accesses), (UNREAD, &unread)];
        for (at, of) in shares {
            let share = mean(side, |r| Some(of(r)))?.clamp(0.0, 1.0);
            // Even none or all samples carry information.
            let near = (left * share + 0.5) / (left + 1.0);
            let counting = (near * (1.0 - near) / left.max(1.0)).sqrt();
            inputs.set(at, share, counting.max(spread(of).unwrap_or(0.0)));
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

fn rest_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

pub(super) fn is_known(figure: &Figure) -> bool {
    figure.value.is_finite() && figure.value > 0.0 && figure.error.is_finite()
}

/// Standard error of the mean from the variation between repeats, widened for their small number;
/// `None` for too few.
pub(super) fn spread(side: &Repeats, of: &dyn Fn(&Repeat) -> f64) -> Option<f64> {
    let many = side.repeats.len();
    if many < MIN_REPEATS {
        return None;
    }
    let values: Vec<f64> = side.repeats.iter().map(of).collect();
    let mean = values.iter().sum::<f64>() / many as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let freedom = many as f64 - 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let error = (squares / freedom / many as f64).sqrt();
    Some(error * student.inverse_cdf(0.975) / NORMAL)
}

/// What both sides know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) waiting: bool,
    pub(super) pause: bool,
    pub(super) cycle: bool,
    pub(super) accesses: bool,
    /// Time away from memory shows the common slowdown.
    pub(super) control: bool,
    /// Neither side waits in hints.
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
            samples >= MIN_CONTROL && times.other >= CONTROL_SHARE * (times.other + times.accesses)
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

    /// If the cause that slowed other code is unknown, memory cannot be blamed separately.
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
    pub(super) fn from_values(values: &[f64; MANY]) -> Self {
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
