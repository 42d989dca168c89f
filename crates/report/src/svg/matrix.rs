//! The latency matrix as a heat map: CPUs in the order of their measured
//! groups, borders where groups end, a scale beside it.

use super::canvas::{Anchor, Area, Canvas, Words, number, width};
use crate::matrix::HeatMap;
use pinwise_format::nanoseconds;
use pinwise_record::Measured;

/// More rows than this are binned: a row must stay some pixels high.
const MOST_ROWS: usize = 256;
/// Width and height of the map from which cells are no longer enlarged.
const LARGEST: f64 = 768.0;
/// Cells of this many rows hold numbers and say what they are when pointed at.
const MOST_NUMBERED: usize = 32;
/// Steps of the colour scale.
const STEPS: usize = 48;
/// The scale from fast to slow: light to dark, so that it works in print and
/// for people who do not see all colours.
const RAMP: [[f64; 3]; 6] = [
    [255.0, 246.0, 200.0],
    [186.0, 226.0, 168.0],
    [98.0, 190.0, 172.0],
    [52.0, 132.0, 178.0],
    [58.0, 68.0, 148.0],
    [44.0, 24.0, 80.0],
];
/// Letters along the axes, pixels.
const AXIS_LETTERS: f64 = 11.0;

/// The heat map, ready to be drawn.
#[derive(Debug)]
pub(super) struct MatrixDrawing {
    map: HeatMap,
    /// Width of a cell, pixels.
    cell: f64,
    /// Room for the labels of rows and columns, pixels.
    margin: f64,
    low: f64,
    high: f64,
}

impl MatrixDrawing {
    /// `None` where no pair was measured.
    pub(super) fn new(measured: &Measured) -> Option<Self> {
        let map = HeatMap::new(measured, MOST_ROWS)?;
        let rows = map.bins.len();
        let cell = match rows {
            ..=16 => 44.0,
            17..=MOST_NUMBERED => 30.0,
            _ => (LARGEST / rows as f64).clamp(3.0, 16.0),
        };
        let longest = map
            .bins
            .iter()
            .map(|bin| width(&row_label(bin), AXIS_LETTERS));
        Some(Self {
            cell,
            margin: longest.fold(20.0, f64::max) + 8.0,
            low: map.classes.first().map_or(1.0, |class| class.low),
            high: map.classes.last().map_or(1.0, |class| class.high),
            map,
        })
    }

    /// Width of the map with its labels, pixels.
    pub(super) fn width(&self) -> f64 {
        self.margin + self.side()
    }

    fn side(&self) -> f64 {
        self.cell * self.map.bins.len() as f64
    }

