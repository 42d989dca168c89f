//! Puts the record together: at the start from the plan, at the end from what
//! the engine found.

use std::collections::BTreeMap;

use super::advice;
use super::findings;
use super::outcome::ArmState;
use super::parts;
use super::plan::{ArmPlan, ComparePlan};
use super::recommendation;
use super::results::{self, Results};
use super::steadiness;
use crate::host::host_record;
use crate::launchers;
use pinwise_machine::Host;
use pinwise_placement::emit::Tool;
use pinwise_placement::{Kind, Placement, Realised, Wish};
use pinwise_record::{
    Arm, COMPARISON_SCHEMA, CommandRecord, Comparison, ContrastRecord, ContrastVerdict,
    EffectRecord, Estimate, JudgedRecord, LoadLevelRecord, LoadLevelsRecord, MetricRecord, Phase,
    PlacementKind, PlacementRecord, PlanRecord, SplitRecord, Spread, Stopped, TotalsRecord,
    VerdictKind, VerdictRecord, WorkloadRecord, again, no_verdict_yet, words,
};
use pinwise_stats::caveats::{LoadLevel, LoadLevels, Other, Split};
use pinwise_stats::confirm::{Contrast, Decision, Look};
use pinwise_stats::describe::{describe, median_interval};
use pinwise_stats::verdict::{self, Basis, ComparisonOutcome, Setting};
use pinwise_topology::Topology;
use pinwise_workload::{Better, Workload};

const CONDITION: &str = "Conditional on this boot, this binary and this load.";

/// The record before the first run.
pub(super) fn opening(plan: &ComparePlan, machine: &dyn Host, topology: &Topology) -> Comparison {
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        id: plan.id.clone(),
        study: plan.study.clone(),
        pinwise_version: env!("CARGO_PKG_VERSION").to_owned(),
        argv: plan.argv.clone(),
        again: again(&plan.argv, plan.study.as_str(), plan.seed),
        started: plan.started.clone(),
        host: host_record(machine, topology),
        seed: plan.seed,
        metric: MetricRecord::new(&plan.metric, &plan.unit),
        plan: plan_record(plan),
        baseline: plan.arms[plan.baseline].name.clone(),
        arms: arm_records(&plan.arms, machine),
        contrasts: Vec::new(),
        best: None,
        verdict: VerdictRecord {
            kind: VerdictKind::Undecided,
            sentence: no_verdict_yet("experiment"),
            headline: None,
            advice: String::new(),
            commands: Vec::new(),
            not_recommended: None,
            condition: CONDITION.to_owned(),
            steadiness: None,
            beside: None,
        },
        findings: Vec::new(),
        stopped: None,
        ended: Stopped::words(None).to_owned(),
        blocks: 0,
        elapsed_s: 0.0,
        tags: plan.tags.clone(),
        service: plan.service.clone(),
    }
}

fn plan_record(plan: &ComparePlan) -> PlanRecord {
    let tuning = &plan.tuning;
    PlanRecord {
        alpha: tuning.alpha,
        min_effect: tuning.min_effect,
        precision: tuning.precision,
        budget_s: tuning.budget.map(|budget| budget.as_secs_f64()),
        max_runs: tuning.max_runs,
        open_ended: tuning.is_open_ended,
        warmup_blocks: tuning.warmup.unwrap_or(0),
        judge: tuning.judge.to_string(),
        score: tuning.score.into(),
        screened_arms: 0,
    }
}

/// Each program's file is read once, whatever arms it has.
fn arm_records(arms: &[ArmPlan], machine: &dyn Host) -> Vec<Arm> {
    let mut programs = BTreeMap::new();
    let each = arms.iter().map(|arm| {
        let workload = &arm.workload;
        let file = (&workload.folder, workload.command.program());
        let program = programs
            .entry(file)
            .or_insert_with(|| machine.program(workload));
        arm_record(arm, program.clone())
    });
    each.collect()
}

