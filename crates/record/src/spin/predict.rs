//! Predictions of how long known algorithms spin.

use serde::{Deserialize, Serialize};

use super::first_name;
use crate::named::open_enum;
use crate::{Answer, Entry, Header, StoredRecord};
use pinwise_format::{count_of, grouped, seconds};
use pinwise_spin::algorithm::{Evidence, Tunable, Unit};
use pinwise_spin::prediction::{Hints, PauseCost, Prediction, find_cliffs};
use pinwise_spin::table::find_algorithm;

/// Predictions for one processor, or for two to compare.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.spin-predict/1")]
pub struct SpinPredictRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The processor; if two are compared, the one moved to.
    pub processor: ProcessorRecord,
    /// The processor moved from.
    pub from: Option<ProcessorRecord>,
    /// Predictions for every algorithm and number of CPUs, on `processor`.
    pub predictions: Vec<PredictionRecord>,
    /// The effects of moving, the largest first.
    pub moves: Vec<MoveRecord>,
    /// Numbers of CPUs at which totals change, per algorithm, if several numbers were requested.
    pub cliffs: Vec<CliffsRecord>,
    /// What spins longest, or changes most, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

impl StoredRecord for SpinPredictRecord {
    fn entry(&self) -> Entry {
        let on = self.processor.short_name();
        let title = match &self.from {
            Some(from) => format!("spin predict, {} to {on}", from.short_name()),
            None => format!("spin predict on {on}"),
        };
        self.header
            .to_entry::<Self>(String::new(), title, self.answer.sentence.clone())
    }
}

impl SpinPredictRecord {
    /// Fills in the answer from its predictions.
    pub fn conclude(&mut self) {
        let sentence = match &self.from {
            Some(from) => self.describe_move(from.short_name()),
            None => self.describe_longest(),
        };
        let advice = "Find out which of them a program contains: pinwise spin scan PROGRAM";
        self.answer = Answer {
            sentence,
            advice: advice.to_owned(),
        };
    }

    /// The largest effect of moving. Algorithms that hardly depend on PAUSE come last.
    fn describe_move(&self, from: &str) -> String {
        let to = self.processor.short_name();
        let first = self.moves.iter().find(|one| !one.immune);
        let known = first.and_then(|one| Some((one, one.from_ms?, one.to_ms?)));
        let Some((first, from_ms, to_ms)) = known.filter(|(_, from_ms, _)| *from_ms > 0.0) else {
            return format!("Moving from {from} to {to} changes none of them by a known time.");
        };
        let cpus = self.describe_cpus(&first.algorithm, first.cpus);
        format!(
            "{} is predicted to spin {} on {to} before it parks, instead of {} on {from}, with {cpus}.",
            self.title(&first.algorithm),
            seconds(to_ms * 1e-3),
            seconds(from_ms * 1e-3)
        )
    }

    /// A number of CPUs, and those with which an algorithm spins as long.
    fn describe_cpus(&self, id: &str, cpus: u64) -> String {
        let named = count_of(cpus, "CPU", "CPUs");
        let Ok(algorithm) = find_algorithm(id) else {
            return named;
        };
        let cliffs = find_cliffs(
            algorithm,
            self.processor.pause_ns,
            1..=cpus.saturating_mul(4),
        );
        let first = cliffs.iter().rfind(|at| **at <= cpus).copied();
        match (first, cliffs.iter().find(|at| **at > cpus)) {
            (Some(first), Some(next)) if next - first > 1 => {
                let (first, last) = (grouped(first), grouped(next - 1));
                format!("{named} (the same with {first} to {last})")
            }
            _ => named,
        }
    }

    /// The name and id of an algorithm.
    fn title(&self, id: &str) -> String {
        let known = self.predictions.iter().find(|one| one.algorithm == id);
        match known.map_or(id, |one| first_name(&one.name, id)) {
            name if name == id => id.to_owned(),
            name => format!("{name} ({id})"),
        }
    }

