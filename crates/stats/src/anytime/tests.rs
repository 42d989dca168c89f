use super::*;
use crate::caveats::Circumstances;
use crate::confirm::{Confirmation, Question, Score};
use crate::judge::Judge;
use crate::resolution::Figure;
use crate::{Responses, normal};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Differences, error, scale and planned pairs; then interval and evidence against 0, as computed
/// by `∏ (1 + tanh(λψ))` and `brentq` in Python (SciPy).
type Golden = (&'static [f64], f64, f64, usize, f64, f64, f64);

const GOLDEN: [Golden; 3] = [
    (
        &[
            -0.101, -0.062, -0.137, -0.089, -0.021, -0.118, -0.095, -0.074,
        ],
        0.05,
        0.04,
        20,
        -0.137_182_266_514_647_85,
        -0.028_868_041_582_130_695,
        50.213_699_747_223,
    ),
    (
        &[
            0.031, -0.012, 0.054, 0.008, -0.047, 0.022, 0.019, -0.003, 0.041, 0.9, 0.017, -0.026,
        ],
        0.05,
        0.04,
        30,
        -0.022_017_199_929_160_743,
        0.087_243_616_736_865_36,
        1.133_695_982_771_226_3,
    ),
    (
        &[
            1.2, 0.4, -0.3, 2.2, 0.9, 1.1, -0.8, 0.5, 1.6, 0.2, 0.7, 1.3, -0.1, 0.6,
        ],
        0.1,
        1.0,
        12,
        0.043_289_873_102_656_445,
        1.309_750_860_181_735_8,
        13.760_925_874_359_98,
    ),
];

#[test]
fn intervals_are_those_of_the_reference() {
    for (differences, alpha, scale, pairs, low, high, evidence) in GOLDEN {
        let sequence = Sequence::new(alpha, scale, pairs);
        let interval = sequence.interval(differences).expect("enough pairs");
        assert!((interval.0 - low).abs() < 2e-9, "{interval:?}");
        assert!((interval.1 - high).abs() < 2e-9, "{interval:?}");
        let ratio = sequence.evidence(differences, 0.0) / evidence;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}

#[test]
fn few_pairs_allow_no_interval() {
    let sequence = Sequence::new(0.05, 0.03, 30);
    assert_eq!(sequence.interval(&[]), None);
    assert_eq!(sequence.interval(&[0.5; 5]), None);
    assert_eq!(sequence.interval(&[f64::NAN; 50]), None);
    assert_eq!(sequence.decide(&[0.5; 5], 0.01), Decision::Undecided);
    assert!(sequence.interval(&[0.5; 7]).is_some());
    let brief = Sequence::new(0.05, 0.03, 8);
    assert!(brief.interval(&[0.5; 6]).is_some());
}

#[test]
fn differences_that_are_not_numbers_are_ignored() {
    let sequence = Sequence::new(0.05, 0.03, 30);
    let clean = [0.1, 0.11, 0.09, 0.1, 0.12, 0.08, 0.1, 0.1, 0.11, 0.09];
    let mut dirty = vec![f64::NAN, f64::INFINITY];
    dirty.extend(clean);
    assert_eq!(sequence.interval(&clean), sequence.interval(&dirty));
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        let odd = Sequence::new(f64::NAN, scale, 0);
        assert!(odd.evidence(&clean, 0.0).is_finite());
        let _ = odd.interval(&clean);
    }
}

#[test]
fn decisions_follow_the_interval() {
    let wiggle = |i: u32| 0.004 * (f64::from(i * 37 % 11) - 5.0) / 5.0;
    for (effect, expected) in [
        (0.05, Decision::Slower),
        (-0.05, Decision::Faster),
        (0.0, Decision::Same),
    ] {
        let differences: Vec<f64> = (0..30).map(|i| effect + wiggle(i)).collect();
        let sequence = Sequence::new(0.05, 0.004, 20);
        assert_eq!(sequence.decide(&differences, 0.01), expected);
    }
}

proptest::proptest! {
    /// Interval and evidence agree, and are mirror images when the arms are exchanged.
    #[test]
    fn interval_and_evidence_agree(
        differences in proptest::collection::vec(-1.0f64..1.0, 0..40),
        scale in 0.01f64..2.0,
        pairs in 1usize..60,
        shift in -1.0f64..1.0,
    ) {
        let sequence = Sequence::new(0.05, scale, pairs);
        let interval = sequence.interval(&differences);
        let other: Vec<f64> = differences.iter().map(|d| -d).collect();
        let mirrored = sequence.interval(&other);
        proptest::prop_assert_eq!(interval.is_some(), mirrored.is_some());
        if let (Some((low, high)), Some((other_low, other_high))) = (interval, mirrored) {
            proptest::prop_assert!(low <= high);
            proptest::prop_assert!((low + other_high).abs() < 1e-8);
            proptest::prop_assert!((high + other_low).abs() < 1e-8);
            let is_close = (shift - low).abs() < 1e-8 || (shift - high).abs() < 1e-8;
            let is_excluded = shift < low || shift > high;
            let is_rejected = sequence.evidence(&differences, shift) >= 20.0;
            proptest::prop_assert!(is_close || is_excluded == is_rejected);
        }
    }
}

/// The distribution of simulated differences.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// A distribution without a mean.
    Cauchy,
    /// Differences of two runs with skewed noise, in random order.
    Skewed,
    /// Stretches of small and of large differences.
    Bursts,
}

