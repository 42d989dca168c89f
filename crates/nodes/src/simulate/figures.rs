//! The fifty figures of a node: their names, their values on each kind of server, and what they
//! depend on.
//!
//! The report compares nodes of one kind by ratios, so what must be right is which figures move
//! together if clocks, memory or threads differ ([`Figure::shift`]). Their heights need only be
//! plausible. Latencies, bandwidth, clocks and PAUSE are those of `generation`. All other numbers
//! are made up, and round: rates of kernels (those of real cores, in
//! `docs/benchmarks/kernels.csv`, lie up to fifteen times higher or lower), how much of their time
//! is memory's, what SMT adds, times of switching, the bytes that a core has in flight.

use super::fault::Effect;
use super::generation::Generation;

/// Share of the theoretical bandwidth that a sweep over memory reaches, about
/// what STREAM does.
const REACHED: f64 = 0.8;

/// A figure that nodes have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub(super) step: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    of: Of,
}

/// What a figure measures, and so what it depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Of {
    /// Latency between two CPUs, of one of four levels.
    Cores(usize),
    Pause,
    /// A load from L1, L2 or L3.
    Cache(usize),
    Near,
    Far,
    Loaded,
    /// Memory bandwidth: of a package's first node, all, one core, far.
    Node(usize),
    AllNodes,
    OneCore,
    FarNode,
    /// Clock of one busy core, or of all.
    Clock(usize),
    /// Switching or waking threads, ns.
    Switching(f64),
    /// A kernel on one core, or all (0, 1): its rate on the oldest kind of
    /// server and on one core, how much of its time is memory's, and by how
    /// much a core's second thread adds to it.
    Work(usize, f64, f64, f64),
    /// What a core's second thread adds.
    SmtYield(f64),
    /// A sweep over memory by all, with its share of the bandwidth.
    Sweep(f64),
    /// Waits for memory by one core.
    Chase,
    /// A kernel in last-level caches.
    CacheSweep,
    /// Threads that write the same line: operations per transfer between packages.
    Contended(f64),
}

/// What a node is, beside its noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Condition {
    /// How much faster than others of its kind its processors are, and its
    /// memory: logarithms.
    pub(super) silicon: f64,
    pub(super) memory: f64,
    pub(super) effect: Effect,
}

const WIRING: &str = "wiring";
const ONE: &str = "kernels-one-core";
const ALL: &str = "kernels-all-cores";
const SMT: &str = "smt-yield";
const MEMORY: &str = "memory";

const fn figure(step: &'static str, name: &'static str, unit: &'static str, of: Of) -> Figure {
    Figure {
        step,
        name,
        unit,
        of,
    }
}

