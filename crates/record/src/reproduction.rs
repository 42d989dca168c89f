//! Results of reproducing the claims of field reports, as a record.

use serde::{Deserialize, Serialize};

use crate::Header;

/// Experiments of field reports, run here or on simulated machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.reproduction/1")]
pub struct Reproduction {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the machine that ran it.
    pub host: String,
    /// Did it run on simulations of the reports' machines?
    pub simulated: bool,
    /// Seed of the order of runs and of the simulated machines.
    pub seed: u64,
    /// The reports.
    pub reports: Vec<ReportRecord>,
    /// Claims by verdict.
    pub counts: ClaimCounts,
    /// The conclusion, in a sentence.
    pub sentence: String,
    /// What to do next.
    #[serde(default)]
    pub advice: String,
    /// Was it stopped before its end?
    pub interrupted: bool,
    /// Time from start to end, seconds.
    pub elapsed_s: f64,
}

/// Claims by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClaimCounts {
    /// Reproduced as reported.
    pub reproduced: usize,
    /// As reported, where the report gives no exact figure.
    #[serde(default)]
    pub consistent: usize,
    /// A different result.
    pub contradicted: usize,
    /// Used to set a parameter, or not predicted by any mechanism: neither reproduced nor
    /// contradicted.
    pub given: usize,
    /// Not testable on that machine.
    pub not_here: usize,
}

/// One report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportRecord {
    /// Its name, as `hyperthread-fill`.
    pub name: String,
    /// What it reports: the end of "the report that".
    #[serde(default)]
    pub topic: String,
    /// When and on which machine it was made.
    pub machine: String,
    /// Assumed parameters, which no figure of the report gives, as "key: why".
    pub assumed: Vec<String>,
    /// Its experiments.
    pub experiments: Vec<ExperimentRecord>,
}

/// One experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExperimentRecord {
    /// Its name, as `whetstone-placement`.
    pub name: String,
    /// Its question.
    pub question: String,
    /// The claims with their results.
    pub claims: Vec<ClaimRecord>,
}

/// The result of testing a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Reproduced.
    Reproduced,
    /// The result agrees with a report that gives no exact figure.
    Consistent,
    /// The figure was used to set a parameter, or nothing predicts it.
    Given,
    /// It cannot be tested here, or the result is undecided.
    NotHere,
    /// A different result.
    Contradicted,
}

/// A claim of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClaimRecord {
    /// What is claimed.
    pub claim: String,
    /// The claim in the report's figures.
    pub reported: String,
    /// The result; `null` if nothing was tested.
    pub measured: Option<String>,
    /// The reported figure in `unit`, if it is one.
    pub reported_value: Option<f64>,
    /// The measured figure.
    pub measured_value: Option<f64>,
    /// Lower end of its 95 % interval.
    pub measured_low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub measured_high: Option<f64>,
    /// Unit of the figures: `%` of change, `s`, `ms`, `ns`.
    pub unit: String,
    /// How far off the result may be, such as `0.5 ms`, or `direction` if only that counts; `null`
    /// if a condition was tested, which `why` names, and if nothing was.
    #[serde(default)]
    pub tolerance: Option<String>,
    /// The result of testing it.
    pub verdict: ClaimVerdict,
    /// The reason for the verdict.
    pub why: String,
}

impl Reproduction {
    /// A short title.
    #[must_use]
    pub fn title(&self) -> String {
        let names: Vec<&str> = self.reports.iter().map(|r| r.name.as_str()).collect();
        let place = if self.simulated { ", simulated" } else { "" };
        format!("reproduce {}{place}", names.join(" "))
    }

    /// The conclusion, in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let counts = &self.counts;
        let tried = counts.reproduced + counts.consistent + counts.contradicted;
        let how = if self.simulated { " in simulation" } else { "" };
        let experiments = self.reports.iter().flat_map(|report| &report.experiments);
        let mut claims = experiments.flat_map(|experiment| &experiment.claims);
        let first = claims.find(|claim| claim.verdict == ClaimVerdict::Contradicted);
        let agreeing = match counts.consistent {
            0 => format!("{} reproduced", counts.reproduced),
            some => format!("{} reproduced, {some} consistent", counts.reproduced),
        };
        let mut sentence = match first {
            Some(first) => format!(
                "{} of {tried} testable claims contradicted{how} ({}); {agreeing}",
                counts.contradicted, first.claim
            ),
            None if counts.reproduced == tried => {
                format!("All of {tried} testable claims reproduced{how}")
            }
            None => format!("None of {tried} testable claims is contradicted{how}: {agreeing}"),
        };
        if counts.not_here > 0 {
            sentence += &format!("; {} cannot be tested here", counts.not_here);
        }
        sentence + "."
    }

    /// Reproducing the same reports on this machine or simulated: whichever this was not.
    #[must_use]
    pub fn next_step(&self) -> String {
        let name = match self.reports.as_slice() {
            [only] => only.name.as_str(),
            _ => "--all",
        };
        match self.simulated {
            true => format!("Test them on this machine: pinwise reproduce {name}"),
            false => {
                format!("Simulate the reports' machines: pinwise reproduce {name} --simulated")
            }
        }
    }
}
