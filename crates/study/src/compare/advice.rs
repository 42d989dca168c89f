//! What to do after a comparison whose placements are not withheld.

use super::plan::ComparePlan;
use super::{caveats, limit, parts};
use crate::launchers;
use pinwise_format::percent;
use pinwise_placement::emit::Tool;
use pinwise_placement::{Realised, Wish};
use pinwise_record::{
    CommandRecord, Comparison, ComponentRecord, ContrastRecord, Severity, Stopped, replace_effort,
};
use pinwise_stats::confirm::Look;
use pinwise_stats::verdict::{self, ComparisonOutcome, Setting};
use pinwise_topology::Topology;

/// If the answers beside several companions differ.
pub(super) const BY_COMPANION: &str =
    "The answer depends on the companion: choose by the one that the program will run beside.";

/// What to do, as a sentence; `None` if the best arm's commands say it.
pub(super) fn write_advice(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    caveat(record, outcome, look, setting).or_else(|| {
        let effort = plan.effort(record.stopped.as_ref());
        let prices = verdict::prices(look, setting, effort);
        to_do(record, plan, outcome, best, prices)
    })
}

/// More time settles nothing if something else speaks against a verdict.
fn caveat(
    record: &Comparison,
    outcome: ComparisonOutcome,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    verdict::withheld(look, setting).filter(|_| outcome == ComparisonOutcome::Undecided)?;
    Some(caveats::what_decides(record))
}

/// Total number of blocks if `factor` times the effort so far is added.
fn blocks_for(look: &Look, factor: f64) -> f64 {
    (look.blocks as f64 * (1.0 + factor)).ceil()
}

/// What to do by the outcome alone.
pub(super) fn to_do(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    prices: Option<verdict::Prices>,
) -> Option<String> {
    let text = match (outcome, best) {
        (ComparisonOutcome::Best(_), Some(arm)) => {
            let arm = &plan.arms[arm];
            if arm.is_default {
                "Change nothing.".to_owned()
            } else if arm.workload.recipe.is_some()
                && arm.place.placement.wish == Wish::OsDefault
                && arm.place.memory.is_none()
            {
                format!("Choose {}.", arm.name)
            } else {
                return None;
            }
        }
        (ComparisonOutcome::LeaveAlone, _) => "Change nothing.".to_owned(),
        (ComparisonOutcome::Same, _) if leaves_waiting_open(record, outcome) => {
            "Placements also change how long a program waits: judge wall-clock time (--metric wall)."
                .to_owned()
        }
        (ComparisonOutcome::Same, _) => {
            "Choose by other criteria; smaller differences take a smaller --min-effect.".to_owned()
        }
        _ => match prices {
            Some(prices) => {
                let more = match record.stopped {
                    // More time would end for the same reason.
                    Some(Stopped::Precision) if plan.tuning.precision.is_some() => {
                        "a smaller --precision"
                    }
                    ref stopped => plan.more_effort(stopped.as_ref()),
                };
                by_cpu_time(record, &format!("Give it {more}: {}.", prices.text))
            }
            None => by_cpu_time(
                record,
                "A verdict takes more than an hour here. Make the machine quieter (see pinwise doctor), or accept a larger smallest effect (--min-effect).",
            ),
        },
    };
    Some(text)
}

/// Is CPU time alone the same, of arms on different CPUs? How long they take is another question.
pub(super) fn leaves_waiting_open(record: &Comparison, outcome: ComparisonOutcome) -> bool {
    let mut cpus = record.arms.iter().map(|arm| &arm.cpus);
    let first = cpus.next();
    outcome == ComparisonOutcome::Same
        && record.metric.name == "cpu"
        && cpus.any(|others| Some(others) != first)
}

/// `advice` on wall-clock time, after what decides in seconds where only waiting leaves that
/// undecided.
fn by_cpu_time(record: &Comparison, advice: &str) -> String {
    let start = match compared_cpu_time(record) {
        Some(cpu) if cpu.is_same => "If CPU time is what counts, that is the answer.",
        Some(_) => "Judge CPU time, which takes seconds: --metric cpu.",
        None => return advice.to_owned(),
    };
    format!("{start} For wall-clock time: {advice}")
}

