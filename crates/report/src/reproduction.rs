//! Reproduced field reports as text: what was reported, the result here, and the reason.

use super::Palette;
use super::comparison::next_step;
use super::style::{paragraph, visible};
use pinwise_record::{ClaimRecord, ClaimVerdict, ExperimentRecord, Reproduction};

/// A report of the list.
#[derive(Debug, Clone, Copy)]
pub struct ReportRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// When and on what machine it was made.
    pub machine: &'a str,
    /// Its experiments.
    pub experiments: &'a [&'a str],
}

/// The list of field reports.
#[must_use]
pub fn render_report_list(rows: &[ReportRow<'_>]) -> String {
    let mut out = String::new();
    for row in rows {
        out += &format!("{}\n", visible(row.name));
        out += &paragraph("  ", "  ", &format!("{}.", row.machine));
        out += "\n";
        out += &paragraph("  ", "  ", &row.experiments.join(", "));
        out += "\n";
    }
    out
}

/// The results of the experiments.
#[must_use]
pub fn render_reproduction(record: &Reproduction, palette: Palette) -> String {
    let mut out = String::new();
    for report in &record.reports {
        out += &palette.strong(&visible(&report.name));
        out += "\n";
        out += &paragraph("", "", &report.machine);
        out += "\n";
        for experiment in &report.experiments {
            out += &describe_experiment(experiment, palette);
        }
        if !report.assumed.is_empty() {
            out += "\n  Assumed, not in the report:\n";
        }
        for assumed in &report.assumed {
            out += &paragraph("  - ", "    ", assumed);
            out += "\n";
        }
        out += "\n";
    }
    if record.interrupted {
        out += "Interrupted: showing finished experiments.\n";
    }
    out += &palette.strong(&paragraph("", "", &visible(&record.sentence)));
    out + "\n" + &next_step(&visible(&record.advice), &[])
}

fn describe_experiment(experiment: &ExperimentRecord, palette: Palette) -> String {
    let title = format!("{}: {}", experiment.name, experiment.question);
    let mut out = format!("\n{}\n", paragraph("  ", "  ", &title));
    for claim in &experiment.claims {
        out += &describe_claim(claim, palette);
    }
    out
}

fn describe_claim(claim: &ClaimRecord, palette: Palette) -> String {
    let word = match claim.verdict {
        ClaimVerdict::Reproduced => "reproduced",
        ClaimVerdict::Consistent => "consistent",
        ClaimVerdict::Contradicted => "contradicted",
        ClaimVerdict::Given => "given",
        ClaimVerdict::NotHere => "not here",
    };
    let mark = match claim.verdict {
        ClaimVerdict::Reproduced | ClaimVerdict::Consistent => palette.good(word),
        ClaimVerdict::Contradicted => palette.bad(word),
        ClaimVerdict::Given | ClaimVerdict::NotHere => palette.faint(word),
    };
    let why = paragraph("      ", "      ", &format!("{word}: {}", claim.why));
    let figures = match &claim.measured {
        Some(measured) => format!("reported {}, here {measured}", claim.reported),
        None => format!("reported {}", claim.reported),
    };
    format!(
        "{}\n{}\n{}\n",
        paragraph("    ", "      ", &claim.claim),
        paragraph("      ", "      ", &figures),
        why.replacen(word, &mark, 1)
    )
}