/// All, in the order of their steps.
pub(super) const FIGURES: [Figure; 50] = [
    figure(WIRING, "latency, siblings", "ns", Of::Cores(0)),
    figure(WIRING, "latency, within LLC", "ns", Of::Cores(1)),
    figure(WIRING, "latency, within package", "ns", Of::Cores(2)),
    figure(WIRING, "latency, between packages", "ns", Of::Cores(3)),
    figure(WIRING, "PAUSE", "ns", Of::Pause),
    figure(WIRING, "load latency, L1", "ns", Of::Cache(0)),
    figure(WIRING, "load latency, L2", "ns", Of::Cache(1)),
    figure(WIRING, "load latency, L3", "ns", Of::Cache(2)),
    figure(WIRING, "memory latency, local", "ns", Of::Near),
    figure(WIRING, "memory latency, remote", "ns", Of::Far),
    figure(WIRING, "memory latency, loaded", "ns", Of::Loaded),
    figure(
        WIRING,
        "bandwidth, package 0, one node",
        "GB/s",
        Of::Node(0),
    ),
    figure(
        WIRING,
        "bandwidth, package 1, one node",
        "GB/s",
        Of::Node(1),
    ),
    figure(WIRING, "bandwidth, all nodes", "GB/s", Of::AllNodes),
    figure(WIRING, "bandwidth, one core", "GB/s", Of::OneCore),
    figure(WIRING, "bandwidth, remote", "GB/s", Of::FarNode),
    figure(WIRING, "clock, one core", "GHz", Of::Clock(0)),
    figure(WIRING, "clock, all cores", "GHz", Of::Clock(1)),
    figure(WIRING, "context switch", "ns", Of::Switching(1400.0)),
    figure(WIRING, "futex wake", "ns", Of::Switching(2600.0)),
    figure(ONE, "integer", "/s", Of::Work(0, 6.1e8, 0.0, 0.25)),
    figure(ONE, "fibonacci", "/s", Of::Work(0, 4.3e8, 0.0, 0.20)),
    figure(ONE, "napierian", "/s", Of::Work(0, 9.5e6, 0.0, 0.18)),
    figure(ONE, "eratosthenes", "/s", Of::Work(0, 3.4e8, 0.1, 0.22)),
    figure(ONE, "quicksort", "/s", Of::Work(0, 2.2e7, 0.1, 0.30)),
    figure(ONE, "mean-sd", "/s", Of::Work(0, 1.3e9, 0.3, 0.05)),
    figure(ONE, "whetstone", "/s", Of::Work(0, 4.8e9, 0.0, 0.32)),
    figure(ONE, "fft", "/s", Of::Work(0, 3.1e9, 0.2, 0.08)),
    figure(ONE, "mandelbrot", "/s", Of::Work(0, 1.9e9, 0.0, 0.28)),
    figure(ONE, "pi", "/s", Of::Work(0, 2.7e5, 0.0, 0.15)),
    figure(ALL, "integer", "/s", Of::Work(1, 6.1e8, 0.0, 0.25)),
    figure(ALL, "fibonacci", "/s", Of::Work(1, 4.3e8, 0.0, 0.20)),
    figure(ALL, "eratosthenes", "/s", Of::Work(1, 3.4e8, 0.1, 0.22)),
    figure(ALL, "quicksort", "/s", Of::Work(1, 2.2e7, 0.1, 0.30)),
    figure(ALL, "mean-sd", "/s", Of::Work(1, 1.3e9, 0.3, 0.05)),
    figure(ALL, "whetstone", "/s", Of::Work(1, 4.8e9, 0.0, 0.32)),
    figure(ALL, "fft", "/s", Of::Work(1, 3.1e9, 0.2, 0.08)),
    figure(ALL, "mandelbrot", "/s", Of::Work(1, 1.9e9, 0.0, 0.28)),
    figure(SMT, "integer", "", Of::SmtYield(0.25)),
    figure(SMT, "quicksort", "", Of::SmtYield(0.30)),
    figure(SMT, "fft", "", Of::SmtYield(0.08)),
    figure(SMT, "mandelbrot", "", Of::SmtYield(0.28)),
    figure(MEMORY, "read", "GB/s", Of::Sweep(1.0)),
    figure(MEMORY, "write", "GB/s", Of::Sweep(0.72)),
    figure(MEMORY, "copy", "GB/s", Of::Sweep(0.85)),
    figure(MEMORY, "triad", "GB/s", Of::Sweep(0.88)),
    figure(MEMORY, "chase", "/s", Of::Chase),
    figure(MEMORY, "cache-l3", "GB/s", Of::CacheSweep),
    figure(MEMORY, "shared-counter", "/s", Of::Contended(1.0)),
    figure(MEMORY, "producer-consumer", "/s", Of::Contended(0.6)),
];

impl Figure {
    /// Does it measure two threads on a core?
    pub(super) const fn needs_smt(&self) -> bool {
        matches!(self.of, Of::SmtYield(_) | Of::Cores(0))
    }

    /// Does it measure programs, which others on the node slow unevenly?
    pub(super) const fn is_work(&self) -> bool {
        matches!(self.of, Of::Work(..))
    }

