//! Lays out CPUs by package, last-level cache and core, siblings next to each other.
//!
//! A cell shows number, load and thread; or number and load; or one character for the load. The
//! largest kind of cell is used whose rows fit.

use super::cut::{make_printable, pad_left_aligned, pad_right_aligned};
use super::table::load_character;
use super::{Focus, Piece, Row, Tone, View};
use crate::style::width;
use pinwise_record::{CpuState, TopCpu, TopRecord};

/// The number of columns between cores, and between groups.
const CORE_GAP: usize = 1;
const GROUP_GAP: usize = 3;
/// The width of a cell with a thread's name: in fewer columns names look alike, more stay empty.
const NAMED_CELL_WIDTH: std::ops::RangeInclusive<usize> = 15..=30;

/// CPUs that share a last-level cache.
struct Group<'a> {
    label: String,
    cores: Vec<Vec<&'a TopCpu>>,
}

/// What a cell shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Number, load, thread.
    Named,
    /// Number, load.
    Numbered,
    /// Load in one character.
    Glyph,
}

/// How cells are laid out.
#[derive(Clone, Copy)]
struct Grid {
    cell: Cell,
    /// Width of a cell.
    cell_width: usize,
    /// Digits of the largest CPU number.
    digits: usize,
    /// Number of CPUs of the largest core.
    siblings: usize,
    /// Width of a label, with the space after it.
    label: usize,
    /// Number of cores in a row of a group.
    cores_per_row: usize,
    /// Number of groups next to each other.
    groups_per_row: usize,
    ascii: bool,
}

/// The rows of all CPUs.
pub(super) struct CpuRows {
    rows: Vec<Row>,
}

impl CpuRows {
    /// Lays out CPUs in at most this many rows, if any kind of cell allows it. If CPUs have the
    /// focus, cells have names even if that takes more rows.
    pub(super) fn new(record: &TopRecord, view: &View, width: usize, max_rows: usize) -> Self {
        let groups = group_cpus(record);
        let grids = Grid::list_candidates(&groups, width, view.ascii);
        let fits = |grid: &&Grid| grid.count_rows(&groups) <= max_rows;
        let named = |grid: &&Grid| grid.cell == Cell::Named;
        let grid = match view.focus {
            Focus::Cpus => grids.iter().rfind(named).or(grids.last()),
            Focus::Threads => grids.iter().find(fits).or(grids.last()),
        };
        Self {
            rows: grid.map(|grid| grid.draw_rows(&groups)).unwrap_or_default(),
        }
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    /// At most `max` rows from the `top`-th on; if some are hidden, the last row says how many.
    pub(super) fn scroll_rows(self, max: usize, top: usize) -> Vec<Row> {
        let count = self.rows.len();
        if count <= max {
            return self.rows;
        }
        let top = top.min(count.saturating_sub(1));
        // A single row shows CPUs, not the number of hidden rows.
        let shown = if max < 2 { max } else { max - 1 };
        let mut rows: Vec<Row> = self.rows.into_iter().skip(top).take(shown).collect();
        let below = count.saturating_sub(top + rows.len());
        if max > 1 {
            let text = format!("{top} rows of CPUs above, {below} below: Tab, arrows");
            rows.push(vec![Piece::new(text, Tone::Faint)]);
        }
        rows
    }
}

fn group_cpus(record: &TopRecord) -> Vec<Group<'_>> {
    let mut cpus: Vec<&TopCpu> = record.cpus.iter().collect();
    // CPUs whose place is unknown come last.
    let key = |cpu: &TopCpu| {
        let last = |unit: Option<usize>| unit.unwrap_or(usize::MAX);
        (last(cpu.package), last(cpu.llc), last(cpu.core), cpu.cpu)
    };
    cpus.sort_by_key(|cpu| key(cpu));
    let mut packages: Vec<Option<usize>> = cpus.iter().map(|cpu| cpu.package).collect();
    packages.dedup();
    let domains = cpus.chunk_by(|a, b| (a.package, a.llc) == (b.package, b.llc));
    domains
        .map(|cpus| Group {
            label: format_group_label(cpus, packages.len() > 1),
            cores: cpus
                .chunk_by(|a, b| a.core.is_some() && a.core == b.core)
                .map(<[&TopCpu]>::to_vec)
                .collect(),
        })
        .collect()
}

