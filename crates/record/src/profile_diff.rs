//! The difference of two profiles per unit of work, as a record.

use serde::{Deserialize, Serialize};

use super::attribution::{AttributedTime, AttributionRecord};
use super::named::open_enum;
use super::profile::{CalledRecord, ProfileRecord, SampleEvent};
use super::{Entry, Header, StoredRecord};
use pinwise_format::{seconds, signed_seconds};
use pinwise_profile::{Change, Difference, Function, Kind, NodeChange, Pausing, Side};

/// Limits the functions in the record.
const MAX_FUNCTIONS: usize = 1_000;

/// The difference of two profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.profile-diff/1")]
pub struct ProfileDiff {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The profile before.
    pub before: DiffSide,
    /// The profile after.
    pub after: DiffSide,
    /// The unit of work by which both are divided.
    pub unit: String,
    /// All CPU time.
    pub total: ChangeRecord,
    /// CPU time spent waiting in spin hints.
    pub waits: ChangeRecord,
    /// More PAUSEs, or longer ones; `null` if one side does not wait in any, or the cost of a PAUSE
    /// there is unknown.
    pub pausing: Option<PausingRecord>,
    /// The causes of the difference: of elapsed time if both know it, and of CPU time.
    pub attributions: Vec<AttributionRecord>,
    /// Functions, the largest change of own time first, whatever its sign.
    pub functions: Vec<FunctionChangeRecord>,
    /// Number of functions that are not in the list.
    pub functions_left_out: usize,
    /// Both trees of calls as one, callers before callees.
    pub calls: Vec<CallChangeRecord>,
    /// What most of the change was spent on, in a sentence.
    pub headline: String,
    /// The result, in words.
    pub sentences: Vec<String>,
}

/// One of the two profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiffSide {
    /// The id of its record.
    pub id: String,
    /// Its title: what was profiled.
    pub title: String,
    /// The machine it ran on.
    pub host: String,
    /// Units of work done.
    pub units: f64,
    /// Samples.
    pub samples: u64,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// The cost of a PAUSE there, ns; `null` if unknown.
    pub pause_ns: Option<f64>,
}

/// CPU time per unit of work, before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRecord {
    /// Samples before.
    pub before_samples: u64,
    /// Samples after.
    pub after_samples: u64,
    /// Before, seconds per unit.
    pub before_s: f64,
    /// After, seconds per unit.
    pub after_s: f64,
    /// After minus before, seconds per unit.
    pub delta_s: f64,
    /// Lower end of its 95 % interval, from the numbers of samples.
    pub low_s: f64,
    /// Upper end of the interval.
    pub high_s: f64,
    /// Does the interval contain 0, so that the change may be chance?
    pub is_noise: bool,
}

/// More PAUSEs, or longer ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PausingRecord {
    /// PAUSEs per unit before.
    pub before_pauses: f64,
    /// PAUSEs per unit after.
    pub after_pauses: f64,
    /// Part of the change that comes from more PAUSEs, seconds per unit.
    pub by_more_s: f64,
    /// Part of the change that comes from longer PAUSEs, seconds per unit.
    pub by_longer_s: f64,
}

open_enum! {
    /// In which profiles a function was seen.
    SeenIn {
        /// In the later one only.
        After = "came",
        /// In the earlier one only.
        Before = "gone",
        /// In both.
        Both = "both",
    }
}

/// A function before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FunctionChangeRecord {
    /// The function.
    #[serde(flatten)]
    pub function: CalledRecord,
    /// In which profiles it was seen.
    pub seen: SeenIn,
    /// Time in its own code.
    pub own: ChangeRecord,
    /// Time in it and in the functions that it called.
    pub total: ChangeRecord,
    /// Part of its own time spent waiting in spin hints.
    pub waits: ChangeRecord,
}

/// A function and the calls that lead to it, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallChangeRecord {
    /// The function.
    #[serde(flatten)]
    pub function: CalledRecord,
    /// Index of its caller; `null` at the root.
    pub parent: Option<usize>,
    /// Time in it and in the functions that it called.
    pub total: ChangeRecord,
}

/// Profiles whose samples represent less than this share of the CPU time are refused: the missed
/// time could be as large as the differences.
const MIN_SAMPLED_SHARE: f64 = 0.8;

/// Why two profiles cannot be subtracted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// They count different units of work.
    #[error(
        "{before_id} counts per {before}, {after_id} per {after}: make both with the same units of work (--units, --metric)"
    )]
    Units {
        /// One record.
        before_id: String,
        /// Its unit.
        before: String,
        /// The other record.
        after_id: String,
        /// Its unit.
        after: String,
    },
    /// No work was done, or its amount is unknown.
    #[error("profile {0} has no units of work to divide by")]
    NoWork(String),
    /// Its samples represent a small part of the CPU time.
    #[error(
        "profile {id} cannot be compared: its samples stand for {sampled} of {counted} of CPU time, as threads or processes that run for less than a period of sampling are missed; compare pinwise trace, or longer-lived threads"
    )]
    Missed {
        /// The record.
        id: String,
        /// What the samples represent.
        sampled: String,
        /// What the kernel counted.
        counted: String,
    },
    /// Its tree of calls is damaged.
    #[error("profile {0} is damaged: its calls lead nowhere")]
    Damaged(String),
    /// It has CPU times of threads only.
    #[error("profile {0} was sampled from /proc, which does not report functions")]
    NoFunctions(String),
}

