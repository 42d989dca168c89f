//! The result of the confirmation: figures of each program, and the verdict.

use super::engine::Found;
use super::places;
use super::rounds::Rounds;
use super::{JointSearch, MIN_ROUNDS};
use pinwise_format::{count, join_words};
use pinwise_placement::space::Space;
use pinwise_record::{
    CommandRecord, Comparison, ContrastVerdict, JointProgramRecord, JointRecord, JointTrialRecord,
    LimitState, MetricRecord, Stopped, VerdictKind, repeat_command, replace_effort,
};
use pinwise_stats::describe::{median, median_interval};
use pinwise_topology::Topology;
use pinwise_workload::joint::JointProgram;

/// Confidence of the intervals of medians by which limits are judged.
const CONFIDENCE: f64 = 0.95;

/// Completes the record of the confirmation.
pub(super) fn complete_record(
    record: &mut Comparison,
    search: &JointSearch,
    found: &Found,
    rounds: &Rounds<'_>,
    topology: &Topology,
) {
    record.again = repeat_command(&search.argv, "search", search.seed);
    "joint cost".clone_into(&mut record.metric.name);
    "the joint cost".clone_into(&mut record.metric.label);
    let joint = joint_record(record, search, found, rounds, topology);
    if record.stopped != Some(Stopped::Failed) && record.blocks > 0 {
        write_verdict(record, &joint, search);
    } else if record.stopped == Some(Stopped::Interrupted) {
        // The interruption explains why there are no blocks.
        record
            .findings
            .retain(|finding| finding.check != "too_few_blocks");
        record.verdict.sentence = format!(
            "Undecided: interrupted after {} of the search. {} cost least so far; no new round \
             confirms it.",
            count(joint.rounds, "round"),
            record.arms[1].name,
        );
    }
    record.joint = Some(joint);
    // Its headline is of the joint cost.
    record.conclude();
}

fn joint_record(
    record: &Comparison,
    search: &JointSearch,
    found: &Found,
    rounds: &Rounds<'_>,
    topology: &Topology,
) -> JointRecord {
    let space = Space::from_topology(topology);
    let place = &found.places[found.best];
    let programs = search.programs.iter().zip(search.weights()).enumerate();
    let figures = |arm: usize, program: usize| -> Vec<f64> {
        let confirmed = rounds.confirmed_figures(&record.arms[arm].command);
        confirmed.map(|figures| figures[program]).collect()
    };
    let programs = programs.map(|(number, (program, weight))| {
        let [default, placed] = [figures(0, number), figures(1, number)];
        let metric = MetricRecord::new(&program.metric, &program.unit);
        let [default_value, placed_value] = [median(&default), median(&placed)];
        let ratio = default_value
            .zip(placed_value)
            .map(|(default, placed)| program.metric.cost(placed) / program.metric.cost(default));
        JointProgramRecord {
            name: program.name.clone(),
            command: program.command.argv().to_vec(),
            load: program.load.as_ref().map(|load| load.argv().to_vec()),
            weight,
            limit: program.limit,
            placement: places::describe_cpus(&place[number], topology, &space).to_string(),
            cpus: place[number].to_string(),
            change: ratio.map_or(String::new(), |r| metric.effect(r, None, None).text),
            metric,
            default_value,
            placed_value,
            default_limit: judge_limit(program, &default),
            placed_limit: judge_limit(program, &placed),
        }
    });
    let tried = found.tried.iter().enumerate();
    let tried = tried.filter(|(_, figures)| !figures.is_empty());
    JointRecord {
        programs: programs.collect(),
        plans: found.places.len(),
        rounds: found.rounds,
        tried: tried
            .map(|(arm, figures)| JointTrialRecord {
                cpus: found.places[arm].iter().map(ToString::to_string).collect(),
                figures: figures.clone(),
            })
            .collect(),
    }
}

fn judge_limit(program: &JointProgram, figures: &[f64]) -> Option<LimitState> {
    program.limit?;
    let ends = median_interval(figures, CONFIDENCE);
    let held = ends.map(|(low, high)| [low, high].map(|end| program.is_within_limit(end)));
    Some(match held {
        Some([true, true]) => LimitState::Held,
        Some([false, false]) => LimitState::Broken,
        _ => LimitState::Open,
    })
}

/// The worst of the limits' states; held if there is no limit.
fn worst_limit_state(states: impl Iterator<Item = Option<LimitState>>) -> LimitState {
    let rank = |state: &LimitState| match state {
        LimitState::Broken => 0,
        LimitState::Held => 2,
        _ => 1,
    };
    states
        .flatten()
        .min_by_key(rank)
        .unwrap_or(LimitState::Held)
}

