//! The tails of noise in the populations that `outliers` judges: Student's t fitted to the distances
//! of a figure, and a power law for the farthest distances of the other figures.

use std::sync::LazyLock;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Values of other figures within this many scales are evidence on the tails.
const FARTHEST: f64 = 8.0;
/// Number of bins up to [`FARTHEST`].
pub(super) const BINS: usize = 80;
/// Number of bins up to four scales: a figure's own values there are evidence on its tails.
const NEAR_BINS: usize = 40;
/// First of the bins, beyond two scales, that show which side reaches further.
const OUTER_BIN: usize = 20;
/// Values beyond this many scales are kept one by one, as they may belong to the tail.
const TAIL_START: f64 = 1.5;
/// Most values that the other figures lend to a figure's tails.
const MAX_LENT: f64 = 1000.0;
/// Degrees of freedom that tails may have.
const FREEDOMS: [f64; 12] = [
    2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 1e6,
];
/// Scales that the t distribution may have, over that of the bulk.
const STRETCHES: [f64; 15] = [
    0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.88, 0.91, 0.94, 0.97, 1.0, 1.03, 1.06, 1.1,
];

/// The kind of noise in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Noise of single measurements, which is extreme at times in any figure: a value is no outlier
    /// if other figures have values as extreme.
    Wild,
    /// Noise of means of many values, which is nearly normal: far values are outliers.
    Averaged,
}

/// Number of distances in each bin.
pub(super) type Counts = [f64; BINS];

/// Distances of a figure to one side of its centre.
#[derive(Debug)]
pub(super) struct Side {
    /// -1 below the centre, 1 above.
    pub(super) sign: f64,
    pub(super) counts: Counts,
    /// Distances beyond [`TAIL_START`], ascending.
    tail: Vec<f64>,
    /// Number of values on both sides.
    pub(super) values: usize,
}

/// Splits distances into the two sides of a figure, the one that reaches less far first. Noise of
/// computers is skewed: times upwards, rates downwards.
pub(super) fn split_sides(z: &[f64], left_out: &[bool]) -> [Side; 2] {
    let (below, above) = (Side::new(z, left_out, -1.0), Side::new(z, left_out, 1.0));
    let outer = |side: &Side| side.counts[OUTER_BIN..NEAR_BINS].iter().sum::<f64>();
    if outer(&above) >= outer(&below) {
        [below, above]
    } else {
        [above, below]
    }
}

impl Side {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a distance is not negative here; if it is beyond all bins, the cast saturates"
    )]
    pub(super) fn new(z: &[f64], left_out: &[bool], sign: f64) -> Self {
        let mut side = Self {
            sign,
            counts: [0.0; BINS],
            tail: Vec::new(),
            values: 0,
        };
        for z in select_members(z, left_out) {
            side.values += 1;
            let far = z * sign;
            if far < 0.0 {
                continue;
            }
            let bin = (far / FARTHEST * BINS as f64) as usize;
            if let Some(count) = side.counts.get_mut(bin) {
                *count += 1.0;
            }
            if far > TAIL_START {
                side.tail.push(far);
            }
        }
        side.tail.sort_unstable_by(f64::total_cmp);
        side
    }

    /// Merges the tails of one side of all figures.
    pub(super) fn merge(sides: &[Option<[Self; 2]>], side: usize) -> Self {
        let mut all = Self::new(&[], &[], 1.0);
        for figure in sides.iter().flatten() {
            all.values += figure[side].values;
            all.tail.extend(&figure[side].tail);
        }
        all.tail.sort_unstable_by(f64::total_cmp);
        all
    }
}

/// The tail of all figures but one. Its share is counted, or beyond what one value in 500 reaches,
/// continued by a power law (Hill 1975). The figure's own values are left out, as several members
/// may have the same fault.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// The farthest distances, in falling order.
    farthest: Vec<f64>,
    /// Number of all values.
    values: f64,
    /// Number of distances that the power law was fitted to.
    order: usize,
    /// The distance at which the power law starts, in scales.
    from: f64,
    /// Sum of the logarithms of these distances relative to [`from`](Self::from).
    logs: f64,
}

impl Elsewhere {
    /// `None` if there are too few values.
    pub(super) fn new(all: &Side, own: &Side) -> Option<Self> {
        let values = all.values - own.values;
        let order = (values / 500).clamp(20, 200);
        let most = (order + 1).max(values / 50);
        let mut own = own.tail.iter().rev().peekable();
        let mut farthest = Vec::with_capacity(most);
        for far in all.tail.iter().rev() {
            if own.next_if(|own| *own >= far).is_none() {
                farthest.push(*far);
            }
            if farthest.len() >= most {
                break;
            }
        }
        let from = *farthest.get(order)?;
        let logs: f64 = farthest
            .iter()
            .take(order)
            .map(|far| (far / from).ln())
            .sum();
        (logs > 0.0).then_some(Self {
            farthest,
            values: values as f64,
            order,
            from,
            logs,
        })
    }

