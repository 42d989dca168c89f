//! What `doctor` found, as text.

use super::comparison::describe_findings;
use super::style::{Palette, paragraph};
use pinwise_record::Doctor;

/// The doctor's findings for a terminal, the gravest last, beside the prompt.
#[must_use]
pub fn render_doctor(record: &Doctor, palette: Palette) -> String {
    let mut text = String::new();
    if !record.passed.is_empty() {
        let line = format!(
            "Checked, fine: {}.",
            record.passed.join(", ").replace('_', " ")
        );
        text.push_str(&format!("{}\n", palette.faint(&paragraph("", "  ", &line))));
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
    if record.findings.is_empty() {
        let fine = palette.good("Found nothing that distorts measurements here.");
        return format!("{text}\n{fine}\n");
    }
    text + &describe_findings(record.findings.iter().rev(), palette)
}
