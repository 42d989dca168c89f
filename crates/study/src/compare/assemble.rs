//! Writes the record: before the first run from the plan, after the last one from the engine's
//! results.

use std::collections::{BTreeMap, BTreeSet};

use super::advice;
use super::answer::Answer;
use super::companions;
use super::contrast;
use super::exits;
use super::findings;
use super::limit;
use super::outcome::ArmState;
use super::parts;
use super::plan::{ArmPlan, ComparePlan};
use super::recommendation;
use super::results::Results;
use super::rivals;
use super::steadiness;
use super::throttling;
use super::timed_out;
use super::timing;
use crate::host::host_record;
use pinwise_machine::{Host, RunSetting};
use pinwise_placement::{Kind, Placement, Wish};
use pinwise_record::{
    Arm, CompanionRecord, Comparison, ContrastRecord, Estimate, Header, MetricRecord,
    NotRecommended, Phase, PlacementKind, PlacementRecord, PlanRecord, SettingRecord, Spread,
    Stopped, ThreadTime, VerdictKind, VerdictRecord, WorkloadRecord, no_verdict_yet,
    repeat_command,
};
use pinwise_stats::confirm::{Contrast, Decision, Look};
use pinwise_stats::describe::{describe, median_interval};
use pinwise_stats::verdict::{self, ComparisonOutcome, Setting};
use pinwise_topology::Topology;
use pinwise_workload::{Better, Workload};

const CONDITION: &str = "Conditional on this boot, this binary and this load.";

/// The record before the first run.
pub(super) fn open_record(
    plan: &ComparePlan,
    machine: &dyn Host,
    topology: &Topology,
) -> Comparison {
    Comparison {
        header: Header::new(&plan.id, &plan.started, plan.tags.clone()),
        study: plan.study.clone(),
        argv: plan.argv.clone(),
        again: repeat_command(&plan.argv, plan.study.as_str(), plan.seed),
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
            guarantee: None,
            steadiness: None,
            beside: None,
        },
        stopped: None,
        ended: Stopped::words(None).to_owned(),
        blocks: 0,
        elapsed_s: 0.0,
        service: plan.service.clone(),
        joint: None,
        companions: Vec::new(),
        companion_effects: Vec::new(),
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
    let records = arms.iter().map(|arm| {
        let workload = &arm.workload;
        let file = (&workload.folder, workload.command.program());
        let program = programs
            .entry(file)
            .or_insert_with(|| machine.program(workload));
        arm_record(arm, program.clone())
    });
    records.collect()
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
            kind: placement_kind(&place.placement),
            memory: memory.map(|m| m.policy.into()),
            memory_nodes: memory.map(|m| m.nodes.clone()).unwrap_or_default(),
            packages: place.used.packages,
            numa_nodes: place.used.numa_nodes,
            llcs: place.used.llcs,
            cores: place.used.cores,
        },
        setting: setting_record(&arm.settings),
        cpus: place.cpus.to_string(),
        same_as: arm.same_as.clone(),
        other_runs: Vec::new(),
        runs: Vec::new(),
        estimate: None,
        spread: None,
        threads: None,
        eliminated: false,
        invalid: None,
        timed_out: None,
        standing: String::new(),
        trace: None,
    }
}

fn setting_record(settings: &[RunSetting]) -> SettingRecord {
    let mut record = SettingRecord::default();
    for setting in settings {
        match setting {
            RunSetting::Group(group) => {
                record.limit = group.limit.map(Into::into);
                record.is_exclusive = group.cpus.is_some();
                record.is_isolated = group.is_isolated;
            }
            RunSetting::Companion(companion) => record.beside.push(CompanionRecord {
                name: companion.name.clone(),
                command: companion.command.argv().to_vec(),
            }),
            RunSetting::Policy(policy) => record.policy = Some(policy.to_string()),
            RunSetting::Nice(nice) => record.nice = Some(*nice),
            RunSetting::CoreScheduling => record.has_core_scheduling = true,
            // Settings of the host, not of the arm: a finding describes them.
            RunSetting::Offline(_) | RunSetting::Interrupts(_) => {}
        }
    }
    record
}

const fn placement_kind(placement: &Placement) -> PlacementKind {
    match (&placement.wish, placement.kind) {
        (_, Kind::Bound) => PlacementKind::Bound,
        (Wish::OsDefault, Kind::Confined) => PlacementKind::OsDefault,
        (_, Kind::Confined) => PlacementKind::Confined,
    }
}

/// What a command is and how it is run, as records describe it.
pub(crate) fn workload_record(workload: &Workload) -> WorkloadRecord {
    WorkloadRecord {
        input: workload.input.as_ref().map(|p| p.display().to_string()),
        environment: workload.environment.clone(),
        prepare: workload.prepare.as_ref().map(ToString::to_string),
        conclude: workload.conclude.as_ref().map(ToString::to_string),
        timeout_s: workload.timeout.map(|t| t.as_secs_f64()),
        recipe: workload.recipe.clone(),
        verify: workload.verify.as_ref().map(ToString::to_string),
        expect: workload.expect.as_ref().map(ToString::to_string),
        program: None,
    }
}

