//! One node of a fleet: its steps and its figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Answer, AnyRecord, Entry, Header, HostRecord, StoredRecord, Summary};

/// A difference between a node's clock and the submitter's is reported from this size on, seconds.
pub const CLOCK_TOLERANCE_S: f64 = 2.0;

/// A node of a fleet. There is one record per node and fleet, whatever the number of attempts. Its
/// id is `FLEET.NODE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.fleet-node/1")]
pub struct FleetNode {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The fleet's id.
    pub fleet: String,
    /// The node, as the scheduler calls it.
    pub node: String,
    /// When the last step ended; `null` if steps are missing.
    pub ended: Option<String>,
    /// Number of starts: 1, and 1 for each requeue and resumption.
    pub attempts: u32,
    /// The machine; `null` if unknown.
    pub host: Option<HostRecord>,
    /// The node's settings, by name: `bios`, `memory`, `smt`, `numa-nodes-per-package`, `governor`,
    /// `boost`, `transparent-hugepages`, `kernel-command-line` … Names and microcode, kernel and
    /// hypervisor are also in `host`.
    pub settings: BTreeMap<String, String>,
    /// The steps that it ran.
    pub steps: Vec<NodeStep>,
    /// Headline figures of all records of the node.
    pub figures: Vec<NodeFigure>,
    /// How far the node's clock was ahead of the submitter's or the shared folder's, seconds;
    /// `null` if it is unknown.
    pub clock_ahead_s: Option<f64>,
    /// What its steps found, and what to do next; empty in records of earlier versions.
    #[serde(default)]
    pub answer: Answer,
}

/// A step on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeStep {
    /// The fleet's name for it.
    pub name: String,
    /// How it ended.
    pub state: StepState,
    /// Id of its record; `null` if there is none.
    pub record: Option<String>,
    /// The verdict of its record, as the history lists it; `null` if it has none.
    #[serde(default)]
    pub verdict: Option<String>,
    /// What it compared, if its record is a comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<StepChange>,
    /// Number of the attempt that ran it, from 1.
    pub attempt: u32,
    /// Why it failed; `null` if it did not.
    pub why: Option<String>,
    /// How long it took, seconds.
    pub elapsed_s: Option<f64>,
}

/// A change that a step measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepChange {
    /// What is compared with what: `one-core against os-default`.
    pub of: String,
    /// The change of the metric: `+0.3 %`.
    pub change: String,
    /// Its interval; empty with too few runs.
    pub interval: String,
    /// Its verdict, in a word of the metric: `undecided`.
    pub standing: String,
}

impl StepChange {
    fn list(record: &AnyRecord) -> Vec<Self> {
        let AnyRecord::Comparison(comparison) = record else {
            return Vec::new();
        };
        let changes = comparison.contrasts.iter().map(|contrast| {
            let mut arms = comparison.arms.iter();
            let arm = arms.find(|arm| arm.name == contrast.arm);
            Self {
                of: format!("{} against {}", contrast.arm, contrast.baseline),
                change: contrast.effect.text.clone(),
                interval: contrast.effect.interval.clone(),
                standing: arm.map_or_else(String::new, |arm| arm.standing.clone()),
            }
        });
        changes.collect()
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// It has a record.
    Done,
    /// It ended without a record that counts.
    Failed,
    /// It was not run, or the node was lost while it ran.
    Missing,
}

/// A figure of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeFigure {
    /// The step it comes from.
    pub step: String,
    /// The subject of the figure.
    pub name: String,
    /// Unit; `""` for a number without one.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

/// What the record of a step says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepResult {
    /// Its headline figures.
    pub figures: Vec<NodeFigure>,
    /// Its verdict; `None` if it has none.
    pub verdict: Option<String>,
    /// What it compared.
    pub changes: Vec<StepChange>,
}

impl StepResult {
    /// Reads the JSON of a step's record.
    #[must_use]
    pub fn from_json(step: &str, body: &str) -> Self {
        let figures = Summary::from_json(body).figures.into_iter();
        let figures = figures.map(|figure| NodeFigure {
            step: step.to_owned(),
            name: figure.name,
            unit: figure.unit,
            value: figure.value,
            low: figure.low,
            high: figure.high,
        });
        let record = AnyRecord::read(body).ok();
        let entry = record.as_ref().and_then(AnyRecord::entry);
        let verdict = entry.map(|entry| entry.verdict);
        Self {
            figures: figures.collect(),
            verdict: verdict.filter(|verdict| !verdict.is_empty()),
            changes: record.as_ref().map_or_else(Vec::new, StepChange::list),
        }
    }
}

