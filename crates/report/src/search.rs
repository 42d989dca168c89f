//! A search as text: the best arms, failures, features to which the program is sensitive, and the
//! effort.

mod rows;
mod words;

use std::time::Duration;

use super::comparison::{describe_findings, format_heading, next_step};
use super::style::{Palette, columns, lay_out_for_columns, paragraph, table_without, visible};
use pinwise_format::{count, duration, percent};
use pinwise_record::{EffectRecord, PredictedArm, SearchAnswer, SearchArm, SearchRecord, Stopped};
pub use rows::list_search_rows;
use words::{describe_space, format_value, format_value_range};

/// The most arms in the table, beside `os-default`.
const MAX_ARMS: usize = 8;
/// The most failed arms that are listed.
const MAX_FAILED_ARMS: usize = 4;
/// A feature is listed if its whole range changes the metric by at least this many per cent.
const MIN_EFFECT: f64 = 1.0;
/// The most features that are listed.
const MAX_FEATURES: usize = 5;
/// The heading of the column with names for `--place`.
pub(super) const SHAPE: &str = "shape (--place)";

/// The whole search for a terminal.
#[must_use]
pub fn render_search(record: &SearchRecord, palette: Palette) -> String {
    let mut text = format_heading(&record.title(), &record.host, Some(&record.metric), palette);
    if !record.predictions.is_empty() {
        text.push('\n');
        text.push_str(&format_arms_table(record));
    }
    text.push_str(&describe_failures(record));
    text.push_str(&list_sensitivities(record, palette));
    let beside = record.verdict.beside.iter().cloned();
    for sentence in beside
        .chain(describe_least_resource(record))
        .chain(describe_truth(record))
    {
        text.push_str(&format!("\n{}\n", paragraph("", "", &visible(&sentence))));
    }
    text.push_str(&describe_findings(&record.findings, palette));
    text.push('\n');
    text.push_str(&palette.faint(&describe_method(record, palette)));
    text.push_str("\n\n");
    // Last, next to the prompt.
    text.push_str(&describe_verdict(record, palette));
    text
}

fn describe_verdict(record: &SearchRecord, palette: Palette) -> String {
    let sentence = match record.verdict.sentence.as_str() {
        "" => "No verdict.".to_owned(),
        sentence => paragraph("", "", &visible(sentence)),
    };
    let painted = match record.verdict.kind {
        _ if record.stopped.is_none() => palette.warn(&sentence),
        SearchAnswer::Best | SearchAnswer::LeaveAlone => palette.good(&sentence),
        SearchAnswer::DoesNotMatter => palette.strong(&sentence),
        SearchAnswer::Undecided => palette.warn(&sentence),
    };
    let mut text = format!("{painted}\n");
    text.push_str(&next_step(&record.verdict.advice, &record.verdict.commands));
    text
}

/// The arms that are expected to be best, and `os-default`.
fn select_arms(record: &SearchRecord) -> Vec<&PredictedArm> {
    let default = record.arms.first().map(|arm| arm.name.as_str());
    let mut all: Vec<&PredictedArm> = record.predictions.iter().collect();
    all.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    let is_default = |arm: &PredictedArm| Some(arm.arm.as_str()) == default;
    let mut taken = 0;
    all.retain(|arm| {
        taken += usize::from(!is_default(arm));
        is_default(arm) || taken <= MAX_ARMS
    });
    all
}

fn format_arms_table(record: &SearchRecord) -> String {
    let shown = select_arms(record);
    let header = [
        "placement",
        "runs",
        "measured",
        "expected",
        "90 %",
        "change",
        SHAPE,
    ];
    let rows = shown
        .iter()
        .map(|arm| format_arm_row(record, arm))
        .collect();
    let mut text = format_placements_table(&["runs", "measured", "90 %"], &header, rows);
    let left = record.predictions.len() - shown.len();
    if left > 0 {
        let all = record.predictions.iter();
        let worst = all.max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        text.push_str(&format!(
            "  and {left} more, the worst expected at {} against os-default\n",
            worst.map_or("–", |worst| &worst.change)
        ));
    }
    text
}

fn format_arm_row(record: &SearchRecord, arm: &PredictedArm) -> Vec<String> {
    let candidate = record.arms.iter().find(|a| a.name == arm.arm);
    let label = candidate.map_or(&arm.arm, |a| &a.label);
    let mark = match record.recommended_arm() {
        None => "",
        Some(best) if best.name == arm.arm => "* ",
        Some(_) => "  ",
    };
    let measured = arm.measured.map(|m| format_value(record, m.value));
    vec![
        format!("{mark}{label}"),
        arm.runs.to_string(),
        measured.unwrap_or_else(|| "–".to_owned()),
        format_value(record, arm.predicted),
        format_value_range(record, arm.low, arm.high),
        arm.change.clone(),
        format_shape_unless_shown(&arm.arm, label),
    ]
}

