//! The parts of a difference of wall time: `ln wall = ln CPU + ln(wall / CPU)`.
//!
//! The first part is the program's own work, which other programs hardly affect. The second is
//! everything else in wall time: waiting for a CPU, for input and output, and threads that run in
//! parallel. A program that waits for a CPU needs another placement, one that waits for a disk does
//! not: if the queueing time of every run is known, the second part is divided into `ln((CPU +
//! queued) / CPU) + ln(wall / (CPU + queued))`. Each part uses the same blocks as wall time and the
//! error level of the same look, so each statement alone holds at that level over all looks.

use std::collections::BTreeMap;

use pinwise_record::{
    Comparison, ComponentRecord, ContrastRecord, ContrastVerdict, Finding, Phase, RunRecord,
    Severity,
};
use pinwise_stats::beside::is_other_parallelism;
use pinwise_stats::confirm::{Contrast, Decision, decide};
use pinwise_stats::describe::median;
use pinwise_stats::paired::{Interval, Paired};

/// Ratios of the parts between an arm and the baseline; `None` unless every run has the part.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) cpu_time: Option<ComponentRecord>,
    pub(super) wall_per_cpu_time: Option<ComponentRecord>,
    pub(super) ready_per_cpu_time: Option<ComponentRecord>,
    pub(super) wall_per_ready_time: Option<ComponentRecord>,
}

/// Compares the runs of an arm and of the baseline part by part.
pub(super) fn compare_parts(
    contrast: &Contrast,
    arm: &[RunRecord],
    baseline: &[RunRecord],
) -> Parts {
    pair_runs(arm, baseline).map_or_else(Parts::default, |pairs| {
        split_by_parts(&pairs, contrast.nominal_level)
    })
}

fn split_by_parts(pairs: &[(Costs, Costs)], level: f64) -> Parts {
    let part = |response: fn(&Costs) -> Option<f64>| {
        let differences = pairs.iter().map(|(a, b)| Some(response(a)? - response(b)?));
        let paired = Paired::without_weights(differences.collect::<Option<_>>()?).redescending();
        let Interval { low, high } = paired.interval(level);
        let end = |end: f64| end.is_finite().then(|| end.exp());
        Some(ComponentRecord::new(
            paired.estimate().exp(),
            end(low),
            end(high),
        ))
    };
    Parts {
        cpu_time: part(|costs| Some(costs.cpu_s.ln())),
        wall_per_cpu_time: part(|costs| Some((costs.wall_s / costs.cpu_s).ln())),
        ready_per_cpu_time: part(|costs| Some((costs.ready_s? / costs.cpu_s).ln())),
        wall_per_ready_time: part(|costs| Some((costs.wall_s / costs.ready_s?).ln())),
    }
}

/// CPU time is clearer than wall time if its interval is at most this many times as wide: then it
/// takes half of the runs.
const MAX_RELATIVE_WIDTH: f64 = 0.7;

/// What a run cost, seconds.
struct Costs {
    wall_s: f64,
    cpu_s: f64,
    /// CPU time and time queued for a CPU.
    ready_s: Option<f64>,
}

impl Costs {
    fn from_run(run: &RunRecord) -> Option<Self> {
        let cpu_s = run.cpu_s()?;
        (cpu_s > 0.0 && run.wall_s > 0.0).then_some(Self {
            wall_s: run.wall_s,
            cpu_s,
            ready_s: run.queued_s.map(|queued_s| cpu_s + queued_s),
        })
    }
}

/// Costs of the arm and of the baseline in each confirmation block; `None` unless every block has
/// both.
fn pair_runs(arm: &[RunRecord], baseline: &[RunRecord]) -> Option<Vec<(Costs, Costs)>> {
    let by_block: BTreeMap<usize, &RunRecord> = confirmed_runs(baseline)
        .map(|run| (run.block, run))
        .collect();
    let pairs: Vec<(Costs, Costs)> = confirmed_runs(arm)
        .map(|run| {
            Some((
                Costs::from_run(run)?,
                Costs::from_run(by_block.get(&run.block)?)?,
            ))
        })
        .collect::<Option<_>>()?;
    (!pairs.is_empty()).then_some(pairs)
}

fn confirmed_runs(runs: &[RunRecord]) -> impl Iterator<Item = &RunRecord> {
    runs.iter().filter(|run| run.phase == Phase::Confirmation)
}

