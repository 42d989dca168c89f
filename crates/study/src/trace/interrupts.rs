//! Records the time that interrupts took from the program, and judges it.

use std::path::Path;

use pinwise_format::percent;
use pinwise_record::{
    Finding, GapCause, InterruptCauseRecord, InterruptCpuRecord, InterruptsRecord, Severity,
    TraceRecord, TraceSource,
};
use pinwise_sched::{InterruptShare, InterruptSummary};
use pinwise_topology::Topology;

use super::seconds;
use crate::causes::NamedCause;

/// A smaller share of the program's time on a CPU is no finding, per cent.
const MIN_STOLEN_PERCENT: f64 = 5.0;
/// A shorter time is no finding, s.
const MIN_STOLEN_S: f64 = 0.01;
/// A count may be short by one in this many (3 %), …
const SHORT_DIVISOR: u64 = 33;
/// … plus this many.
const SHORT_COUNT: u64 = 20;
/// Most CPUs named in a sentence.
const MAX_CPUS: usize = 4;

/// Records the sums of all interrupts; `record` already has the CPU time of the program.
pub(super) fn make_record(
    summary: &InterruptSummary,
    record: &TraceRecord,
    topology: &Topology,
) -> InterruptsRecord {
    let devices = topology.devices_by_interrupt();
    let mut causes: Vec<InterruptCauseRecord> = Vec::new();
    for of_cause in summary.shares.chunk_by(|a, b| a.cause == b.cause) {
        let NamedCause { kind, name, irq } = NamedCause::new(&of_cause[0].cause);
        let device = irq.and_then(|irq| devices.get(&irq));
        let cpus: Vec<InterruptCpuRecord> = of_cause
            .iter()
            .map(|share| record_share(share, record))
            .collect();
        let count = cpus.iter().map(|cpu| cpu.count).sum();
        let counted = summary.counted.get(&of_cause[0].cause).copied();
        causes.push(InterruptCauseRecord {
            kind,
            name,
            irq,
            device: device.map(|device| device.address.clone()),
            count,
            counted,
            is_lower_bound: counted.is_some_and(|counted| is_short(count, counted)),
            seconds: cpus.iter().map(|cpu| cpu.seconds).sum(),
            stolen_s: cpus.iter().map(|cpu| cpu.stolen_s).sum(),
            cpus,
        });
    }
    causes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let stolen_s = causes.iter().map(|cause| cause.stolen_s).sum();
    InterruptsRecord {
        stolen_s,
        stolen_percent: percent_of(stolen_s, record.figures.totals.cpu_s),
        causes,
        reports: summary.reports,
        gaps: summary.gaps,
        unmatched: summary.unmatched,
    }
}

fn record_share(share: &InterruptShare, record: &TraceRecord) -> InterruptCpuRecord {
    let (cpu, took) = (share.cpu, share.took);
    let own = record.cpus.iter().find(|time| time.cpu == cpu);
    let (time_s, stolen_s) = (seconds(took.time_ns), seconds(took.own_ns));
    InterruptCpuRecord {
        cpu,
        count: took.count,
        seconds: time_s,
        percent: percent_of(time_s, record.elapsed_s).unwrap_or(0.0),
        stolen_s,
        stolen_percent: own.and_then(|own| percent_of(stolen_s, own.own_s)),
    }
}

/// Are there clearly fewer reports than the kernel counted? A small difference is normal, as its
/// counters are read a moment before and after the trace.
const fn is_short(count: u64, counted: u64) -> bool {
    count + count / SHORT_DIVISOR + SHORT_COUNT < counted
}

/// Per cent, at most 100; `None` if the whole is 0.
fn percent_of(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| (100.0 * part / whole).min(100.0))
}

/// Findings about causes that took much of the program's time on a CPU, and about missing reports.
pub(super) fn list_findings(record: &TraceRecord, topology: &Topology) -> Vec<Finding> {
    let Some(interrupts) = &record.interrupts else {
        return Vec::new();
    };
    let causes = interrupts.causes.iter();
    let found = causes.filter_map(|cause| find_heavy_interrupt(cause, &record.source, topology));
    found.chain(find_lost(interrupts)).collect()
}