/// A table of placements. The column with names for `--place` is wide: it appears in files, and in
/// a terminal that is wide enough. The columns `optional` are left out next.
pub(super) fn format_placements_table(
    optional: &[&str],
    header: &[&str],
    rows: Vec<Vec<String>>,
) -> String {
    let optional = [&[SHAPE], optional].concat();
    lay_out_for_columns(Some(columns()), || {
        table_without(&optional, &["placement"], header, rows)
    })
}

/// The name that `--place` takes, if another one is shown.
pub(super) fn format_shape_unless_shown(name: &str, label: &str) -> String {
    match name == label {
        true => String::new(),
        false => name.to_owned(),
    }
}

/// Lists arms whose command failed.
fn describe_failures(record: &SearchRecord) -> String {
    let failed: Vec<&SearchArm> = record
        .arms
        .iter()
        .filter(|arm| arm.invalid.is_some())
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    for arm in failed.iter().take(MAX_FAILED_ARMS) {
        let reason = arm.invalid.as_deref().unwrap_or_default();
        let line = format!("{} failed: {reason}", arm.name);
        text.push_str(&format!("{}\n", paragraph("  ", "    ", &visible(&line))));
    }
    if failed.len() > MAX_FAILED_ARMS {
        let more = count(failed.len() - MAX_FAILED_ARMS, "other placement");
        text.push_str(&format!("  and {more} failed\n"));
    }
    text
}

/// Lists by how much each feature of placements changes the metric, according to the model.
fn list_sensitivities(record: &SearchRecord, palette: Palette) -> String {
    let Some(model) = &record.model else {
        return String::new();
    };
    let mut listed: Vec<(&EffectRecord, &str)> = Vec::new();
    for feature in model.features.iter().filter(|feature| feature.is_clear) {
        let change = feature.change.as_ref();
        let change = change.filter(|change| change.value.abs() >= MIN_EFFECT);
        listed.extend(change.map(|change| (change, feature.meaning.as_str())));
    }
    let heading = palette.strong("Sensitivity");
    if listed.is_empty() {
        let none = "No placement feature changes the cost by 1 % with certainty.";
        return format!("\n{heading}\n{}\n", paragraph("  ", "  ", none));
    }
    listed.sort_by(|(a, _), (b, _)| b.value.abs().total_cmp(&a.value.abs()));
    let lines = listed.iter().take(MAX_FEATURES).map(|(change, meaning)| {
        let (text, interval) = (&change.text, &change.interval);
        let line = visible(&format!("{text} ({interval})  {meaning}"));
        format!("{}\n", paragraph("  ", "    ", &line))
    });
    format!("\n{heading}\n{}", lines.collect::<String>())
}

fn describe_least_resource(record: &SearchRecord) -> Option<String> {
    let least = record.least.as_ref()?;
    Some(match least.basis.as_str() {
        "" => format!("Least resource: {}", least.sentence),
        basis => {
            let sentence = least.sentence.trim_end_matches('.');
            format!("Least resource: {sentence} ({basis}).")
        }
    })
}

fn describe_truth(record: &SearchRecord) -> Option<String> {
    let truth = record.truth.as_ref()?;
    let regret = match record.true_regret {
        Some(regret) => format!("what was found costs {} more than", percent(regret)),
        None => "nothing was found beside".to_owned(),
    };
    let errors = truth.prediction_error.map_or_else(String::new, |error| {
        format!(
            " Predictions of unmeasured arms are off by {} (median).",
            percent(error)
        )
    });
    let default = pinwise_format::three_digits(truth.default_ratio);
    Some(format!(
        "On this simulated machine the true costs are known: {regret} the best, {} (os-default costs {default} of it).{errors} {} of true costs lie in their 90 % intervals.",
        truth.best,
        percent(truth.coverage)
    ))
}

fn describe_method(record: &SearchRecord, palette: Palette) -> String {
    let mut parts = Vec::new();
    if let Some(space) = describe_space(&record.space) {
        parts.push(space);
    }
    let runs = count(record.runs_used, "run");
    let spent = duration(Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default());
    let pairs = record.confirmation.as_ref().map_or_else(String::new, |c| {
        format!(" and {} to confirm", count(c.pairs, "pair"))
    });
    let ended = Stopped::words(record.stopped);
    parts.push(format!(
        "{runs}{pairs} (seed {}), {spent}; {ended}.",
        record.seed
    ));
    if let Some(model) = &record.model {
        parts.push(words::describe_model(model));
    }
    if !record.verdict.condition.is_empty() {
        parts.push(visible(&record.verdict.condition));
    }
    parts.push(palette.record(&record.id));
    paragraph("", "", &parts.join(" "))
}

#[cfg(test)]
pub(super) mod tests;
