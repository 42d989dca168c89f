//! One group of machines against another.
//!
//! Per figure, the logarithms of the two groups' nodes are compared by the t
//! interval of Mickey and Brown (1966), which is Welch's with the degrees of
//! freedom of the smaller group: hardware generations differ in size and spread,
//! and Welch's own (1947) claims too much for groups of two or three.
//! Nodes further than five robust scales from their group's centre are left out.
//! Because there are many figures, those reported to differ are selected by
//! Benjamini and Hochberg (1995), as in a report of one fleet: equal fleets are
//! then reported to differ in one of twenty comparisons.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::attribution::attribute_differences;
use crate::nodes::{Figure, Nodes};
use crate::population::median;
use crate::side::{Side, is_near_centre, list_figures, match_figures};
use crate::words::{describe_change, join_names};
use pinwise_format::{count, count_of, percent};
use pinwise_record::{Direction, FleetDiff, FleetFigureChange, FleetSettingChange, FleetSide};
use pinwise_stats::describe::{mean, sd};
use pinwise_stats::discovery::adjust_p_values;
use pinwise_stats::separate::ln_choose;

/// Upper end of a 95 % interval, as a quantile.
const QUANTILE: f64 = 0.975;
/// Rate of false discoveries among the figures reported to differ.
const FALSE_DISCOVERY_RATE: f64 = 0.05;
/// Smaller differences are not mentioned in the sentence.
const MIN_EFFECT: f64 = 0.01;
/// Figures named in the sentence.
const MAX_NAMED_FIGURES: usize = 3;
/// Figures listed in an error.
const MAX_LISTED_LABELS: usize = 5;

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

/// Compares two groups of nodes. Ratios are B over A.
///
/// # Errors
/// [`DiffError::NothingCommon`] if the groups share no figure.
pub fn compare_groups(a: Side<'_>, b: Side<'_>) -> Result<FleetDiff, DiffError> {
    let (figures_a, figures_b) = (list_figures(a), list_figures(b));
    let pairs = match_figures(&figures_a, &figures_b);
    let (mut changes, p_values): (Vec<FleetFigureChange>, Vec<f64>) = pairs
        .iter()
        .filter_map(|(in_a, in_b)| compare_figure(a, b, in_a, in_b))
        .unzip();
    if changes.is_empty() {
        let list_labels = |figures: &[&Figure]| {
            let labels: Vec<String> = figures.iter().map(|figure| figure.label()).collect();
            match labels.as_slice() {
                [] => "none".to_owned(),
                labels => join_names(labels, MAX_LISTED_LABELS),
            }
        };
        return Err(DiffError::NothingCommon {
            a: list_labels(&figures_a),
            b: list_labels(&figures_b),
        });
    }
    adjust_and_mark(&mut changes, &p_values);
    let size = |change: &FleetFigureChange| change.ratio.ln().abs();
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let is_paired = |figure: &&&Figure| {
        let mut all = pairs.iter();
        all.any(|(a, b)| std::ptr::eq(*a, **figure) || std::ptr::eq(*b, **figure))
    };
    let only_one = figures_a
        .iter()
        .chain(&figures_b)
        .filter(|figure| !is_paired(figure))
        .map(|figure| figure.label());
    Ok(FleetDiff {
        a: describe_side(a),
        b: describe_side(b),
        settings: compare_settings(a, b),
        attributions: attribute_differences(a, b),
        only_one: only_one.collect(),
        sentence: summarize(&changes),
        figures: changes,
    })
}

fn describe_side(side: Side<'_>) -> FleetSide {
    FleetSide {
        fleet: side.fleet.to_owned(),
        group: side.group.name.clone(),
        nodes: side.group.nodes.len(),
    }
}

/// Compares a figure that both have. Returns the change with its unadjusted p-value (NaN without an
/// interval), or `None` if there is no ratio.
fn compare_figure(
    a: Side<'_>,
    b: Side<'_>,
    in_a: &Figure,
    in_b: &Figure,
) -> Option<(FleetFigureChange, f64)> {
    let list_values = |side: Side<'_>, figure: &Figure| -> Vec<f64> {
        let values = Nodes::select(&figure.values, &side.group.nodes);
        values.filter(|value| value.is_finite()).collect()
    };
    let (values_a, values_b) = (list_values(a, in_a), list_values(b, in_b));
    let (typical_a, typical_b) = (median(&values_a), median(&values_b));
    let compared = compare_samples(&values_a, &values_b);
    let (ratio, certainty) = match compared {
        Some((estimate, certainty)) => (estimate.exp(), certainty),
        None => (typical_b / typical_a, None),
    };
    let bound = |sign: f64| certainty.map(|known| ratio * (sign * known.half_width).exp());
    if !(ratio.is_finite() && ratio > 0.0) {
        return None;
    }
    let change = FleetFigureChange {
        step: in_a.step.clone(),
        name: in_a.name.clone(),
        unit: in_a.unit.clone(),
        better: find_better(&in_a.unit),
        a: typical_a,
        b: typical_b,
        ratio,
        low: bound(-1.0),
        high: bound(1.0),
        p_adjusted: None,
        differs: false,
    };
    Some((change, certainty.map_or(f64::NAN, |known| known.p)))
}

/// Adjusts p-values for the number of figures, and marks which differ.
fn adjust_and_mark(changes: &mut [FleetFigureChange], p_values: &[f64]) {
    for (change, p) in changes.iter_mut().zip(adjust_p_values(p_values)) {
        change.p_adjusted = p.is_finite().then_some(p);
        change.differs = p <= FALSE_DISCOVERY_RATE && (change.ratio - 1.0).abs() >= MIN_EFFECT;
    }
}

