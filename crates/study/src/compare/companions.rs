//! What the arms cost companions that have figures of their own, and what companions cost the arms
//! that the answer does not name, as findings.

use super::answer;
use super::plan::{ArmPlan, ComparePlan};
use super::results::Results;
use super::rivals;
use pinwise_format::{percent, quantity};
use pinwise_record::{
    AloneRecord, Arm, CompanionCostRecord, CompanionEffectRecord, CompanionFigureRecord,
    Comparison, ContrastRecord, ContrastVerdict, Direction, Finding, MetricRecord, Phase, Severity,
};
use pinwise_stats::describe::median;
use pinwise_stats::paired::Paired;

/// With fewer blocks no cost is reported.
const MIN_BLOCKS: usize = 3;
/// A part of a slowdown from which on it is most of it.
const MOSTLY: f64 = 2.0 / 3.0;
/// Error rate of the interval of a companion's cost.
const ALPHA: f64 = 0.05;

/// What each arm costs the companions whose figures were read.
pub(super) fn judge_costs_to_companions(
    record: &Comparison,
    plan: &ComparePlan,
    results: &Results,
) -> Vec<CompanionFigureRecord> {
    let companions = plan.companions.iter().zip(&results.alone);
    let figures = companions.map(|(companion, alone)| {
        let metric = MetricRecord::new(&companion.metric, "");
        let is_beside = |arm: &ArmPlan| {
            arm.companion()
                .is_some_and(|other| other.name == companion.name)
        };
        let all: Vec<&ArmPlan> = plan.arms.iter().collect();
        let arms = plan.arms.iter().zip(&record.arms);
        let costs = arms
            .filter(|(arm, _)| is_beside(arm))
            .filter_map(|(arm, with)| {
                let name =
                    rivals::without(&all, arm).map_or(&with.name, |at| &record.arms[at].name);
                cost_to_companion(name, with, alone, &metric)
            });
        CompanionFigureRecord {
            name: companion.name.clone(),
            costs: costs.collect(),
            metric,
            alone: alone.clone(),
        }
    });
    figures.collect()
}

/// How much worse the companion's figure is beside this arm than alone, over the blocks that have
/// both; `None` if there are fewer than [`MIN_BLOCKS`].
fn cost_to_companion(
    name: &str,
    arm: &Arm,
    alone: &[AloneRecord],
    metric: &MetricRecord,
) -> Option<CompanionCostRecord> {
    let confirmed = arm
        .runs
        .iter()
        .filter(|run| run.phase == Phase::Confirmation);
    let ratios = confirmed.filter_map(|run| {
        let alone = alone.iter().find(|alone| alone.block == run.block)?;
        Some((run.companion?.cost? / alone.metric.cost?).ln())
    });
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    if ratios.len() < MIN_BLOCKS {
        return None;
    }
    let pairs = Paired::without_weights(ratios).redescending();
    let ratio = pairs.estimate().exp();
    let ends = pairs.interval(ALPHA);
    let [low, high] = [ends.low, ends.high].map(|end| Some(end.exp()).filter(|_| end.is_finite()));
    Some(CompanionCostRecord {
        arm: name.to_owned(),
        ratio,
        effect: metric.effect(ratio, low, high),
    })
}

/// Does a program beside a companion mostly wait for CPUs, or compute more slowly? As a sentence, if
/// it is slower there, and CPU time is known.
pub(super) fn describe_slowdown(record: &Comparison) -> Option<String> {
    let setting_of = |name: &str| {
        let arm = record.arms.iter().find(|arm| arm.name == name);
        arm.map(|arm| &arm.setting.beside)
    };
    let is_of_companion = |contrast: &&ContrastRecord| {
        let beside = [&contrast.arm, &contrast.baseline].map(|name| setting_of(name));
        matches!(beside, [Some(with), Some(without)] if !with.is_empty() && without.is_empty())
    };
    let slower = |contrast: &&ContrastRecord| contrast.verdict == ContrastVerdict::Slower;
    let mut contrasts = record.contrasts.iter().filter(is_of_companion);
    let contrast = contrasts.find(slower).filter(|_| record.metric.is_wall())?;
    let cpu = contrast.cpu_time.as_ref().filter(|cpu| cpu.low.is_some())?;
    let change = cpu.effect.describe_with_interval();
    // Of several arms it is not clear which one is meant.
    let it = match record.contrasts.iter().filter(is_of_companion).count() {
        1 => "It",
        _ => &contrast.baseline,
    };
    let part = cpu.ratio.ln() / contrast.ratio.ln();
    // A change of CPU time that may be none explains nothing.
    let is_open = cpu.low.is_some_and(|low| low <= 1.0);
    Some(match (part > MOSTLY, part < 1.0 - MOSTLY) {
        (true, _) | (false, false) if is_open => return None,
        (true, _) => {
            format!(" {it} mostly computes more slowly (caches, memory, clock): CPU time {change}.")
        }
        (_, true) => format!(" {it} mostly waits for a CPU: CPU time {change}."),
        _ => format!(" {it} waits for a CPU, and computes more slowly: CPU time {change}."),
    })
}