impl ChangeRecord {
    fn new(change: &Change) -> Self {
        let delta_s = change.delta_s();
        Self {
            before_samples: change.before.samples,
            after_samples: change.after.samples,
            before_s: change.before_s,
            after_s: change.after_s,
            delta_s,
            low_s: delta_s - change.interval_s(),
            high_s: delta_s + change.interval_s(),
            is_noise: change.is_noise(),
        }
    }

    /// Half-width of its interval, seconds per unit.
    #[must_use]
    pub fn interval_s(&self) -> f64 {
        0.5 * (self.high_s - self.low_s)
    }
}

impl DiffSide {
    fn new(record: &ProfileRecord) -> Self {
        Self {
            id: record.id.clone(),
            title: record.title(),
            host: record.host.name(),
            units: record.work.count,
            samples: record.figures.total.samples,
            cpu_s: record.figures.total.cpu_s,
            pause_ns: record.pause.as_ref().map(|pause| pause.ns),
        }
    }
}

impl StoredRecord for ProfileDiff {
    fn entry(&self) -> Entry {
        let title = format!("profile diff {} {}", self.before.title, self.after.title);
        self.header
            .to_entry::<Self>(self.after.host.clone(), title, self.headline.clone())
    }
}

impl ProfileDiff {
    /// Subtracts `before` from `after`, per unit of work.
    ///
    /// # Errors
    /// [`DiffError`] if they cannot be subtracted.
    pub fn between(before: &ProfileRecord, after: &ProfileRecord) -> Result<Self, DiffError> {
        if before.work.unit != after.work.unit {
            return Err(DiffError::Units {
                before_id: before.id.clone(),
                before: before.work.unit.clone(),
                after_id: after.id.clone(),
                after: after.work.unit.clone(),
            });
        }
        for record in [before, after] {
            check_usable(record)?;
        }
        let damaged = |record: &ProfileRecord| DiffError::Damaged(record.id.clone());
        let profiles = (
            before.figures.to_profile().ok_or_else(|| damaged(before))?,
            after.figures.to_profile().ok_or_else(|| damaged(after))?,
        );
        let units_and_pause = |record: &'_ ProfileRecord| (record.work.count, pause_ns(record));
        let ((before_units, before_ns), (after_units, after_ns)) =
            (units_and_pause(before), units_and_pause(after));
        let difference = Difference::between(
            Side {
                profile: &profiles.0,
                units: before_units,
                program: before.program(),
                pause_ns: before_ns,
            },
            Side {
                profile: &profiles.1,
                units: after_units,
                program: after.program(),
                pause_ns: after_ns,
            },
        );
        Ok(Self::new(&difference, before, after))
    }

    fn new(difference: &Difference, before: &ProfileRecord, after: &ProfileRecord) -> Self {
        let all = difference.functions.iter();
        let to_record = |change: &pinwise_profile::FunctionChange| FunctionChangeRecord {
            function: CalledRecord::new(&change.function),
            seen: match (change.total.before.samples, change.total.after.samples) {
                (0, _) => SeenIn::After,
                (_, 0) => SeenIn::Before,
                _ => SeenIn::Both,
            },
            own: ChangeRecord::new(&change.own),
            total: ChangeRecord::new(&change.total),
            waits: ChangeRecord::new(&change.waits),
        };
        let (total, waits) = (
            ChangeRecord::new(&difference.total),
            ChangeRecord::new(&difference.waits),
        );
        let functions: Vec<FunctionChangeRecord> = all.take(MAX_FUNCTIONS).map(to_record).collect();
        let unit = &after.work.unit;
        let attributions =
            AttributionRecord::attribute_all(&before.to_repeats(), &after.to_repeats(), unit);
        let by_runs = attributions.iter().find(|a| a.of == AttributedTime::Cpu);
        let headline = write_headline(&total, by_runs, &waits, &functions, unit);
        Self {
            header: Header {
                notes: list_notes(difference, before, after),
                ..Header::default()
            },
            before: DiffSide::new(before),
            after: DiffSide::new(after),
            headline,
            unit: unit.clone(),
            total,
            waits,
            pausing: difference.pausing.as_ref().map(PausingRecord::new),
            attributions,
            functions,
            functions_left_out: difference.functions.len().saturating_sub(MAX_FUNCTIONS),
            calls: difference.nodes.iter().map(CallChangeRecord::new).collect(),
            sentences: difference.pausing.iter().map(Pausing::sentence).collect(),
        }
    }
}

/// Of many functions some change by more than their 95 % intervals, but hardly one by this many times
/// as much.
const CLEAR: f64 = 1.4;

