//! What a difference of wall time is made of: `ln wall = ln CPU + ln(wall / CPU)`.
//!
//! The first part is the program's own work, which others that want the CPUs
//! hardly touch. The second is all that keeps wall time from it: waiting for a
//! CPU, for input and output, and threads that run at once. Each part has the
//! blocks of the whole and its random order, and is judged at the level of the
//! look that judged the whole: for itself it is as sure, at all looks together.

use std::collections::BTreeMap;

use pinwise_record::{
    Comparison, ComponentRecord, ContrastRecord, ContrastVerdict, Finding, Phase, RunRecord,
    Severity,
};
use pinwise_stats::confirm::{Contrast, Decision, decide};
use pinwise_stats::paired::{Interval, Paired};

/// CPU time, and wall time per CPU time, of an arm against the baseline.
pub(super) fn of(
    contrast: &Contrast,
    arm: &[RunRecord],
    baseline: &[RunRecord],
) -> Option<[ComponentRecord; 2]> {
    let pairs = pairs(arm, baseline)?;
    let part = |response: fn(&Costs) -> f64| {
        let differences = pairs.iter().map(|(a, b)| response(a) - response(b));
        let paired = Paired::unweighted(differences.collect()).redescending();
        let Interval { low, high } = paired.interval(contrast.nominal_level);
        let end = |end: f64| end.is_finite().then(|| end.exp());
        ComponentRecord::new(paired.estimate().exp(), (end(low), end(high)))
    };
    Some([
        part(|costs| costs.cpu_s.ln()),
        part(|costs| (costs.wall_s / costs.cpu_s).ln()),
    ])
}

/// An interval of this many times the width takes half of the runs.
const NARROWER: f64 = 0.7;

/// What a run cost, seconds.
struct Costs {
    wall_s: f64,
    cpu_s: f64,
}

impl Costs {
    fn of(run: &RunRecord) -> Option<Self> {
        let cpu_s = run.cpu_s()?;
        (cpu_s > 0.0 && run.wall_s > 0.0).then_some(Self {
            wall_s: run.wall_s,
            cpu_s,
        })
    }
}

/// Block by block; `None` unless every block has both.
fn pairs(arm: &[RunRecord], baseline: &[RunRecord]) -> Option<Vec<(Costs, Costs)>> {
    let by_block: BTreeMap<usize, &RunRecord> =
        confirmed(baseline).map(|run| (run.block, run)).collect();
    let pairs: Vec<(Costs, Costs)> = confirmed(arm)
        .map(|run| Some((Costs::of(run)?, Costs::of(by_block.get(&run.block)?)?)))
        .collect::<Option<_>>()?;
    (!pairs.is_empty()).then_some(pairs)
}

fn confirmed(runs: &[RunRecord]) -> impl Iterator<Item = &RunRecord> {
    runs.iter().filter(|run| run.phase == Phase::Confirmation)
}

/// CPU time may be known where wall time is not: waiting made the noise.
pub(super) fn of_cpu_time(contrast: &ContrastRecord, record: &Comparison) -> Option<Finding> {
    let (part, rest) = (
        contrast.cpu_time.as_ref()?,
        contrast.wall_per_cpu_time.as_ref()?,
    );
    let is_open = contrast.verdict == ContrastVerdict::Undecided && !contrast.is_withheld();
    if !is_open || part.decides || record.metric.name != "wall" {
        return None;
    }
    let interval = logarithmic(part.low, part.high)?;
    let of_wall = logarithmic(contrast.low, contrast.high)?;
    let of_rest = logarithmic(rest.low, rest.high)?;
    let delta = record.plan.min_effect.ln_1p();
    let is_known = |interval| decide(interval, delta) != Decision::Undecided;
    if interval.half_width() > NARROWER * of_wall.half_width() || is_known(of_rest) {
        return None;
    }
    let is_same = interval.low > -delta && interval.high < delta;
    let word = match decide(interval, delta) {
        Decision::Undecided => return None,
        _ if is_same => "the same",
        Decision::Faster => "lower",
        _ => "higher",
    };
    let sentence = format!(
        "CPU time of {} is {word}: {}. Only waiting leaves wall time open.",
        contrast.arm,
        part.effect.with_interval()
    );
    let advice = "Where others make it wait, CPU time answers the question (--metric cpu); where waiting is part of the program, only wall time does.";
    let finding = Finding::new("cpu_time_decides", Severity::Note, sentence, advice);
    Some(finding.with("ratio", part.ratio).weighing(6))
}

/// CPU time does not show what waits longer, or has less at once.
pub(super) fn of_waiting(contrast: &ContrastRecord, record: &Comparison) -> Option<Finding> {
    if record.metric.name != "cpu" {
        return None;
    }
    let rest = contrast.wall_per_cpu_time.as_ref()?;
    let interval = logarithmic(rest.low, rest.high)?;
    let what = match decide(interval, record.plan.min_effect.ln_1p()) {
        Decision::Faster => "less wall-clock time",
        Decision::Slower => "more wall-clock time",
        _ => return None,
    };
    let sentence = format!(
        "{} takes {what} for its CPU time: {}.",
        contrast.arm,
        rest.effect.with_interval()
    );
    let advice =
        "Waiting or parallelism differs; without --metric cpu wall-clock time is compared.";
    let finding = Finding::new("wall_time_differs", Severity::Note, sentence, advice);
    Some(finding.with("ratio", rest.ratio).weighing(6))
}

fn logarithmic(low: Option<f64>, high: Option<f64>) -> Option<Interval> {
    Some(Interval {
        low: low?.ln(),
        high: high?.ln(),
    })
}
