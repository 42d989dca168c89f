//! What to do after a comparison whose recommendation is not withheld.

use super::plan::ComparePlan;
use super::{caveats, limit, load, parts, rivals};
use crate::launchers;
use pinwise_format::{lower_first, percent};
use pinwise_placement::emit::Tool;
use pinwise_placement::{Realised, Wish};
use pinwise_profile::SAMPLES_PER_S;
use pinwise_record::{
    Arm, CommandRecord, Comparison, ComponentRecord, ContrastRecord, RunRecord, Severity, Stopped,
    replace_effort,
};
use pinwise_stats::confirm::Look;
use pinwise_stats::describe::median;
use pinwise_stats::verdict::{self, ComparisonOutcome, Setting};
use pinwise_topology::Topology;

/// If the answers beside several companions differ.
pub(super) const BY_COMPANION: &str =
    "The answer depends on the companion: choose by the one that the program will run beside.";

/// What to do, as a sentence; `None` if the commands that apply the best arm are the advice.
pub(super) fn write_advice(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    advise_on_caveat(record, outcome, look, setting).or_else(|| {
        let effort = plan.effort(record.stopped.as_ref());
        let offer = verdict::offer_more(look, setting, effort);
        advise_on_outcome(record, plan, outcome, best, offer)
    })
}

/// What to do about a certain change of CPU time that is smaller than the smallest effect of interest.
pub(super) fn describe_small_change(plan: &ComparePlan) -> String {
    format!(
        "Choose by other criteria: that is less than the smallest effect of interest, {} (--min-effect).",
        percent(plan.tuning.min_effect)
    )
}

/// What to do if a caveat withholds the verdict, which more time would not settle.
fn advise_on_caveat(
    record: &Comparison,
    outcome: ComparisonOutcome,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    verdict::describe_withheld(look, setting)
        .filter(|_| outcome == ComparisonOutcome::Undecided)?;
    Some(caveats::advise_on_undecided(record))
}

/// Total number of blocks if `factor` times the effort so far is added.
fn blocks_for(look: &Look, factor: f64) -> f64 {
    (look.blocks as f64 * (1.0 + factor)).ceil()
}

/// What to do, given the outcome and the price of more effort if it is undecided.
pub(super) fn advise_on_outcome(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    offer: Option<verdict::Offer>,
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
        (ComparisonOutcome::LeaveAlone, _) if tries_one_arm(plan) => {
            "No other placement was tried beside it: each --place adds one.".to_owned()
        }
        (ComparisonOutcome::LeaveAlone, _) => "Change nothing.".to_owned(),
        (ComparisonOutcome::Same, _) if leaves_waiting_open(record, outcome) => {
            "Placements also change how long a program waits: judge wall-clock time (--metric wall)."
                .to_owned()
        }
        (ComparisonOutcome::Same, _) => {
            "Choose by other criteria; smaller differences take a smaller --min-effect.".to_owned()
        }
        _ => match offer {
            Some(offer) => {
                let more = match record.stopped {
                    // With more time it would stop at the same precision.
                    Some(Stopped::Precision) if plan.tuning.precision.is_some() => {
                        "a smaller --precision"
                    }
                    ref stopped => plan.more_effort(stopped.as_ref()),
                };
                let quieter = match load::is_busy(record) {
                    true => "Wait until others use less of the CPUs, which takes fewer runs; or give it",
                    false => "Give it",
                };
                with_cpu_time_first(record, &format!("{quieter} {more}: {}.", offer.text))
            }
            None => with_cpu_time_first(
                record,
                "A verdict takes more than an hour here. Make the machine quieter (see pinwise doctor), or accept a larger smallest effect (--min-effect).",
            ),
        },
    };
    Some(text)
}

/// Do all arms differ by their companions alone?
pub(super) fn tries_one_arm(plan: &ComparePlan) -> bool {
    let mut pairs = plan.arms.windows(2);
    plan.arms.len() > 1 && pairs.all(|pair| rivals::is_twin(&pair[0], &pair[1]))
}

/// Do arms on different CPUs have the same CPU time, which leaves open how long they wait?
pub(super) fn leaves_waiting_open(record: &Comparison, outcome: ComparisonOutcome) -> bool {
    let mut cpus = record.arms.iter().map(|arm| &arm.cpus);
    let first = cpus.next();
    outcome == ComparisonOutcome::Same
        && record.metric.name == "cpu"
        && cpus.any(|others| Some(others) != first)
}