    /// What spins longest, and what checks its lock least often, with the largest number of CPUs.
    fn describe_longest(&self) -> String {
        let processor = self.processor.short_name();
        let cpus = self.predictions.iter().map(|one| one.cpus).max();
        let longest = |figure: fn(&PredictionRecord) -> Option<f64>| {
            let all = self.predictions.iter();
            let known = all
                .filter(|one| Some(one.cpus) == cpus)
                .filter_map(|one| Some((one, figure(one).filter(|ms| *ms > 0.0)?)));
            known.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let Some((most, ms)) = longest(|one| one.total_ms) else {
            return format!("None of them spins for a known time on {processor}.");
        };
        let cpus = self.describe_cpus(&most.algorithm, most.cpus);
        let time = seconds(ms * 1e-3);
        let is_alone = self
            .predictions
            .iter()
            .all(|one| one.algorithm == most.algorithm);
        let spins = match is_alone {
            true => "spin for",
            false => "spin longest,",
        };
        let gap = longest(|one| one.blind_gap_ms).map_or_else(String::new, |(blind, ms)| {
            let blind = match blind.algorithm == most.algorithm {
                true if is_alone => "it checks the lock",
                true => "it also checks the lock least often,",
                false => &format!(
                    "{} checks the lock least often,",
                    self.title(&blind.algorithm)
                ),
            };
            format!("; {blind} up to {} apart", seconds(ms * 1e-3))
        });
        format!(
            "On {processor} with {cpus}, {} is predicted to {spins} {time} before it parks{gap}.",
            self.title(&most.algorithm)
        )
    }
}

/// A processor and the sources of its figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessorRecord {
    /// Its name, as `Skylake-SP/X` or `this machine`.
    pub name: String,
    /// Its id in the table of chips; `null` if it is not there.
    pub chip: Option<String>,
    /// One PAUSE, ns.
    pub pause_ns: f64,
    /// In core cycles.
    pub pause_cycles: Option<f64>,
    /// The clock, GHz.
    pub ghz: Option<f64>,
    /// Source of the cycles, as a sentence or an address.
    pub pause_from: String,
    /// Source of the clock rate.
    pub ghz_from: Option<String>,
}

impl ProcessorRecord {
    /// The id of its chip, else its name.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.chip.as_deref().unwrap_or(&self.name)
    }

    /// The cost of PAUSE from its figures.
    #[must_use]
    pub const fn to_pause_cost(&self) -> PauseCost {
        PauseCost {
            pause_ns: self.pause_ns,
            pause_cycles: self.pause_cycles,
            ghz: self.ghz,
        }
    }
}

open_enum! {
    /// The unit in which an algorithm counts its waiting.
    SpinUnit {
        /// PAUSEs.
        Pause = "pause",
        /// Runs of PAUSEs, of one of two lengths.
        Graded = "graded",
        /// Runs of PAUSEs of a measured length.
        Normalised = "normalised",
        /// Time.
        Time = "time",
        /// Loads.
        Load = "load",
        /// Yields.
        Yield = "yield",
    }
}

impl From<Unit> for SpinUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Hint => Self::Pause,
            Unit::Graded { .. } => Self::Graded,
            Unit::Normalised { .. } => Self::Normalised,
            Unit::Clock => Self::Time,
            Unit::Load => Self::Load,
            Unit::Yield => Self::Yield,
        }
    }
}

open_enum! {
    /// The source of an algorithm's parameters.
    SpinEvidence from Evidence {
        /// From the source code.
        Read = "read",
        /// From an excerpt, an issue or a manual.
        Excerpt = "excerpt",
    }
}

/// The prediction for one algorithm with one number of CPUs. Figures are `null` if it never ends,
/// if they are unknown, or if it spends its time in something other than PAUSE.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictionRecord {
    /// Its id.
    pub algorithm: String,
    /// Its name.
    pub name: String,
    /// Versions that have it.
    pub versions: String,
    /// CPUs that the program counts.
    pub cpus: u64,
    /// One PAUSE, ns.
    pub pause_ns: f64,
    /// One PAUSE, core cycles.
    pub pause_cycles: Option<f64>,
    /// The clock, GHz.
    pub ghz: Option<f64>,
    /// PAUSEs before it gives up; random draws at their mean.
    pub total_pauses: Option<u64>,
    /// How long they take, ms.
    pub total_ms: Option<f64>,
    /// The largest possible number of PAUSEs.
    pub longest_pauses: Option<u64>,
    /// How long these take, ms.
    pub longest_ms: Option<f64>,
    /// Most PAUSEs between two looks.
    pub blind_gap_pauses: Option<u64>,
    /// How long these take, ms.
    pub blind_gap_ms: Option<f64>,
    /// CPU time burnt if all CPUs but one wait in full, ms.
    pub wasted_cpu_ms: Option<f64>,
    /// Does it spin until it has the lock?
    pub never_parks: bool,
    /// Is its waiting time nearly independent of the cost of PAUSE?
    pub immune: bool,
    /// The unit in which it counts.
    pub unit: SpinUnit,
    /// What it does after spinning.
    pub then: String,
    /// Settings that change it.
    pub tunables: Vec<TunableRecord>,
    /// The kind of source of its parameters.
    pub evidence: SpinEvidence,
    /// Source of its parameters.
    pub source: String,
    /// A further note; `null` if there is none.
    pub note: Option<String>,
}

