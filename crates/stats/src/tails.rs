//! Tails of noise, as populations judged by `outliers` have them:
//! Student's t fitted to distances, and the power by which the tail of other
//! figures goes on. It judges nothing.

use std::sync::LazyLock;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The other figures' values within this many scales count as evidence, too.
const FARTHEST: f64 = 8.0;
/// Number of bins up to the farthest, and up to four scales.
pub(super) const BINS: usize = 80;
const NEAR_BINS: usize = 40;
/// The first bin that shows which side reaches further: beyond two scales.
const OUTER_BIN: usize = 20;
/// Values beyond this many scales may belong to the tail.
const WILD: f64 = 1.5;
/// What the other figures lend to the tails of one, in values.
const LENT: f64 = 1000.0;
/// Degrees of freedom that tails may have.
const FREEDOMS: [f64; 12] = [
    2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 1e6,
];
/// Scales of the t distribution over those of the cut.
const STRETCHES: [f64; 15] = [
    0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.88, 0.91, 0.94, 0.97, 1.0, 1.03, 1.06, 1.1,
];

/// The kind of noise in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Noise of measurements, wild at times in all figures alike: what is wild elsewhere is not an
    /// outlier here.
    Wild,
    /// Means of many values, near a normal: far values are outliers.
    Averaged,
}

/// Distances by bin.
pub(super) type Counts = [f64; BINS];

/// Distances of a figure to one side of its centre.
#[derive(Debug)]
pub(super) struct Side {
    /// -1 below the centre, 1 above.
    pub(super) sign: f64,
    pub(super) counts: Counts,
    /// Those beyond [`WILD`], ascending.
    wild: Vec<f64>,
    /// Values on both sides.
    pub(super) values: usize,
}

/// The two sides of a figure: the one that reaches less far first. Noise of
/// computers is skewed, times upwards and rates downwards.
pub(super) fn sides(z: &[f64], left_out: &[bool]) -> [Side; 2] {
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
        reason = "a distance that is not negative has a bin, or is beyond all"
    )]
    pub(super) fn new(z: &[f64], left_out: &[bool], sign: f64) -> Self {
        let mut side = Self {
            sign,
            counts: [0.0; BINS],
            wild: Vec::new(),
            values: 0,
        };
        for z in members(z, left_out) {
            side.values += 1;
            let far = z * sign;
            if far < 0.0 {
                continue;
            }
            let bin = (far / FARTHEST * BINS as f64) as usize;
            if let Some(count) = side.counts.get_mut(bin) {
                *count += 1.0;
            }
            if far > WILD {
                side.wild.push(far);
            }
        }
        side.wild.sort_unstable_by(f64::total_cmp);
        side
    }

    /// One side of all figures.
    pub(super) fn all(sides: &[Option<[Self; 2]>], side: usize) -> Self {
        let mut all = Self::new(&[], &[], 1.0);
        for of in sides.iter().flatten() {
            all.values += of[side].values;
            all.wild.extend(&of[side].wild);
        }
        all.wild.sort_unstable_by(f64::total_cmp);
        all
    }
}

/// The tail of all figures but one: counted, and beyond what one value in 500
/// reaches continued as a power (Hill 1975). A figure's own values are left
/// out: they may be a fault that several members have.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// The farthest, in falling order.
    farthest: Vec<f64>,
    values: f64,
    /// How many of them the power was found from.
    order: usize,
    from: f64,
    /// Sum of their logarithms relative to the start of the power law.
    logs: f64,
}

impl Elsewhere {
    /// `None` if there are too few values.
    pub(super) fn new(all: &Side, own: &Side) -> Option<Self> {
        let values = all.values - own.values;
        let order = (values / 500).clamp(20, 200);
        let most = (order + 1).max(values / 50);
        let mut own = own.wild.iter().rev().peekable();
        let mut farthest = Vec::with_capacity(most);
        for far in all.wild.iter().rev() {
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

    /// Chance of a distance beyond this; 0 if it is not unusual.
    pub(super) fn beyond(&self, z: f64) -> f64 {
        if z > self.from {
            // The value itself is one more of the tail.
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

/// What the others lend to a figure: a few of their values, as they are spread.
pub(super) fn lent_to(own: Option<&Counts>, all: &Counts, noise: Noise) -> Counts {
    let mut lent = *all;
    if let Some(own) = own {
        lent.iter_mut().zip(own).for_each(|(sum, n)| *sum -= n);
    }
    if noise == Noise::Averaged {
        lent[NEAR_BINS..].fill(0.0);
    }
    let total: f64 = lent.iter().sum();
    if total > 0.0 {
        let share = LENT.min(total) / total;
        lent.iter_mut().for_each(|count| *count *= share);
    }
    lent
}

/// Tails as fitted.
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
    /// The same, allowing for how well so few members show the scale: simulated normal samples of 8
    /// to 128 members follow this to a few per cent.
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
    /// Chance of a distance beyond this, on one side.
    pub(super) fn beyond(&self, z: f64) -> f64 {
        let student = self.student.as_ref();
        student.map_or(1.0, |student| student.sf(z / self.stretch))
    }
}

/// The same for every population.
pub(super) static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::new);

/// Logarithms of the chance of each bin for all tails, and of the chance of a
/// value within both limits.
pub(super) struct Shape {
    tails: Vec<(Fitted, Counts, [f64; 2])>,
}

impl Shape {
    pub(super) fn new() -> Self {
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
                tails.push((Fitted { freedom, stretch }, logs, within));
            }
        }
        Self { tails }
    }

    /// The tails of maximum likelihood, from own values within the near limit and lent ones within
    /// the far limit; a normal's if there are none.
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
        for (fitted, logs, within) in &self.tails {
            let likelihood = log_likelihood(near, logs, within[0])
                + log_likelihood(lent, logs, within[lent_within]);
            if best.is_none_or(|(most, _)| likelihood > most) {
                best = Some((likelihood, *fitted));
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

pub(super) fn members<'a>(values: &'a [f64], apart: &'a [bool]) -> impl Iterator<Item = f64> + 'a {
    let is_within = |at: usize| !apart.get(at).copied().unwrap_or(false);
    let all = values.iter().enumerate();
    all.filter(move |(at, v)| v.is_finite() && is_within(*at))
        .map(|(_, v)| *v)
}