/// `advice` on wall-clock time. If only waiting leaves that undecided, a sentence on CPU time, which
/// is decided within seconds, comes first.
fn with_cpu_time_first(record: &Comparison, advice: &str) -> String {
    let start = match compared_cpu_time(record) {
        Some(cpu) if cpu.is_same => "If CPU time is what counts, that is the answer.",
        Some(_) => "Judge CPU time, which takes seconds: --metric cpu.",
        None => return advice.to_owned(),
    };
    format!("{start} For wall-clock time: {}", lower_first(advice))
}

/// CPU time of an arm whose wall-clock time is undecided only because of its waiting.
struct ComparedCpuTime<'r> {
    contrast: &'r ContrastRecord,
    cpu: &'r ComponentRecord,
    /// Is it the same within the smallest effect?
    is_same: bool,
}

/// `None` if CPU time is not known or decides nothing, or the arms run in different places.
fn compared_cpu_time(record: &Comparison) -> Option<ComparedCpuTime<'_>> {
    record.contrasts.iter().find_map(|contrast| {
        let found = parts::report_cpu_time(contrast, record);
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

/// What CPU time decides if only waiting leaves wall-clock time undecided, as a sentence; a finding
/// explains it.
pub(super) fn describe_cpu_time(record: &Comparison) -> Option<String> {
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

/// The command that judges CPU time.
fn command_for_cpu_time(plan: &ComparePlan) -> Option<CommandRecord> {
    Some(CommandRecord {
        what: "by CPU time".to_owned(),
        line: replace_effort(&plan.argv, "compare", &[("--metric", "cpu".to_owned())])?,
    })
}

/// The command that tries placements beside a companion, if only one was tried.
pub(super) fn command_with_placements(plan: &ComparePlan) -> Option<CommandRecord> {
    if !tries_one_arm(plan) {
        return None;
    }
    let places = ["os-default", "one-core"].map(|place| ("--place", place.to_owned()));
    Some(CommandRecord {
        what: "to see whether pinning helps".to_owned(),
        line: replace_effort(&plan.argv, "compare", &places)?,
    })
}

/// Factor on the predicted time to a first verdict: blocks are not equally long.
pub(super) const SAFETY_FACTOR: f64 = 1.1;
/// No more than this many times the given effort is advised; of runs, if they take long.
const MAX_EXTRA_EFFORT: f64 = 10.0;
/// Longer than ten minutes is long, seconds.
const LONG_S: f64 = 600.0;

/// The command that decides an undecided comparison: by CPU time if that is known, else with the
/// extra effort that is needed; `None` if effort does not help, or too much is needed.
pub(super) fn command_that_decides(
    record: &Comparison,
    plan: &ComparePlan,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<CommandRecord> {
    // A limit concerns the metric that was requested.
    let is_limited = plan.tuning.limit.is_some();
    match compared_cpu_time(record) {
        // The sentence says it already.
        Some(cpu) if !is_limited && cpu.is_same => return None,
        Some(_) if !is_limited => return command_for_cpu_time(plan),
        _ => {}
    }
    if verdict::describe_withheld(look, setting).is_some() {
        return None;
    }
    let tuning = &plan.tuning;
    let (factor, half_width) = match tuning.limit.filter(|_| !tuning.requires_verdict) {
        Some(limit) => (
            limit::extra_effort_for_all(look, limit, setting.spent)?,
            None,
        ),
        None => {
            let effort = plan.effort(record.stopped.as_ref());
            let offer = verdict::offer_more(look, setting, effort)?;
            (offer.factor, offer.half_width)
        }
    };
    let blocks = blocks_for(look, factor);
    let mut needed_s = record.elapsed_s + factor * setting.spent.as_secs_f64();
    if half_width.is_none() && tuning.limit.is_none() {
        // The same factor as in the warning after the first run.
        needed_s *= SAFETY_FACTOR;
    }
    let given_s = tuning
        .budget
        .map_or(f64::INFINITY, |budget| budget.as_secs_f64());
    let given_blocks = tuning.max_runs.map_or(f64::INFINITY, |runs| runs as f64);
    let is_precise = record.stopped == Some(Stopped::Precision) && tuning.precision.is_some();
    let has_few = given_blocks < blocks;
    let is_short = given_s < needed_s;
    let is_long = needed_s > LONG_S;
    if needed_s > MAX_EXTRA_EFFORT * given_s || is_long && blocks > MAX_EXTRA_EFFORT * given_blocks
    {
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
        options.push(("--budget", format_budget(needed_s)));
    }
    let what = match options.first()?.0 {
        "--precision" => "for a narrower interval",
        "--max-runs" => "with more runs",
        _ => "for longer",
    };
    Some(CommandRecord {
        what: what.to_owned(),
        line: replace_effort(&plan.argv, "compare", &options)?,
    })
}

/// CPU time of a profile, at least and at most, seconds.
const PROFILED_S: [f64; 2] = [3.0, 60.0];
/// The error of the difference of two profiles, at 95 %, is to be this part of it.
const PROFILED_ERROR: f64 = 0.4;
/// A trace sees too little of a shorter run, seconds.
const TRACED_S: f64 = 1.0;

/// The command that shows why one of two programs is faster: where CPU time differs, or what the
/// slower one waits for. `None` unless the programs alone differ; of one program with two options, or
/// of two scripts, no profile tells them apart.
fn command_that_explains(record: &Comparison, best: &Arm) -> Option<CommandRecord> {
    let ([first, second], [contrast]) = (&*record.arms, &*record.contrasts) else {
        return None;
    };
    let (first, second) = match second.name == record.baseline {
        true => (second, first),
        false => (first, second),
    };
    let is_same_elsewhere = first.placement.name == second.placement.name
        && first.cpus == second.cpus
        && first.setting == second.setting
        && first.workload.recipe.is_none();
    let is_time = record.metric.is_wall() || record.metric.is_cpu();
    let is_real = record.service.is_none() && !record.host.simulated;
    if first.command.first() == second.command.first() || !is_same_elsewhere || !is_time || !is_real
    {
        return None;
    }
    let cpu = contrast.cpu_time.as_ref()?;
    let differs = cpu.low? > 1.0 || cpu.high? < 1.0;
    let program = |arm: &Arm| record.write_program(arm, str::to_owned);
    let other = if first.name == best.name {
        second
    } else {
        first
    };
    let ratio = match parts::find_other_mean(contrast, record) {
        _ if differs => cpu.ratio,
        Some(mean) => mean,
        None if record.metric.is_cpu() => contrast.ratio,
        None => {
            let wall_s: Vec<f64> = other.runs.iter().map(|run| run.wall_s).collect();
            let tool = match median(&wall_s)? < TRACED_S {
                true => "strace -f -c -w",
                false => "pinwise trace --",
            };
            return Some(CommandRecord {
                what: "to see what the slower one waits for".to_owned(),
                line: format!("{tool} {}", program(other)?),
            });
        }
    };
    let cpu_s = best.runs.iter().filter_map(RunRecord::cpu_s);
    let cpu_s = median(&cpu_s.collect::<Vec<f64>>())?;
    // Counts of samples vary like Poisson's.
    let samples = 2.0 * (1.96 / (PROFILED_ERROR * ratio.ln())).powi(2);
    let [least_s, most_s] = PROFILED_S;
    let runs = ((samples / f64::from(SAMPLES_PER_S)).clamp(least_s, most_s) / cpu_s).ceil();
    let profile = |arm: &Arm| {
        let program = program(arm)?;
        Some(format!(
            "pinwise profile --runs {runs:.0} -- {program} > /dev/null"
        ))
    };
    Some(CommandRecord {
        what: "to see which functions differ".to_owned(),
        line: format!(
            "{} && {} && pinwise profile diff last~1 last",
            profile(first)?,
            profile(second)?
        ),
    })
}

/// Commands that run an arm without pinwise, the simplest first; before them, the one that explains
/// why it is better.
pub(super) fn list_commands(
    record: &Comparison,
    arm: usize,
    place: &Realised,
    topology: &Topology,
) -> Vec<CommandRecord> {
    let arm = &record.arms[arm];
    let why = command_that_explains(record, arm);
    let mut commands: Vec<CommandRecord> = why.into_iter().collect();
    commands.extend(record.list_apply_commands(arm));
    let program = |tool: Tool| record.write_program(arm, |word| tool.escape_word(word));
    commands.extend(launchers::launcher_commands(
        place,
        &arm.setting,
        topology,
        &program,
    ));
    if arm.setting.has_group() {
        // This one prints files and starts nothing.
        commands.push(CommandRecord {
            what: "for Kubernetes".to_owned(),
            line: format!("pinwise apply {} --as kubernetes", record.id),
        });
    }
    commands
}

/// The value of `--budget` for this many seconds, rounded up: `44s`, `12m`.
pub(super) fn format_budget(needed_s: f64) -> String {
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
    fn the_command_that_explains_depends_on_what_differs() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        record.metric.name = "wall".to_owned();
        record.host.simulated = false;
        record.arms.truncate(2);
        record.contrasts.truncate(1);
        let first = record.arms[0].clone();
        let baseline = usize::from(record.baseline != first.name);
        record.baseline = record.arms[baseline].name.clone();
        for (arm, program) in [(baseline, "base"), (1 - baseline, "head")] {
            let name = record.arms[arm].name.clone();
            record.arms[arm] = Arm {
                name,
                command: vec![format!("./{program}")],
                ..first.clone()
            };
        }
        let explain = |record: &Comparison, low: f64| {
            let mut record = record.clone();
            let ratio = if low > 1.0 { 1.1 } else { 1.0 };
            record.contrasts[0].cpu_time = Some(ComponentRecord::new(ratio, Some(low), Some(1.2)));
            let best = record.arms[baseline].clone();
            let command = command_that_explains(&record, &best);
            command.map(|command| command.line)
        };
        let profiles = explain(&record, 1.01).unwrap();
        let [base, head, diff] = profiles.split(" && ").collect::<Vec<_>>()[..] else {
            panic!("{profiles}");
        };
        assert!(base.starts_with("pinwise profile --runs"), "{base}");
        assert!(base.ends_with("-- ./base > /dev/null"), "{base}");
        assert!(head.ends_with("-- ./head > /dev/null"), "{head}");
        assert_eq!(diff, "pinwise profile diff last~1 last");
        // In some runs it takes much more.
        let mut uneven = record.clone();
        for run in uneven.arms[1 - baseline].runs.iter_mut().step_by(4) {
            run.user_s = run.user_s.map(|user_s| 2.0 * user_s);
        }
        let profiles = explain(&uneven, 0.9).unwrap();
        assert!(profiles.starts_with("pinwise profile --runs"), "{profiles}");
        // The CPU time is the same: the slower one waits.
        let mut set_wall_s = |wall_s: f64| {
            for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
                run.wall_s = wall_s;
            }
            explain(&record, 0.9).unwrap()
        };
        assert_eq!(set_wall_s(0.2), "strace -f -c -w ./head");
        assert_eq!(set_wall_s(2.0), "pinwise trace -- ./head");
        // Of options, the better one is to be used.
        for (arm, level) in ["-6", "-9"].into_iter().enumerate() {
            record.arms[arm].command = ["gzip", level].map(str::to_owned).to_vec();
        }
        assert_eq!(explain(&record, 1.01), None);
    }

    #[test]
    fn an_arm_with_a_cgroup_has_a_command_for_kubernetes() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
        let placement: Placement = "compact*2".parse().unwrap();
        let place = placement.realise(&topology).unwrap();
        let last = |record: &Comparison| list_commands(record, 0, &place, &topology).pop();
        let is_pod = |command: &CommandRecord| command.line.ends_with(" --as kubernetes");
        assert!(!last(&record).is_some_and(|command| is_pod(&command)));
        record.arms[0].setting.is_exclusive = true;
        assert!(last(&record).is_some_and(|command| is_pod(&command)));
    }

    #[test]
    fn cpu_time_is_advised_if_it_decides_and_wall_time_does_not() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let first = record.arms[0].clone();
        for arm in &mut record.arms {
            arm.cpus.clone_from(&first.cpus);
            arm.runs.clone_from(&first.runs);
        }
        record.contrasts.truncate(1);
        let contrast = &mut record.contrasts[0];
        contrast.verdict = ContrastVerdict::Undecided;
        (contrast.low, contrast.high) = (Some(0.7), Some(1.4));
        let part = |low, high| Some(ComponentRecord::new(1.0, Some(low), Some(high)));
        contrast.wall_per_cpu_time = part(0.7, 1.4);
        contrast.cpu_time = part(0.9, 1.1);
        assert_eq!(with_cpu_time_first(&record, "Go on."), "Go on.");
        record.contrasts[0].cpu_time = part(0.995, 1.005);
        let advice = with_cpu_time_first(&record, "Go on.");
        assert!(advice.starts_with("If CPU time is what counts"), "{advice}");
        let said = describe_cpu_time(&record).unwrap();
        assert!(said.ends_with(" is the same within ±1.0 %."), "{said}");
        record.contrasts[0].cpu_time = part(0.95, 0.97);
        let said = describe_cpu_time(&record).unwrap();
        assert!(said.contains(" differs: ±0 % ("), "{said}");
        assert!(with_cpu_time_first(&record, "Go on.").contains("--metric cpu"));
        record.contrasts[0].cpu_time = part(0.995, 1.005);
        record.metric.name = "cpu".to_owned();
        assert_eq!(with_cpu_time_first(&record, "Go on."), "Go on.");
        assert!(!leaves_waiting_open(&record, ComparisonOutcome::Same));
        record.arms[0].cpus = "0".parse().unwrap();
        assert!(leaves_waiting_open(&record, ComparisonOutcome::Same));
    }
}
