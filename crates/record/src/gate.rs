//! Results of `gate`: two builds of a program, compared over a suite of benchmarks.
//!
//! Every benchmark keeps the pairs of runs that its verdict is based on. "Slower" is claimed at a
//! level shared by the whole suite; "not slower" is claimed at the full level, because the gate
//! passes only if all benchmarks pass (an intersection-union test).

use serde::{Deserialize, Serialize};

use super::comparison::{BlockScore, Stopped, TimedOutRecord};
use super::host::HostRecord;
use super::metric::{EffectRecord, MetricRecord};
use super::named::open_enum;
use super::outcome::GateOutcome;
use super::{Entry, Header, StoredRecord};
use pinwise_format::count;
use pinwise_stats::describe::median;

/// Two builds over a suite of benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.gate/1")]
pub struct GateRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// The arguments of pinwise that started it.
    pub argv: Vec<String>,
    /// Name of the suite.
    pub suite: String,
    /// Seed of the order of runs.
    pub seed: u64,
    /// The build to compare with.
    pub base: BuildRecord,
    /// The build that is judged.
    pub head: BuildRecord,
    /// How it was planned.
    pub plan: GatePlanRecord,
    /// The benchmarks, in the order of the suite.
    pub benchmarks: Vec<GateBenchmark>,
    /// The result.
    pub verdict: GateVerdict,
    /// Why it ended; `null` while it runs or if it was killed.
    pub stopped: Option<Stopped>,
    /// Why it ended, in words, or that it has not.
    pub ended: String,
    /// Time from start to end, seconds.
    pub elapsed_s: f64,
}

/// A build of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BuildRecord {
    /// As on the command line: a folder or a revision.
    pub name: String,
    /// Folder that its benchmarks start in.
    pub folder: String,
    /// The commit, if it was a revision; `null` for a folder with uncommitted changes.
    pub commit: Option<String>,
    /// Number of the build, if several were requested.
    pub variant: Option<u32>,
}

/// Number of digits of a commit that are shown.
const COMMIT_DIGITS: usize = 7;

fn shorten_commit(commit: &str) -> &str {
    commit.get(..COMMIT_DIGITS).unwrap_or(commit)
}

impl BuildRecord {
    /// The first digits of its commit.
    #[must_use]
    pub fn short_commit(&self) -> Option<&str> {
        self.commit.as_deref().map(shorten_commit)
    }

    /// Its name, with the commit that it meant: `HEAD (1a2b3c4)`.
    #[must_use]
    pub fn label(&self) -> String {
        let commit = self.commit.as_deref().filter(|commit| {
            let is_beginning = commit.starts_with(&self.name);
            !(is_beginning && self.name.len() >= COMMIT_DIGITS)
        });
        commit.map(shorten_commit).map_or_else(
            || self.name.clone(),
            |short| format!("{} ({short})", self.name),
        )
    }
}

/// How a gate was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GatePlanRecord {
    /// Two-sided error rate: of calling any benchmark of the suite slower or faster that is not,
    /// and of passing although one is slower by its smallest effect.
    pub alpha: f64,
    /// Budget in seconds.
    pub budget_s: Option<f64>,
    /// Maximum number of pairs of runs per benchmark.
    pub max_pairs: Option<usize>,
    /// Was there no limit, so that it runs until every benchmark is decided?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_ended: bool,
    /// How pairs enter the test.
    pub score: BlockScore,
}

