//! The difference between two profiles as text.

use super::profile::format_function_name;
use super::style::{Palette, paragraph, shorten, table, visible};
use pinwise_format::{scaled, seconds, signed_seconds, trimmed};
use pinwise_record::{
    AccountRecord, AttributedTime, AttributionRecord, ChangeRecord, DiffSide, FunctionChangeRecord,
    PartRecord, ProfileDiff, SeenIn,
};

/// The most columns of a function's name.
const NAME_WIDTH: usize = 26;

/// Functions whose change may be chance are printed up to this number in all.
const LEAST_FUNCTIONS: usize = 3;
/// Parts with a smaller share of the difference are not printed.
const LEAST_SHARE: f64 = 0.005;

/// The difference for a terminal, with at most `max` functions; the answer comes last.
#[must_use]
pub fn render_profile_diff(record: &ProfileDiff, max: usize, palette: Palette) -> String {
    let unit = shorten(&record.unit, 12);
    let mut out = String::new();
    for (name, side) in [("A before", &record.before), ("B after", &record.after)] {
        let first = format!("{name:<8}  ");
        let rest = " ".repeat(first.len());
        out += &format!(
            "{}\n",
            paragraph(&first, &rest, &describe_side(side, &unit))
        );
    }
    out += &format_functions_table(record, max, &unit);
    out += &list_attributions(&record.attributions);
    out += &describe_pauses(record, &unit);
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", note));
    }
    out += &palette.record_line(&record.id);
    out += &format!(
        "\n{}\n",
        palette.strong(&paragraph("", "", &record.headline))
    );
    match record.total.is_noise {
        true => out + "→ More samples tell smaller differences: more --runs, or longer ones.\n",
        false => out,
    }
}

/// A sentence for each attribution, and a table of the parts of the first.
pub(super) fn list_attributions(attributions: &[AttributionRecord]) -> String {
    let mut out = String::new();
    for attribution in attributions {
        out += &format!("{}\n", paragraph("", "  ", &attribution.sentence));
    }
    let has_shares =
        |found: &&AttributionRecord| found.parts.iter().any(|part| part.share.is_some());
    let Some(first) = attributions.iter().find(has_shares) else {
        return out + if attributions.is_empty() { "" } else { "\n" };
    };
    let row = |part: &PartRecord| {
        let time = |time: AccountRecord| {
            let interval = format!(
                "{} to {}",
                signed_seconds(time.low),
                signed_seconds(time.high)
            );
            (signed_seconds(time.value), interval)
        };
        let (value, interval) = part
            .delta_s
            .map_or(("not known".to_owned(), String::new()), time);
        let share = part.share.map_or_else(String::new, |share| {
            let percent = (100.0 * share.value).round();
            let sign = if percent < 0.0 { "−" } else { "" };
            format!("{sign}{:.0} %", percent.abs())
        });
        vec![part.name.clone(), value, interval, share]
    };
    let is_seen = |part: &&PartRecord| {
        let share = part.share.as_ref();
        share.is_none_or(|share| share.value.abs() >= LEAST_SHARE)
    };
    let rows: Vec<Vec<String>> = first.parts.iter().filter(is_seen).map(row).collect();
    let what = if first.of == AttributedTime::Wall {
        "elapsed"
    } else {
        "CPU time"
    };
    out += &format!("\n{}", table(&["Part", what, "95 %", "share"], rows));
    for part in first.parts.iter().filter(|part| part.delta_s.is_none()) {
        if let Some(why) = &part.detail {
            let line = format!("{}: {why}; counted as unexplained.", part.name);
            out += &format!("{}\n", paragraph("  · ", "    ", &line));
        }
    }
    out + "\n"
}

fn describe_side(side: &DiffSide, unit: &str) -> String {
    let units = match side.units {
        units if (units - 1.0).abs() < 1e-9 => format!("1 {unit}"),
        units => format!("{} {unit}s", trimmed(units)),
    };
    format!(
        "{} on {}: {units}, {} of CPU time, {} samples",
        shorten(&side.title, 100),
        shorten(&side.host, 40),
        seconds(side.cpu_s),
        side.samples
    )
}