    /// Probability of a distance beyond `z`; 0 if `z` is shorter than all that were kept.
    pub(super) fn beyond(&self, z: f64) -> f64 {
        if z > self.from {
            // The value itself counts as one more of the tail.
            let order = self.order as f64 + 1.0;
            let exponent = order / (self.logs + (z / self.from).ln());
            return order / (self.values + 1.0) * (self.from / z).powf(exponent);
        }
        let count = self.farthest.partition_point(|far| *far > z);
        if count == self.farthest.len() {
            return 0.0;
        }
        count as f64 / self.values
    }
}

/// The evidence that other figures lend to a figure: the distribution of their values, with the
/// weight of at most [`MAX_LENT`] values.
pub(super) fn lend(own: Option<&Counts>, all: &Counts, noise: Noise) -> Counts {
    let mut lent = *all;
    if let Some(own) = own {
        lent.iter_mut().zip(own).for_each(|(sum, n)| *sum -= n);
    }
    if noise == Noise::Averaged {
        lent[NEAR_BINS..].fill(0.0);
    }
    let total: f64 = lent.iter().sum();
    if total > 0.0 {
        let share = MAX_LENT.min(total) / total;
        lent.iter_mut().for_each(|count| *count *= share);
    }
    lent
}

/// Tails as fitted to distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fitted {
    freedom: f64,
    /// Scale of the t distribution over that of the bulk.
    stretch: f64,
}

/// Tails that members are judged by.
pub(super) struct Tails {
    pub(super) freedom: f64,
    stretch: f64,
    student: Option<StudentsT>,
}

impl Fitted {
    /// Makes the tails heavier to allow for the uncertainty of a scale from so few members. In
    /// simulated normal samples of 8 to 128 members this is right to a few per cent.
    pub(super) fn for_few_members(self, members: usize) -> Tails {
        let scale = (0.75 * members as f64 - 4.0).max(0.7);
        let freedom = 1.0 / (self.freedom.powi(-2) + scale.powi(-2)).sqrt();
        Tails {
            freedom,
            stretch: self.stretch,
            student: StudentsT::new(0.0, 1.0, freedom).ok(),
        }
    }
}

impl Tails {
    /// Probability of a distance beyond `z`, on one side.
    pub(super) fn beyond(&self, z: f64) -> f64 {
        let student = self.student.as_ref();
        student.map_or(1.0, |student| student.sf(z / self.stretch))
    }
}

/// The shapes, computed once for all populations.
pub(super) static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::new);

/// All tails that can be fitted.
pub(super) struct Shape {
    tails: Vec<CandidateTails>,
}

struct CandidateTails {
    fitted: Fitted,
    /// Logarithm of the probability of each bin.
    logs: Counts,
    /// Logarithms of the probability of a value within four scales, and within [`FARTHEST`].
    within: [f64; 2],
}

impl Shape {
    fn new() -> Self {
        let mut tails = Vec::new();
        for freedom in FREEDOMS {
            let student = StudentsT::new(0.0, 1.0, freedom).ok();
            for stretch in STRETCHES {
                let below = |bin: usize| {
                    let edge = FARTHEST * bin as f64 / BINS as f64 / stretch;
                    student.as_ref().map_or(0.0, |t| 1.0 - 2.0 * t.sf(edge))
                };
                let mut logs = [0.0; BINS];
                for (bin, log) in logs.iter_mut().enumerate() {
                    *log = (below(bin + 1) - below(bin)).max(f64::MIN_POSITIVE).ln();
                }
                let within = [below(NEAR_BINS).ln(), below(BINS).ln()];
                tails.push(CandidateTails {
                    fitted: Fitted { freedom, stretch },
                    logs,
                    within,
                });
            }
        }
        Self { tails }
    }

    /// The tails of maximum likelihood, given a figure's own values within four scales and the lent
    /// values; those of a normal distribution if there are none.
    pub(super) fn fit(&self, own: &Side, lent: &Counts, noise: Noise) -> Fitted {
        let lent_within = match noise {
            Noise::Wild => 1,
            Noise::Averaged => 0,
        };
        let near = &own.counts[..NEAR_BINS];
        let log_likelihood = |counts: &[f64], logs: &[f64], within: f64| -> f64 {
            let terms = counts.iter().zip(logs);
            terms.map(|(n, log)| n * (log - within)).sum()
        };
        let mut best = None;
        for tails in &self.tails {
            let likelihood = log_likelihood(near, &tails.logs, tails.within[0])
                + log_likelihood(lent, &tails.logs, tails.within[lent_within]);
            if best.is_none_or(|(most, _)| likelihood > most) {
                best = Some((likelihood, tails.fitted));
            }
        }
        let is_known = near.iter().chain(lent).any(|n| *n > 0.0);
        let normal = Fitted {
            freedom: 1e6,
            stretch: 1.0,
        };
        best.filter(|_| is_known)
            .map_or(normal, |(_, fitted)| fitted)
    }
}

/// The finite values of the members that are not apart.
pub(super) fn select_members<'a>(
    values: &'a [f64],
    apart: &'a [bool],
) -> impl Iterator<Item = f64> + 'a {
    let is_within = |at: usize| !apart.get(at).copied().unwrap_or(false);
    let all = values.iter().enumerate();
    all.filter(move |(at, v)| v.is_finite() && is_within(*at))
        .map(|(_, v)| *v)
}