/// A setting that changes how long something spins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TunableRecord {
    /// Its name.
    pub name: String,
    /// Its default value; `null` if there is none.
    pub usual: Option<String>,
    /// How to set it.
    pub how: String,
}

/// What moving from one processor to another does to an algorithm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MoveRecord {
    /// Its id.
    pub algorithm: String,
    /// CPUs, on both.
    pub cpus: u64,
    /// Its total before, ms.
    pub from_ms: Option<f64>,
    /// Its total after, ms.
    pub to_ms: Option<f64>,
    /// After divided by before.
    pub ratio: Option<f64>,
    /// Its blind gap before, ms.
    pub from_blind_gap_ms: Option<f64>,
    /// Its blind gap after, ms.
    pub to_blind_gap_ms: Option<f64>,
    /// Is its waiting time nearly independent of the cost of PAUSE?
    pub immune: bool,
}

/// Numbers of CPUs at which an algorithm's total changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CliffsRecord {
    /// Its id.
    pub algorithm: String,
    /// The smallest number of CPUs that was examined.
    pub from_cpus: u64,
    /// The largest number of CPUs that was examined.
    pub to_cpus: u64,
    /// Numbers of CPUs whose total differs from that with one CPU less.
    pub changes_at: Vec<u64>,
}

impl PredictionRecord {
    /// A prediction on a processor.
    #[must_use]
    pub fn new(prediction: &Prediction, processor: &PauseCost) -> Self {
        let algorithm = prediction.algorithm;
        let count = |hints: Option<Hints>| hints.map(|hints| hints.count);
        let ms = |hints: Option<Hints>| hints.map(|hints| hints.ns * 1e-6);
        Self {
            algorithm: algorithm.id.to_owned(),
            name: algorithm.name.to_owned(),
            versions: algorithm.versions.to_owned(),
            cpus: prediction.cpus,
            pause_ns: processor.pause_ns,
            pause_cycles: processor.pause_cycles,
            ghz: processor.ghz,
            total_pauses: count(prediction.total),
            total_ms: ms(prediction.total),
            longest_pauses: count(prediction.longest),
            longest_ms: ms(prediction.longest),
            blind_gap_pauses: count(prediction.blind_gap),
            blind_gap_ms: ms(prediction.blind_gap),
            wasted_cpu_ms: prediction.wasted_ns.map(|ns| ns * 1e-6),
            never_parks: prediction.never_parks,
            immune: algorithm.is_immune(),
            unit: algorithm.unit.into(),
            then: algorithm.then.to_owned(),
            tunables: algorithm.tunables.iter().map(TunableRecord::new).collect(),
            evidence: algorithm.evidence.into(),
            source: algorithm.source.to_owned(),
            note: (!algorithm.note.is_empty()).then(|| algorithm.note.to_owned()),
        }
    }
}

impl TunableRecord {
    fn new(tunable: &Tunable) -> Self {
        Self {
            name: tunable.name.to_owned(),
            usual: (!tunable.usual.is_empty()).then(|| tunable.usual.to_owned()),
            how: tunable.how.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(record: &mut SpinPredictRecord, expected: &str) {
        record.conclude();
        assert_eq!(record.answer.sentence, expected);
    }

    #[test]
    fn the_answer_names_what_changes_most_or_spins_longest() {
        let text = include_str!("../../../../tests/data/records/spin-predict.json");
        let mut record: SpinPredictRecord = crate::read(text).unwrap();
        check(
            &mut record,
            ".NET Framework Monitor (netfx_awarelock) is predicted to spin 246 ms on skylake-sp before it parks, instead of 16.7 ms on broadwell, with 24 CPUs (the same with 17 to 49).",
        );
        record.from = None;
        check(
            &mut record,
            "On skylake-sp with 24 CPUs (the same with 17 to 49), .NET Framework Monitor (netfx_awarelock) is predicted to spin longest, 246 ms before it parks; it also checks the lock least often, up to 16.4 ms apart.",
        );
        record.predictions.truncate(1);
        check(
            &mut record,
            "On skylake-sp with 24 CPUs (the same with 17 to 49), .NET Framework Monitor (netfx_awarelock) is predicted to spin for 246 ms before it parks; it checks the lock up to 16.4 ms apart.",
        );
        record.predictions[0].total_ms = None;
        check(
            &mut record,
            "None of them spins for a known time on skylake-sp.",
        );
    }
}