fn find_heavy_interrupt(
    cause: &InterruptCauseRecord,
    source: &TraceSource,
    topology: &Topology,
) -> Option<Finding> {
    let is_device = cause.kind == GapCause::Interrupt;
    if !is_device && cause.kind != GapCause::Softirq {
        return None;
    }
    let mut cpus: Vec<(&InterruptCpuRecord, f64)> = cause
        .cpus
        .iter()
        .filter_map(|cpu| Some((cpu, cpu.stolen_percent?)))
        .filter(|(cpu, share)| *share >= MIN_STOLEN_PERCENT && cpu.stolen_s >= MIN_STOLEN_S)
        .collect();
    cpus.sort_by(|a, b| b.1.total_cmp(&a.1));
    let worst = cpus.first()?.1;
    let named = cpus.iter().take(MAX_CPUS);
    let named: Vec<String> = named
        .map(|(cpu, share)| format!("{} of CPU {}", percent(share / 100.0), cpu.cpu))
        .collect();
    let sentence = format!(
        "{} took {} while {} ran there.",
        cause.label(),
        named.join(", "),
        subject_name(source)
    );
    let finding = match is_device {
        true => Finding::new(
            "device_interrupts",
            Severity::Warning,
            sentence,
            advise_other_cpus(cause, topology),
        )
        .with_weight(7),
        false => Finding::new(
            "softirqs",
            Severity::Note,
            sentence,
            advise_on_softirq(cause),
        )
        .with_weight(4),
    };
    let finding = finding
        .with_evidence("percent", worst)
        .with_evidence("stolen_s", cause.stolen_s);
    Some(match cause.irq {
        Some(irq) => finding.with_evidence("irq", irq),
        None => finding.with_evidence("softirq", cause.name.clone()),
    })
}

/// The name of the traced program, for a sentence.
fn subject_name(source: &TraceSource) -> String {
    match source {
        TraceSource::Command { command, .. } => {
            let program = command.first().map(Path::new).and_then(Path::file_name);
            program.map_or_else(|| "it".to_owned(), |name| name.to_string_lossy().into())
        }
        TraceSource::Process { name, .. } => name.clone(),
        TraceSource::Machine | TraceSource::Import { .. } => "threads".to_owned(),
    }
}

fn advise_other_cpus(cause: &InterruptCauseRecord, topology: &Topology) -> String {
    let devices = topology.devices_by_interrupt();
    let device = cause.irq.and_then(|irq| devices.get(&irq));
    match (device, cause.irq) {
        (Some(device), _) => {
            let name = device.names.first().unwrap_or(&device.address);
            format!("Try other CPUs for it: pinwise compare --irq {name}=away -- …")
        }
        (None, Some(irq)) => format!(
            "Let other CPUs take it, as root: echo CPUS > /proc/irq/{irq}/smp_affinity_list"
        ),
        (None, None) => String::new(),
    }
}

fn advise_on_softirq(cause: &InterruptCauseRecord) -> &'static str {
    match cause.name.as_str() {
        "NET_RX" => {
            "Packets are handled by the CPU that took the card's interrupt, loopback packets by the sender's; moving the interrupts moves the card's packets (pinwise compare --irq)."
        }
        _ => "",
    }
}

fn find_lost(interrupts: &InterruptsRecord) -> Option<Finding> {
    let short = interrupts
        .causes
        .iter()
        .filter(|cause| cause.is_lower_bound);
    let missing = |cause: &InterruptCauseRecord| cause.counted.unwrap_or(0) - cause.count;
    let short = short.max_by_key(|cause| missing(cause));
    let sentence = match (short, interrupts.gaps) {
        (None, 0) => return None,
        (Some(cause), _) => format!(
            "Of {}, {} were reported and the kernel counted {}: interrupt time is a lower bound.",
            cause.label(),
            pinwise_format::grouped(cause.count),
            pinwise_format::grouped(cause.counted.unwrap_or(0)),
        ),
        (None, gaps) => format!(
            "Reports of interrupts were lost {}: interrupt time is a lower bound.",
            pinwise_format::count_of(gaps, "time", "times")
        ),
    };
    let finding = Finding::new(
        "interrupts_lost",
        Severity::Warning,
        sentence,
        "Trace for a shorter time, or on a less busy machine.",
    );
    Some(finding.with_evidence("gaps", interrupts.gaps))
}

#[cfg(test)]
mod tests;
