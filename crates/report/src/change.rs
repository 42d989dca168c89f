//! The differences between two records, as text.

use super::comparison::{next_step, or_dash};
use super::style::{Palette, paragraph, quantity, shorten, table};
use pinwise_record::{
    ArmShift, ChangeVerdict, ComparedArm, ComparedRecord, DiffRecord, FigureChange,
};

/// The most columns of a figure's name in the table.
const WIDEST_NAME: usize = 18;

/// The differences for a terminal: machines first, then figures, then caveats.
#[must_use]
pub fn render_record_diff(record: &DiffRecord, palette: Palette) -> String {
    let mut text = format!(
        "{}{}\n",
        describe_side("A", &record.a, palette),
        describe_side("B", &record.b, palette)
    );
    for change in &record.machine_changes {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let line = format!(
            "{}: {} in A, {} in B",
            change.what,
            value(&change.a),
            value(&change.b)
        );
        text.push_str(&format!(
            "{}\n",
            palette.warn(&paragraph("  ! ", "    ", &line))
        ));
    }
    if !record.machine_changes.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!(
        "{}\n",
        palette.strong(&paragraph("", "", &record.sentence))
    ));
    text.push_str(&next_step(&record.advice, &record.commands));
    text.push('\n');
    text.push_str(&match record.figures.iter().any(is_arm) {
        true => format_arms_table(&record.figures),
        false => format_figures_table(&record.figures),
    });
    text.push('\n');
    if record.figures.len() > 1 {
        for figure in &record.figures {
            text.push_str(&format!("{}\n", paint_sentence(figure, palette)));
        }
    }
    for caveat in &record.caveats {
        text.push_str(&format!(
            "{}\n",
            palette.faint(&paragraph("  note: ", "        ", caveat))
        ));
    }
    text
}

fn describe_side(letter: &str, side: &ComparedRecord, palette: Palette) -> String {
    let line = format!("{}  {}  {}", side.id, side.host, side.title);
    format!(
        "{}\n",
        palette.faint(&paragraph(&format!("{letter}: "), "   ", &line))
    )
}

const fn is_arm(figure: &FigureChange) -> bool {
    figure.arm_a.is_some() || figure.arm_b.is_some()
}

/// Arms with their own figures and their changes against the baseline; the sentences below have the
/// intervals between the records.
fn format_arms_table(figures: &[FigureChange]) -> String {
    let unit = figures.iter().find(|figure| figure.over.is_none());
    let unit = unit.map_or("", |figure| figure.unit.as_str());
    let value = |arm: &Option<ComparedArm>| {
        let estimate = arm.as_ref().and_then(|arm| arm.estimate);
        estimate.map_or_else(|| "–".to_owned(), |e| quantity(e.value, unit))
    };
    let change = |arm: &Option<ComparedArm>| {
        let effect = arm.as_ref().and_then(|arm| arm.effect.as_ref());
        effect
            .map_or("–", |effect| or_dash(&effect.text))
            .to_owned()
    };
    let (contrasts, own): (Vec<_>, Vec<_>) = figures.iter().partition(|f| f.over.is_some());
    let rows = own.into_iter().chain(contrasts).map(|figure| {
        let is_baseline = figure.over.is_none();
        let meaning = match &figure.shift {
            _ if is_baseline => "baseline".to_owned(),
            Some(ArmShift::BaselineMoved) => {
                let baseline = figure.over.as_deref().unwrap_or("the baseline");
                format!("unchanged; {baseline} moved")
            }
            Some(shift) => shift.as_str().replace('_', " "),
            None => name_verdict(figure.verdict).to_owned(),
        };
        let changes = [&figure.arm_a, &figure.arm_b].map(|arm| match is_baseline {
            true => String::new(),
            false => change(arm),
        });
        let [in_a, in_b] = changes;
        vec![
            shorten(&figure.name, WIDEST_NAME),
            value(&figure.arm_a),
            value(&figure.arm_b),
            in_a,
            in_b,
            meaning,
        ]
    });
    let heads = ["", "A", "B", "change in A", "change in B", ""];
    table(&heads, rows.collect())
}

fn format_figures_table(figures: &[FigureChange]) -> String {
    let rows = figures.iter().map(|figure| {
        let ratio =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.4}"));
        let value = |value: Option<f64>| match (&figure.over, value) {
            (None, Some(value)) => quantity(value, &figure.unit),
            _ => ratio(value),
        };
        let interval = match (figure.low, figure.high) {
            (Some(low), Some(high)) => format!("{low:.4}–{high:.4}"),
            _ => "–".to_owned(),
        };
        vec![
            shorten(&figure.name, WIDEST_NAME),
            value(figure.a),
            value(figure.b),
            ratio(figure.ratio),
            interval,
            name_verdict(figure.verdict).to_owned(),
        ]
    });
    table(&["", "A", "B", "B/A", "interval", "B is"], rows.collect())
}

const fn name_verdict(verdict: ChangeVerdict) -> &'static str {
    match verdict {
        ChangeVerdict::Lower => "lower",
        ChangeVerdict::Higher => "higher",
        ChangeVerdict::Same => "the same",
        ChangeVerdict::CannotTell => "inconclusive",
    }
}

/// Highlights a figure that changed. Not green or red: whether a change is good depends on
/// the metric.
fn paint_sentence(figure: &FigureChange, palette: Palette) -> String {
    let line = paragraph("  • ", "    ", &figure.sentence);
    match figure.verdict {
        ChangeVerdict::Lower | ChangeVerdict::Higher => palette.strong(&line),
        ChangeVerdict::Same => line,
        ChangeVerdict::CannotTell => palette.faint(&line),
    }
}