    /// Draws it and returns where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, x: f64, y: f64) -> f64 {
        let (left, top) = (x + self.margin, y + 18.0);
        let side = self.side();
        let area = Area {
            x: left,
            y: top,
            width: side,
            height: side,
        };
        canvas.rect(area, 0.0, "unmeasured");
        if self.map.bins.len() <= MOST_NUMBERED {
            self.draw_numbered(canvas, left, top);
        } else {
            self.draw_coloured(canvas, left, top);
        }
        self.draw_diagonal(canvas, left, top);
        self.draw_borders(canvas, left, top);
        if self.map.bins.len() > MOST_NUMBERED {
            self.draw_group_titles(canvas, left, top);
        }
        self.draw_axes(canvas, left, top);
        top + side
    }

    /// Where a latency stands on the scale, 0 to 1: equal ratios are equal
    /// distances.
    fn place(&self, value: f64) -> f64 {
        let range = self.high.ln() - self.low.ln();
        if range > 0.0 {
            ((value.ln() - self.low.ln()) / range).clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    fn step(&self, value: f64) -> usize {
        let place = self.place(value);
        (1..STEPS)
            .filter(|&step| place * STEPS as f64 >= step as f64)
            .count()
    }

    fn draw_numbered(&self, canvas: &mut Canvas, left: f64, top: f64) {
        let rows = self.map.bins.len();
        for (row, column) in (0..rows).flat_map(|r| (0..rows).map(move |c| (r, c))) {
            let cell = self.map.cell(row, column);
            let Some(value) = cell.value else { continue };
            let area = Area {
                x: left + column as f64 * self.cell,
                y: top + row as f64 * self.cell,
                width: self.cell,
                height: self.cell,
            };
            let source = match cell.is_measured {
                true => "",
                false => ", taken from other pairs of the same groups",
            };
            let title = format!(
                "CPU {} and {}: {}{source}",
                self.map.bins[row],
                self.map.bins[column],
                nanoseconds(value)
            );
            canvas.titled(&title, |canvas| {
                canvas.fill(area, &colour(self.step(value)));
                self.draw_number(canvas, area, value, cell.is_measured);
            });
        }
    }

    fn draw_number(&self, canvas: &mut Canvas, area: Area, value: f64, is_measured: bool) {
        let digits = match value {
            v if v < 9.95 => format!("{v:.1}"),
            v if v < 9_999.5 => format!("{v:.0}"),
            v if v < 999_500.0 => format!("{:.0}k", v / 1000.0),
            v => format!("{v:.0e}"),
        };
        let text = match is_measured {
            true => digits,
            false => format!("~{digits}"),
        };
        let fitting = area.width * 0.86 / (0.61 * text.chars().count().max(3) as f64);
        let words = Words {
            class: if self.place(value) < 0.5 {
                "on"
            } else {
                "light"
            },
            size: fitting.min(13.0),
            anchor: Anchor::Middle,
            text: &text,
        };
        let baseline = area.y + area.height * 0.5 + words.size * 0.36;
        canvas.words(area.x + area.width * 0.5, baseline, words);
    }

    /// One path per colour, a line for each run of cells: a hundred times less
    /// than a rectangle each.
    fn draw_coloured(&self, canvas: &mut Canvas, left: f64, top: f64) {
        let rows = self.map.bins.len();
        let mut paths = vec![String::new(); STEPS];
        for row in 0..rows {
            let steps: Vec<Option<usize>> = (0..rows)
                .map(|column| Some(self.step(self.map.cell(row, column).value?)))
                .collect();
            let mut column = 0;
            for run in steps.chunk_by(|a, b| a == b) {
                if let Some(step) = run[0] {
                    paths[step].push_str(&format!("M{column} {row}.5h{}", run.len()));
                }
                column += run.len();
            }
        }
        canvas.raw(&format!(
            "<g transform=\"translate({} {}) scale({:.4})\" fill=\"none\" stroke-width=\"1\" shape-rendering=\"crispEdges\">\n",
            number(left),
            number(top),
            self.cell
        ));
        for (step, path) in paths
            .iter()
            .enumerate()
            .filter(|(_, path)| !path.is_empty())
        {
            canvas.raw(&format!(
                "<path stroke=\"{}\" d=\"{path}\"/>\n",
                colour(step)
            ));
        }
        canvas.raw("</g>\n");
    }

    /// A CPU has no latency to itself: that is not the same as not measured.
    fn draw_diagonal(&self, canvas: &mut Canvas, left: f64, top: f64) {
        for (row, bin) in self.map.bins.iter().enumerate() {
            let at = row as f64 * self.cell;
            let area = Area {
                x: left + at,
                y: top + at,
                width: self.cell,
                height: self.cell,
            };
            if bin.len() == 1 {
                canvas.fill(area, "#eceef1");
            }
        }
    }

    /// First rows of the groups of a level and of all coarser ones; starts with
    /// the first row.
    fn starts(&self, level: usize) -> Vec<usize> {
        let borders = self.map.borders.iter().enumerate();
        borders
            .filter(|(row, border)| *row == 0 || **border >= level)
            .map(|(row, _)| row)
            .collect()
    }

    /// From row to row, the groups of a level.
    fn segments(&self, level: usize) -> Vec<(usize, usize)> {
        let mut starts = self.starts(level);
        starts.push(self.map.bins.len());
        starts.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn levels(&self) -> usize {
        self.map.borders.iter().copied().max().unwrap_or(0)
    }

    /// White lines where groups end, a frame around each group on the
    /// diagonal; groups of a few pixels are left out.
    fn draw_borders(&self, canvas: &mut Canvas, left: f64, top: f64) {
        let side = self.side();
        for level in 1..=self.levels() {
            let segments = self.segments(level);
            let typical = side / segments.len() as f64;
            if typical < 9.0 {
                continue;
            }
            let thickness = (0.4 + 0.6 * level as f64).min(typical * 0.15);
            let mut lines = String::new();
            for (start, _) in segments.iter().skip(1) {
                let at = *start as f64 * self.cell;
                lines.push_str(&format!(
                    "M{} {}h{}M{} {}v{}",
                    number(left),
                    number(top + at),
                    number(side),
                    number(left + at),
                    number(top),
                    number(side)
                ));
            }
            canvas.raw(&format!(
                "<path class=\"border\" stroke-width=\"{}\" d=\"{lines}\"/>\n",
                number(thickness)
            ));
            for (start, end) in segments.iter().filter(|(start, end)| end - start > 1) {
                let at = *start as f64 * self.cell;
                let length = (end - start) as f64 * self.cell;
                canvas.raw(&format!(
                    "<rect class=\"frame\" stroke-width=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                    number(0.6 + 0.6 * level as f64),
                    number(left + at),
                    number(top + at),
                    number(length),
                    number(length)
                ));
            }
        }
    }

    /// What a pair of groups has, for a pointer over a map of small cells.
    fn draw_group_titles(&self, canvas: &mut Canvas, left: f64, top: f64) {
        let few = |level: &usize| self.starts(*level).len() <= MOST_NUMBERED;
        let Some(level) = (1..=self.levels()).find(few) else {
            return;
        };
        let segments = self.segments(level);
        for &(first_row, last_row) in &segments {
            for &(first_column, last_column) in &segments {
                let cells = (first_row..last_row)
                    .flat_map(|row| (first_column..last_column).map(move |c| (row, c)));
                let values: Vec<f64> = cells
                    .filter_map(|(row, column)| self.map.cell(row, column).value)
                    .collect();
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(0.0, f64::max);
                if values.is_empty() {
                    continue;
                }
                let title = format!(
                    "CPUs {} and {}: {} to {}",
                    self.cpus(first_row, last_row),
                    self.cpus(first_column, last_column),
                    nanoseconds(low),
                    nanoseconds(high)
                );
                let area = Area {
                    x: left + first_column as f64 * self.cell,
                    y: top + first_row as f64 * self.cell,
                    width: (last_column - first_column) as f64 * self.cell,
                    height: (last_row - first_row) as f64 * self.cell,
                };
                canvas.titled(&title, |canvas| canvas.rect(area, 0.0, "touch"));
            }
        }
    }

    fn cpus(&self, first: usize, end: usize) -> pinwise_topology::CpuSet {
        let bins = self.map.bins[first..end].iter();
        bins.flat_map(|bin| bin.iter().collect::<Vec<usize>>())
            .collect()
    }

    /// CPU numbers along rows and columns, as many as there is room for.
    fn draw_axes(&self, canvas: &mut Canvas, left: f64, top: f64) {
        let columns: Vec<String> = self
            .map
            .bins
            .iter()
            .map(|bin| bin.first().map_or_else(String::new, |cpu| cpu.to_string()))
            .collect();
        let widest = columns.iter().map(|label| width(label, AXIS_LETTERS));
        let needed = widest.fold(0.0, f64::max) + 5.0;
        for row in self.labelled(needed) {
            let middle = left + (row as f64 + 0.5) * self.cell;
            canvas.words(middle, top - 6.0, axis_words(Anchor::Middle, &columns[row]));
        }
        for row in self.labelled(AXIS_LETTERS + 2.0) {
            let baseline = top + (row as f64 + 0.5) * self.cell + AXIS_LETTERS * 0.36;
            let label = row_label(&self.map.bins[row]);
            canvas.words(left - 6.0, baseline, axis_words(Anchor::End, &label));
        }
    }

    /// Rows that get a label, at least this many pixels apart: every one, or the
    /// first of groups, or every N.
    fn labelled(&self, apart: f64) -> Vec<usize> {
        let rows = self.map.bins.len();
        let is_roomy = |starts: &Vec<usize>| {
            let steps = starts.windows(2).map(|pair| pair[1] - pair[0]);
            starts.len() > 3
                && steps
                    .min()
                    .is_some_and(|step| step as f64 * self.cell >= apart)
        };
        let by_group = (1..=self.levels()).map(|level| self.starts(level));
        if self.cell >= apart {
            return (0..rows).collect();
        }
        if let Some(starts) = by_group.into_iter().find(is_roomy) {
            return starts;
        }
        let needed = [2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 100]
            .into_iter()
            .find(|&step| step as f64 * self.cell >= apart);
        (0..rows).step_by(needed.unwrap_or(rows.max(1))).collect()
    }

    /// The colour scale with its ticks; returns where it ends. One latency has
    /// no scale.
    pub(super) fn draw_scale(&self, canvas: &mut Canvas, x: f64, y: f64, length: f64) -> f64 {
        if self.high <= self.low {
            return y - 18.0;
        }
        let step = length / STEPS as f64;
        for index in 0..STEPS {
            let area = Area {
                x: x + index as f64 * step,
                y,
                // A hair wider, so that no line shows between steps.
                width: step + if index + 1 < STEPS { 0.6 } else { 0.0 },
                height: 14.0,
            };
            canvas.fill(area, &colour(index));
        }
        let mut last_end = f64::NEG_INFINITY;
        for tick in self.ticks() {
            let at = x + self.place(tick) * length;
            let text = nanoseconds(tick).replace(".00", "").replace(".0", "");
            let half = width(&text, AXIS_LETTERS) * 0.5;
            if at - half < last_end + 6.0 {
                continue;
            }
            last_end = at + half;
            canvas.raw(&format!(
                "<path class=\"tick\" d=\"M{} {}v5\"/>\n",
                number(at),
                number(y + 14.0)
            ));
            canvas.words(at, y + 30.0, axis_words(Anchor::Middle, &text));
        }
        y + 36.0
    }

    /// Round latencies on the scale: 1, 2 and 5 times powers of ten; where
    /// none is on it, its ends.
    fn ticks(&self) -> Vec<f64> {
        let round: Vec<f64> = (-3..7)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|n: f64| n * 10f64.powi(power)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect();
        match round.len() {
            0 | 1 => vec![self.low, self.high],
            _ => round,
        }
    }

    /// What else a reader must know, as full sentences.
    pub(super) fn remarks(&self, measured: &Measured) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.map.is_binned() {
            remarks.push(format!(
                "{} CPUs in {} rows: a cell is the median of its pairs.",
                self.map.cpus,
                self.map.bins.len()
            ));
        }
        let effort = &measured.effort;
        if effort.pairs_skipped > 0 {
            remarks.push(format!(
                "{} pairs were measured, {} taken from the leaders of their groups.",
                effort.pairs_measured, effort.pairs_skipped
            ));
        }
        remarks
    }
}

const fn axis_words(anchor: Anchor, text: &str) -> Words<'_> {
    Words {
        class: "faint",
        size: AXIS_LETTERS,
        anchor,
        text,
    }
}

fn row_label(bin: &pinwise_topology::CpuSet) -> String {
    let list = bin.to_string();
    if list.len() > 12 {
        return format!("{}+{}", bin.first().unwrap_or(0), bin.len() - 1);
    }
    list
}

/// A step of the scale as `#rrggbb`.
fn colour(step: usize) -> String {
    let place = step as f64 / (STEPS - 1) as f64 * (RAMP.len() - 1) as f64;
    let segment = (1..RAMP.len() - 1).filter(|&n| place >= n as f64).count();
    let share = place - segment as f64;
    let channel = |index: usize| {
        let (from, to) = (RAMP[segment][index], RAMP[segment + 1][index]);
        format!("{:.0}", from + share * (to - from))
    };
    format!("rgb({},{},{})", channel(0), channel(1), channel(2))
}
