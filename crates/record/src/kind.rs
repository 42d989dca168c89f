//! The list of all kinds of record, with their schemas, how they are parsed, and their lines of the
//! history. All output matches on [`AnyRecord`], so a kind that is forgotten somewhere does not
//! compile.

use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    Applied, Bench, Comparison, DiffRecord, Doctor, Entry, FleetDiff, FleetNode, FleetRecord,
    FleetReport, FleetStatus, GateRecord, Header, JitterRecord, KernelRecord, PlacementPrediction,
    PlacementsRecord, ProfileDiff, ProfileRecord, RecordError, ReplayRecord, Reproduction,
    RuleChange, RulesRecord, SchemaName, SearchRecord, SpinAdviceRecord, SpinAttachRecord,
    SpinPauseRecord, SpinPredictRecord, SpinReplayRecord, SpinScan, TopRecord, TopologyDiff,
    TopologyRecord, TraceRecord,
};

/// A type that is a whole record.
pub trait Record: Serialize + DeserializeOwned {
    /// Which kind it is.
    const KIND: Kind;
}

/// A record that is kept in a store.
pub trait StoredRecord: Record {
    /// Its line of the history.
    fn entry(&self) -> Entry;
}

/// The line of the history of a stored record; `None` for one that is only printed.
macro_rules! entry {
    (stored, $record:ident) => {
        Some(StoredRecord::entry(&**$record))
    };
    (printed, $record:ident) => {{
        let _ = $record;
        None
    }};
}

/// Lets the fields of a stored record's header be read as the record's own.
macro_rules! header {
    (stored, $record:ty) => {
        impl Deref for $record {
            type Target = Header;

            fn deref(&self) -> &Header {
                &self.header
            }
        }

        impl DerefMut for $record {
            fn deref_mut(&mut self) -> &mut Header {
                &mut self.header
            }
        }
    };
    (printed, $record:ty) => {};
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident($record:ty) = $schema:expr, $keeping:ident;)+) => {
        /// A kind of record.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Self; [$($schema),+].len()] = [$(Self::$kind),+];

            /// The schema that this version writes, such as `pinwise.trace/1`.
            #[must_use]
            pub const fn schema(self) -> &'static str {
                match self {
                    $(Self::$kind => $schema,)+
                }
            }

            /// The name of the record's type, and its schema.
            #[cfg(test)]
            pub(super) fn json_schema(
                self,
                generator: &mut schemars::SchemaGenerator,
            ) -> (&'static str, schemars::Schema) {
                match self {
                    $(Self::$kind => (stringify!($record), generator.subschema_for::<$record>()),)+
                }
            }

            /// Parses a record of this kind.
            fn parse(self, text: &str) -> serde_json::Result<AnyRecord> {
                Ok(match self {
                    $(Self::$kind => AnyRecord::$kind(serde_json::from_str(text)?),)+
                })
            }
        }

        /// A record of any kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyRecord {
            $($(#[doc = $doc])+ $kind(Box<$record>),)+
        }

        impl AnyRecord {
            /// Which kind it is.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind,)+
                }
            }

            /// As JSON, the way it is stored.
            ///
            /// # Errors
            /// Errors of the serialiser; none are expected.
            pub fn to_json(&self) -> serde_json::Result<Box<RawValue>> {
                match self {
                    $(Self::$kind(record) => to_raw_value(record),)+
                }
            }

            /// Its line of the history; `None` for a kind that is only printed.
            #[must_use]
            pub fn entry(&self) -> Option<Entry> {
                match self {
                    $(Self::$kind(record) => entry!($keeping, record),)+
                }
            }
        }

        $(
            impl Record for $record {
                const KIND: Kind = Kind::$kind;
            }

            impl From<$record> for AnyRecord {
                fn from(record: $record) -> Self {
                    Self::$kind(Box::new(record))
                }
            }

            header!($keeping, $record);
        )+
    };
}

