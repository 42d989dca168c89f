//! How the wiring changed while it was watched, and the effort of the measurement, as text.

use std::collections::BTreeMap;
use std::time::Duration;

use super::format_heading;
use crate::style::{Palette, paragraph};
use pinwise_format::{count, duration, nanoseconds, percent, seconds, three_digits};
use pinwise_record::{DriftPair, DriftRecord, DriftState, EffortRecord, LevelName, Measured};

/// The most letters of a strip; in longer strips a letter stands for several repetitions.
const STRIP_WIDTH: usize = 60;
/// One letter per state of a pair, in the order of the record.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

/// Formats a duration; a damaged record may contain a time that is none.
fn format_duration(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| "–".to_owned(), duration)
}

/// Describes states, dwell times, and how long the map stays valid.
pub(super) fn describe_drift(found: &Measured, palette: Palette) -> String {
    let Some(record) = &found.drift else {
        return String::new();
    };
    let title = format!("Watched for {}", format_duration(record.watched_s));
    let mut text = format_heading(&title, palette);
    if !record.sentence.is_empty() {
        let folded = paragraph("  ", "  ", &record.sentence);
        let painted = match record.changes {
            0 => palette.good(&folded),
            _ => palette.bad(&folded),
        };
        text.push_str(&format!("{painted}\n"));
    }
    let summary = describe_dwell_times(record);
    text.push_str(&format!("{}\n", paragraph("  ", "  ", &summary)));
    for pair in &record.pairs {
        text.push_str(&describe_pair(pair));
    }
    text
}

fn describe_dwell_times(record: &DriftRecord) -> String {
    let apart = record.median_dwell_s.map_or_else(String::new, |time| {
        format!(", in the median {} apart", seconds(time))
    });
    let valid = match record.valid_s {
        Some(time) => format!("a measured map is valid for {}", seconds(time)),
        None => "no measured map became wrong".to_owned(),
    };
    format!(
        "{}{apart}; longest time without one: {}; {valid}.",
        count(record.changes, "change"),
        seconds(record.longest_dwell_s)
    )
}

fn describe_pair(pair: &DriftPair) -> String {
    let mut text = format!("  CPUs {} and {}:\n", pair.a, pair.b);
    for (state, letter) in pair.states.iter().zip(LETTERS.chars()) {
        let line = paragraph(
            "    ",
            "       ",
            &format!("{letter}  {}", describe_state(state)),
        );
        text.push_str(&format!("{line}\n"));
    }
    let strip = draw_strip(pair);
    if !strip.is_empty() {
        text.push_str(&format!("    {strip}\n"));
    }
    text
}

fn describe_state(state: &DriftState) -> String {
    let kind = match &state.kind {
        LevelName::Smt => "SMT siblings".to_owned(),
        LevelName::Llc => "one last-level cache".to_owned(),
        LevelName::Package => "one package".to_owned(),
        LevelName::Stacked => "stacked: taking turns on one hardware thread".to_owned(),
        other => other.noun().to_owned(),
    };
    let contention = state.contention.map_or_else(String::new, |ratio| {
        format!(", contention {}", three_digits(ratio))
    });
    format!(
        "{kind}: {}{contention}; {} of the time, {}, in the median {} long",
        nanoseconds(state.latency_ns),
        percent(state.share),
        count(state.visits, "visit"),
        seconds(state.median_dwell_s)
    )
}

/// Draws the states over time with a letter for each repetition. Several that share a letter show
/// the rarest state, which would be lost otherwise.
fn draw_strip(pair: &DriftPair) -> String {
    let letter = |state: usize| LETTERS.chars().nth(state).unwrap_or('?');
    let states: Vec<usize> = pair.samples.iter().map(|sample| sample.3).collect();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &state in &states {
        *counts.entry(state).or_default() += 1;
    }
    let per_letter = states.len().div_ceil(STRIP_WIDTH).max(1);
    states
        .chunks(per_letter)
        .filter_map(|chunk| chunk.iter().min_by_key(|state| counts.get(state)))
        .map(|&state| letter(state))
        .collect()
}

/// The planned time is shown if at least a third of it was used.
const MAX_UNUSED_RATIO: f64 = 3.0;

/// Describes time, pairs and batches, and what was left out.
pub(super) fn describe_effort(record: &EffortRecord, palette: Palette) -> String {
    let planned = match MAX_UNUSED_RATIO * record.spent_s >= record.budget_s {
        true => format!(" ({} planned)", seconds(record.budget_s)),
        false => String::new(),
    };
    let mut sentences = vec![format!(
        "Took {}{planned}: {} measured{}.",
        seconds(record.spent_s),
        count(record.pairs_measured, "pair"),
        describe_skipped_pairs(record)
    )];
    if record.parallel_pairs > 1 {
        sentences.push(format!(
            "Up to {} pairs at the same time.",
            record.parallel_pairs
        ));
    }
    let rejected = super::figures::describe_rejected(
        record.batches,
        record.batches_switched,
        record.batches_stolen,
    );
    sentences.push(format!("{rejected}."));
    let folded = paragraph("", "", &sentences.join(" "));
    let mut text = format!("\n{}\n", palette.faint(&folded));
    if !record.left_out.is_empty() {
        text.push_str(&format!("{}\n", palette.warn("Left out")));
        for sentence in &record.left_out {
            text.push_str(&format!("{}\n", paragraph("  ! ", "    ", sentence)));
        }
    }
    text
}

fn describe_skipped_pairs(record: &EffortRecord) -> String {
    if record.pairs_skipped == 0 {
        return String::new();
    }
    let checked = match (record.pairs_verified, record.pairs_disagreed) {
        (0, _) => "none checked".to_owned(),
        (verified, 0) => format!("{verified} of them checked, all correct"),
        (verified, wrong) => format!("{verified} of them checked, {wrong} wrong"),
    };
    format!(
        ", {} inferred from the representatives of their groups, {checked}",
        record.pairs_skipped
    )
}
