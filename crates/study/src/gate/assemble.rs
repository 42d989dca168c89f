//! Puts a gate's record together.

use std::time::Duration;

use super::measured::{BASE, HEAD, Measured};
use super::{GatePlan, PlannedBenchmark, words};
use crate::compare;
use pinwise_record::{
    Finding, GateBenchmark, GateCpuTime, GateDecision, GateOutcome, GatePlanRecord, GateRecord,
    GateVerdict, Header, HostRecord, MetricRecord, Severity, Stopped, no_verdict_yet,
};
use pinwise_stats::confirm::Contrast;
use pinwise_stats::describe::{median, quantile};
use pinwise_stats::discovery;
use pinwise_stats::regression::Standing;
use pinwise_workload::Metric;

/// The record before the first run.
pub(super) fn opening(plan: &GatePlan, host: HostRecord) -> GateRecord {
    GateRecord {
        header: Header::new(&plan.id, &plan.started, plan.tags.clone()),
        host,
        argv: plan.argv.clone(),
        suite: plan.suite.clone(),
        seed: plan.seed,
        base: plan.base.clone(),
        head: plan.head.clone(),
        plan: GatePlanRecord {
            alpha: plan.alpha,
            budget_s: plan.budget.map(|budget| budget.as_secs_f64()),
            max_pairs: plan.max_pairs,
            open_ended: plan.is_open_ended,
            score: plan.score.into(),
        },
        benchmarks: plan.benchmarks.iter().map(not_measured).collect(),
        verdict: GateVerdict {
            decision: GateDecision::Undecided,
            sentence: no_verdict_yet("gate"),
            advice: String::new(),
        },
        stopped: None,
        ended: Stopped::words(None).to_owned(),
        elapsed_s: 0.0,
    }
}

fn not_measured(benchmark: &PlannedBenchmark) -> GateBenchmark {
    let outcome = match (&benchmark.base, &benchmark.head) {
        (Some(_), None) => GateOutcome::Missing,
        (None, Some(_)) => GateOutcome::New,
        _ => GateOutcome::Undecided,
    };
    let either = benchmark.head.as_ref().or(benchmark.base.as_ref());
    GateBenchmark {
        name: benchmark.name.clone(),
        command: either.map_or(Vec::new(), |w| w.command.argv().to_vec()),
        metric: MetricRecord::new(&benchmark.metric, ""),
        min_effect: benchmark.min_effect,
        outcome,
        standing: String::new(),
        sentence: String::new(),
        base: None,
        head: None,
        ratio: None,
        low: None,
        high: None,
        level: None,
        high_alone: None,
        effect: None,
        change: String::new(),
        interval: String::new(),
        cpu: None,
        link: None,
        q: None,
        pairs: Vec::new(),
        problem: None,
        timed_out: None,
    }
}

/// What is known so far of every benchmark.
pub(super) fn fill(
    record: &mut GateRecord,
    plan: &GatePlan,
    states: &[Option<Measured>],
    elapsed: Duration,
) {
    record.elapsed_s = elapsed.as_secs_f64();
    let names = [record.base.name.clone(), record.head.name.clone()];
    let entries = record.benchmarks.iter_mut().zip(states);
    for ((entry, state), planned) in entries.zip(&plan.benchmarks) {
        if let Some(state) = state {
            fill_one(entry, state);
            judge_late(entry, state, planned, &names);
        }
    }
    adjust(&mut record.benchmarks, states);
    let benchmarks = record.benchmarks.iter_mut();
    for ((entry, state), planned) in benchmarks.zip(states).zip(&plan.benchmarks) {
        entry.standing = entry.standing_at(plan.alpha);
        entry.sentence = match state {
            Some(state) if state.only_in.is_none() => {
                words::sentence(entry, state, planned, plan, &names)
            }
            _ => words::describe_single_build(entry, &names),
        };
    }
}