impl FleetNode {
    /// The id of a node's record.
    #[must_use]
    pub fn join_id(fleet: &str, node: &str) -> String {
        format!("{fleet}.{node}")
    }

    /// Draws the answer from the steps: what is missing, or the verdict of a single step.
    pub fn conclude(&mut self) {
        let names = |state| {
            let steps = self.steps.iter().filter(|step| step.state == state);
            let names: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
            names
        };
        let done = names(StepState::Done).len();
        let lost: Vec<String> = [
            ("failed", StepState::Failed),
            ("missing", StepState::Missing),
        ]
        .into_iter()
        .map(|(word, state)| (word, names(state)))
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("; {word}: {}", names.join(", ")))
        .collect();
        let fleet = pinwise_format::shell::word(&self.fleet);
        let counted = format!(
            "{done} of {} steps done{}.",
            self.steps.len(),
            lost.concat()
        );
        self.answer = match self.steps.as_slice() {
            _ if !lost.is_empty() => Answer {
                sentence: counted,
                advice: format!("Submit what is missing: pinwise fleet resume {fleet}"),
            },
            steps => Answer {
                sentence: match steps {
                    [step] => step.verdict.clone().unwrap_or(counted),
                    _ => counted,
                },
                advice: format!("Compare it with its peers: pinwise fleet report {fleet}"),
            },
        };
    }
}

impl StoredRecord for FleetNode {
    fn entry(&self) -> Entry {
        self.header.to_entry::<Self>(
            self.node.clone(),
            format!("node {} of fleet {}", self.node, self.fleet),
            self.answer.sentence.clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a node whose steps ended so, each with a verdict.
    fn conclude(states: &[StepState]) -> Answer {
        let steps = states.iter().zip(["wiring", "kernels"]);
        let steps = steps.map(|(&state, name)| NodeStep {
            name: name.to_owned(),
            state,
            record: None,
            verdict: Some(format!("The {name} are right.")),
            changes: Vec::new(),
            attempt: 1,
            why: None,
            elapsed_s: None,
        });
        let mut node = FleetNode {
            header: Header::default(),
            fleet: "f".to_owned(),
            node: "n1".to_owned(),
            ended: None,
            attempts: 1,
            host: None,
            settings: BTreeMap::new(),
            steps: steps.collect(),
            figures: Vec::new(),
            clock_ahead_s: None,
            answer: Answer::default(),
        };
        node.conclude();
        node.answer
    }

    #[test]
    fn a_comparison_has_the_changes_of_its_arms() {
        let body = include_str!("../../../../tests/data/records/comparison-undecided.json");
        let found = StepResult::from_json("gzip", body).changes;
        let comparison: crate::Comparison = serde_json::from_str(body).unwrap();
        let contrast = &comparison.contrasts[0];
        assert_eq!(found.len(), comparison.contrasts.len());
        assert_eq!(
            found[0],
            StepChange {
                of: format!("{} against {}", contrast.arm, contrast.baseline),
                change: contrast.effect.text.clone(),
                interval: contrast.effect.interval.clone(),
                standing: "undecided".to_owned(),
            }
        );
    }

    #[test]
    fn a_single_step_answers_for_its_node() {
        let answer = conclude(&[StepState::Done]);
        assert_eq!(answer.sentence, "The wiring are right.");
        assert_eq!(
            answer.advice,
            "Compare it with its peers: pinwise fleet report f"
        );
        let both = conclude(&[StepState::Done; 2]);
        assert_eq!(both.sentence, "2 of 2 steps done.");
    }

    #[test]
    fn what_is_missing_is_submitted_first() {
        let answer = conclude(&[StepState::Done, StepState::Missing]);
        assert_eq!(answer.sentence, "1 of 2 steps done; missing: kernels.");
        assert_eq!(
            answer.advice,
            "Submit what is missing: pinwise fleet resume f"
        );
        let failed = conclude(&[StepState::Failed]);
        assert_eq!(failed.sentence, "0 of 1 steps done; failed: wiring.");
    }

    #[test]
    fn the_verdict_of_a_step_is_that_of_its_record() {
        let body = r#"{"schema":"pinwise.fleet-status/1"}"#;
        assert_eq!(StepResult::from_json("a", body).verdict, None);
    }
}
