//! Writes the record of a search, while it runs and at its end.

use super::choice::DEFAULT;
use super::features::FEATURES;
use super::state::{ERROR, Engine, HEAVY_TAILS, TAIL};
use super::{truth, words};
use crate::compare::workload_record;
use crate::host::host_record;
use crate::launchers;
use pinwise_machine::Output;
use pinwise_placement::Placement;
use pinwise_placement::emit::Tool;
use pinwise_record::{
    CommandRecord, Estimate, FeatureRecord, Header, MetricRecord, ModelJudgement, PredictedArm,
    SearchAnswer, SearchArm, SearchModelRecord, SearchPlanRecord, SearchRecord, SearchVerdict,
    SettingRecord, Stopped, WorkloadRecord, no_verdict_yet, repeat_command,
};
use pinwise_stats::describe::{median, median_interval, quantile};
use pinwise_stats::surrogate::{Belief, interval};
use pinwise_workload::SuccessRule;

/// Confidence of the intervals of an arm's own runs.
const CONFIDENCE: f64 = 0.95;

/// The record so far; `stopped` says why the search ended, if it did.
pub(super) fn write_record(engine: &Engine<'_>, stopped: Option<Stopped>) -> SearchRecord {
    let plan = engine.plan;
    let costs = match stopped {
        Some(_) => truth::true_costs(engine),
        None => vec![None; engine.arms.len()],
    };
    let predictions = list_predictions(engine, &costs);
    let names: Vec<String> = engine.arms.iter().map(|arm| arm.name.clone()).collect();
    let outcome = words::SearchOutcome::from_engine(engine, stopped);
    let best = match outcome.best {
        Some(DEFAULT) | None => outcome.best,
        best => engine.faster_elsewhere().or(best),
    };
    let mut record = SearchRecord {
        header: Header {
            findings: words::list_findings(engine),
            ..Header::new(&plan.id, &plan.started, plan.tags.clone())
        },
        argv: plan.argv.clone(),
        again: repeat_command(&plan.argv, "search", plan.seed),
        host: host_record(&*engine.machine, engine.topology),
        command: plan.workload.command.argv().to_vec(),
        workload: WorkloadRecord {
            // Only at the end: reading the file would disturb the runs.
            program: stopped.and_then(|_| engine.machine.program(&plan.workload)),
            ..workload_record(&plan.workload)
        },
        metric: MetricRecord::new(&plan.metric, &plan.unit),
        seed: plan.seed,
        plan: plan_record(engine),
        space: engine.counts.clone(),
        arms: engine.arm_records(),
        runs: engine.runs.clone(),
        progress: list_progress(engine, &costs),
        model: engine
            .belief
            .as_ref()
            .map(|belief| model_record(engine, belief)),
        runs_used: engine.runs_used(),
        zone: engine.zone().exp_m1(),
        confirmation: outcome.confirmation.clone(),
        other_cpus: engine.other_cpus_records(),
        least: outcome.best.and_then(|best| engine.least_record(best)),
        verdict: match stopped {
            Some(_) => outcome.to_verdict(engine),
            None => SearchVerdict {
                kind: SearchAnswer::Undecided,
                sentence: no_verdict_yet("search"),
                headline: None,
                beside: Vec::new(),
                advice: String::new(),
                commands: Vec::new(),
                not_recommended: None,
                condition: words::CONDITION.to_owned(),
            },
        },
        true_regret: best.and_then(|best| truth::regret(&costs, best)),
        truth: truth::compare_with_truth(&costs, &names, &predictions, engine.anchor()),
        best: best.map(|best| names[best].clone()),
        predictions,
        stopped,
        ended: Stopped::words(stopped).to_owned(),
        elapsed_s: engine.elapsed().as_secs_f64(),
    };
    record.conclude();
    add_launchers(engine, &mut record);
    record
}

/// Adds launchers' commands to those of the best and of the least candidate.
fn add_launchers(engine: &Engine<'_>, record: &mut SearchRecord) {
    let commands_for = |name: &String| {
        let index = record.arms.iter().position(|arm| &arm.name == name)?;
        let arm = &record.arms[index];
        let program = |tool: Tool| Some(record.write_program(arm, |word| tool.escape_word(word)));
        let place = &engine.arms[index].place;
        let setting = SettingRecord::default();
        Some(launchers::launcher_commands(
            place,
            &setting,
            engine.topology,
            &program,
        ))
    };
    let best = record.best.as_ref().and_then(commands_for);
    let least = record.least.as_ref().map(|least| &least.arm);
    let least_commands = least.and_then(commands_for);
    let add = |commands: &mut Vec<CommandRecord>, more: Option<Vec<CommandRecord>>| {
        if !commands.is_empty() {
            commands.extend(more.unwrap_or_default());
        }
    };
    add(&mut record.verdict.commands, best);
    if let Some(least) = &mut record.least {
        add(&mut least.commands, least_commands);
    }
}

fn plan_record(engine: &Engine<'_>) -> SearchPlanRecord {
    let plan = engine.plan;
    let threads = plan.default_threads;
    SearchPlanRecord {
        threads: plan.threads.clone(),
        default_threads: (!plan.default_is_counted).then_some(threads),
        counted_threads: plan.default_is_counted.then_some(threads),
        sets_threads: plan.sets_threads,
        within: plan.min_effect,
        least_within: plan.max_slowdown,
        error: ERROR,
        max_runs: plan.max_runs,
        confirmation_pairs: plan.confirmation_pairs,
        budget_s: plan.budget.map(|budget| budget.as_secs_f64()),
        warmup: plan.warmup,
        any_status: plan.workload.success == SuccessRule::AnyStatus,
        output: match &plan.output {
            Output::Discard => "discard".to_owned(),
            Output::Keep => "keep".to_owned(),
            Output::Inherit => "inherit".to_owned(),
            Output::Files(folder) => folder.display().to_string(),
        },
    }
}

