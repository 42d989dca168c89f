//! The criteria by which a group's nodes are judged: their figures, and two kinds of derived
//! figures.
//!
//! *Together*: the mean distance of all figures of a step with the same unit. A fault that lowers
//! eight bandwidths by two scales each is not visible in any one of them, but clearly in their
//! mean. *Widths*: the widths of a step's intervals, in which a disturbed node shows first.

use crate::groups::Group;
use crate::nodes::{Figure, Nodes};
use pinwise_stats::describe::quantile;
use pinwise_stats::outliers::{Column, JudgedFigure, MIN_MEMBERS, Noise, find_bulk, judge};

/// Smaller relative differences are of no interest, however certain: pinwise's usual smallest
/// effect of interest.
const MIN_EFFECT: f64 = 0.01;
/// Minimum relative scale: a figure from a coarse clock may be the same on all nodes.
const MIN_SCALE: f64 = 0.002;
/// Widths that differ by less than a factor of 1.25 are of no interest: its logarithm.
const MIN_LOG_WIDENING: f64 = 0.223;
/// Distances are clipped to this in the mean of several figures, so that one wild figure does not
/// decide.
const MAX_DISTANCE: f64 = 5.0;
/// Half-width of a 95 % interval, in standard errors.
const NORMAL: f64 = 1.96;

/// A figure, or a derived figure, by which nodes are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Criterion {
    /// A figure, by its index in `Nodes::figures`.
    Figure(usize),
    /// A family of figures, by its index in `Population::families`.
    Together(usize),
    /// The widths of a step's intervals, by its index in `Population::steps`.
    Widths(usize),
}

/// Figures of one step and unit.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) step: String,
    pub(crate) unit: String,
    /// Indices into `Nodes::figures`.
    pub(crate) figures: Vec<usize>,
}

/// The values of a criterion on a group's nodes.
#[derive(Debug)]
pub(crate) struct Measure {
    pub(crate) criterion: Criterion,
    pub(crate) is_log: bool,
    pub(crate) column: Column,
}

/// All criteria of a group.
#[derive(Debug)]
pub(crate) struct Population {
    pub(crate) measures: Vec<Measure>,
    pub(crate) families: Vec<Family>,
    pub(crate) steps: Vec<String>,
}

impl Population {
    /// The figures of a group that enough of its nodes have.
    pub(crate) fn new(nodes: &Nodes, group: &Group) -> Self {
        let mut population = Self {
            measures: Vec::new(),
            families: Vec::new(),
            steps: Vec::new(),
        };
        for (place, figure) in nodes.figures.iter().enumerate() {
            if let Some(measure) = make_measure(figure, place, group) {
                population.measures.push(measure);
                population.join_family(figure, place);
            }
        }
        population
            .families
            .retain(|family| family.figures.len() > 1);
        population.add_widths(nodes, group);
        population
    }

    fn join_family(&mut self, figure: &Figure, place: usize) {
        let is_same = |f: &&mut Family| f.step == figure.step && f.unit == figure.unit;
        match self.families.iter_mut().find(is_same) {
            Some(family) => family.figures.push(place),
            None => self.families.push(Family {
                step: figure.step.clone(),
                unit: figure.unit.clone(),
                figures: vec![place],
            }),
        }
    }

    /// Adds the mean logarithm of each step's interval widths, relative to each figure's median.
    fn add_widths(&mut self, nodes: &Nodes, group: &Group) {
        for step in &nodes.steps_with_figures() {
            let step_figures = nodes.figures.iter().filter(|f| f.step == *step);
            let widths: Vec<Vec<f64>> = step_figures
                .map(|figure| list_log_widths(figure, &group.nodes))
                .filter(|widths| are_most_known(widths))
                .collect();
            if widths.is_empty() {
                continue;
            }
            let medians: Vec<f64> = widths.iter().map(|widths| median(widths)).collect();
            let typical = mean(medians.iter().copied());
            let values = (0..group.nodes.len()).map(|at| {
                let over = widths.iter().zip(&medians);
                typical
                    + mean(
                        over.map(|(w, median)| w[at] - median)
                            .filter(|w| w.is_finite()),
                    )
            });
            let column = Column {
                values: values.collect(),
                errors: Vec::new(),
                least_scale: 0.05,
                is_one_sided: true,
            };
            self.steps.push(step.clone());
            self.measures.push(Measure {
                criterion: Criterion::Widths(self.steps.len() - 1),
                is_log: true,
                column,
            });
        }
    }

    /// Judges all criteria. Others are not judged by the nodes marked `apart`, by position in the
    /// group. Differences too small to be of interest have a p-value of 1.
    pub(crate) fn judge(&self, apart: &[bool]) -> Vec<(Criterion, JudgedFigure)> {
        let is_width = |measure: &&Measure| matches!(measure.criterion, Criterion::Widths(_));
        let (widths, single): (Vec<&Measure>, Vec<&Measure>) =
            self.measures.iter().partition(is_width);
        let (mut found, is_loud) = judge_measures(&single, apart, Noise::Wild);
        // By means and widths, other nodes are not judged by a node that clearly deviates.
        let apart = if 2 * is_loud.iter().filter(|l| **l).count() < is_loud.len() {
            is_loud
        } else {
            apart.to_vec()
        };
        let together = self.average_families(&found);
        let columns: Vec<&Column> = together.iter().map(|(_, column)| column).collect();
        let criteria = together.iter().map(|(criterion, _)| *criterion);
        let means = judge(&columns, &apart, Noise::Averaged).figures;
        found.extend(
            criteria
                .zip(means)
                .filter_map(|(criterion, judged)| Some((criterion, judged?))),
        );
        found.extend(judge_measures(&widths, &apart, Noise::Averaged).0);
        found
    }

