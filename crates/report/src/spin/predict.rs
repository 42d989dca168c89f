//! Predictions of spinning, as text: a table, a curve over the number of CPUs, or the effect of
//! moving to another processor.

use crate::comparison::render_answer;
use crate::style::{Palette, paragraph, shorten, table, visible};
use pinwise_format::{join_words, nanoseconds, three_digits};
use pinwise_record::{
    CliffsRecord, MoveRecord, PredictionRecord, ProcessorRecord, SpinEvidence, SpinPredictRecord,
    SpinUnit,
};

/// The size of a curve in characters.
const CURVE_COLUMNS: usize = 60;
const CURVE_ROWS: usize = 8;
/// The most curves that are drawn; the record has the figures of all.
const MAX_CURVES: usize = 6;

/// Predictions for a terminal.
#[must_use]
pub fn render_spin_prediction(record: &SpinPredictRecord, palette: Palette) -> String {
    let mut out = String::new();
    if let Some(from) = &record.from {
        let (from_name, to_name) = (&from.name, &record.processor.name);
        let title = format!("Moving from {from_name} to {to_name}");
        out += &format!("{}\n", palette.strong(&paragraph("", "  ", &title)));
        out += &format!("{}\n", describe_processor(from));
        out += &format!("{}\n\n", describe_processor(&record.processor));
        out += &describe_moves(record);
        return out + &end(record, palette);
    }
    let title = format!("Spinning on {}", record.processor.name);
    out += &format!("{}\n", palette.strong(&paragraph("", "  ", &title)));
    out += &format!("{}\n\n", describe_processor(&record.processor));
    if record.cliffs.is_empty() {
        out += &format_predictions_table(&record.predictions);
    } else {
        out += &list_curves(record);
    }
    if let [only] = record.predictions.as_slice() {
        out += &describe_prediction(only);
    }
    out + &end(record, palette)
}

/// The last lines: the record's id, and next to the prompt its answer.
fn end(record: &SpinPredictRecord, palette: Palette) -> String {
    palette.record_line(&record.id) + &render_answer(&record.answer, palette)
}

/// Describes a processor and the sources of its figures.
fn describe_processor(processor: &ProcessorRecord) -> String {
    let cycles = processor.pause_cycles.map_or_else(String::new, |cycles| {
        let ghz = processor
            .ghz
            .map_or_else(String::new, |ghz| format!(" at {ghz:.2} GHz"));
        format!(" ({cycles:.1} cycles{ghz})")
    });
    let clock = processor
        .ghz_from
        .as_ref()
        .map_or_else(String::new, |from| {
            format!(" Clock {from}; --ghz overrides it.")
        });
    let line = format!(
        "{}: a PAUSE takes {}{cycles}. {}{clock}",
        processor.name,
        nanoseconds(processor.pause_ns),
        end_with_period(&processor.pause_from),
    );
    paragraph("  ", "  ", &line)
}