/// The record of an arm.
pub(super) fn arm_record(engine: &Engine<'_>, number: usize) -> SearchArm {
    let arm = &engine.arms[number];
    let used = &arm.place.used;
    let is_default = arm.place.placement == Placement::os_default();
    let is_set = !(is_default && engine.plan.default_is_counted);
    SearchArm {
        name: arm.name.clone(),
        label: arm.label(),
        placement: arm.place.placement.to_string(),
        place_id: (!is_default).then(|| engine.space.id(&arm.occupancy)),
        threads: is_set.then_some(arm.threads),
        cpus: arm.place.cpus.to_string(),
        packages: used.packages,
        numa_nodes: used.numa_nodes,
        llcs: used.llcs,
        cores: used.cores,
        cpu_count: used.cpus,
        features: engine.features(number).to_vec(),
        refined_from: engine.refined_from[number].map(|from| engine.arms[from].name.clone()),
        invalid: engine.invalid[number].clone(),
    }
}

/// What the model predicts for every valid arm.
fn list_predictions(engine: &Engine<'_>, costs: &[Option<f64>]) -> Vec<PredictedArm> {
    let Some((belief, standing)) = engine.belief.as_ref().zip(engine.standing.as_ref()) else {
        return Vec::new();
    };
    let widening = HEAVY_TAILS * engine.widening();
    let default = belief.arm(DEFAULT).mean;
    let anchor = engine.anchor();
    // The belief does not have arms that were added after its last update.
    (0..belief.arms())
        .filter(|&arm| engine.invalid[arm].is_none())
        .map(|arm| {
            let expected = belief.arm(arm);
            let (low, high) = cost_interval(belief, arm, anchor, widening);
            let readings = engine.readings_of(arm);
            PredictedArm {
                arm: engine.arms[arm].name.clone(),
                predicted: expected.mean.exp(),
                low: low.exp(),
                high: high.exp(),
                ratio: (expected.mean - default).exp(),
                change: String::new(),
                runs: readings.len(),
                measured: estimate_cost(&readings),
                first_prediction: engine.first_predictions[arm]
                    .map(super::state::FirstPrediction::to_record),
                beats_best: standing.beats[arm],
                truth: costs[arm],
            }
        })
        .collect()
}

/// The 90 % interval of an arm's ln(cost), at the machine's speed during this search, as the arm with
/// most runs (the anchor) shows it: a search of minutes cannot know the speed at another hour.
fn cost_interval(belief: &Belief, arm: usize, anchor: usize, widening: f64) -> (f64, f64) {
    if arm == anchor || anchor >= belief.arms() {
        return interval(&belief.distribution(arm), TAIL, widening);
    }
    let (low, high) = interval(&belief.difference(arm, anchor), TAIL, widening);
    let level = belief.arm(anchor).mean;
    (level + low, level + high)
}

/// The median cost of an arm's own runs, from their ln(cost).
fn estimate_cost(readings: &[f64]) -> Option<Estimate> {
    if readings.is_empty() {
        return None;
    }
    let costs: Vec<f64> = readings.iter().map(|y| y.exp()).collect();
    let interval = median_interval(&costs, CONFIDENCE);
    Some(Estimate {
        value: quantile(&costs, 0.5),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    })
}

/// The progress so far, with the true regret if it is known.
fn list_progress(engine: &Engine<'_>, costs: &[Option<f64>]) -> Vec<pinwise_record::ProgressPoint> {
    let points = engine.progress.iter().cloned();
    points
        .map(|mut point| {
            let leader = engine.arms.iter().position(|arm| arm.name == point.leader);
            point.true_regret = leader.and_then(|leader| truth::regret(costs, leader));
            point
        })
        .collect()
}

fn model_record(engine: &Engine<'_>, belief: &Belief) -> SearchModelRecord {
    let features = FEATURES.iter().enumerate().map(|(number, feature)| {
        let effect = belief.effect(number);
        FeatureRecord {
            name: feature.name.to_owned(),
            meaning: feature.meaning.to_owned(),
            effect: effect.mean,
            sd: effect.sd,
            change: None,
            is_clear: false,
        }
    });
    let predictions = engine.first_predictions.iter().flatten();
    let errors: Vec<f64> = predictions.map(|f| (f.mean - f.y).exp_m1().abs()).collect();
    let (explained, own) = (belief.explained_sd(), belief.own_sd());
    SearchModelRecord {
        features: features.collect(),
        noise_sd: belief.noise_sd(),
        block_sd: belief.block_sd(),
        explained_sd: explained,
        unexplained_sd: own,
        inflation: engine.widening(),
        prediction_error: (errors.len() >= 3).then(|| median(&errors)).flatten(),
        judgement: judge_model(explained, own),
    }
}

/// How good predictions are: the standard deviation that features leave unexplained (`own`), compared
/// with the one that they explain.
fn judge_model(explained: f64, own: f64) -> ModelJudgement {
    if own <= 0.25 * explained || own < 0.01 {
        ModelJudgement::Fits
    } else if own <= explained {
        ModelJudgement::Misfits
    } else {
        ModelJudgement::Useless
    }
}
