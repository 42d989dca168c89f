//! Lays out the live view, a [`TopRecord`] with the user's choices, as rows of a terminal of any
//! size or as text.
//!
//! Nothing here reads from a terminal or writes to one. Rows are never wider than requested,
//! whatever thread names contain, and can be understood without colour.

mod cpus;
mod cut;
mod header;
mod help;
mod paint;
mod table;
mod view;

use pinwise_record::{Answer, TopRecord};

pub use paint::{draw, rows_to_text};
pub use view::{Focus, Order, Prompt, PromptKind, View};

use cpus::CpuRows;

/// How a piece of a row is emphasised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// No emphasis.
    Plain,
    /// Headings.
    Strong,
    /// Secondary information.
    Faint,
    /// Needs attention.
    Warn,
    /// A load, from 0 (idle) to 4 (full).
    Heat(u8),
    /// The selected row.
    Chosen,
}

/// Text of one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Printable characters only.
    pub text: String,
    /// How it is emphasised.
    pub tone: Tone,
}

impl Piece {
    fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }

    fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// A row of the screen.
pub type Row = Vec<Piece>;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// The most rows of CPUs in a printed frame.
const MAX_PRINTED_CPU_ROWS: usize = 24;

/// Lays out a screen, within its size.
#[must_use]
pub fn lay_out_screen(record: &TopRecord, view: &View, size: Size) -> Vec<Row> {
    let mut rows = if view.shows_help {
        help::make_help_rows(size)
    } else {
        draw_view(record, view, size)
    };
    for row in &mut rows {
        cut::cut_row(row, size.width);
    }
    rows.truncate(size.height);
    rows
}

fn draw_view(record: &TopRecord, view: &View, size: Size) -> Vec<Row> {
    let mut footer = header::make_footer_rows(view, size.width);
    footer.truncate(size.height / 3);
    let mut rows = header::make_header_rows(record, view, size.width);
    rows.truncate(size.height / 4);
    let free = size.height.saturating_sub(rows.len() + footer.len());
    // The table always keeps its header and one row.
    let cpu_rows = match view.focus {
        Focus::Threads => free / 2,
        Focus::Cpus => free.saturating_sub(2),
    };
    let cpus = CpuRows::new(record, view, size.width, cpu_rows);
    rows.extend(cpus.scroll_rows(cpu_rows, view.cpu_top));
    let free = size.height.saturating_sub(rows.len() + footer.len());
    let table = table::make_table_rows(record, view, size.width, free);
    let unused = free.saturating_sub(table.len());
    rows.extend(table);
    rows.extend(std::iter::repeat_n(Row::new(), unused));
    rows.extend(footer);
    rows
}

/// Lays out a frame for printing: all CPUs, and at most this many threads.
#[must_use]
pub fn lay_out_still_frame(
    record: &TopRecord,
    view: &View,
    width: usize,
    threads: usize,
) -> Vec<Row> {
    let mut rows = header::make_header_rows(record, view, width);
    rows.push(Row::new());
    rows.extend(CpuRows::new(record, view, width, MAX_PRINTED_CPU_ROWS).into_rows());
    rows.push(Row::new());
    let shown = view.arrange_threads(record).len();
    rows.extend(table::draw_without_choice(record, view, width, threads));
    let more = shown.saturating_sub(threads) as u64 + record.threads_left_out;
    if more > 0 {
        rows.push(vec![Piece::new(
            format!("{more} more threads"),
            Tone::Faint,
        )]);
    }
    for note in &record.notes {
        let lines = super::style::wrap_words(note, width.max(20));
        rows.extend(lines.into_iter().map(|line| vec![Piece::plain(line)]));
    }
    rows.extend(make_answer_rows(record, width));
    for row in &mut rows {
        cut::cut_row(row, width);
    }
    rows
}

/// The answer and what to do next, next to the prompt.
fn make_answer_rows(record: &TopRecord, width: usize) -> Vec<Row> {
    let Answer { sentence, advice } = &record.answer;
    let parts = [("", sentence, Tone::Strong), ("→ ", advice, Tone::Plain)];
    let shown = parts.into_iter().filter(|(_, text, _)| !text.is_empty());
    let rows: Vec<Row> = shown
        .flat_map(|(mark, text, tone)| {
            let text = super::style::visible(&format!("{mark}{text}"));
            let lines = super::style::wrap_words(&text, width.max(20));
            lines
                .into_iter()
                .map(move |line| vec![Piece::new(line, tone)])
        })
        .collect();
    match rows.is_empty() {
        true => rows,
        false => [vec![Row::new()], rows].concat(),
    }
}

/// The number of CPU rows that can be scrolled out of this screen.
#[must_use]
pub fn count_hidden_cpu_rows(record: &TopRecord, view: &View, size: Size) -> usize {
    let cpu_rows = size.height.saturating_sub(4).max(1);
    let cpus = CpuRows::new(record, view, size.width, cpu_rows);
    cpus.into_rows().len().saturating_sub(1)
}