/// Completes the record.
pub(super) fn complete_record(
    record: &mut Comparison,
    plan: &ComparePlan,
    topology: &Topology,
    results: Results,
) {
    record.stopped = Some(results.stopped);
    record.blocks = results.data.blocks();
    record.elapsed_s = results.elapsed.as_secs_f64();
    record.plan.warmup_blocks = results.warmup_blocks;
    record.plan.screened_arms = results.screened;
    for (arm, state) in record.arms.iter_mut().zip(&results.arms) {
        fill_arm(arm, state);
    }
    timed_out::bound_late_arms(record, plan, &results);
    let dropped = results.dropped.iter().map(|dropped| dropped.arm);
    let columns: Vec<usize> = results.columns.iter().copied().chain(dropped).collect();
    let names: Vec<String> = columns
        .iter()
        .map(|&arm| plan.arms[arm].name.clone())
        .collect();
    let figure = plan.metric.figure_name();
    let setting = Setting {
        names: &names,
        baseline: results
            .columns
            .iter()
            .position(|&arm| arm == plan.baseline)
            .unwrap_or(0),
        delta: plan.tuning.min_effect.ln_1p(),
        words: plan.metric.words(),
        is_rate: plan.metric.better() == Better::Higher,
        judge: plan.tuning.judge,
        figure: figure.as_deref(),
        resolution: results.look.as_ref().and_then(|look| look.resolution),
        least: results
            .question
            .least_blocks(rivals::pair_columns(plan, &columns).pairs.len()),
        spent: results.confirmation_time,
    };
    match &results.look {
        Some(look) if results.stopped != Stopped::Failed => {
            let look = add_dropped_arms(look, &results, setting.baseline);
            let mut seen = BTreeSet::new();
            // A second contrast of an arm is with the arm without its companion.
            let of_arms = look.contrasts.iter().filter(|c| seen.insert(c.arm));
            record.contrasts = of_arms
                .map(|c| {
                    let setting = Setting {
                        baseline: c.baseline,
                        ..setting
                    };
                    let cpu = results.cpu_contrast();
                    ContrastRecord {
                        limit: limit::judge_limit(c, cpu, &record.metric, plan, &setting),
                        ..contrast::to_record(c, &look, &setting, &results, &columns)
                    }
                })
                .collect();
            let place = |name: &str| plan.arms.iter().position(|arm| arm.name == name);
            record.contrasts.sort_by_key(|c| place(&c.arm));
            let cpu = results.cpu_contrast();
            write_verdict(record, plan, topology, &look, cpu, &setting, &columns);
            steadiness::compare_steadiness(record, plan, &results.data, &setting);
        }
        _ => exits::conclude_without_look(record, results.stopped),
    }
    record.ended = record.ending();
    timed_out::conclude_late_arms(record, plan, topology, results.stopped);
    if plan.is_timing {
        timing::conclude_timing(record);
    }
    exits::withhold_failed(record);
    record.verdict.condition = describe_condition(record);
    record.companions = companions::judge_costs_to_companions(record, plan, &results);
    record.findings = findings::list_findings(record, plan, topology, &results);
    record.conclude();
}

/// What the verdict depends on.
fn describe_condition(record: &Comparison) -> String {
    let runs = record.arms.iter().flat_map(|arm| &arm.runs);
    let loaded: BTreeSet<&str> = runs.filter_map(|run| run.sched_ext.as_deref()).collect();
    if loaded.is_empty() {
        return CONDITION.to_owned();
    }
    let names: Vec<&str> = loaded.into_iter().collect();
    format!(
        "Conditional on this boot, this binary, this load and the sched_ext scheduler {}.",
        names.join(", ")
    )
}

