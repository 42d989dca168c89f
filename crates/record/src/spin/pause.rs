//! The cost of PAUSE and similar hints on each CPU.

use serde::{Deserialize, Serialize};

use crate::named::open_enum;
use crate::{Entry, Header, HostRecord, StoredRecord};

/// The cost of PAUSE on a machine's CPUs, compared with other processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.spin-pause/1")]
pub struct SpinPauseRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// The instruction: `PAUSE`, on arm64 `ISB`.
    pub instruction: String,
    /// Every CPU that was measured.
    pub cpus: Vec<CpuPauseRecord>,
    /// The machine's chips in the table of known ones, or why it has none.
    pub chips: Vec<ChipRecord>,
    /// Whether known algorithms would wait too long; `null` unless requested.
    pub check: Option<PauseCheckRecord>,
    /// Why the CPU's own counter gave no count of cycles; `null` if it did.
    pub counter_unavailable: Option<String>,
    /// How long it took, s.
    pub spent_s: f64,
}

open_enum! {
    /// How cycles were measured.
    CycleMethod {
        /// By the CPU's performance counter.
        Counter = "pmu",
        /// By dependent additions between the PAUSEs.
        Additions = "add-chain",
    }
}

/// PAUSE on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuPauseRecord {
    /// The CPU.
    pub cpu: usize,
    /// One PAUSE, ns: the median of the rounds.
    pub pause_ns: f64,
    /// Lower end of its 95 % interval; `null` for too few rounds.
    pub pause_ns_low: Option<f64>,
    /// Upper end.
    pub pause_ns_high: Option<f64>,
    /// One PAUSE in core cycles; `null` if unknown.
    pub pause_cycles: Option<f64>,
    /// Lower end of its interval.
    pub pause_cycles_low: Option<f64>,
    /// Upper end.
    pub pause_cycles_high: Option<f64>,
    /// How cycles were measured; `null` if they were not.
    pub method: Option<CycleMethod>,
    /// Core cycles by a chain of additions; `null` if not measured.
    pub chain_cycles: Option<f64>,
    /// Core cycles by the CPU's counter; `null` if there is none.
    pub counted_cycles: Option<f64>,
    /// Difference between `chain_cycles` and `counted_cycles`, as a share of the latter.
    pub disagreement_share: Option<f64>,
    /// The core's frequency during the measurement, GHz.
    pub ghz: Option<f64>,
    /// The two costs if there are two, the lower first; otherwise empty.
    pub levels: Vec<LevelRecord>,
    /// Other hints of the CPU, with their lowest cost.
    pub hints: Vec<HintCostRecord>,
    /// Rounds that it is based on.
    pub rounds: usize,
    /// Batches in those rounds.
    pub batches: usize,
    /// Batches discarded because the thread was preempted.
    pub switched: usize,
    /// Batches discarded because the hypervisor took the CPU.
    pub stolen: usize,
}

/// One of two costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LevelRecord {
    /// One PAUSE, ns.
    pub pause_ns: f64,
    /// In core cycles.
    pub pause_cycles: Option<f64>,
    /// Share of the batches, 0 to 1.
    pub share: f64,
}

/// Another hint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HintCostRecord {
    /// `TPAUSE`, `UMWAIT`, `YIELD`.
    pub hint: String,
    /// Its lowest cost, ns.
    pub ns: f64,
    /// In core cycles.
    pub cycles: Option<f64>,
}

/// A known chip, compared with the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChipRecord {
    /// Its id; `null` if the machine is not in the table.
    pub chip: Option<String>,
    /// Its name, or family, model and stepping.
    pub name: String,
    /// CPUs that it represents, as a list.
    pub cpus: String,
    /// Lowest published cost, cycles.
    pub published_low: Option<f64>,
    /// Highest published cost, cycles.
    pub published_high: Option<f64>,
    /// Measured cost, cycles: the median of the CPUs.
    pub measured_cycles: Option<f64>,
    /// Do both agree within 10 %?
    pub agrees: Option<bool>,
    /// Number of known chips with a cheaper PAUSE.
    pub cheaper_chips: Option<usize>,
    /// Known chips.
    pub known_chips: usize,
    /// Source of the published figure.
    pub source: Option<String>,
    /// As a sentence.
    pub sentence: String,
}

/// Would known algorithms wait too long?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PauseCheckRecord {
    /// Spinning of this length is too long, ms.
    pub limit_total_ms: f64,
    /// A blind gap of this length is too long, ms.
    pub limit_blind_gap_ms: f64,
    /// A million PAUSEs on the slowest CPU, ms.
    pub million_ms: f64,
    /// Number of CPUs that programs see.
    pub processors: u64,
    /// Is no algorithm too long?
    pub is_fine: bool,
    /// The algorithms that are too long, longest first.
    pub too_long: Vec<TooLongRecord>,
    /// The verdict in a line.
    pub sentence: String,
}

/// An algorithm that would wait too long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TooLongRecord {
    /// Its id.
    pub algorithm: String,
    /// Its longest wait, ms; `null` if it never ends.
    pub total_ms: Option<f64>,
    /// Its ratio to the limit.
    pub total_ratio: Option<f64>,
    /// Its longest time without a look, ms.
    pub blind_gap_ms: Option<f64>,
    /// Its ratio to the limit.
    pub blind_gap_ratio: Option<f64>,
    /// As a sentence.
    pub sentence: String,
}

impl StoredRecord for SpinPauseRecord {
    fn entry(&self) -> Entry {
        self.header
            .to_entry::<Self>(self.host.name(), "spin pause".to_owned(), self.verdict())
    }
}

impl SpinPauseRecord {
    /// The result, in a line.
    #[must_use]
    pub fn verdict(&self) -> String {
        if let Some(check) = &self.check {
            return check.sentence.clone();
        }
        let reduce_ns = |pick: fn(f64, f64) -> f64| {
            let all = self.cpus.iter().map(|cpu| cpu.pause_ns);
            all.reduce(pick)
        };
        match (reduce_ns(f64::min), reduce_ns(f64::max)) {
            (Some(low), Some(high)) => format!(
                "{} takes {low:.1} to {high:.1} ns on {} CPUs.",
                self.instruction,
                self.cpus.len()
            ),
            _ => "Nothing could be measured.".to_owned(),
        }
    }
}
