//! A benchmark over the gates of many commits, chained.

use serde::{Deserialize, Serialize};

use super::metric::{EffectRecord, MetricRecord};

/// How a benchmark's figure changed from commit to commit, by the gates between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateHistory {
    /// The benchmark.
    pub benchmark: String,
    /// Its suite.
    pub suite: String,
    /// Its figure.
    pub metric: MetricRecord,
    /// Limit on the probability of reporting any false change.
    pub alpha: f64,
    /// Steps from commit to commit, oldest first.
    pub steps: Vec<HistoryStep>,
    /// Ranges of commits over which the figure changed.
    pub changes: Vec<HistoryChange>,
    /// How many changes there are, as a full sentence.
    pub sentence: String,
    /// What the figures are based on, and what is left out, in full sentences.
    pub method: String,
    /// Gates of this benchmark that are not connected to the newest: those of folders, and of
    /// commits that no other gate shares.
    pub left_out: usize,
}

/// One commit compared with the one before it in the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryStep {
    /// Commit before.
    pub base: String,
    /// Commit after.
    pub head: String,
    /// Ids of the records that measured it.
    pub records: Vec<String>,
    /// When the last of them began.
    pub started: String,
    /// The change, with its interval at `alpha` for this step alone.
    pub effect: EffectRecord,
    /// Standard deviation of the ratio between its records (sessions, hosts, builds) beyond their
    /// own errors, as a share. The interval includes it. 0 for one record.
    pub between: f64,
    /// The change since the first commit of the history.
    pub since_first: EffectRecord,
}

/// A range of commits over which the figure changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryChange {
    /// The last commit before the change.
    pub base: String,
    /// The first commit with the whole change.
    pub head: String,
    /// Number of steps of the history that it spans.
    pub steps: usize,
    /// The size of the change; the interval is valid for all ranges together.
    pub effect: EffectRecord,
    /// In the words of the metric: `slower`.
    pub word: String,
    /// Is it for the worse?
    pub is_worse: bool,
    /// The change in words: `slower: +4.0 % (+3.1 to +4.9 %), over 2 steps`.
    pub sentence: String,
}
