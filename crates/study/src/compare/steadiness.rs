//! Compares how much the runs of arms spread: as fields of the record, as a sentence, as a finding.
//!
//! Verdicts on the typical run do not depend on it.

use super::plan::ComparePlan;
use pinwise_format::percent;
use pinwise_placement::Placement;
use pinwise_record::{
    Comparison, ComparisonStudy, ContrastRecord, ContrastVerdict, Finding, Severity,
};
use pinwise_stats::Responses;
use pinwise_stats::steadiness;
use pinwise_stats::verdict::Setting;

/// Fills in the contrasts' spreads, and the sentence on an arm worth choosing for its steadiness.
pub(super) fn compare_steadiness(
    record: &mut Comparison,
    plan: &ComparePlan,
    data: &Responses,
    setting: &Setting<'_>,
) {
    let alpha = plan.tuning.alpha;
    let companion = plan.arms[plan.baseline].companion_name();
    let competes = |name: &str| {
        let mut arms = plan.arms.iter();
        arms.any(|arm| arm.name == name && arm.companion_name() == companion)
    };
    for spread in steadiness::compare_with_baseline(data, setting.baseline, alpha) {
        let name = &setting.names[spread.arm];
        let mut contrasts = record.contrasts.iter_mut();
        let contrast = contrasts.find(|c| c.arm == *name && competes(name));
        let Some(contrast) = contrast else {
            continue;
        };
        let end = |value: f64| value.is_finite().then(|| value.exp());
        contrast.spread_ratio = Some(spread.estimate.exp());
        contrast.spread_low = end(spread.interval.low);
        contrast.spread_high = end(spread.interval.high);
        contrast.spread_p_adjusted = Some(spread.p_adjusted);
    }
    // Beside companions the question is what they cost.
    if plan.study == ComparisonStudy::Compare && !plan.is_survey {
        record.verdict.steadiness = recommend_steadiest(record, plan);
    }
}

fn spreads_less(contrast: &ContrastRecord) -> bool {
    contrast.spread_high.is_some_and(|high| high < 1.0)
}

fn spreads_more(contrast: &ContrastRecord) -> bool {
    contrast.spread_low.is_some_and(|low| low > 1.0)
}

/// Recommends the arm that spreads least among those not shown to be slower; `None` if none spreads
/// less than the baseline.
fn recommend_steadiest(record: &Comparison, plan: &ComparePlan) -> Option<String> {
    let placebo = plan.placebo.map(|arm| plan.arms[arm].name.as_str());
    let steady = record
        .contrasts
        .iter()
        .filter(|c| spreads_less(c) && !is_worse(c) && !c.depends_on_load)
        .filter(|c| Some(c.arm.as_str()) != placebo)
        .min_by(|a, b| {
            let ratio = |c: &ContrastRecord| c.spread_ratio.unwrap_or(1.0);
            ratio(a).total_cmp(&ratio(b))
        })?;
    let arm = plan.arms.iter().find(|arm| arm.name == steady.arm)?;
    let less = percent(1.0 - steady.spread_ratio?);
    let metric = &record.metric;
    let cost = match steady.verdict {
        ContrastVerdict::Faster => format!("is {}", metric.better_word),
        ContrastVerdict::Same => "costs the same".to_owned(),
        _ => format!("is not shown to be {}", metric.worse_word),
    };
    let is_pinned = arm.place.placement != Placement::os_default() && arm.settings.is_empty();
    // Where nothing is recommended, its steadiness recommends nothing either.
    let what = match (record.verdict.not_recommended.is_some(), is_pinned) {
        (true, _) => "",
        (false, true) => ": pin it there where repeatability matters",
        (false, false) => ": choose it where repeatability matters",
    };
    Some(format!(
        "{} {cost} and its runs spread {less} less ({}){what}.",
        steady.arm,
        describe_interval(steady)
    ))
}

/// Is it slower, or does it need more CPU time where that decides?
fn is_worse(contrast: &ContrastRecord) -> bool {
    let cpu = contrast.deciding_cpu_time();
    contrast.verdict == ContrastVerdict::Slower || cpu.is_some_and(|cpu| cpu.ratio > 1.0)
}

/// How much less or more the arm spreads, such as `10–40 %`.
fn describe_interval(contrast: &ContrastRecord) -> String {
    let change = |ratio: Option<f64>| ratio.map(|r| 100.0 * (r - 1.0).abs());
    let (low, high) = (change(contrast.spread_low), change(contrast.spread_high));
    match (low, high) {
        (Some(a), Some(b)) => format!("{:.0}–{:.0} %", a.min(b), a.max(b)),
        (Some(only), None) | (None, Some(only)) => format!("at least {only:.0} %"),
        (None, None) => String::new(),
    }
}

/// Reports arms whose runs spread differently from the baseline's.
pub(super) fn report_spread(record: &Comparison) -> Option<Finding> {
    if record.study != ComparisonStudy::Compare {
        return None;
    }
    let differing: Vec<&ContrastRecord> = record
        .contrasts
        .iter()
        .filter(|contrast| spreads_less(contrast) || spreads_more(contrast))
        .collect();
    let parts: Vec<String> = differing
        .iter()
        .map(|contrast| describe_spread(contrast))
        .collect();
    let first = differing.first()?;
    let finding = Finding::new(
        "spread_differs",
        Severity::Note,
        format!(
            "Runs spread differently (without drift and bursts): {}.",
            parts.join("; ")
        ),
        "If consistency matters, compare the spread too.",
    );
    Some(finding.with_evidence("spread_ratio", first.spread_ratio))
}

fn describe_spread(contrast: &ContrastRecord) -> String {
    let ratio = contrast.spread_ratio.unwrap_or(1.0);
    let size = match spreads_less(contrast) {
        true => format!("{} less than", percent(1.0 - ratio)),
        false => format!("{ratio:.1} times as much as"),
    };
    format!("{} {size} {}", contrast.arm, contrast.baseline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_that_needs_more_cpu_time_is_no_choice_for_its_steadiness() {
        let text = include_str!("../../../../tests/data/records/comparison-shell.json");
        let record: Comparison = serde_json::from_str(text).unwrap();
        let mut contrast = record.contrasts[0].clone();
        contrast.verdict = ContrastVerdict::Undecided;
        let cpu = contrast.cpu_time.as_mut().unwrap();
        (cpu.decides, cpu.ratio) = (true, 1.02);
        assert!(is_worse(&contrast));
        contrast.cpu_time.as_mut().unwrap().ratio = 0.98;
        assert!(!is_worse(&contrast));
    }
}
