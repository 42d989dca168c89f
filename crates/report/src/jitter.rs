//! Gaps in the time of CPUs, as text.

use super::comparison::{describe_findings, render_answer};
use super::style::{Palette, paragraph, table, table_without};
use super::table::{Cell, Table};
use super::trace_events::neutralise_name;
use pinwise_format::{count, grouped, percent, seconds};
use pinwise_record::{GapCause, IsolationRecord, JitterCauseRecord, JitterCpuRecord, JitterRecord};

/// The most CPUs in the table; the record has all.
const MAX_CPUS: usize = 32;
/// The most threads in the list of causes.
const MAX_THREADS: usize = 5;
/// The causes in the row of a CPU.
const MAIN_CAUSES: usize = 2;
/// The most interrupts, and softirqs, that are listed for a CPU.
const MAX_INTERRUPTS: usize = 4;

/// Jitter for a terminal.
#[must_use]
pub fn render_jitter(record: &JitterRecord, palette: Palette) -> String {
    let longest = record.cpus.iter().map(|cpu| cpu.watched_s);
    let title = format!(
        "Gaps above {} on {}, {} watched for {}",
        seconds(record.threshold_us * 1e-6),
        record.host.name(),
        count(record.cpus.len(), "CPU"),
        seconds(longest.fold(0.0, f64::max))
    );
    let mut out = format!("{}\n\n", palette.strong(&paragraph("", "  ", &title)));
    out += &table_without(
        &["median", "p99"],
        &[],
        &[
            "CPU",
            "gaps",
            "median",
            "p99",
            "longest",
            "time lost",
            "mostly to",
        ],
        record
            .cpus
            .iter()
            .take(MAX_CPUS)
            .map(format_cpu_row)
            .collect(),
    );
    if record.cpus.len() > MAX_CPUS {
        let more = record.cpus.len() - MAX_CPUS;
        out += &format!("  and {more} more CPUs in the record\n");
    }
    out += &format_causes_table(record, palette);
    out += &describe_counters(record, palette);
    out += &format!("\n{}\n", describe_isolation(&record.isolation));
    let findings = record.findings.iter();
    // The answer, at the end, repeats no finding.
    let others = findings.filter(|finding| finding.sentence != record.answer.sentence);
    out += &describe_findings(others, palette);
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", note));
    }
    if record.interrupted {
        out += "\nInterrupted: figures cover the time until then.\n";
    }
    out += &palette.faint(&format!("\n{}\n", palette.record(&record.id)));
    out + &render_answer(&record.answer, palette)
}

/// One row for each CPU and cause of its gaps. A CPU without
/// gaps has none.
#[must_use]
pub fn list_jitter_rows(record: &JitterRecord) -> Table {
    let mut table = Table::new([
        "cpu",
        "watched_s",
        "kind",
        "name",
        "irq",
        "device",
        "gaps",
        "lost_ms",
        "lost_share",
        "longest_us",
    ]);
    for cpu in &record.cpus {
        for cause in &cpu.causes {
            let share = (cpu.watched_s > 0.0).then(|| cause.lost_ms * 1e-3 / cpu.watched_s);
            table.push([
                Cell::whole(cpu.cpu),
                Cell::number(cpu.watched_s),
                Cell::text(cause.kind.as_str()),
                Cell::text(neutralise_name(&cause.name)),
                Cell::count(cause.irq),
                Cell::text(cause.device.clone().unwrap_or_default()),
                Cell::whole(cause.gaps),
                Cell::number(cause.lost_ms),
                Cell::number(share),
                Cell::number(cause.longest_us),
            ]);
        }
    }
    table
}

fn format_cpu_row(cpu: &JitterCpuRecord) -> Vec<String> {
    let us = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), |us| seconds(us * 1e-6));
    let main = cpu.causes.iter().take(MAIN_CAUSES);
    let main: Vec<String> = main.map(JitterCauseRecord::label).collect();
    vec![
        cpu.cpu.to_string(),
        grouped(cpu.gaps),
        us(cpu.median_us),
        us(cpu.p99_us),
        us(cpu.longest_us),
        percent(cpu.lost_share),
        main.join(", "),
    ]
}

