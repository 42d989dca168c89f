//! CPUs grouped by package, last-level cache and core, siblings side by side.
//!
//! Three sizes of cells, the largest whose rows fit: number, load and thread;
//! number and load; one character for the load.

use super::cut::{pad_left_aligned, right, safe};
use super::table::glyph;
use super::{Focus, Piece, Row, Tone, View};
use crate::style::width;
use pinwise_record::{CpuState, TopCpu, TopRecord};

/// Columns between cores, and between groups side by side.
const GAP: usize = 1;
const GROUP_GAP: usize = 3;
/// Columns of a cell that names its thread: fewer cannot distinguish names, more
/// are empty.
const NAMED: std::ops::RangeInclusive<usize> = 15..=30;

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
    /// Columns of a cell.
    cell_width: usize,
    /// Digits of the largest number.
    digits: usize,
    /// CPUs of the largest core.
    siblings: usize,
    /// Columns of a label with the space behind it.
    label: usize,
    /// Cores in a row of a group.
    across: usize,
    /// Groups in a row.
    abreast: usize,
    ascii: bool,
}

/// The rows of all CPUs.
pub(super) struct CpuRows {
    rows: Vec<Row>,
}

impl CpuRows {
    /// Lays out CPUs in at most this many rows, if any size of cells allows it. If CPUs have the
    /// focus, names matter more than rows.
    pub(super) fn new(record: &TopRecord, view: &View, width: usize, max_rows: usize) -> Self {
        let groups = groups(record);
        let grids = Grid::candidates(&groups, width, view.ascii);
        let fits = |grid: &&Grid| grid.count(&groups) <= max_rows;
        let named = |grid: &&Grid| grid.cell == Cell::Named;
        let grid = match view.focus {
            Focus::Cpus => grids.iter().rfind(named).or(grids.last()),
            Focus::Threads => grids.iter().find(fits).or(grids.last()),
        };
        Self {
            rows: grid.map(|grid| grid.rows(&groups)).unwrap_or_default(),
        }
    }

    pub(super) fn all(self) -> Vec<Row> {
        self.rows
    }

    /// At most this many rows from the `top`-th on; the last one says how many
    /// follow.
    pub(super) fn scroll_rows(self, most: usize, top: usize) -> Vec<Row> {
        let count = self.rows.len();
        if count <= most {
            return self.rows;
        }
        let top = top.min(count.saturating_sub(1));
        // In a single row CPUs say more than words about them.
        let shown = if most < 2 { most } else { most - 1 };
        let mut rows: Vec<Row> = self.rows.into_iter().skip(top).take(shown).collect();
        let below = count.saturating_sub(top + rows.len());
        if most > 1 {
            let text = format!("{top} rows of CPUs above, {below} below: Tab, arrows");
            rows.push(vec![Piece::new(text, Tone::Faint)]);
        }
        rows
    }
}

fn groups(record: &TopRecord) -> Vec<Group<'_>> {
    let mut cpus: Vec<&TopCpu> = record.cpus.iter().collect();
    // CPUs that the machine's description lacks come last.
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
            label: label(cpus, packages.len() > 1),
            cores: cpus
                .chunk_by(|a, b| a.core.is_some() && a.core == b.core)
                .map(<[&TopCpu]>::to_vec)
                .collect(),
        })
        .collect()
}