kinds! {
    /// Arms measured side by side.
    Comparison(Comparison) = "pinwise.comparison/1", stored;
    /// Two builds over a suite of benchmarks.
    Gate(GateRecord) = "pinwise.gate/1", stored;
    /// Built-in workloads over threads and placements.
    Bench(Bench) = "pinwise.bench/1", stored;
    /// What interrupts a thread on its CPU.
    Jitter(JitterRecord) = "pinwise.jitter/1", stored;
    /// A machine.
    Topology(TopologyRecord) = "pinwise.topology/1", stored;
    /// Differences between two machines.
    TopologyDiff(TopologyDiff) = "pinwise.topology-diff/1", printed;
    /// Differences between two records.
    Diff(DiffRecord) = "pinwise.diff/1", printed;
    /// What the scheduler did.
    Trace(TraceRecord) = "pinwise.trace/1", stored;
    /// A search among many placements.
    Search(SearchRecord) = "pinwise.search/1", stored;
    /// A search's predictions for placements that it did not run.
    Prediction(PlacementPrediction) = "pinwise.prediction/1", printed;
    /// CPU time by function.
    Profile(ProfileRecord) = "pinwise.profile/1", stored;
    /// Differences between two profiles.
    ProfileDiff(ProfileDiff) = "pinwise.profile-diff/1", stored;
    /// Latency of spin-wait hints.
    SpinPause(SpinPauseRecord) = "pinwise.spin-pause/1", stored;
    /// How long known algorithms spin.
    SpinPredict(SpinPredictRecord) = "pinwise.spin-predict/1", stored;
    /// An algorithm run and compared with its prediction.
    SpinReplay(SpinReplayRecord) = "pinwise.spin-replay/1", stored;
    /// How much of a program's time is spinning.
    SpinAttach(SpinAttachRecord) = "pinwise.spin-attach/1", stored;
    /// Spin settings of runtimes.
    SpinAdvice(SpinAdviceRecord) = "pinwise.spin-advice/1", stored;
    /// Spin loops in binaries.
    SpinScan(SpinScan) = "pinwise.spin-scan/1", stored;
    /// Claims of the field reports.
    Reproduction(Reproduction) = "pinwise.reproduction/1", stored;
    /// Wiring inferred from a recorded matrix.
    Replay(ReplayRecord) = "pinwise.replay/1", printed;
    /// How many placements a machine has.
    Placements(PlacementsRecord) = "pinwise.placements/1", printed;
    /// What distorts measurements on a machine.
    Doctor(Doctor) = "pinwise.doctor/1", printed;
    /// One run of a built-in workload.
    Kernel(KernelRecord) = "pinwise.kernel/1", printed;
    /// Threads on CPUs at a moment.
    Top(TopRecord) = "pinwise.top/1", printed;
    /// The plan of a fleet.
    Fleet(FleetRecord) = "pinwise.fleet/1", stored;
    /// What a node of a fleet did.
    FleetNode(FleetNode) = "pinwise.fleet-node/1", stored;
    /// The progress of a fleet.
    FleetStatus(FleetStatus) = "pinwise.fleet-status/1", printed;
    /// Which nodes differ from their peers.
    FleetReport(FleetReport) = "pinwise.fleet-report/1", stored;
    /// Differences between two fleets.
    FleetDiff(FleetDiff) = "pinwise.fleet-diff/1", printed;
    /// A service that was placed.
    Applied(Applied) = "pinwise.applied/1", printed;
    /// A file of rules and the processes that it concerns.
    Rules(RulesRecord) = "pinwise.rules/1", printed;
    /// What a rule did to a process.
    RuleChange(RuleChange) = "pinwise.rule-change/1", printed;
}

