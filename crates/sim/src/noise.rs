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
    /// Is there a burst?
    burst: Spell<bool>,
    /// Index of the level.
    level: Spell<usize>,
    /// CPUs that other programs use.
    load: Spell<f64>,
}

/// A state that lasts for a while.
#[derive(Debug)]
struct Spell<T> {
    state: T,
    end_s: f64,
}

impl<T: Copy> Spell<T> {
    /// A state that has already ended at the start.
    const fn ended(state: T) -> Self {
        Self { state, end_s: 0.0 }
    }

    /// Advances to a moment and returns its state. `next` draws the successor of a state and how
    /// long it lasts, s.
    fn advance_to(&mut self, now_s: f64, mut next: impl FnMut(T) -> (T, f64)) -> T {
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
pub(super) struct RunNoise {
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
            .map_or(0.0, |w| w.sd * draw_normal(chance));
        Self {
            next_of_series: chance.random_range(0..length),
            level: Spell::ended(chance.random_range(0..levels)),
            burst: Spell::ended(true),
            load: Spell::ended(0.0),
            runs: 0,
            wander,
            parts,
        }
    }

    /// Draws the noise of the next run, which starts at `now_s`.
    pub(super) fn draw_run(&mut self, now_s: f64, chance: &mut impl Rng) -> RunNoise {
        let mut log = self.parts.sd * draw_normal(chance) + self.parts.drift * now_s / 3600.0;
        log += self.draw_wander(chance);
        let mut factor = log.exp();
        factor *= self.burst_factor(now_s, chance) * self.level_factor(now_s, chance);
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
        RunNoise {
            factor: factor * recorded.map_or(1.0, |run| run.factor),
            user_share: recorded.and_then(|run| run.user_share),
            sys_share: recorded.and_then(|run| run.sys_share),
            foreign_cpus: self.foreign_cpus(now_s, chance),
        }
    }

    /// Rounds a time to the clock's step, at least one step.
    pub(super) fn round_to_clock(&self, time_s: f64) -> f64 {
        match self.parts.clock_s {
            Some(step) => (time_s / step).round().max(1.0) * step,
            None => time_s,
        }
    }

    fn foreign_cpus(&mut self, now_s: f64, chance: &mut impl Rng) -> Option<f64> {
        let load = self.parts.load.as_ref()?;
        Some(self.load.advance_to(now_s, |_| {
            let cpus = load.most_cpus * chance.random::<f64>();
            (cpus, draw_exponential(load.dwell_s, chance))
        }))
    }

    /// Draws the next value of the wander, an addend of `ln(time)`.
    fn draw_wander(&mut self, chance: &mut impl Rng) -> f64 {
        let Some(wander) = &self.parts.wander else {
            return 0.0;
        };
        let innovation = wander.sd * (1.0 - wander.correlation * wander.correlation).sqrt();
        self.wander = wander.correlation * self.wander + innovation * draw_normal(chance);
        self.wander
    }

    fn burst_factor(&mut self, now_s: f64, chance: &mut impl Rng) -> f64 {
        let Some(bursts) = &self.parts.bursts else {
            return 1.0;
        };
        let is_burst = self.burst.advance_to(now_s, |was_burst| match was_burst {
            true => (false, draw_exponential(bursts.every_s, chance)),
            false => (true, draw_exponential(bursts.lasts_s, chance)),
        });
        if is_burst { bursts.factor } else { 1.0 }
    }

    fn level_factor(&mut self, now_s: f64, chance: &mut impl Rng) -> f64 {
        let Some(shifts) = &self.parts.level_shifts else {
            return 1.0;
        };
        let level = self.level.advance_to(now_s, |_| {
            let next = chance.random_range(0..shifts.levels.len());
            (next, draw_exponential(shifts.dwell_s, chance))
        });
        shifts.levels[level]
    }
}

/// A standard normal draw by inversion: one draw uses one number of the generator.
pub(super) fn draw_normal(chance: &mut impl Rng) -> f64 {
    let uniform: f64 = chance.random_range(f64::EPSILON..1.0);
    normal::upper_quantile(uniform)
}

pub(super) fn draw_exponential(mean: f64, chance: &mut impl Rng) -> f64 {
    let uniform: f64 = chance.random_range(f64::EPSILON..1.0);
    -mean * uniform.ln()
}