/// CPU time of an arm whose wall-clock time only waiting leaves undecided.
struct ComparedCpuTime<'r> {
    contrast: &'r ContrastRecord,
    cpu: &'r ComponentRecord,
    /// Is it the same within the smallest effect?
    is_same: bool,
}

/// `None` if CPU time says nothing, or not of one place.
fn compared_cpu_time(record: &Comparison) -> Option<ComparedCpuTime<'_>> {
    record.contrasts.iter().find_map(|contrast| {
        let found = parts::cpu_time_finding(contrast, record);
        found.filter(|found| found.severity == Severity::Warning)?;
        let cpu = contrast.cpu_time.as_ref()?;
        let delta = record.plan.min_effect;
        let is_same = cpu.low? > 1.0 / (1.0 + delta) && cpu.high? < 1.0 + delta;
        Some(ComparedCpuTime {
            contrast,
            cpu,
            is_same,
        })
    })
}

/// What CPU time says where only waiting leaves wall-clock time undecided, as a sentence; the
/// finding on it explains that. `None` if it says nothing, or not of one place.
pub(super) fn of_cpu_time(record: &Comparison) -> Option<String> {
    let found = compared_cpu_time(record)?;
    let ContrastRecord { arm, baseline, .. } = found.contrast;
    Some(match found.is_same {
        true => format!(
            "CPU time of {arm} and {baseline} is the same within ±{}.",
            percent(record.plan.min_effect)
        ),
        false => format!(
            "CPU time of {arm} differs: {}.",
            found.cpu.effect.describe_with_interval()
        ),
    })
}

/// The command that judges CPU time, which takes seconds where it is known.
fn command_for_cpu_time(plan: &ComparePlan) -> Option<CommandRecord> {
    Some(CommandRecord {
        what: "by CPU time".to_owned(),
        line: replace_effort(&plan.argv, &[("--metric", "cpu".to_owned())])?,
    })
}

/// Factor on top of what a first verdict needs: blocks are not equally long.
pub(super) const ROOM: f64 = 1.1;
/// More than this many times the given effort is not advised: nobody asked for it.
const FAR: f64 = 10.0;

