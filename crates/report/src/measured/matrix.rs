//! The latency matrix: its range as text, its pairs as rows. (The page draws the matrix.)

use super::format_heading;
use crate::style::{Palette, format_range, paragraph};
use crate::table::{Cell, Table};
use pinwise_format::{count, nanoseconds};
use pinwise_record::Measured;
use pinwise_stats::describe::median;

/// The latency of two CPUs, by their indexes in the record; either half of the matrix may have it.
pub(crate) fn find_latency(measured: &Measured, row: usize, column: usize) -> Option<f64> {
    let at = |row: usize, column: usize| {
        let entry = measured.latency_ns.get(row).and_then(|r| r.get(column));
        entry.copied().flatten()
    };
    at(row, column)
        .or_else(|| at(column, row))
        .filter(|value| value.is_finite() && *value > 0.0)
}

fn is_measured(measured: &Measured, row: usize, column: usize) -> bool {
    let at = |row: usize, column: usize| {
        let entry = measured.is_measured.get(row).and_then(|r| r.get(column));
        entry.is_some_and(|&known| known)
    };
    at(row, column) || at(column, row)
}

/// The row and column of each pair, once.
fn list_pairs(measured: &Measured) -> impl Iterator<Item = (usize, usize)> {
    let rows = 0..measured.cpus.len();
    rows.flat_map(|row| (0..row).map(move |column| (row, column)))
}

/// Describes the fastest, slowest and median pair; empty if no pair was measured.
pub(super) fn describe_latencies(measured: &Measured, palette: Palette) -> String {
    let values: Vec<f64> = list_pairs(measured)
        .filter_map(|(row, column)| find_latency(measured, row, column))
        .collect();
    let Some(median_ns) = median(&values) else {
        return String::new();
    };
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let mut sentence = format!(
        "{} over {}",
        format_range(&nanoseconds(low), &nanoseconds(high)),
        count(values.len(), "pair")
    );
    if values.len() > 1 {
        sentence.push_str(&format!(", median {}", nanoseconds(median_ns)));
    }
    let unknown = list_pairs(measured).count() - values.len();
    if unknown > 0 {
        sentence.push_str(&format!("; {} not measured", count(unknown, "pair")));
    }
    let folded = paragraph("  ", "    ", &format!("{sentence}."));
    format_heading("One-way time of a cache line between two CPUs", palette) + &folded + "\n"
}

/// One row for each pair of CPUs with a figure: `a`, `b`, `latency_ns`, and
/// whether it was measured (1) or taken from other pairs of its groups (0).
pub(crate) fn list_pair_rows(measured: &Measured) -> Table {
    let mut table = Table::new(["a", "b", "latency_ns", "is_measured"]);
    for (row, column) in list_pairs(measured) {
        if let Some(value) = find_latency(measured, row, column) {
            table.push([
                Cell::whole(measured.cpus[column]),
                Cell::whole(measured.cpus[row]),
                Cell::number(value),
                Cell::whole(u8::from(is_measured(measured, row, column))),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_with_gaps_in_either_half_is_listed() {
        let measured = Measured {
            cpus: vec![4, 5, 9],
            latency_ns: vec![
                vec![None, Some(14.0)],
                vec![],
                vec![Some(f64::NAN), Some(90.0)],
            ],
            is_measured: vec![vec![false, true]],
            ..Measured::default()
        };
        let csv = list_pair_rows(&measured).csv().unwrap();
        assert_eq!(csv, "a,b,latency_ns,is_measured\n4,5,14,1\n5,9,90,0\n");
        let text = describe_latencies(&measured, Palette::default());
        let sentence = "  14.0–90.0 ns over 2 pairs, median 52.0 ns; 1 pair not measured.\n";
        assert!(text.ends_with(sentence), "{text}");
        assert_eq!(
            describe_latencies(&Measured::default(), Palette::default()),
            ""
        );
    }
}