fn arm_record(arm: &ArmPlan, program: Option<String>) -> Arm {
    let place = &arm.place;
    let memory = place.memory.as_ref();
    Arm {
        name: arm.name.clone(),
        command: arm.workload.command.argv().to_vec(),
        workload: WorkloadRecord {
            program,
            ..workload_record(&arm.workload)
        },
        placement: PlacementRecord {
            name: place.placement.to_string(),
            kind: kind(&place.placement),
            memory: memory.map(|m| m.policy.into()),
            memory_nodes: memory.map(|m| m.nodes.clone()).unwrap_or_default(),
            packages: place.used.packages,
            numa_nodes: place.used.numa_nodes,
            llcs: place.used.llcs,
            cores: place.used.cores,
        },
        cpus: place.cpus.to_string(),
        same_as: arm.same_as.clone(),
        other_runs: Vec::new(),
        runs: Vec::new(),
        estimate: None,
        spread: None,
        eliminated: false,
        invalid: None,
        standing: String::new(),
        trace: None,
    }
}

const fn kind(placement: &Placement) -> PlacementKind {
    match (&placement.wish, placement.kind) {
        (_, Kind::Bound) => PlacementKind::Bound,
        (Wish::OsDefault, Kind::Confined) => PlacementKind::OsDefault,
        (_, Kind::Confined) => PlacementKind::Confined,
    }
}

/// What a command is and how it is run, as it stands in records.
pub(crate) fn workload_record(workload: &Workload) -> WorkloadRecord {
    WorkloadRecord {
        input: workload.input.as_ref().map(|p| p.display().to_string()),
        environment: workload.environment.clone(),
        prepare: workload.prepare.as_ref().map(ToString::to_string),
        cleanup: workload.cleanup.as_ref().map(ToString::to_string),
        timeout_s: workload.timeout.map(|t| t.as_secs_f64()),
        recipe: workload.recipe.clone(),
        verify: workload.verify.as_ref().map(ToString::to_string),
        expect: workload.expect.as_ref().map(ToString::to_string),
        program: None,
    }
}

/// Completes the record.
pub(super) fn close(
    record: &mut Comparison,
    plan: &ComparePlan,
    topology: &Topology,
    results: Results,
) {
    record.stopped = Some(results.stopped);
    record.ended = record.ending();
    record.blocks = results.data.blocks();
    record.elapsed_s = results.elapsed.as_secs_f64();
    record.plan.warmup_blocks = results.warmup_blocks;
    record.plan.screened_arms = results.screened;
    for (arm, state) in record.arms.iter_mut().zip(&results.arms) {
        fill_arm(arm, state);
    }
    let dropped = results.dropped.iter().map(|dropped| dropped.arm);
    let columns: Vec<usize> = results.columns.iter().copied().chain(dropped).collect();
    let names: Vec<String> = columns
        .iter()
        .map(|&arm| plan.arms[arm].name.clone())
        .collect();
    let setting = Setting {
        names: &names,
        baseline: results
            .columns
            .iter()
            .position(|&arm| arm == plan.baseline)
            .unwrap_or(0),
        delta: plan.tuning.min_effect.ln_1p(),
        words: words(&plan.metric),
        is_rate: plan.metric.better() == Better::Higher,
        judge: plan.tuning.judge,
        resolution: results.look.as_ref().and_then(|look| look.resolution),
        least: plan.least_blocks(columns.len()),
        spent: results.confirmation_time,
    };
    match &results.look {
        Some(look) if results.stopped != Stopped::Failed => {
            let look = with_dropped(look, &results);
            record.contrasts = look
                .contrasts
                .iter()
                .map(|c| contrast_record(c, &look, &setting, &results, &columns))
                .collect();
            let place = |name: &str| plan.arms.iter().position(|arm| arm.name == name);
            record.contrasts.sort_by_key(|c| place(&c.arm));
            conclude(record, plan, topology, &look, &setting, &columns);
            steadiness::add(record, plan, &results.data, &setting);
        }
        _ => record.verdict.sentence = no_look_sentence(record, results.stopped),
    }
    record.findings = findings::all(record, plan, &results);
    record.conclude();
}

