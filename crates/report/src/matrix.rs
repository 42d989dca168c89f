//! The latency matrix made ready for drawing: CPUs in the order of their
//! measured groups, bins where there are more than can be drawn, and classes
//! of latency.
//!
//! Nothing is judged here. Classes are a way of shading; what is a level, the
//! record says.

use pinwise_record::Measured;
use pinwise_topology::CpuSet;

/// Shades that can still be distinguished.
const MOST_CLASSES: usize = 5;
/// Share of the variation of ln(ns) that classes have to explain.
const EXPLAINED: f64 = 0.97;
/// A class may be spread by this much (standard deviation of ln(ns)) without
/// being divided.
const SPREAD_OF_ONE: f64 = 0.06;
/// Steps of ln(ns) that classes are found among.
const STEPS: usize = 128;

/// A matrix to draw.
#[derive(Debug)]
pub(super) struct HeatMap {
    /// Rows and columns: CPUs that share one.
    pub(super) bins: Vec<CpuSet>,
    /// For each row, the coarsest of the levels that were found (counted from
    /// 1, coarser is larger) whose groups end before it; 0 where none does.
    pub(super) borders: Vec<usize>,
    /// Classes of latency, fastest first.
    pub(super) classes: Vec<LatencyClass>,
    /// CPUs of the matrix.
    pub(super) cpus: usize,
    cells: Vec<Cell>,
}

/// A cell of the drawing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// Median over the pairs of the cell, ns.
    pub(super) value: Option<f64>,
    /// Was any of its pairs measured, rather than taken from leaders?
    pub(super) is_measured: bool,
}

/// Latencies that are shaded alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LatencyClass {
    /// Smallest, ns.
    pub(super) low: f64,
    /// Largest, ns.
    pub(super) high: f64,
    /// Pairs of CPUs in it.
    pub(super) pairs: usize,
}

impl HeatMap {
    /// The matrix in at most `most` rows; `None` where there is no figure.
    pub(super) fn new(measured: &Measured, most: usize) -> Option<Self> {
        let mut latencies = Vec::new();
        for row in 0..measured.cpus.len() {
            latencies.extend((0..row).filter_map(|column| latency(measured, row, column)));
        }
        if latencies.is_empty() {
            return None;
        }
        let keys = group_keys(measured);
        let mut order: Vec<usize> = (0..measured.cpus.len()).collect();
        order.sort_by_key(|&row| (&keys[row], measured.cpus[row]));
        let sizes = bin_sizes(&keys, &order, most.max(1));
        let mut rows: Vec<&[usize]> = Vec::new();
        let mut rest = &order[..];
        for size in sizes {
            let (bin, others) = rest.split_at(size);
            rows.push(bin);
            rest = others;
        }
        Some(Self {
            borders: borders(&keys, &rows),
            classes: natural_classes(latencies),
            cpus: measured.cpus.len(),
            cells: cells(measured, &rows),
            bins: rows
                .iter()
                .map(|bin| bin.iter().map(|&row| measured.cpus[row]).collect())
                .collect(),
        })
    }

    /// The cell of a row and a column.
    pub(super) fn cell(&self, row: usize, column: usize) -> Cell {
        self.cells[row * self.bins.len() + column]
    }

    /// The class of a latency, from 0.
    pub(super) fn class(&self, value: f64) -> usize {
        let last = self.classes.len().saturating_sub(1);
        let found = self.classes.iter().position(|class| value <= class.high);
        found.unwrap_or(last)
    }

    /// Is a row more than one CPU?
    pub(super) fn is_binned(&self) -> bool {
        self.bins.len() < self.cpus
    }
}

/// The figure of two rows of the record, whichever half it stands in.
pub(super) fn latency(measured: &Measured, row: usize, column: usize) -> Option<f64> {
    let at = |row: usize, column: usize| {
        let entry = measured.latency_ns.get(row).and_then(|r| r.get(column));
        entry.copied().flatten()
    };
    at(row, column)
        .or_else(|| at(column, row))
        .filter(|value| value.is_finite() && *value > 0.0)
}