    fn average_families(&self, found: &[(Criterion, JudgedFigure)]) -> Vec<(Criterion, Column)> {
        let families = self.families.iter().enumerate();
        let columns = families.filter_map(|(at, family)| {
            let is_in_family = |criterion: &Criterion| matches!(criterion, Criterion::Figure(f) if family.figures.contains(f));
            let judged_figures: Vec<&JudgedFigure> = found.iter()
                .filter(|(criterion, _)| is_in_family(criterion))
                .map(|(_, judged)| judged)
                .collect();
            if judged_figures.len() < 2 {
                return None;
            }
            let nodes = judged_figures[0].z.len();
            let clipped = |z: f64| z.clamp(-MAX_DISTANCE, MAX_DISTANCE);
            // The mean is NaN for a node that lacks a figure: such a node is not judged.
            let values = (0..nodes).map(|node| mean(judged_figures.iter().map(|j| clipped(j.z[node]))));
            let column = Column {
                values: values.collect(),
                errors: Vec::new(),
                least_scale: 0.1,
                is_one_sided: false,
            };
            Some((Criterion::Together(at), column))
        });
        columns.collect()
    }

    /// The measure of a figure or of widths; families have none.
    pub(crate) fn find_measure(&self, criterion: Criterion) -> Option<&Measure> {
        self.measures
            .iter()
            .find(|measure| measure.criterion == criterion)
    }
}

/// The measures that can be judged, with their results, and which nodes clearly deviate.
fn judge_measures(
    measures: &[&Measure],
    apart: &[bool],
    noise: Noise,
) -> (Vec<(Criterion, JudgedFigure)>, Vec<bool>) {
    let columns: Vec<&Column> = measures.iter().map(|m| &m.column).collect();
    let judgement = judge(&columns, apart, noise);
    let mut found = Vec::new();
    for (measure, judged) in measures.iter().zip(judgement.figures) {
        if let Some(mut judged) = judged {
            measure.ignore_small(&mut judged);
            found.push((measure.criterion, judged));
        }
    }
    (found, judgement.is_loud)
}

impl Measure {
    /// Sets the p-value of differences too small to be of interest to 1.
    fn ignore_small(&self, judged: &mut JudgedFigure) {
        let least = match self.criterion {
            Criterion::Widths(_) => MIN_LOG_WIDENING,
            Criterion::Figure(_) | Criterion::Together(_) if self.is_log => MIN_EFFECT.ln_1p(),
            Criterion::Figure(_) | Criterion::Together(_) => MIN_EFFECT * judged.bulk.centre.abs(),
        };
        let values = self.column.values.iter();
        for (p, value) in judged.p.iter_mut().zip(values) {
            if (value - judged.bulk.centre).abs() < least {
                *p = 1.0;
            }
        }
    }

    /// Converts a value of the column to the figure's unit.
    pub(crate) fn to_unit(&self, value: f64) -> f64 {
        if self.is_log { value.exp() } else { value }
    }
}

fn make_measure(figure: &Figure, place: usize, group: &Group) -> Option<Measure> {
    let values: Vec<f64> = Nodes::select(&figure.values, &group.nodes).collect();
    let finite = values.iter().filter(|v| v.is_finite());
    if finite.clone().count() < MIN_MEMBERS {
        return None;
    }
    let is_log = finite.clone().all(|v| *v > 0.0);
    let lows = Nodes::select(&figure.lows, &group.nodes);
    let highs = Nodes::select(&figure.highs, &group.nodes);
    let to_column = |v: f64| if is_log { v.ln() } else { v };
    let errors = lows.zip(highs).map(|(low, high)| {
        let width = to_column(high) - to_column(low);
        let is_known = width.is_finite() && width > 0.0;
        if is_known {
            width / (2.0 * NORMAL)
        } else {
            0.0
        }
    });
    let typical = median(&values).abs();
    let column = Column {
        errors: errors.collect(),
        least_scale: MIN_SCALE * if is_log { 1.0 } else { typical },
        values: values.iter().map(|v| to_column(*v)).collect(),
        is_one_sided: false,
    };
    // A figure that is identical on most nodes, and almost identical on the others, shows nothing.
    find_bulk(&column.values)?;
    Some(Measure {
        criterion: Criterion::Figure(place),
        is_log,
        column,
    })
}

/// Logarithms of the relative widths of a figure's intervals; NaN without an interval.
fn list_log_widths(figure: &Figure, nodes: &[usize]) -> Vec<f64> {
    let lows = Nodes::select(&figure.lows, nodes);
    let highs = Nodes::select(&figure.highs, nodes);
    let log_width = |(low, high): (f64, f64)| {
        let width = (high / low).ln();
        if low > 0.0 && width > 0.0 && width.is_finite() {
            width.ln()
        } else {
            f64::NAN
        }
    };
    lows.zip(highs).map(log_width).collect()
}

fn are_most_known(widths: &[f64]) -> bool {
    let finite = widths.iter().filter(|w| w.is_finite()).count();
    finite >= MIN_MEMBERS && 10 * finite >= 9 * widths.len()
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    quantile(&finite, 0.5)
}

/// The mean; NaN of no values.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    sum / count
}