/// The causes of the gaps of all CPUs.
fn format_causes_table(record: &JitterRecord, palette: Palette) -> String {
    if record.causes_unavailable.is_some() || record.causes.is_empty() {
        return String::new();
    }
    let row = |cause: &JitterCauseRecord| {
        vec![
            cause.label(),
            grouped(cause.gaps),
            seconds(cause.lost_ms * 1e-3),
            seconds(cause.longest_us * 1e-6),
            cause.cpus.clone(),
        ]
    };
    let mut threads = 0;
    let is_shown = |cause: &&JitterCauseRecord| {
        threads += usize::from(cause.kind == GapCause::Thread);
        cause.kind != GapCause::Thread || threads <= MAX_THREADS
    };
    let (shown, rest): (Vec<_>, Vec<_>) = record.causes.iter().partition(is_shown);
    let mut rows: Vec<Vec<String>> = shown.into_iter().map(row).collect();
    if !rest.is_empty() {
        let lost_ms: f64 = rest.iter().map(|cause| cause.lost_ms).sum();
        let longest_us = rest.iter().map(|cause| cause.longest_us);
        rows.push(vec![
            count(rest.len(), "more thread"),
            grouped(rest.iter().map(|cause| cause.gaps).sum()),
            seconds(lost_ms * 1e-3),
            seconds(longest_us.fold(0.0, f64::max) * 1e-6),
            String::new(),
        ]);
    }
    let out = format!("\n{}\n", palette.strong("Causes"));
    out + &table(&["cause", "gaps", "time", "longest", "CPUs"], rows)
}

/// The system's counters, if the causes of gaps are unknown.
fn describe_counters(record: &JitterRecord, palette: Palette) -> String {
    let Some(reason) = &record.causes_unavailable else {
        return String::new();
    };
    let line = format!("Causes unknown: {reason}. The system's counters meanwhile:");
    let mut out = format!("\n{}\n", palette.warn(&paragraph("", "  ", &line)));
    for cpu in record.cpus.iter().take(MAX_CPUS) {
        let interrupts = cpu.interrupts.iter().take(MAX_INTERRUPTS);
        let interrupts = interrupts.map(|counted| match counted.name.as_str() {
            "" => format!("{} {}", grouped(counted.count), counted.label),
            name => format!("{} {name}", grouped(counted.count)),
        });
        let softirqs = cpu.softirqs.iter().take(MAX_INTERRUPTS);
        let softirqs =
            softirqs.map(|counted| format!("{} softirq {}", grouped(counted.count), counted.label));
        let queued = cpu
            .queued_ms
            .map(|ms| format!("queued behind other threads for {}", seconds(ms * 1e-3)));
        let steal = cpu.steal_ms.filter(|ms| *ms > 0.0);
        let steal = steal.map(|ms| format!("stolen by the hypervisor {}", seconds(ms * 1e-3)));
        let all: Vec<String> = interrupts
            .chain(softirqs)
            .chain(queued)
            .chain(steal)
            .collect();
        if all.is_empty() {
            continue;
        }
        let first = format!("  CPU {}: ", cpu.cpu);
        out += &format!("{}\n", paragraph(&first, "    ", &all.join(", ")));
    }
    out
}

fn describe_isolation(isolation: &IsolationRecord) -> String {
    let named = [
        ("isolated", &isolation.isolated),
        ("nohz_full", &isolation.nohz_full),
        ("rcu_nocbs", &isolation.rcu_nocbs),
    ];
    let labels: Vec<String> = named
        .iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(name, cpus)| format!("{name} CPUs {cpus}"))
        .collect();
    let line = match labels.is_empty() {
        true => "Isolation: none (isolcpus, nohz_full, rcu_nocbs).".to_owned(),
        false => format!(
            "Isolation: {}; managed interrupts are {}kept off.",
            labels.join(", "),
            if isolation.managed_irq { "" } else { "not " }
        ),
    };
    paragraph("", "  ", &line)
}

#[cfg(test)]
mod tests;