fn is_measured(measured: &Measured, row: usize, column: usize) -> bool {
    let at = |row: usize, column: usize| {
        let entry = measured.is_measured.get(row).and_then(|r| r.get(column));
        entry.is_some_and(|&known| known)
    };
    at(row, column) || at(column, row)
}

/// For each row the groups it is in, the coarsest level first, each named by
/// its lowest CPU; a CPU without a group of a level is a group of its own.
fn group_keys(measured: &Measured) -> Vec<Vec<usize>> {
    let levels: Vec<Vec<CpuSet>> = measured
        .levels
        .iter()
        .rev()
        .map(|level| {
            let groups = level.groups.iter();
            groups.filter_map(|list| list.parse().ok()).collect()
        })
        .collect();
    let key = |cpu: usize, groups: &Vec<CpuSet>| {
        let group = groups.iter().find(|group| group.contains(cpu));
        group.and_then(CpuSet::first).unwrap_or(cpu)
    };
    measured
        .cpus
        .iter()
        .map(|&cpu| levels.iter().map(|groups| key(cpu, groups)).collect())
        .collect()
}

/// How many CPUs each row of the drawing holds, so that there are at most
/// `most`: bins end where groups end, as far as there is room for that, and
/// are alike where that costs few rows.
fn bin_sizes(keys: &[Vec<usize>], order: &[usize], most: usize) -> Vec<usize> {
    if order.len() <= most {
        return vec![1; order.len()];
    }
    let levels = keys.first().map_or(0, Vec::len);
    for depth in (1..=levels).rev() {
        let segments: Vec<usize> = order
            .chunk_by(|&a, &b| keys[a][..depth] == keys[b][..depth])
            .map(<[usize]>::len)
            .collect();
        if segments.len() <= most {
            return divided(&segments, most);
        }
    }
    divided(&[order.len()], most)
}

/// Segments cut into pieces of one size or nearly so.
fn divided(segments: &[usize], most: usize) -> Vec<usize> {
    let pieces = |size: usize| -> usize { segments.iter().map(|s| s.div_ceil(size)).sum() };
    let longest = segments.iter().copied().max().unwrap_or(1);
    let smallest = (1..longest)
        .find(|&size| pieces(size) <= most)
        .unwrap_or(longest);
    let even = (smallest..2 * smallest).find(|size| segments.iter().all(|s| s % size == 0));
    let size = even.unwrap_or(smallest);
    segments
        .iter()
        .flat_map(|&segment| {
            let count = segment.div_ceil(size);
            (0..count).map(move |piece| segment * (piece + 1) / count - segment * piece / count)
        })
        .collect()
}

fn borders(keys: &[Vec<usize>], rows: &[&[usize]]) -> Vec<usize> {
    let mut borders = vec![0];
    for pair in rows.windows(2) {
        let (Some(&before), Some(&after)) = (pair[0].last(), pair[1].first()) else {
            continue;
        };
        let same = keys[before].iter().zip(&keys[after]);
        let coarsest = same.clone().position(|(a, b)| a != b);
        borders.push(coarsest.map_or(0, |depth| keys[before].len() - depth));
    }
    borders
}

fn cells(measured: &Measured, rows: &[&[usize]]) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(rows.len() * rows.len());
    for &row in rows {
        for &column in rows {
            let pairs = row
                .iter()
                .flat_map(|&r| column.iter().map(move |&c| (r, c)))
                .filter(|(r, c)| r != c);
            let mut values = Vec::new();
            let mut any_measured = false;
            for (r, c) in pairs {
                values.extend(latency(measured, r, c));
                any_measured |= is_measured(measured, r, c);
            }
            cells.push(Cell {
                is_measured: any_measured && !values.is_empty(),
                value: median(&mut values),
            });
        }
    }
    cells
}

fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    let (_, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*value)
}

/// One step of ln(ns): the pairs in it.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    pairs: usize,
    weight: f64,
    low: f64,
    high: f64,
}