    /// Its value on every ordinary server of a kind.
    fn usual(&self, kind: &Generation) -> f64 {
        let clock_ratio = |at: usize| [kind.one_ghz / 3.4, kind.all_ghz / 3.4][at];
        let reached = REACHED * kind.peak_gb_per_s;
        let cores = kind.cores() as f64;
        let far_ns = kind.cores_ns[3];
        match self.of {
            Of::Cores(level) => kind.cores_ns[level],
            Of::Pause => kind.pause_cycles() / kind.one_ghz,
            Of::Cache(level) => kind.loads_ns[level],
            Of::Near => kind.loads_ns[3],
            Of::Far => kind.loads_ns[4],
            Of::Loaded => 1.9 * kind.loads_ns[3],
            Of::Node(_) => reached,
            Of::AllNodes => 2.0 * reached,
            // What a core has in flight, divided by the latency of memory.
            Of::OneCore => 24.0 * 64.0 / kind.loads_ns[3],
            Of::FarNode => 0.4 * reached,
            Of::Clock(at) => [kind.one_ghz, kind.all_ghz][at],
            Of::Switching(ns) => ns / kind.per_cycle,
            Of::Work(0, rate, ..) => rate * kind.per_cycle * clock_ratio(0),
            Of::Work(_, rate, _, gain) => {
                rate * kind.per_cycle * clock_ratio(1) * cores * (1.0 + gain)
            }
            Of::SmtYield(gain) => 1.0 + gain,
            Of::Sweep(share) => 2.0 * reached * share,
            Of::Chase => 1e9 / kind.loads_ns[3],
            Of::CacheSweep => 20.0 * kind.all_ghz * cores,
            Of::Contended(share) => share * 1e9 / far_ns,
        }
    }

    /// By how much a node differs from that: the change of the logarithm.
    fn shift(&self, kind: &Generation, node: &Condition) -> f64 {
        let Condition {
            silicon,
            memory,
            effect,
        } = *node;
        let bandwidth = memory + effect.bandwidth;
        let speed = |at: usize| silicon + effect.clock[at] + effect.work[at];
        match self.of {
            Of::Cores(_) | Of::Contended(_) => {
                let slower = effect.cores - 0.5 * (silicon + effect.clock[0]);
                let is_rate = matches!(self.of, Of::Contended(_));
                if is_rate { -slower } else { slower }
            }
            Of::Pause => -(silicon + effect.clock[0]),
            Of::Cache(_) => -(silicon + effect.clock[0]),
            Of::Near => effect.near - memory - 0.1 * silicon,
            Of::Far => effect.far - memory - 0.1 * silicon,
            Of::Loaded => effect.loaded + effect.near - 1.5 * memory,
            Of::Node(package) => {
                let [right, wrong] = kind.nodes_per_package;
                let nodes = if effect.has_wrong_nodes { wrong } else { right };
                memory + effect.package_bandwidth[package] - (nodes as f64 / right as f64).ln()
            }
            Of::AllNodes | Of::Sweep(_) => bandwidth,
            Of::OneCore => memory + 0.3 * silicon + effect.core_bandwidth - effect.near,
            Of::FarNode => memory + effect.far_bandwidth - effect.far,
            Of::Clock(at) => silicon + effect.clock[at],
            Of::Switching(_) => effect.switching - 0.7 * (silicon + effect.clock[0]),
            Of::Work(0, _, share, _) => {
                (1.0 - share) * speed(0) + share * (memory + effect.core_bandwidth)
            }
            Of::Work(_, _, share, gain) => {
                let smt = if effect.has_smt {
                    0.0
                } else {
                    -(1.0 + gain).ln()
                };
                (1.0 - share) * speed(1) + share * bandwidth + smt
            }
            Of::SmtYield(_) => 0.0,
            Of::Chase => memory + 0.1 * silicon - effect.near,
            Of::CacheSweep => speed(1),
        }
    }

    /// The logarithm of its true value on a node.
    pub(super) fn truth(&self, kind: &Generation, node: &Condition) -> f64 {
        self.usual(kind).ln() + self.shift(kind, node)
    }
}
