//! A replay as text: predictions next to measurements.

use crate::comparison::render_answer;
use crate::style::{Palette, paragraph, table, visible};
use pinwise_format::{grouped, nanoseconds, seconds, three_digits};
use pinwise_record::{
    ContentionCell, HintRecipe, ReplayCell, ReplayExperiment, ReplayMeasured, ReplayedAlgorithm,
    SpinReplayRecord,
};

/// A replay for a terminal.
#[must_use]
pub fn render_spin_replay(record: &SpinReplayRecord, palette: Palette) -> String {
    let mut out = format!(
        "{}\n",
        palette.strong(&paragraph("", "  ", &format_title(record)))
    );
    out += &format!("{}\n", paragraph("", "  ", &describe_hint(record)));
    for algorithm in &record.algorithms {
        let line = format!(
            "\n{}: {}",
            visible(&algorithm.algorithm),
            describe_wait(algorithm, record)
        );
        out += &format!("{}\n", paragraph("", "  ", &line));
        if algorithm.contention.is_empty() {
            out += &format_cells_table(algorithm, record.experiment == ReplayExperiment::Handoff);
            out += &format!("{}\n", paragraph("  ", "  ", &describe_cost(algorithm)));
        } else {
            out += &format_contention_table(algorithm);
        }
    }
    out.push('\n');
    for sentence in &record.conclusions {
        out += &format!("{}\n", paragraph("", "  ", sentence));
    }
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", note));
    }
    out + &palette.record_line(&record.id) + &render_answer(&record.answer, palette)
}

fn format_title(record: &SpinReplayRecord) -> String {
    let what = match (&record.experiment, record.hold_ms) {
        (ReplayExperiment::ProducerConsumer, Some(hold_ms)) => {
            format!("Producer and consumer, the lock held for {hold_ms} ms per item")
        }
        (ReplayExperiment::Handoff, _) => {
            "Hand-off, the lock released while another waits".to_owned()
        }
        (ReplayExperiment::Contend, _) => "Threads contending for one lock".to_owned(),
        (other, _) => other.to_string(),
    };
    format!(
        "{what}; {} CPUs assumed, CPUs {} used",
        record.cpus_assumed,
        record
            .cpus
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn describe_hint(record: &SpinReplayRecord) -> String {
    let hint = &record.hint;
    let requested = nanoseconds(hint.wanted_ns);
    let chip = record
        .chip
        .as_ref()
        .map_or_else(String::new, |chip| format!(" as on {chip}"));
    let own = hint.own_ns.map_or_else(String::new, |ns| {
        format!(" (this processor's own takes {})", nanoseconds(ns))
    });
    let how = match hint.recipe {
        Some(HintRecipe::Stretched) => format!("{requested}{chip}, stretched by additions{own}"),
        Some(HintRecipe::Shortened) => {
            format!("{requested}{chip}, a chain of additions alone{own}")
        }
        _ => format!("{requested}, this processor's own"),
    };
    let achieved = hint
        .achieved_ns
        .map_or_else(String::new, |ns| format!("; achieved: {ns:.2} ns"));
    let wake = record
        .wake_ns
        .filter(|_| record.experiment != ReplayExperiment::Contend)
        .map_or_else(String::new, |ns| {
            format!(" A wake-up takes {}.", nanoseconds(ns))
        });
    let priority = if record.realtime {
        " At real-time priority."
    } else {
        ""
    };
    format!("A spin-wait hint takes {how}{achieved}.{wake}{priority}")
}

/// Describes an algorithm's wait.
fn describe_wait(algorithm: &ReplayedAlgorithm, record: &SpinReplayRecord) -> String {
    let time = |hints: u64| nanoseconds(hints as f64 * record.hint.wanted_ns);
    let name = &algorithm.name;
    match algorithm.total_hints {
        Some(0) => name.clone(),
        Some(total) => format!(
            "{name}; {} hints ({}) before it {}, at most {} ({}) without a look",
            grouped(total),
            time(total),
            algorithm.ends,
            grouped(algorithm.blind_gap_hints),
            time(algorithm.blind_gap_hints)
        ),
        None => format!(
            "{name}; it never gives up, {} hints a look",
            algorithm.blind_gap_hints
        ),
    }
}

fn format_cells_table(algorithm: &ReplayedAlgorithm, is_handoff: bool) -> String {
    let when = if is_handoff { "Held" } else { "Delay" };
    let header = [
        when,
        "100 items",
        "measured",
        "Late",
        "measured",
        "Quartiles",
        "Error",
    ];
    let rows = algorithm
        .cells
        .iter()
        .map(|cell| format_cell_row(cell, is_handoff));
    table(&header, rows.collect())
}

fn format_cell_row(cell: &ReplayCell, is_handoff: bool) -> Vec<String> {
    let at_ms = if is_handoff {
        cell.hold_ms
    } else {
        cell.delay_ms
    };
    let s = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |s| format!("{s:.2} s"));
    let us = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |us| seconds(us * 1e-6));
    let measured = |figure: fn(&ReplayMeasured) -> f64| cell.measured.as_ref().map(figure);
    let quartiles = cell.measured.as_ref().map_or_else(String::new, |m| {
        format_range(m.lateness_low_us, m.lateness_high_us)
    });
    let error = match (cell.cliff_percent, cell.error_percent) {
        (Some(percent), _) if cell.unstable => format!("cliff {percent:.1} %"),
        (_, Some(error)) => format!("{error:+.1} %"),
        _ => "–".to_owned(),
    };
    vec![
        format!("{at_ms} ms"),
        s(cell.predicted.seconds_per_100_items),
        s(measured(|m| m.seconds_per_100_items)),
        us(cell.predicted.lateness_us),
        us(measured(|m| m.lateness_us)),
        quartiles,
        error,
    ]
}

