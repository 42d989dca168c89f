//! The table of threads, with as many columns as fit.

use super::cut::{make_printable, pad_left_aligned, pad_right_aligned};
use super::header::format_rate;
use super::view::View;
use super::{Piece, Row, Tone};
use pinwise_record::{ThreadState, TopRecord, TopThread};
use pinwise_topology::CpuSet;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Thread,
    Process,
    Name,
    Cpu,
    Wait,
    Migrations,
    Switches,
    On,
    Used,
    Allowed,
    Policy,
}

impl Column {
    /// Columns in the order in which they are added as the screen gets wider.
    const BY_PRIORITY: [Self; 11] = [
        Self::Thread,
        Self::Cpu,
        Self::Name,
        Self::On,
        Self::Migrations,
        Self::Wait,
        Self::Used,
        Self::Allowed,
        Self::Switches,
        Self::Policy,
        Self::Process,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Thread => "TID",
            Self::Process => "PID",
            Self::Name => "NAME",
            Self::Cpu => "CPU%",
            Self::Wait => "WAIT%",
            Self::Migrations => "MIGR/S",
            Self::Switches => "SW/S",
            Self::On => "ON",
            Self::Used => "USED",
            Self::Allowed => "ALLOWED",
            Self::Policy => "POLICY",
        }
    }

    const fn width(self) -> usize {
        match self {
            Self::Thread | Self::Process => 7,
            Self::Name => 15,
            Self::Cpu | Self::Wait => 5,
            Self::Migrations | Self::Switches | Self::On => 6,
            Self::Used => 12,
            Self::Allowed => 9,
            Self::Policy => 8,
        }
    }

    const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Thread
                | Self::Process
                | Self::Cpu
                | Self::Wait
                | Self::Migrations
                | Self::Switches
        )
    }
}

/// The most columns of a list of allowed CPUs.
const MAX_LIST_WIDTH: usize = 24;

/// Chooses columns and their widths, from left to right.
fn choose_columns(width: usize, cpus: usize) -> Vec<(Column, usize)> {
    let mut chosen: Vec<(Column, usize)> = Vec::new();
    // The first column marks the chosen row.
    let mut left = width.saturating_sub(1);
    for column in Column::BY_PRIORITY {
        let wanted = match column {
            Column::Name => column.width().min(left),
            // At least as wide as its title.
            Column::Used => column.width().min(cpus.max(4)),
            _ => column.width(),
        };
        if wanted > left || wanted == 0 {
            break;
        }
        chosen.push((column, wanted));
        left = left.saturating_sub(wanted + 1);
    }
    chosen.sort_unstable();
    if let Some((_, used)) = chosen.iter_mut().find(|(c, _)| *c == Column::Used) {
        let more = left.min(cpus.min(64).saturating_sub(*used));
        *used += more;
        left -= more;
    }
    if let Some((_, allowed)) = chosen.iter_mut().find(|(c, _)| *c == Column::Allowed) {
        *allowed += left.min(MAX_LIST_WIDTH - *allowed);
    }
    chosen
}

/// The header and the rows around the chosen one, at most `height`.
pub(super) fn make_table_rows(
    record: &TopRecord,
    view: &View,
    width: usize,
    height: usize,
) -> Vec<Row> {
    let threads = view.arrange_threads(record);
    let room = height.saturating_sub(1);
    let chosen = view.find_chosen_row(&threads);
    let first = chosen
        .saturating_sub(room / 2)
        .min(threads.len().saturating_sub(room));
    let table = Table::new(record, width, view.ascii);
    let mut rows = vec![table.header()];
    let shown = threads.iter().enumerate().skip(first).take(room);
    rows.extend(shown.map(|(place, thread)| table.draw_row(thread, place == chosen)));
    rows.truncate(height);
    rows
}

/// The header and the first `max` rows, none of them chosen.
pub(super) fn draw_without_choice(
    record: &TopRecord,
    view: &View,
    width: usize,
    max: usize,
) -> Vec<Row> {
    let table = Table::new(record, width, view.ascii);
    let threads = view.arrange_threads(record);
    let shown = threads.iter().take(max);
    let mut rows = vec![table.header()];
    rows.extend(shown.map(|thread| table.draw_row(thread, false)));
    rows
}

struct Table {
    columns: Vec<(Column, usize)>,
    /// Numbers of all CPUs, ascending.
    cpus: Vec<u32>,
    ascii: bool,
}

impl Table {
    fn new(record: &TopRecord, width: usize, ascii: bool) -> Self {
        let cpus: Vec<u32> = record.cpus.iter().map(|cpu| cpu.cpu).collect();
        Self {
            columns: choose_columns(width, cpus.len()),
            cpus,
            ascii,
        }
    }

