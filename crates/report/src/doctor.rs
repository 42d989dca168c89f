//! What `doctor` found, as text.

use super::comparison::describe_findings;
use super::style::{Palette, paragraph};
use pinwise_record::Doctor;

/// The doctor's findings for a terminal.
#[must_use]
pub fn render_doctor(record: &Doctor, palette: Palette) -> String {
    let mut text = String::new();
    if record.findings.is_empty() {
        text.push_str(&palette.good("Found nothing that distorts measurements here."));
        text.push('\n');
    } else {
        text.push_str(describe_findings(&record.findings, palette).trim_start());
    }
    if !record.passed.is_empty() {
        let line = format!(
            "Checked, fine: {}.",
            record.passed.join(", ").replace('_', " ")
        );
        text.push_str(&format!("\n{}\n", paragraph("", "  ", &line)));
    }
    if !record.unavailable.is_empty() {
        let listed: Vec<String> = record
            .unavailable
            .iter()
            .map(|(check, reason)| format!("{check} ({reason})"))
            .collect();
        let line = format!("Could not be checked: {}.", listed.join(", "));
        text.push_str(&format!("{}\n", palette.faint(&paragraph("", "  ", &line))));
    }
    text
}
