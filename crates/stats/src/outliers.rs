//! Finds which members of a population of similar machines are outliers, figure by figure.
//!
//! Centre and scale are those of the bulk. They start from the median and the median distance (with
//! few members from Rousseeuw and Croux's `Qn`, 1993). Then values within three scales are kept, and
//! their mean and standard deviation, corrected for the cut, become the next centre and scale, until
//! nothing changes. Up to a third of the members may be outliers without hiding each other.
//!
//! The tails are fitted to the population itself, on each side: Student's t with the degrees of
//! freedom that have the highest truncated likelihood, given the figure's values within four scales
//! and those of the other figures within eight. Members far away in several figures do not take
//! part: noise is extreme now and then in any member, a fault always in the same one. So a few
//! extreme values are not outliers, while outliers do not make the tails heavy. The uncertainty of
//! the scale makes the tails heavier as well.

use super::describe::quantile;
pub use super::tails::Noise;
use super::tails::{BINS, Counts, Elsewhere, SHAPE, Side, lend, select_members, split_sides};

/// Smaller populations are not judged: even a value twenty scales away could not be distinguished
/// from chance.
pub const MIN_MEMBERS: usize = 6;

/// Values within this many scales are the bulk.
const CUT: f64 = 3.0;
/// Standard deviation of a standard normal that is cut at [`CUT`]: the root of
/// `1 − 2cφ(c)/(2Φ(c) − 1)`.
const CUT_SD: f64 = 0.986_578;
/// `Qn` is not computed for more members, as its cost is quadratic here.
const MAX_FOR_QN: usize = 64;
/// Values beyond this many scales are far away.
const FAR: f64 = 4.0;
/// A member that is far away in this many figures has no part in the tails.
const SEVERAL_FIGURES: usize = 3;
/// Values within this many scales get a probability of 1.
const NEAR: f64 = 1.0;

/// A figure of all members.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// A value per member, preferably a logarithm; NaN if a member has none.
    pub values: Vec<f64>,
    /// Standard error of each value, 0 if unknown; or empty.
    pub errors: Vec<f64>,
    /// A smaller scale of the bulk is replaced by this: smaller differences are of no interest.
    pub least_scale: f64,
    /// Are only values above the others outliers?
    pub is_one_sided: bool,
}

/// Position and width of the bulk of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bulk {
    /// Its centre.
    pub centre: f64,
    /// Its robust standard deviation.
    pub scale: f64,
    /// Number of members that it was estimated from.
    pub members: usize,
}

/// The judgement of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedFigure {
    /// Position and width of its bulk.
    pub bulk: Bulk,
    /// Degrees of freedom of the heavier of its tails.
    pub freedom: f64,
    /// Distance of each member from the centre, in scales; NaN if it has no value.
    pub z: Vec<f64>,
    /// Probability of such a distance by chance; NaN if it has no value.
    pub p: Vec<f64>,
}

/// The judgement of a population.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Every figure; `None` if fewer than [`MIN_MEMBERS`] members have it, or if it does not vary.
    pub figures: Vec<Option<JudgedFigure>>,
    /// Is the member excluded from the tails, as one of those apart, or far away in several figures?
    pub is_loud: Vec<bool>,
}

/// Judges every figure of a population. Members that are `apart` have no part in the bulk, but are
/// judged against it like all others.
#[must_use]
pub fn judge(columns: &[&Column], apart: &[bool], noise: Noise) -> Judgement {
    let distances: Vec<Option<(Bulk, Vec<f64>)>> = columns
        .iter()
        .map(|column| measure_distances(column, apart))
        .collect();
    let is_loud = find_loud(&distances, apart);
    let sides: Vec<Option<[Side; 2]>> = distances
        .iter()
        .map(|found| Some(split_sides(&found.as_ref()?.1, &is_loud)))
        .collect();
    let lent = [0, 1].map(|side| pool_tails(columns, &distances, &sides, side));
    let all = [Side::merge(&sides, 0), Side::merge(&sides, 1)];
    let found = distances.into_iter().zip(columns).zip(sides);
    let figures = found
        .map(|((found, column), sides)| {
            let ((bulk, z), sides) = (found?, sides?);
            let long = sides[1].sign;
            let tails = [0, 1].map(|side| {
                let own = varies(&bulk, column).then_some(&sides[side].counts);
                let lent = lend(own, &lent[side], noise);
                SHAPE
                    .fit(&sides[side], &lent, noise)
                    .for_few_members(bulk.members)
            });
            let wild = [0, 1].map(|side| match noise {
                Noise::Wild => Elsewhere::new(&all[side], &sides[side]),
                Noise::Averaged => None,
            });
            let chance = |z: &f64| {
                if z.is_nan() {
                    return f64::NAN;
                }
                // Most members are near; their exact chance, which is large, is not needed.
                if z.abs() < NEAR || (column.is_one_sided && *z < 0.0) {
                    return 1.0;
                }
                let side = usize::from(z * long > 0.0);
                let elsewhere = wild[side].as_ref().map_or(0.0, |wild| wild.beyond(z.abs()));
                let chance = tails[side].beyond(z.abs()).max(elsewhere);
                if column.is_one_sided {
                    chance
                } else {
                    (2.0 * chance).min(1.0)
                }
            };
            Some(JudgedFigure {
                bulk,
                freedom: tails[0].freedom.min(tails[1].freedom),
                p: z.iter().map(chance).collect(),
                z,
            })
        })
        .collect();
    Judgement { figures, is_loud }
}

