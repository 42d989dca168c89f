//! Where a program spins and waits, as text.

use crate::comparison::{describe_findings, render_answer};
use crate::style::{Palette, paragraph, shorten, table, visible};
use pinwise_format::shell;
use pinwise_format::{count, count_of, grouped, nanoseconds, percent, seconds, whole};
use pinwise_record::{
    MatchStrength, SampleEvent, SpinAttachRecord, SpinPlace, SpinShares, TraceSource,
};

/// The most places that are shown; the record has more.
const MAX_PLACES: usize = 6;
/// The smallest share of CPU time of a place that is shown.
const MIN_SHARE: f64 = 0.005;
/// [`UNSEEN`] is shown if work takes at least this share of CPU time.
const MIN_WORK_SHARE: f64 = 0.05;
/// Waits that cannot be distinguished from work.
const UNSEEN: &str = "Waits through function pointers, several queues, a lock for each look, short \
                      sleeps, system calls that do not poll or receive, interpreters or a JVM's \
                      first compilers count as work.";
/// A PAUSE in a loop that takes this many times as long as alone is explained.
const MAX_HINT_RATIO: f64 = 2.0;
/// The most threads, and lines of code of a place, that are shown.
const MAX_THREADS: usize = 8;
const MAX_LINES: usize = 8;

/// A record of `spin attach` for a terminal.
#[must_use]
pub fn render_spin_attach(record: &SpinAttachRecord, palette: Palette) -> String {
    let mut out = format!(
        "{}\n",
        palette.strong(&paragraph("", "  ", &format_title(record)))
    );
    out += &format!("{}\n\n", paragraph("", "  ", &describe_origin(record)));
    if let Some(shares) = &record.shares {
        out += &format_shares_table(record, shares);
    }
    let shown = record
        .places
        .iter()
        .filter(|place| place.share >= MIN_SHARE);
    let shown: Vec<&SpinPlace> = shown.take(MAX_PLACES).collect();
    for (at, place) in shown.iter().enumerate() {
        out += &describe_place(at + 1, place, record.pause_ns, palette);
    }
    let left = record.places.len() - shown.len();
    if left > 0 {
        let places = count(left, "smaller place");
        out += &format!("\n  … and {places}, in the record (--format json).\n");
    }
    out += &format_threads_table(record);
    out += &describe_findings(&record.findings, palette);
    if record.findings.is_empty() && !record.notes.is_empty() {
        out.push('\n');
    }
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", &visible(note)));
    }
    out += &palette.faint(&format!("\n{}\n", palette.record(&record.id)));
    // The answer comes last, next to the prompt.
    out + &render_answer(&record.answer, palette)
}

fn format_title(record: &SpinAttachRecord) -> String {
    match &record.source {
        TraceSource::Command {
            command, placement, ..
        } => format!(
            "{} at {}",
            visible(&shell::line(command)),
            visible(placement)
        ),
        TraceSource::Process { pid, name } => format!("process {pid} ({})", visible(name)),
        TraceSource::Machine | TraceSource::Import { .. } => String::new(),
    }
}

fn describe_origin(record: &SpinAttachRecord) -> String {
    let own = if record.cpu_s > 0.0 {
        format!(
            "; pinwise itself used {} of CPU time for it",
            seconds(record.own_cpu_s)
        )
    } else {
        String::new()
    };
    if record.event == SampleEvent::Proc {
        return format!("CPU time from /proc over {}{own}.", seconds(record.wall_s));
    }
    format!(
        "{} samples by {} over {}, {} for each second of a thread's CPU time{own}.",
        record.samples,
        visible(record.event.as_str()),
        seconds(record.wall_s),
        record.hz
    )
}

