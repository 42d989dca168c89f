//! Lays out any record as text or rows, with the function of its kind. A kind that is missing here
//! does not compile.

use super::measured::matrix::list_pair_rows;
use super::style::{Palette, paragraph, quantity, visible};
use super::table::Table;
use super::{ProfileShown, WIDTH, bench, export, search, top, trace_rows};
use pinwise_format::{count, round_bytes};
use pinwise_placement::InterruptCpus;
use pinwise_record::{
    AnyRecord, Applied, AppliedInterrupt, AppliedMemory, Entry, PackedError, Summary,
};
use pinwise_topology::CpuSet;
use pinwise_topology::interrupts::Queue;

/// The most functions in the difference of two profiles.
const MAX_FUNCTIONS: usize = 15;

/// The most threads in a frame of `top`.
const MAX_THREADS: usize = 20;

/// A record for a terminal.
#[must_use]
pub fn render_record(record: &AnyRecord, palette: Palette) -> String {
    match record {
        AnyRecord::Comparison(record) => super::render_comparison(record, palette),
        AnyRecord::Gate(record) => super::render_gate(record, palette),
        AnyRecord::Bench(record) => super::render_bench(record, palette),
        AnyRecord::Jitter(record) => super::render_jitter(record, palette),
        AnyRecord::Topology(record) => {
            super::render_topology(&record.to_topology(), record, palette)
        }
        AnyRecord::TopologyDiff(record) => super::render_topology_diff(record, palette),
        AnyRecord::Diff(record) => super::render_record_diff(record, palette),
        AnyRecord::Trace(record) => super::render_trace(record, palette),
        AnyRecord::Search(record) => super::render_search(record, palette),
        AnyRecord::Prediction(record) => super::render_prediction(record, palette),
        AnyRecord::Profile(record) => {
            super::render_profile(record, &ProfileShown::default(), palette)
        }
        AnyRecord::ProfileDiff(record) => {
            super::render_profile_diff(record, MAX_FUNCTIONS, palette)
        }
        AnyRecord::SpinPause(record) => super::render_spin_pause(record, palette),
        AnyRecord::SpinPredict(record) => super::render_spin_prediction(record, palette),
        AnyRecord::SpinReplay(record) => super::render_spin_replay(record, palette),
        AnyRecord::SpinAttach(record) => super::render_spin_attach(record, palette),
        AnyRecord::SpinAdvice(record) => super::render_spin_advice(record, palette),
        AnyRecord::SpinScan(record) => super::render_spin_scan(record, palette),
        AnyRecord::Reproduction(record) => super::render_reproduction(record, palette),
        AnyRecord::Replay(record) => super::render_replay(record, palette),
        AnyRecord::Placements(record) => super::render_placements(record, palette),
        AnyRecord::Doctor(record) => super::render_doctor(record, palette),
        AnyRecord::Kernel(record) => super::render_kernel_run(record, palette),
        AnyRecord::Top(record) => {
            let rows = top::lay_out_still_frame(record, &top::View::default(), WIDTH, MAX_THREADS);
            top::rows_to_text(&rows, palette)
        }
        AnyRecord::Fleet(record) => super::render_fleet_plan(record, palette),
        AnyRecord::FleetNode(record) => super::render_fleet_node(record, palette),
        AnyRecord::FleetStatus(record) => super::render_fleet_status(record, palette),
        AnyRecord::FleetReport(record) => super::render_fleet_report(record, palette),
        AnyRecord::FleetDiff(record) => super::render_fleet_diff(record, palette),
        AnyRecord::Applied(record) => describe_applied(record),
        AnyRecord::Rules(record) => super::render_rules(record, palette),
        AnyRecord::RuleChange(record) => super::render_rule_change(record, palette) + "\n",
    }
}