/// Reports a difference, or equality, of CPU time if wall time is undecided because of waiting.
pub(super) fn report_cpu_time(contrast: &ContrastRecord, record: &Comparison) -> Option<Finding> {
    let (part, rest) = (
        contrast.cpu_time.as_ref()?,
        contrast.wall_per_cpu_time.as_ref()?,
    );
    let is_undecided = contrast.verdict == ContrastVerdict::Undecided;
    // Only caveats that concern waiting leave CPU time valid: the arm that ran before may affect
    // CPU time as well.
    let withheld = match () {
        () if contrast.depends_on_load => Some("what depends on the load is waiting"),
        () if contrast.depends_on_time => Some("what changed over the experiment is waiting"),
        () if contrast.is_withheld() => return None,
        () => None,
    };
    // The parts are those of the typical run.
    let is_typical = record.judges_typical_run();
    if !is_undecided || part.decides || !record.metric.is_wall() || !is_typical {
        return None;
    }
    if differs_in_parallelism(contrast) || differs_in_companion(contrast, record) {
        return None;
    }
    let interval = ln_interval(part.low, part.high)?;
    let wall_interval = ln_interval(contrast.low, contrast.high)?;
    let rest_interval = ln_interval(rest.low, rest.high)?;
    let delta = record.plan.min_effect.ln_1p();
    let is_known = |interval| decide(interval, delta) != Decision::Undecided;
    let is_clearer = interval.half_width() <= MAX_RELATIVE_WIDTH * wall_interval.half_width();
    if withheld.is_none() && (!is_clearer || is_known(rest_interval)) {
        return None;
    }
    let is_same = interval.low > -delta && interval.high < delta;
    let word = match decide(interval, delta) {
        Decision::Undecided => return None,
        _ if is_same => "the same",
        Decision::Faster => "lower",
        _ => "higher",
    };
    let is_contradicted = |mean: f64| is_same || (mean > 1.0) != (part.ratio > 1.0);
    if find_other_mean(contrast, record).is_some_and(is_contradicted) {
        return None;
    }
    let claim = format!(
        "CPU time of {} is {word}: {}",
        contrast.arm,
        part.effect.describe_with_interval()
    );
    let cpus = |name: &str| {
        let arm = record.arms.iter().find(|arm| arm.name == name);
        arm.map(|arm| &arm.cpus)
    };
    if cpus(&contrast.arm) != cpus(&contrast.baseline) {
        // Threads that share fewer CPUs take the same CPU time and more wall time.
        let sentence = format!("{claim}. Of wall time on other CPUs that says little.");
        let finding = Finding::new("cpu_time_decides", Severity::Note, sentence, "");
        return Some(finding.with_evidence("ratio", part.ratio));
    }
    let sentence = match withheld {
        Some(withheld) => format!("{claim}; {withheld}."),
        None => format!("{claim}. Wall time is undecided only because of waiting."),
    };
    let advice = "If other processes make it wait, judge CPU time (--metric cpu); if waiting is part of the program, only wall time counts.";
    // A warning, since it says what to do next.
    let finding = Finding::new("cpu_time_decides", Severity::Warning, sentence, advice);
    Some(finding.with_evidence("ratio", part.ratio).with_weight(6))
}

/// A mean of CPU time this many smallest effects beside the typical run says something else.
const FAR: f64 = 2.0;

/// The ratio of the means of CPU time, if it says something else than the typical run: one of ten runs
/// may take twice as long.
pub(super) fn find_other_mean(contrast: &ContrastRecord, record: &Comparison) -> Option<f64> {
    let runs = |name: &str| {
        let arm = record.arms.iter().find(|arm| arm.name == name);
        arm.map(|arm| arm.runs.as_slice())
    };
    let typical = contrast.cpu_time.as_ref()?.ratio;
    let pairs = pair_runs(runs(&contrast.arm)?, runs(&contrast.baseline)?)?;
    let many = pairs.len() as f64;
    let mean = |cost: fn(&(Costs, Costs)) -> f64| pairs.iter().map(cost).sum::<f64>() / many;
    let (arm_s, baseline_s) = (mean(|pair| pair.0.cpu_s), mean(|pair| pair.1.cpu_s));
    let squares = pairs
        .iter()
        .map(|(a, b)| (a.cpu_s - b.cpu_s - arm_s + baseline_s).powi(2));
    let error = (squares.sum::<f64>() / many / (many - 1.0)).sqrt() / baseline_s;
    let ratio = arm_s / baseline_s;
    let apart = (ratio / typical).ln().abs();
    (apart > FAR * record.plan.min_effect.ln_1p() && apart > error).then_some(ratio)
}