/// How certain a ratio is.
#[derive(Debug, Clone, Copy)]
struct Certainty {
    /// Half-width of the 95 % interval, `ln(ratio)`.
    half_width: f64,
    /// Two-sided p-value of "the ratio is 1".
    p: f64,
}

/// `ln(B / A)` of positive figures, with its interval if both sides have two nodes or more.
fn compare_samples(a: &[f64], b: &[f64]) -> Option<(f64, Option<Certainty>)> {
    if a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let (a, b) = (take_logarithms(a), take_logarithms(b));
    let estimate = mean(&b) - mean(&a);
    if a.len() < 2 || b.len() < 2 {
        return Some((estimate, None));
    }
    let squared_error = |logs: &[f64]| sd(logs).powi(2) / logs.len() as f64;
    let error = (squared_error(&a) + squared_error(&b)).sqrt();
    if error <= 0.0 {
        // No spread: the exact p-value of a permutation test.
        let p = if estimate == 0.0 {
            1.0
        } else {
            2.0 * (-ln_choose(a.len() + b.len(), a.len())).exp()
        };
        let half_width = 0.0;
        return Some((estimate, Some(Certainty { half_width, p })));
    }
    let freedom = a.len().min(b.len()) as f64 - 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let half_width = student.inverse_cdf(QUANTILE) * error;
    let p = 2.0 * student.sf(estimate.abs() / error);
    Some((estimate, Some(Certainty { half_width, p })))
}

/// Logarithms of the values near their group's centre.
fn take_logarithms(values: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let is_near = is_near_centre(&logs);
    logs.into_iter().filter(|log| is_near(*log)).collect()
}

fn compare_settings(a: Side<'_>, b: Side<'_>) -> Vec<FleetSettingChange> {
    let (usual_a, usual_b) = (list_usual_settings(a), list_usual_settings(b));
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

fn list_usual_settings<'a>(side: Side<'a>) -> BTreeMap<&'a str, &'a str> {
    let columns = side.nodes.attributes.columns.iter();
    columns
        .zip(&side.group.usual)
        .filter_map(|(column, usual)| {
            let value = column.text((*usual)?)?;
            Some((column.name.as_str(), value))
        })
        .collect()
}

/// What remains possible of changes none of which is confirmed: those that differ taken alone, beside
/// what chance gives, or else the largest that an interval allows.
fn describe_unconfirmed(changes: &[FleetFigureChange]) -> String {
    let figures = changes.len();
    let confirmed = format!(
        "No change of 1 % or more is confirmed in {}",
        count(figures, "figure")
    );
    let misses_one = |change: &&FleetFigureChange| {
        change.low.is_some_and(|low| low > 1.0) || change.high.is_some_and(|high| high < 1.0)
    };
    let alone = changes.iter().filter(misses_one).count();
    if alone > 0 {
        let by_chance = (2.0 * (1.0 - QUANTILE) * figures as f64).round().max(1.0);
        let differ = count_of(alone as u64, "differs", "differ");
        return format!(
            "{confirmed}; {differ} taken alone, and chance alone gives about {by_chance}."
        );
    }
    let possible = changes
        .iter()
        .flat_map(|change| [(change, change.low), (change, change.high)])
        .filter_map(|(change, ratio)| Some((change, ratio?.max(1.0 / ratio?) - 1.0)));
    let largest = possible.max_by(|a, b| a.1.total_cmp(&b.1));
    largest.map_or_else(
        || format!("{confirmed}."),
        |(FleetFigureChange { step, name, .. }, by)| {
            let by = percent(by);
            format!("{confirmed}; {step} · {name} may have changed by up to {by}.")
        },
    )
}

/// The conclusion in words, the largest change first.
fn summarize(changes: &[FleetFigureChange]) -> String {
    let figures = changes.len();
    let describe = |change: &FleetFigureChange| {
        let (more, less) = name_direction(&change.unit);
        let by = describe_change(change.ratio, more, less);
        format!("{} · {} is {by}", change.step, change.name)
    };
    if changes.iter().all(|change| change.p_adjusted.is_none()) {
        let largest = changes.first().map(describe).unwrap_or_default();
        return format!(
            "One node per side gives no interval: whether the two differ is unknown. Of {figures} figures, the largest ratio: in B {largest}."
        );
    }
    let differing: Vec<&FleetFigureChange> = changes.iter().filter(|c| c.differs).collect();
    if differing.is_empty() {
        return describe_unconfirmed(changes);
    }
    let largest: Vec<String> = differing
        .iter()
        .take(MAX_NAMED_FIGURES)
        .map(|change| describe(change))
        .collect();
    format!(
        "In B {}. {} of {figures} figures differ by 1 % or more.",
        largest.join("; "),
        differing.len()
    )
}

/// Words for more and less of a unit.
fn name_direction(unit: &str) -> (&'static str, &'static str) {
    match find_better(unit) {
        Some(Direction::Lower) => ("longer", "shorter"),
        Some(_) => ("faster", "slower"),
        None => ("greater", "smaller"),
    }
}

/// Which direction of a figure is better: less of a time, more of a rate.
fn find_better(unit: &str) -> Option<Direction> {
    let is_time = matches!(unit, "s" | "ms" | "µs" | "us" | "ns" | "ps" | "cycles");
    let is_rate = unit.ends_with("/s") || unit.ends_with("Hz");
    match is_time {
        true => Some(Direction::Lower),
        false => is_rate.then_some(Direction::Higher),
    }
}
