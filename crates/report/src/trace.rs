//! A trace as text: figures of the scheduler, threads, CPUs and findings.

use super::comparison::{describe_findings, render_answer};
use super::style::{Palette, name_cpus, paragraph, shorten, table, visible};
use super::trace_blocked::describe_blocked;
use super::trace_interrupts::describe_interrupts;
use pinwise_format::{bytes, count, count_of, grouped, percent, percent_range, seconds};
use pinwise_record::{
    Bound, CpuTimeRecord, Finding, LowerBound, MemoryRecord, MigrationCounts, Severity,
    ThreadRecord, TraceRecord, TraceSource, TraceTier, WaitBasis, WaitCauses,
};
use pinwise_sched::Tier;

/// The most threads and CPUs that are shown; the record has all.
const MAX_THREADS: usize = 12;
const MAX_CPUS: usize = 16;
/// Width of a CPU's strip.
const STRIP_WIDTH: usize = 40;
/// Bars for a share in eighths.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A trace that has just ended, for a terminal: its threads, its CPUs, and what is wrong, the answer
/// last. [`render_trace`] also shows the figures, notes and where the events are from.
#[must_use]
pub fn render_trace_answer(record: &TraceRecord, palette: Palette) -> String {
    let title = paragraph("", "  ", &format_title(record));
    let mut out = format!("{}\n", palette.strong(&title));
    if record.figures.lost.records > 0 {
        out += &format!("{}\n", paragraph("", "  ", &describe_origin(record)));
    }
    out += &format_threads_table(record);
    out += &format_cpus_table(record);
    out += &describe_interrupts(record.interrupts.as_ref(), &record.source);
    let (notes, mut grave): (Vec<Finding>, Vec<Finding>) = record
        .findings
        .iter()
        .cloned()
        .partition(|finding| finding.severity == Severity::Note);
    // The answer says it again.
    let answer = record.answer.as_ref();
    for finding in &mut grave {
        if answer.is_some_and(|answer| answer.advice.contains(&finding.advice)) {
            finding.advice.clear();
        }
    }
    out += &describe_findings(&grave, palette);
    out += &list_notes(record);
    let notes = match notes.len() {
        0 => String::new(),
        notes => format!(" and {}", count(notes, "note")),
    };
    let line = format!("All figures{notes}: -v. {}", palette.record(&record.id));
    out += &palette.faint(&format!("\n{line}\n"));
    out + &answer.map_or_else(String::new, |answer| render_answer(answer, palette))
}

/// A whole trace for a terminal.
#[must_use]
pub fn render_trace(record: &TraceRecord, palette: Palette) -> String {
    let mut out = format!(
        "{}\n",
        palette.strong(&paragraph("", "  ", &format_title(record)))
    );
    out += &format!("{}\n\n", paragraph("", "  ", &describe_origin(record)));
    for (name, line) in list_figures(record) {
        let first = format!("  {name:<12}");
        out += &format!("{}\n", paragraph(&first, &" ".repeat(14), &line));
    }
    out += &format_threads_table(record);
    out += &format_cpus_table(record);
    out += &describe_interrupts(record.interrupts.as_ref(), &record.source);
    out += &describe_findings(&record.findings, palette);
    out += &list_notes(record);
    out += &palette.faint(&format!("\n{}\n", palette.record(&record.id)));
    let answer = record.answer.as_ref();
    out + &answer.map_or_else(String::new, |answer| render_answer(answer, palette))
}

fn list_notes(record: &TraceRecord) -> String {
    let notes = record.notes.iter();
    notes
        .map(|note| format!("{}\n", paragraph("  · ", "    ", note)))
        .collect()
}

fn format_title(record: &TraceRecord) -> String {
    let took = seconds(record.elapsed_s);
    match &record.source {
        TraceSource::Command {
            command,
            placement,
            cpus,
        } => {
            let command = shorten(&command.join(" "), 200);
            format!("{command} under {placement} ({}), {took}", name_cpus(cpus))
        }
        TraceSource::Process { pid, name } => format!("{} ({pid}), {took}", visible(name)),
        TraceSource::Machine => format!("The whole machine, {took}"),
        TraceSource::Import { path, pid } => {
            let whom = pid.map_or_else(String::new, |pid| format!(", process {pid}"));
            format!("{}{whom}, {took}", visible(path))
        }
    }
}