/// Does one of the arms do more at once, or wait more for something else than CPUs? Then equal CPU
/// time says nothing about wall time: a second thread that halves it costs none.
fn differs_in_parallelism(contrast: &ContrastRecord) -> bool {
    contrast.wall_per_ready_time.as_ref().is_some_and(|part| {
        let interval = ln_interval(part.low, part.high).unwrap_or(Interval::UNBOUNDED);
        is_other_parallelism(part.ratio.ln(), interval)
    })
}

/// Does only one of the arms run beside a companion, or each beside another? What that costs is
/// waiting.
fn differs_in_companion(contrast: &ContrastRecord, record: &Comparison) -> bool {
    let beside = |name: &str| {
        let arm = record.arms.iter().find(|arm| arm.name == name);
        arm.map(|arm| &arm.setting.beside)
    };
    beside(&contrast.arm) != beside(&contrast.baseline)
}

/// If CPU time is judged: reports that wall time differs beyond it, by waiting or less parallelism.
pub(super) fn report_waiting(contrast: &ContrastRecord, record: &Comparison) -> Option<Finding> {
    if !record.metric.is_cpu() {
        return None;
    }
    let rest = contrast.wall_per_cpu_time.as_ref()?;
    let interval = ln_interval(rest.low, rest.high)?;
    let what = match decide(interval, record.plan.min_effect.ln_1p()) {
        Decision::Faster => "less wall-clock time",
        Decision::Slower => "more wall-clock time",
        _ => return None,
    };
    let sentence = format!(
        "{} takes {what} for its CPU time: {}.",
        contrast.arm,
        rest.effect.describe_with_interval()
    );
    let advice =
        "Waiting or parallelism differs; wall-clock time is compared without --metric cpu.";
    let finding = Finding::new("wall_time_differs", Severity::Note, sentence, advice);
    Some(finding.with_evidence("ratio", rest.ratio).with_weight(6))
}

/// Threads of a program that has one, on average: more show parallelism.
const ONE_THREAD: f64 = 1.1;

/// Appended to the answer on two programs of one thread: the slower one waits longer, if its CPU time
/// explains no half of the difference. Empty otherwise.
pub(super) fn describe_longer_wait(record: &Comparison) -> String {
    let [contrast] = record.contrasts.as_slice() else {
        return String::new();
    };
    let slower = match contrast.verdict {
        ContrastVerdict::Slower => &contrast.arm,
        ContrastVerdict::Faster => &contrast.baseline,
        _ => return String::new(),
    };
    let cpu = contrast.cpu_time.as_ref().filter(|cpu| !cpu.decides);
    let Some((cpu, interval)) = cpu.and_then(|cpu| Some((cpu, ln_interval(cpu.low, cpu.high)?)))
    else {
        return String::new();
    };
    let difference = contrast.ratio.ln();
    let (low, high) = match difference > 0.0 {
        true => (interval.low, interval.high),
        false => (-interval.high, -interval.low),
    };
    let is_same = low <= 0.0 && high < difference.abs() / 2.0;
    let has_one_thread = record.arms.iter().all(|arm| {
        let ready = confirmed_runs(&arm.runs).map(RunRecord::ready_threads);
        let ready: Option<Vec<f64>> = ready.collect();
        ready
            .and_then(|ready| median(&ready))
            .is_some_and(|ready| ready < ONE_THREAD)
    });
    if !is_same
        || !has_one_thread
        || !record.metric.is_wall()
        || find_other_mean(contrast, record).is_some()
        || differs_in_companion(contrast, record)
    {
        return String::new();
    }
    format!(
        " {slower} waits longer: CPU time {}.",
        cpu.effect.describe_with_interval()
    )
}

fn ln_interval(low: Option<f64>, high: Option<f64>) -> Option<Interval> {
    Some(Interval {
        low: low?.ln(),
        high: high?.ln(),
    })
}

#[cfg(test)]
mod tests;