impl Kind {
    /// Its short name, such as `trace`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let schema = self.schema();
        let short = schema.strip_prefix("pinwise.").unwrap_or(schema);
        short.split_once('/').map_or(short, |(name, _)| name)
    }

    /// The kind that a `schema` field names, whatever its version.
    pub(super) fn from_any_version(found: &str) -> Option<Self> {
        let found = SchemaName::parse(found)?;
        Self::ALL.into_iter().find(|kind| {
            SchemaName::parse(kind.schema()).is_some_and(|known| known.name == found.name)
        })
    }

    /// The kind that a `schema` field names.
    ///
    /// # Errors
    /// [`RecordError`] if the kind is unknown, or newer.
    pub fn from_schema(found: &str) -> Result<Self, RecordError> {
        let unknown = || RecordError::Unknown {
            found: found.to_owned(),
        };
        let kind = Self::from_any_version(found).ok_or_else(unknown)?;
        let version = |text| SchemaName::parse(text).map_or(0, |schema| schema.version);
        if version(found) > version(kind.schema()) {
            return Err(RecordError::Newer {
                found: found.to_owned(),
                known: kind.schema(),
            });
        }
        Ok(kind)
    }

    /// The kind of the record in a text, without parsing the rest: a trace has millions of values.
    ///
    /// # Errors
    /// As [`Kind::from_schema`], and if the text is not a JSON object.
    pub fn from_record_text(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Tagged {
            #[serde(default)]
            schema: Value,
        }
        let record: Tagged = serde_json::from_str(text)?;
        Self::from_schema(record.schema.as_str().unwrap_or_default())
    }
}

impl AnyRecord {
    /// Parses a record of any kind.
    ///
    /// # Errors
    /// [`RecordError`] if it is damaged, of unknown kind, or newer.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        Ok(Kind::from_record_text(text)?.parse(text)?)
    }
}

/// Parses a record of one kind.
///
/// # Errors
/// [`RecordError`] if it is damaged, of another kind, or newer.
pub fn read<R: Record>(text: &str) -> Result<R, RecordError> {
    let found = Kind::from_record_text(text)?;
    if found != R::KIND {
        return Err(RecordError::OtherKind {
            found: found.name(),
            wanted: R::KIND.name(),
        });
    }
    Ok(serde_json::from_str(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_newer_and_damaged_records_are_refused() {
        let good = "{\"schema\":\"pinwise.trace/1\",\"slices\":[[1,2]]}";
        assert_eq!(Kind::from_record_text(good).unwrap(), Kind::Trace);
        let check = |text: &str, words: &str| {
            for error in [
                Kind::from_record_text(text).unwrap_err(),
                AnyRecord::read(text).unwrap_err(),
                read::<Comparison>(text).unwrap_err(),
            ] {
                assert!(error.to_string().contains(words), "{error}");
            }
        };
        check("{\"schema\":\"pinwise.trace/2\"}", "newer");
        check("{\"schema\":\"pinwise.tree/1\"}", "unknown schema");
        check("{\"schema\":3}", "unknown schema");
        check("{}", "unknown schema");
        check("[]", "unknown schema");
        check("{\"schema\":\"pinwise.tra", "damaged");
        let other = read::<Comparison>(good).unwrap_err().to_string();
        assert_eq!(other, "the record is a trace, not a comparison");
    }

    #[test]
    fn kinds_have_unique_names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_schema(kind.schema()).unwrap(), kind);
            let named = Kind::ALL.into_iter().filter(|k| k.name() == kind.name());
            assert_eq!(named.count(), 1, "{kind:?}");
        }
    }

    #[test]
    fn topologies_are_listed_with_their_host() {
        let topology = pinwise_topology::Topology::from_synthetic("core:2 pu:2").unwrap();
        let mut record = TopologyRecord::new(&topology, &[]);
        record.machine.hostname = Some("node7".to_owned());
        let text = serde_json::to_string(&record).unwrap();
        let entry = AnyRecord::read(&text).unwrap().entry().unwrap();
        assert_eq!(entry.host, "node7");
        assert_eq!(entry.schema, Kind::Topology.schema());
    }
}
