//! The noise floor: what an A/A comparison says about the machine.
//!
//! All arms are the same, so any verdict of faster or slower is a false alarm, and the interval's
//! half-width is the smallest effect that could have been detected. The same runs also show what
//! comparing without random blocks would have concluded: windows of 20 consecutive runs are split
//! into the first ten and the next ten, as sequential benchmarks are, and judged by Welch's test.

use pinwise_format::{percent, round_percent};
use pinwise_record::{Comparison, Finding, RunRecord, Severity, VerdictKind};
use pinwise_stats::describe::{robust_sd, sd};
use pinwise_stats::inversion::Family;
use pinwise_stats::paired::Paired;
use pinwise_stats::sequential::MIN_PAIRS;
use pinwise_stats::welch;

/// Runs per side of a window: hyperfine's default minimum.
const WINDOW: usize = 10;
/// With fewer windows no rate is reported.
const MIN_WINDOWS: usize = 5;
/// Nominal level of the tests compared.
const LEVEL: f64 = 0.05;

/// Rewrites an A/A comparison's verdict for its question and adds what its runs show about the
/// machine.
#[must_use]
pub fn conclude_noise(mut record: Comparison) -> Comparison {
    if record.contrasts.is_empty() {
        return record;
    }
    let alarms: Vec<&str> = record
        .contrasts
        .iter()
        .filter(|c| c.is_decided())
        .map(|c| c.arm.as_str())
        .collect();
    let floor = noise_floor(&record);
    record.verdict.sentence = if alarms.is_empty() {
        let detectable = floor.map_or_else(String::new, |floor| {
            format!(
                " Noise floor: effects below {} are not detectable in {} blocks.",
                percent(floor),
                record.blocks
            )
        });
        format!("No false alarm: no arm was found to differ.{detectable}")
    } else {
        format!(
            "False alarm: {} differed from A although all arms are the same. Expected in at most {} of comparisons; if it happens again, something depends on the order of runs.",
            alarms.join(", "),
            round_percent(record.plan.alpha)
        )
    };
    record.verdict.advice = String::new();
    record.verdict.commands.clear();
    record.best = None;
    if record.verdict.kind != VerdictKind::Same {
        record.verdict.kind = VerdictKind::Undecided;
    }
    record.header.findings.extend(report_noise(&record, floor));
    record.header.findings.extend(false_alarm_rates(&record));
    record
}

/// Half-width of the widest interval, relative.
fn noise_floor(record: &Comparison) -> Option<f64> {
    let widths = record
        .contrasts
        .iter()
        .map(|c| Some(0.5 * (c.high?.ln() - c.low?.ln())))
        .collect::<Option<Vec<f64>>>()?;
    widths.into_iter().reduce(f64::max).map(f64::exp_m1)
}

/// Blocks after which an effect of 1 % would be detected in four of five comparisons, from the
/// half-width `floor` after `blocks`. A power of 80 % takes an effect of 2.8 standard errors, a
/// half-width is 1.96 of them, and it shrinks with the square root of the number of blocks.
fn blocks_for_1_percent(blocks: usize, floor: f64) -> f64 {
    let half_width = 0.01f64.ln_1p() * 1.96 / 2.8;
    (blocks as f64 * (floor.ln_1p() / half_width).powi(2)).max(MIN_PAIRS as f64)
}

fn report_noise(record: &Comparison, floor: Option<f64>) -> Option<Finding> {
    let (baseline, arm) = (record.arms.first()?, record.arms.get(1)?);
    let differences = pair_differences(&baseline.runs, &arm.runs);
    if differences.len() < 2 {
        return None;
    }
    let (robust, plain) = (robust_sd(&differences), sd(&differences));
    let blocks = floor.map(|floor| blocks_for_1_percent(record.blocks, floor));
    let effort = blocks.map_or_else(String::new, |blocks| {
        format!("; to see 1 % in four of five comparisons takes about {blocks:.0} blocks")
    });
    Some(
        Finding::new(
            "noise",
            Severity::Note,
            format!(
                "Two runs side by side differ by {} (robust standard deviation; plain {}){effort}.",
                percent(robust),
                percent(plain)
            ),
            "",
        )
        .with_evidence("pair_robust_sd", robust)
        .with_evidence("pair_sd", plain)
        .with_evidence("blocks_for_1_percent", blocks),
    )
}

