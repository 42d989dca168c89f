//! Simulates whole comparisons with clocks that tick: false claims must stay as rare as with a fine
//! clock, whatever the ticks are and however steady an arm is.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Responses;
use super::caveats::Circumstances;
use super::confirm::{Confirmation, Decision, Look, Question, Score};
use super::judge::Judge;
use super::normal::upper_quantile;
use super::resolution::Figure;
use super::sequential::Depth;

/// A clock with ticks.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Time between two ticks, s.
    step: f64,
    /// Added to the whole steps of every figure, s.
    offset: f64,
    /// Digits that are printed; `None`: all.
    digits: Option<i32>,
    /// Does a run begin anywhere between two ticks, rather than at one?
    has_phase: bool,
}

const fn ticking(step: f64) -> Clock {
    Clock {
        step,
        offset: 0.0,
        digits: None,
        has_phase: false,
    }
}

const SIXTY_HERTZ: Clock = ticking(1.0 / 60.0);
/// The same as a program prints it.
const PRINTED: Clock = Clock {
    digits: Some(6),
    ..SIXTY_HERTZ
};
const OFFSET: Clock = Clock {
    offset: 0.0037,
    ..ticking(0.01)
};

impl Clock {
    /// The figure that the clock gives for a time, s.
    fn show(self, time: f64, chance: &mut ChaCha8Rng) -> f64 {
        let phase = match self.has_phase {
            true => chance.random::<f64>() - 0.5,
            false => 0.0,
        };
        let steps = ((time - self.offset) / self.step + phase).round().max(1.0);
        let shown = steps * self.step + self.offset;
        match self.digits {
            Some(digits) => {
                let unit = 10f64.powi(digits);
                (shown * unit).round() / unit
            }
            None => shown,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct World {
    clock: Clock,
    /// Typical time of both arms, seconds.
    centre: f64,
    /// Standard deviation of the first arm over its centre.
    sd: f64,
    /// Spread of the second arm over the first's.
    wider: f64,
    /// Time of the second arm over the first's.
    ratio: f64,
    /// Share of runs that take half as long again.
    slow: f64,
    judge: Judge,
    runs: usize,
}

const WORLD: World = World {
    clock: ticking(0.01),
    centre: 0.123,
    sd: 0.01,
    wider: 5.0,
    ratio: 1.0,
    slow: 0.0,
    judge: Judge::Typical,
    runs: 60,
};

/// Counts of comparisons: those that claim a difference, and those whose interval misses the truth.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    claims: usize,
    missed: usize,
}

fn normal(chance: &mut ChaCha8Rng) -> f64 {
    let size = (-2.0 * (1.0 - chance.random::<f64>()).ln()).sqrt();
    size * (std::f64::consts::TAU * chance.random::<f64>()).cos()
}

impl World {
    fn question(&self) -> Question {
        Question {
            judge: self.judge,
            score: Score::Weighted,
            alpha: 0.05,
            delta: 0.01,
            figure: Figure::Measured,
            is_rate: false,
            is_open_ended: false,
        }
    }

    fn run(&self, arm: usize, chance: &mut ChaCha8Rng) -> f64 {
        let (ratio, wider) = match arm {
            0 => (1.0, 1.0),
            _ => (self.ratio, self.wider),
        };
        let slow = match chance.random::<f64>() < self.slow {
            true => 1.5,
            false => 1.0,
        };
        let time = self.centre * ratio * (1.0 + self.sd * wider * normal(chance)) * slow;
        self.clock.show(time, chance).ln()
    }

    /// Runs a comparison with a look whenever one is due, until it is settled.
    fn compare(&self, seed: u64) -> Look {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let question = self.question();
        let mut schedule = question.schedule(1);
        let mut confirmation = Confirmation::new(2, 0, question);
        let mut data = Responses::new(2);
        let mut around = Circumstances::default();
        let mut last = None;
        for pairs in 1..=self.runs {
            let slot = usize::from(chance.random::<bool>());
            data.push(&[self.run(0, &mut chance), self.run(1, &mut chance)]);
            around.slots.push(vec![slot, 1 - slot]);
            around.before.push(vec![None, None]);
            around.load.push(None);
            let Some(depth) = schedule.next_due(pairs, self.runs) else {
                continue;
            };
            let look = confirmation.look(&data, &around, self.runs as f64, depth);
            last = look.or(last);
            if last.as_ref().is_some_and(|look| look.is_settled) {
                break;
            }
        }
        last.unwrap_or_else(|| {
            confirmation
                .look(&data, &around, self.runs as f64, Depth::Verdicts)
                .expect("verdicts were asked for")
        })
    }

    fn tally(&self, replays: u64) -> Tally {
        let mut tally = Tally::default();
        for seed in 0..replays {
            let contrast = &self.compare(seed).contrasts[0];
            let is_claim = matches!(contrast.decision, Decision::Faster | Decision::Slower);
            tally.claims += usize::from(is_claim);
            tally.missed += usize::from(!contrast.interval.holds(self.truth()));
        }
        tally
    }

    /// The true `ln(ratio)` of the judged statistic, second arm over first.
    fn truth(&self) -> f64 {
        match self.judge {
            Judge::Typical | Judge::Mean => self.ratio.ln(),
            Judge::Percentile(_) => (self.ratio / self.with_equal_percentile().ratio).ln(),
        }
    }

    /// The same world with a ratio that makes the judged percentile equal in both arms.
    fn with_equal_percentile(mut self) -> Self {
        if let Judge::Percentile(percentile) = self.judge {
            let z = upper_quantile(1.0 - f64::from(percentile) / 100.0);
            self.ratio = (1.0 + z * self.sd) / (1.0 + z * self.sd * self.wider);
        }
        self
    }
}

/// Checks that at most 5 % of comparisons claim a difference or miss the truth. The bound allows for
/// chance: a correct test exceeds it in three of a thousand cases.
#[track_caller]
fn check_error_rate(world: World) {
    const REPLAYS: u64 = 40;
    let tally = world.tally(REPLAYS);
    assert!(tally.claims <= 6, "{tally:?} of {REPLAYS}: {world:?}");
    assert!(tally.missed <= 6, "{tally:?} of {REPLAYS}: {world:?}");
}

#[test]
fn ticks_do_not_make_a_steady_arm_differ_from_one_that_varies() {
    for clock in [ticking(0.01), SIXTY_HERTZ, OFFSET] {
        for centre in [0.123, 0.127] {
            check_error_rate(World {
                clock,
                centre,
                ..WORLD
            });
        }
        check_error_rate(World {
            clock,
            centre: 1.003,
            sd: 0.001,
            ..WORLD
        });
    }
    check_error_rate(World {
        clock: Clock {
            has_phase: true,
            ..ticking(0.01)
        },
        ..WORLD
    });
    for judge in [Judge::Mean, Judge::Percentile(90)] {
        check_error_rate(World { judge, ..WORLD }.with_equal_percentile());
    }
}

#[test]
fn a_few_slow_runs_do_not_hide_that_an_arm_is_steady() {
    for slow in [0.1, 0.2] {
        check_error_rate(World { slow, ..WORLD });
    }
}

#[test]
fn differences_below_a_tick_are_not_decided() {
    // 3 % more within a tick of 60 Hz, and 0.6 % more that crosses one.
    for clock in [SIXTY_HERTZ, PRINTED, OFFSET, ticking(0.01)] {
        for (centre, ratio) in [(0.114, 1.03), (0.1172, 1.006), (0.1245, 1.006)] {
            let steady = World {
                clock,
                centre,
                ratio,
                sd: 1e-4,
                wider: 1.0,
                ..WORLD
            };
            let contrast = &steady.compare(0).contrasts[0];
            assert_ne!(contrast.decision, Decision::Same, "{steady:?}");
            assert_ne!(contrast.decision, Decision::Faster, "{steady:?}");
            assert!(contrast.interval.holds(ratio.ln()), "{contrast:?}");
        }
    }
}

#[test]
fn differences_above_a_tick_are_found() {
    let slower = World {
        ratio: 1.3,
        wider: 1.0,
        ..WORLD
    };
    for clock in [SIXTY_HERTZ, PRINTED, OFFSET, ticking(0.01)] {
        let look = World { clock, ..slower }.compare(1);
        assert_eq!(look.contrasts[0].decision, Decision::Slower);
    }
    // Ticks of half a standard deviation take nothing away.
    let found = World {
        clock: ticking(0.01),
        centre: 1.003,
        sd: 0.02,
        ratio: 1.02,
        ..slower
    };
    let through_ticks = found.tally(40).claims;
    let fine = World {
        clock: ticking(1e-9),
        ..found
    };
    assert!(
        through_ticks + 4 >= fine.tally(40).claims,
        "{through_ticks}"
    );
}

#[test]
fn counts_are_not_taken_for_coarse_figures() {
    let mut data = Responses::new(2);
    for _ in 0..20 {
        data.push(&[5f64.ln(), 6f64.ln()]);
    }
    let look = |figure: Figure| {
        let question = Question {
            figure,
            ..WORLD.question()
        };
        let around = Circumstances {
            slots: vec![vec![0, 1]; 20],
            ..Circumstances::default()
        };
        Confirmation::new(2, 0, question)
            .look(&data, &around, 20.0, Depth::Verdicts)
            .expect("verdicts were asked for")
    };
    for figure in [Figure::Counted, Figure::Unknown] {
        let contrast = &look(figure).contrasts[0];
        assert_eq!(contrast.decision, Decision::Slower);
        assert!((contrast.interval.low - 1.2f64.ln()).abs() < 1e-6);
    }
    // Seconds: anything from none to twice as much is possible.
    let contrast = &look(Figure::Measured).contrasts[0];
    assert_eq!(contrast.decision, Decision::Slower);
    assert!(contrast.interval.low < 0.001 && contrast.interval.high > 1.4f64.ln());
}
