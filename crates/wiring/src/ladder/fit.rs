//! Fits plateaus and climbs to the points of a ladder.
//!
//! Both axes are logarithmic: caches grow by octaves, and noise is a share.
//! The least-cost labelling of points is found by dynamic programming, as in
//! optimal partitioning (Jackson et al. 2005) with a second kind of segment
//! that any climb fits.

use pinwise_stats::describe::quantile;

use super::Point;

/// A plateau and the knee that ends it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlateauAndKnee {
    pub(super) latency_ns: f64,
    /// `None` for the last.
    pub(super) knee_bytes: Option<f64>,
}

/// Limits the points that are fitted: the work grows with their cube.
const MAX_POINTS: usize = 200;

/// Two plateaus whose latencies differ by less are one. An outgrown TLB adds
/// about 7 cycles to the 12 to 14 of an L2, and about 25 to the 46 of an L3
/// (factors of 1.5 to 1.6); the next cache takes 2.5 times or more.
const MIN_STEP: f64 = 1.65;

/// Cost of a plateau in a labelling. The unit is the cost of a quarter octave of climb, so a plateau
/// pays off if it replaces three quarters of an octave.
const PLATEAU_COST: f64 = 3.0;
/// Cost of a quarter octave of plateau that is one deviation off its level.
const OFF_COST: f64 = 0.3;
/// Highest cost of a quarter octave of plateau, so that outliers do not end one.
const MAX_OFF_COST: f64 = 3.0;

/// Limits of noise estimates. Below them, sloping plateaus would be climbs (the last cache of a shared
/// Zen 4 was seen to go from 12.7 to 16.3 ns in two octaves); above, climbs would be plateaus.
const MIN_NOISE: f64 = 0.05;
const MAX_NOISE: f64 = 0.08;

/// A point on both logarithmic axes.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// log2 of the bytes.
    x: f64,
    /// ln of the ns.
    y: f64,
    /// Standard deviation of `y`, from its interval; 0 if there is none.
    deviation: f64,
}

/// Fits plateaus to points: in order of latency, each but the last with its knee.
pub(super) fn fit(points: &[Point]) -> Vec<PlateauAndKnee> {
    let mut samples = thin_out(usable_samples(points));
    let noise = estimate_noise(&samples);
    make_monotonic(&mut samples);
    let ladder = SortedLadder::new(samples);
    let plateaus = ladder.merge_ranges(&ladder.partition(noise));
    let mut steps = Vec::new();
    for (index, plateau) in plateaus.iter().enumerate() {
        let next = plateaus.get(index + 1);
        steps.push(PlateauAndKnee {
            latency_ns: plateau.level.exp(),
            knee_bytes: next.map(|next| ladder.knee(plateau, next).exp2()),
        });
    }
    steps
}

/// The points with usable figures, by size; of several of one size the median.
fn usable_samples(points: &[Point]) -> Vec<Sample> {
    let mut samples: Vec<Sample> = points
        .iter()
        .filter(|point| point.bytes > 0 && point.ns > 0.0 && point.ns.is_finite())
        .map(|point| Sample {
            x: (point.bytes as f64).log2(),
            y: point.ns.ln(),
            deviation: point.interval_ns.map_or(0.0, deviation),
        })
        .collect();
    samples.sort_by(|a, b| a.x.total_cmp(&b.x));
    collect_bins(&samples, 1e-9)
}

/// The standard deviation of `ln(ns)` from a 95 % interval.
fn deviation((low, high): (f64, f64)) -> f64 {
    let width = (high / low).ln() / 3.92;
    if low > 0.0 && width.is_finite() {
        width.max(0.0)
    } else {
        0.0
    }
}

/// Merges neighbours if there are more than [`MAX_POINTS`].
fn thin_out(samples: Vec<Sample>) -> Vec<Sample> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return samples;
    };
    if samples.len() <= MAX_POINTS {
        return samples;
    }
    collect_bins(&samples, (last.x - first.x) / (MAX_POINTS - 1) as f64)
}

