//! Infers how the CPUs are really wired, from measured figures alone.
//!
//! ```text
//! latency matrix ─┐
//! contention ─────┴─► Evidence ──► infer ──► Wiring: levels of groups, flat,
//!                                            or "inconclusive" and why
//! ```
//!
//! The system's report is not used: it is judged by the result.
//!
//! ```
//! use pinwise_wiring::{Evidence, LevelKind, PairMatrix, infer};
//!
//! // ns between eight CPUs, the lower triangle: two caches of four cores each.
//! let matrix = "\
//! 0
//! 25,0
//! 24,25,0
//! 25,24,26,0
//! 98,99,97,99,0
//! 99,98,99,98,25,0
//! 97,99,98,97,24,25,0
//! 98,97,99,99,25,26,24,0";
//! let latency_ns = PairMatrix::from_csv(matrix)?;
//! let wiring = infer(&Evidence { latency_ns, contention: None });
//! let caches = wiring.level(LevelKind::Llc).unwrap();
//! assert_eq!(caches.groups[1].to_string(), "4-7");
//! # Ok::<(), pinwise_wiring::MatrixError>(())
//! ```

mod clock;
mod clusters;
mod confidence;
mod cut;
mod few;
mod figures;
mod home;
mod infer;
mod kinds;
pub mod ladder;
mod leftovers;
mod linkage;
mod matrix;
mod relation;
mod search;
mod siblings;
mod thresholds;
mod words;

pub use confidence::{ConfidenceFactors, Weights};
pub use infer::{infer, infer_with};
pub use matrix::MatrixError;
pub use relation::{NO_CONTENTION, Relation, SMT_CONTENTION, classify_relation};
pub use thresholds::Thresholds;

use pinwise_topology::CpuSet;

/// A figure for every pair of CPUs, symmetric; NaN if not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairMatrix {
    cpus: Vec<usize>,
    /// Row by row, `cpus.len()` squared.
    values: Vec<f64>,
}

impl PairMatrix {
    /// A matrix over these CPUs (rows and columns in this order) without any figure yet.
    #[must_use]
    pub fn new(cpus: Vec<usize>) -> Self {
        let values = vec![f64::NAN; cpus.len() * cpus.len()];
        Self { cpus, values }
    }

    /// The CPUs of rows and columns.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Does the matrix have no rows?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The figure of two rows; NaN if not measured, and on the diagonal.
    #[must_use]
    pub fn at(&self, row: usize, column: usize) -> f64 {
        let index = row * self.cpus.len() + column;
        self.values.get(index).copied().unwrap_or(f64::NAN)
    }

    /// Sets the figure of two rows, in both orders.
    pub fn set(&mut self, row: usize, column: usize, value: f64) {
        let n = self.cpus.len();
        if row < n && column < n {
            self.values[row * n + column] = value;
            self.values[column * n + row] = value;
        }
    }
}

/// Measurements of a machine's wiring.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Median one-way time of a cache line between two CPUs, ns. If the line was homed on several
    /// NUMA nodes, the smallest.
    pub latency_ns: PairMatrix,
    /// Time of work while the other CPU works as well, over its time alone: 1 if nothing is shared,
    /// up to 2 for SMT siblings.
    pub contention: Option<PairMatrix>,
}

/// What the CPUs of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelKind {
    /// A core: SMT siblings.
    Smt,
    /// A last-level cache or a cluster.
    Llc,
    /// A package, or a die of one.
    Package,
    /// Another level that latency shows.
    Other,
}

/// A found level of sharing.
#[derive(Debug, Clone, PartialEq)]
pub struct WiringLevel {
    /// What is shared.
    pub kind: LevelKind,
    /// Groups of two or more CPUs, by lowest CPU. All other CPUs are alone at this level.
    pub groups: Vec<CpuSet>,
    /// Typical latency within a group (and in no smaller one), ns.
    pub inside_ns: f64,
    /// Typical latency to the nearest CPUs outside, ns; `None` if nothing is outside.
    pub outside_ns: Option<f64>,
    /// The probability that the groups are exactly these, from 0 to 1.
    pub confidence: f64,
    /// The factors of the confidence; `None` among two or three CPUs, where published latencies decide.
    pub factors: Option<ConfidenceFactors>,
    /// The figures that show the level, in one sentence.
    pub evidence: String,
}

/// The wiring of the CPUs that the figures show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wiring {
    /// Levels found, smallest groups first. They need not nest.
    pub levels: Vec<WiringLevel>,
    /// True if the figures show that no level divides the CPUs.
    pub is_flat: bool,
    /// Why there is no answer, as a full sentence.
    pub cannot_tell: Option<String>,
    /// Warnings about the figures, as full sentences.
    pub notes: Vec<String>,
}

impl Wiring {
    /// The first level of this kind.
    #[must_use]
    pub fn level(&self, kind: LevelKind) -> Option<&WiringLevel> {
        self.levels.iter().find(|level| level.kind == kind)
    }
}
