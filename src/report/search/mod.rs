//! A search as text: what is best, how sure that is, what the program is
//! sensitive to, and what it took to find out.

mod picture;
mod rows;
mod words;

use std::time::Duration;

use super::comparison::{findings, place};
use super::style::{self, Palette, paragraph, shortened};
use crate::record::{PredictedArm, SearchAnswer, SearchArm, SearchRecord, Stopped};
use crate::stats::verdict::{count, duration, percent};
pub use picture::search_picture;
pub use rows::search_rows;
pub(super) use words::{NamedRow, named_table};
use words::{cost_range, costs, placements};

/// Arms in the table, beside `os-default`.
const SHOWN: usize = 8;
/// Failed arms that are told one by one.
const FAILED_TOLD: usize = 4;
/// A feature is told where its whole range changes the cost by so much, and
/// by more than twice its standard deviation.
const LEAST_EFFECT: f64 = 0.01;
/// Features told.
const FEATURES_TOLD: usize = 5;

/// The whole search for a terminal.
#[must_use]
pub fn search(record: &SearchRecord, palette: Palette) -> String {
    let mut text = heading(record, palette);
    text.push('\n');
    text.push_str(&verdict(record, palette));
    if !record.predictions.is_empty() {
        text.push('\n');
        text.push_str(&arms_table(record));
    }
    text.push_str(&failed(record));
    text.push_str(&sensitivities(record, palette));
    let further = [
        confirmed(record),
        other_cpus(record),
        least(record),
        truth(record),
    ];
    for sentence in further.into_iter().flatten() {
        text.push_str(&format!("\n{}\n", paragraph("", "", &visible(&sentence))));
    }
    text.push_str(&findings(&record.findings, palette));
    text.push('\n');
    text.push_str(&palette.faint(&method(record)));
    text.push('\n');
    text
}

/// One line, whatever it holds.
fn visible(text: &str) -> String {
    style::visible(text)
}

fn heading(record: &SearchRecord, palette: Palette) -> String {
    let title = palette.strong(&shortened(&record.title(), super::WIDTH));
    let place = format!("{} · metric: {}", place(&record.host), record.metric.name);
    format!("{title}\n{}\n", shortened(&place, super::WIDTH))
}

fn verdict(record: &SearchRecord, palette: Palette) -> String {
    let sentence = match (record.stopped, record.verdict.sentence.as_str()) {
        (None, _) => "Cut off before it came to an end.".to_owned(),
        (_, "") => "No verdict.".to_owned(),
        (_, sentence) => paragraph("", "", &visible(sentence)),
    };
    let painted = match record.verdict.kind {
        _ if record.stopped.is_none() => palette.warn(&sentence),
        SearchAnswer::Best | SearchAnswer::LeaveAlone => palette.good(&sentence),
        SearchAnswer::DoesNotMatter => palette.strong(&sentence),
        SearchAnswer::Undecided => palette.warn(&sentence),
    };
    let mut text = format!("{painted}\n");
    let advice = &record.verdict.advice;
    if advice.starts_with("Run: ") {
        text.push_str(&format!("→ {}\n", visible(advice)));
        return text;
    }
    if !advice.is_empty() {
        text.push_str(&format!("{}\n", paragraph("→ ", "  ", advice)));
    }
    if let Some(line) = how_to_apply(record) {
        text.push_str(&format!("→ {}\n", visible(&line)));
    }
    text
}

/// The command line that runs the best arm; it stays on its line, however
/// long, so that it can be copied.
fn how_to_apply(record: &SearchRecord) -> Option<String> {
    let is_over = record.stopped.is_some();
    if record.verdict.kind != SearchAnswer::Best || record.host.simulated || !is_over {
        return None;
    }
    let best = record.best.as_ref()?;
    let arm = record.arms.iter().find(|arm| arm.name == *best)?;
    arm.place_id.as_ref()?;
    let threads = arm.threads.map_or_else(String::new, |n| n.to_string());
    let arguments = record.command.iter();
    let command: Vec<String> = arguments
        .map(|argument| argument.replace("{threads}", &threads))
        .collect();
    Some(format!(
        "Run: taskset -c {} {}",
        shell_words::quote(&arm.cpus),
        shell_words::join(&command)
    ))
}