    fn header(&self) -> Row {
        let cells = self.columns.iter().map(|&(column, width)| {
            let title = column.title();
            match column.is_number() {
                true => pad_right_aligned(title, width),
                false => pad_left_aligned(title, width),
            }
        });
        let text: Vec<String> = cells.collect();
        vec![Piece::new(format!(" {}", text.join(" ")), Tone::Strong)]
    }

    fn draw_row(&self, thread: &TopThread, is_chosen: bool) -> Row {
        let cells = self.columns.iter().map(|&(column, width)| {
            let text = make_printable(&self.draw_cell(thread, column, width), self.ascii);
            match column.is_number() {
                true => pad_right_aligned(&text, width),
                false => pad_left_aligned(&text, width),
            }
        });
        let text: Vec<String> = cells.collect();
        let (mark, tone) = match is_chosen {
            true => ('>', Tone::Chosen),
            false if is_asleep(thread) => (' ', Tone::Faint),
            false => (' ', Tone::Plain),
        };
        vec![Piece::new(format!("{mark}{}", text.join(" ")), tone)]
    }

    fn draw_cell(&self, thread: &TopThread, column: Column, width: usize) -> String {
        let or_unknown =
            |value: Option<f64>, shown: fn(f64) -> String| value.map_or("?".into(), shown);
        match column {
            Column::Thread => thread.thread.to_string(),
            Column::Process => thread.process.map_or("?".into(), |pid| pid.to_string()),
            Column::Name => thread.name.clone().unwrap_or_else(|| "?".into()),
            Column::Cpu => or_unknown(thread.cpu_percent, format_percent),
            Column::Wait => or_unknown(thread.wait_percent, format_percent),
            Column::Migrations => or_unknown(thread.migrations_per_s, format_rate),
            Column::Switches => or_unknown(thread.switches_per_s, format_rate),
            Column::On => format_state_and_cpu(thread),
            Column::Used => self.draw_used_cpus(thread, width),
            Column::Allowed => thread.allowed.clone().unwrap_or_else(|| "?".into()),
            Column::Policy => thread.policy.clone().unwrap_or_else(|| "?".into()),
        }
    }

    /// Draws a character for each CPU; if there are more CPUs than columns, one for several
    /// neighbours, which shows the most used of them.
    fn draw_used_cpus(&self, thread: &TopThread, width: usize) -> String {
        let allowed = thread.allowed.as_deref();
        let allowed = allowed.and_then(|list| CpuSet::parse_list(list).ok());
        let may_use = |cpu: u32| {
            let set = allowed.as_ref();
            set.is_none_or(|set| usize::try_from(cpu).is_ok_and(|cpu| set.contains(cpu)))
        };
        let each = self.cpus.len().div_ceil(width.max(1)).max(1);
        let used = |cpu: u32| thread.used.iter().find(|used| used.cpu == cpu);
        let glyph_of = |cpus: &[u32]| {
            let shares = cpus.iter().filter_map(|&cpu| used(cpu)).map(|u| u.percent);
            match shares.reduce(f64::max) {
                // A CPU that was used only briefly must not look unused.
                Some(share) => load_character(share.max(5.0)),
                None if cpus.iter().any(|&cpu| may_use(cpu)) => '.',
                None => '-',
            }
        };
        self.cpus.chunks(each).map(glyph_of).collect()
    }
}

fn is_asleep(thread: &TopThread) -> bool {
    thread.cpu_percent.is_none_or(|share| share < 0.05)
}

fn format_state_and_cpu(thread: &TopThread) -> String {
    let letter = match thread.state {
        Some(ThreadState::Running) => 'R',
        Some(ThreadState::Runnable) => 'r',
        Some(ThreadState::Queued) => 'Q',
        Some(ThreadState::Waiting) => 'S',
        Some(ThreadState::Ended) => 'X',
        _ => '?',
    };
    let cpu = thread.cpu.map_or("?".to_owned(), |cpu| cpu.to_string());
    format!("{letter} {cpu:>3}")
}

/// Formats a load as one character: `.` for none, `1` to `9` for tenths, `#` for full.
pub(super) fn load_character(percent: f64) -> char {
    if percent >= 95.0 {
        '#'
    } else if percent < 5.0 {
        '.'
    } else {
        let is_reached = |tenth: &u8| percent >= f64::from(*tenth) * 10.0 - 5.0;
        let tenths = (1..=9).rev().find(is_reached).unwrap_or(1);
        char::from(b'0' + tenths)
    }
}

/// Formats per cent in at most five characters.
fn format_percent(value: f64) -> String {
    if value >= 99.95 {
        format!("{:.0}", value.min(9999.0))
    } else {
        format!("{:.1}", value.max(0.0))
    }
}