/// The command that decides an undecided comparison: by CPU time if that is known, else with the
/// extra effort that it takes; `None` if effort is not what it lacks, or too much is needed.
pub(super) fn command_that_decides(
    record: &Comparison,
    plan: &ComparePlan,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<CommandRecord> {
    // A limit is of the time that was asked about.
    let is_limited = plan.tuning.limit.is_some();
    match compared_cpu_time(record) {
        // The sentence says it already.
        Some(cpu) if !is_limited && cpu.is_same => return None,
        Some(_) if !is_limited => return command_for_cpu_time(plan),
        _ => {}
    }
    if verdict::withheld(look, setting).is_some() {
        return None;
    }
    let tuning = &plan.tuning;
    let (factor, half_width) = match tuning.limit.filter(|_| !tuning.requires_verdict) {
        Some(limit) => (limit::share_that_decides(look, limit, setting.spent)?, None),
        None => {
            let effort = plan.effort(record.stopped.as_ref());
            let prices = verdict::prices(look, setting, effort)?;
            (prices.factor, prices.half_width)
        }
    };
    let blocks = blocks_for(look, factor);
    let mut needed_s = record.elapsed_s + factor * setting.spent.as_secs_f64();
    if half_width.is_none() && tuning.limit.is_none() {
        // As reported after the first run.
        needed_s *= ROOM;
    }
    let given_s = tuning
        .budget
        .map_or(f64::INFINITY, |budget| budget.as_secs_f64());
    let given_blocks = tuning.max_runs.map_or(f64::INFINITY, |runs| runs as f64);
    let is_precise = record.stopped == Some(Stopped::Precision) && tuning.precision.is_some();
    let has_few = given_blocks < blocks;
    let is_short = given_s < needed_s;
    if needed_s > FAR * given_s || blocks > FAR * given_blocks {
        return None;
    }
    let mut options = Vec::new();
    if let Some(half_width) = half_width.filter(|_| is_precise) {
        let share = percent(half_width.exp_m1()).replace(' ', "");
        options.push(("--precision", share));
    }
    if has_few {
        options.push(("--max-runs", format!("{blocks:.0}")));
    }
    if is_short {
        options.push(("--budget", budget(needed_s)));
    }
    let what = match options.first()?.0 {
        "--precision" => "for a narrower interval",
        "--max-runs" => "with more runs",
        _ => "for longer",
    };
    Some(CommandRecord {
        what: what.to_owned(),
        line: replace_effort(&plan.argv, &options)?,
    })
}

/// What applies an arm, the plainest first.
pub(super) fn commands(
    record: &Comparison,
    arm: usize,
    place: &Realised,
    topology: &Topology,
) -> Vec<CommandRecord> {
    let arm = &record.arms[arm];
    let mut commands = record.commands_of(arm);
    let program = |tool: Tool| record.program_of(arm, |word| tool.escape_word(word));
    commands.extend(launchers::commands(place, &arm.setting, topology, &program));
    if arm.setting.has_group() {
        // Files, not a command that starts it.
        commands.push(CommandRecord {
            what: "for Kubernetes".to_owned(),
            line: format!("pinwise apply {} --as kubernetes", record.id),
        });
    }
    commands
}

/// A time as options take it, rounded up: `44s`, `12m`.
pub(super) fn budget(needed_s: f64) -> String {
    match needed_s <= 90.0 {
        true => format!("{:.0}s", needed_s.ceil()),
        false => format!("{:.0}m", (needed_s / 60.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use pinwise_placement::Placement;
    use pinwise_record::ContrastVerdict;

    use super::*;

    #[test]
    fn an_arm_with_a_cgroup_has_its_pod() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
        let placement: Placement = "compact*2".parse().unwrap();
        let place = placement.realise(&topology).unwrap();
        let last = |record: &Comparison| commands(record, 0, &place, &topology).pop();
        let is_pod = |command: &CommandRecord| command.line.ends_with(" --as kubernetes");
        assert!(!last(&record).is_some_and(|command| is_pod(&command)));
        record.arms[0].setting.is_exclusive = true;
        assert!(last(&record).is_some_and(|command| is_pod(&command)));
    }

    #[test]
    fn cpu_time_is_advised_where_it_is_known() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let cpus = record.arms[0].cpus.clone();
        record
            .arms
            .iter_mut()
            .for_each(|arm| arm.cpus.clone_from(&cpus));
        record.contrasts.truncate(1);
        let contrast = &mut record.contrasts[0];
        contrast.verdict = ContrastVerdict::Undecided;
        (contrast.low, contrast.high) = (Some(0.7), Some(1.4));
        let part = |low, high| Some(ComponentRecord::new(1.0, Some(low), Some(high)));
        contrast.wall_per_cpu_time = part(0.7, 1.4);
        contrast.cpu_time = part(0.9, 1.1);
        assert_eq!(by_cpu_time(&record, "Go on."), "Go on.");
        record.contrasts[0].cpu_time = part(0.995, 1.005);
        let advice = by_cpu_time(&record, "Go on.");
        assert!(advice.starts_with("If CPU time is what counts"), "{advice}");
        let said = of_cpu_time(&record).unwrap();
        assert!(said.ends_with(" is the same within ±1.0 %."), "{said}");
        record.contrasts[0].cpu_time = part(0.95, 0.97);
        let said = of_cpu_time(&record).unwrap();
        assert!(said.contains(" differs: ±0 % ("), "{said}");
        assert!(by_cpu_time(&record, "Go on.").contains("--metric cpu"));
        record.contrasts[0].cpu_time = part(0.995, 1.005);
        record.metric.name = "cpu".to_owned();
        assert_eq!(by_cpu_time(&record, "Go on."), "Go on.");
        assert!(!leaves_waiting_open(&record, ComparisonOutcome::Same));
        record.arms[0].cpus = "0".parse().unwrap();
        assert!(leaves_waiting_open(&record, ComparisonOutcome::Same));
    }
}