/// Ends a text with one period.
fn end_with_period(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

/// One row per algorithm and number of CPUs, the longest wait first.
fn format_predictions_table(predictions: &[PredictionRecord]) -> String {
    let mut sorted: Vec<&PredictionRecord> = predictions.iter().collect();
    let length = |row: &PredictionRecord| match (row.immune, row.never_parks, row.total_ms) {
        (false, true, _) => f64::MAX,
        (false, false, Some(ms)) => ms,
        _ => -1.0,
    };
    sorted.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let rows = sorted.iter().map(|row| {
        vec![
            row.algorithm.clone(),
            row.cpus.to_string(),
            row.total_pauses
                .map_or_else(|| "–".to_owned(), |n| n.to_string()),
            format_time(row.total_ms),
            format_time(row.blind_gap_ms),
            format_time(row.wasted_cpu_ms),
            classify(row),
        ]
    });
    let header = [
        "algorithm",
        "CPUs",
        "PAUSEs",
        "spins",
        "blind gap",
        "wasted",
        "",
    ];
    let mut out = table(&header, rows.collect());
    out += "\n";
    out += &paragraph(
        "  ",
        "  ",
        "spins: time before it gives up. blind gap: longest time without a look, so how late it may notice. wasted: CPU time burnt if all CPUs but one wait in full. The cost of PAUSE hardly matters to algorithms that measure it, use the clock, only load, or yield.",
    );
    out + "\n"
}

fn format_time(ms: Option<f64>) -> String {
    match ms {
        None => "–".to_owned(),
        Some(ms) if ms > 0.0 => nanoseconds(ms * 1e6),
        Some(_) => "0 ns".to_owned(),
    }
}

fn classify(row: &PredictionRecord) -> String {
    let word = match row.unit {
        SpinUnit::Normalised => "measures",
        SpinUnit::Time => "clock",
        SpinUnit::Load => "loads",
        SpinUnit::Yield => "yields",
        _ if row.never_parks => "endless",
        _ if row.total_pauses.is_none() => "unknown",
        _ if row.longest_pauses > row.total_pauses => "varies",
        _ => "",
    };
    word.to_owned()
}

/// What the record says about a single prediction beyond its row.
fn describe_prediction(row: &PredictionRecord) -> String {
    let mut out = format!(
        "\n  {}\n",
        visible(&format!("{} ({})", row.name, row.versions))
    );
    let mut line = |name: &str, text: &str| {
        let first = format!("    {name:<10}");
        out += &format!("{}\n", paragraph(&first, &" ".repeat(14), text));
    };
    line("then", &row.then);
    if let (Some(pauses), Some(ms)) = (row.longest_pauses, row.longest_ms)
        && row.longest_pauses != row.total_pauses
    {
        line(
            "longest",
            &format!("{pauses} PAUSEs, {}", format_time(Some(ms))),
        );
    }
    for tunable in &row.tunables {
        let usual = tunable
            .usual
            .as_ref()
            .map_or_else(String::new, |usual| format!(", usually {usual}"));
        line(
            "set by",
            &format!("{}{usual} ({})", tunable.name, tunable.how),
        );
    }
    if let Some(note) = &row.note {
        line("note", note);
    }
    let evidence = match row.evidence {
        SpinEvidence::Read => "source read",
        _ => "excerpts read",
    };
    line("source", &format!("{} ({evidence})", row.source));
    out
}

/// Curves for algorithms that depend on the number of CPUs, and the names of those that do not.
fn list_curves(record: &SpinPredictRecord) -> String {
    let mut out = String::new();
    let mut flat = Vec::new();
    let mut drawn = 0;
    for cliffs in &record.cliffs {
        if cliffs.changes_at.is_empty() {
            flat.push(cliffs.algorithm.as_str());
            continue;
        }
        drawn += 1;
        let points: Vec<(u64, f64)> = record
            .predictions
            .iter()
            .filter(|row| row.algorithm == cliffs.algorithm)
            .filter_map(|row| Some((row.cpus, row.total_ms?)))
            .collect();
        out += &format!("  {}\n", visible(&cliffs.algorithm));
        if drawn <= MAX_CURVES && points.len() > 1 {
            out += &draw_curve(&points);
        }
        out += &format!("{}\n", paragraph("    ", "    ", &describe_changes(cliffs)));
        for (cpus, ms) in find_steps(&points) {
            out += &format!("      from {cpus:>5}: {}\n", format_time(Some(ms)));
        }
        out += "\n";
    }
    if !flat.is_empty() {
        let span = record.cliffs.first().map_or_else(String::new, |c| {
            format!("{} to {} CPUs", c.from_cpus, c.to_cpus)
        });
        let line = format!("Constant from {span}: {}.", flat.join(", "));
        out += &format!("{}\n", paragraph("  ", "    ", &line));
    }
    out
}

/// Describes where an algorithm changes, such as `changes at 2, 6, 17 and 50 CPUs`.
fn describe_changes(cliffs: &CliffsRecord) -> String {
    let at = &cliffs.changes_at;
    let span = cliffs.to_cpus - cliffs.from_cpus;
    if at.len() as u64 == span && span > 3 {
        return "grows with every CPU".to_owned();
    }
    let words: Vec<String> = at.iter().map(u64::to_string).collect();
    match words.is_empty() {
        true => "changes nowhere".to_owned(),
        false => format!("changes at {} CPUs", join_words(&words)),
    }
}

/// The points at which the total differs from the previous one; at most `MAX_STEPS`.
fn find_steps(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    const MAX_STEPS: usize = 12;
    let mut steps: Vec<(u64, f64)> = points.to_vec();
    steps.dedup_by(|later, earlier| (later.1 - earlier.1).abs() <= 1e-9 * earlier.1.abs());
    steps.truncate(MAX_STEPS);
    steps
}

/// Draws totals over numbers of CPUs, both axes linear; every column shows its largest
/// total.
fn draw_curve(points: &[(u64, f64)]) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let span = (last.0 - first.0).max(1);
    let columns = usize::try_from(span + 1)
        .unwrap_or(usize::MAX)
        .min(CURVE_COLUMNS);
    let mut heights = vec![0.0f64; columns];
    let place = |cpus: u64| {
        let at = (cpus - first.0) * (columns as u64 - 1) / span;
        usize::try_from(at).unwrap_or(0).min(columns - 1)
    };
    let mut next = points.iter().skip(1);
    for &(cpus, ms) in points {
        // A total applies until the next point.
        let until = next.next().map_or(last.0, |point| point.0);
        for height in &mut heights[place(cpus)..=place(until.max(cpus))] {
            *height = height.max(ms);
        }
    }
    let mut out = String::new();
    for level in (0..CURVE_ROWS).rev() {
        let floor = highest * level as f64 / CURVE_ROWS as f64;
        let line: String = heights
            .iter()
            .map(|&height| if height > floor { '█' } else { ' ' })
            .collect();
        let label = if level + 1 == CURVE_ROWS {
            format_time(Some(highest))
        } else {
            String::new()
        };
        out += format!("  {label:>9} │{line}").trim_end();
        out.push('\n');
    }
    let axis = format!(
        "{}{:>2$}",
        first.0,
        last.0,
        columns - first.0.to_string().len()
    );
    out + &format!(
        "  {:>9} └{}\n  {:>9}  {axis} CPUs\n",
        "0",
        "─".repeat(columns),
        ""
    )
}