/// Says what most of the change was spent on: waiting in spin hints, if that is most of it, and the
/// function whose own time changed most in the same direction. `by_runs` is the change of CPU time
/// against differences from run to run.
fn write_headline(
    total: &ChangeRecord,
    by_runs: Option<&AttributionRecord>,
    waits: &ChangeRecord,
    functions: &[FunctionChangeRecord],
    unit: &str,
) -> String {
    let (before, after) = (seconds(total.before_s), seconds(total.after_s));
    let by_samples = total.interval_s();
    let by_runs =
        by_runs.map(|runs| (0.5 * (runs.delta.high - runs.delta.low), runs.is_difference));
    let (error, source) = match by_runs {
        Some((error, _)) if error > by_samples => (error, "from run to run"),
        _ => (by_samples, "by counting samples"),
    };
    let error = seconds(error);
    if total.is_noise || by_runs.is_some_and(|(_, is_difference)| !is_difference) {
        let clear = functions.iter().find(|function| {
            let own = &function.own;
            !own.is_noise && own.delta_s.abs() >= CLEAR * own.interval_s()
        });
        let clear = clear.map_or_else(String::new, |function| {
            let (name, delta) = (
                &function.function.name,
                signed_seconds(function.own.delta_s),
            );
            format!("; {name} alone changed: {delta}")
        });
        return format!(
            "No difference in CPU time beyond chance: {before} per {unit} before, {after} after, ±{error} {source}{clear}."
        );
    }
    let is_most = |change: &ChangeRecord| !change.is_noise && change.delta_s / total.delta_s >= 0.5;
    let word = if total.delta_s < 0.0 { "less" } else { "more" };
    let waiting = match is_most(waits) {
        true => format!(
            ", mostly {word} waiting in spin hints ({})",
            seconds(waits.delta_s.abs())
        ),
        false => String::new(),
    };
    let function = functions.iter().find(|function| {
        let own = &function.own;
        !own.is_noise && own.delta_s.is_sign_negative() == total.delta_s.is_sign_negative()
    });
    let place = function.map_or_else(String::new, |function| {
        let (name, own) = (&function.function.name, &function.own);
        let time = seconds(own.delta_s.abs());
        match is_most(own) {
            true => format!(", in {name} ({time})"),
            false => format!("; {name} has the largest part, {time}"),
        }
    });
    format!(
        "{} {word} CPU time per {unit} ({before} before, {after} after, ±{error}){waiting}{place}.",
        seconds(total.delta_s.abs())
    )
}

fn pause_ns(record: &ProfileRecord) -> Option<f64> {
    record.pause.as_ref().map(|pause| pause.ns)
}

fn check_usable(record: &ProfileRecord) -> Result<(), DiffError> {
    let has_work = record.work.count.is_finite() && record.work.count > 0.0;
    if !has_work {
        return Err(DiffError::NoWork(record.id.clone()));
    }
    if record.event == SampleEvent::Proc {
        return Err(DiffError::NoFunctions(record.id.clone()));
    }
    let sampled_s = record.figures.total.cpu_s;
    match record.check_sampled_time() {
        Some(counted_s) if sampled_s < MIN_SAMPLED_SHARE * counted_s => Err(DiffError::Missed {
            id: record.id.clone(),
            sampled: seconds(sampled_s),
            counted: seconds(counted_s),
        }),
        _ => Ok(()),
    }
}

/// Notes that are needed to interpret the difference.
fn list_notes(
    difference: &Difference,
    before: &ProfileRecord,
    after: &ProfileRecord,
) -> Vec<String> {
    let mut notes = vec![
        "Intervals cover the sampling error only, not differences from run to run (pinwise compare measures those)."
            .to_owned(),
    ];
    if before.event != after.event {
        notes.push(format!(
            "Sampled by {} before and by {} after: small changes may come from that.",
            before.event, after.event
        ));
    }
    let waits = &difference.waits;
    let is_waiting = waits.before.samples > 0 || waits.after.samples > 0;
    if is_waiting && (before.pause.is_none() || after.pause.is_none()) {
        notes.push(
            "The cost of a PAUSE was not measured with both profiles: whether there are more \
             PAUSEs or longer ones is unknown."
                .to_owned(),
        );
    }
    let has_no_name =
        |function: &Function| function.kind == Kind::User && function.name.starts_with("0x");
    if difference
        .functions
        .iter()
        .any(|change| has_no_name(&change.function))
    {
        notes.push(
            "Code without symbols is matched by its address, which works only within one build."
                .to_owned(),
        );
    }
    notes
}

impl PausingRecord {
    fn new(pausing: &Pausing) -> Self {
        Self {
            before_pauses: pausing.before_pauses,
            after_pauses: pausing.after_pauses,
            by_more_s: pausing.by_more_s,
            by_longer_s: pausing.by_longer_s,
        }
    }
}

impl CallChangeRecord {
    fn new(node: &NodeChange) -> Self {
        Self {
            function: CalledRecord::new(&node.function),
            parent: node.parent,
            total: ChangeRecord::new(&node.total),
        }
    }
}

#[cfg(test)]
mod tests;