fn format_group_label(cpus: &[&TopCpu], has_packages: bool) -> String {
    let first = cpus.first();
    let package = first.and_then(|cpu| cpu.package).filter(|_| has_packages);
    let llc = first.and_then(|cpu| cpu.llc);
    match (package, llc) {
        (Some(package), Some(llc)) => format!("pkg {package} LLC {llc}"),
        (Some(package), None) => format!("pkg {package}"),
        (None, Some(llc)) => format!("LLC {llc}"),
        (None, None) => String::new(),
    }
}

impl Grid {
    /// The possible grids, from cells that show the most to those that need the least room.
    fn list_candidates(groups: &[Group<'_>], columns: usize, ascii: bool) -> Vec<Self> {
        let cores = || groups.iter().flat_map(|group| &group.cores);
        let siblings = cores().map(Vec::len).max().unwrap_or(1).max(1);
        let largest = groups.iter().map(|group| group.cores.len()).max();
        let largest = largest.unwrap_or(0).max(1);
        let numbers = cores().flatten().map(|cpu| cpu.cpu.to_string().len());
        let digits = numbers.max().unwrap_or(1);
        let label = match groups.len() {
            // A single cache needs no name.
            0 | 1 => 0,
            _ => groups.iter().map(|g| width(&g.label)).max().unwrap_or(0) + 1,
        };
        let base = Self {
            cell: Cell::Named,
            cell_width: 0,
            digits,
            siblings,
            label,
            cores_per_row: 1,
            groups_per_row: 1,
            ascii,
        };
        let inner = columns.saturating_sub(label);
        let mut candidates: Vec<Self> = (1..=largest)
            .map_while(|cores_per_row| base.with_named_cells(inner, cores_per_row))
            .collect();
        for (cell, cell_width) in [(Cell::Numbered, digits + 5), (Cell::Glyph, 1)] {
            let grid = Self {
                cell,
                cell_width,
                ..base
            };
            candidates.extend(grid.fill_width(columns, largest));
        }
        candidates
    }

    fn with_named_cells(self, inner: usize, cores_per_row: usize) -> Option<Self> {
        let block = (inner + CORE_GAP) / cores_per_row;
        let cells = block.checked_sub(CORE_GAP + self.frame_width())?;
        let cell_width = cells / self.siblings;
        (cell_width >= *NAMED_CELL_WIDTH.start()).then_some(Self {
            cell: Cell::Named,
            cell_width: cell_width.min(*NAMED_CELL_WIDTH.end()),
            cores_per_row,
            ..self
        })
    }

    /// Puts as many cores and groups into a row as fit; `None` if no core fits.
    fn fill_width(self, columns: usize, largest: usize) -> Option<Self> {
        let inner = columns.checked_sub(self.label)?;
        let cores_per_row = ((inner + CORE_GAP) / (self.core_width() + CORE_GAP)).min(largest);
        if cores_per_row == 0 {
            return None;
        }
        let grid = Self {
            cores_per_row,
            ..self
        };
        let is_whole = cores_per_row == largest;
        let groups_per_row = (columns + GROUP_GAP) / (grid.group_width() + GROUP_GAP);
        Some(Self {
            groups_per_row: if is_whole { groups_per_row.max(1) } else { 1 },
            ..grid
        })
    }

    /// Width of a core's brackets and separators.
    const fn frame_width(self) -> usize {
        match self.cell {
            Cell::Glyph => 0,
            Cell::Named | Cell::Numbered if self.siblings > 1 => self.siblings + 1,
            Cell::Named | Cell::Numbered => 0,
        }
    }

    const fn core_width(self) -> usize {
        self.cell_width * self.siblings + self.frame_width()
    }

    const fn group_width(self) -> usize {
        self.label + self.cores_per_row * (self.core_width() + CORE_GAP) - CORE_GAP
    }

    fn count_group_rows(self, group: &Group<'_>) -> usize {
        group.cores.len().div_ceil(self.cores_per_row)
    }

    fn count_rows(self, groups: &[Group<'_>]) -> usize {
        let groups_per_row = groups.chunks(self.groups_per_row);
        groups_per_row
            .map(|groups| {
                groups
                    .iter()
                    .map(|g| self.count_group_rows(g))
                    .max()
                    .unwrap_or(0)
            })
            .sum()
    }

    fn draw_rows(self, groups: &[Group<'_>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for groups in groups.chunks(self.groups_per_row) {
            let count = groups.iter().map(|g| self.count_group_rows(g)).max();
            for line in 0..count.unwrap_or(0) {
                let mut row = Row::new();
                for (place, group) in groups.iter().enumerate() {
                    if place > 0 {
                        row.push(Piece::plain(" ".repeat(GROUP_GAP)));
                    }
                    self.draw_group(group, line, &mut row);
                }
                rows.push(row);
            }
        }
        rows
    }

    fn draw_group(self, group: &Group<'_>, line: usize, row: &mut Row) {
        if self.label > 0 {
            let label = if line == 0 { group.label.as_str() } else { "" };
            row.push(Piece::new(pad_left_aligned(label, self.label), Tone::Faint));
        }
        for place in 0..self.cores_per_row {
            if place > 0 {
                row.push(Piece::plain(" ".repeat(CORE_GAP)));
            }
            match group.cores.get(line * self.cores_per_row + place) {
                Some(core) => self.draw_core(core, row),
                None => row.push(Piece::plain(" ".repeat(self.core_width()))),
            }
        }
    }

    /// Draws a core, in brackets if its siblings were busy at the same time for at least half of
    /// the interval. If b of n CPUs are busy on average, two or more are busy for at least (b − 1)
    /// / (n − 1) of the interval.
    fn draw_core(self, cpus: &[&TopCpu], row: &mut Row) {
        let busy: f64 = cpus.iter().filter_map(|cpu| cpu.busy_percent).sum();
        let spare = cpus.len().saturating_sub(1) as f64;
        let is_shared = spare > 0.0 && (busy - 100.0) / spare >= 50.0;
        let has_frame = self.frame_width() > 0;
        let edge = |shared: &'static str| match (has_frame, is_shared) {
            (false, _) => Piece::plain(""),
            (true, true) => Piece::new(shared, Tone::Warn),
            (true, false) => Piece::plain(" "),
        };
        row.push(edge("["));
        for (place, cpu) in cpus.iter().enumerate() {
            if place > 0 && has_frame {
                row.push(Piece::new("|", Tone::Faint));
            }
            row.push(self.draw_cell(cpu));
        }
        let missing = self.siblings.saturating_sub(cpus.len());
        let part = self.cell_width + usize::from(has_frame);
        row.push(edge("]"));
        row.push(Piece::plain(" ".repeat(missing * part)));
    }

    fn draw_cell(self, cpu: &TopCpu) -> Piece {
        let load = cpu.busy_percent;
        let tone = Tone::Heat(load.map_or(0, classify_load));
        if self.cell == Cell::Glyph {
            return Piece::new(load.map_or('?', load_character).to_string(), tone);
        }
        let number = pad_right_aligned(&cpu.cpu.to_string(), self.digits);
        let load = load.map_or("?".to_owned(), |load| format!("{:.0}%", load.min(100.0)));
        let head = format!("{number} {}", pad_right_aligned(&load, 4));
        let text = match self.cell {
            Cell::Named => format!("{head} {}", self.describe_thread(cpu)),
            Cell::Numbered | Cell::Glyph => head,
        };
        Piece::new(pad_left_aligned(&text, self.cell_width), tone)
    }

    /// The thread that used most of a CPU's time, or what the CPU did.
    fn describe_thread(self, cpu: &TopCpu) -> String {
        match (&cpu.busiest, &cpu.state) {
            (Some(busiest), _) if busiest.percent >= 0.5 => match &busiest.name {
                Some(name) => make_printable(name, self.ascii),
                None => busiest.thread.to_string(),
            },
            (_, Some(CpuState::Idle)) => "idle".to_owned(),
            (_, Some(_)) => String::new(),
            (_, None) => match cpu.busy_percent {
                Some(load) if load < 0.5 => "idle".to_owned(),
                Some(_) => String::new(),
                None => "unknown".to_owned(),
            },
        }
    }
}

fn classify_load(percent: f64) -> u8 {
    let steps = [5.0, 30.0, 60.0, 90.0];
    let passed = steps.iter().filter(|step| percent >= **step).count();
    u8::try_from(passed).unwrap_or(0)
}