/// Natural breaks (Fisher 1958, Jenks 1977): the fewest classes that explain
/// [`EXPLAINED`] of the variation of ln(ns), at most [`MOST_CLASSES`].
///
/// A step counts with the square root of its pairs: siblings are few, yet
/// theirs is the class that readers look for.
fn natural_classes(mut latencies: Vec<f64>) -> Vec<LatencyClass> {
    latencies.sort_by(f64::total_cmp);
    let steps = steps(&latencies);
    let cost = Costs::new(&steps);
    let whole = cost.of(0, steps.len());
    let most = MOST_CLASSES.min(steps.len());
    let cuts = (1..=most)
        .map(|classes| best_cuts(&cost, steps.len(), classes))
        .find(|cuts| {
            let within: f64 = cuts.windows(2).map(|c| cost.of(c[0], c[1])).sum();
            let is_explained = within <= (1.0 - EXPLAINED) * whole;
            let is_tight = within <= SPREAD_OF_ONE.powi(2) * cost.weight();
            is_explained || is_tight || cuts.len() > most
        });
    let cuts = cuts.unwrap_or_else(|| vec![0, steps.len()]);
    cuts.windows(2)
        .map(|cut| {
            let class = &steps[cut[0]..cut[1]];
            LatencyClass {
                low: class.first().map_or(0.0, |step| step.low),
                high: class.last().map_or(0.0, |step| step.high),
                pairs: class.iter().map(|step| step.pairs).sum(),
            }
        })
        .collect()
}

/// Sorted latencies in steps of equal ratio; steps without a pair are left out.
fn steps(sorted: &[f64]) -> Vec<Step> {
    let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
        return Vec::new();
    };
    // Quotients of the largest and smallest numbers there are would overflow.
    let ratio = (most.ln() - least.ln()) / STEPS as f64;
    let ends: Vec<f64> = (1..STEPS)
        .map(|step| (least.ln() + ratio * step as f64).exp())
        .collect();
    let step_of = |value: f64| ends.partition_point(|&end| end <= value);
    sorted
        .chunk_by(|a, b| step_of(*a) == step_of(*b))
        .map(|chunk| Step {
            pairs: chunk.len(),
            weight: (chunk.len() as f64).sqrt(),
            low: chunk[0],
            high: chunk[chunk.len() - 1],
        })
        .collect()
}

/// Weighted squares of ln(ns) around the mean of any run of steps.
struct Costs {
    /// Running sums of weight, weight · x, weight · x².
    sums: Vec<[f64; 3]>,
}

impl Costs {
    fn new(steps: &[Step]) -> Self {
        let mut sums = vec![[0.0; 3]];
        let mut sum = [0.0; 3];
        let origin = steps.first().map_or(0.0, |step| step.low.ln());
        for step in steps {
            let x = f64::midpoint(step.low.ln(), step.high.ln()) - origin;
            let terms = [step.weight, step.weight * x, step.weight * x * x];
            for (total, term) in sum.iter_mut().zip(terms) {
                *total += term;
            }
            sums.push(sum);
        }
        Self { sums }
    }

    fn of(&self, from: usize, to: usize) -> f64 {
        let (a, b) = (self.sums[from], self.sums[to]);
        let [weight, first, second] = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
        if weight <= 0.0 {
            return 0.0;
        }
        (second - first * first / weight).max(0.0)
    }

    fn weight(&self) -> f64 {
        self.sums.last().map_or(0.0, |sum| sum[0])
    }
}

