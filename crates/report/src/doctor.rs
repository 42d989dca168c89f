//! What `doctor` found, as text.

use super::comparison::describe_findings;
use super::style::{Palette, paragraph};
use pinwise_format::count;
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
    if record.findings.is_empty() {
        let fine = palette.good("Found nothing that distorts measurements here.");
        return format!("{text}\n{fine}\n");
    }
    text += &describe_findings(record.findings.iter().rev(), palette);
    let grave = record.findings.iter();
    let grave = grave
        .filter(|found| found.severity > Severity::Note)
        .count();
    let answer = match grave {
        0 => palette.good("Fit for benchmarks: there are notes, but nothing distorts them."),
        _ => palette.warn(&paragraph(
            "",
            "",
            &format!(
                "Not fit for timing one program after the other: {} {} against it, the gravest just above. pinwise compare runs them in turns, which copes with load; its intervals say how well.",
                count(grave, "finding"),
                if grave == 1 { "speaks" } else { "speak" }
            ),
        )),
    };
    format!("{text}\n{answer}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_whether_the_machine_is_fit_for_benchmarks() {
        let text = include_str!("../../../tests/data/records/doctor.json");
        let mut record: Doctor = serde_json::from_str(text).unwrap();
        let last_lines = |record: &Doctor| {
            let text = render_doctor(record, Palette::default());
            text.trim_end().rsplit("\n\n").next().unwrap().to_owned()
        };
        record.findings.truncate(1);
        record.findings[0].severity = Severity::Warning;
        let unfit = last_lines(&record).replace('\n', " ");
        let start = "Not fit for timing one program after the other: 1 finding speaks against it";
        assert!(unfit.starts_with(start), "{unfit}");
        record.findings[0].severity = Severity::Note;
        assert!(last_lines(&record).starts_with("Fit for benchmarks"));
        record.findings.clear();
        assert!(last_lines(&record).starts_with("Found nothing"));
    }
}
