//! A fleet's nodes beside their peers, as text: outliers first, then the groups, what outliers
//! share, and other notes.

use super::comparison::describe_findings;
use super::style::{Palette, paragraph, quantity, shorten, table};
use pinwise_format::{count, percent, ratio};
use pinwise_record::{FleetGroup, FleetOutlier, FleetReport, OutlierKind};

/// The most nodes in the table; the record has all.
const MAX_NODES: usize = 40;
/// The most rows of a node.
const MAX_ROWS_PER_NODE: usize = 3;
/// The most groups in the list.
const MAX_GROUPS: usize = 12;
/// The most settings that are listed for a group.
const MAX_SETTINGS: usize = 10;
/// The most sentences on what outliers have in common.
const MAX_COMMON_SENTENCES: usize = 10;
/// The width of columns with nodes, and with figures and settings.
const NODE_WIDTH: usize = 16;
const FIGURE_WIDTH: usize = 30;

/// The report for a terminal.
#[must_use]
pub fn render_fleet_report(record: &FleetReport, palette: Palette) -> String {
    let mut text = format!(
        "{}\n{}\n",
        palette.strong(&paragraph("", "", &record.sentence)),
        palette.faint(&paragraph(
            "",
            "",
            &format!(
                "Fleet {}, submitted {}: {} of {} have records, {} all of them.",
                record.fleet,
                record.submitted,
                record.nodes,
                count(record.asked, "node"),
                record.complete
            )
        ))
    );
    text.push_str(&list_groups(&record.groups, palette));
    text.push_str(&format_outliers_table(record, palette));
    text.push_str(&list_common_properties(record, palette));
    text.push_str(&describe_findings(&record.findings, palette));
    text.push_str(&describe_method(record, palette));
    text
}

fn list_groups(groups: &[FleetGroup], palette: Palette) -> String {
    let mut text = format!("\n{}\n", palette.strong("Groups of similar nodes"));
    for (group, number) in groups.iter().zip(1..).take(MAX_GROUPS) {
        let line = format!("{}: {}", group.name, count(group.nodes, "node"));
        let first = format!("  {number:>2}  ");
        text.push_str(&paragraph(&first, "      ", &line));
        text.push('\n');
    }
    if groups.len() > MAX_GROUPS {
        let rest: usize = groups
            .iter()
            .skip(MAX_GROUPS)
            .map(|group| group.nodes)
            .sum();
        let line = format!(
            "and {} more with {}",
            count(groups.len() - MAX_GROUPS, "group"),
            count(rest, "node")
        );
        text.push_str(&format!("      {line}\n"));
    }
    if let [only] = groups {
        let shown = only.identity.iter().filter(|(name, _)| is_listed(name));
        let shown: Vec<String> = shown
            .take(MAX_SETTINGS)
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        if !shown.is_empty() {
            let line = paragraph("      ", "      ", &shown.join(", "));
            text.push_str(&format!("{}\n", palette.faint(&line)));
        }
    }
    text
}

/// Is a setting listed? Those that the group's name contains are not, nor those for programs.
fn is_listed(name: &str) -> bool {
    !matches!(
        name,
        "cpu" | "topology" | "cpu-model" | "vendor" | "architecture"
    )
}

fn format_outliers_table(record: &FleetReport, palette: Palette) -> String {
    if record.outliers.is_empty() {
        return String::new();
    }
    let mut nodes: Vec<&[FleetOutlier]> = Vec::new();
    for node_outliers in record.outliers.chunk_by(|a, b| a.node == b.node) {
        nodes.push(node_outliers);
    }
    let mut rows = Vec::new();
    for node_outliers in nodes.iter().take(MAX_NODES) {
        for (at, outlier) in node_outliers.iter().take(MAX_ROWS_PER_NODE).enumerate() {
            rows.push(format_outlier_row(outlier, at == 0));
        }
        if node_outliers.len() > MAX_ROWS_PER_NODE {
            let more = format!("and {} more", node_outliers.len() - MAX_ROWS_PER_NODE);
            let mut row = vec![String::new(); 6];
            row[1] = more;
            rows.push(row);
        }
    }
    let header = ["node", "figure or setting", "it has", "usual", "ratio", "q"];
    let mut text = format!("\n{}\n{}", palette.strong("Outliers"), table(&header, rows));
    if nodes.len() > MAX_NODES {
        let line = format!(
            "Showing {MAX_NODES} of {}; the record has all (--format json).",
            count(nodes.len(), "node")
        );
        text.push_str(&format!("{}\n", paragraph("  ", "  ", &line)));
    }
    text
}

fn format_outlier_row(outlier: &FleetOutlier, is_first: bool) -> Vec<String> {
    let node = if is_first {
        shorten(&outlier.node, NODE_WIDTH)
    } else {
        String::new()
    };
    let missing = || "–".to_owned();
    let mut row = vec![node, shorten(&outlier.figure, FIGURE_WIDTH)];
    if outlier.kind == OutlierKind::Setting {
        let text =
            |value: &Option<String>| value.as_deref().map_or_else(missing, |v| shorten(v, 12));
        row.push(text(&outlier.setting));
        row.push(text(&outlier.typical_setting));
        row.extend([String::new(), String::new()]);
        return row;
    }
    let figure = |value: Option<f64>| value.map_or_else(missing, |v| quantity(v, &outlier.unit));
    row.push(figure(outlier.value));
    row.push(figure(outlier.typical));
    row.push(outlier.ratio.map_or_else(missing, ratio));
    row.push(outlier.adjusted_p.map_or_else(missing, format_rate));
    row
}

/// Formats a rate; below 0.01 % only its size matters.
fn format_rate(p: f64) -> String {
    if p < 1e-4 {
        "<0.01 %".to_owned()
    } else {
        percent(p)
    }
}

fn list_common_properties(record: &FleetReport, palette: Palette) -> String {
    if record.common.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", palette.strong("What they have in common"));
    for common in record.common.iter().take(MAX_COMMON_SENTENCES) {
        let in_group = if record.groups.len() > 1 {
            format!(" (group {})", common.group + 1)
        } else {
            String::new()
        };
        let line = format!("{}{in_group}", common.sentence);
        text.push_str(&format!("{}\n", paragraph("  • ", "    ", &line)));
    }
    if record.common.len() > MAX_COMMON_SENTENCES {
        let more = record.common.len() - MAX_COMMON_SENTENCES;
        text.push_str(&format!("    and {more} more in the record\n"));
    }
    text
}

fn describe_method(record: &FleetReport, palette: Palette) -> String {
    let line = format!(
        "{} of nodes judged, each against its group's bulk and its tails; of the nodes named for figures at most {} are expected to be so by chance (q: the share at which a figure is just named). {}",
        count(record.judged, "figure"),
        percent(record.false_discovery_rate),
        palette.record(&record.id)
    );
    format!("\n{}\n", paragraph("", "", &line))
}
