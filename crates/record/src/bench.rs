//! Results of `bench`: built-in workloads over threads, placements, instruction sets and sizes.
//!
//! Every entry of [`Bench::kernels`] is made from one stored comparison, whose id it keeps; the
//! runs are stored there and not here. A figure that was not measured is `null`, never 0.

use serde::{Deserialize, Serialize};

use super::comparison::{Estimate, Stopped};
use super::header::Header;
use super::host::HostRecord;

/// Built-in workloads, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.bench/1")]
pub struct Bench {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// When it was last written, RFC 3339.
    pub ended: String,
    /// The machine it ran on.
    pub host: HostRecord,
    /// Seed from which the seeds of the comparisons are derived.
    pub seed: u64,
    /// The requested suite; `null` if kernels were named.
    pub suite: Option<String>,
    /// Time for everything, seconds.
    pub budget_s: Option<f64>,
    /// Smallest effect of interest, as a share.
    pub min_effect: f64,
    /// Whether cores have several CPUs here.
    pub smt: SmtRecord,
    /// One entry per comparison.
    pub kernels: Vec<BenchKernel>,
    /// Geometric means over the kernels of a group.
    pub scores: Vec<GroupScore>,
    /// The conclusions, as full sentences.
    pub conclusions: Vec<String>,
    /// What to do next.
    pub advice: String,
    /// Number of planned comparisons.
    pub planned: usize,
    /// Why it ended; `null` while it runs or if it was killed.
    pub stopped: Option<Stopped>,
    /// Time from start to end, seconds.
    pub elapsed_s: f64,
}

/// What is known about SMT on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SmtRecord {
    /// Whether siblings are reported, measured, absent or unstable.
    pub state: SmtState,
    /// As a sentence, with its reason.
    pub sentence: String,
    /// Advice that follows; may be empty.
    pub advice: String,
}

/// Whether the machine has SMT siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SmtState {
    /// The system reports them, and nothing contradicts it.
    Reported,
    /// Measurement found siblings where the system reports none, or others.
    Measured,
    /// This process may not use two siblings of a core.
    Absent,
    /// CPUs were siblings at some times and not at others.
    Unstable,
}

/// What is measured about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// One CPU of a core against all of them.
    SmtCore,
    /// One thread per core against one per CPU, on the whole machine.
    SmtMachine,
    /// Speed-up over threads and placements.
    Scaling,
    /// Instruction sets against each other.
    Builds,
    /// Sizes of the working set.
    Sizes,
}

/// A kernel and one question about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchKernel {
    /// The kernel.
    pub kernel: String,
    /// The group of kernels that it belongs to.
    pub group: String,
    /// The question.
    pub question: Question,
    /// Name of the stored comparison.
    pub comparison: String,
    /// Units of work of each run, all threads together.
    pub work: u64,
    /// The unit of work that is counted, such as `calls`.
    pub operation: String,
    /// Bytes in the working set of each thread of the baseline; `null` if unknown.
    pub working_set_bytes: Option<u64>,
    /// The working set compared with the caches, as a sentence; empty if unknown.
    pub cache_fit: String,
    /// Name of the cell that speed-ups are relative to.
    pub baseline: String,
    /// Ways in which it was run, the baseline first.
    pub cells: Vec<BenchCell>,
    /// What the other CPUs of a core add, as a share: 0.18 is 18 % more. Only for the SMT
    /// questions.
    pub smt_yield: Option<Estimate>,
    /// The placements of equal numbers of threads that certainly differ most; `null` if none do.
    #[serde(default)]
    pub placement_difference: Option<PlacementDifference>,
    /// Confidence of the intervals, valid for all cells together.
    pub confidence: f64,
    /// Whole blocks that the figures are based on.
    pub blocks: usize,
    /// Why the comparison ended.
    pub stopped: Option<Stopped>,
}

/// How much the placement of threads matters to a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlacementDifference {
    /// The number of threads at which it matters most.
    pub threads: usize,
    /// The placement that does most work with them.
    pub best: String,
    /// The placement that does least.
    pub worst: String,
    /// How much more work the best does, as a share: 0.18 is 18 % more.
    pub more: Estimate,
}

/// One way in which a kernel was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchCell {
    /// Its name, unique in the comparison.
    pub name: String,
    /// Threads that shared the work.
    pub threads: usize,
    /// The requested placement, without the number of CPUs.
    pub family: String,
    /// The placement.
    pub placement: String,
    /// Its CPUs, as a list.
    pub cpus: String,
    /// Other placements that mean the same CPUs here.
    pub same_as: Vec<String>,
    /// Requested instruction set.
    pub isa: String,
    /// Value of `--size`; `null` for the kernel's default.
    pub size: Option<u64>,
    /// Time of a run without preparing, seconds: median with its interval.
    pub seconds: Option<Estimate>,
    /// Operations per second: median with its interval; `null` if operations are unknown.
    pub rate: Option<Estimate>,
    /// Bytes per second, if that is measured.
    pub bytes_per_s: Option<Estimate>,
    /// Its rate divided by the baseline's, with the interval of the contrast.
    pub speed_up: Option<Estimate>,
    /// Speed-up divided by the ratio of threads: 1 is linear.
    pub efficiency: Option<f64>,
    /// Why its runs do not count; `null` if they do.
    pub invalid: Option<String>,
}

/// Score of a group of kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupScore {
    /// The group.
    pub group: String,
    /// The question.
    pub question: Question,
    /// The cell scored, such as `4 @ spread`.
    pub cell: String,
    /// The cell that has score 1.
    pub reference: String,
    /// Geometric mean of the cell's speed-ups relative to the reference.
    pub score: f64,
    /// The kernels that enter the mean.
    pub kernels: Vec<String>,
}

impl Bench {
    /// A short title.
    #[must_use]
    pub fn title(&self) -> String {
        if let Some(suite) = &self.suite {
            return format!("bench --suite {suite}");
        }
        let mut names: Vec<&str> = self.kernels.iter().map(|k| k.kernel.as_str()).collect();
        names.dedup();
        format!("bench {}", names.join(" "))
    }

    /// Name of the machine, for lists.
    #[must_use]
    pub fn host_name(&self) -> String {
        self.host.name()
    }
}

impl BenchKernel {
    /// The cell that the others are compared with.
    #[must_use]
    pub fn baseline_cell(&self) -> Option<&BenchCell> {
        self.cells.iter().find(|cell| cell.name == self.baseline)
    }
}
