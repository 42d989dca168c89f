//! The lines above and below: what is watched, migrations, SMT sharing, keys.

use super::cut::{join_pieces, make_printable};
use super::view::{PromptKind, View};
use super::{Piece, Row, Tone};
use pinwise_format::three_digits;
use pinwise_record::{TopRecord, TopSharing};

/// The title, migrations and SMT sharing, a row each.
pub(super) fn make_header_rows(record: &TopRecord, view: &View, width: usize) -> Vec<Row> {
    vec![
        make_title_row(record, view, width),
        make_migrations_row(record, width),
        make_sharing_row(record, width),
    ]
}

fn make_title_row(record: &TopRecord, view: &View, width: usize) -> Row {
    let mut pieces = vec![Piece::new("pinwise top", Tone::Strong)];
    let host = make_printable(&record.host, view.ascii);
    if !host.is_empty() {
        pieces.push(Piece::plain(host));
    }
    if view.is_paused {
        pieces.push(Piece::new("PAUSED", Tone::Warn));
    }
    pieces.push(Piece::plain(match record.cost_ns_per_switch {
        Some(cost) => format!(
            "{} (+{} ns a switch)",
            make_printable(record.tier.as_str(), true),
            three_digits(cost)
        ),
        None => make_printable(record.tier.as_str(), true),
    }));
    if let Some(pid) = record.pid {
        pieces.push(Piece::plain(format!("process {pid}")));
    }
    pieces.push(Piece::plain(format!(
        "{} threads, {} running",
        record.threads_total, record.threads_running
    )));
    pieces.push(Piece::new(
        format!("{:.2} s", record.interval_s),
        Tone::Faint,
    ));
    join_pieces(pieces, width)
}

fn make_migrations_row(record: &TopRecord, width: usize) -> Row {
    let moves = &record.migrations_per_s;
    let head = format!("migrations/s {}", format_rate(moves.total()));
    let mut pieces = vec![Piece::plain(head)];
    let levels = [
        ("package", moves.package),
        ("numa", moves.numa),
        ("llc", moves.llc),
        ("core", moves.core),
        ("smt", moves.smt),
        ("unknown", moves.unknown),
    ];
    for (name, count) in levels.into_iter().filter(|(_, count)| *count > 0.0) {
        pieces.push(Piece::plain(format!("{name} {}", format_rate(count))));
    }
    if record.lost > 0 {
        let text = format!("{} records lost", record.lost);
        pieces.push(Piece::new(text, Tone::Warn));
    }
    join_pieces(pieces, width)
}

fn make_sharing_row(record: &TopRecord, width: usize) -> Row {
    let Some(sharing) = &record.smt_sharing else {
        let has_smt = has_smt(record);
        let text = if has_smt {
            "SMT sharing: not reported by this tier"
        } else {
            "SMT sharing: none, each core has one CPU"
        };
        return vec![Piece::new(text, Tone::Faint)];
    };
    let is_bad = sharing.avoidable.is_some_and(|cores| cores >= 0.5);
    let tone = if is_bad { Tone::Warn } else { Tone::Plain };
    let mut pieces = vec![Piece::new(describe_sharing_now(sharing), tone)];
    pieces.push(Piece::plain(match sharing.avoidable {
        Some(avoidable) => format!(
            "mean {:.1} while {:.1}, avoidable {avoidable:.1}",
            sharing.shared, sharing.idle
        ),
        None => format!(
            "at least {:.1} shared, {:.1} idle",
            sharing.shared, sharing.idle
        ),
    }));
    join_pieces(pieces, width)
}

fn describe_sharing_now(sharing: &TopSharing) -> String {
    let (Some(shared), Some(idle)) = (sharing.shared_now, sharing.idle_now) else {
        return format!("SMT sharing of {} cores by polling:", sharing.cores);
    };
    let verb = if idle == 1 { "idles" } else { "idle" };
    let unknown = match sharing.unknown_cpus {
        0 => String::new(),
        n => format!(" ({n} CPUs unknown)"),
    };
    format!(
        "SMT: {shared} of {} cores shared while {idle} {verb}{unknown};",
        sharing.cores
    )
}

fn has_smt(record: &TopRecord) -> bool {
    let mut cores: Vec<usize> = record.cpus.iter().filter_map(|cpu| cpu.core).collect();
    let count = cores.len();
    cores.sort_unstable();
    cores.dedup();
    cores.len() < count
}

/// The keys, the text being typed, or a message.
pub(super) fn make_footer_rows(view: &View, width: usize) -> Vec<Row> {
    if let Some(prompt) = &view.prompt {
        let question = match &prompt.kind {
            PromptKind::Filter => "only names with: ".to_owned(),
            PromptKind::Pin { thread, name } => {
                format!("pin {thread} {} to: ", make_printable(name, view.ascii))
            }
        };
        let typed = format!("{}_", make_printable(&prompt.text, view.ascii));
        return vec![
            vec![Piece::new(question, Tone::Strong), Piece::plain(typed)],
            vec![Piece::plain(make_printable(&prompt.preview, view.ascii))],
        ];
    }
    if let Some(message) = &view.message {
        return vec![vec![Piece::new(
            make_printable(message, view.ascii),
            Tone::Warn,
        )]];
    }
    let mut pieces = vec![
        Piece::new("q quit", Tone::Strong),
        Piece::plain("? help"),
        Piece::plain(format!("s sort: {}", view.order.name())),
        Piece::plain(match view.filter.as_str() {
            "" => "f filter".to_owned(),
            text => format!("f filter: {}", make_printable(text, view.ascii)),
        }),
        Piece::plain("p pin"),
    ];
    if view.pins.count > 0 {
        let fate = match view.pins.are_kept {
            true => "kept",
            false => "undone on quitting",
        };
        let text = format!("u undo ({} pinned, {fate})", view.pins.count);
        pieces.push(Piece::new(text, Tone::Warn));
    }
    pieces.extend([Piece::plain("Tab CPUs"), Piece::plain("space pause")]);
    vec![join_pieces(pieces, width)]
}

/// Formats a rate in few characters: `0.4`, `12`, `3400`, `123k`.
pub(super) fn format_rate(value: f64) -> String {
    if !value.is_finite() {
        "?".to_owned()
    } else if value >= 99_999.5 {
        format!("{:.0}k", value / 1e3)
    } else if !(0.05..9.95).contains(&value) {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.1}");
        text.trim_end_matches(".0").to_owned()
    }
}
