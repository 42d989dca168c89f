//! Further findings on a fleet: missing nodes and steps, and limits of the comparison.

use std::collections::BTreeSet;

use crate::attributes::{Attribute, SHAPE};
use crate::groups::Group;
use crate::nodes::Nodes;
use crate::words::join_names;
use pinwise_format::count;
use pinwise_record::{Finding, FleetOutlier, FleetRecord, Severity};
use pinwise_stats::outliers::MIN_MEMBERS;

/// Maximum number of names listed in a sentence.
const MAX_NAMES: usize = 8;
/// Maximum number of reasons of missing steps that get a finding each.
const MAX_REASONS: usize = 10;
/// Clocks off by more than this, in seconds, are reported: the order of records is uncertain.
const MAX_CLOCK_OFFSET_S: f64 = 2.0;

/// All findings, those of the greatest weight first.
pub(crate) fn list_findings(
    nodes: &Nodes,
    groups: &[Group],
    outliers: &[FleetOutlier],
    record: Option<&FleetRecord>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(record) = record {
        found.extend(find_missing_nodes(nodes, record));
        found.extend(find_left_out(record));
        found.extend(check_planted_faults(nodes, record, outliers));
    }
    found.extend(find_failed_steps(nodes));
    found.extend(find_skipped_records(nodes));
    found.extend(find_wrong_clocks(nodes));
    found.extend(find_restarted(nodes));
    found.extend(find_small_groups(groups));
    found.extend(find_free_settings(nodes, groups));
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

fn find_missing_nodes(nodes: &Nodes, record: &FleetRecord) -> Option<Finding> {
    let named: BTreeSet<&String> = record.nodes.iter().collect();
    let absent: Vec<&&String> = named.iter().filter(|node| !nodes.has(node)).collect();
    let number = absent.len().max(record.asked.saturating_sub(nodes.len()));
    if number == 0 {
        return None;
    }
    let verb = if number == 1 { "has" } else { "have" };
    let who = if absent.is_empty() {
        String::new()
    } else {
        format!(": {}", join_names(&absent, MAX_NAMES))
    };
    let finding = Finding::new(
        "missing-nodes",
        Severity::Problem,
        format!(
            "{number} of {} {verb} no record{who}.",
            count(record.asked, "node")
        ),
        format!(
            "pinwise fleet status {0} shows why; pinwise fleet collect {0} collects finished records, pinwise fleet resume {0} runs what is missing.",
            record.id
        ),
    );
    Some(finding.with_evidence("nodes", number))
}

fn find_left_out(record: &FleetRecord) -> Option<Finding> {
    let number = record.left_out.len();
    (number > 0).then(|| {
        let what = count(number, "node");
        let why = join_names(&record.left_out, MAX_NAMES);
        let sentence = format!("{what} did not answer: {why}.");
        Finding::new("left-out", Severity::Warning, sentence, "").with_evidence("nodes", number)
    })
}

/// Compares the outliers with the known faults of a simulated fleet.
fn check_planted_faults(
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

fn find_failed_steps(nodes: &Nodes) -> Vec<Finding> {
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
                join_names(&who, MAX_NAMES)
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

fn find_skipped_records(nodes: &Nodes) -> Option<Finding> {
    let number = nodes.skipped.len();
    (number > 0).then(|| {
        let listed: Vec<String> = nodes
            .skipped
            .iter()
            .map(|skipped| format!("{} ({})", skipped.what, skipped.why))
            .collect();
        let sentence = format!(
            "{} could not be used: {}.",
            count(number, "record"),
            join_names(&listed, MAX_NAMES)
        );
        Finding::new("skipped-records", Severity::Warning, sentence, "")
            .with_evidence("records", number)
    })
}

fn find_wrong_clocks(nodes: &Nodes) -> Option<Finding> {
    let clocks = nodes.clocks.iter().zip(&nodes.names);
    let mut wrong: Vec<(f64, &String)> = clocks
        .filter(|(ahead, _)| ahead.abs() > MAX_CLOCK_OFFSET_S)
        .map(|(ahead, node)| (*ahead, node))
        .collect();
    wrong.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let (most, _) = *wrong.first()?;
    let who: Vec<String> = wrong
        .iter()
        .map(|(ahead, node)| format!("{node} {ahead:+.0} s"))
        .collect();
    let finding = Finding::new(
        "clocks",
        Severity::Warning,
        format!(
            "The clock of {} is more than {MAX_CLOCK_OFFSET_S:.0} s off: {}.",
            count(wrong.len(), "node"),
            join_names(&who, MAX_NAMES)
        ),
        "Times of their records are by their own clocks; measurements are not affected. Run a time service (NTP) there.",
    );
    Some(
        finding
            .with_evidence("nodes", wrong.len())
            .with_evidence("most_s", most),
    )
}

fn find_restarted(nodes: &Nodes) -> Option<Finding> {
    let number = nodes.restarted.len();
    (number > 0).then(|| {
        let who: Vec<&String> = nodes.restarted.iter().map(|at| &nodes.names[*at]).collect();
        let verb = if number == 1 { "was" } else { "were" };
        let sentence = format!(
            "{} {verb} started more than once: {}. Each step counts once.",
            count(number, "node"),
            join_names(&who, MAX_NAMES)
        );
        Finding::new("begun-again", Severity::Note, sentence, "").with_evidence("nodes", number)
    })
}

fn find_small_groups(groups: &[Group]) -> Option<Finding> {
    let small: Vec<&Group> = groups
        .iter()
        .filter(|g| g.nodes.len() < MIN_MEMBERS)
        .collect();
    let number: usize = small.iter().map(|group| group.nodes.len()).sum();
    (number > 0).then(|| {
        let listed: Vec<&str> = small.iter().map(|group| group.name.as_str()).collect();
        let sentence = format!(
            "{} are in groups of fewer than {MIN_MEMBERS}, whose figures are shown but not judged: {}.",
            count(number, "node"),
            join_names(&listed, 4)
        );
        let advice = "Compare two groups with pinwise fleet diff.";
        Finding::new("small-groups", Severity::Note, sentence, advice).with_evidence("nodes", number)
    })
}

/// Finds settings that vary freely, so that none of their values is an anomaly.
fn find_free_settings(nodes: &Nodes, groups: &[Group]) -> Option<Finding> {
    let largest = groups.first()?;
    let columns = nodes.attributes.columns.iter().zip(&largest.usual);
    let is_reported =
        |column: &Attribute| column.name != SHAPE && column.count_values(&largest.nodes).len() > 1;
    let free_settings: Vec<&String> = columns
        .filter(|(column, usual)| usual.is_none() && is_reported(column))
        .map(|(column, _)| &column.name)
        .collect();
    (!free_settings.is_empty()).then(|| {
        let sentence = format!(
            "Most nodes of the largest group share no value of {}: it is not compared.",
            join_names(&free_settings, MAX_NAMES)
        );
        Finding::new("free-settings", Severity::Note, sentence, "").with_weight(1)
    })
}
