//! The gates of a benchmark, chained from commit to commit.
//!
//! Every ratio was measured side by side on one host, so that no change of machine affects any,
//! whichever hosts the gates ran on. It is the estimate that does not depend on when its gate
//! stopped: gates pass when their ratios are low, and a sum of those would fall from commit to
//! commit.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_format::{count, percent};
use pinwise_record::{
    EffectRecord, GateBenchmark, GateHistory, GateLink, GateRecord, HistoryChange, HistoryStep,
    MetricRecord,
};
use pinwise_stats::chain::{Change, Link, changes};
use pinwise_workload::Metric;

/// Two-sided error over all changes of a history.
const ALPHA: f64 = 0.05;

/// What a gate says of the benchmark, between two commits.
struct Measured<'a> {
    gate: &'a GateRecord,
    benchmark: &'a GateBenchmark,
    commits: (&'a str, &'a str),
    link: Link,
    /// The same for its CPU time, if its gate judged that.
    cpu: Option<Link>,
}

/// The history of a benchmark that ends with the newest gate of two commits, by
/// gates in any order; `None` without any.
#[must_use]
pub fn history(gates: &[GateRecord], benchmark: &str) -> Option<GateHistory> {
    let mut measured: Vec<Measured<'_>> = gates
        .iter()
        .filter_map(|gate| read_measured(gate, benchmark))
        .collect();
    // Of gates in one second, the gate of a commit comes before the gates that build on it.
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
    let path = path(&measured);
    let is_on_path = |one: &&Measured<'_>| path.contains(&one.commits);
    let is_by_cpu = is_surer_by_cpu(measured.iter().filter(is_on_path));
    let metric = match is_by_cpu {
        true => MetricRecord::new(&Metric::cpu(), ""),
        false => metric,
    };
    for one in measured.iter_mut().filter(|_| is_by_cpu) {
        one.link = one.cpu.unwrap_or(one.link);
    }
    let mut left_out: usize = gates.iter().filter(|gate| has(gate, benchmark)).count();
    let mut links: Vec<Link> = Vec::new();
    let mut steps = Vec::new();
    for commits in &path {
        let of_step: Vec<&Measured<'_>> = measured
            .iter()
            .filter(|one| one.commits == *commits)
            .collect();
        let each: Vec<Link> = of_step.iter().map(|one| one.link).collect();
        let (link, between) = Link::pool(&each)?;
        links.push(link);
        left_out -= of_step.len();
        steps.push(HistoryStep {
            base: commits.0.to_owned(),
            head: commits.1.to_owned(),
            records: of_step.iter().map(|one| one.gate.id.clone()).collect(),
            started: of_step.last()?.gate.started.clone(),
            effect: effect(&metric, link, ALPHA),
            between,
            since_first: effect(&metric, Link::sum(&links), ALPHA),
        });
    }
    let changes = changes(&links, ALPHA);
    let changes: Vec<HistoryChange> = changes
        .iter()
        .map(|change| record_change(change, &path, &metric))
        .collect();
    Some(GateHistory {
        benchmark: benchmark.to_owned(),
        suite,
        sentence: match changes.len() {
            0 => "No change is sure.".to_owned(),
            1 => "1 change is sure.".to_owned(),
            many => format!("{many} changes are sure."),
        },
        method: method(left_out, &steps, is_by_cpu),
        changes,
        metric,
        alpha: ALPHA,
        steps,
        left_out,
    })
}

fn record_change(change: &Change, path: &[(&str, &str)], metric: &MetricRecord) -> HistoryChange {
    let steps = change.last - change.first + 1;
    let effect = effect(metric, change.whole, change.level);
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

fn method(left_out: usize, steps: &[HistoryStep], is_by_cpu: bool) -> String {
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

/// CPU time replaces a figure whose standard error is more than this many times its own.
const CLEARLY_SURER: f64 = 2.0;

/// Do all gates of a chain have CPU time, and is it known clearly better than their figure? The
/// widths of intervals decide that, never their positions.
fn is_surer_by_cpu<'a>(chain: impl Iterator<Item = &'a Measured<'a>>) -> bool {
    let errors: Option<Vec<(f64, f64)>> = chain
        .map(|one| Some((one.cpu?.error, one.link.error)))
        .collect();
    let errors = errors.unwrap_or_default();
    let sum = |of: fn(&(f64, f64)) -> f64| errors.iter().map(|pair| of(pair).powi(2)).sum::<f64>();
    CLEARLY_SURER.powi(2) * sum(|pair| pair.0) < sum(|pair| pair.1)
}

fn has(gate: &GateRecord, benchmark: &str) -> bool {
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

/// From the newest gate back, always through the newest gate that led to a commit.
fn path<'a>(measured: &[Measured<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut led_to: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for one in measured {
        led_to.insert(one.commits.1, one.commits);
    }
    let mut seen = BTreeSet::new();
    let mut path = Vec::new();
    let mut next = measured.last().map(|one| one.commits);
    while let Some(commits) = next.filter(|commits| seen.insert(commits.1)) {
        path.push(commits);
        next = led_to.get(commits.0).copied();
    }
    path.reverse();
    path
}

fn effect(metric: &MetricRecord, link: Link, level: f64) -> EffectRecord {
    let (low, high) = link.interval(level);
    metric.effect(link.estimate.exp(), Some(low.exp()), Some(high.exp()))
}
