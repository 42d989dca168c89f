//! Writes a gate's record.

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
pub(super) fn open_record(plan: &GatePlan, host: HostRecord) -> GateRecord {
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
        benchmarks: plan.benchmarks.iter().map(open_benchmark).collect(),
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

fn open_benchmark(benchmark: &PlannedBenchmark) -> GateBenchmark {
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

/// Writes the results so far of every benchmark.
pub(super) fn update_benchmarks(
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
            update_benchmark(entry, state);
            judge_timeouts(entry, state, planned, &names);
        }
    }
    set_discovery_rates(&mut record.benchmarks, states);
    let benchmarks = record.benchmarks.iter_mut();
    for ((entry, state), planned) in benchmarks.zip(states).zip(&plan.benchmarks) {
        entry.standing = entry.describe_outcome(plan.alpha);
        entry.sentence = match state {
            Some(state) if state.only_in.is_none() => {
                words::describe_benchmark(entry, state, planned, plan, &names)
            }
            _ => words::describe_single_build(entry, &names),
        };
    }
}

fn update_benchmark(entry: &mut GateBenchmark, state: &Measured) {
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
    let (ratio, low, high) = ratio_with_interval(&look.shared);
    entry.ratio = Some(ratio);
    (entry.low, entry.high) = (low, high);
    entry.level = low.map(|_| look.shared.nominal_level);
    entry.link = state.links.and_then(|links| links.figure);
    let alone = look.alone.as_ref().unwrap_or(&look.shared);
    entry.high_alone = finite_ratio(alone.interval.high);
    entry.effect = Some(entry.metric.effect(ratio, low, high));
    entry.cpu = state.cpu_look().map(|look| {
        let (ratio, low, high) = ratio_with_interval(&look.shared);
        let alone = look.alone.as_ref().unwrap_or(&look.shared);
        GateCpuTime {
            ratio,
            low,
            high,
            level: low.map(|_| look.shared.nominal_level),
            high_alone: finite_ratio(alone.interval.high),
            link: state.links.and_then(|links| links.cpu),
            effect: MetricRecord::new(&Metric::cpu(), "").effect(ratio, low, high),
            decides: state.is_decided_by_cpu(),
        }
    });
    entry.change = entry.change();
    entry.interval = entry.interval();
}

/// Judges a build slower if its run did not end within the time-out while the other's did.
fn judge_timeouts(
    entry: &mut GateBenchmark,
    state: &Measured,
    planned: &PlannedBenchmark,
    names: &[String; 2],
) {
    let (late, other, outcome) = match state.has_timed_out {
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
fn ratio_with_interval(contrast: &Contrast) -> (f64, Option<f64>, Option<f64>) {
    let low = finite_ratio(contrast.interval.low).filter(|low| *low > 0.0);
    let (low, high) = low.zip(finite_ratio(contrast.interval.high)).unzip();
    (contrast.estimate.exp(), low, high)
}

fn finite_ratio(log_ratio: f64) -> Option<f64> {
    Some(log_ratio.exp()).filter(|ratio| ratio.is_finite())
}

/// Sets the false-discovery rate at which each benchmark would count as changed.
fn set_discovery_rates(entries: &mut [GateBenchmark], states: &[Option<Measured>]) {
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

/// Writes the verdict and the findings.
pub(super) fn complete_record(
    record: &mut GateRecord,
    plan: &GatePlan,
    states: &[Option<Measured>],
    stopped: Stopped,
) {
    record.stopped = Some(stopped);
    record.ended = Stopped::words(record.stopped).to_owned();
    let has = |outcome: GateOutcome| record.benchmarks_with(&outcome).next().is_some();
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
        sentence: words::describe_verdict(record, &decision),
        advice: words::write_advice(record, plan, states, &decision),
        decision,
    };
    record.findings = list_findings(record, states);
}

/// Benchmarks whose medians differ in the opposite direction from their pairs or by another size,
/// as when other load comes and goes; small differences contradict no verdict.
pub(super) fn compare_medians(record: &GateRecord) -> Option<Finding> {
    let contradicts = |benchmark: &&GateBenchmark| {
        let medians = benchmark.base.zip(benchmark.head);
        let change = medians.map_or(0.0, |(base, head)| head / base - 1.0);
        let pairs = benchmark.effect.as_ref().map_or(0.0, |effect| effect.value) / 100.0;
        let distance = benchmark.min_effect.max(compare::FAR_MEDIANS * pairs.abs());
        let is_contrary = change * pairs < 0.0 || (change - pairs).abs() > distance;
        let is_slower = benchmark.outcome == GateOutcome::Slower;
        // If CPU time decides, the medians shown are those of CPU time.
        let is_shown = !benchmark.is_decided_by_cpu();
        is_shown && (is_slower || change.abs() >= benchmark.min_effect) && is_contrary
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

/// Figures that differ by more than this factor probably have different units.
const OTHER_UNIT: f64 = 50.0;

fn list_findings(record: &GateRecord, states: &[Option<Measured>]) -> Vec<Finding> {
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
    let mut findings: Vec<Finding> = units.collect();
    findings.extend(compare_medians(record));
    let loads: Vec<f64> = states.iter().flatten().flat_map(Measured::loads).collect();
    findings.extend(median(&loads).and_then(|busy| {
        compare::report_load(
            busy,
            record.host.counts.cpus,
            "slow both builds, some runs more than others",
            "A quiet machine needs fewer pairs.",
        )
    }));
    let new: Vec<&str> = record
        .benchmarks_with(&GateOutcome::New)
        .map(|benchmark| benchmark.name.as_str())
        .collect();
    if !new.is_empty() {
        let sentence = format!(
            "{} has benchmarks that {} lacks: {}.",
            record.head.name,
            record.base.name,
            new.join(", ")
        );
        findings.push(Finding::new("new", Severity::Note, sentence, ""));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.weight)));
    findings
}