/// The arms that are expected to be best, and `os-default`.
fn shown(record: &SearchRecord) -> Vec<&PredictedArm> {
    let default = record.arms.first().map(|arm| arm.name.as_str());
    let mut all: Vec<&PredictedArm> = record.predictions.iter().collect();
    all.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    let is_default = |arm: &PredictedArm| Some(arm.arm.as_str()) == default;
    let mut taken = 0;
    all.retain(|arm| {
        taken += usize::from(!is_default(arm));
        is_default(arm) || taken <= SHOWN
    });
    all
}

fn arms_table(record: &SearchRecord) -> String {
    let shown = shown(record);
    let header = [
        "placement",
        "CPUs",
        "runs",
        "measured",
        "expected",
        "90 %",
        "ratio",
    ];
    let rows: Vec<NamedRow<'_>> = shown.iter().map(|arm| row(record, arm)).collect();
    let mut text = named_table(&header, &rows);
    let left = record.predictions.len() - shown.len();
    if left > 0 {
        let ratios = record.predictions.iter().map(|arm| arm.ratio);
        let worst = ratios.fold(f64::NEG_INFINITY, f64::max);
        text.push_str(&format!(
            "  and {left} more, expected at up to {} of os-default\n",
            style::three_digits(worst)
        ));
    }
    text
}

fn row<'a>(record: &SearchRecord, arm: &'a PredictedArm) -> NamedRow<'a> {
    let unit = &record.metric.unit;
    let candidate = record.arms.iter().find(|a| a.name == arm.arm);
    let cpus = candidate.map_or_else(|| "–".to_owned(), |a| a.cpu_count.to_string());
    let measured = arm.measured.map(|m| costs(record, m.value, unit));
    NamedRow {
        is_marked: record.best.as_ref() == Some(&arm.arm),
        name: &arm.arm,
        cells: vec![
            cpus,
            arm.runs.to_string(),
            measured.unwrap_or_else(|| "–".to_owned()),
            costs(record, arm.predicted, unit),
            cost_range(record, arm.low, arm.high, unit),
            format!("{:.3}", arm.ratio),
        ],
    }
}

/// Arms whose command failed: they cannot win.
fn failed(record: &SearchRecord) -> String {
    let failed: Vec<&SearchArm> = record
        .arms
        .iter()
        .filter(|arm| arm.invalid.is_some())
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    for arm in failed.iter().take(FAILED_TOLD) {
        let reason = arm.invalid.as_deref().unwrap_or_default();
        let line = format!("{} failed: {reason}", arm.name);
        text.push_str(&format!("{}\n", paragraph("  ", "    ", &visible(&line))));
    }
    if failed.len() > FAILED_TOLD {
        let more = count(failed.len() - FAILED_TOLD, "other placement");
        text.push_str(&format!("  and {more} failed\n"));
    }
    text
}

/// What the model has learnt: how much of the cost goes with each feature, from
/// the arm that has least of it to the one that has most.
fn sensitivities(record: &SearchRecord, palette: Palette) -> String {
    let Some(model) = &record.model else {
        return String::new();
    };
    let mut told: Vec<(f64, f64, &str)> = Vec::new();
    for (at, feature) in model.features.iter().enumerate() {
        let range = range_of(record, at);
        let effect = feature.effect * range;
        let is_clear = feature.effect.abs() > 2.0 * feature.sd;
        if is_clear && effect.abs() >= LEAST_EFFECT {
            told.push((effect, feature.sd * range, &feature.meaning));
        }
    }
    let heading = palette.strong("What it is sensitive to");
    if told.is_empty() {
        let none = "Nothing of what placements differ in changes the cost by 1 % for sure.";
        return format!("\n{heading}\n{}\n", paragraph("  ", "  ", none));
    }
    told.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let lines = told
        .iter()
        .take(FEATURES_TOLD)
        .map(|(effect, sd, meaning)| {
            // The effect is one on the logarithm: its end is a factor.
            let change = style::change(effect.exp());
            let width = 100.0 * effect.exp() * (1.645 * sd).sinh();
            let line = format!("{change} ±{width:.1} %  {}", visible(meaning));
            format!("{}\n", paragraph("  ", "    ", &line))
        });
    format!("\n{heading}\n{}", lines.collect::<String>())
}