fn format_shares_table(record: &SpinAttachRecord, shares: &SpinShares) -> String {
    let kinds = [
        (
            "polling",
            shares.polling_s,
            "looks, and hints between looks",
        ),
        ("blind delay", shares.blind_delay_s, "hints without looking"),
        ("no hint", shares.bare_load_s, "looks without a hint"),
        ("yielding", shares.yielding_s, "sched_yield between looks"),
        ("asking", shares.asking_s, "system calls that get nothing"),
        ("work", shares.work_s, "everything else"),
    ];
    let mut out = String::new();
    for (name, time_s, words) in kinds {
        let share = if record.cpu_s > 0.0 {
            100.0 * time_s / record.cpu_s
        } else {
            0.0
        };
        out += &format!(
            "  {name:<12} {:>9} {share:5.1} %  {words}\n",
            seconds(time_s)
        );
    }
    if shares.work_s > MIN_WORK_SHARE * record.cpu_s {
        out += &format!("{}\n", paragraph("  ", "  ", UNSEEN));
    }
    if let Some(rate) = record.pauses_per_s.filter(|rate| *rate > 0.0) {
        let cost = record.pause_ns.map_or_else(String::new, |ns| {
            format!("; one takes {} on this machine", nanoseconds(ns))
        });
        let line = format!("About {} PAUSEs a second{cost}.", grouped(whole(rate)));
        out += &format!("  {}\n", paragraph("", "  ", &line));
    }
    out
}

fn describe_place(
    number: usize,
    place: &SpinPlace,
    pause_ns: Option<f64>,
    palette: Palette,
) -> String {
    let module = place
        .module
        .as_deref()
        .map_or("code generated at run time", |path| {
            path.rsplit('/').next().unwrap_or(path)
        });
    let function = place.function.as_deref().unwrap_or("no name");
    let head = format!(
        "{number}. {}: {} of CPU time, {} ({} samples, {})",
        visible(place.kind.as_str()).replace('_', " "),
        seconds(place.cpu_s),
        percent(place.share),
        place.samples,
        count(place.threads, "thread")
    );
    let mut out = format!("\n{}\n", palette.strong(&paragraph("", "   ", &head)));
    let lines = [
        Some(format!(
            "{} in {}, at {:#x}",
            shorten(&visible(function), 48),
            visible(module),
            place.address
        )),
        place
            .gap_hints
            .map(|gap| format!("{} between looks", count_of(gap, "PAUSE", "PAUSEs"))),
        describe_hint_seen(place, pause_ns),
    ];
    for line in lines.into_iter().flatten() {
        out += &format!("{}\n", paragraph("   ", "   ", &line));
    }
    for found in &place.algorithms {
        let line = format!(
            "{} {} ({}): {}",
            match found.strength {
                MatchStrength::Certain => "it is",
                MatchStrength::Likely => "it is likely",
                _ => "it may be",
            },
            visible(&found.name),
            visible(&found.algorithm),
            visible(&found.why)
        );
        out += &format!("{}\n", paragraph("   ", "     ", &line));
        if !found.tunables.is_empty() {
            let line = format!("set by {}", visible(&found.tunables.join("; ")));
            out += &format!("{}\n", paragraph("     ", "     ", &line));
        }
    }
    for line in place.code.iter().take(MAX_LINES) {
        out += &palette.faint(&format!("       {}\n", visible(line)));
    }
    if place.code.len() > MAX_LINES {
        out += &palette.faint(&format!("       … {} more\n", place.code.len() - MAX_LINES));
    }
    for caller in place.callers.iter().filter(|c| !c.functions.is_empty()) {
        let names: Vec<String> = caller
            .functions
            .iter()
            .map(|name| shorten(&visible(name), 40))
            .collect();
        let line = format!("{} from {}", seconds(caller.cpu_s), names.join(" < "));
        out += &format!("{}\n", paragraph("   ", "     ", &line));
    }
    out
}

/// What a hint took in the loop. If it contradicts the hint's cost on this machine, the sentence
/// says so.
fn describe_hint_seen(place: &SpinPlace, pause_ns: Option<f64>) -> Option<String> {
    let ns = place.hint_ns_seen?;
    let took = format!(
        "one PAUSE took {} there, including its share of the loop ({} pairs of samples)",
        nanoseconds(ns),
        place.hint_ns_pairs
    );
    let ratio = pause_ns.map(|alone| ns / alone);
    Some(match ratio.filter(|ratio| *ratio > MAX_HINT_RATIO) {
        Some(ratio) => format!(
            "{took}: {ratio:.1} times what it takes alone, so the rest of the loop, the core's other thread or a hypervisor takes most of it"
        ),
        None => took,
    })
}

