//! What speaks against verdicts, as findings: load, order, time, tails, and
//! figures that come in coarse steps.

use super::engine::Results;
use crate::record::{Comparison, ContrastRecord, Finding, JudgedRecord, Severity, SplitRecord};
use crate::stats::verdict::{gain, percent, signed_percent};

/// Steps of the figure that hide effects of the size that matters.
pub(super) fn coarse_figure(record: &Comparison, results: &Results) -> Option<Finding> {
    let resolution = results.look.as_ref()?.resolution?;
    let is_coarse = resolution.relative > record.plan.min_effect.ln_1p();
    is_coarse.then(|| {
        Finding::new(
            "coarse_figure",
            Severity::Warning,
            format!(
                "{} comes in steps of {} {}, {} of a typical run: smaller differences may be hidden, and nothing is called the same.",
                record.metric.name,
                rounded(resolution.step),
                record.metric.unit,
                percent(gain(resolution.relative))
            )
            .replace(" ,", ","),
            "Give the command more work per run, or measure it with a finer clock.",
        )
        .with("step", resolution.step)
        .with("step_ratio", resolution.relative.exp())
    })
}

/// Seven digits: what divides values that are rounded themselves is not exact.
fn rounded(step: f64) -> f64 {
    format!("{step:.6e}").parse().unwrap_or(step)
}

/// All that speaks against the verdict on an arm, or that it should be read with.
pub(super) fn of_contrast(contrast: &ContrastRecord, judge: &str) -> Vec<Finding> {
    [
        depends_on_order(contrast),
        depends_on_time(contrast),
        depends_on_load(contrast),
        depends_on_tail(contrast),
        typical_and_mean_differ(contrast).filter(|_| judge == "typical"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A warning where it withholds the verdict, else a note.
const fn severity(withholds: bool) -> Severity {
    if withholds {
        Severity::Warning
    } else {
        Severity::Note
    }
}

fn change(ratio: f64) -> String {
    signed_percent(ratio - 1.0)
}

fn split_finding(
    code: &str,
    contrast: &ContrastRecord,
    split: SplitRecord,
    withholds: bool,
    what: &str,
    advice: &str,
) -> Finding {
    let sentence = format!("{} against {}: {what}.", contrast.arm, contrast.baseline);
    Finding::new(code, severity(withholds), sentence, advice)
        .with("first_ratio", split.first)
        .with("second_ratio", split.second)
}

fn depends_on_order(contrast: &ContrastRecord) -> Option<Finding> {
    let split = contrast.by_order?;
    let (even, uneven) = (change(split.first), change(split.second));
    Some(split_finding(
        "depends_on_order",
        contrast,
        split,
        contrast.depends_on_order,
        &format!(
            "a run depends on which arm ran before it ({even} where both ran after the same arm, {uneven} elsewhere)"
        ),
        "Bring everything back to the same state before every run with --prepare.",
    ))
}

fn depends_on_time(contrast: &ContrastRecord) -> Option<Finding> {
    let split = contrast.by_time?;
    let (early, late) = (change(split.first), change(split.second));
    Some(split_finding(
        "depends_on_time",
        contrast,
        split,
        contrast.depends_on_time,
        &format!(
            "the difference changes over the experiment ({early} in the first third, {late} in the last)"
        ),
        "If one arm warms up, throw more blocks away with --warmup; if it slows down, look for what it leaves behind.",
    ))
}

fn depends_on_load(contrast: &ContrastRecord) -> Option<Finding> {
    let split = contrast.by_load?;
    let (light, heavy) = (change(split.first), change(split.second));
    Some(split_finding(
        "depends_on_load",
        contrast,
        split,
        contrast.depends_on_load,
        &format!(
            "the difference depends on what else runs ({light} under the lightest third of the load, {heavy} under the heaviest)"
        ),
        "Compare under the load that matters to you, or on a quiet machine.",
    ))
}

fn depends_on_tail(contrast: &ContrastRecord) -> Option<Finding> {
    if !contrast.depends_on_tail {
        return None;
    }
    let others: Vec<String> = contrast.others.iter().map(judged).collect();
    Some(Finding::new(
        "depends_on_tail",
        Severity::Warning,
        format!(
            "{} against {}: typical run, mean and tail disagree ({} as judged; {}).",
            contrast.arm,
            contrast.baseline,
            change(contrast.ratio),
            others.join(", ")
        ),
        "Say what matters: --judge mean for totals, --judge p90 for the tail.",
    ))
}

/// The same direction, but sizes whose intervals lie apart.
fn typical_and_mean_differ(contrast: &ContrastRecord) -> Option<Finding> {
    let mean = contrast.others.iter().find(|other| other.judge == "mean")?;
    let (low, high) = (mean.low?, mean.high?);
    let is_apart = low > contrast.high? || high < contrast.low?;
    (is_apart && !contrast.depends_on_tail).then(|| {
        Finding::new(
            "typical_and_mean_differ",
            Severity::Warning,
            format!(
                "{} against {}: {} in the typical run, but {} on average ({} to {}).",
                contrast.arm,
                contrast.baseline,
                change(contrast.ratio),
                change(mean.ratio),
                change(low),
                change(high)
            ),
            "If total time matters more to you than the typical run, use --judge mean.",
        )
        .with("mean_ratio", mean.ratio)
    })
}

fn judged(other: &JudgedRecord) -> String {
    format!("{} {}", other.judge, change(other.ratio))
}
