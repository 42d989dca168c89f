//! Real waiting, compared with its prediction, as a record.

mod answer;

use serde::{Deserialize, Serialize};

use crate::host::HostRecord;
use crate::named::open_enum;
use crate::{Answer, Entry, Header, StoredRecord};
use pinwise_spin::lateness::ReleaseNotice;

open_enum! {
    /// The experiment that is replayed.
    ReplayExperiment {
        /// A worker holds a lock for each item; a sender wants it after a delay.
        ProducerConsumer = "producer-consumer",
        /// A waiter arrives while the lock is held; it is released after a delay.
        Handoff = "handoff",
        /// Threads take a lock repeatedly.
        Contend = "contend",
    }
}

/// A replay: the experiment, the predicted durations and the measured ones. Figures that could not
/// be measured or predicted are `null`, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.spin-replay/1")]
pub struct SpinReplayRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// What was replayed.
    pub experiment: ReplayExperiment,
    /// The chip whose hint was imitated; `null` if a duration was given instead, or nothing was
    /// imitated.
    pub chip: Option<String>,
    /// Number of CPUs that the algorithms assumed.
    pub cpus_assumed: u64,
    /// The spin-wait hint.
    pub hint: ReplayHint,
    /// Time from the release until a parked waiter has the lock, ns, measured beforehand.
    pub wake_ns: Option<f64>,
    /// How long the lock was held for an item, ms; `null` if that varied.
    pub hold_ms: Option<f64>,
    /// Items requested of each cell, all repeats together.
    pub items: u64,
    /// How often all cells were repeated.
    pub repeats: u64,
    /// Did the threads run at real-time priority?
    pub realtime: bool,
    /// CPUs of the threads: holder and waiter, or all that contended for the lock.
    pub cpus: Vec<usize>,
    /// One entry per algorithm, in the requested order.
    pub algorithms: Vec<ReplayedAlgorithm>,
    /// The results, as sentences.
    pub conclusions: Vec<String>,
    /// How late a released lock is noticed, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

open_enum! {
    /// The instructions that make up a hint.
    HintRecipe {
        /// The processor's own.
        Own = "own",
        /// The processor's own and additions.
        Stretched = "stretched",
        /// Additions alone.
        Shortened = "shortened",
    }
}

/// The hint of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayHint {
    /// This processor's own, ns.
    pub own_ns: Option<f64>,
    /// The requested duration, ns.
    pub wanted_ns: f64,
    /// The measured duration, ns: the median over the cells.
    pub achieved_ns: Option<f64>,
    /// The instructions that make it up.
    #[serde(rename = "made")]
    pub recipe: Option<HintRecipe>,
}

open_enum! {
    /// How a wait ends.
    WaitEnd {
        /// The waiter parks.
        Parks = "parks",
        /// It yields the CPU.
        Yields = "yields",
        /// It spins until it has the lock.
        Never = "never",
    }
}

/// An algorithm that was replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayedAlgorithm {
    /// Its id; `futex` for parking at once.
    pub algorithm: String,
    /// Its name.
    pub name: String,
    /// Hints before it gives up; `null` if it never does.
    pub total_hints: Option<u64>,
    /// Maximum number of hints between two reads of the lock.
    pub blind_gap_hints: u64,
    /// How it ends.
    pub ends: WaitEnd,
    /// One per delay; empty if threads contended.
    pub cells: Vec<ReplayCell>,
    /// One per number of threads; empty elsewhere.
    pub contention: Vec<ContentionCell>,
    /// Median size of `error_percent` over the stable cells that spin to the
    /// end.
    pub median_error_percent: Option<f64>,
    /// The number of those cells.
    pub stable_cells: u64,
}

/// An algorithm at a delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayCell {
    /// How long the lock was held, ms.
    pub hold_ms: f64,
    /// Time from taking the lock until the waiter came, ms.
    pub delay_ms: f64,
    /// Prediction for the requested duration of the hint; if none was requested, for the
    /// processor's own, measured just before.
    pub predicted: ReplayPrediction,
    /// Prediction for the hint's measured duration.
    pub predicted_as_achieved: Option<ReplayPrediction>,
    /// Measured duration of the hint, ns.
    pub hint_achieved_ns: Option<f64>,
    /// The results of the good items; `null` if there were none.
    pub measured: Option<ReplayMeasured>,
    /// Measured minus predicted lateness, per cent of the predicted.
    pub error_percent: Option<f64>,
    /// The smallest change of the hint's latency that gives another result, per cent; `null` if
    /// none up to 100 does.
    pub cliff_percent: Option<f64>,
    /// Is the cliff within the accuracy of the hint, so that either result may occur?
    pub unstable: bool,
    /// Good items.
    pub items: u64,
    /// Items left out because the waiter was preempted.
    pub switched: u64,
    /// Items left out because something else stopped a thread.
    pub stopped: u64,
}

open_enum! {
    /// How a waiter learns of a release.
    ReleaseSeen from ReleaseNotice {
        /// It reads the lock between hints.
        Spinning = "spinning",
        /// It reads the lock between yields.
        Yielding = "yielding",
        /// It is woken.
        Parked = "parked",
    }
}

/// A predicted wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayPrediction {
    /// How the waiter learns of the release.
    pub seen: ReleaseSeen,
    /// Time from the release until the waiter has the lock, µs.
    pub lateness_us: Option<f64>,
    /// What 100 items take, seconds.
    pub seconds_per_100_items: Option<f64>,
    /// Hints of a wait.
    pub hints: u64,
}

/// The results; medians over the items unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayMeasured {
    /// Time from the release until the waiter has the lock, µs.
    pub lateness_us: f64,
    /// Lower quartile of the lateness, µs.
    pub lateness_low_us: f64,
    /// Upper quartile of the lateness, µs.
    pub lateness_high_us: f64,
    /// 90th percentile of the lateness, µs.
    pub lateness_p90_us: f64,
    /// The largest lateness, µs.
    pub lateness_max_us: f64,
    /// What 100 items take, seconds.
    pub seconds_per_100_items: f64,
    /// CPU time of the waits for 100 items, seconds: the mean.
    pub waiter_cpu_s_per_100_items: f64,
    /// Hints of a wait.
    pub hints: u64,
    /// Items whose waiter was parked.
    pub parks: u64,
}

/// Results of threads that contended for the lock; these are not predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentionCell {
    /// The number of threads.
    pub threads: u64,
    /// Acquisitions of the lock per second of the threads' CPU time. Like the figures below, this
    /// is the median of the repeats.
    pub operations_per_cpu_s: f64,
    /// Share of their CPU time that was spent in hints.
    pub spinning_share: f64,
    /// The longest wait for the lock, ms.
    pub longest_ms: f64,
    /// Parked waits per 1000 operations.
    pub parks_per_1000: f64,
}

impl StoredRecord for SpinReplayRecord {
    fn entry(&self) -> Entry {
        let names = self.algorithms.iter().map(|a| a.algorithm.as_str());
        let names: Vec<&str> = names.collect();
        self.header.to_entry::<Self>(
            self.host.name(),
            format!("spin replay {} of {}", self.experiment, names.join(", ")),
            self.answer.sentence.clone(),
        )
    }
}