/// A benchmark and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateBenchmark {
    /// Its name, unique in the suite.
    pub name: String,
    /// The command, started in the build's folder.
    pub command: Vec<String>,
    /// The figure.
    pub metric: MetricRecord,
    /// Smallest slow-down of interest, as a share: 0.01 is 1 %.
    pub min_effect: f64,
    /// Its outcome.
    pub outcome: GateOutcome,
    /// The outcome in the words of its figure; if it passed, with the likely change: `passed
    /// (faster)`.
    pub standing: String,
    /// As a full sentence.
    pub sentence: String,
    /// Median figure of the base; `null` without a pair.
    pub base: Option<f64>,
    /// Median figure of the head.
    pub head: Option<f64>,
    /// Cost of the head divided by the base's; `null` without an estimate.
    pub ratio: Option<f64>,
    /// Lower end of the interval that holds for all benchmarks and looks
    /// together; `null` with too few pairs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Nominal level of that interval, from its look.
    pub level: Option<f64>,
    /// Upper end of the interval of this benchmark alone: it passes if this is below 1 plus the
    /// smallest effect.
    pub high_alone: Option<f64>,
    /// `ratio` with the first interval as a change of the figure.
    pub effect: Option<EffectRecord>,
    /// The change that its outcome is based on: `+5.4 %`, `+2.1 % CPU` if CPU time decides; empty
    /// without one.
    pub change: String,
    /// The interval that its outcome is based on: `−1.1 to +1.7 %`, or `≤ +0.9 %` if only one end
    /// counts or is known; empty without one.
    pub interval: String,
    /// Its CPU time, if it is judged as well as wall-clock time; otherwise `null`.
    pub cpu: Option<GateCpuTime>,
    /// The ratio for chaining in a history; `null` for builds without commits, before the end, and
    /// with too few pairs.
    pub link: Option<GateLink>,
    /// p-value adjusted for looks, and for the suite by the false-discovery rate (Benjamini and
    /// Hochberg); `null` with too few pairs.
    pub q: Option<f64>,
    /// Pairs of runs, in time order.
    pub pairs: Vec<GatePair>,
    /// Why there is no verdict, if more time would not give one.
    pub problem: Option<String>,
    /// If runs of one build hit the time-out: how much slower it is at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<TimedOutRecord>,
}

/// CPU time of a benchmark. It varies less with other programs' load than wall-clock time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateCpuTime {
    /// CPU time of the head divided by the base's.
    pub ratio: f64,
    /// Lower end of the interval that holds for all benchmarks and looks together; `null`
    /// with too few pairs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Nominal level of that interval, from its look.
    pub level: Option<f64>,
    /// Upper end of the interval of this benchmark alone.
    #[serde(default)]
    pub high_alone: Option<f64>,
    /// As a change.
    pub effect: EffectRecord,
    /// The ratio as a history chains it.
    pub link: Option<GateLink>,
    /// Is the outcome that of CPU time alone, while wall-clock time is undecided?
    pub decides: bool,
}

/// A ratio that does not depend on when the gate stopped: the number of pairs follows from the
/// width of the interval alone, not from its position.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateLink {
    /// Cost of the head divided by the base's.
    pub ratio: f64,
    /// Standard error of its logarithm.
    pub error: f64,
    /// Number of pairs that it is based on: the first ones of the gate.
    pub pairs: usize,
}

/// A run of each build, one right after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GatePair {
    /// Start of the first run, seconds from the start of the gate.
    pub at_s: f64,
    /// Figure of the base.
    pub base: f64,
    /// Figure of the head.
    pub head: f64,
    /// Did the head run first?
    pub head_first: bool,
    /// CPU time of the base, seconds; `null` if it was not read.
    pub base_cpu_s: Option<f64>,
    /// CPU time of the head.
    pub head_cpu_s: Option<f64>,
}

open_enum! {
    /// The verdict of a gate.
    GateDecision {
        /// No benchmark is slower by its smallest effect.
        Pass = "pass",
        /// A benchmark is slower.
        Fail = "fail",
        /// A benchmark could not be judged, and none is known to be slower.
        Broken = "broken",
        /// More time is needed.
        Undecided = "undecided",
    }
}

/// The result of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateVerdict {
    /// The decision.
    pub decision: GateDecision,
    /// As a full sentence.
    pub sentence: String,
    /// What to do; may be empty.
    pub advice: String,
}

impl GateRecord {
    /// A short title.
    #[must_use]
    pub fn title(&self) -> String {
        let benchmarks = count(self.benchmarks.len(), "benchmark");
        format!(
            "{} against {}: {} ({benchmarks})",
            self.head.label(),
            self.base.label(),
            self.suite
        )
    }

    /// Benchmarks with this outcome.
    pub fn benchmarks_with(&self, outcome: &GateOutcome) -> impl Iterator<Item = &GateBenchmark> {
        let benchmarks = self.benchmarks.iter();
        benchmarks.filter(move |benchmark| benchmark.outcome == *outcome)
    }
}

impl GateBenchmark {
    /// Is its outcome that of its CPU time alone?
    #[must_use]
    pub fn is_decided_by_cpu(&self) -> bool {
        self.cpu.as_ref().is_some_and(|cpu| cpu.decides)
    }

    /// Is it undecided although it certainly needs no more CPU time?
    #[must_use]
    pub fn is_open_but_for_cpu(&self) -> bool {
        self.outcome == GateOutcome::Undecided && self.needs_no_more_cpu()
    }

