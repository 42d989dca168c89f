//! Findings: checked statements with evidence and advice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much a finding matters to what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// The result means more or less than it seems to.
    Warning,
    /// The result cannot be used as it is.
    Problem,
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

    /// With another weight, from 0 to 10.
    #[must_use]
    pub const fn with_weight(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }

    /// With one more figure.
    #[must_use]
    pub fn with_evidence(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.evidence.insert(key.to_owned(), value.into());
        self
    }
}

/// What would distort measurements on a machine, worst first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.doctor/1")]
pub struct Doctor {
    /// What was found.
    pub findings: Vec<Finding>,
    /// Names of checks that found nothing wrong.
    pub passed: Vec<String>,
    /// Checks that could not be made here, with the reason.
    pub unavailable: BTreeMap<String, String>,
}
