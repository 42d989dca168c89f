//! Further findings on a fleet: what is missing, and which part of the answer to distrust.

use std::collections::BTreeSet;

use crate::attributes::{Attribute, SHAPE};
use crate::groups::Group;
use crate::nodes::Nodes;
use crate::words::names;
use pinwise_format::count;
use pinwise_record::{Finding, FleetOutlier, FleetRecord, Severity};
use pinwise_stats::outliers::MIN_MEMBERS;

/// Names listed in a sentence.
const MAX_NAMES: usize = 8;
/// Reasons listed one by one.
const MAX_REASONS: usize = 10;
/// Clocks further apart than this make the order of records uncertain.
const CLOCK_S: f64 = 2.0;

/// All findings, the heaviest first.
pub(crate) fn findings(
    nodes: &Nodes,
    groups: &[Group],
    outliers: &[FleetOutlier],
    record: Option<&FleetRecord>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(record) = record {
        found.extend(missing(nodes, record));
        found.extend(left_out_finding(record));
        found.extend(check_planted(nodes, record, outliers));
    }
    found.extend(lacking(nodes));
    found.extend(check_skipped(nodes));
    found.extend(clocks(nodes));
    found.extend(restart_finding(nodes));
    found.extend(small_groups(groups));
    found.extend(free(nodes, groups));
    if nodes.not_numbers > 0 {
        found.push(Finding::new(
            "not-a-number",
            Severity::Warning,
            format!(
                "{} of nodes are not finite numbers and were excluded.",
                count(nodes.not_numbers, "figure")
            ),
            "",
        ));
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
    found
}

fn missing(nodes: &Nodes, record: &FleetRecord) -> Option<Finding> {
    let named: BTreeSet<&String> = record.nodes.iter().collect();
    let absent: Vec<&&String> = named.iter().filter(|node| !nodes.has(node)).collect();
    let many = absent.len().max(record.asked.saturating_sub(nodes.len()));
    if many == 0 {
        return None;
    }
    let verb = if many == 1 { "has" } else { "have" };
    let who = if absent.is_empty() {
        String::new()
    } else {
        format!(": {}", names(&absent, MAX_NAMES))
    };
    let finding = Finding::new(
        "missing-nodes",
        Severity::Problem,
        format!(
            "{many} of {} {verb} no record{who}.",
            count(record.asked, "node")
        ),
        format!(
            "pinwise fleet status {0} shows why; pinwise fleet collect {0} collects finished records, pinwise fleet resume {0} runs what is missing.",
            record.id
        ),
    );
    Some(finding.with_evidence("nodes", many))
}

fn left_out_finding(record: &FleetRecord) -> Option<Finding> {
    let many = record.left_out.len();
    (many > 0).then(|| {
        let what = count(many, "node");
        let why = names(&record.left_out, MAX_NAMES);
        let sentence = format!("{what} did not answer: {why}.");
        Finding::new("left-out", Severity::Warning, sentence, "").with_evidence("nodes", many)
    })
}

/// For a simulated fleet, whose faults are known.
fn check_planted(
    nodes: &Nodes,
    record: &FleetRecord,
    outliers: &[FleetOutlier],
) -> Option<Finding> {
    let planted: BTreeSet<&str> = record
        .planted
        .iter()
        .map(|fault| fault.node.as_str())
        .filter(|node| nodes.has(node))
        .collect();
    if record.launcher != "simulated" && planted.is_empty() {
        return None;
    }
    let named: BTreeSet<&str> = outliers.iter().map(|o| o.node.as_str()).collect();
    let right = named.intersection(&planted).count();
    let sentence = format!(
        "The fleet is simulated: {right} of {} with a planted fault are reported, and {} without.",
        count(planted.len(), "node"),
        named.len() - right,
    );
    let finding = Finding::new("planted-faults", Severity::Note, sentence, "");
    Some(
        finding
            .with_evidence("planted", planted.len())
            .with_evidence("found", right)
            .with_evidence("false", named.len() - right),
    )
}

fn lacking(nodes: &Nodes) -> Vec<Finding> {
    let mut reasons: Vec<_> = nodes.lacking.iter().collect();
    reasons.sort_by_key(|(_, lacking)| std::cmp::Reverse(lacking.len()));
    let mut found: Vec<Finding> = reasons
        .iter()
        .take(MAX_REASONS)
        .map(|((step, why), lacking)| {
            let who: Vec<&String> = lacking.iter().map(|at| &nodes.names[*at]).collect();
            let sentence = format!(
                "No record of step {step} on {} ({}): {why}",
                count(lacking.len(), "node"),
                names(&who, MAX_NAMES)
            );
            let advice = "pinwise fleet resume runs what is missing.";
            Finding::new("failed-step", Severity::Warning, sentence, advice)
                .with_weight(7)
                .with_evidence("nodes", lacking.len())
        })
        .collect();
    if reasons.len() > MAX_REASONS {
        let rest: BTreeSet<usize> = reasons
            .iter()
            .skip(MAX_REASONS)
            .flat_map(|(_, lacking)| lacking.iter().copied())
            .collect();
        let sentence = format!(
            "{} lack steps for {} other reasons; pinwise fleet status has them.",
            count(rest.len(), "node"),
            reasons.len() - MAX_REASONS
        );
        found.push(Finding::new("failed-step", Severity::Warning, sentence, ""));
    }
    found
}

fn check_skipped(nodes: &Nodes) -> Option<Finding> {
    let many = nodes.skipped.len();
    (many > 0).then(|| {
        let listed: Vec<String> = nodes
            .skipped
            .iter()
            .map(|skipped| format!("{} ({})", skipped.what, skipped.why))
            .collect();
        let sentence = format!(
            "{} could not be used: {}.",
            count(many, "record"),
            names(&listed, MAX_NAMES)
        );
        Finding::new("skipped-records", Severity::Warning, sentence, "")
            .with_evidence("records", many)
    })
}

fn clocks(nodes: &Nodes) -> Option<Finding> {
    let apart = nodes.clocks.iter().zip(&nodes.names);
    let mut apart: Vec<(f64, &String)> = apart
        .filter(|(ahead, _)| ahead.abs() > CLOCK_S)
        .map(|(ahead, node)| (*ahead, node))
        .collect();
    apart.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let (most, _) = *apart.first()?;
    let who: Vec<String> = apart
        .iter()
        .map(|(ahead, node)| format!("{node} {ahead:+.0} s"))
        .collect();
    let finding = Finding::new(
        "clocks",
        Severity::Warning,
        format!(
            "The clock of {} is more than {CLOCK_S:.0} s off: {}.",
            count(apart.len(), "node"),
            names(&who, MAX_NAMES)
        ),
        "Times of their records are by their own clocks; measurements are not affected. Run a time service (NTP) there.",
    );
    Some(
        finding
            .with_evidence("nodes", apart.len())
            .with_evidence("most_s", most),
    )
}

fn restart_finding(nodes: &Nodes) -> Option<Finding> {
    let many = nodes.begun_again.len();
    (many > 0).then(|| {
        let who: Vec<&String> = nodes
            .begun_again
            .iter()
            .map(|at| &nodes.names[*at])
            .collect();
        let verb = if many == 1 { "was" } else { "were" };
        let sentence = format!(
            "{} {verb} started more than once: {}. Each step counts once.",
            count(many, "node"),
            names(&who, MAX_NAMES)
        );
        Finding::new("begun-again", Severity::Note, sentence, "").with_evidence("nodes", many)
    })
}

fn small_groups(groups: &[Group]) -> Option<Finding> {
    let small: Vec<&Group> = groups
        .iter()
        .filter(|g| g.nodes.len() < MIN_MEMBERS)
        .collect();
    let many: usize = small.iter().map(|group| group.nodes.len()).sum();
    (many > 0).then(|| {
        let listed: Vec<&str> = small.iter().map(|group| group.name.as_str()).collect();
        let sentence = format!(
            "{} are in groups of fewer than {MIN_MEMBERS}, whose figures are shown but not judged: {}.",
            count(many, "node"),
            names(&listed, 4)
        );
        let advice = "Compare two groups with pinwise fleet diff.";
        Finding::new("small-groups", Severity::Note, sentence, advice).with_evidence("nodes", many)
    })
}

/// Settings that vary freely: none of their values is an anomaly.
fn free(nodes: &Nodes, groups: &[Group]) -> Option<Finding> {
    let largest = groups.first()?;
    let columns = nodes.attributes.columns.iter().zip(&largest.usual);
    let is_reported =
        |column: &Attribute| column.name != SHAPE && column.count_values(&largest.nodes).len() > 1;
    let free: Vec<&String> = columns
        .filter(|(column, usual)| usual.is_none() && is_reported(column))
        .map(|(column, _)| &column.name)
        .collect();
    (!free.is_empty()).then(|| {
        let sentence = format!(
            "Most nodes of the largest group share no value of {}: it is not compared.",
            names(&free, MAX_NAMES)
        );
        Finding::new("free-settings", Severity::Note, sentence, "").with_weight(1)
    })
}
