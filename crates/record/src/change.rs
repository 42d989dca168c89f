//! What changed from one record to another, figure by figure.

use serde::{Deserialize, Serialize};

use super::named::open_enum;

/// Two records of the same kind, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.diff/1")]
pub struct DiffRecord {
    /// The first side.
    pub a: ComparedRecord,
    /// The second side.
    pub b: ComparedRecord,
    /// What is another machine, system or pinwise.
    pub machine_changes: Vec<MachineChange>,
    /// Figures of both, in the order of A.
    pub figures: Vec<FigureChange>,
    /// The result.
    pub sentence: String,
    /// Notes that are needed to read it, as full sentences.
    pub caveats: Vec<String>,
}

/// One of both records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedRecord {
    /// Its id.
    pub id: String,
    /// Its schema.
    pub schema: String,
    /// When, RFC 3339.
    pub time: String,
    /// The machine it was made on.
    pub host: String,
    /// Its title: what was measured.
    pub title: String,
    /// The machine, in one line; `null` if unknown.
    pub machine: Option<String>,
}

open_enum! {
    /// What may differ between machines.
    MachineFact {
        /// Which machine it is.
        Host = "host",
        /// Its processor.
        CpuModel = "CPU model",
        /// The layout of its CPUs.
        Shape = "shape",
        /// The kernel's release.
        Kernel = "kernel",
        /// The microcode's revision.
        Microcode = "microcode",
        /// The hypervisor.
        Hypervisor = "hypervisor",
        /// The version of pinwise.
        Pinwise = "pinwise",
    }
}

/// Something that differs between the machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineChange {
    /// The kind of step.
    pub what: MachineFact,
    /// Its value in A; `null` if A does not say.
    pub a: Option<String>,
    /// How it is in B.
    pub b: Option<String>,
}

/// A figure in both records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureChange {
    /// What it is of, such as an arm's name.
    pub name: String,
    /// The baseline that `a` and `b` are ratios to; absent of a figure by
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Unit of the figures.
    pub unit: String,
    /// The figure in A; `null` if A has none.
    pub a: Option<f64>,
    /// Lower end of its interval.
    pub a_low: Option<f64>,
    /// Upper end of its interval.
    pub a_high: Option<f64>,
    /// The figure in B.
    pub b: Option<f64>,
    /// Lower end of its interval.
    pub b_low: Option<f64>,
    /// Upper end of its interval.
    pub b_high: Option<f64>,
    /// B over A.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval; `null` if there is none.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// What that means.
    pub verdict: ChangeVerdict,
    /// As a sentence.
    pub sentence: String,
}

/// How a figure of B is against that of A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// Lower in B.
    Lower,
    /// Higher in B.
    Higher,
    /// Within the smallest effect of interest.
    Same,
    /// None of these is known.
    CannotTell,
}