fn fill_arm(arm: &mut Arm, state: &ArmState) {
    arm.runs.clone_from(&state.runs);
    arm.other_runs.clone_from(&state.other_runs);
    arm.eliminated = state.eliminated;
    arm.invalid.clone_from(&state.invalid);
    // A screening estimate is never a result: the arms that were picked look
    // better in it than they are.
    let confirmed = state.runs.iter().filter(|r| r.phase == Phase::Confirmation);
    let values: Vec<f64> = confirmed.filter_map(|r| r.metric.value).collect();
    let described = describe(&values);
    arm.spread = described.filter(|_| values.len() > 1).map(|d| Spread {
        sd: d.sd,
        iqr: d.iqr,
        cv: d.cv,
        mean: d.mean,
        min: d.min,
        max: d.max,
    });
    arm.estimate = described.map(|d| {
        let interval = median_interval(&values, 0.95);
        Estimate {
            value: d.median,
            low: interval.map(|i| i.0),
            high: interval.map(|i| i.1),
        }
    });
}

/// The look with the arms that were dropped before it, as further columns.
fn with_dropped(look: &Look, results: &Results) -> Look {
    let mut look = look.clone();
    for (dropped, column) in results.dropped.iter().zip(results.columns.len()..) {
        look.contrasts.push(Contrast {
            arm: column,
            ..dropped.contrast.clone()
        });
    }
    look
}