fn describe_origin(record: &TraceRecord) -> String {
    let words = record.tier.as_str().parse().map_or("", Tier::description);
    let tier = match (&record.tier, words) {
        (TraceTier::Simulated, _) => "A simulated machine's own events".to_owned(),
        (format, "") => format!("Read as {}", visible(format.as_str())),
        (tier, words) => format!("Tier {tier}, {words}"),
    };
    let cost = record.cost.as_ref().map_or_else(String::new, |cost| {
        if cost.ns_per_switch <= 0.0 {
            return ": no measurable overhead per context switch".to_owned();
        }
        format!(
            ": {:.0} ns of overhead per context switch here, {} of the program's CPU time in total",
            cost.ns_per_switch,
            percent(cost.percent_of_cpu / 100.0)
        )
    });
    let lost = match record.figures.lost.records {
        0 => "none lost".to_owned(),
        records => format!("{} LOST", count_of(records, "record", "records")),
    };
    let events = grouped(record.figures.totals.events);
    format!("{tier}{cost}. {events} events, {lost}.")
}

fn list_figures(record: &TraceRecord) -> Vec<(&'static str, String)> {
    let figures = &record.figures;
    let totals = &figures.totals;
    let worth = totals.cpu_s / record.elapsed_s.max(1e-9);
    let bound = |figure| figures.bound(figure).words();
    let mut lines = vec![(
        "CPU time",
        format!(
            "{}{}, {worth:.2} CPUs' worth; {}{} in {}",
            bound(LowerBound::CpuTime),
            seconds(totals.cpu_s),
            bound(LowerBound::Threads),
            count_of(totals.threads, "thread", "threads"),
            count_of(totals.processes.max(1), "process", "processes"),
        ),
    )];
    if let Some(switches) = totals.switches {
        let pushed = totals.preemptions.map_or_else(String::new, |n| {
            format!(", {} of them preemptions", grouped(n))
        });
        let woken = totals.wakeups.map_or_else(String::new, |n| {
            format!("; {}", count_of(n, "wake-up", "wake-ups"))
        });
        lines.push((
            "Switches",
            format!(
                "{}{}{pushed}{woken}",
                bound(LowerBound::Switches),
                grouped(switches)
            ),
        ));
    }
    let moved = match (totals.migrations.total(), bound(LowerBound::Migrations)) {
        (0, "") => "none".to_owned(),
        (0, _) => "none seen".to_owned(),
        (_, words) => format!("{words}{}", describe_migrations(&totals.migrations)),
    };
    lines.push(("Migrations", moved));
    lines.extend(describe_waits(record).map(|line| ("Queued", line)));
    lines.extend(
        figures
            .waits
            .because
            .filter(|_| figures.waits.total_s.is_some_and(|total| total > 0.0))
            .map(|causes| ("  because", describe_causes(&causes))),
    );
    lines.push(("SMT sharing", describe_sharing(record)));
    lines.extend(describe_idle(record).map(|line| ("Idle beside", line)));
    lines.extend(describe_blocked(&record.blocked).map(|line| ("Blocked in", line)));
    lines.extend(
        figures
            .memory
            .as_ref()
            .map(|seen| ("Memory", describe_memory(seen, totals.processes))),
    );
    lines
}

/// Describes how much memory the program had, and on which nodes.
fn describe_memory(seen: &MemoryRecord, processes: u64) -> String {
    let all: f64 = seen.nodes.iter().map(|node| node.bytes).sum();
    let huge = match seen.huge_percent {
        share if share < 0.05 => String::new(),
        share => format!(", {} in huge pages", percent(share / 100.0)),
    };
    let looks = count_of(seen.looks as u64, "look", "looks");
    let last: u64 = seen.nodes.iter().map(|node| node.last_bytes).sum();
    let last = match (last as f64 / all.max(1.0) - 1.0).abs() > 0.05 {
        true => format!(", {} at the last", bytes(last as f64)),
        false => String::new(),
    };
    let shared = match processes {
        0 | 1 => "",
        _ => "; pages shared between processes count for each",
    };
    let whole = format!("{} on average over {looks}{last}{huge}{shared}", bytes(all));
    let Some(local) = seen.local else {
        return whole;
    };
    let nodes = seen.nodes.iter().map(|node| {
        format!(
            "node {}: {} of the pages, {} of the CPU time",
            node.node,
            percent(node.bytes / all.max(1.0)),
            percent(node.cpu_percent / 100.0)
        )
    });
    let nodes: Vec<String> = nodes.collect();
    let balanced = match seen.is_balanced {
        Some(true) => "; the kernel moves pages (numa_balancing)",
        _ => "",
    };
    format!(
        "{whole}; {}; local {} ({}) if all threads use all pages alike{balanced}",
        nodes.join("; "),
        percent(local.percent / 100.0),
        percent_range(local.low / 100.0, local.high / 100.0),
    )
}

