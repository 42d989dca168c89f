//! The versioned schema of results: the only types that are written down.
//!
//! JSON in UTF-8, `snake_case`, units in the names. Fields may be added; the
//! meaning of existing ones does not change within a version. Every face reads
//! these types and nothing else, so that text, JSON, CSV and pages agree.
//! `docs/records.md` describes them field by field.

mod bench;
mod comparison;
mod diff;
mod finding;
mod kernel;
mod measured;
mod replay;
mod topology;

pub use bench::{
    BENCH_SCHEMA, Bench, BenchCell, BenchKernel, GroupScore, Question, SmtRecord, SmtState,
};
pub use comparison::{
    Arm, COMPARISON_SCHEMA, Comparison, ContrastRecord, Estimate, HostRecord, MetricReading,
    MetricRecord, Phase, PlacementRecord, PlanRecord, RunRecord, Spread, Stopped, TotalsRecord,
    VerdictKind, VerdictRecord, WorkloadRecord,
};
pub use diff::{Difference, TOPOLOGY_DIFF_SCHEMA, TopologyDiff};
pub use finding::{DOCTOR_SCHEMA, Doctor, Finding, Severity};
pub use kernel::{KERNEL_SCHEMA, KernelRecord};
pub use measured::{
    Agreement, BandwidthRecord, ClockRecord, Contradiction, DriftPair, DriftRecord, DriftState,
    EffortRecord, HomeLatency, LadderPoint, LadderRecord, LevelVerdict, LoadedLatencyRecord,
    Measured, MeasuredLevel, Median, Modes, PairRecord, PauseRecord, PlateauRecord,
    SchedulingRecord, SurveyRecord,
};
pub use replay::{REPLAY_SCHEMA, ReplayRecord};
pub use topology::{
    CacheRecord, CountsRecord, CpuRecord, KindRecord, MachineRecord, NodeRecord, QuotaRecord,
    RestrictionRecord, TOPOLOGY_SCHEMA, TopologyRecord,
};

/// What stands in the `schema` field of any record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName<'a> {
    /// `pinwise.comparison`
    pub name: &'a str,
    /// 1
    pub version: u32,
}

impl<'a> SchemaName<'a> {
    /// Splits `pinwise.comparison/1`; `None` where it is not of that form.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, version) = text.split_once('/')?;
        Some(Self {
            name,
            version: version.parse().ok()?,
        })
    }
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or fields missing or of the wrong type.
    #[error("the record is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// Another kind of record.
    #[error("the record is a '{found}', not a '{wanted}'")]
    OtherSchema {
        /// What it says it is.
        found: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// Written by a newer pinwise.
    #[error(
        "the record is of schema {found}, this pinwise knows {known}; a newer pinwise reads it"
    )]
    Newer {
        /// Its schema.
        found: String,
        /// The newest known.
        known: &'static str,
    },
}

/// Reads a record of a known schema.
///
/// # Errors
/// [`RecordError`] where it is damaged, another record, or newer.
pub fn read<T: serde::de::DeserializeOwned>(
    text: &str,
    schema: &'static str,
) -> Result<T, RecordError> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    let found = value
        .get("schema")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let known = SchemaName::parse(schema);
    let names_differ = SchemaName::parse(&found).map(|s| s.name) != known.as_ref().map(|s| s.name);
    if names_differ {
        return Err(RecordError::OtherSchema {
            found,
            wanted: schema,
        });
    }
    if SchemaName::parse(&found).map(|s| s.version) > known.map(|s| s.version) {
        return Err(RecordError::Newer {
            found,
            known: schema,
        });
    }
    Ok(serde_json::from_value(value)?)
}

#[cfg(test)]
pub(crate) mod tests;
