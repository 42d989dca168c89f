//! One group of machines against another.
//!
//! Per figure, the logarithms of the two groups' nodes are compared by the t
//! interval of Mickey and Brown (1966), Welch's with the degrees of freedom of
//! the smaller group: groups of unlike size and spread are the rule between
//! generations, and Welch's own (1947) claim too much of groups of two or three.
//! Nodes further than five robust scales from their own group's
//! centre do not carry it. Figures are many: those reported to differ are selected
//! as in a report over one fleet, by Benjamini and Hochberg (1995), so that of
//! two fleets that are alike one in twenty is said to differ in anything.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::attribution::attributions;
use super::nodes::{Figure, Nodes};
use super::population::median;
use super::side::{Side, figures, near, pairs};
use super::words::{describe_change, names};
use pinwise_record::{FleetDiff, FleetFigureChange, FleetSettingChange, FleetSide};
use pinwise_stats::describe::{mean, sd};
use pinwise_stats::discovery::adjust_p_values;
use pinwise_stats::separate::ln_choose;

/// Confidence of intervals, one side.
const QUANTILE: f64 = 0.975;
/// Rate of false discoveries among the figures reported to differ.
const RATE: f64 = 0.05;
/// Smaller differences are not mentioned in the sentence.
const MIN_EFFECT: f64 = 0.01;
/// Figures named in the sentence.
const MAX_NAMED: usize = 3;
/// Names listed in an error.
const MAX_NAMES: usize = 5;

/// Why two groups cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// No figure is in both.
    #[error("no figure is in both: A has {a}; B has {b} (let both run the same study)")]
    NothingCommon {
        /// Figures of A.
        a: String,
        /// Figures of B.
        b: String,
    },
}

/// Compares two groups: B over A.
///
/// # Errors
/// [`DiffError`].
pub fn diff(a: Side<'_>, b: Side<'_>) -> Result<FleetDiff, DiffError> {
    let (of_a, of_b) = (figures(a), figures(b));
    let pairs = pairs(&of_a, &of_b);
    let mut changes: Vec<FleetFigureChange> = { pairs.iter() }
        .filter_map(|(in_a, in_b)| change(a, b, in_a, in_b))
        .collect();
    if changes.is_empty() {
        let labels = |figures: &[&Figure]| {
            let labels: Vec<String> = figures.iter().map(|figure| figure.label()).collect();
            match labels.as_slice() {
                [] => "none".to_owned(),
                some => names(some, MAX_NAMES),
            }
        };
        return Err(DiffError::NothingCommon {
            a: labels(&of_a),
            b: labels(&of_b),
        });
    }
    select(&mut changes);
    let size = |change: &FleetFigureChange| change.ratio.ln().abs();
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let is_paired = |figure: &&&Figure| {
        let mut all = pairs.iter();
        all.any(|(a, b)| std::ptr::eq(*a, **figure) || std::ptr::eq(*b, **figure))
    };
    let only_one = { of_a.iter().chain(&of_b) }
        .filter(|figure| !is_paired(figure))
        .map(|figure| figure.label());
    Ok(FleetDiff {
        a: side(a),
        b: side(b),
        settings: settings(a, b),
        attributions: attributions(a, b),
        only_one: only_one.collect(),
        sentence: sentence(&changes),
        figures: changes,
    })
}

fn side(side: Side<'_>) -> FleetSide {
    FleetSide {
        fleet: side.fleet.to_owned(),
        group: side.group.name.clone(),
        nodes: side.group.nodes.len(),
    }
}

/// A figure of both; `None` if it has no ratio.
fn change(a: Side<'_>, b: Side<'_>, in_a: &Figure, in_b: &Figure) -> Option<FleetFigureChange> {
    let values = |side: Side<'_>, figure: &Figure| -> Vec<f64> {
        let all = Nodes::select(&figure.values, &side.group.nodes);
        all.filter(|value| value.is_finite()).collect()
    };
    let (of_a, of_b) = (values(a, in_a), values(b, in_b));
    let (typical_a, typical_b) = (median(&of_a), median(&of_b));
    let compared = compare_samples(&of_a, &of_b);
    let (ratio, sure) = match compared {
        Some((estimate, sure)) => (estimate.exp(), sure),
        None => (typical_b / typical_a, None),
    };
    let end = |sign: f64| sure.map(|Sure { half, .. }| ratio * (sign * half).exp());
    if !(ratio.is_finite() && ratio > 0.0) {
        return None;
    }
    Some(FleetFigureChange {
        step: in_a.step.clone(),
        name: in_a.name.clone(),
        unit: in_a.unit.clone(),
        a: typical_a,
        b: typical_b,
        ratio,
        low: end(-1.0),
        high: end(1.0),
        p_adjusted: sure.map(|sure| sure.p),
        differs: false,
    })
}

