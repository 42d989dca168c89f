//! Chains the gates of a benchmark from commit to commit.
//!
//! Every ratio was measured side by side on one host, so hosts may differ from gate to gate. The
//! ratios used are estimates that do not depend on when a gate stopped: gates stop and pass when
//! their ratio happens to be low, so chained verdicts would show a speed-up that is not there.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_format::{count, percent};
use pinwise_record::{
    EffectRecord, GateBenchmark, GateHistory, GateLink, GateRecord, HistoryChange, HistoryStep,
    MetricRecord,
};
use pinwise_stats::chain::{Change, Link, find_changes};
use pinwise_workload::Metric;

/// Two-sided error rate over all changes of a history.
const ALPHA: f64 = 0.05;

/// What a gate measured of the benchmark between two commits.
struct Measured<'a> {
    gate: &'a GateRecord,
    benchmark: &'a GateBenchmark,
    /// Base and head.
    commits: (&'a str, &'a str),
    link: Link,
    /// The link of CPU time, if the gate judged that.
    cpu: Option<Link>,
}

/// The history of a benchmark up to the newest gate between two commits; `gates` may be in any
/// order. `None` if no gate compared two commits.
#[must_use]
pub fn chain_gates(gates: &[GateRecord], benchmark: &str) -> Option<GateHistory> {
    let mut measured: Vec<Measured<'_>> = gates
        .iter()
        .filter_map(|gate| read_measured(gate, benchmark))
        .collect();
    // Among gates that began in the same second, the one that leads to a commit comes before those
    // that start from it.
    let bases: BTreeSet<(&str, &str)> = measured
        .iter()
        .map(|one| (one.gate.started.as_str(), one.commits.0))
        .collect();
    measured.sort_by_key(|one| {
        let started = one.gate.started.as_str();
        (started, !bases.contains(&(started, one.commits.1)))
    });
    let newest = measured.last()?;
    let (suite, metric) = (newest.gate.suite.clone(), newest.benchmark.metric.clone());
    measured.retain(|one| one.gate.suite == suite && one.benchmark.metric.name == metric.name);
    let path = find_path(&measured);
    let is_on_path = |one: &&Measured<'_>| path.contains(&one.commits);
    let is_by_cpu = is_cpu_time_more_precise(measured.iter().filter(is_on_path));
    let metric = match is_by_cpu {
        true => MetricRecord::new(&Metric::cpu(), ""),
        false => metric,
    };
    for one in measured.iter_mut().filter(|_| is_by_cpu) {
        one.link = one.cpu.unwrap_or(one.link);
    }
    let mut left_out: usize = gates
        .iter()
        .filter(|gate| has_benchmark(gate, benchmark))
        .count();
    let mut links: Vec<Link> = Vec::new();
    let mut steps = Vec::new();
    for commits in &path {
        let step_gates: Vec<&Measured<'_>> = measured
            .iter()
            .filter(|one| one.commits == *commits)
            .collect();
        let step_links: Vec<Link> = step_gates.iter().map(|one| one.link).collect();
        let (link, between) = Link::pool(&step_links)?;
        links.push(link);
        left_out -= step_gates.len();
        steps.push(HistoryStep {
            base: commits.0.to_owned(),
            head: commits.1.to_owned(),
            records: step_gates.iter().map(|one| one.gate.id.clone()).collect(),
            started: step_gates.last()?.gate.started.clone(),
            effect: effect_with_interval(&metric, link, ALPHA),
            between,
            since_first: effect_with_interval(&metric, Link::sum(&links), ALPHA),
        });
    }
    let changes = find_changes(&links, ALPHA);
    let changes: Vec<HistoryChange> = changes
        .iter()
        .map(|change| to_change_record(change, &path, &metric))
        .collect();
    Some(GateHistory {
        benchmark: benchmark.to_owned(),
        suite,
        sentence: match changes.len() {
            0 => "No change is sure.".to_owned(),
            1 => "1 change is sure.".to_owned(),
            many => format!("{many} changes are sure."),
        },
        method: describe_method(left_out, &steps, is_by_cpu),
        changes,
        metric,
        alpha: ALPHA,
        steps,
        left_out,
    })
}