fn pair_differences(baseline: &[RunRecord], arm: &[RunRecord]) -> Vec<f64> {
    baseline
        .iter()
        .zip(arm)
        .filter_map(|(b, a)| Some(a.metric.cost?.ln() - b.metric.cost?.ln()))
        .collect()
}

/// How often sequential and paired designs would have raised a false alarm on these runs.
fn false_alarm_rates(record: &Comparison) -> Option<Finding> {
    let mut runs: Vec<(f64, f64)> = record
        .arms
        .iter()
        .flat_map(|arm| &arm.runs)
        .filter_map(|run| Some((run.at_s, run.metric.cost?.ln())))
        .collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let responses: Vec<f64> = runs.into_iter().map(|(_, y)| y).collect();
    let windows: Vec<&[f64]> = responses.chunks_exact(2 * WINDOW).collect();
    if windows.len() < MIN_WINDOWS {
        return None;
    }
    let sequential = windows
        .iter()
        .filter(|window| welch::two_sided_p(&window[..WINDOW], &window[WINDOW..]) < LEVEL)
        .count();
    let paired: f64 = windows.iter().map(|window| paired_alarm_rate(window)).sum();
    let share = |count: f64| count / windows.len() as f64;
    Some(
        Finding::new(
            "false_alarm_rates",
            Severity::Note,
            format!(
                "On these runs, {WINDOW} in a row against the next {WINDOW} (Welch's test, nominal 5 %) would have raised a false alarm in {} of {} windows; the same runs as pairs in random order would in {} of all orders.",
                sequential,
                windows.len(),
                percent(share(paired))
            ),
            "",
        )
        .with_evidence("windows", windows.len())
        .with_evidence("sequential_rate", share(sequential as f64))
        .with_evidence("paired_rate", share(paired)),
    )
}

/// Share of all ways to label the runs of the window's pairs that a signed-rank test would reject.
/// The rank sums of all labellings are the test's null distribution.
fn paired_alarm_rate(window: &[f64]) -> f64 {
    let differences: Vec<f64> = window.chunks_exact(2).map(|p| p[1] - p[0]).collect();
    let ranks = Paired::without_weights(differences).scores(0.0);
    let mut sums: Vec<f64> = (0..1u32 << ranks.len())
        .map(|labels| {
            let signed = ranks.iter().enumerate();
            signed
                .map(|(i, rank)| if labels & (1 << i) == 0 { *rank } else { -rank })
                .sum::<f64>()
                .abs()
        })
        .collect();
    sums.sort_by(|a, b| b.total_cmp(a));
    // Equal sums are rejected together or not at all; ranks are multiples of 0.5.
    let most = LEVEL * sums.len() as f64;
    let mut rejected = 0;
    for group in sums.chunk_by(|a, b| (a - b).abs() < 0.25) {
        if (rejected + group.len()) as f64 >= most {
            break;
        }
        rejected += group.len();
    }
    rejected as f64 / sums.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_alarm_is_reported_with_the_requested_error_rate() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        record.contrasts[0].verdict = pinwise_record::ContrastVerdict::Slower;
        record.plan.alpha = 0.01;
        let sentence = conclude_noise(record).verdict.sentence;
        assert!(
            sentence.contains("at most 1 % of comparisons"),
            "{sentence}"
        );
    }

    #[test]
    fn blocks_for_1_percent_grow_with_the_square_of_the_noise_floor() {
        // 18 blocks with a noise floor of 2.9 % are too few for 1 %.
        assert!((blocks_for_1_percent(18, 0.029) - 303.0).abs() < 1.0);
        // With an interval of ±0.71 %, 1 % shows in four of five comparisons.
        assert!((blocks_for_1_percent(40, 0.00699) - 40.0).abs() < 0.5);
        assert!((blocks_for_1_percent(40, 0.0001) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn drifting_runs_fool_the_sequential_test_only() {
        let window: Vec<f64> = (0..20)
            .map(|i| 0.01 * f64::from(i) + 0.001 * f64::from(i * 7 % 5))
            .collect();
        assert!(welch::two_sided_p(&window[..10], &window[10..]) < 0.001);
        assert!(paired_alarm_rate(&window) <= 0.05);
    }
}
