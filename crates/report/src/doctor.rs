//! What `doctor` found, as text.

use super::comparison::{describe_findings, next_step};
use super::style::{Palette, paragraph};
use pinwise_record::{Doctor, Severity};

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
            .map(|(check, reason)| format!("{} ({reason})", check.replace('_', " ")))
            .collect();
        let line = format!("Could not be checked: {}.", listed.join(", "));
        text.push_str(&format!("{}\n", palette.faint(&paragraph("", "  ", &line))));
    }
    text += &describe_findings(record.findings.iter().rev(), palette);
    let has_grave = record
        .findings
        .iter()
        .any(|found| found.severity > Severity::Note);
    let answer = paragraph("", "", &record.answer.sentence);
    let answer = match has_grave {
        true => palette.warn(&answer),
        false => palette.good(&answer),
    };
    let next = next_step(&record.answer.advice, &[]);
    format!("{text}\n{answer}\n{next}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_whether_the_machine_is_fit_for_benchmarks() {
        let text = include_str!("../../../tests/data/records/doctor.json");
        let mut record: Doctor = serde_json::from_str(text).unwrap();
        let last_lines = |record: &mut Doctor| {
            record.conclude();
            let text = render_doctor(record, Palette::default());
            text.trim_end().rsplit("\n\n").next().unwrap().to_owned()
        };
        record.findings.truncate(1);
        record.findings[0].severity = Severity::Warning;
        "cpu_pressure".clone_into(&mut record.findings[0].check);
        let unfit = last_lines(&mut record).replace('\n', " ");
        let start = "Not fit for timing one program after the other: CPU pressure speaks against it. → Run both";
        assert!(unfit.starts_with(start), "{unfit}");
        record.findings[0].severity = Severity::Note;
        assert!(last_lines(&mut record).starts_with("Fit for benchmarks"));
        record.findings.clear();
        assert!(last_lines(&mut record).starts_with("Found nothing"));
    }
}