fn label(cpus: &[&TopCpu], has_packages: bool) -> String {
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
    /// From cells that show the most to those that need the least room.
    fn candidates(groups: &[Group<'_>], columns: usize, ascii: bool) -> Vec<Self> {
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
            across: 1,
            abreast: 1,
            ascii,
        };
        let inner = columns.saturating_sub(label);
        let mut found: Vec<Self> = (1..=largest)
            .map_while(|across| base.add_names(inner, across))
            .collect();
        for (cell, cell_width) in [(Cell::Numbered, digits + 5), (Cell::Glyph, 1)] {
            let grid = Self {
                cell,
                cell_width,
                ..base
            };
            found.extend(grid.fill_row(columns, largest));
        }
        found
    }

    fn add_names(self, inner: usize, across: usize) -> Option<Self> {
        let block = (inner + GAP) / across;
        let cells = block.checked_sub(GAP + self.frame())?;
        let cell_width = cells / self.siblings;
        (cell_width >= *NAMED.start()).then_some(Self {
            cell: Cell::Named,
            cell_width: cell_width.min(*NAMED.end()),
            across,
            ..self
        })
    }

    /// As many cores and groups in a row as it has room for.
    fn fill_row(self, columns: usize, largest: usize) -> Option<Self> {
        let inner = columns.checked_sub(self.label)?;
        let across = ((inner + GAP) / (self.block() + GAP)).min(largest);
        if across == 0 {
            return None;
        }
        let grid = Self { across, ..self };
        let is_whole = across == largest;
        let abreast = (columns + GROUP_GAP) / (grid.group() + GROUP_GAP);
        Some(Self {
            abreast: if is_whole { abreast.max(1) } else { 1 },
            ..grid
        })
    }

    /// Columns of a core beside its cells: brackets, and separators of siblings.
    const fn frame(self) -> usize {
        match self.cell {
            Cell::Glyph => 0,
            Cell::Named | Cell::Numbered if self.siblings > 1 => self.siblings + 1,
            Cell::Named | Cell::Numbered => 0,
        }
    }

    const fn block(self) -> usize {
        self.cell_width * self.siblings + self.frame()
    }

    const fn group(self) -> usize {
        self.label + self.across * (self.block() + GAP) - GAP
    }

    fn group_rows(self, group: &Group<'_>) -> usize {
        group.cores.len().div_ceil(self.across)
    }

    fn count(self, groups: &[Group<'_>]) -> usize {
        let abreast = groups.chunks(self.abreast);
        abreast
            .map(|groups| groups.iter().map(|g| self.group_rows(g)).max().unwrap_or(0))
            .sum()
    }

    fn rows(self, groups: &[Group<'_>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for groups in groups.chunks(self.abreast) {
            let count = groups.iter().map(|g| self.group_rows(g)).max();
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
        for place in 0..self.across {
            if place > 0 {
                row.push(Piece::plain(" ".repeat(GAP)));
            }
            match group.cores.get(line * self.across + place) {
                Some(core) => self.draw_core(core, row),
                None => row.push(Piece::plain(" ".repeat(self.block()))),
            }
        }
    }

    /// A core; brackets if siblings were busy at the same time for at least half of the interval: n
    /// CPUs with b busy ones on average have two or more for (b − 1) / (n − 1) of it.
    fn draw_core(self, cpus: &[&TopCpu], row: &mut Row) {
        let busy: f64 = cpus.iter().filter_map(|cpu| cpu.busy_percent).sum();
        let spare = cpus.len().saturating_sub(1) as f64;
        let is_shared = spare > 0.0 && (busy - 100.0) / spare >= 50.0;
        let has_frame = self.frame() > 0;
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
            row.push(self.cell(cpu));
        }
        let missing = self.siblings.saturating_sub(cpus.len());
        let part = self.cell_width + usize::from(has_frame);
        row.push(edge("]"));
        row.push(Piece::plain(" ".repeat(missing * part)));
    }

    fn cell(self, cpu: &TopCpu) -> Piece {
        let load = cpu.busy_percent;
        let tone = Tone::Heat(load.map_or(0, heat));
        if self.cell == Cell::Glyph {
            return Piece::new(load.map_or('?', glyph).to_string(), tone);
        }
        let number = right(&cpu.cpu.to_string(), self.digits);
        let load = load.map_or("?".to_owned(), |load| format!("{:.0}%", load.min(100.0)));
        let head = format!("{number} {}", right(&load, 4));
        let text = match self.cell {
            Cell::Named => format!("{head} {}", self.thread(cpu)),
            Cell::Numbered | Cell::Glyph => head,
        };
        Piece::new(pad_left_aligned(&text, self.cell_width), tone)
    }

    /// Who used most of a CPU.
    fn thread(self, cpu: &TopCpu) -> String {
        match (&cpu.busiest, &cpu.state) {
            (Some(busiest), _) if busiest.percent >= 0.5 => match &busiest.name {
                Some(name) => safe(name, self.ascii),
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

fn heat(percent: f64) -> u8 {
    let steps = [5.0, 30.0, 60.0, 90.0];
    let passed = steps.iter().filter(|step| percent >= **step).count();
    u8::try_from(passed).unwrap_or(0)
}