fn fill_one(entry: &mut GateBenchmark, state: &Measured) {
    entry.pairs.clone_from(&state.pairs);
    let median = |figure: fn(&pinwise_record::GatePair) -> f64| {
        let figures: Vec<f64> = state.pairs.iter().map(figure).collect();
        (!figures.is_empty()).then(|| quantile(&figures, 0.5))
    };
    entry.base = median(|pair| pair.base);
    entry.head = median(|pair| pair.head);
    entry.problem.clone_from(&state.failed);
    entry.outcome = match (&state.failed, state.standing()) {
        (Some(_), _) => match state.only_in {
            Some(BASE) => GateOutcome::Missing,
            Some(_) => GateOutcome::New,
            None => GateOutcome::Failed,
        },
        (None, Standing::Slower) => GateOutcome::Slower,
        (None, Standing::Faster) => GateOutcome::Faster,
        (None, Standing::Passed) => GateOutcome::Passed,
        (None, Standing::Undecided) => GateOutcome::Undecided,
    };
    let Some(look) = state.look() else { return };
    let (ratio, low, high) = estimate(&look.shared);
    entry.ratio = Some(ratio);
    (entry.low, entry.high) = (low, high);
    entry.level = low.map(|_| look.shared.nominal_level);
    entry.link = state.links.and_then(|links| links.figure);
    let alone = look.alone.as_ref().unwrap_or(&look.shared);
    entry.high_alone = end(alone.interval.high);
    entry.effect = Some(entry.metric.effect(ratio, low, high));
    entry.cpu = state.cpu_look().map(|look| {
        let (ratio, low, high) = estimate(&look.shared);
        GateCpuTime {
            ratio,
            low,
            high,
            level: low.map(|_| look.shared.nominal_level),
            link: state.links.and_then(|links| links.cpu),
            effect: MetricRecord::new(&Metric::cpu(), "").effect(ratio, low, high),
            decides: state.is_slower_by_cpu(),
        }
    });
    entry.change = entry.change();
    entry.interval = entry.interval();
}

/// A build whose run did not end within the time-out, while the other's did, is slower.
fn judge_late(
    entry: &mut GateBenchmark,
    state: &Measured,
    planned: &PlannedBenchmark,
    names: &[String; 2],
) {
    let (late, other, outcome) = match state.is_late {
        [false, true] => (HEAD, BASE, GateOutcome::Slower),
        [true, false] => (BASE, HEAD, GateOutcome::Faster),
        _ => return,
    };
    let workload = [&planned.base, &planned.head][late].as_ref();
    let limit = workload.and_then(|workload| workload.timeout);
    let Some(limit) = limit.filter(|_| entry.metric.is_wall()) else {
        return;
    };
    let [name, other_name] = [late, other].map(|build| names[build].as_str());
    entry.timed_out =
        compare::timed_out::bound_slowdown(name, other_name, limit, &state.ended_s[other]);
    if entry.timed_out.is_some() {
        entry.outcome = outcome;
        entry.change = entry.change();
    }
}

/// The ratio of costs and its interval, which has both ends or none.
fn estimate(contrast: &Contrast) -> (f64, Option<f64>, Option<f64>) {
    let low = end(contrast.interval.low).filter(|low| *low > 0.0);
    let (low, high) = low.zip(end(contrast.interval.high)).unzip();
    (contrast.estimate.exp(), low, high)
}

fn end(log_ratio: f64) -> Option<f64> {
    Some(log_ratio.exp()).filter(|ratio| ratio.is_finite())
}

/// The rate of false discoveries at which each would be among those named.
fn adjust(entries: &mut [GateBenchmark], states: &[Option<Measured>]) {
    let p_value = |state: &Option<Measured>| -> f64 {
        let look = state.as_ref().and_then(Measured::look);
        look.map_or(f64::NAN, |look| look.shared.p_adjusted)
    };
    let p_values: Vec<f64> = states.iter().map(p_value).collect();
    for (entry, q) in entries
        .iter_mut()
        .zip(discovery::adjust_p_values(&p_values))
    {
        entry.q = q.is_finite().then_some(q);
    }
}

