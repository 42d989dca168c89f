//! The records of a fleet's nodes, stored as columns: a name or a setting that
//! ten thousand nodes share is stored once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::attributes::{Attributes, list_attributes};
use pinwise_record::{FleetNode, StepState};

/// A record that could not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The record's id, or its file.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// The nodes of a fleet.
#[derive(Debug, Default)]
pub struct Nodes {
    pub(crate) names: Vec<String>,
    pub(crate) records: Vec<String>,
    pub(crate) attributes: Attributes,
    pub(crate) figures: Vec<Figure>,
    pub(crate) simulated: usize,
    pub(crate) complete: usize,
    /// Seconds by which each node's clock was ahead; NaN if unknown.
    pub(crate) clocks: Vec<f64>,
    /// Nodes without a record of a step, by step and reason.
    pub(crate) lacking: BTreeMap<(String, String), Vec<usize>>,
    /// Nodes that were started more than once.
    pub(crate) restarted: Vec<usize>,
    /// Number of figures that are not finite and were left out.
    pub(crate) not_numbers: usize,
    pub(crate) skipped: Vec<Skipped>,
    /// Steps of all nodes, in the order in which they were found.
    pub(crate) steps: Vec<String>,
    known: BTreeSet<String>,
    /// Index of each figure, by its step, name and unit.
    figure_places: HashMap<String, usize>,
}

/// A figure of all nodes.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) step: String,
    pub(crate) name: String,
    pub(crate) unit: String,
    /// NaN if a node has none.
    pub(crate) values: Vec<f64>,
    /// Ends of the intervals; NaN if a node has none.
    pub(crate) lows: Vec<f64>,
    pub(crate) highs: Vec<f64>,
}

impl Figure {
    /// Its name in reports.
    pub(crate) fn label(&self) -> String {
        format!("{} · {}", self.step, self.name)
    }
}

impl Nodes {
    /// No nodes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of nodes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Are there no nodes?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Records that a record could not be used.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push(Skipped {
            what: what.into(),
            why: why.into(),
        });
    }

    /// Adds a node. A second record of the same node is skipped.
    pub fn add(&mut self, node: FleetNode) {
        if !self.known.insert(node.node.clone()) {
            let why = format!("a second record of node {}", node.node);
            self.skip(node.header.id, why);
            return;
        }
        let at = self.names.len();
        self.attributes.add(list_attributes(&node));
        self.note_steps(at, &node);
        let is_simulated = node.host.as_ref().is_some_and(|host| host.simulated);
        self.simulated += usize::from(is_simulated);
        self.clocks.push(node.clock_ahead_s.unwrap_or(f64::NAN));
        if node.attempts > 1 {
            self.restarted.push(at);
        }
        let mut key = String::new();
        for figure in &node.figures {
            if !figure.value.is_finite() {
                self.not_numbers += 1;
                continue;
            }
            key.clear();
            for part in [&figure.step, &figure.name, &figure.unit] {
                key.push_str(part);
                key.push('\0');
            }
            let place = match self.figure_places.get(key.as_str()) {
                Some(place) => *place,
                None => self.add_figure(&key, figure),
            };
            self.figures[place].set(at, figure);
        }
        self.names.push(node.node);
        self.records.push(node.header.id);
    }

    fn add_figure(&mut self, key: &str, figure: &pinwise_record::NodeFigure) -> usize {
        self.figure_places
            .insert(key.to_owned(), self.figures.len());
        self.figures.push(Figure {
            step: figure.step.clone(),
            name: figure.name.clone(),
            unit: figure.unit.clone(),
            values: Vec::new(),
            lows: Vec::new(),
            highs: Vec::new(),
        });
        self.figures.len() - 1
    }

    fn note_steps(&mut self, at: usize, node: &FleetNode) {
        let mut is_complete = true;
        for step in &node.steps {
            if !self.steps.contains(&step.name) {
                self.steps.push(step.name.clone());
            }
            if step.state == StepState::Done {
                continue;
            }
            is_complete = false;
            let why = step.why.clone().unwrap_or_else(|| match step.state {
                StepState::Missing => "it was not run, or its node was lost".to_owned(),
                StepState::Done | StepState::Failed => "no reason is given".to_owned(),
            });
            let key = (step.name.clone(), why);
            self.lacking.entry(key).or_default().push(at);
        }
        self.complete += usize::from(is_complete);
    }

    /// Steps with figures, each once.
    pub(crate) fn steps_with_figures(&self) -> Vec<String> {
        let mut steps: Vec<String> = Vec::new();
        for figure in &self.figures {
            if !steps.contains(&figure.step) {
                steps.push(figure.step.clone());
            }
        }
        steps
    }

    /// The values of some nodes, in their order.
    pub(crate) fn select<'a>(
        column: &'a [f64],
        nodes: &'a [usize],
    ) -> impl Iterator<Item = f64> + 'a {
        let value = |at: &usize| column.get(*at).copied().unwrap_or(f64::NAN);
        nodes.iter().map(value)
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.known.contains(node)
    }
}

impl Figure {
    fn set(&mut self, at: usize, figure: &pinwise_record::NodeFigure) {
        for column in [&mut self.values, &mut self.lows, &mut self.highs] {
            column.resize(column.len().max(at + 1), f64::NAN);
        }
        self.values[at] = figure.value;
        self.lows[at] = figure.low.unwrap_or(f64::NAN);
        self.highs[at] = figure.high.unwrap_or(f64::NAN);
    }
}
