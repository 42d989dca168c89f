//! Values for the spin settings of known runtimes.

use serde::{Deserialize, Serialize};

use super::ProcessorRecord;
use crate::{Answer, Entry, Header, StoredRecord};
use pinwise_format::{grouped, nanoseconds};
use pinwise_spin::advice::Advice;

/// The costs of waiting on a machine, and values of settings that fit them.
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
    /// Time from a wake-up until the woken thread runs, ns, measured here.
    pub futex_wake_ns: f64,
    /// Time of a switch between threads, ns, measured here.
    pub context_switch_ns: f64,
    /// The sum of both: how long to spin at most, ns.
    pub budget_ns: f64,
    /// `budget_ns` in PAUSEs of the processor.
    pub budget_pauses: u64,
    /// The rule for the budget, in words.
    pub rule: String,
    /// One entry per setting.
    pub advice: Vec<AdviceRecord>,
    /// The name of the machine whose wake-ups and switches were measured.
    #[serde(default)]
    pub measured_on: String,
    /// How long to spin, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

impl SpinAdviceRecord {
    /// Fills in the answer from its figures. Of another processor than that of the machine, it
    /// holds only if waking costs as much there.
    pub fn conclude(&mut self, is_other: bool) {
        let (pauses, budget) = (grouped(self.budget_pauses), nanoseconds(self.budget_ns));
        self.answer = match is_other {
            true => {
                let processor = match &self.processor.chip {
                    Some(_) => format!("On {}", self.processor.name),
                    None => format!("With a PAUSE of {}", nanoseconds(self.processor.pause_ns)),
                };
                Answer {
                    sentence: format!(
                        "{processor}, if parking and waking costs {budget} as on {}: spin for {pauses} PAUSEs, then park.",
                        self.measured_on
                    ),
                    advice: "Run it on that machine, to measure what waking costs there: pinwise spin advise".to_owned(),
                }
            }
            false => Answer {
                sentence: format!(
                    "Spin for {pauses} PAUSEs, then park: they take {}, what parking and waking costs here.",
                    nanoseconds(self.pauses_ns())
                ),
                advice:
                    "Find the algorithm that a program waits with: pinwise spin attach --pid PID"
                        .to_owned(),
            },
        };
    }

    /// How long the budget's PAUSEs take, ns: the budget, to a whole PAUSE.
    #[must_use]
    pub fn pauses_ns(&self) -> f64 {
        self.budget_pauses as f64 * self.processor.pause_ns
    }
}

impl StoredRecord for SpinAdviceRecord {
    fn entry(&self) -> Entry {
        let title = format!("spin advise for {}", self.processor.name);
        self.header.to_entry::<Self>(
            self.measured_on.clone(),
            title,
            self.answer.sentence.clone(),
        )
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
    /// Its default value.
    pub usual: String,
    /// How long the default spins on this processor, ns.
    pub usual_ns: Option<f64>,
    /// The suggested value; `null` to leave the default.
    pub suggested: Option<String>,
    /// How long the suggested value would spin, ns.
    pub suggested_ns: Option<f64>,
    /// The reasons.
    pub reasoning: String,
    /// A command that shows whether it helps; `null` if there is none.
    pub verify: Option<String>,
}

impl AdviceRecord {
    /// The record of a piece of advice.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_another_chip_holds_only_if_waking_costs_as_much_there() {
        let mut record = SpinAdviceRecord {
            budget_ns: 22_530.0,
            budget_pauses: 450,
            measured_on: "vm".to_owned(),
            ..SpinAdviceRecord::default()
        };
        record.processor.pause_ns = 50.09;
        let mut say = |chip: Option<&str>, is_other: bool| {
            record.processor.chip = chip.map(str::to_owned);
            "Skylake-SP/X".clone_into(&mut record.processor.name);
            record.conclude(is_other);
            record.answer.sentence.clone()
        };
        let rest = "if parking and waking costs 22.5 µs as on vm: spin for 450 PAUSEs, then park.";
        let expected = format!("On Skylake-SP/X, {rest}");
        assert_eq!(say(Some("skylake-sp"), true), expected);
        let expected = format!("With a PAUSE of 50.1 ns, {rest}");
        assert_eq!(say(None, true), expected);
        assert_eq!(
            say(None, false),
            "Spin for 450 PAUSEs, then park: they take 22.5 µs, what parking and waking costs here."
        );
    }
}
