//! Sentences on traces: on each arm, and on two arms beside the verdict.
//!
//! One run of each arm was traced, so small differences are not reported.

use pinwise_record::{
    Arm, Comparison, ContrastRecord, LowerBound, MigrationCounts, SharingCauses, TraceFigures,
};

/// Smaller shares are not reported.
const MIN_PERCENT: f64 = 1.0;
/// Two arms differ in a share if it differs by this many percentage points.
const MIN_POINTS: f64 = 5.0;
/// Two arms differ in migrations if one has at least this many times as many …
const MIN_FACTOR: u64 = 2;
/// … and at least this many more.
const MIN_MOVES: u64 = 10;

/// What the scheduler did with an arm, as a full sentence.
pub(super) fn describe_arm(name: &str, figures: &TraceFigures) -> String {
    let mut clauses = vec![format!(
        "{name} {}",
        describe_moves(&figures.totals.migrations)
    )];
    clauses.extend(describe_sharing(figures));
    clauses.extend(describe_queueing(figures));
    format!("{}.", clauses.join("; "))
}

/// `migrated 412 times, 20 of them across LLCs, 3 across packages`.
fn describe_moves(moves: &MigrationCounts) -> String {
    let [_, _, far @ ..] = moves.list_crossings();
    let mut far: Vec<String> = far
        .iter()
        .filter(|(times, _)| *times > 0)
        .map(|(times, how)| format!("{times} {how}"))
        .collect();
    if let Some(first) = far.first_mut() {
        let (times, how) = first.split_once(' ').unwrap_or((first, ""));
        *first = format!("{times} of them {how}");
    }
    let times = match moves.total() {
        0 => "never migrated".to_owned(),
        1 => "migrated once".to_owned(),
        2 => "migrated twice".to_owned(),
        total => format!("migrated {total} times"),
    };
    let parts: Vec<String> = std::iter::once(times).chain(far).collect();
    parts.join(", ")
}

/// `31 % of its CPU time was beside a busy SMT sibling while a core idled, by
/// the scheduler`.
fn describe_sharing(figures: &TraceFigures) -> Option<String> {
    let sharing = &figures.avoidable_smt_sharing;
    let shared = sharing
        .shared_percent
        .filter(|&share| share >= MIN_PERCENT)?;
    let avoidable = sharing.percent.filter(|&share| share >= MIN_PERCENT);
    Some(match (avoidable, sharing.percent) {
        (Some(share), _) => format!(
            "{share:.0} % of its CPU time was beside a busy SMT sibling while a core idled{}",
            sharing.by.as_ref().map_or("", name_culprit)
        ),
        (None, Some(_)) => format!(
            "{shared:.0} % of its CPU time was beside a busy SMT sibling, while no core idled"
        ),
        (None, None) => format!("{shared:.0} % of its CPU time was beside a busy SMT sibling"),
    })
}

/// The cause of more than half of the sharing, as a clause; empty if there is none.
fn name_culprit(by: &SharingCauses) -> &'static str {
    let half = 0.5 * (by.scheduler_s + by.mask_s + by.other_processes_s);
    if by.scheduler_s > half {
        ", by the scheduler"
    } else if by.mask_s > half {
        ", because of its affinity mask"
    } else if by.other_processes_s > half {
        ", beside other programs"
    } else {
        ""
    }
}

/// Time queued as a share of the threads' time, per cent.
fn queued_percent(figures: &TraceFigures) -> Option<f64> {
    let waited_s = figures.waits.total_s?;
    Some(100.0 * figures.share_of_threads(waited_s))
}

fn describe_queueing(figures: &TraceFigures) -> Option<String> {
    let share = queued_percent(figures).filter(|&share| share >= MIN_PERCENT)?;
    let idle = figures.idle_while_waiting.percent;
    let idle = idle.filter(|&share| share >= MIN_PERCENT);
    let idle = idle.map_or_else(String::new, |idle| {
        format!(", {idle:.0} % of it while a CPU idled")
    });
    Some(format!(
        "its threads were queued {}{share:.0} % of their time{idle}",
        figures.bound(LowerBound::Queued).words()
    ))
}

/// How the traces of two arms differ: the best arm and the baseline, or the two that differ most.
/// `None` if fewer than two were traced.
pub(super) fn compare_traces(record: &Comparison) -> Option<String> {
    let contrast = record
        .contrasts
        .iter()
        .filter(|contrast| is_traced(record, contrast))
        .max_by(|a, b| priority(record, a).total_cmp(&priority(record, b)))?;
    let (one, other) = (
        find_traced(record, &contrast.baseline)?,
        find_traced(record, &contrast.arm)?,
    );
    let differences: Vec<String> = [
        differ_in_moves(one, other),
        differ_in_share(
            one,
            other,
            avoidable_percent,
            " of {}'s CPU time was beside a busy SMT sibling while a core idled",
        ),
        differ_in_share(
            one,
            other,
            queued_percent,
            " of their time threads of {} were queued",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(if differences.is_empty() {
        format!(
            "In one traced run each, the scheduler did much the same with {} and {}.",
            one.0, other.0
        )
    } else {
        format!("In one traced run each, {}.", differences.join("; "))
    })
}

/// An arm's name and the figures of its trace.
type TracedArm<'a> = (&'a str, &'a TraceFigures);

fn find_traced<'a>(record: &'a Comparison, name: &str) -> Option<TracedArm<'a>> {
    let arm: &Arm = record.arms.iter().find(|arm| arm.name == name)?;
    Some((&arm.name, &arm.trace.as_ref()?.figures))
}

fn is_traced(record: &Comparison, contrast: &ContrastRecord) -> bool {
    find_traced(record, &contrast.arm).is_some()
        && find_traced(record, &contrast.baseline).is_some()
}

/// Orders contrasts: the best arm first, then decided ones, then by the size of the difference.
fn priority(record: &Comparison, contrast: &ContrastRecord) -> f64 {
    let is_best = record.best.as_ref() == Some(&contrast.arm);
    let size = contrast.ratio.ln().abs().min(100.0);
    size + if is_best { 2000.0 } else { 0.0 } + if contrast.is_decided() { 1000.0 } else { 0.0 }
}

fn differ_in_moves(one: TracedArm<'_>, other: TracedArm<'_>) -> Option<String> {
    let moves = |traced: TracedArm<'_>| traced.1.totals.migrations;
    let (few, many) = match (moves(one).total(), moves(other).total()) {
        (a, b) if a < b => (a, b),
        (a, b) => (b, a),
    };
    let differs = many - few >= MIN_MOVES && many >= MIN_FACTOR * few;
    differs.then(|| {
        let first = format!("{} {}", one.0, describe_moves(&moves(one)));
        let second = match moves(other).total() {
            0 => format!("{} never did", other.0),
            _ => format!("{} {}", other.0, describe_moves(&moves(other))),
        };
        format!("{first}, and {second}")
    })
}

fn avoidable_percent(figures: &TraceFigures) -> Option<f64> {
    figures.avoidable_smt_sharing.percent
}

/// `31 % of A's CPU time …, with B 2 %`; `None` if the shares differ little.
fn differ_in_share(
    one: TracedArm<'_>,
    other: TracedArm<'_>,
    share: impl Fn(&TraceFigures) -> Option<f64>,
    words: &str,
) -> Option<String> {
    let (a, b) = (share(one.1)?, share(other.1)?);
    ((a - b).abs() >= MIN_POINTS).then(|| {
        let words = words.replace("{}", one.0);
        format!("{a:.0} %{words}, with {} {b:.0} %", other.0)
    })
}