/// Formats a range of times in the unit of the larger one.
fn format_range(low_us: f64, high_us: f64) -> String {
    let (scale, unit) = if high_us >= 1000.0 {
        (1e-3, "ms")
    } else {
        (1.0, "µs")
    };
    format!(
        "{} to {} {unit}",
        three_digits(low_us * scale),
        three_digits(high_us * scale)
    )
}

/// Describes what the waits cost.
fn describe_cost(algorithm: &ReplayedAlgorithm) -> String {
    let measured: Vec<&ReplayMeasured> = algorithm
        .cells
        .iter()
        .filter_map(|cell| cell.measured.as_ref())
        .collect();
    let items: u64 = algorithm.cells.iter().map(|cell| cell.items).sum();
    if measured.is_empty() {
        return "All items were disturbed.".to_owned();
    }
    let cpu = measured.iter().map(|m| m.waiter_cpu_s_per_100_items);
    let (least, most) = (
        cpu.clone().fold(f64::INFINITY, f64::min),
        cpu.fold(0.0, f64::max),
    );
    let hints = measured.iter().map(|m| m.hints);
    let (fewest, largest) = (hints.clone().min().unwrap_or(0), hints.max().unwrap_or(0));
    let parks: u64 = measured.iter().map(|m| m.parks).sum();
    format!(
        "The waiter used {} to {} of CPU time per 100 items, executed {} to {} hints a wait and \
         was parked in {parks} of {items}.",
        seconds(least),
        seconds(most),
        grouped(fewest),
        grouped(largest)
    )
}

fn format_contention_table(algorithm: &ReplayedAlgorithm) -> String {
    let header = [
        "Threads",
        "Million per CPU second",
        "CPU spinning",
        "Longest wait",
        "Parks per 1000",
    ];
    let row = |cell: &ContentionCell| {
        vec![
            cell.threads.to_string(),
            three_digits(cell.operations_per_cpu_s * 1e-6),
            format!("{:.0} %", 100.0 * cell.spinning_share),
            seconds(cell.longest_ms * 1e-3),
            format!("{:.2}", cell.parks_per_1000),
        ]
    };
    table(&header, algorithm.contention.iter().map(row).collect())
}