/// A record's rows for CSV; `None` for a kind that has none.
///
/// # Errors
/// Slices of a trace that are damaged or of a newer layout.
pub fn list_rows(record: &AnyRecord) -> Result<Option<Table>, PackedError> {
    Ok(match record {
        AnyRecord::Comparison(record) => Some(export::list_run_rows(record)),
        AnyRecord::Gate(record) => Some(super::list_gate_rows(record)),
        AnyRecord::Bench(record) => Some(bench::list_bench_rows(record)),
        AnyRecord::Jitter(record) => Some(super::list_jitter_rows(record)),
        AnyRecord::Trace(record) => Some(trace_rows::list_trace_rows(record)?),
        AnyRecord::Search(record) => Some(search::list_search_rows(record)),
        AnyRecord::Topology(record) => record.measured.as_deref().map(list_pair_rows),
        _ => None,
    })
}

/// The text of a record that could not be read completely: its history entry and its
/// headline figures.
#[must_use]
pub fn render_partly_read(entry: &Entry, summary: &Summary) -> String {
    let mut text = format!("{}\n", visible(&entry.title));
    let where_and_when = [&entry.schema, &entry.host, &entry.time];
    let texts = where_and_when.into_iter().filter(|text| !text.is_empty());
    let texts: Vec<String> = texts.map(|text| visible(text)).collect();
    text.push_str(&format!("{}\n", texts.join(" · ")));
    if !entry.verdict.is_empty() {
        text.push_str(&format!("{}\n", paragraph("", "", &entry.verdict)));
    }
    for figure in &summary.figures {
        let value = quantity(figure.value, &figure.unit);
        text.push_str(&format!("  {}  {value}\n", visible(&figure.name)));
    }
    text
}

/// Describes how much memory was moved, and how much stayed.
fn describe_moved(memory: &AppliedMemory) -> String {
    let (moved, left) = memory.moved_and_left();
    let nodes: Vec<String> = memory.asked_nodes.iter().map(usize::to_string).collect();
    let nodes = nodes.join(",");
    let left = match left {
        0 => String::new(),
        left => format!("; {} elsewhere", round_bytes(left)),
    };
    format!(
        "  memory    {} moved to node {nodes}{left}\n",
        round_bytes(moved)
    )
}

/// Describes interrupts and queues that were moved; empty if none were.
fn describe_interrupts(moved: &[AppliedInterrupt]) -> String {
    let mut cpus = InterruptCpus::default();
    for one in moved {
        let requested = CpuSet::parse_list(&one.asked_cpus).unwrap_or_default();
        let queue = one.queue.as_deref().and_then(|name| name.split_once(' '));
        if let Some(number) = one.irq {
            cpus.interrupts.insert(number, requested);
        } else if let Some(queue) =
            queue.and_then(|(interface, name)| Queue::from_name(interface, name))
        {
            cpus.queues.insert(queue, requested);
        }
    }
    match cpus.is_empty() {
        true => String::new(),
        false => paragraph("  irqs      ", "            ", &cpus.to_string()) + "\n",
    }
}

/// Describes a placed service: requested, granted and observed CPUs.
#[must_use]
pub fn describe_applied(record: &Applied) -> String {
    let observed = match record.observed_share {
        None => "none of them ran meanwhile".to_owned(),
        Some(share) => format!(
            "CPUs {}; {:.1} % of {} looks where asked",
            record.observed_cpus,
            100.0 * share,
            record.observations
        ),
    };
    let threads = count(record.threads, "thread");
    let memory = record
        .memory
        .as_ref()
        .map_or_else(String::new, describe_moved);
    let interrupts = describe_interrupts(&record.interrupts);
    format!(
        "{}: {threads} placed, {}\n  asked     CPUs {}\n  granted   CPUs {}\n  observed  {}\n{memory}{interrupts}",
        visible(&record.service.label()),
        visible(&record.placement),
        visible(&record.asked_cpus),
        visible(&record.granted_cpus),
        visible(&observed),
    )
}