/// The kind of the verdict and its sentence.
fn describe_answer(record: &Comparison, joint: &JointRecord) -> (VerdictKind, String) {
    let programs = joint.programs.iter();
    let default = worst_limit_state(
        programs
            .clone()
            .map(|program| program.default_limit.clone()),
    );
    let placed = worst_limit_state(programs.map(|program| program.placed_limit.clone()));
    let contrast = record.contrasts.first();
    let verdict = contrast.map(|contrast| contrast.verdict.clone());
    let effect = contrast.map_or(String::new(), |contrast| {
        match contrast.effect.interval.as_str() {
            "" => format!("{}, without an interval yet", contrast.effect.text),
            interval => format!("{} ({interval})", contrast.effect.text),
        }
    });
    let is_better = contrast.is_some_and(|contrast| contrast.ratio < 1.0);
    let pairs = format!("{} of new runs", count(record.blocks, "pair"));
    let plan = &record.arms[1].name;
    let (kind, sentence) = match (default, placed, verdict) {
        (LimitState::Broken | LimitState::Open, LimitState::Held, _) => (
            VerdictKind::Best,
            format!("{plan} keeps every limit: joint cost {effect} in {pairs}."),
        ),
        (LimitState::Held | LimitState::Open, LimitState::Broken, _) => (
            VerdictKind::LeaveAlone,
            "Nothing that was tried keeps the limits and beats os-default.".to_owned(),
        ),
        (LimitState::Broken, LimitState::Broken, Some(ContrastVerdict::Faster)) => (
            VerdictKind::Best,
            format!(
                "No plan keeps every limit; the nearest is {plan}: joint cost {effect} in {pairs}."
            ),
        ),
        (_, _, Some(ContrastVerdict::Faster)) => (
            VerdictKind::Best,
            format!("{plan} is best: joint cost {effect} in {pairs}."),
        ),
        (_, _, Some(ContrastVerdict::Same | ContrastVerdict::Slower)) => (
            VerdictKind::LeaveAlone,
            format!(
                "Leave all programs as they are: the best plan tried is {plan}, joint cost {effect} \
                 in {pairs}."
            ),
        ),
        _ => (
            VerdictKind::Undecided,
            match is_better {
                true => {
                    format!("Undecided: {plan} leads, joint cost {effect} in {pairs}.")
                }
                false => format!(
                    "Undecided: nothing beats os-default so far; the nearest is {plan}, joint cost \
                     {effect} in {pairs}."
                ),
            },
        ),
    };
    let open = match kind {
        VerdictKind::Undecided => name_open_limits(joint),
        _ => String::new(),
    };
    (kind, format!("{sentence}{open}"))
}

pub(super) fn write_verdict(record: &mut Comparison, joint: &JointRecord, search: &JointSearch) {
    let (kind, sentence) = describe_answer(record, joint);
    let is_best = kind == VerdictKind::Best;
    let id = &record.header.id;
    let apply = |tool: &str, what: &str| CommandRecord {
        what: what.to_owned(),
        line: format!("pinwise apply {id} --as {tool}"),
    };
    let (advice, commands) = match (&kind, record.verdict.not_recommended.is_some()) {
        (_, true) => (record.verdict.advice.clone(), Vec::new()),
        (VerdictKind::Best, _) => (
            String::new(),
            vec![
                apply("systemd", "with systemd"),
                apply("kubernetes", "with Kubernetes"),
            ],
        ),
        (VerdictKind::LeaveAlone, _) => ("Change nothing.".to_owned(), Vec::new()),
        _ if record.stopped == Some(Stopped::Budget) => (
            "The time ended it: give it a longer --budget, or none.".to_owned(),
            Vec::new(),
        ),
        _ => match command_with_more_pairs(record, joint, search) {
            Some(command) => (String::new(), vec![command]),
            None => (
                "More rounds are unlikely to decide it: change nothing.".to_owned(),
                Vec::new(),
            ),
        },
    };
    record.best = match kind {
        VerdictKind::Best => Some(record.arms[1].name.clone()),
        VerdictKind::LeaveAlone => Some(record.baseline.clone()),
        _ => None,
    };
    let verdict = &mut record.verdict;
    (verdict.kind, verdict.sentence) = (kind, sentence);
    (verdict.advice, verdict.commands) = (advice, commands);
    if !is_best {
        verdict.not_recommended = None;
    }
}

/// The programs whose limit is neither kept nor broken for sure, which may be why nothing is
/// decided.
fn name_open_limits(joint: &JointRecord) -> String {
    let programs = joint.programs.iter();
    let open = programs.filter(|program| program.placed_limit == Some(LimitState::Open));
    let open: Vec<&str> = open.map(|program| program.name.as_str()).collect();
    match open.as_slice() {
        [] => String::new(),
        names => format!(
            " Whether the {} of {} {} kept is open.",
            if names.len() == 1 { "limit" } else { "limits" },
            join_words(names),
            if names.len() == 1 { "is" } else { "are" }
        ),
    }
}

/// Many more pairs than there were are not advised.
const MAX_MORE: f64 = 10.0;

/// The command with as many pairs as show an effect of this size, if it is one; widths shrink with
/// the root of their number.
fn command_with_more_pairs(
    record: &Comparison,
    joint: &JointRecord,
    search: &JointSearch,
) -> Option<CommandRecord> {
    let contrast = record.contrasts.first()?;
    let (low, high) = contrast.low.zip(contrast.high)?;
    let factor = (0.5 * (high / low).ln() / contrast.ratio.ln()).powi(2);
    let pairs = (record.blocks as f64 * factor * MARGIN).ceil();
    if !(1.0..=MAX_MORE).contains(&factor) {
        return None;
    }
    let options = [
        ("--confirm", format!("{pairs:.0}")),
        (
            "--max-runs",
            format!("{:.0}", joint.rounds.max(MIN_ROUNDS) as f64 + 2.0 * pairs),
        ),
    ];
    Some(CommandRecord {
        what: "with more pairs".to_owned(),
        line: replace_effort(&search.argv, "search", &options)?,
    })
}

/// Pairs beyond those that the estimate asks for, as it may be too large.
const MARGIN: f64 = 1.5;