/// Describes what moving changes: a sentence on the largest change, and a table.
fn describe_moves(record: &SpinPredictRecord) -> String {
    let (changed, immune): (Vec<&MoveRecord>, Vec<&MoveRecord>) = record
        .moves
        .iter()
        .partition(|row| !row.immune && row.ratio.is_some());
    let mut out = String::new();
    if let (Some(row), Some(from)) = (changed.first(), &record.from) {
        let line = describe_move(row, &from.name, &record.processor.name);
        out += &format!("{}\n\n", paragraph("  ", "    ", &line));
    }
    let rows = changed.iter().map(|row| {
        vec![
            row.algorithm.clone(),
            row.cpus.to_string(),
            format_time(row.from_ms),
            format_time(row.to_ms),
            row.ratio.map_or_else(|| "–".to_owned(), three_digits),
            format_time(row.from_blind_gap_ms),
            format_time(row.to_blind_gap_ms),
        ]
    });
    let header = [
        "algorithm",
        "CPUs",
        "spins",
        "then",
        "times",
        "blind gap",
        "then",
    ];
    out += &table(&header, rows.collect());
    let mut ids: Vec<String> = immune
        .iter()
        .map(|row| shorten(&row.algorithm, 40))
        .collect();
    ids.dedup();
    if !ids.is_empty() {
        let line = format!("Immune, unbounded, or unknown: {}.", ids.join(", "));
        out += &format!("\n{}\n", paragraph("  ", "    ", &line));
    }
    out
}

fn describe_move(row: &MoveRecord, from: &str, to: &str) -> String {
    let ratio = row.ratio.unwrap_or(1.0);
    let change = if ratio >= 1.0 {
        format!("{} times longer", three_digits(ratio))
    } else {
        format!("{} times shorter", three_digits(1.0 / ratio))
    };
    format!(
        "Moving from {from} to {to}: {} {} → {} with {} CPUs, {change}; blind gap {} → {}.",
        row.algorithm,
        format_time(row.from_ms),
        format_time(row.to_ms),
        row.cpus,
        format_time(row.from_blind_gap_ms),
        format_time(row.to_blind_gap_ms),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_show_in_the_plot_and_nothing_is_wider_than_a_terminal() {
        let points: Vec<(u64, f64)> = (1..=128)
            .map(|cpus| (cpus, if cpus < 64 { 10.0 } else { 100.0 }))
            .collect();
        let plot = draw_curve(&points);
        assert_eq!(plot.lines().count(), CURVE_ROWS + 2);
        assert!(
            plot.lines().all(|line| line.chars().count() <= 80),
            "{plot}"
        );
        let filled = |line: &str| line.matches('█').count();
        let counts: Vec<usize> = plot.lines().take(CURVE_ROWS).map(filled).collect();
        assert!((28..34).contains(&counts[0]), "{plot}");
        assert_eq!(counts[CURVE_ROWS - 1], CURVE_COLUMNS);
        assert_eq!(find_steps(&points), [(1, 10.0), (64, 100.0)]);
    }

    #[test]
    fn changes_are_printed_as_words() {
        let cliffs = |changes_at: &[u64]| CliffsRecord {
            algorithm: "x".to_owned(),
            from_cpus: 1,
            to_cpus: 128,
            changes_at: changes_at.to_vec(),
        };
        assert_eq!(
            describe_changes(&cliffs(&[2, 6, 17, 50])),
            "changes at 2, 6, 17 and 50 CPUs"
        );
        assert_eq!(describe_changes(&cliffs(&[2])), "changes at 2 CPUs");
        let all: Vec<u64> = (2..=128).collect();
        assert_eq!(describe_changes(&cliffs(&all)), "grows with every CPU");
    }
}