/// Adjusts p-values for the number of figures, and marks which differ.
fn select(changes: &mut [FleetFigureChange]) {
    let p: Vec<f64> = changes
        .iter()
        .map(|change| change.p_adjusted.unwrap_or(f64::NAN))
        .collect();
    for (change, p) in changes.iter_mut().zip(adjust_p_values(&p)) {
        change.p_adjusted = p.is_finite().then_some(p);
        change.differs = p <= RATE && (change.ratio - 1.0).abs() >= MIN_EFFECT;
    }
}

/// What is sure of a ratio.
#[derive(Debug, Clone, Copy)]
struct Sure {
    /// Half-width of the 95 % interval, `ln(ratio)`.
    half: f64,
    /// Two-sided p-value of "the ratio is 1".
    p: f64,
}

/// `ln(B / A)` of positive figures, with its interval if both sides have two nodes or more.
fn compare_samples(a: &[f64], b: &[f64]) -> Option<(f64, Option<Sure>)> {
    if a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let (a, b) = (take_logarithms(a), take_logarithms(b));
    let estimate = mean(&b) - mean(&a);
    if a.len() < 2 || b.len() < 2 {
        return Some((estimate, None));
    }
    let of_mean = |logs: &[f64]| sd(logs).powi(2) / logs.len() as f64;
    let (va, vb) = (of_mean(&a), of_mean(&b));
    let total = va + vb;
    if total <= 0.0 {
        // No node varies, but the labels could have fallen otherwise.
        let p = if estimate == 0.0 {
            1.0
        } else {
            2.0 * (-ln_choose(a.len() + b.len(), a.len())).exp()
        };
        return Some((estimate, Some(Sure { half: 0.0, p })));
    }
    let freedom = a.len().min(b.len()) as f64 - 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let half = student.inverse_cdf(QUANTILE) * total.sqrt();
    let p = 2.0 * student.sf(estimate.abs() / total.sqrt());
    Some((estimate, Some(Sure { half, p })))
}

/// Logarithms of the values that carry a comparison.
fn take_logarithms(values: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let is_near = near(&logs);
    logs.into_iter().filter(|log| is_near(*log)).collect()
}

fn settings(a: Side<'_>, b: Side<'_>) -> Vec<FleetSettingChange> {
    let (usual_a, usual_b) = (usual(a), usual(b));
    let mut names: Vec<&str> = usual_a.keys().chain(usual_b.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let changes = names.into_iter().map(|name| FleetSettingChange {
        name: name.to_owned(),
        a: usual_a.get(name).map(|value| (*value).to_owned()),
        b: usual_b.get(name).map(|value| (*value).to_owned()),
    });
    changes.filter(|change| change.a != change.b).collect()
}

fn usual<'a>(side: Side<'a>) -> BTreeMap<&'a str, &'a str> {
    let columns = side.nodes.attributes.columns.iter();
    let listed = columns
        .zip(&side.group.usual)
        .filter_map(|(column, usual)| {
            let value = column.text((*usual)?)?;
            Some((column.name.as_str(), value))
        });
    listed.collect()
}

/// The answer, the largest change first.
fn sentence(changes: &[FleetFigureChange]) -> String {
    let all = changes.len();
    let listed = |change: &FleetFigureChange| {
        let (more, less) = direction(&change.unit);
        let by = describe_change(change.ratio, more, less);
        format!("{} · {} is {by}", change.step, change.name)
    };
    if changes.iter().all(|change| change.p_adjusted.is_none()) {
        let largest = changes.first().map(listed).unwrap_or_default();
        return format!(
            "One node per side gives no interval: whether the two differ is unknown. Of {all} figures, the largest ratio: in B {largest}."
        );
    }
    let sure: Vec<&FleetFigureChange> = changes.iter().filter(|c| c.differs).collect();
    if sure.is_empty() {
        return format!("B differs from A by 1 % or more with certainty in none of {all} figures.");
    }
    let largest: Vec<String> = sure
        .iter()
        .take(MAX_NAMED)
        .map(|change| listed(change))
        .collect();
    format!(
        "In B {}. {} of {all} figures differ by 1 % or more.",
        largest.join("; "),
        sure.len()
    )
}

/// Words for more and less of a unit.
fn direction(unit: &str) -> (&'static str, &'static str) {
    let is_time = matches!(unit, "s" | "ms" | "µs" | "us" | "ns" | "ps" | "cycles");
    if is_time {
        ("longer", "shorter")
    } else if unit.ends_with("/s") || unit.ends_with("Hz") {
        ("faster", "slower")
    } else {
        ("greater", "smaller")
    }
}