/// Finds members whose distances are not mere noise: those apart, and those far away in several
/// figures.
fn find_loud(distances: &[Option<(Bulk, Vec<f64>)>], apart: &[bool]) -> Vec<bool> {
    let members = distances.iter().flatten().map(|(_, z)| z.len()).max();
    let mut far = vec![0usize; members.unwrap_or(0)];
    for (_, z) in distances.iter().flatten() {
        for (count, z) in far.iter_mut().zip(z) {
            *count += usize::from(z.abs() > FAR);
        }
    }
    let is_apart = |at: usize| apart.get(at).copied().unwrap_or(false);
    let all = far.iter().enumerate();
    all.map(|(at, count)| is_apart(at) || *count >= SEVERAL_FIGURES)
        .collect()
}

/// Finds the bulk of values, as the module describes. NaN is left out; `None` with fewer than
/// [`MIN_MEMBERS`] values.
#[must_use]
pub fn find_bulk(values: &[f64]) -> Option<Bulk> {
    let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if values.len() < MIN_MEMBERS {
        return None;
    }
    let mut centre = quantile(&values, 0.5);
    let mut scale = if values.len() <= MAX_FOR_QN {
        qn(&values)
    } else {
        super::describe::robust_sd(&values)
    };
    for _ in 0..20 {
        let kept = values.iter().filter(|v| (*v - centre).abs() <= CUT * scale);
        let (count, sum) = kept.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v));
        if count < 3.0 {
            break;
        }
        let mean = sum / count;
        let kept = values.iter().filter(|v| (*v - centre).abs() <= CUT * scale);
        let squares: f64 = kept.map(|v| (v - mean).powi(2)).sum();
        let next = (squares / (count - 1.0)).sqrt() / CUT_SD;
        let is_settled = (next - scale).abs() <= 1e-9 * scale;
        (centre, scale) = (mean, next);
        if is_settled {
            break;
        }
    }
    Some(Bulk {
        centre,
        scale,
        members: values.len(),
    })
}

/// `Qn`: the first quartile of the distances between all pairs, with the
/// corrections for few values of Croux and Rousseeuw (1992).
fn qn(values: &[f64]) -> f64 {
    let n = values.len();
    let mut apart = Vec::with_capacity(n * n / 2);
    for (at, a) in values.iter().enumerate() {
        apart.extend(values[at + 1..].iter().map(|b| (a - b).abs()));
    }
    let half = n / 2 + 1;
    let rank = half * (half - 1) / 2 - 1;
    let (_, quartile, _) = apart.select_nth_unstable_by(rank, f64::total_cmp);
    let correction = match n {
        6 => 0.611,
        7 => 0.857,
        8 => 0.669,
        9 => 0.872,
        n if n % 2 == 1 => n as f64 / (n as f64 + 1.4),
        n => n as f64 / (n as f64 + 3.8),
    };
    2.2191 * correction * *quartile
}

/// The bulk of a figure, and each member's distance from its centre, in scales.
fn measure_distances(column: &Column, apart: &[bool]) -> Option<(Bulk, Vec<f64>)> {
    let within: Vec<f64> = select_members(&column.values, apart).collect();
    let mut bulk = find_bulk(&within)?;
    bulk.scale = bulk.scale.max(column.least_scale);
    if bulk.scale <= 0.0 {
        return None;
    }
    // The scale already includes an error of the usual size.
    let usual = match column.errors.as_slice() {
        [] => 0.0,
        errors => {
            let known: Vec<f64> = select_members(errors, apart).filter(|e| *e > 0.0).collect();
            if known.is_empty() {
                0.0
            } else {
                quantile(&known, 0.5)
            }
        }
    };
    let z = column.values.iter().enumerate().map(|(at, value)| {
        let error = column.errors.get(at).copied().unwrap_or(0.0);
        let more = (error * error - usual * usual).max(0.0);
        (value - bulk.centre) / (bulk.scale * bulk.scale + more).sqrt()
    });
    Some((bulk, z.collect()))
}

/// Adds up the distances of all figures to one side, as evidence on the tails. Figures that hardly
/// vary, or only in steps, are left out.
fn pool_tails(
    columns: &[&Column],
    distances: &[Option<(Bulk, Vec<f64>)>],
    sides: &[Option<[Side; 2]>],
    side: usize,
) -> Counts {
    let mut all = [0.0; BINS];
    for ((column, found), sides) in columns.iter().zip(distances).zip(sides) {
        let (Some((bulk, _)), Some(sides)) = (found, sides) else {
            continue;
        };
        if varies(bulk, column) {
            let counts = &sides[side].counts;
            all.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
    }
    all
}

fn varies(bulk: &Bulk, column: &Column) -> bool {
    bulk.scale > column.least_scale
}

#[cfg(test)]
mod tests;
