//! Which arm repeats better: as record fields, as a sentence, as a finding.
//!
//! It changes no verdict on the typical run.

use super::plan::ComparePlan;
use pinwise_format::percent;
use pinwise_placement::Placement;
use pinwise_record::{
    Comparison, ComparisonStudy, ContrastRecord, ContrastVerdict, Finding, Severity,
};
use pinwise_stats::Responses;
use pinwise_stats::steadiness;
use pinwise_stats::verdict::Setting;

/// Fills in the contrasts' figures and says if an arm is worth choosing for its steadiness.
pub(super) fn add(
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
    for found in steadiness::compare_with_baseline(data, setting.baseline, alpha) {
        let name = &setting.names[found.arm];
        let mut contrasts = record.contrasts.iter_mut();
        let contrast = contrasts.find(|c| c.arm == *name && competes(name));
        let Some(contrast) = contrast else {
            continue;
        };
        let end = |value: f64| value.is_finite().then(|| value.exp());
        contrast.spread_ratio = Some(found.estimate.exp());
        contrast.spread_low = end(found.interval.low);
        contrast.spread_high = end(found.interval.high);
        contrast.spread_p_adjusted = Some(found.p_adjusted);
    }
    if plan.study == ComparisonStudy::Compare {
        record.verdict.steadiness = sentence(record, plan);
    }
}

/// Is the arm shown to spread less (`true`) or more (`false`)?
fn claim(contrast: &ContrastRecord) -> Option<bool> {
    if contrast.spread_high.is_some_and(|high| high < 1.0) {
        return Some(true);
    }
    contrast
        .spread_low
        .is_some_and(|low| low > 1.0)
        .then_some(false)
}

/// The steadiest of the arms that cost nothing, unless it is the best anyway.
fn sentence(record: &Comparison, plan: &ComparePlan) -> Option<String> {
    let placebo = plan.placebo.map(|arm| plan.arms[arm].name.as_str());
    let steady = record
        .contrasts
        .iter()
        .filter(|c| {
            claim(c) == Some(true) && c.verdict != ContrastVerdict::Slower && !c.depends_on_load
        })
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
    let what = match is_pinned {
        true => "pin it there",
        false => "choose it",
    };
    Some(format!(
        "{} {cost} and its runs spread {less} less ({}): {what} where repeatability matters.",
        steady.arm,
        interval(steady)
    ))
}

/// `10–40 %`: how much less or more.
fn interval(contrast: &ContrastRecord) -> String {
    let change = |ratio: Option<f64>| ratio.map(|r| 100.0 * (r - 1.0).abs());
    let (low, high) = (change(contrast.spread_low), change(contrast.spread_high));
    match (low, high) {
        (Some(a), Some(b)) => format!("{:.0}–{:.0} %", a.min(b), a.max(b)),
        (Some(only), None) | (None, Some(only)) => format!("at least {only:.0} %"),
        (None, None) => String::new(),
    }
}

/// Arms whose runs spread differently from the baseline's.
pub(super) fn finding(record: &Comparison) -> Option<Finding> {
    if record.study != ComparisonStudy::Compare {
        return None;
    }
    let listed: Vec<&ContrastRecord> = record
        .contrasts
        .iter()
        .filter(|contrast| claim(contrast).is_some())
        .collect();
    let parts: Vec<String> = listed.iter().map(|contrast| part(contrast)).collect();
    let first = listed.first()?;
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

fn part(contrast: &ContrastRecord) -> String {
    let ratio = contrast.spread_ratio.unwrap_or(1.0);
    let (size, word) = match claim(contrast) {
        Some(true) => (percent(1.0 - ratio), "less"),
        _ => (format!("{ratio:.1} times"), "as much"),
    };
    format!("{} {size} {word} than {}", contrast.arm, contrast.baseline)
        .replace("as much than", "as much as")
}
