//! What can be wrong with a node, and what it does to its figures.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A memory channel is slow or dead: a package has 12 to 20 % less bandwidth. Every second such
    /// node also lacks a DIMM.
    SlowDimmChannel,
    /// One thread per core.
    SmtOff,
    /// Packages are cut into more NUMA nodes than those of the others.
    WrongNps,
    /// An old microcode; on every third such node the figures are those of
    /// others.
    OldMicrocode,
    /// Clocks are 8 to 25 % lower while all cores work.
    Throttling,
    /// Something else takes 5 to 15 % of the cores, unsteadily.
    NoisyNeighbour,
}

impl Fault {
    /// All, in this order.
    pub const ALL: [Self; 6] = [
        Self::SlowDimmChannel,
        Self::SmtOff,
        Self::WrongNps,
        Self::OldMicrocode,
        Self::Throttling,
        Self::NoisyNeighbour,
    ];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowDimmChannel => "slow-dimm-channel",
            Self::SmtOff => "smt-off",
            Self::WrongNps => "wrong-nps",
            Self::OldMicrocode => "old-microcode",
            Self::Throttling => "throttling",
            Self::NoisyNeighbour => "noisy-neighbour",
        }
    }

    /// What it does, in some words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::SlowDimmChannel => "memory bandwidth of a package 12 to 20 % lower",
            Self::SmtOff => "one thread per core",
            Self::WrongNps => "packages cut into more NUMA nodes",
            Self::OldMicrocode => "an old microcode, figures hardly different",
            Self::Throttling => "clock of all cores 8 to 25 % lower",
            Self::NoisyNeighbour => "5 to 15 % less compute, unsteady",
        }
    }
}

/// What a fault does. Figures are changes of logarithms, of which 0 is none, except `width`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    /// Clock of one busy core, and of all.
    pub(super) clock: [f64; 2],
    /// Rate of work beyond the clock, one core and all.
    pub(super) work: [f64; 2],
    /// Memory bandwidth: of each package, of all, of one core, far.
    pub(super) package_bandwidth: [f64; 2],
    pub(super) bandwidth: f64,
    pub(super) core_bandwidth: f64,
    pub(super) far_bandwidth: f64,
    /// Memory latency near, far, and under load.
    pub(super) near: f64,
    pub(super) far: f64,
    pub(super) loaded: f64,
    /// Latency between cores.
    pub(super) cores: f64,
    /// Switching and waking threads.
    pub(super) switching: f64,
    /// Factor by which intervals are wider; 1 is none.
    pub(super) width: f64,
    /// Does it affect every figure of work differently?
    pub(super) is_unsteady: bool,
    pub(super) has_smt: bool,
    pub(super) has_wrong_nodes: bool,
    pub(super) has_old_microcode: bool,
    /// DIMMs that are not seen.
    pub(super) dimms_missing: u32,
}

impl Effect {
    /// A node as it should be.
    pub(super) const NONE: Self = Self {
        clock: [0.0; 2],
        work: [0.0; 2],
        package_bandwidth: [0.0; 2],
        bandwidth: 0.0,
        core_bandwidth: 0.0,
        far_bandwidth: 0.0,
        near: 0.0,
        far: 0.0,
        loaded: 0.0,
        cores: 0.0,
        switching: 0.0,
        width: 1.0,
        is_unsteady: false,
        has_smt: true,
        has_wrong_nodes: false,
        has_old_microcode: false,
        dimms_missing: 0,
    };

    /// What a fault does to one node.
    pub(super) fn from_fault(fault: Fault, random: &mut ChaCha8Rng) -> Self {
        let mut uniform = |from: f64, to: f64| random.random_range(from..to);
        let none = Self::NONE;
        match fault {
            Fault::SlowDimmChannel => {
                let lost = (1.0 - uniform(0.12, 0.20)).ln();
                let package = usize::from(uniform(0.0, 1.0) < 0.5);
                let mut package_bandwidth = [0.0; 2];
                package_bandwidth[package] = lost;
                Self {
                    package_bandwidth,
                    // Threads of both packages share the work: the slower one
                    // sets most of the pace.
                    bandwidth: 0.7 * lost,
                    loaded: -0.5 * lost,
                    dimms_missing: u32::from(uniform(0.0, 1.0) < 0.5),
                    ..none
                }
            }
            Fault::SmtOff => Self {
                has_smt: false,
                ..none
            },
            Fault::WrongNps => Self {
                has_wrong_nodes: true,
                near: -uniform(0.05, 0.10),
                far: uniform(0.02, 0.05),
                bandwidth: uniform(0.0, 0.03),
                ..none
            },
            Fault::OldMicrocode => {
                let is_felt = uniform(0.0, 3.0) > 1.0;
                let lost = if is_felt { uniform(0.01, 0.04) } else { 0.0 };
                Self {
                    has_old_microcode: true,
                    work: [-lost, -lost],
                    switching: 2.0 * lost,
                    ..none
                }
            }
            Fault::Throttling => {
                let lost = (1.0 - uniform(0.08, 0.25)).ln();
                Self {
                    clock: [0.3 * lost, lost],
                    bandwidth: 0.1 * lost,
                    width: 2.0,
                    ..none
                }
            }
            Fault::NoisyNeighbour => {
                let lost = (1.0 - uniform(0.05, 0.15)).ln();
                Self {
                    work: [lost, lost],
                    package_bandwidth: [0.5 * lost; 2],
                    bandwidth: 0.5 * lost,
                    core_bandwidth: 0.3 * lost,
                    far_bandwidth: 0.3 * lost,
                    loaded: -lost,
                    cores: -0.3 * lost,
                    switching: -lost,
                    width: 3.0,
                    is_unsteady: true,
                    ..none
                }
            }
        }
    }
}
