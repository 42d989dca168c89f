//! Figures of single CPUs, caches, memory, clocks and the scheduler, as text.

use super::format_heading;
use crate::style::{Palette, format_range, paragraph, shorten, table};
use pinwise_format::{nanoseconds, round_bytes, three_digits};
use pinwise_record::{
    BandwidthRecord, ClockRecord, LadderPoint, LadderRecord, LoadedLatencyRecord, Measured, Median,
    MemoryStream, PauseRecord, PlateauRecord, SchedulingRecord,
};
use pinwise_topology::CpuSet;

/// CPUs whose costs differ by at most this ratio share a row.
const MAX_COST_RATIO: f64 = 1.10;
/// The most columns of a list of CPUs.
const LIST_WIDTH: usize = 24;
/// Bars from the fastest load to the slowest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The tables of all figures that were measured.
pub(super) fn format_figures_tables(found: &Measured, palette: Palette) -> String {
    let mut text = format_pause_table(&found.pause, palette);
    if let Some(record) = &found.ladder {
        text.push_str(&format_ladder_table(record, palette));
    }
    text.push_str(&format_bandwidth_table(&found.bandwidth, palette));
    text.push_str(&format_loaded_latency_table(&found.loaded_latency, palette));
    text.push_str(&format_clock_and_scheduler_table(
        found.clock.as_ref(),
        found.scheduling.as_ref(),
        palette,
    ));
    text
}

/// Formats a median and its interval, if there is one, such as `14.2 ns (13.9–14.6)`.
fn format_interval(median: &Median, figure: impl Fn(f64) -> String) -> String {
    match (median.low, median.high) {
        (Some(low), Some(high)) => {
            let ends = format_range(&figure(low), &figure(high));
            let bare = ends
                .rsplit_once(' ')
                .map_or(ends.as_str(), |(ends, _)| ends);
            format!("{} ({bare})", figure(median.value))
        }
        _ => figure(median.value),
    }
}

/// CPUs with similar costs, which share a row.
struct SimilarCpus<'a> {
    cpus: CpuSet,
    records: Vec<&'a PauseRecord>,
}

/// The cost of PAUSE. CPUs with similar costs share a row; a CPU with two costs has its own.
fn format_pause_table(records: &[PauseRecord], palette: Palette) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = format_heading("Cost of a spin-wait hint (PAUSE, YIELD)", palette);
    let rows = group_similar(records)
        .iter()
        .map(format_pause_row)
        .collect();
    text.push_str(&table(&["CPUs", "time", "core cycles"], rows));
    for record in records {
        if let Some(modes) = &record.modes {
            let sentence = format!(
                "CPU {} has two costs: {} in {:.0} % of the batches, {} in the others.",
                record.cpu,
                nanoseconds(modes.low_ns),
                100.0 * modes.low_share,
                nanoseconds(modes.high_ns)
            );
            let folded = paragraph("  ! ", "    ", &sentence);
            text.push_str(&format!("{}\n", palette.warn(&folded)));
        }
    }
    text
}

fn group_similar(records: &[PauseRecord]) -> Vec<SimilarCpus<'_>> {
    let (mut sorted, with_two_costs): (Vec<&PauseRecord>, Vec<&PauseRecord>) =
        records.iter().partition(|record| record.modes.is_none());
    sorted.sort_by(|a, b| a.pause_ns.value.total_cmp(&b.pause_ns.value));
    let mut groups: Vec<SimilarCpus<'_>> = Vec::new();
    for record in sorted {
        let fits = |group: &&mut SimilarCpus<'_>| {
            record.pause_ns.value <= MAX_COST_RATIO * group.records[0].pause_ns.value
        };
        match groups.last_mut().filter(fits) {
            Some(group) => {
                group.cpus.insert(record.cpu);
                group.records.push(record);
            }
            None => groups.push(SimilarCpus::from_record(record)),
        }
    }
    groups.extend(with_two_costs.into_iter().map(SimilarCpus::from_record));
    groups.sort_by_key(|group| group.cpus.first());
    groups
}

impl<'a> SimilarCpus<'a> {
    fn from_record(record: &'a PauseRecord) -> Self {
        Self {
            cpus: CpuSet::single(record.cpu),
            records: vec![record],
        }
    }
}

fn format_pause_row(group: &SimilarCpus<'_>) -> Vec<String> {
    let cycles: Vec<Median> = group
        .records
        .iter()
        .filter_map(|r| r.pause_cycles)
        .collect();
    let times: Vec<Median> = group.records.iter().map(|r| r.pause_ns).collect();
    vec![
        shorten(&group.cpus.to_string(), LIST_WIDTH),
        describe_over_cpus(&times, nanoseconds),
        describe_over_cpus(&cycles, three_digits),
    ]
}

/// For one CPU the median and its interval, for several the range of their medians.
fn describe_over_cpus(medians: &[Median], figure: impl Fn(f64) -> String) -> String {
    match medians {
        [] => "–".to_owned(),
        [only] => format_interval(only, figure),
        several => {
            let values = || several.iter().map(|median| median.value);
            let low = values().fold(f64::INFINITY, f64::min);
            let high = values().fold(f64::NEG_INFINITY, f64::max);
            format_range(&figure(low), &figure(high))
        }
    }
}