fn describe_migrations(counted: &MigrationCounts) -> String {
    let unknown_moves = (counted.unknown, "between looks");
    let parts: Vec<String> = counted
        .list_crossings()
        .into_iter()
        .chain([unknown_moves])
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{} {words}", grouped(count)))
        .collect();
    format!("{}: {}", grouped(counted.total()), parts.join(", "))
}

fn describe_waits(record: &TraceRecord) -> Option<String> {
    let waits = &record.figures.waits;
    let bound = record.figures.bound(LowerBound::Queued);
    let is_bound = matches!(bound, Bound::Lower | Bound::Rough);
    if waits.total_s == Some(0.0) {
        let unknown = match record.source {
            TraceSource::Import { .. } => "unknown: events are missing in the file",
            _ => "unknown: threads ended before their counters were read",
        };
        return Some(if is_bound { unknown } else { "never" }.to_owned());
    }
    let total = match (waits.total_s, waits.after_preemption_s) {
        (Some(total), _) => {
            let why = match bound {
                Bound::Exact => "",
                Bound::Upper => " (waits are short relative to the delay of events)",
                Bound::Rough => " (switches are missing)",
                Bound::Lower => match record.source {
                    TraceSource::Import { .. } => " (ends of waits are missing in the file)",
                    _ if record.tier == TraceTier::Proc => {
                        " (threads that live between two polls are missing)"
                    }
                    _ => " (threads may have been queued unseen on their way out)",
                },
            };
            format!("{}{}{why}", bound.words(), seconds(total))
        }
        (None, Some(after)) => format!(
            "{} after a preemption; the rest is not seen",
            seconds(after)
        ),
        (None, None) => return None,
    };
    let kernel = if waits.basis == Some(WaitBasis::Schedstat) && !is_bound {
        " by the kernel's total"
    } else {
        ""
    };
    let lengths = match (waits.p50_s, waits.p99_s, waits.longest_s) {
        (Some(p50), Some(p99), Some(longest)) => format!(
            "; half of the waits up to {}, 99 % up to {}, longest {}",
            seconds(p50),
            seconds(p99),
            seconds(longest)
        ),
        _ => String::new(),
    };
    Some(format!("{total}{kernel}{lengths}"))
}