/// Merges all samples within `width` of the first into one, by medians.
fn collect_bins(samples: &[Sample], width: f64) -> Vec<Sample> {
    let mut bins = Vec::new();
    let mut rest = samples;
    while let Some(first) = rest.first() {
        let (bin, after) = rest.split_at(rest.partition_point(|s| s.x < first.x + width));
        bins.push(Sample {
            x: median(bin.iter().map(|s| s.x)),
            y: median(bin.iter().map(|s| s.y)),
            deviation: median(bin.iter().map(|s| s.deviation)),
        });
        rest = after;
    }
    bins
}

/// The median; NaN if empty.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&values.collect::<Vec<f64>>(), 0.5)
}

/// Estimates the noise by how far points are from the line between their neighbours: on a plateau
/// that is noise only, and most points are on one.
fn estimate_noise(samples: &[Sample]) -> f64 {
    let bends = samples
        .windows(3)
        .map(|w| (w[0].y - 2.0 * w[1].y + w[2].y).abs());
    let sd = 1.4826 * median(bends) / 6.0f64.sqrt();
    if sd.is_finite() {
        sd.clamp(MIN_NOISE, MAX_NOISE)
    } else {
        MIN_NOISE
    }
}

/// Makes latency monotonic in size: isotonic regression with medians (Robertson and Waltman 1968),
/// which are robust to one outlier.
fn make_monotonic(samples: &mut [Sample]) {
    let mut blocks: Vec<(usize, f64)> = Vec::new();
    for end in 1..=samples.len() {
        let mut start = end - 1;
        let mut level = samples[start].y;
        while let Some(&(before, lower)) = blocks.last()
            && lower >= level
        {
            blocks.pop();
            start = before;
            level = median(samples[start..end].iter().map(|s| s.y));
        }
        blocks.push((start, level));
    }
    let ends: Vec<usize> = blocks.iter().skip(1).map(|(start, _)| *start).collect();
    for (&(start, level), end) in blocks.iter().zip(ends.into_iter().chain([samples.len()])) {
        samples[start..end].iter_mut().for_each(|s| s.y = level);
    }
}

/// Points `start..end` at one level.
#[derive(Debug, Clone, Copy)]
struct PlateauRange {
    start: usize,
    end: usize,
}

/// The least cost of labelling some points.
#[derive(Default)]
struct Labelling {
    cost: f64,
    /// Start of the plateau that the last point is on; `None` if the point is on a climb.
    plateau_start: Option<usize>,
}

/// A sorted ladder: size and latency increase.
struct SortedLadder {
    points: Vec<Sample>,
    /// The width of each point, in quarter octaves, so that fine and coarse grids cost the same.
    weights: Vec<f64>,
    /// Sums of the weights before each point, and of all.
    sums: Vec<f64>,
}

impl SortedLadder {
    fn new(points: Vec<Sample>) -> Self {
        let weights = point_widths(&points);
        let mut sums = vec![0.0];
        for weight in &weights {
            sums.push(sums.last().copied().unwrap_or(0.0) + weight);
        }
        Self {
            points,
            weights,
            sums,
        }
    }

    /// The plateaus of the least-cost labelling.
    fn partition(&self, noise: f64) -> Vec<PlateauRange> {
        let n = self.points.len();
        // By number of points: the best labelling of the first ones.
        let mut best = vec![Labelling::default()];
        for end in 1..=n {
            let mut least = Labelling {
                cost: best[end - 1].cost + self.weights[end - 1],
                plateau_start: None,
            };
            for start in (0..end).rev() {
                // A single point is a plateau only at the ends.
                if start + 1 == end && start > 0 && end < n {
                    continue;
                }
                let misfit = self.plateau_misfit_cost(noise, start, end);
                let cost = best[start].cost + PLATEAU_COST + misfit;
                if cost < least.cost {
                    least = Labelling {
                        cost,
                        plateau_start: Some(start),
                    };
                }
            }
            best.push(least);
        }
        let mut ranges = Vec::new();
        let mut end = n;
        while end > 0 {
            match best[end].plateau_start {
                None => end -= 1,
                Some(start) => {
                    ranges.push(PlateauRange { start, end });
                    end = start;
                }
            }
        }
        ranges.reverse();
        add_end_plateaus(ranges, n)
    }