const NOISES: [Noise; 4] = [Noise::Normal, Noise::Cauchy, Noise::Skewed, Noise::Bursts];

/// Simulates differences around 0 with a spread of about 1.
fn simulate(noise: Noise, count: usize, chance: &mut ChaCha8Rng) -> Vec<f64> {
    let mut level = 0.5;
    let mut draw = || {
        let share: f64 = chance.random_range(1e-12..1.0 - 1e-12);
        let other: f64 = chance.random_range(1e-12..1.0 - 1e-12);
        match noise {
            Noise::Normal => normal::upper_quantile(share),
            Noise::Cauchy => 0.67 * (std::f64::consts::PI * (share - 0.5)).tan(),
            Noise::Skewed => 0.7 * (other.ln() - share.ln()),
            Noise::Bursts => {
                level = if other < 0.2 { 6.5 - level } else { level };
                level * normal::upper_quantile(share)
            }
        }
    };
    (0..count).map(|_| draw()).collect()
}

/// Number of pairs until the evidence against 0 suffices; `None` if all are too few.
fn count_pairs_needed(sequence: &Sequence, differences: &[f64]) -> Option<usize> {
    let enough = 1.0 / sequence.alpha;
    (1..=differences.len()).find(|&n| sequence.evidence(&differences[..n], 0.0) >= enough)
}

/// A claim at any of 100 looks counts as a false alarm; the interval then excludes the truth at some
/// look, which may happen in 5 % of experiments.
#[test]
fn false_alarms_stay_below_the_level_at_all_looks_together() {
    const EXPERIMENTS: usize = 500;
    for noise in NOISES {
        for scale in [0.3, 1.0, 3.0] {
            let mut chance = ChaCha8Rng::seed_from_u64(1);
            let sequence = Sequence::new(0.05, scale, 30);
            let alarms = (0..EXPERIMENTS).filter(|_| {
                let pairs = simulate(noise, 100, &mut chance);
                count_pairs_needed(&sequence, &pairs).is_some()
            });
            // Two standard errors above 5 % are 7 %.
            let alarms = alarms.count();
            assert!(alarms <= 35, "{noise:?} {scale}: {alarms} of 500");
            assert!(
                alarms > 0,
                "{noise:?} {scale}: the level is not used at all"
            );
        }
    }
}

#[test]
fn intervals_cover_wherever_one_stops() {
    const EXPERIMENTS: usize = 400;
    for noise in NOISES {
        let mut chance = ChaCha8Rng::seed_from_u64(2);
        let sequence = Sequence::new(0.05, 1.0, 20);
        let mut missed = 0;
        for _ in 0..EXPERIMENTS {
            let centre = 3.0;
            let drawn = simulate(noise, 60, &mut chance);
            let shifted: Vec<f64> = drawn.iter().map(|d| d + centre).collect();
            let is_missed = (1..=shifted.len()).any(|n| {
                let interval = sequence.interval(&shifted[..n]);
                interval.is_some_and(|(low, high)| centre < low || centre > high)
            });
            missed += usize::from(is_missed);
        }
        assert!(missed <= 29, "{noise:?}: {missed} of 400");
    }
}

