//! Advice on spin settings, as text.

use crate::comparison::render_answer;
use crate::style::{Palette, paragraph, visible};
use pinwise_format::{grouped, nanoseconds, three_digits, whole};
use pinwise_record::{AdviceRecord, SpinAdviceRecord};

/// Advice for a terminal.
#[must_use]
pub fn render_spin_advice(record: &SpinAdviceRecord, palette: Palette) -> String {
    let title = format!("Spin settings for {}", record.processor.name);
    let mut out = format!("{}\n", palette.strong(&paragraph("", "  ", &title)));
    let costs = format!(
        "A PAUSE takes {}. Measured on {}: a wake-up takes {}, a switch {}.",
        nanoseconds(record.processor.pause_ns),
        record.measured_on,
        microseconds(record.futex_wake_ns),
        microseconds(record.context_switch_ns),
    );
    out += &format!("{}\n", paragraph("  ", "  ", &visible(&costs)));
    out += &format!("{}\n", paragraph("  ", "  ", &record.rule));
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", note));
    }
    for row in &record.advice {
        out += &describe_advice(row, palette);
    }
    out + &palette.record_line(&record.id) + &render_answer(&record.answer, palette)
}

/// A time in one unit, whatever its size: those of the settings are compared with each other.
fn microseconds(ns: f64) -> String {
    let us = ns * 1e-3;
    match us < 1e3 {
        true => format!("{} µs", three_digits(us)),
        false => format!("{} µs", grouped(whole(us))),
    }
}

fn describe_advice(row: &AdviceRecord, palette: Palette) -> String {
    let time =
        |ns: Option<f64>| ns.map_or_else(String::new, |ns| format!(" ({})", microseconds(ns)));
    let mut out = format!("\n  {}\n", palette.strong(&visible(&row.runtime)));
    let mut setting = format!("{}, {}", row.setting, row.how);
    if let Some(versions) = &row.versions {
        setting += &format!(" ({versions})");
    }
    out += &format!("{}\n", paragraph("    ", "      ", &setting));
    let value = match &row.suggested {
        Some(suggested) => format!(
            "default {}{}; suggested: {suggested}{}",
            row.usual,
            time(row.usual_ns),
            time(row.suggested_ns)
        ),
        None => format!("keep the default, {}{}", row.usual, time(row.usual_ns)),
    };
    out += &format!("{}\n", paragraph("    ", "      ", &value));
    out += &format!("{}\n", paragraph("    ", "    ", &row.reasoning));
    if let Some(verify) = &row.verify {
        // Two lines that a shell takes as one: most are wider than a terminal.
        let lines = visible(verify).replacen(" '", " \\\n      '", 1);
        out += &format!("    {}\n", palette.faint(&lines));
    }
    out
}
