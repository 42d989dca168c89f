//! Turns a contrast of the statistics into its record.

use super::parts;
use super::results::{self, Results};
use pinwise_record::{
    ComponentRecord, ContrastRecord, ContrastVerdict, EffectRecord, JudgedRecord, LoadLevelRecord,
    LoadLevelsRecord, SplitRecord, TotalsRecord,
};
use pinwise_stats::beside;
use pinwise_stats::caveats::{LoadLevel, LoadLevels, Other, Split};
use pinwise_stats::confirm::{Contrast, Decision, Look};
use pinwise_stats::paired::Interval;
use pinwise_stats::verdict::{self, Basis, Setting};

/// The record of an arm against the baseline, without the verdict on a limit.
pub(super) fn to_record(
    contrast: &Contrast,
    look: &Look,
    setting: &Setting<'_>,
    results: &Results,
    columns: &[usize],
) -> ContrastRecord {
    // Columns of dropped arms follow those of the arms still in.
    let dropped_index = contrast.arm.checked_sub(results.columns.len());
    let dropped = dropped_index.and_then(|index| results.dropped.get(index));
    let blocks = dropped.map_or(look.blocks, |dropped| dropped.blocks);
    let basis = Basis {
        blocks,
        is_dropped: blocks < look.blocks,
    };
    let is_undecided = contrast.decision == Decision::Undecided && !contrast.caveats.withholds();
    let can_go_on = is_undecided && !basis.is_dropped && contrast.interval.half_width().is_finite();
    let more = can_go_on.then(|| verdict::estimate_time_needed(contrast, setting).as_secs_f64());
    let arm = &results.arms[columns[contrast.arm]];
    let baseline = &results.arms[columns[setting.baseline]];
    let totals = match dropped {
        Some(dropped) => dropped.totals,
        None => results::compare_totals(&results.data, contrast.arm, setting.baseline),
    };
    let mut parts = parts::compare_parts(contrast, &arm.runs, &baseline.runs);
    let mut sentence = verdict::describe_contrast(contrast, basis, setting);
    if let Some(cpu) = results.cpu_contrast() {
        let part = parts.cpu_time.insert(component_record(cpu));
        part.decides = beside::decides(contrast, cpu);
        if part.decides {
            sentence = format!("{} ({basis}).", beside::describe(contrast, cpu, setting));
        }
    }
    ContrastRecord {
        arm: setting.names[contrast.arm].clone(),
        baseline: setting.names[setting.baseline].clone(),
        ratio: contrast.estimate.exp(),
        low: exp_if_finite(contrast.interval.low),
        high: exp_if_finite(contrast.interval.high),
        confidence: contrast.confidence,
        p_adjusted: contrast.p_adjusted,
        verdict: verdict_of(contrast.decision),
        effect: EffectRecord::default(),
        beside: None,
        dropped_after: basis.is_dropped.then_some(blocks),
        sentence,
        more_time_s: more,
        cpu_time: parts.cpu_time,
        wall_per_cpu_time: parts.wall_per_cpu_time,
        ready_per_cpu_time: parts.ready_per_cpu_time,
        wall_per_ready_time: parts.wall_per_ready_time,
        totals: totals.map(|t| TotalsRecord {
            mean_ratio: t.mean_ratio,
            p90_ratio: t.p90_ratio,
            mean: String::new(),
            p90: String::new(),
        }),
        limit: None,
        others: contrast.caveats.others.iter().map(record_other).collect(),
        depends_on_load: contrast.caveats.depends_on_load(),
        depends_on_tail: contrast.caveats.depends_on_tail(),
        depends_on_order: contrast.caveats.depends_on_order(),
        depends_on_time: contrast.caveats.depends_on_time(),
        by_load: contrast.caveats.load.map(split_record),
        load_levels: contrast.caveats.by_load.map(load_levels_record),
        by_order: contrast.caveats.order.map(split_record),
        by_time: contrast.caveats.time.map(split_record),
        spread_ratio: None,
        spread_low: None,
        spread_high: None,
        spread_p_adjusted: None,
    }
}

pub(super) const fn verdict_of(decision: Decision) -> ContrastVerdict {
    match decision {
        Decision::Faster => ContrastVerdict::Faster,
        Decision::Slower => ContrastVerdict::Slower,
        Decision::Same => ContrastVerdict::Same,
        Decision::Undecided => ContrastVerdict::Undecided,
    }
}

fn component_record(cpu: &Contrast) -> ComponentRecord {
    let Interval { low, high } = cpu.interval;
    ComponentRecord::new(cpu.estimate.exp(), exp_if_finite(low), exp_if_finite(high))
}

fn record_other(other: &Other) -> JudgedRecord {
    JudgedRecord {
        judge: other.judge.to_string(),
        ratio: other.estimate.exp(),
        low: exp_if_finite(other.interval.low),
        high: exp_if_finite(other.interval.high),
        effect: EffectRecord::default(),
    }
}

fn split_record(split: Split) -> SplitRecord {
    SplitRecord {
        first: split.first.exp(),
        second: split.second.exp(),
    }
}

fn load_levels_record(levels: LoadLevels) -> LoadLevelsRecord {
    let level = |level: LoadLevel| LoadLevelRecord {
        foreign_cpus: level.load,
        ratio: level.difference.exp(),
        change: String::new(),
    };
    LoadLevelsRecord {
        light: level(levels.light),
        medium: levels.medium.map(level),
        heavy: level(levels.heavy),
    }
}

/// `exp(ln)`; `None` if `ln` is infinite.
pub(super) fn exp_if_finite(ln: f64) -> Option<f64> {
    ln.is_finite().then(|| ln.exp())
}
