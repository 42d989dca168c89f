//! Findings: checked statements with evidence and advice.

use std::collections::BTreeMap;

use pinwise_format::join_words_up_to;
use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Note,
    /// The result must be interpreted with care.
    Warning,
    /// The result cannot be used.
    Problem,
}

/// The result of a study in a sentence, and what to do next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// The result: of a trace, the largest cause and the shares of the threads' time.
    pub sentence: String,
    /// What to do next; empty if nothing is known to help.
    pub advice: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable name of the check, such as `drift`.
    pub check: String,
    /// How much it matters.
    pub severity: Severity,
    /// The severity on a finer scale, from 0 to 10; findings are sorted by it.
    pub weight: u8,
    /// What was found, as a full sentence.
    pub sentence: String,
    /// What to do about it; empty if there is nothing to do.
    pub advice: String,
    /// The figures behind it, units in the names.
    pub evidence: BTreeMap<String, serde_json::Value>,
}

impl Finding {
    /// A finding without evidence yet.
    #[must_use]
    pub fn new(
        check: &str,
        severity: Severity,
        sentence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            check: check.to_owned(),
            severity,
            weight: match severity {
                Severity::Note => 2,
                Severity::Warning => 5,
                Severity::Problem => 9,
            },
            sentence: sentence.into(),
            advice: advice.into(),
            evidence: BTreeMap::new(),
        }
    }

    /// Sets the weight, from 0 to 10.
    #[must_use]
    pub const fn with_weight(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }

    /// Adds a figure to the evidence.
    #[must_use]
    pub fn with_evidence(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.evidence.insert(key.to_owned(), value.into());
        self
    }
}

/// Things that distort measurements on a machine, worst first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.doctor/1")]
pub struct Doctor {
    /// Its hostname; empty if unknown.
    #[serde(default)]
    pub host: String,
    /// When it was examined, RFC 3339 in UTC.
    #[serde(default)]
    pub started: String,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Names of checks that found nothing wrong.
    pub passed: Vec<String>,
    /// Checks that could not be made here, each with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// Is the machine fit for benchmarks, and if it is not, how to compare programs all the same?
    #[serde(default)]
    pub answer: Answer,
}

/// Checks that the answer names; of more it gives the number.
const MAX_NAMED: usize = 3;

/// "CPU pressure", of `cpu_pressure`.
fn name_check(check: &str) -> String {
    let words = check.replace('_', " ");
    match words.strip_prefix("cpu ") {
        Some(rest) => format!("CPU {rest}"),
        None => words,
    }
}

impl Doctor {
    /// Fills in the answer from the findings.
    pub fn conclude(&mut self) {
        let grave = self
            .findings
            .iter()
            .filter(|found| found.severity > Severity::Note);
        let names: Vec<String> = grave.map(|found| name_check(&found.check)).collect();
        let (sentence, advice) = match names.len() {
            0 if self.findings.is_empty() => (
                "Found nothing that distorts measurements here.".to_owned(),
                "",
            ),
            0 => (
                "Fit for benchmarks: there are notes, but nothing distorts them.".to_owned(),
                "",
            ),
            many => {
                let speaks = if many == 1 { "speaks" } else { "speak" };
                let named = join_words_up_to(&names, MAX_NAMED);
                (
                    format!(
                        "Not fit for timing one program after the other: {named} {speaks} against it."
                    ),
                    "Run both in turns, which copes with load: pinwise compare 'COMMAND' 'OTHER'",
                )
            }
        };
        let advice = advice.to_owned();
        self.answer = Answer { sentence, advice };
    }
}