/// How far the arms differ in a feature.
fn range_of(record: &SearchRecord, feature: usize) -> f64 {
    let values = record
        .arms
        .iter()
        .filter_map(|arm| arm.features.get(feature));
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for &value in values {
        least = least.min(value);
        most = most.max(value);
    }
    let range = most - least;
    if range.is_finite() { range } else { 0.0 }
}

/// The confirmation, where the verdict does not tell it.
fn confirmed(record: &SearchRecord) -> Option<String> {
    let sentence = &record.confirmation.as_ref()?.sentence;
    let is_told = record
        .verdict
        .sentence
        .contains(sentence.trim_end_matches('.'));
    (!is_told).then(|| sentence.clone())
}

/// That the best shape ran on other CPUs, too, where that is no finding.
fn other_cpus(record: &SearchRecord) -> Option<String> {
    let last = record.other_cpus.last()?;
    if record.findings.iter().any(|f| f.sentence == last.sentence) {
        return None;
    }
    let pairs: usize = record.other_cpus.iter().map(|other| other.pairs).sum();
    let choices = match record.other_cpus.len() {
        1 => "another choice".to_owned(),
        n => format!("{n} other choices"),
    };
    Some(format!(
        "In the same shape {choices} of CPUs showed no difference ({pairs} pairs): no CPU \
         stands out."
    ))
}

fn least(record: &SearchRecord) -> Option<String> {
    let least = record.least.as_ref()?;
    let known = match (least.confirmed, least.measured) {
        (true, _) => format!("{} fresh pairs", least.pairs),
        (false, true) => "measured, not confirmed".to_owned(),
        (false, false) => "predicted, not confirmed".to_owned(),
    };
    // Nothing smaller will do: the best arm itself is measured and named above.
    if record.best.as_deref() == Some(&least.arm) {
        return Some(format!("Least resource: {}", least.sentence));
    }
    let sentence = least.sentence.trim_end_matches('.');
    Some(format!(
        "Least resource: {sentence} ({known}, 90 % interval {} to {}).",
        percent(least.low),
        percent(least.high)
    ))
}

fn truth(record: &SearchRecord) -> Option<String> {
    let truth = record.truth.as_ref()?;
    let regret = match record.true_regret {
        Some(regret) => format!("what was found costs {} more than", percent(regret)),
        None => "nothing was found beside".to_owned(),
    };
    let errors = truth.prediction_error.map_or_else(String::new, |error| {
        format!(
            " Predictions of arms that never ran are off by {} (median).",
            percent(error)
        )
    });
    let default = style::three_digits(truth.default_ratio);
    Some(format!(
        "Truth of the simulated machine: {regret} the best, {} (os-default costs {default} of it).{errors} {} of true costs lie in their 90 % intervals.",
        truth.best,
        percent(truth.coverage)
    ))
}

fn method(record: &SearchRecord) -> String {
    let mut parts = Vec::new();
    if let Some(space) = placements(&record.space) {
        parts.push(space);
    }
    let runs = count(record.runs_used, "run");
    let spent = duration(Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default());
    let pairs = record.confirmation.as_ref().map_or_else(String::new, |c| {
        format!(" and {} to confirm", count(c.pairs, "pair"))
    });
    let stopped = match record.stopped {
        Some(Stopped::Precision) => "stopped when the answer was sure",
        Some(Stopped::Budget) => "stopped at the end of the time",
        Some(Stopped::Runs) => "stopped at the end of the runs",
        Some(Stopped::Interrupted) => "interrupted",
        Some(Stopped::Failed) => "stopped because the command failed",
        None => "cut off",
    };
    parts.push(format!(
        "{runs}{pairs} (seed {}), {spent}; {stopped}.",
        record.seed
    ));
    if let Some(model) = &record.model {
        parts.push(words::model(model));
    }
    if !record.verdict.condition.is_empty() {
        parts.push(visible(&record.verdict.condition));
    }
    parts.push(format!("Record {}.", visible(&record.id)));
    paragraph("", "", &parts.join(" "))
}

#[cfg(test)]
pub(super) mod tests;