fn describe_causes(causes: &WaitCauses) -> String {
    let parts = [
        (causes.scheduler_s, "an allowed CPU idled"),
        (causes.mask_s, "the mask forbade the idle CPUs"),
        (causes.other_processes_s, "others ran"),
        (causes.own_threads_s, "its own threads ran"),
        (causes.starting_s, "the idle CPU was waking up"),
        (causes.throttled_s, "a CPU quota was used up"),
        (
            causes.scheduling_class_s,
            "the scheduling class held it back",
        ),
    ];
    let mut parts: Vec<(f64, &str)> = parts.into_iter().filter(|(part, _)| *part > 0.0).collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts
        .iter()
        .map(|(part, words)| format!("{} {words}", seconds(*part)))
        .collect();
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

fn describe_sharing(record: &TraceRecord) -> String {
    let sharing = &record.figures.avoidable_smt_sharing;
    let note = sharing.note.as_ref();
    let Some(shared) = sharing.shared_percent else {
        let why = note.map_or("unknown", String::as_str);
        return format!("– ({why})");
    };
    let avoidable = match (sharing.percent, sharing.seconds) {
        (Some(percent_of), Some(total)) => {
            let note = note.map_or_else(String::new, |note| format!("; {note}"));
            format!(
                "; avoidable {} ({}{note})",
                percent(percent_of / 100.0),
                seconds(total)
            )
        }
        _ => note.map_or_else(String::new, |note| format!(" ({note})")),
    };
    format!(
        "{} of the CPU time beside a busy sibling{avoidable}",
        percent(shared / 100.0)
    )
}

fn describe_idle(record: &TraceRecord) -> Option<String> {
    let idle = &record.figures.idle_while_waiting;
    let total_s = idle.seconds.filter(|&seconds| seconds > 0.0)?;
    let what = "queued for 1 ms and more while a CPU idled:";
    let total = seconds(total_s);
    Some(match (idle.episodes, idle.longest_s) {
        (Some(episodes), Some(longest_s)) => format!(
            "{what} {}, {total} in total, longest {}",
            count_of(episodes, "time", "times"),
            seconds(longest_s)
        ),
        _ => format!("{what} {total} that no CPU quota explains"),
    })
}

fn format_threads_table(record: &TraceRecord) -> String {
    let waited = |thread: &ThreadRecord| {
        let at_least = if thread.wait_is_lower_bound {
            "≥ "
        } else {
            ""
        };
        thread.wait_s.map_or_else(
            || "–".to_owned(),
            |wait| format!("{at_least}{}", seconds(wait)),
        )
    };
    let counted = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), grouped);
    let rows: Vec<Vec<String>> = record
        .threads
        .iter()
        .take(MAX_THREADS)
        .map(|thread| {
            let on: Vec<String> = thread
                .cpus
                .iter()
                .take(3)
                .map(|on| on.cpu.to_string())
                .collect();
            let more = if thread.cpus.len() > 3 { "…" } else { "" };
            vec![
                thread.thread.to_string(),
                shorten(&thread.name, 16),
                seconds(thread.cpu_s),
                waited(thread),
                counted(thread.switches),
                grouped(thread.migrations.total()),
                format!("{}{more}", on.join(" ")),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "Thread",
        "name",
        "CPU",
        "queued",
        "switches",
        "moves",
        "mostly on",
    ];
    let mut out = format!("\n{}", table(&header, rows));
    let shown = record.threads.len().min(MAX_THREADS) as u64;
    let more = record.threads.len() as u64 - shown + record.threads_left_out;
    if more > 0 {
        out += &format!("  and {} more\n", grouped(more));
    }
    out
}

/// A table of CPUs with their shares of time, and a strip of what they did over time: bars for
/// this program, dots for others.
fn format_cpus_table(record: &TraceRecord) -> String {
    let mut shown: Vec<&CpuTimeRecord> = record.cpus.iter().collect();
    if shown.len() > MAX_CPUS {
        shown.sort_by(|a, b| b.own_s.total_cmp(&a.own_s).then(a.cpu.cmp(&b.cpu)));
        shown.truncate(MAX_CPUS);
        shown.sort_by_key(|cpu| cpu.cpu);
    }
    let share = |part: f64| format!("{:.0} %", 100.0 * part / record.elapsed_s.max(1e-9));
    let optional = |part: Option<f64>| part.map_or_else(|| "–".to_owned(), share);
    let has_unknown = shown.iter().any(|cpu| cpu.unknown_s > Some(0.0));
    let with_unknown = |mut cells: Vec<String>, what: String| {
        if has_unknown {
            cells.insert(cells.len() - 1, what);
        }
        cells
    };
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|cpu| {
            let cells = vec![
                cpu.cpu.to_string(),
                share(cpu.own_s),
                optional(cpu.foreign_s),
                optional(cpu.idle_s),
                draw_strip(record, cpu.cpu),
            ];
            with_unknown(cells, optional(cpu.unknown_s))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["CPU", "own", "others", "idle", "over time (· others)"];
    let header = header.map(str::to_owned).to_vec();
    let header = with_unknown(header, "unknown".to_owned());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut out = format!("\n{}", table(&header, rows));
    let more = record.cpus.len() - shown.len();
    if more > 0 {
        out += &format!("  and {more} more CPUs\n");
    }
    out
}

fn draw_strip(record: &TraceRecord, cpu: usize) -> String {
    let Some(spans) = record.timeline.spans.iter().find(|spans| spans.cpu == cpu) else {
        return "|".to_owned() + &" ".repeat(STRIP_WIDTH) + "|";
    };
    let many = spans.own.len().max(1);
    let mean = |values: &[f64], column: usize| {
        let from = column * many / STRIP_WIDTH;
        let to = ((column + 1) * many / STRIP_WIDTH)
            .max(from + 1)
            .min(values.len());
        let part = values.get(from..to).unwrap_or(&[]);
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    let cell = |column: usize| {
        let own = mean(&spans.own, column);
        let foreign = mean(&spans.foreign, column);
        if own < 1.0 / 16.0 && foreign >= 1.0 / 16.0 {
            return '·';
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share in eighths"
        )]
        let level = (own.clamp(0.0, 1.0) * 8.0).round() as usize;
        LEVELS[level.min(8)]
    };
    let cells: String = (0..STRIP_WIDTH).map(cell).collect();
    format!("|{cells}|")
}