fn contrast_record(
    contrast: &Contrast,
    look: &Look,
    setting: &Setting<'_>,
    results: &Results,
    columns: &[usize],
) -> ContrastRecord {
    let later = contrast.arm.checked_sub(results.columns.len());
    let dropped = later.and_then(|at| results.dropped.get(at));
    let blocks = dropped.map_or(look.blocks, |dropped| dropped.blocks);
    let basis = Basis {
        blocks,
        is_dropped: blocks < look.blocks,
    };
    let is_open = contrast.decision == Decision::Undecided && !contrast.caveats.withholds();
    let can_go_on = is_open && !basis.is_dropped && contrast.interval.half_width().is_finite();
    let more = can_go_on.then(|| verdict::time_needed(contrast, setting).as_secs_f64());
    let arm = &results.arms[columns[contrast.arm]];
    let baseline = &results.arms[columns[setting.baseline]];
    let totals = match dropped {
        Some(dropped) => dropped.totals,
        None => results::totals(&results.data, contrast.arm, setting.baseline),
    };
    let parts = parts::of(contrast, &arm.runs, &baseline.runs);
    let [cpu_time, wall_per_cpu_time] = parts.map_or([None, None], |parts| parts.map(Some));
    ContrastRecord {
        arm: setting.names[contrast.arm].clone(),
        baseline: setting.names[setting.baseline].clone(),
        ratio: contrast.estimate.exp(),
        low: finite(contrast.interval.low.exp(), contrast.interval.low),
        high: finite(contrast.interval.high.exp(), contrast.interval.high),
        confidence: contrast.confidence,
        p_adjusted: contrast.p_adjusted,
        verdict: match contrast.decision {
            Decision::Faster => ContrastVerdict::Faster,
            Decision::Slower => ContrastVerdict::Slower,
            Decision::Same => ContrastVerdict::Same,
            Decision::Undecided => ContrastVerdict::Undecided,
        },
        effect: EffectRecord::default(),
        beside: None,
        dropped_after: basis.is_dropped.then_some(blocks),
        sentence: verdict::contrast_sentence(contrast, basis, setting),
        more_time_s: more,
        cpu_time,
        wall_per_cpu_time,
        totals: totals.map(|t| TotalsRecord {
            mean_ratio: t.mean_ratio,
            p90_ratio: t.p90_ratio,
            mean: String::new(),
            p90: String::new(),
        }),
        others: contrast.caveats.others.iter().map(judged_record).collect(),
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

fn judged_record(other: &Other) -> JudgedRecord {
    JudgedRecord {
        judge: other.judge.to_string(),
        ratio: other.estimate.exp(),
        low: finite(other.interval.low.exp(), other.interval.low),
        high: finite(other.interval.high.exp(), other.interval.high),
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

fn finite(value: f64, check: f64) -> Option<f64> {
    check.is_finite().then_some(value)
}

fn conclude(
    record: &mut Comparison,
    plan: &ComparePlan,
    topology: &Topology,
    look: &Look,
    setting: &Setting<'_>,
    columns: &[usize],
) {
    let placebo = columns.iter().position(|&arm| Some(arm) == plan.placebo);
    let choice = without_placebo(look, placebo, setting.baseline);
    let is_default = plan.arms[plan.baseline].is_default;
    let outcome = verdict::outcome(&choice, setting.delta, is_default);
    let mut sentence = verdict::overall_sentence(outcome, &choice, setting);
    if record.plan.screened_arms > 0 {
        let dropped = record.arms.iter().filter(|arm| arm.eliminated).count();
        sentence.push_str(&format!(
            " {} confirmed on fresh blocks; {dropped} arms had been eliminated in screening.",
            match look.contrasts.len() {
                1 => "1 finalist was".to_owned(),
                finalists => format!("{finalists} finalists were"),
            }
        ));
    }
    let best = match outcome {
        ComparisonOutcome::Best(column) => Some(columns[column]),
        ComparisonOutcome::LeaveAlone => Some(plan.baseline),
        ComparisonOutcome::Same | ComparisonOutcome::Undecided => None,
    };
    record.best = best.map(|arm| plan.arms[arm].name.clone());
    let (not_recommended, advice) = match recommendation::withheld(record, best) {
        Some((reason, sentence)) => (Some(reason), Some(sentence)),
        None => (
            None,
            advice::of(record, plan, outcome, best, (&choice, setting)),
        ),
    };
    let commands = match (&advice, best) {
        (None, Some(arm)) => commands(record, arm, &plan.arms[arm].place, topology),
        _ => Vec::new(),
    };
    record.verdict = VerdictRecord {
        kind: match outcome {
            ComparisonOutcome::Best(_) => VerdictKind::Best,
            ComparisonOutcome::Same => VerdictKind::Same,
            ComparisonOutcome::LeaveAlone => VerdictKind::LeaveAlone,
            ComparisonOutcome::Undecided => VerdictKind::Undecided,
        },
        sentence,
        headline: None,
        advice: advice.unwrap_or_default(),
        commands,
        not_recommended,
        condition: CONDITION.to_owned(),
        steadiness: None,
        beside: None,
    };
}

/// What applies an arm, the plainest first.
fn commands(
    record: &Comparison,
    arm: usize,
    place: &Realised,
    topology: &Topology,
) -> Vec<CommandRecord> {
    let arm = &record.arms[arm];
    let mut commands = record.commands_of(arm);
    let program = |tool: Tool| record.program_of(arm, |word| tool.given(word));
    commands.extend(launchers::commands(place, topology, &program));
    commands
}

/// What there is to choose from: a placebo proves the method, it is no choice.
fn without_placebo(look: &Look, placebo: Option<usize>, baseline: usize) -> Look {
    let mut choice = look.clone();
    choice.contrasts.retain(|c| Some(c.arm) != placebo);
    if choice.contrasts.is_empty() {
        return look.clone();
    }
    if Some(choice.winner) == placebo {
        choice.winner = baseline;
    }
    choice
}

fn no_look_sentence(record: &Comparison, stopped: Stopped) -> String {
    match stopped {
        Stopped::Failed => failed_sentence(record),
        Stopped::Interrupted => "Undecided: interrupted before there was enough data.".to_owned(),
        _ => "Undecided: no whole block could be kept.".to_owned(),
    }
}

/// The baseline's reason first: without it nothing can be compared.
fn failed_sentence(record: &Comparison) -> String {
    let failed: Vec<&Arm> = record.arms.iter().filter(|a| a.invalid.is_some()).collect();
    let baseline = failed.iter().find(|arm| arm.name == record.baseline);
    let cause = baseline.or(failed.first());
    let reason = cause.and_then(|arm| arm.invalid.as_deref()).unwrap_or("?");
    let who = cause.map_or("", |arm| arm.name.as_str());
    // The command's own last words are quoted as they are.
    let stop = if reason.contains('\n') { "" } else { "." };
    if failed.len() == record.arms.len() {
        return format!("No arm could be measured: {reason}{stop}");
    }
    format!("No verdict, since {who} could not be measured: {reason}{stop}")
}
