//! Which members of a population of similar machines are outliers, figure by figure.
//!
//! Centre and scale are those of the bulk: from the median and the median
//! distance (of few members Rousseeuw and Croux's `Qn`, 1993), values within
//! three scales are kept, their mean and standard deviation, corrected for the
//! cut, are the next centre and scale, until nothing changes. Up to a third of
//! the members may be anywhere without being able to hide.
//!
//! The tails are the population's own, on either side: Student's t with the degrees of freedom that
//! fit best, by truncated likelihood, a figure's values within four scales and those of the other
//! figures within eight. Members far away in several figures do not take part: noise is wild here
//! and there, a fault in one place. So a few wild values are not outliers, while outliers do not
//! make the tails heavy. The uncertainty of the scale counts as heavier tails as well.

use super::describe::quantile;
pub use super::tails::Noise;
use super::tails::{BINS, Counts, Elsewhere, SHAPE, Side, lent_to, members, sides};

/// Fewest members of a population that is judged: with fewer, even a value twenty scales away could
/// not be distinguished from chance.
pub const MIN_MEMBERS: usize = 6;

/// Values within this many scales are the bulk.
const CUT: f64 = 3.0;
/// Standard deviation of a standard normal cut there, of `1 − 2cφ(c)/(2Φ(c) − 1)`.
const CUT_SD: f64 = 0.986_578;
/// More members than this have no `Qn`, whose cost is quadratic here.
const MAX_FOR_QN: usize = 64;
/// A figure's values within this many scales are evidence of its tails.
const FAR: f64 = 4.0;
/// A member that is far away in this many figures is not explained by tails.
const SEVERAL: usize = 3;
/// Values nearer than this get a probability of 1.
const NEAR: f64 = 1.0;

/// A figure of all members.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Values, best in logarithms; NaN if a member has none.
    pub values: Vec<f64>,
    /// Standard error of each value; 0 if unknown. May be empty.
    pub errors: Vec<f64>,
    /// Scale below which differences are of no interest.
    pub least_scale: f64,
    /// Do only values above the others count?
    pub is_one_sided: bool,
}

/// Position and width of the bulk of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bulk {
    /// Its centre.
    pub centre: f64,
    /// Its robust standard deviation.
    pub scale: f64,
    /// Members it was found from.
    pub members: usize,
}

/// A figure judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedFigure {
    /// Position and width of its bulk.
    pub bulk: Bulk,
    /// Degrees of freedom of its tails, by which it was judged.
    pub freedom: f64,
    /// Distance of each member in scales; NaN if it has no value.
    pub z: Vec<f64>,
    /// Chance of such a distance; NaN if it has no value.
    pub p: Vec<f64>,
}

/// A population judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Every figure; `None` for those that fewer than [`MIN_MEMBERS`] members have, or that do not
    /// vary at all.
    pub figures: Vec<Option<JudgedFigure>>,
    /// Members that are apart, or far away in several figures.
    pub is_loud: Vec<bool>,
}

/// Judges every figure of a population. Members `apart` do not count as part of
/// the bulk, and are judged against it like all others.
#[must_use]
pub fn judge(columns: &[&Column], apart: &[bool], noise: Noise) -> Judgement {
    let distances: Vec<Option<(Bulk, Vec<f64>)>> = columns
        .iter()
        .map(|column| distances(column, apart))
        .collect();
    let is_loud = loud(&distances, apart);
    let sides: Vec<Option<[Side; 2]>> = distances
        .iter()
        .map(|found| Some(sides(&found.as_ref()?.1, &is_loud)))
        .collect();
    let lent = [0, 1].map(|side| pool_tails(columns, &distances, &sides, side));
    let all = [Side::all(&sides, 0), Side::all(&sides, 1)];
    let found = distances.into_iter().zip(columns).zip(sides);
    let figures = found
        .map(|((found, column), sides)| {
            let ((bulk, z), sides) = (found?, sides?);
            let long = sides[1].sign;
            let tails = [0, 1].map(|side| {
                let own = varies(&bulk, column).then_some(&sides[side].counts);
                let lent = lent_to(own, &lent[side], noise);
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
                // Most are near: their chance is large, and need not be known.
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

/// Members whose distances are no evidence of the tails of noise: those apart, and
/// those far away in several figures, which noise is not.
fn loud(distances: &[Option<(Bulk, Vec<f64>)>], apart: &[bool]) -> Vec<bool> {
    let members = distances.iter().flatten().map(|(_, z)| z.len()).max();
    let mut far = vec![0usize; members.unwrap_or(0)];
    for (_, z) in distances.iter().flatten() {
        for (count, z) in far.iter_mut().zip(z) {
            *count += usize::from(z.abs() > FAR);
        }
    }
    let is_apart = |at: usize| apart.get(at).copied().unwrap_or(false);
    let all = far.iter().enumerate();
    all.map(|(at, count)| is_apart(at) || *count >= SEVERAL)
        .collect()
}

/// The bulk of values by the rule above; `None` with fewer than [`MIN_MEMBERS`]. NaN is left out.
#[must_use]
pub fn bulk(values: &[f64]) -> Option<Bulk> {
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

fn distances(column: &Column, apart: &[bool]) -> Option<(Bulk, Vec<f64>)> {
    let within: Vec<f64> = members(&column.values, apart).collect();
    let mut bulk = bulk(&within)?;
    bulk.scale = bulk.scale.max(column.least_scale);
    if bulk.scale <= 0.0 {
        return None;
    }
    // A usual error is part of the scale already.
    let usual = match column.errors.as_slice() {
        [] => 0.0,
        errors => {
            let known: Vec<f64> = members(errors, apart).filter(|e| *e > 0.0).collect();
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

/// The evidence of all figures on the tails of one side. Figures that hardly vary, or only in
/// steps, give none.
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
