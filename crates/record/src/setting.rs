//! Settings of an arm's runs besides their placement, as a record.

use serde::{Deserialize, Serialize};

use super::contrast::ContrastVerdict;
use super::metric::{EffectRecord, MetricRecord};
use super::run::MetricReading;
use pinwise_placement::CpuLimit;
use pinwise_workload::SchedulingPolicy;

/// Settings of an arm's runs besides their placement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingRecord {
    /// The limit on CPU time of each run's cgroup; `null` without one.
    pub limit: Option<CpuLimitRecord>,
    /// Did each run have its CPUs in a cpuset of its own?
    pub is_exclusive: bool,
    /// Were those CPUs isolated from the scheduler, and interrupts moved away?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_isolated: bool,
    /// Commands that ran beside each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<CompanionRecord>,
    /// The scheduling policy, as on the command line; absent if it was inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The niceness; absent if it was inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Was core scheduling used, so that no other program ran on the same core at the same time?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_core_scheduling: bool,
}

/// A command that ran beside each run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompanionRecord {
    /// Its name.
    pub name: String,
    /// Its arguments, the program first.
    pub command: Vec<String>,
}

/// A companion's own figure, alone and beside the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompanionFigureRecord {
    /// Its name.
    pub name: String,
    /// Its figure.
    pub metric: MetricRecord,
    /// Runs without the program, one in each block, each as long as a run of the program.
    pub alone: Vec<AloneRecord>,
    /// How each arm that ran beside it changes its cost.
    pub costs: Vec<CompanionCostRecord>,
}

/// A run of a companion without the program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AloneRecord {
    /// The block whose runs it is compared with.
    pub block: usize,
    /// Its figure.
    pub metric: MetricReading,
}

/// How an arm changes a companion's cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompanionCostRecord {
    /// Name of the arm, without the companion's.
    pub arm: String,
    /// The companion's cost beside the arm, divided by its cost alone.
    pub ratio: f64,
    /// The change of its figure, with a 95 % interval.
    pub effect: EffectRecord,
}

/// What a companion changes for an arm: the arm beside it against the same arm without.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompanionEffectRecord {
    /// Name of the companion.
    pub companion: String,
    /// Name of the arm, without the companion's.
    pub arm: String,
    /// The arm's cost beside the companion, divided by its cost without.
    pub ratio: f64,
    /// Lower end of its interval; `null` with too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval, that of all contrasts together.
    pub confidence: f64,
    /// Is the arm faster or slower beside it?
    pub verdict: ContrastVerdict,
    /// The change of the figure, with its interval.
    pub effect: EffectRecord,
}

/// A limit on CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuLimitRecord {
    /// CPU time per wall time: 2.5 means two and a half CPUs.
    pub cpus: f64,
    /// The period of the limit, seconds.
    pub period_s: f64,
}

impl CpuLimitRecord {
    /// Converts it back; `None` if it is invalid.
    #[must_use]
    pub fn to_limit(&self) -> Option<CpuLimit> {
        let period = std::time::Duration::try_from_secs_f64(self.period_s).ok()?;
        CpuLimit::new(self.cpus, period).ok()
    }
}

impl From<CpuLimit> for CpuLimitRecord {
    fn from(limit: CpuLimit) -> Self {
        Self {
            cpus: limit.cpus(),
            period_s: limit.period().as_secs_f64(),
        }
    }
}

impl SettingRecord {
    /// Did the command run in a cgroup with a limit or a cpuset?
    #[must_use]
    pub const fn has_group(&self) -> bool {
        self.limit.is_some() || self.is_exclusive
    }

    /// The words that start a command with its policy, niceness and core scheduling.
    #[must_use]
    pub fn launcher_words(&self) -> Vec<String> {
        let policy = self.policy.as_ref().and_then(|text| text.parse().ok());
        let mut words = policy
            .map(SchedulingPolicy::chrt_command)
            .unwrap_or_default();
        if let Some(nice) = self.nice {
            words.extend(["nice", "-n"].map(str::to_owned));
            words.push(nice.to_string());
        }
        if self.has_core_scheduling {
            words.extend(["coresched", "new", "--"].map(str::to_owned));
        }
        words
    }

    /// Is nothing set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