fn fill_arm(arm: &mut Arm, state: &ArmState) {
    arm.runs.clone_from(&state.runs);
    arm.other_runs.clone_from(&state.other_runs);
    arm.eliminated = state.eliminated;
    arm.invalid.clone_from(&state.invalid);
    // Screening runs do not count: arms that were selected by them look better in them than they
    // are.
    let confirmed = state.runs.iter().filter(|r| r.phase == Phase::Confirmation);
    arm.threads = ThreadTime::from_runs(confirmed.clone());
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
fn add_dropped_arms(look: &Look, results: &Results, baseline: usize) -> Look {
    let mut look = look.clone();
    for (dropped, column) in results.dropped.iter().zip(results.columns.len()..) {
        look.contrasts.push(Contrast {
            arm: column,
            baseline,
            ..dropped.contrast.clone()
        });
    }
    look
}

fn write_verdict(
    record: &mut Comparison,
    plan: &ComparePlan,
    topology: &Topology,
    look: &Look,
    cpu: Option<&Contrast>,
    setting: &Setting<'_>,
    columns: &[usize],
) {
    let placebo = columns.iter().position(|&arm| Some(arm) == plan.placebo);
    let look_at_choices = remove_placebo(look, placebo, setting.baseline);
    let answer = Answer::new(plan, &look_at_choices, setting, columns);
    let (choice, setting) = (&answer.asked().look, &answer.asked().setting);
    let cpu = cpu.filter(|_| record.is_decided_by_cpu_time());
    let outcome = cpu.map_or_else(
        || answer.outcome(),
        |cpu| judge_by_cpu_time(cpu, setting.baseline),
    );
    let best = find_best_column(outcome, setting).map(|column| columns[column]);
    let (best, roomier) = recommendation::choose_arm(record, best);
    record.companion_effects = answer.record_changes(&record.metric);
    record.best = best.map(|arm| plan.arms[arm].name.clone());
    let withheld = recommendation::withhold_recommendation(record, best);
    let is_small = recommendation::is_small_gain(outcome, cpu, choice, setting.delta);
    let is_recommended =
        withheld.is_none() && !is_small && !advice::leaves_waiting_open(record, outcome);
    let sentence = match cpu {
        Some(_) => record.contrasts[0].sentence.clone(),
        None => answer.describe(is_recommended),
    };
    let sentence = sentence + &describe_circumstances(record, look, roomier);
    let is_open = outcome == ComparisonOutcome::Undecided;
    let limit_conclusion = is_open
        .then(|| limit::conclude_on_limit(record, plan, choice, setting))
        .flatten();
    let (not_recommended, advice) = match withheld {
        Some((reason, sentence)) => (Some(reason), Some(sentence)),
        None if is_small => {
            let sentence = advice::describe_small_change(plan);
            (Some(NotRecommended::SmallGain), Some(sentence))
        }
        None if answer.is_split => (None, Some(advice::BY_COMPANION.to_owned())),
        None => (
            None,
            advice::write_advice(record, plan, outcome, best, choice, setting),
        ),
    };
    let (mut sentence, advice) = limit_conclusion
        .map_or((sentence, advice), |(sentence, advice)| {
            (sentence, Some(advice))
        });
    // A limit concerns the metric that was requested.
    if is_open
        && plan.tuning.limit.is_none()
        && let Some(cpu_time_sentence) = advice::describe_cpu_time(record)
    {
        sentence = format!("{sentence} {cpu_time_sentence}");
    }
    let more = match outcome {
        ComparisonOutcome::Undecided => advice::command_that_decides(record, plan, choice, setting),
        ComparisonOutcome::LeaveAlone => advice::command_with_placements(plan),
        _ => None,
    };
    let commands = match (&advice, best) {
        (None, Some(arm)) => advice::list_commands(record, arm, &plan.arms[arm].place, topology),
        _ => more.into_iter().collect(),
    };
    record.verdict = VerdictRecord {
        kind: verdict_kind(outcome),
        sentence,
        headline: None,
        advice: advice.unwrap_or_default(),
        commands,
        not_recommended,
        condition: CONDITION.to_owned(),
        guarantee: Some(verdict::describe_guarantee(look, plan.tuning.alpha)),
        steadiness: None,
        beside: None,
    };
}

/// Sentences beside the verdict, each after a space.
fn describe_circumstances(record: &Comparison, look: &Look, roomier: Option<usize>) -> String {
    let roomier = recommendation::describe_roomier(record, roomier);
    let slowdown = companions::describe_slowdown(record).unwrap_or_default();
    let longer_wait = parts::describe_longer_wait(record);
    let idle_limits = throttling::describe_idle_limits(record);
    roomier + &slowdown + &longer_wait + &describe_screening(record, look) + &idle_limits
}

/// The outcome if CPU time decides.
fn judge_by_cpu_time(cpu: &Contrast, baseline: usize) -> ComparisonOutcome {
    match cpu.decision {
        Decision::Faster => ComparisonOutcome::Best(cpu.arm),
        Decision::Same => ComparisonOutcome::Same,
        Decision::Slower | Decision::Undecided => ComparisonOutcome::Best(baseline),
    }
}

const fn find_best_column(outcome: ComparisonOutcome, setting: &Setting<'_>) -> Option<usize> {
    match outcome {
        ComparisonOutcome::Best(column) => Some(column),
        ComparisonOutcome::LeaveAlone => Some(setting.baseline),
        ComparisonOutcome::Same | ComparisonOutcome::Undecided => None,
    }
}

/// Appended to the verdict: how many arms were screened; empty without screening.
fn describe_screening(record: &Comparison, look: &Look) -> String {
    if record.plan.screened_arms == 0 {
        return String::new();
    }
    let dropped = record.arms.iter().filter(|arm| arm.eliminated).count();
    let finalists = match look.contrasts.len() {
        1 => "1 finalist was".to_owned(),
        finalists => format!("{finalists} finalists were"),
    };
    format!(" {dropped} arms were eliminated in screening; {finalists} measured again.")
}

const fn verdict_kind(outcome: ComparisonOutcome) -> VerdictKind {
    match outcome {
        ComparisonOutcome::Best(_) => VerdictKind::Best,
        ComparisonOutcome::Same => VerdictKind::Same,
        ComparisonOutcome::LeaveAlone => VerdictKind::LeaveAlone,
        ComparisonOutcome::Undecided => VerdictKind::Undecided,
    }
}

/// The look without the placebo, which checks the method and cannot be chosen.
fn remove_placebo(look: &Look, placebo: Option<usize>, baseline: usize) -> Look {
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