fn to_change_record(
    change: &Change,
    path: &[(&str, &str)],
    metric: &MetricRecord,
) -> HistoryChange {
    let steps = change.last - change.first + 1;
    let effect = effect_with_interval(metric, change.whole, change.level);
    let word = metric.word_of(change.whole.estimate.exp()).to_owned();
    let over = match steps {
        1 => String::new(),
        steps => format!(", over {steps} steps"),
    };
    HistoryChange {
        base: path[change.first].0.to_owned(),
        head: path[change.last].1.to_owned(),
        steps,
        is_worse: word == metric.worse_word,
        sentence: format!("{word}: {}{over}", effect.describe_with_interval()),
        effect,
        word,
    }
}

fn describe_method(left_out: usize, steps: &[HistoryStep], is_by_cpu: bool) -> String {
    let figure = match is_by_cpu {
        true => " Of CPU time, which is known better here than wall-clock time.",
        false => "",
    };
    let between = steps.iter().map(|step| step.between).fold(0.0, f64::max);
    let between = match steps.iter().any(|step| step.records.len() > 1) {
        true if between > 0.0 => format!(
            " Where several gates measured a step, what they differ by beyond their own intervals (sessions, hosts, builds) is in its interval: a standard deviation of up to {}.",
            percent(between)
        ),
        true => " Where several gates measured a step, they agree within their own intervals."
            .to_owned(),
        false => String::new(),
    };
    let left_out = match left_out {
        0 => String::new(),
        left_out => format!(
            " Left out: {} of folders, of another suite, or of commits that this chain does not go through.",
            count(left_out, "gate")
        ),
    };
    format!(
        "Every ratio was measured side by side, so that no change of a machine is in it.{figure} Ratios do not depend on when a gate stopped, and may differ a little from what it said. Error at most {} over all changes; intervals of steps are at {} each.{between}{left_out}",
        percent(ALPHA),
        percent(1.0 - ALPHA)
    )
}

/// CPU time replaces the figure if that has more than this many times its standard error.
const MIN_ERROR_RATIO: f64 = 2.0;

/// Do all gates of a chain have CPU time, with a clearly smaller standard error than their figure?
/// Ratios do not enter, so the choice does not favour a result.
fn is_cpu_time_more_precise<'a>(chain: impl Iterator<Item = &'a Measured<'a>>) -> bool {
    let errors: Option<Vec<(f64, f64)>> = chain
        .map(|one| Some((one.cpu?.error, one.link.error)))
        .collect();
    let errors = errors.unwrap_or_default();
    let sum_of_squares =
        |error: fn(&(f64, f64)) -> f64| errors.iter().map(|pair| error(pair).powi(2)).sum::<f64>();
    MIN_ERROR_RATIO.powi(2) * sum_of_squares(|pair| pair.0) < sum_of_squares(|pair| pair.1)
}

fn has_benchmark(gate: &GateRecord, benchmark: &str) -> bool {
    gate.benchmarks.iter().any(|b| b.name == benchmark)
}

fn read_link(link: &GateLink) -> Link {
    Link::from_pairs(link.ratio.ln(), link.error, link.pairs)
}

fn read_measured<'a>(gate: &'a GateRecord, name: &str) -> Option<Measured<'a>> {
    let commits = (gate.base.commit.as_deref()?, gate.head.commit.as_deref()?);
    let benchmark = gate.benchmarks.iter().find(|b| b.name == name)?;
    let link = read_link(&benchmark.link?);
    let cpu = benchmark.cpu.as_ref().and_then(|cpu| cpu.link.as_ref());
    let cpu = cpu
        .map(read_link)
        .filter(|cpu| cpu.error.is_finite() && cpu.estimate.is_finite());
    let is_known = link.error.is_finite() && link.estimate.is_finite();
    (is_known && commits.0 != commits.1).then_some(Measured {
        gate,
        benchmark,
        commits,
        link,
        cpu,
    })
}

/// The chain of commits that ends with the newest gate: going back, each commit was reached by the
/// newest gate that has it as its head.
fn find_path<'a>(measured: &[Measured<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut newest_by_head: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for one in measured {
        newest_by_head.insert(one.commits.1, one.commits);
    }
    let mut seen = BTreeSet::new();
    let mut path = Vec::new();
    let mut next = measured.last().map(|one| one.commits);
    while let Some(commits) = next.filter(|commits| seen.insert(commits.1)) {
        path.push(commits);
        next = newest_by_head.get(commits.0).copied();
    }
    path.reverse();
    path
}

fn effect_with_interval(metric: &MetricRecord, link: Link, level: f64) -> EffectRecord {
    let (low, high) = link.interval(level);
    metric.effect(link.estimate.exp(), Some(low.exp()), Some(high.exp()))
}
