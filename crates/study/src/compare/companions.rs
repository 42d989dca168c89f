//! What companions cost each arm that ran with and without them, as findings.

use super::plan::ComparePlan;
use pinwise_machine::RunSetting;
use pinwise_record::{Arm, Comparison, Finding, Severity};
use pinwise_stats::paired::hodges_lehmann;

/// Fewer blocks say too little.
const MIN_BLOCKS: usize = 3;

/// A sentence for each companion.
pub(super) fn findings(record: &Comparison, plan: &ComparePlan) -> Vec<Finding> {
    let mut costs: Vec<(&str, Vec<(&str, f64)>)> = Vec::new();
    for (with, arm) in plan.arms.iter().enumerate() {
        let Some((RunSetting::Companion(companion), others)) = arm.settings.split_last() else {
            continue;
        };
        let is_without = |without: &&super::ArmPlan| {
            without.settings == others
                && without.workload == arm.workload
                && without.place == arm.place
        };
        let Some(without) = plan.arms.iter().position(|other| is_without(&other)) else {
            continue;
        };
        let (with, without) = (&record.arms[with], &record.arms[without]);
        let Some(ratio) = typical_ratio(with, without) else {
            continue;
        };
        let name = companion.name.as_str();
        match costs.iter_mut().find(|(other, _)| *other == name) {
            Some((_, arms)) => arms.push((without.name.as_str(), ratio)),
            None => costs.push((name, vec![(without.name.as_str(), ratio)])),
        }
    }
    let findings = costs.into_iter().map(|(name, arms)| {
        let each = arms.iter().map(|(arm, ratio)| {
            let change = record.metric.effect(*ratio, None, None).text;
            format!("{arm} {change}")
        });
        let each: Vec<String> = each.collect();
        let sentence = format!("Beside {name}: {} (typical run).", each.join(", "));
        arms.iter().fold(
            Finding::new("beside", Severity::Note, sentence, ""),
            |finding, (arm, ratio)| finding.with_evidence(&format!("{arm}, ratio"), *ratio),
        )
    });
    findings.collect()
}

/// Cost of a run with a companion, divided by the cost without, as in contrasts: block by block, by
/// the estimate of Hodges and Lehmann.
fn typical_ratio(with: &Arm, without: &Arm) -> Option<f64> {
    let ratios = with.runs.iter().filter_map(|run| {
        let mut others = without.runs.iter();
        let other = others.find(|other| (other.phase, other.block) == (run.phase, run.block))?;
        Some((run.metric.cost? / other.metric.cost?).ln())
    });
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    (ratios.len() >= MIN_BLOCKS).then(|| hodges_lehmann(&ratios).exp())
}