fn format_threads_table(record: &SpinAttachRecord) -> String {
    let shown = record.threads.iter().take(MAX_THREADS);
    let rows: Vec<Vec<String>> = shown
        .map(|thread| {
            vec![
                thread.tid.to_string(),
                shorten(&visible(&thread.name), 24),
                seconds(thread.cpu_s),
                thread.spin_s.map_or_else(|| "unknown".to_owned(), seconds),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}",
        table(&["thread", "name", "CPU time", "of that spinning"], rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{Answer, Header, HostRecord, SpinCaller, SpinMatch, SpinThread};
    use pinwise_topology::Topology;

    const HOSTILE_TEXT: &str = "\u{1b}[31m\r\u{7}</script>";

    fn hostile_text() -> String {
        HOSTILE_TEXT.to_owned()
    }

    /// A record whose texts are all hostile.
    fn hostile_record() -> SpinAttachRecord {
        let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
        let place = SpinPlace {
            kind: hostile_text().into(),
            function: Some(hostile_text()),
            module: Some(hostile_text()),
            address: 0x1000,
            cpu_s: 1.0,
            share: 0.5,
            samples: 1000,
            threads: 2,
            hints: 1,
            gap_hints: Some(30),
            hint_ns_seen: Some(40.0),
            hint_ns_pairs: 9,
            constants: vec![50],
            callers: vec![SpinCaller {
                functions: vec![hostile_text(), hostile_text()],
                cpu_s: 1.0,
            }],
            algorithms: vec![SpinMatch {
                algorithm: hostile_text(),
                name: hostile_text(),
                strength: hostile_text().into(),
                why: hostile_text(),
                tunables: vec![hostile_text()],
            }],
            code: vec![hostile_text()],
        };
        SpinAttachRecord {
            header: Header {
                notes: vec![hostile_text()],
                ..Header::new(hostile_text(), hostile_text(), vec![hostile_text()])
            },
            host: HostRecord::new("local".to_owned(), false, &topology),
            source: TraceSource::Process {
                pid: 7,
                name: hostile_text(),
            },
            event: hostile_text().into(),
            hz: 997,
            wall_s: 2.0,
            samples: 2000,
            cpu_s: 2.0,
            counted_cpu_s: Some(2.0),
            lost: 0,
            own_cpu_s: 0.01,
            shares: Some(SpinShares {
                polling_s: 1.0,
                work_s: 1.0,
                ..SpinShares::default()
            }),
            spin_share: Some(0.5),
            spin_share_error: Some(0.01),
            pause_ns: Some(40.0),
            pauses_per_s: Some(12_345_678.0),
            places: vec![place],
            threads: vec![SpinThread {
                pid: 7,
                tid: 8,
                name: hostile_text(),
                cpu_s: 1.0,
                spin_s: None,
            }],
            exit: None,
            answer: Answer {
                sentence: hostile_text(),
                advice: hostile_text(),
            },
        }
    }

    #[test]
    fn text_of_programs_is_escaped_for_the_terminal() {
        let text = render_spin_attach(&hostile_record(), Palette::new(false));
        let is_shown = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(is_shown), "{text:?}");
        assert!(text.contains("12,345,678 PAUSEs"), "{text}");
        assert!(!text.contains("times what it takes alone"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
    #[test]
    fn a_hint_that_takes_much_longer_than_alone_is_explained() {
        let mut record = hostile_record();
        record.places[0].hint_ns_seen = Some(120.0);
        let text = render_spin_attach(&record, Palette::new(false));
        let words: Vec<&str> = text.split_whitespace().collect();
        let said = "one PAUSE took 120 ns there, including its share of the loop (9 pairs of samples): 3.0 times what it takes alone";
        assert!(words.join(" ").contains(said), "{text}");
    }
}