/// Number of pairs until the group-sequential looks of `compare` find a difference, with this budget
/// of pairs.
fn count_planned_pairs(differences: &[f64], budget: usize) -> Option<usize> {
    let question = Question {
        judge: Judge::Typical,
        score: Score::Rank,
        alpha: 0.05,
        delta: 0.01,
        figure: Figure::Measured,
        is_rate: false,
        is_open_ended: false,
    };
    let mut rule = Confirmation::new(2, 0, question);
    let mut schedule = question.schedule(1);
    let mut data = Responses::new(2);
    (1..=budget).find(|&pairs| {
        data.push(&[0.0, differences[pairs - 1]]);
        let look = schedule
            .next_due(pairs, budget)
            .and_then(|depth| rule.look(&data, &Circumstances::default(), budget as f64, depth));
        look.is_some_and(|look| {
            let decision = look.contrasts[0].decision;
            matches!(decision, Decision::Faster | Decision::Slower)
        })
    })
}

/// Median number of pairs; the largest number if most experiments did not end.
fn median(mut pairs: Vec<Option<usize>>) -> usize {
    pairs.sort_by_key(|n| n.unwrap_or(usize::MAX));
    pairs[pairs.len() / 2].unwrap_or(usize::MAX)
}

/// Each case has the noise of a run, the true effect, and the planned budget that it is compared
/// with; then the most pairs that may be needed (median), and by which factor more than with planned
/// looks.
#[test]
fn hardly_more_pairs_are_needed_than_with_planned_looks() {
    const EXPERIMENTS: usize = 200;
    for (noise, effect, budget, most, factor) in [
        (0.03, 0.10, 40, 8, 1.0),
        (0.03, 0.05, 40, 11, 1.0),
        (0.03, 0.02, 130, 42, 1.2),
        (0.10, 0.10, 130, 22, 1.0),
    ] {
        let scale = noise * std::f64::consts::SQRT_2;
        let sequence = Sequence::new(0.05, scale, 30);
        let mut chance = ChaCha8Rng::seed_from_u64(3);
        let experiments: Vec<Vec<f64>> = (0..EXPERIMENTS)
            .map(|_| {
                let drawn = simulate(Noise::Normal, budget, &mut chance);
                drawn.iter().map(|d| effect + scale * d).collect()
            })
            .collect();
        let ours = experiments.iter().map(|e| count_pairs_needed(&sequence, e));
        let planned = experiments.iter().map(|e| count_planned_pairs(e, budget));
        let (ours, planned) = (median(ours.collect()), median(planned.collect()));
        assert!(ours <= most, "{noise} {effect}: {ours} pairs");
        assert!(
            ours as f64 <= factor * planned as f64,
            "{noise} {effect}: {ours} pairs, planned looks {planned}"
        );
    }
}

/// Compares the half-width after the planned number of pairs with that of a single look at a known
/// normal distribution: the cost of being valid at any time.
#[test]
fn intervals_are_not_much_wider_than_a_single_look_allows() {
    let mut chance = ChaCha8Rng::seed_from_u64(4);
    for pairs in [10, 20, 40] {
        let sequence = Sequence::new(0.05, 1.0, pairs);
        let widths = (0..200).filter_map(|_| {
            let drawn = simulate(Noise::Normal, pairs, &mut chance);
            let (low, high) = sequence.interval(&drawn)?;
            Some(0.5 * (high - low))
        });
        let mean = widths.sum::<f64>() / 200.0;
        let single = normal::upper_quantile(0.025) / (pairs as f64).sqrt();
        assert!(mean < 1.9 * single, "{pairs}: {mean} against {single}");
        assert!(mean > single, "{pairs}: {mean} against {single}");
    }
}
