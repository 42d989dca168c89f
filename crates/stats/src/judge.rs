//! The statistic of an arm's runs that is judged: the typical run, the mean, or a percentile.
//!
//! All three test the same hypothesis: the arm's cost is `e^θ` times the baseline's. Then, after
//! correcting for θ, exchanging the labels within blocks changes nothing but the signs of scores.
//! The scores differ:
//!
//! * *Typical*: [`Paired`] differences of logarithms.
//! * *Mean*: differences of the costs themselves, the arm's divided by `e^(θ/2)`, the baseline's
//!   multiplied by it (Fisher's randomisation test of 1935). From a few dozen blocks on it is also
//!   valid as a test of means for arms of unequal shape, as the paired t test is.
//! * *Percentile*: whether a cost is above the common percentile of both arms' costs at θ. A block
//!   counts if one run is above it and the other is not (`McNemar` 1947). This is valid for arms of
//!   unequal shape, but decides nothing before six such blocks are possible: 30 blocks for the 90th
//!   percentile, 300 for the 99th.

use std::fmt;
use std::str::FromStr;

use super::Responses;
use super::inversion::Family;
use super::paired::Paired;

/// The statistic of the runs that is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Judge {
    /// The typical run.
    #[default]
    Typical,
    /// The mean, and so the total over many runs.
    Mean,
    /// A percentile, 51 to 99.
    Percentile(u8),
}

impl fmt::Display for Judge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typical => out.write_str("typical"),
            Self::Mean => out.write_str("mean"),
            Self::Percentile(percentile) => write!(out, "p{percentile}"),
        }
    }
}

/// A word that names no judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is none of typical, mean and p51 to p99 (p90 and p99 are usual)")]
pub struct UnknownJudge(String);

impl FromStr for Judge {
    type Err = UnknownJudge;

    fn from_str(text: &str) -> Result<Self, UnknownJudge> {
        match text {
            "typical" => Ok(Self::Typical),
            "mean" => Ok(Self::Mean),
            _ => text
                .strip_prefix('p')
                .filter(|number| number.len() == 2)
                .and_then(|number| number.parse().ok())
                .filter(|percentile| (51..=99).contains(percentile))
                .map(Self::Percentile)
                .ok_or_else(|| UnknownJudge(text.to_owned())),
        }
    }
}

impl Judge {
    /// The words for it after a size, as in "5 % in the typical run".
    #[must_use]
    pub fn phrase(self) -> String {
        match self {
            Self::Typical => "in the typical run".to_owned(),
            Self::Mean => "on average".to_owned(),
            Self::Percentile(percentile) => format!("at the {percentile}th percentile"),
        }
    }

    /// The scores by which it compares two columns, with equal weights for all blocks.
    #[must_use]
    pub fn family(self, data: &Responses, arm: usize, baseline: usize) -> Box<dyn Family> {
        match self {
            Self::Typical => {
                Box::new(Paired::without_weights(data.differences(arm, baseline)).redescending())
            }
            Self::Mean => Box::new(Means::new(data, arm, baseline)),
            Self::Percentile(percentile) => {
                Box::new(Exceedances::new(data, arm, baseline, percentile))
            }
        }
    }
}

/// Costs of two arms whose means are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Means {
    /// Costs of arm and baseline in each block, relative to the largest cost of all.
    costs: Vec<(f64, f64)>,
}

impl Means {
    /// From two columns of `ln(cost)`.
    #[must_use]
    pub fn new(data: &Responses, arm: usize, baseline: usize) -> Self {
        let rows: Vec<&[f64]> = data.rows().collect();
        let largest = rows
            .iter()
            .map(|row| row[arm].max(row[baseline]))
            .fold(f64::NEG_INFINITY, f64::max);
        let cost = |response: f64| (response - largest).exp();
        Self {
            costs: rows
                .iter()
                .map(|row| (cost(row[arm]), cost(row[baseline])))
                .collect(),
        }
    }
}

impl Family for Means {
    fn blocks(&self) -> usize {
        self.costs.len()
    }

    fn scores(&self, theta: f64) -> Vec<f64> {
        let half = (0.5 * theta).exp();
        let score = |&(arm, baseline): &(f64, f64)| arm / half - baseline * half;
        self.costs.iter().map(score).collect()
    }

    fn range(&self) -> Option<(f64, f64)> {
        let differences = self.costs.iter().map(|(a, b)| a.ln() - b.ln());
        find_range(differences)
    }
}

/// Costs of two arms whose percentiles are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Exceedances {
    /// `ln(cost)` of arm and baseline in each block.
    responses: Vec<(f64, f64)>,
    /// Number of runs of both arms that lie above the common percentile.
    above: usize,
}

impl Exceedances {
    /// From two columns of `ln(cost)`.
    #[must_use]
    pub fn new(data: &Responses, arm: usize, baseline: usize, percentile: u8) -> Self {
        let responses: Vec<(f64, f64)> = data.rows().map(|r| (r[arm], r[baseline])).collect();
        let share = 100 - usize::from(percentile.min(99));
        Self {
            above: (2 * responses.len() * share).div_ceil(100),
            responses,
        }
    }
}

impl Family for Exceedances {
    fn blocks(&self) -> usize {
        self.responses.len()
    }

    fn scores(&self, theta: f64) -> Vec<f64> {
        let shifted = || {
            self.responses
                .iter()
                .map(|&(a, b)| (a - 0.5 * theta, b + 0.5 * theta))
        };
        let mut all: Vec<f64> = shifted().flat_map(|(a, b)| [a, b]).collect();
        all.sort_unstable_by(|a, b| b.total_cmp(a));
        let Some(&limit) = all.get(self.above) else {
            return vec![0.0; self.responses.len()];
        };
        let is_above = |response: f64| f64::from(u8::from(response > limit));
        shifted().map(|(a, b)| is_above(a) - is_above(b)).collect()
    }

    fn range(&self) -> Option<(f64, f64)> {
        let extremes = |pick: fn(&(f64, f64)) -> f64| find_range(self.responses.iter().map(pick));
        let (arm, baseline) = (extremes(|r| r.0)?, extremes(|r| r.1)?);
        Some((arm.0 - baseline.1, arm.1 - baseline.0))
    }
}

/// The smallest and the largest value.
fn find_range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

#[cfg(test)]
mod tests;
