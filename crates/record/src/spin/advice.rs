//! Values for the spin settings of known runtimes.

use serde::{Deserialize, Serialize};

use super::ProcessorRecord;
use crate::{Entry, Header, StoredRecord};
use pinwise_format::nanoseconds;
use pinwise_spin::advice::Advice;

/// What waiting costs, and what settings fit that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.spin-advice/1")]
pub struct SpinAdviceRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The processor that the advice is for.
    pub processor: ProcessorRecord,
    /// Number of CPUs that programs see.
    pub cpus: u64,
    /// From a wake-up until the woken thread runs, ns, measured here.
    pub futex_wake_ns: f64,
    /// A switch between threads, ns, measured here.
    pub context_switch_ns: f64,
    /// Both together: how long to spin at most, ns.
    pub budget_ns: f64,
    /// The same in PAUSEs of the processor.
    pub budget_pauses: u64,
    /// Why that is the budget.
    pub rule: String,
    /// A row per setting.
    pub advice: Vec<AdviceRecord>,
}

impl StoredRecord for SpinAdviceRecord {
    fn entry(&self) -> Entry {
        let title = format!("spin advise for {}", self.processor.name);
        let verdict = format!(
            "Spin for {} at most, {} PAUSEs.",
            nanoseconds(self.budget_ns),
            self.budget_pauses
        );
        self.header.to_entry::<Self>(String::new(), title, verdict)
    }
}

/// A setting and a value for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviceRecord {
    /// The runtime or program that has the setting.
    pub runtime: String,
    /// The algorithm's id; `null` for a program's own.
    pub algorithm: Option<String>,
    /// Versions of the runtime that take the value; `null` if there are none.
    pub versions: Option<String>,
    /// The setting's name.
    pub setting: String,
    /// How to set it.
    pub how: String,
    /// Its usual value.
    pub usual: String,
    /// How long that spins on this processor, ns.
    pub usual_ns: Option<f64>,
    /// What would fit; `null`: leave it alone.
    pub suggested: Option<String>,
    /// How long that would spin, ns.
    pub suggested_ns: Option<f64>,
    /// Why.
    pub reasoning: String,
    /// A command that shows whether it helps; `null` if there is none.
    pub verify: Option<String>,
}

impl AdviceRecord {
    /// A row of advice.
    #[must_use]
    pub fn new(advice: &Advice) -> Self {
        Self {
            runtime: advice.runtime.to_owned(),
            algorithm: advice.algorithm.map(str::to_owned),
            versions: advice.versions.map(str::to_owned),
            setting: advice.setting.to_owned(),
            how: advice.how.to_owned(),
            usual: advice.usual.to_owned(),
            usual_ns: advice.usual_ns,
            suggested: advice.suggested.clone(),
            suggested_ns: advice.suggested_ns,
            reasoning: advice.reasoning.clone(),
            verify: advice.verify.clone(),
        }
    }
}