/// Where to cut `steps` into this many classes at the least cost: Fisher's
/// dynamic programme. Starts with 0, ends with `steps`.
fn best_cuts(cost: &Costs, steps: usize, classes: usize) -> Vec<usize> {
    // Least cost of the first n steps in this many classes, and the last cut.
    let mut least: Vec<f64> = (0..=steps).map(|n| cost.of(0, n)).collect();
    let mut last_cuts: Vec<Vec<usize>> = Vec::new();
    for _ in 1..classes {
        let mut next = vec![f64::INFINITY; steps + 1];
        let mut last_cut = vec![0; steps + 1];
        for end in 1..=steps {
            for (cut, before) in least.iter().enumerate().take(end).skip(1) {
                let total = before + cost.of(cut, end);
                if total < next[end] {
                    next[end] = total;
                    last_cut[end] = cut;
                }
            }
        }
        least = next;
        last_cuts.push(last_cut);
    }
    let mut cuts = vec![steps];
    for last_cut in last_cuts.iter().rev() {
        cuts.push(last_cut[cuts[cuts.len() - 1]]);
    }
    cuts.push(0);
    cuts.reverse();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::MeasuredLevel;

    fn classes(latencies: &[f64]) -> Vec<(f64, f64, usize)> {
        let classes = natural_classes(latencies.to_vec());
        classes.iter().map(|c| (c.low, c.high, c.pairs)).collect()
    }

    #[test]
    fn classes_end_where_latencies_have_gaps() {
        assert_eq!(classes(&[36.0]), [(36.0, 36.0, 1)]);
        assert_eq!(classes(&[36.0, 36.0, 36.0]), [(36.0, 36.0, 3)]);
        assert_eq!(classes(&[36.0, 38.0, 35.0]), [(35.0, 38.0, 3)]);
        assert_eq!(
            classes(&[14.0, 36.0, 38.0, 110.0, 104.0, 118.0]),
            [(14.0, 14.0, 1), (36.0, 38.0, 2), (104.0, 118.0, 3)]
        );
    }

    #[test]
    fn few_siblings_are_a_class_among_many_others() {
        let mut latencies = vec![14.0; 8];
        latencies.extend((0..4000).map(|n| 90.0 + f64::from(n % 30)));
        let found = classes(&latencies);
        assert_eq!(found[0], (14.0, 14.0, 8));
        assert_eq!(found.iter().map(|c| c.2).sum::<usize>(), 4008);
    }

    /// A machine without figures but with groups, as rows are binned by those.
    fn grouped(cpus: usize, groups: &[&str]) -> Measured {
        Measured {
            cpus: (0..cpus).collect(),
            latency_ns: vec![vec![Some(20.0); cpus]; cpus],
            levels: vec![MeasuredLevel {
                groups: groups.iter().map(|g| (*g).to_owned()).collect(),
                ..MeasuredLevel::default()
            }],
            ..Measured::default()
        }
    }

    #[test]
    fn bins_end_where_groups_end() {
        let bins = |measured: &Measured, most: usize| -> Vec<String> {
            let map = HeatMap::new(measured, most).unwrap();
            map.bins.iter().map(ToString::to_string).collect()
        };
        let interleaved = grouped(8, &["0,2,4,6", "1,3,5,7"]);
        assert_eq!(bins(&interleaved, 4), ["0,2", "4,6", "1,3", "5,7"]);
        assert_eq!(bins(&interleaved, 3), ["0,2,4,6", "1,3,5,7"]);
        assert_eq!(bins(&interleaved, 1), ["0-7"]);
        let uneven = grouped(10, &["0-6", "7-9"]);
        assert_eq!(bins(&uneven, 5), ["0-1", "2-3", "4-6", "7-9"]);
        let map = HeatMap::new(&interleaved, 8).unwrap();
        assert_eq!(map.borders, [0, 0, 0, 0, 1, 0, 0, 0]);
        assert!(!map.is_binned());
    }

    #[test]
    fn any_matrix_is_drawn_or_left() {
        let mut ragged = grouped(3, &["0-1", "nonsense"]);
        ragged.latency_ns = vec![
            vec![None],
            vec![Some(f64::NAN)],
            vec![Some(30.0), Some(-1.0)],
        ];
        let map = HeatMap::new(&ragged, 9).unwrap();
        assert_eq!(map.classes.len(), 1);
        assert_eq!(map.cell(0, 2).value, Some(30.0));
        assert!(!map.cell(0, 2).is_measured);
        assert!(HeatMap::new(&Measured::default(), 9).is_none());
    }
}
