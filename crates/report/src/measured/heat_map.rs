//! The latency matrix in a terminal: numbers where they fit, shades where they
//! do not, with what a shade stands for below.
//!
//! Shades are characters, so that the map is understood without colour; colour
//! comes on top.

use super::figures::range;
use super::heading;
use crate::matrix::{Cell, HeatMap};
use crate::style::{Palette, paragraph, width};
use pinwise_format::{count, nanoseconds};
use pinwise_record::Measured;
use pinwise_topology::CpuSet;

/// Most rows: two columns for each, and the labels, are within the width.
const MOST_ROWS: usize = 32;
/// Up to this many rows, cells hold numbers.
const MOST_NUMBERED: usize = 16;
/// Up to this many, with a space between.
const MOST_SPACED: usize = 13;
/// Longest label of a row.
const LABEL_WIDTH: usize = 11;

/// From fast to slow.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// The map with its legend; empty where no pair was measured.
pub(super) fn heat_map(found: &Measured, palette: Palette) -> String {
    let Some(map) = HeatMap::new(found, MOST_ROWS) else {
        return String::new();
    };
    let drawing = Drawing {
        labels: map.bins.iter().map(label).collect(),
        form: match map.bins.len() {
            n if n <= MOST_SPACED => Form::Spaced,
            n if n <= MOST_NUMBERED => Form::Numbers,
            _ => Form::Shades,
        },
        map,
        palette,
    };
    let mut text = heading("One-way time of a cache line between two CPUs", palette);
    text.push_str(&drawing.columns());
    for row in 0..drawing.map.bins.len() {
        text.push_str(&drawing.row(row));
    }
    text.push_str(&drawing.legend());
    text
}

/// What a cell looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A shade, a number, a space.
    Spaced,
    /// A shade and a number.
    Numbers,
    /// Two characters of shade.
    Shades,
}

impl Form {
    const fn width(self) -> usize {
        match self {
            Self::Spaced => 5,
            Self::Numbers => 4,
            Self::Shades => 2,
        }
    }
}

struct Drawing {
    map: HeatMap,
    labels: Vec<String>,
    form: Form,
    palette: Palette,
}

/// The CPUs of a row, as far as there is room.
fn label(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    if width(&list) <= LABEL_WIDTH {
        return list;
    }
    let first = cpus.first().unwrap_or(0);
    format!("{first}+{}", cpus.len() - 1)
}

impl Drawing {
    fn label_width(&self) -> usize {
        let widths = self.labels.iter().map(|label| width(label));
        widths.max().unwrap_or(0)
    }

    /// The lowest CPU of each column, from top to bottom where it is narrow.
    fn columns(&self) -> String {
        let firsts: Vec<String> = self
            .map
            .bins
            .iter()
            .map(|bin| bin.first().map_or_else(String::new, |cpu| cpu.to_string()))
            .collect();
        let margin = " ".repeat(self.label_width() + 3);
        let width = self.form.width();
        let tallest = firsts.iter().map(String::len).max().unwrap_or(0);
        if tallest < width {
            let cells = firsts.iter().map(|first| match self.form {
                Form::Spaced => format!("{first:>4} "),
                Form::Numbers | Form::Shades => format!("{first:>width$}"),
            });
            return end_line(&format!("{margin}{}", cells.collect::<String>()));
        }
        (0..tallest)
            .map(|line| {
                let digits = firsts.iter().map(|first| {
                    let digit = (line + first.len()).checked_sub(tallest);
                    let digit = digit.and_then(|at| first.chars().nth(at)).unwrap_or(' ');
                    format!("{digit:<width$}")
                });
                end_line(&format!("{margin}{}", digits.collect::<String>()))
            })
            .collect()
    }

    fn row(&self, row: usize) -> String {
        let width = self.label_width();
        let cells: String = (0..self.map.bins.len())
            .map(|column| self.cell(row, column))
            .collect();
        end_line(&format!("  {:>width$} {cells}", self.labels[row]))
    }

    fn cell(&self, row: usize, column: usize) -> String {
        let cell = self.map.cell(row, column);
        let gap = if self.form == Form::Spaced { " " } else { "" };
        let is_self = row == column && self.map.bins[row].len() == 1;
        let Some(value) = cell.value else {
            let mark = if is_self { " " } else { "?" };
            let width = self.form.width() - gap.len();
            return format!("{mark:>width$}{gap}");
        };
        let class = self.map.class(value);
        let shade = SHADES[self.shade(class)];
        let text = match self.form {
            Form::Shades if cell.is_measured => format!("{shade}{shade}"),
            Form::Shades => format!("{shade} "),
            Form::Spaced | Form::Numbers => {
                let mark = if cell.is_measured { shade } else { '~' };
                format!("{mark}{:>3}", short(value))
            }
        };
        let painted = self.palette.heat(class, self.map.classes.len() - 1, &text);
        format!("{painted}{gap}")
    }

    /// Few classes take shades that are far from each other.
    fn shade(&self, class: usize) -> usize {
        let last = self.map.classes.len() - 1;
        let spread = (class * (SHADES.len() - 1)).checked_div(last);
        spread.unwrap_or(SHADES.len() / 2).min(SHADES.len() - 1)
    }

    fn legend(&self) -> String {
        let mut text = String::new();
        let last = self.map.classes.len() - 1;
        let ranges: Vec<String> = self
            .map
            .classes
            .iter()
            .map(|of| range(&nanoseconds(of.low), &nanoseconds(of.high)))
            .collect();
        let width = ranges.iter().map(|r| width(r)).max().unwrap_or(0);
        for (class, range) in ranges.iter().enumerate() {
            let shade = SHADES[self.shade(class)];
            let swatch = self.palette.heat(class, last, &format!("{shade}{shade}"));
            let pairs = count(self.map.classes[class].pairs, "pair");
            text.push_str(&format!("  {swatch} {range:<width$}  {pairs}\n"));
        }
        for sentence in self.remarks() {
            text.push_str(&format!("{}\n", paragraph("  ", "  ", &sentence)));
        }
        text
    }

    /// What a reader must know to read the map; only what is true of this one.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.map.is_binned() {
            remarks.push(format!(
                "{} in {} rows, named by their CPUs (12+3: CPU 12 and 3 more of its group); a cell is the median of its pairs.",
                count(self.map.cpus, "CPU"),
                self.map.bins.len()
            ));
        }
        let n = self.map.bins.len();
        let others = || (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        let any = |is: &dyn Fn(Cell) -> bool| {
            others().any(|(row, column)| row != column && is(self.map.cell(row, column)))
        };
        if any(&|cell| cell.value.is_some() && !cell.is_measured) {
            remarks.push(
                match self.form {
                    Form::Shades => "One character wide: not measured, taken from other pairs of the same groups.",
                    Form::Spaced | Form::Numbers => {
                        "~: not measured, taken from other pairs of the same groups."
                    }
                }
                .to_owned(),
            );
        }
        if any(&|cell| cell.value.is_none()) {
            remarks.push("?: not measured.".to_owned());
        }
        remarks
    }
}

/// At most three characters.
fn short(value: f64) -> String {
    if value < 9.95 {
        format!("{value:.1}")
    } else if value < 999.5 {
        format!("{value:.0}")
    } else if value < 99_500.0 {
        format!("{:.0}k", value / 1000.0)
    } else {
        "≫".to_owned()
    }
}

fn end_line(line: &str) -> String {
    format!("{}\n", line.trim_end())
}