    /// Does its CPU time exclude a slow-down by the smallest effect?
    fn needs_no_more_cpu(&self) -> bool {
        let high = self.cpu.as_ref().and_then(|cpu| cpu.high);
        high.is_some_and(|high| high < 1.0 + self.min_effect)
    }

    /// May it be slower although it certainly needs no more CPU time? Then it waits longer.
    #[must_use]
    pub fn waits_longer(&self) -> bool {
        !self.is_decided_by_cpu()
            && self.low.is_some_and(|low| low > 1.0)
            && self.needs_no_more_cpu()
    }

    /// The median figures of base and head that the outcome is based on, and their unit.
    #[must_use]
    pub fn decisive_medians(&self) -> ([Option<f64>; 2], &str) {
        if !self.is_decided_by_cpu() {
            return ([self.base, self.head], &self.metric.unit);
        }
        let median_cpu_s = |cpu_s: fn(&GatePair) -> Option<f64>| {
            let times: Option<Vec<f64>> = self.pairs.iter().map(cpu_s).collect();
            median(&times?)
        };
        (
            [
                median_cpu_s(|pair| pair.base_cpu_s),
                median_cpu_s(|pair| pair.head_cpu_s),
            ],
            "s",
        )
    }

    /// The change that its outcome is based on: that of CPU time if it decides.
    #[must_use]
    pub fn decisive_effect(&self) -> Option<&EffectRecord> {
        let cpu = self.cpu.as_ref().filter(|cpu| cpu.decides);
        cpu.map(|cpu| &cpu.effect).or(self.effect.as_ref())
    }

    /// The text for the field `change`, which older records lack.
    #[must_use]
    pub fn change(&self) -> String {
        if let Some(late) = &self.timed_out {
            return late.change.clone();
        }
        let text = self.decisive_effect().map_or("", |effect| &effect.text);
        match self.is_decided_by_cpu() {
            true => format!("{text} CPU"),
            false => text.to_owned(),
        }
    }

    /// The text for the field `interval`. A benchmark passes by the upper end of its own interval;
    /// the interval for the whole suite is wider and may reach beyond the smallest effect.
    #[must_use]
    pub fn interval(&self) -> String {
        let both = self.decisive_effect().map_or("", |effect| &effect.interval);
        let cpu = self.cpu.as_ref().filter(|cpu| cpu.decides);
        match cpu.map_or(self.high_alone, |cpu| cpu.high_alone) {
            Some(high) if self.outcome == GateOutcome::Passed || both.is_empty() => {
                self.metric.limit(high)
            }
            _ => both.to_owned(),
        }
    }

    /// Is it one of the suite's changes at this false-discovery rate?
    #[must_use]
    pub fn is_change(&self, rate: f64) -> bool {
        self.q.is_some_and(|q| q <= rate)
    }

    /// The likely change, such as `faster`, if it is one of the suite's changes. An estimate beyond
    /// the limit is not enough: of many unchanged benchmarks, some always lie beyond it.
    #[must_use]
    pub fn find_likely_change(&self, rate: f64) -> Option<&str> {
        let ratio = self.ratio.unwrap_or(1.0);
        self.is_change(rate).then(|| self.metric.word_of(ratio))
    }

    /// Its outcome in words, with its likely change at this false-discovery rate.
    #[must_use]
    pub fn describe_outcome(&self, rate: f64) -> String {
        let metric = &self.metric;
        match &self.outcome {
            GateOutcome::Slower if self.timed_out.is_some() => "timed out".to_owned(),
            GateOutcome::Slower if self.is_decided_by_cpu() => {
                format!("{} (CPU time)", metric.worse_word)
            }
            GateOutcome::Slower => metric.worse_word.clone(),
            GateOutcome::Faster => metric.better_word.clone(),
            GateOutcome::Passed if self.is_decided_by_cpu() => "passed (CPU time)".to_owned(),
            GateOutcome::Passed => match self.find_likely_change(rate) {
                Some(word) => format!("passed ({word})"),
                None => self.outcome.as_str().to_owned(),
            },
            GateOutcome::Undecided if self.problem.is_some() => "undecided (withheld)".to_owned(),
            other => other.as_str().to_owned(),
        }
    }
}

impl StoredRecord for GateRecord {
    fn entry(&self) -> Entry {
        let (host, sentence) = (self.host.name(), &self.verdict.sentence);
        self.header
            .to_growing_entry::<Self>(self.stopped.as_ref(), host, self.title(), sentence)
    }
}