fn describe_change(change: &ChangeRecord) -> String {
    let noise = if change.is_noise {
        ", which may be chance"
    } else {
        ""
    };
    let times = match change.before_s > 0.0 {
        true => format!(" ({:.2}×)", change.after_s / change.before_s),
        false => String::new(),
    };
    format!(
        "{} before, {} after{times}, ±{} by counting samples{noise}.",
        seconds(change.before_s),
        seconds(change.after_s),
        seconds(change.interval_s())
    )
}

/// Describes how much of the change is due to more or fewer PAUSEs, and to longer or shorter ones.
fn describe_pauses(record: &ProfileDiff, unit: &str) -> String {
    let waits = &record.waits;
    if waits.before_samples == 0 && waits.after_samples == 0 {
        return String::new();
    }
    let mut out = String::new();
    for sentence in &record.sentences {
        out += &format!("{}\n", paragraph("", "  ", &format!("{sentence}.")));
    }
    let line = format!(
        "In spin hints: {} per {unit}: {}",
        signed_seconds(waits.delta_s),
        describe_change(waits)
    );
    out += &format!("{}\n", paragraph("", "  ", &line));
    if let Some(pausing) = &record.pausing {
        let line = format!(
            "Of the change, {} by {} PAUSEs and {} by {} ones ({} and {} PAUSEs per {unit}; divided by the logarithmic mean).",
            signed_seconds(pausing.by_more_s),
            if pausing.by_more_s < 0.0 {
                "fewer"
            } else {
                "more"
            },
            signed_seconds(pausing.by_longer_s),
            if pausing.by_longer_s < 0.0 {
                "shorter"
            } else {
                "longer"
            },
            scaled(pausing.before_pauses),
            scaled(pausing.after_pauses)
        );
        out += &format!("{}\n", paragraph("", "  ", &line));
    }
    out
}

fn format_functions_table(record: &ProfileDiff, max: usize, unit: &str) -> String {
    let row = |change: &FunctionChangeRecord| {
        let function = &change.function;
        // The program's own name is not known here: modules are named for
        // libraries only.
        let is_library = function.module.as_ref().filter(|m| m.contains(".so"));
        let own = &change.own;
        let seen = match (&change.seen, own.is_noise) {
            (SeenIn::After, false) => "came",
            (SeenIn::Before, false) => "gone",
            (_, true) => "chance?",
            _ => "",
        };
        vec![
            format_function_name(
                &function.name,
                is_library.map(String::as_str),
                &function.kind,
                "",
                NAME_WIDTH,
            ),
            signed_seconds(own.delta_s),
            format!("±{}", seconds(own.interval_s())),
            seconds(own.before_s),
            seconds(own.after_s),
            seen.to_owned(),
        ]
    };
    let is_seen = |change: &&FunctionChangeRecord| {
        change.own.before_samples > 0 || change.own.after_samples > 0
    };
    let seen: Vec<&FunctionChangeRecord> = record.functions.iter().filter(is_seen).collect();
    let all = seen.iter().copied();
    let (chance, certain): (Vec<_>, Vec<_>) = all.partition(|change| change.own.is_noise);
    let more = LEAST_FUNCTIONS.saturating_sub(certain.len());
    let mut shown: Vec<&FunctionChangeRecord> = certain.into_iter().take(max).collect();
    shown.extend(chance.into_iter().take(more.min(max - shown.len())));
    let rows: Vec<Vec<String>> = shown.iter().map(|change| row(change)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let per_unit = format!("self/{unit}");
    let header = ["Function", per_unit.as_str(), "95 %", "before", "after", ""];
    let mut out = format!("\n{}", table(&header, rows));
    let more = seen.len() - shown.len() + record.functions_left_out;
    if more > 0 {
        let sum_s = |changes: &[&FunctionChangeRecord]| -> f64 {
            changes.iter().map(|change| change.own.delta_s).sum()
        };
        let rest_s = sum_s(&seen) - sum_s(&shown);
        out += &format!(
            "  and {more} more: {} per {} in all\n",
            signed_seconds(rest_s),
            visible(unit)
        );
    }
    out + "\n"
}