/// The result.
pub(super) fn close(
    record: &mut GateRecord,
    plan: &GatePlan,
    states: &[Option<Measured>],
    stopped: Stopped,
) {
    record.stopped = Some(stopped);
    record.ended = Stopped::words(record.stopped).to_owned();
    let has = |outcome: GateOutcome| record.with(&outcome).next().is_some();
    let decision = if has(GateOutcome::Slower) {
        GateDecision::Fail
    } else if has(GateOutcome::Failed) || has(GateOutcome::Missing) {
        GateDecision::Broken
    } else if has(GateOutcome::Undecided) || !states.iter().any(Option::is_some) {
        GateDecision::Undecided
    } else {
        GateDecision::Pass
    };
    record.verdict = GateVerdict {
        sentence: words::verdict(record, &decision),
        advice: words::advice(record, plan, states, &decision),
        decision,
    };
    record.findings = findings(record, states);
}

/// Benchmarks whose medians differ in the opposite direction from their pairs, as when other load
/// comes and goes; small differences contradict no verdict.
pub(super) fn medians_contradict(record: &GateRecord) -> Option<Finding> {
    let contradicts = |benchmark: &&GateBenchmark| {
        let medians = benchmark.base.zip(benchmark.head);
        let change = medians.map_or(0.0, |(base, head)| head / base - 1.0);
        let pairs = benchmark.effect.as_ref().map_or(0.0, |effect| effect.value);
        let is_slower = benchmark.outcome == GateOutcome::Slower;
        // Where CPU time decides, its own medians are shown.
        let is_shown = !benchmark.is_slower_by_cpu();
        is_shown && (is_slower || change.abs() >= benchmark.min_effect) && change * pairs < 0.0
    };
    let names = record.benchmarks.iter().filter(contradicts);
    let names: Vec<&str> = names.map(|benchmark| benchmark.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let sentence = format!(
            "{}: believe the change, not the medians of the builds: it compares runs side by side.",
            names.join(", ")
        );
        Finding::new("medians", Severity::Note, sentence, "")
    })
}

/// Figures that differ by more than this many times are hardly of one unit.
const OTHER_UNIT: f64 = 50.0;

fn findings(record: &GateRecord, states: &[Option<Measured>]) -> Vec<Finding> {
    let far = |benchmark: &&GateBenchmark| {
        let ratio = benchmark.ratio.unwrap_or(1.0);
        ratio.max(1.0 / ratio) > OTHER_UNIT
    };
    let units = record.benchmarks.iter().filter(far).map(|benchmark| {
        let sentence = format!(
            "{}: the figures differ by a factor of {:.0}: did their unit change?",
            benchmark.name,
            benchmark.ratio.map_or(1.0, |ratio| ratio.max(1.0 / ratio))
        );
        let advice = "Check the output of both builds.";
        Finding::new("unit", Severity::Warning, sentence, advice)
            .with_evidence("ratio", benchmark.ratio.unwrap_or(1.0))
    });
    let mut found: Vec<Finding> = units.collect();
    found.extend(medians_contradict(record));
    let loads: Vec<f64> = states.iter().flatten().flat_map(Measured::loads).collect();
    found.extend(median(&loads).and_then(|busy| {
        compare::load_finding(
            busy,
            record.host.counts.cpus,
            "slow both builds, some runs more than others",
            "A quiet machine needs fewer pairs.",
        )
    }));
    let new: Vec<&str> = record
        .with(&GateOutcome::New)
        .map(|benchmark| benchmark.name.as_str())
        .collect();
    if !new.is_empty() {
        let sentence = format!(
            "{} has benchmarks that {} lacks: {}.",
            record.head.name,
            record.base.name,
            new.join(", ")
        );
        found.push(Finding::new("new", Severity::Note, sentence, ""));
    }
    found.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.weight)));
    found
}
