//! The faults that a simulated node can have, and their effect on its figures.

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
    /// An old microcode; on every third such node, the figures do not change.
    OldMicrocode,
    /// Clocks are 8 to 25 % lower while all cores work.
    Throttling,
    /// Other processes take a varying 5 to 15 % of the cores.
    NoisyNeighbour,
}

impl Fault {
    /// All kinds of fault.
    pub const ALL: [Self; 6] = [
        Self::SlowDimmChannel,
        Self::SmtOff,
        Self::WrongNps,
        Self::OldMicrocode,
        Self::Throttling,
        Self::NoisyNeighbour,
    ];

    /// Its name in records.
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

    /// Its effect in a few words.
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

/// The effect of a fault on a node. Numbers are changes of logarithms, where 0 is no change, except
/// `width`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    /// Clock of one busy core, and of all cores.
    pub(super) clock: [f64; 2],
    /// Rate of work apart from the clock, on one core and on all.
    pub(super) work: [f64; 2],
    /// Memory bandwidth of each package.
    pub(super) package_bandwidth: [f64; 2],
    /// Memory bandwidth of all packages, of one core, and from the other package.
    pub(super) bandwidth: f64,
    pub(super) core_bandwidth: f64,
    pub(super) far_bandwidth: f64,
    /// Memory latency in the same package, in the other one, and under load.
    pub(super) near_latency: f64,
    pub(super) far_latency: f64,
    pub(super) loaded_latency: f64,
    /// Latency between cores.
    pub(super) core_latency: f64,
    /// Time of switching and waking threads.
    pub(super) switching: f64,
    /// Factor by which intervals are wider; 1 is no change.
    pub(super) width: f64,
    /// Is the effect different for every figure of work?
    pub(super) is_unsteady: bool,
    pub(super) has_smt: bool,
    pub(super) has_wrong_nodes: bool,
    pub(super) has_old_microcode: bool,
    /// Number of DIMMs that the system does not find.
    pub(super) dimms_missing: u32,
}

impl Effect {
    /// No fault.
    pub(super) const NONE: Self = Self {
        clock: [0.0; 2],
        work: [0.0; 2],
        package_bandwidth: [0.0; 2],
        bandwidth: 0.0,
        core_bandwidth: 0.0,
        far_bandwidth: 0.0,
        near_latency: 0.0,
        far_latency: 0.0,
        loaded_latency: 0.0,
        core_latency: 0.0,
        switching: 0.0,
        width: 1.0,
        is_unsteady: false,
        has_smt: true,
        has_wrong_nodes: false,
        has_old_microcode: false,
        dimms_missing: 0,
    };

    /// Draws the effect of a fault on one node.
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
                    // Threads of both packages share the work, and those of the slower
                    // package determine most of its duration.
                    bandwidth: 0.7 * lost,
                    loaded_latency: -0.5 * lost,
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
                near_latency: -uniform(0.05, 0.10),
                far_latency: uniform(0.02, 0.05),
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
                    loaded_latency: -lost,
                    core_latency: -0.3 * lost,
                    switching: -lost,
                    width: 3.0,
                    is_unsteady: true,
                    ..none
                }
            }
        }
    }
}
