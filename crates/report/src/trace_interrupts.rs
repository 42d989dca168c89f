//! The time that interrupts and softirqs took during a trace, as text.

use super::style::{paragraph, table};
use pinwise_format::{count, grouped, percent, seconds};
use pinwise_record::{InterruptCauseRecord, InterruptCpuRecord, InterruptsRecord, TraceSource};

/// The most causes that are shown; the record has all.
const MAX_CAUSES: usize = 12;
/// The most CPUs that are listed for a cause.
const MAX_CPUS: usize = 2;

/// A sentence and a table; empty if the trace did not measure interrupts.
pub(super) fn describe_interrupts(
    found: Option<&InterruptsRecord>,
    source: &TraceSource,
) -> String {
    let Some(found) = found else {
        return String::new();
    };
    let (whom, whose) = match source {
        TraceSource::Machine => ("threads", "their"),
        _ => ("the program", "its"),
    };
    let share = found.stolen_percent.map_or_else(String::new, |share| {
        format!(" ({} of {whose} CPU time)", percent(share / 100.0))
    });
    let line = format!(
        "Interrupts and softirqs took {} from {whom}{share}.",
        seconds(found.stolen_s)
    );
    let rows = found
        .causes
        .iter()
        .take(MAX_CAUSES)
        .map(format_cause_row)
        .collect();
    let from = format!("from {whom}");
    let header = ["Cause", "count", "time", &from, "of CPUs' time"];
    let mut out = format!("\n{}\n{}", paragraph("", "  ", &line), table(&header, rows));
    if found.causes.len() > MAX_CAUSES {
        let more = count(found.causes.len() - MAX_CAUSES, "more cause");
        out += &format!("  and {more} in the record\n");
    }
    out
}

fn format_cause_row(cause: &InterruptCauseRecord) -> Vec<String> {
    let mut cpus: Vec<&InterruptCpuRecord> = cause.cpus.iter().collect();
    cpus.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let named = cpus.iter().take(MAX_CPUS);
    let named: Vec<String> = named
        .map(|cpu| format!("{} of {}", percent(cpu.percent / 100.0), cpu.cpu))
        .collect();
    let more = if cpus.len() > MAX_CPUS { ", …" } else { "" };
    let least = if cause.is_lower_bound {
        "at least "
    } else {
        ""
    };
    vec![
        cause.label(),
        format!("{least}{}", grouped(cause.count)),
        format!("{least}{}", seconds(cause.seconds)),
        format!("{least}{}", seconds(cause.stolen_s)),
        format!("{}{more}", named.join(", ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::GapCause;

    fn example_interrupts() -> InterruptsRecord {
        let on = |(cpu, seconds): (usize, f64)| InterruptCpuRecord {
            cpu,
            count: 1,
            seconds,
            percent: 10.0 * seconds,
            ..InterruptCpuRecord::default()
        };
        let card = InterruptCauseRecord {
            kind: GapCause::Interrupt,
            name: "eth0\u{1b}[2J-rx-1".to_owned(),
            irq: Some(38),
            count: 12_345,
            seconds: 1.3,
            stolen_s: 0.6,
            cpus: [(0, 0.1), (1, 0.9), (2, 0.2), (3, 0.1)].map(on).into(),
            ..InterruptCauseRecord::default()
        };
        InterruptsRecord {
            stolen_s: 0.6,
            stolen_percent: Some(12.0),
            causes: vec![card; 13],
            ..InterruptsRecord::default()
        }
    }

    #[test]
    fn causes_are_rows_with_the_cpus_that_lost_most_first() {
        let source = TraceSource::Process {
            pid: 7,
            name: "nginx".to_owned(),
        };
        let text = describe_interrupts(Some(&example_interrupts()), &source);
        assert!(
            text.starts_with(
                "\nInterrupts and softirqs took 600 ms from the program (12.0 % of its CPU time).\n"
            ),
            "{text}"
        );
        assert!(text.contains("12,345  1.30 s  600 ms"), "{text}");
        assert!(text.contains("9.0 % of 1, 2.0 % of 2, …\n"), "{text}");
        assert!(
            text.ends_with("  and 1 more cause in the record\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn lower_bounds_are_marked() {
        let mut found = example_interrupts();
        found.causes.truncate(1);
        found.causes[0].is_lower_bound = true;
        let text = describe_interrupts(Some(&found), &TraceSource::Machine);
        assert!(
            text.contains("at least 12,345  at least 1.30 s  at least 600 ms"),
            "{text}"
        );
    }

    #[test]
    fn interrupts_of_a_whole_machine_take_time_from_threads() {
        let text = describe_interrupts(Some(&example_interrupts()), &TraceSource::Machine);
        let words = "took 600 ms from threads (12.0 % of their CPU time)";
        assert!(text.contains(words), "{text}");
        assert_eq!(describe_interrupts(None, &TraceSource::Machine), "");
    }
}
