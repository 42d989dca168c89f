//! The differences between two records, figure by figure.

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use super::{CommandRecord, ContrastVerdict, EffectRecord, Estimate, MetricRecord};

/// Two records of the same kind, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.diff/1")]
pub struct DiffRecord {
    /// The first side.
    pub a: ComparedRecord,
    /// The second side.
    pub b: ComparedRecord,
    /// What two comparisons measured; `null` of other records.
    #[serde(default)]
    pub metric: Option<MetricRecord>,
    /// Differences of machine, system and pinwise.
    pub machine_changes: Vec<MachineChange>,
    /// Figures that both records have, in the order of A.
    pub figures: Vec<FigureChange>,
    /// The result.
    pub sentence: String,
    /// What to do next.
    #[serde(default)]
    pub advice: String,
    /// The command for it; empty if there is none.
    #[serde(default)]
    pub commands: Vec<CommandRecord>,
    /// Notes needed to interpret the result, as full sentences.
    pub caveats: Vec<String>,
}

/// One of the two records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedRecord {
    /// Its id.
    pub id: String,
    /// Its schema.
    pub schema: String,
    /// When it was made, RFC 3339.
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
        /// The host name.
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
    /// What differs.
    pub what: MachineFact,
    /// Its value in A; `null` if A does not say.
    pub a: Option<String>,
    /// Its value in B; `null` if B does not say.
    pub b: Option<String>,
}

/// A figure in both records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureChange {
    /// The subject of the figure, such as an arm's name.
    pub name: String,
    /// The baseline, if `a` and `b` are ratios to it.
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
    /// B divided by A.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval; `null` if there is none.
    pub low: Option<f64>,
    /// Upper end of the ratio's interval.
    pub high: Option<f64>,
    /// The verdict on the difference.
    pub verdict: ChangeVerdict,
    /// What the difference does to an arm's place beside the baseline; `null` if none is shown, and
    /// of other figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<ArmShift>,
    /// The arm in A; `null` if A does not have it, and of other figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm_a: Option<ComparedArm>,
    /// The arm in B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm_b: Option<ComparedArm>,
    /// The difference as a sentence.
    pub sentence: String,
}

/// An arm as its own record judges it, by all blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedArm {
    /// Its figure, in the unit of the metric; `null` if it has none.
    pub estimate: Option<Estimate>,
    /// Its change against the baseline; `null` of the baseline, and without a result.
    pub effect: Option<EffectRecord>,
    /// The verdict on that change; `null` without one.
    pub verdict: Option<ContrastVerdict>,
}

open_enum! {
    /// What a change of an arm's ratio to the baseline means for the arm.
    ArmShift {
        /// B confirms it to be better than the baseline, A did not.
        AdvantageGained = "advantage_gained",
        /// A confirmed it to be better than the baseline, B does not.
        AdvantageLost = "advantage_lost",
        /// B confirms it to be worse than the baseline, A did not.
        FellBehind = "fell_behind",
        /// A confirmed it to be worse than the baseline, B does not.
        CaughtUp = "caught_up",
        /// It is better than the baseline by more.
        FurtherAhead = "further_ahead",
        /// It is better than the baseline by less.
        LessAhead = "less_far_ahead",
        /// It is worse than the baseline by more.
        FurtherBehind = "further_behind",
        /// It is worse than the baseline by less.
        LessBehind = "less_far_behind",
        /// It is further from or closer to the baseline, but did not change itself: the baseline
        /// moved.
        BaselineMoved = "baseline_moved",
    }
}

/// How a figure of B compares with that of A.
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
    /// The intervals allow no verdict.
    CannotTell,
}