    /// The cost of calling these points a plateau: their distances from its level.
    fn plateau_misfit_cost(&self, noise: f64, start: usize, end: usize) -> f64 {
        let level = self.level(start, end);
        let cost = |index: usize| {
            let sample = &self.points[index];
            let scale = noise.max(sample.deviation.min(MAX_NOISE));
            let off = OFF_COST * (sample.y - level).abs() / scale;
            off.min(MAX_OFF_COST) * self.weights[index]
        };
        (start..end).map(cost).sum()
    }

    /// Median of these points weighted by their widths: sizes are dense near knees. Latencies are
    /// sorted, so the median is in the middle.
    fn level(&self, start: usize, end: usize) -> f64 {
        let half = f64::midpoint(self.sums[start], self.sums[end]);
        let after = self.sums[start + 1..end].partition_point(|sum| *sum < half);
        self.points[start + after].y
    }

    /// Merges plateaus until each is clearly higher than the one before.
    fn merge_ranges(&self, ranges: &[PlateauRange]) -> Vec<MergedPlateau> {
        let mut groups: Vec<MergedPlateau> = ranges
            .iter()
            .map(|&range| {
                let level = self.level(range.start, range.end);
                MergedPlateau {
                    level,
                    first: level,
                    last: level,
                    range,
                }
            })
            .collect();
        loop {
            let rise = |index: &usize| groups[index + 1].first - groups[*index].last;
            let smallest = (0..groups.len().saturating_sub(1))
                .min_by(|a, b| rise(a).total_cmp(&rise(b)))
                .filter(|index| rise(index) < MIN_STEP.ln());
            let Some(index) = smallest else { return groups };
            let next = groups.remove(index + 1);
            let group = &mut groups[index];
            group.range.end = next.range.end;
            group.last = next.last;
            group.level = self.level(group.range.start, group.range.end);
        }
    }

    /// log2 of the size at which half of the loads miss. Latency is the mean of all loads, so it is
    /// half-way between both levels there. The geometric middle would be too early if the next level
    /// is far slower.
    fn knee(&self, from: &MergedPlateau, to: &MergedPlateau) -> f64 {
        let middle = f64::midpoint(from.last.exp(), to.first.exp());
        let climb = &self.points[from.range.end - 1..=to.range.start];
        let after = climb.iter().position(|s| s.y.exp() >= middle);
        let after = after.unwrap_or(climb.len() - 1).max(1);
        let (a, b) = (climb[after - 1], climb[after]);
        let (below, above) = (a.y.exp(), b.y.exp());
        let share = if above > below {
            ((middle - below) / (above - below)).clamp(0.0, 1.0)
        } else {
            0.5
        };
        a.x + share * (b.x - a.x)
    }
}

/// Adds plateaus of one point at the ends: a ladder begins and ends on a level, however short.
fn add_end_plateaus(mut ranges: Vec<PlateauRange>, n: usize) -> Vec<PlateauRange> {
    if n == 0 {
        return ranges;
    }
    if ranges.first().is_none_or(|first| first.start > 0) {
        ranges.insert(0, PlateauRange { start: 0, end: 1 });
    }
    if ranges.last().is_none_or(|last| last.end < n) {
        ranges.push(PlateauRange {
            start: n - 1,
            end: n,
        });
    }
    ranges
}

fn point_widths(samples: &[Sample]) -> Vec<f64> {
    let gap = |left: usize, right: usize| match (samples.get(left), samples.get(right)) {
        (Some(a), Some(b)) => b.x - a.x,
        _ => 0.0,
    };
    (0..samples.len())
        .map(|index| {
            let before = index.checked_sub(1).map_or(0.0, |left| gap(left, index));
            let width = f64::midpoint(before, gap(index, index + 1));
            (4.0 * width).clamp(0.1, 4.0)
        })
        .collect()
}

/// Plateaus with only small rises between them.
#[derive(Debug, Clone, Copy)]
struct MergedPlateau {
    /// Level of all its points, `ln(ns)`.
    level: f64,
    /// Levels of the first and of the last of its parts.
    first: f64,
    last: f64,
    range: PlateauRange,
}