fn format_ladder_table(record: &LadderRecord, palette: Palette) -> String {
    let title = format!("Caches as seen by a program on CPU {}", record.cpu);
    let mut text = format_heading(&title, palette);
    text.push_str(&draw_bars(&record.points));
    if !record.plateaus.is_empty() {
        let rows = record.plateaus.iter().map(format_plateau_row).collect();
        text.push_str(&table(&["", "one load", "effective", "reported"], rows));
    }
    if let Some(hint) = &record.hint {
        let sentence = format!("The capacities look {hint}.");
        text.push_str(&format!("{}\n", paragraph("  ", "  ", &sentence)));
    }
    text
}

/// Draws load latency over size as a line of bars, on a logarithmic scale.
fn draw_bars(points: &[LadderPoint]) -> String {
    let logs: Vec<f64> = points.iter().map(|p| p.latency_ns.value.ln()).collect();
    let finite = || logs.iter().copied().filter(|log| log.is_finite());
    let (low, high) = (
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
    );
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let bars: String = logs
        .iter()
        .map(|log| {
            let share = (log - low) / (high - low);
            let bar = (1..BARS.len()).filter(|&n| share >= n as f64 / BARS.len() as f64);
            if log.is_finite() {
                BARS[bar.count()]
            } else {
                '?'
            }
        })
        .collect();
    let size = |bytes: usize| round_bytes(bytes as u64);
    let line = format!("{} {bars} {}", size(first.bytes), size(last.bytes));
    format!("{}\n", paragraph("  ", "  ", &line))
}

fn format_plateau_row(plateau: &PlateauRecord) -> Vec<String> {
    let bytes = |size: Option<u64>| size.map_or_else(|| "–".to_owned(), round_bytes);
    vec![
        plateau
            .level
            .map_or_else(|| "memory".to_owned(), |level| format!("L{level}")),
        nanoseconds(plateau.latency_ns),
        bytes(plateau.effective_bytes),
        bytes(plateau.reported_bytes),
    ]
}

/// A row per set of CPUs and node, a column per kind of stream.
fn format_bandwidth_table(records: &[BandwidthRecord], palette: Palette) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = format_heading("Bandwidth of memory, GB/s (1e9 bytes per second)", palette);
    let mut streams: Vec<&MemoryStream> = Vec::new();
    let mut places: Vec<(&str, Option<usize>)> = Vec::new();
    for record in records {
        if !streams.contains(&&record.stream) {
            streams.push(&record.stream);
        }
        let place = (record.cpus.as_str(), record.node);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    // More columns would not fit; there are four kinds of stream.
    streams.truncate(4);
    let figure = |place: &(&str, Option<usize>), stream: &MemoryStream| {
        let found = records
            .iter()
            .find(|r| (r.cpus.as_str(), r.node) == *place && r.stream == *stream);
        found.map_or_else(|| "–".to_owned(), |r| three_digits(r.gb_per_s.value))
    };
    let rows = places
        .iter()
        .map(|place| {
            let mut row = vec![
                shorten(place.0, LIST_WIDTH),
                place
                    .1
                    .map_or_else(|| "own".to_owned(), |node| format!("node {node}")),
            ];
            row.extend(streams.iter().map(|stream| figure(place, stream)));
            row
        })
        .collect();
    let names: Vec<String> = streams
        .iter()
        .map(|name| shorten(name.as_str(), 9))
        .collect();
    let mut header = vec!["CPUs", "memory"];
    header.extend(names.iter().map(String::as_str));
    text.push_str(&table(&header, rows));
    text
}

fn format_loaded_latency_table(records: &[LoadedLatencyRecord], palette: Palette) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = format_heading("Memory latency under load", palette);
    let rows = records
        .iter()
        .map(|record| {
            let (loaders, load) = match record.loaders.as_str() {
                "" => ("none".to_owned(), "–".to_owned()),
                list => (
                    shorten(list, LIST_WIDTH),
                    format!("{} GB/s", three_digits(record.background_gb_per_s)),
                ),
            };
            vec![
                record.cpu.to_string(),
                loaders,
                load,
                format_interval(&record.latency_ns, nanoseconds),
            ]
        })
        .collect();
    text.push_str(&table(&["CPU", "loaders", "their load", "one load"], rows));
    text
}

fn format_clock_and_scheduler_table(
    clock: Option<&ClockRecord>,
    scheduling: Option<&SchedulingRecord>,
    palette: Palette,
) -> String {
    let ghz = |value: f64| format!("{} GHz", three_digits(value));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, figure: Option<String>| {
        rows.extend(figure.map(|figure| vec![name.to_owned(), figure]));
    };
    if let Some(clock) = clock {
        row("time-stamp counter", clock.tick_ghz.map(ghz));
        row("core clock", clock.core_ghz.map(ghz));
        row("clock resolution", clock.step_ns.map(nanoseconds));
    }
    if let Some(costs) = scheduling {
        let shown =
            |median: &Option<Median>| median.as_ref().map(|m| format_interval(m, nanoseconds));
        row("context switch on one CPU", shown(&costs.context_switch_ns));
        row("wake-up on another CPU", shown(&costs.futex_wake_ns));
    }
    if rows.is_empty() {
        return String::new();
    }
    let table: String = rows
        .iter()
        .map(|row| format!("  {:<28}  {}\n", row[0], row[1]))
        .collect();
    format_heading("Clock and scheduler", palette) + &table
}

/// Describes how many of the batches were discarded.
pub(super) fn describe_rejected(kept: usize, switched: usize, stolen: usize) -> String {
    if switched + stolen == 0 {
        return format!("{kept} batches, none discarded");
    }
    format!(
        "{} batches, {} discarded ({switched} preempted, {stolen} stolen by the hypervisor)",
        kept + switched + stolen,
        switched + stolen,
    )
}