/// Sentences on what companions change for arms that the answer does not name, and on what the
/// program costs companions.
pub(super) fn describe_companions(record: &Comparison) -> Vec<Finding> {
    let mut unnamed: Vec<&CompanionEffectRecord> = Vec::new();
    let effects = &record.companion_effects;
    for effect in effects {
        let of_same = effects.iter().filter(|e| e.companion == effect.companion);
        if of_same.count() > answer::NAMED {
            unnamed.push(effect);
        }
    }
    let texts = unnamed.iter().map(|beside| {
        let CompanionEffectRecord { companion, arm, .. } = beside;
        format!(
            "{arm} beside {companion} {}",
            beside.effect.describe_with_interval()
        )
    });
    let texts: Vec<String> = texts.collect();
    let all = (!texts.is_empty()).then(|| {
        let sentence = format!("Against the same arm alone: {}.", texts.join("; "));
        Finding::new("beside", Severity::Note, sentence, "")
    });
    let costs_to_companions = record
        .companions
        .iter()
        .filter_map(describe_cost_to_companion);
    all.into_iter().chain(costs_to_companions).collect()
}

/// What the program costs a companion, in a sentence.
fn describe_cost_to_companion(companion: &CompanionFigureRecord) -> Option<Finding> {
    let is_rate = companion.metric.better == Direction::Higher;
    // A rate that falls and a time that grows are both a cost.
    let cost = |percent: f64| if is_rate { -percent } else { percent } / 100.0;
    let costs = companion.costs.iter().enumerate().map(|(number, beside)| {
        let effect = &beside.effect;
        let ends = effect
            .low
            .zip(effect.high)
            .map_or(String::new(), |(low, high)| {
                let (low, high) = (cost(low).min(cost(high)), cost(low).max(cost(high)));
                format!(
                    " ({} to {})",
                    percent(low).trim_end_matches(" %"),
                    percent(high)
                )
            });
        let typical = format!("{}{ends}", percent(cost(effect.value)));
        match (number, is_rate) {
            (0, true) => format!("{} costs {} {typical}", beside.arm, companion.name),
            (0, false) => format!("{} adds {typical}", beside.arm),
            _ => format!("{} {typical}", beside.arm),
        }
    });
    let costs: Vec<String> = costs.collect();
    let alone = companion
        .alone
        .iter()
        .filter_map(|alone| alone.metric.value);
    let alone = median(&alone.collect::<Vec<_>>())?;
    let alone = quantity(alone, &companion.metric.unit);
    let whole = match is_rate {
        true => format!("of what it reaches alone ({alone})"),
        false => format!("to what {} has alone ({alone})", companion.name),
    };
    let sentence = format!("{} {whole}.", costs.join(", "));
    let finding = Finding::new("cost_to_companion", Severity::Note, sentence, "");
    (!costs.is_empty()).then(|| {
        companion.costs.iter().fold(finding, |finding, beside| {
            finding.with_evidence(&format!("{}, ratio", beside.arm), beside.ratio)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{CompanionRecord, ComponentRecord, SettingRecord};

    #[test]
    fn what_a_companion_costs_is_split_into_waiting_and_computing() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        record.metric = MetricRecord::new(&"wall".parse().unwrap(), "");
        let names = [&record.baseline, &record.contrasts[0].arm].map(String::clone);
        record.contrasts.truncate(1);
        let mut describe = |wall: f64, cpu: [f64; 3]| {
            let contrast = &mut record.contrasts[0];
            (contrast.verdict, contrast.ratio) = (ContrastVerdict::Slower, wall);
            contrast.baseline.clone_from(&names[0]);
            let [ratio, low, high] = cpu;
            contrast.cpu_time = Some(ComponentRecord {
                ratio,
                low: Some(low),
                high: Some(high),
                effect: record.metric.effect(ratio, Some(low), Some(high)),
                decides: false,
            });
            for arm in record
                .arms
                .iter_mut()
                .filter(|arm| names.contains(&arm.name))
            {
                arm.setting = SettingRecord::default();
                if arm.name != names[0] {
                    arm.setting.beside.push(CompanionRecord {
                        name: "hog".to_owned(),
                        command: vec!["./hog".to_owned()],
                    });
                }
            }
            describe_slowdown(&record)
        };
        let waits = describe(2.27, [1.12, 1.07, 1.17]).unwrap();
        assert_eq!(
            waits,
            " It mostly waits for a CPU: CPU time +12.0 % (+7.0 to +17.0 %)."
        );
        let computes = describe(1.5, [1.45, 1.4, 1.5]).unwrap();
        assert!(
            computes.contains("mostly computes more slowly"),
            "{computes}"
        );
        let both = describe(1.5, [1.2, 1.1, 1.3]).unwrap();
        assert!(both.contains("waits for a CPU, and computes"), "{both}");
        // Perhaps no change of CPU time.
        assert_eq!(describe(1.03, [1.013, 0.99, 1.03]), None);
    }
}
