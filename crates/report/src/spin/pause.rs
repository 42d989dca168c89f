//! The cost of PAUSE, as text.

use crate::style::{Palette, paragraph, table, visible};
use pinwise_format::{nanoseconds, three_digits};
use pinwise_record::{CpuPauseRecord, CycleMethod, PauseCheckRecord, SpinPauseRecord};

/// The most CPUs that are shown; the record has all.
const MAX_CPUS: usize = 32;

/// A measurement for a terminal.
#[must_use]
pub fn render_spin_pause(record: &SpinPauseRecord, palette: Palette) -> String {
    let title = format!("{} on {}", record.instruction, record.host.name());
    let mut out = format!("{}\n\n", palette.strong(&paragraph("", "  ", &title)));
    out += &table(
        &[
            "CPU",
            "ns",
            "95 %",
            "cycles",
            "95 %",
            "by",
            "GHz",
            "two levels",
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
    out += "\n";
    for cpu in &record.cpus {
        for hint in &cpu.hints {
            let cycles = hint
                .cycles
                .map_or_else(String::new, |c| format!(", {c:.1} cycles"));
            out += &format!(
                "  CPU {}: {} costs {}{cycles} at least\n",
                cpu.cpu,
                visible(&hint.hint),
                nanoseconds(hint.ns)
            );
        }
        if let Some(share) = cpu.disagreement_share {
            out += &format!(
                "  CPU {}: counter and additions are {:.1} % apart\n",
                cpu.cpu,
                100.0 * share
            );
        }
    }
    for chip in &record.chips {
        let rank = chip.cheaper_chips.map_or_else(String::new, |cheaper| {
            format!(
                " Of {} known chips, {cheaper} have a cheaper PAUSE, in cycles.",
                chip.known_chips
            )
        });
        let first = format!("  CPUs {}: ", visible(&chip.cpus));
        out += &format!(
            "{}\n",
            paragraph(&first, "    ", &format!("{}{rank}", chip.sentence))
        );
    }
    if let Some(reason) = &record.counter_unavailable {
        let line = format!("{reason} Cycles are counted by dependent additions.");
        out += &format!("{}\n", paragraph("  · ", "    ", &line));
    }
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", note));
    }
    if let Some(check) = &record.check {
        out += &format!("\n{}", render_spin_check(check, palette));
    }
    out += &palette.faint(&format!("\n{}\n", palette.record(&record.id)));
    out
}

/// The verdict of `--check`: one line if it passes, otherwise one more for each algorithm that
/// would wait too long.
#[must_use]
pub fn render_spin_check(check: &PauseCheckRecord, palette: Palette) -> String {
    let verdict = paragraph("", "  ", &check.sentence);
    let verdict = if check.is_fine {
        palette.good(&verdict)
    } else {
        palette.bad(&verdict)
    };
    let mut out = format!("{verdict}\n");
    for wait in &check.too_long {
        out += &format!("{}\n", paragraph("  ", "    ", &wait.sentence));
    }
    out
}

fn format_cpu_row(cpu: &CpuPauseRecord) -> Vec<String> {
    let range = |low: Option<f64>, high: Option<f64>, text: fn(f64) -> String| {
        low.zip(high).map_or_else(
            || "–".to_owned(),
            |(low, high)| format!("{}–{}", text(low), text(high)),
        )
    };
    let cycles = |cycles: f64| format!("{cycles:.1}");
    let levels = match cpu.levels.as_slice() {
        [low, high] => {
            let level = |level: &pinwise_record::LevelRecord| match level.pause_cycles {
                Some(cycles) => format!("{cycles:.0} c {:.0} %", 100.0 * level.share),
                None => format!(
                    "{} {:.0} %",
                    nanoseconds(level.pause_ns),
                    100.0 * level.share
                ),
            };
            format!("{}, {}", level(low), level(high))
        }
        _ => "no".to_owned(),
    };
    vec![
        cpu.cpu.to_string(),
        three_digits(cpu.pause_ns),
        range(cpu.pause_ns_low, cpu.pause_ns_high, three_digits),
        cpu.pause_cycles.map_or_else(|| "–".to_owned(), cycles),
        range(cpu.pause_cycles_low, cpu.pause_cycles_high, cycles),
        cpu.method
            .as_ref()
            .map_or("–", CycleMethod::as_str)
            .to_owned(),
        cpu.ghz
            .map_or_else(|| "–".to_owned(), |ghz| format!("{ghz:.2}")),
        levels,
    ]
}
