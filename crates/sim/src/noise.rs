//! Draws the noise of consecutive runs.

mod description;

use rand::{Rng, RngExt};

pub(super) use self::description::{NoiseParts, RawNoise};
use pinwise_stats::normal;

/// Limits the bursts and level shifts of one run. For much longer runs the rest is left out: a mean
/// of a nanosecond must not take years.
const MAX_CHANGES: usize = 10_000;

/// Noise with its state.
#[derive(Debug)]
pub(super) struct Noise {
    parts: NoiseParts,
    runs: u64,
    next_of_series: usize,
    wander: f64,
    /// Is it a burst?
    burst: Spell<bool>,
    /// By index.
    level: Spell<usize>,
    /// CPUs that others use.
    load: Spell<f64>,
}

/// A state that lasts for a while.
#[derive(Debug)]
struct Spell<T> {
    state: T,
    end_s: f64,
}

impl<T: Copy> Spell<T> {
    /// One that ends at once.
    const fn over(state: T) -> Self {
        Self { state, end_s: 0.0 }
    }

    /// The state at a moment; `next`: the one after another, and how long it lasts, s.
    fn at(&mut self, now_s: f64, mut next: impl FnMut(T) -> (T, f64)) -> T {
        for _ in 0..MAX_CHANGES {
            if now_s < self.end_s {
                break;
            }
            let (state, lasts_s) = next(self.state);
            self.state = state;
            self.end_s += lasts_s;
        }
        self.state
    }
}

/// The noise of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) factor: f64,
    pub(super) user_share: Option<f64>,
    pub(super) sys_share: Option<f64>,
    /// CPUs that other programs use meanwhile; `None` if the machine does not report it.
    pub(super) foreign_cpus: Option<f64>,
}

impl Noise {
    pub(super) fn new(parts: NoiseParts, chance: &mut impl Rng) -> Self {
        let length = parts.series.as_ref().map_or(1, |series| series.runs.len());
        let levels = parts.level_shifts.as_ref().map_or(1, |s| s.levels.len());
        let wander = parts
            .wander
            .as_ref()
            .map_or(0.0, |w| w.sd * gaussian(chance));
        Self {
            next_of_series: chance.random_range(0..length),
            level: Spell::over(chance.random_range(0..levels)),
            burst: Spell::over(true),
            load: Spell::over(0.0),
            runs: 0,
            wander,
            parts,
        }
    }

    /// The noise of a run that starts at `now_s`.
    pub(super) fn next(&mut self, now_s: f64, chance: &mut impl Rng) -> Draw {
        let mut log = self.parts.sd * gaussian(chance) + self.parts.drift * now_s / 3600.0;
        log += self.wander(chance);
        let mut factor = log.exp() * self.burst(now_s, chance) * self.level(now_s, chance);
        if let Some(period) = &self.parts.period
            && self.runs.is_multiple_of(period.runs)
        {
            factor *= period.factor;
        }
        self.runs += 1;
        let recorded = self.parts.series.as_ref().map(|series| {
            let run = series.runs[self.next_of_series];
            self.next_of_series = (self.next_of_series + 1) % series.runs.len();
            run
        });
        Draw {
            factor: factor * recorded.map_or(1.0, |run| run.factor),
            user_share: recorded.and_then(|run| run.user_share),
            sys_share: recorded.and_then(|run| run.sys_share),
            foreign_cpus: self.foreign_cpus(now_s, chance),
        }
    }

    /// A time rounded to this step of a clock, at least one step.
    pub(super) fn as_read(&self, time_s: f64) -> f64 {
        match self.parts.clock_s {
            Some(step) => (time_s / step).round().max(1.0) * step,
            None => time_s,
        }
    }

    fn foreign_cpus(&mut self, now_s: f64, chance: &mut impl Rng) -> Option<f64> {
        let load = self.parts.load.as_ref()?;
        Some(self.load.at(now_s, |_| {
            let cpus = load.most_cpus * chance.random::<f64>();
            (cpus, exponential(load.dwell_s, chance))
        }))
    }

    fn wander(&mut self, chance: &mut impl Rng) -> f64 {
        let Some(wander) = &self.parts.wander else {
            return 0.0;
        };
        let innovation = wander.sd * (1.0 - wander.correlation * wander.correlation).sqrt();
        self.wander = wander.correlation * self.wander + innovation * gaussian(chance);
        self.wander
    }

    fn burst(&mut self, now_s: f64, chance: &mut impl Rng) -> f64 {
        let Some(bursts) = &self.parts.bursts else {
            return 1.0;
        };
        let is_on = self.burst.at(now_s, |was_on| match was_on {
            true => (false, exponential(bursts.every_s, chance)),
            false => (true, exponential(bursts.lasts_s, chance)),
        });
        if is_on { bursts.factor } else { 1.0 }
    }

    fn level(&mut self, now_s: f64, chance: &mut impl Rng) -> f64 {
        let Some(shifts) = &self.parts.level_shifts else {
            return 1.0;
        };
        let level = self.level.at(now_s, |_| {
            let next = chance.random_range(0..shifts.levels.len());
            (next, exponential(shifts.dwell_s, chance))
        });
        shifts.levels[level]
    }
}

/// A standard normal draw by inversion: one draw uses one number of the generator.
pub(super) fn gaussian(chance: &mut impl Rng) -> f64 {
    let uniform: f64 = chance.random_range(f64::EPSILON..1.0);
    normal::upper_quantile(uniform)
}

pub(super) fn exponential(mean: f64, chance: &mut impl Rng) -> f64 {
    let uniform: f64 = chance.random_range(f64::EPSILON..1.0);
    -mean * uniform.ln()
}
