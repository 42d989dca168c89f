//! The fifty figures of a node: their names, their values on each kind of server, and what they
//! depend on.
//!
//! The report compares nodes of one kind by ratios. What matters is therefore which figures change
//! together if clocks, memory or threads differ ([`Figure::shift`]); absolute values need only be
//! plausible. Latencies, bandwidth, clocks and PAUSE are those of `generation`. All other numbers
//! are invented, round numbers: the rates of kernels (measured ones, in
//! `docs/benchmarks/kernels.csv`, are up to fifteen times higher or lower), the share of their time
//! that depends on memory, the gain by SMT, the time of a thread switch, and the bytes that a core
//! has in flight.

use super::fault::Effect;
use super::generation::Generation;
use Quantity::{
    AllNodes, Cache, CacheSweep, Chase, Clock, Contended, Cores, Far, FarNode, Loaded, Near, Node,
    OneCore, Pause, SmtYield, Sweep, Switching,
};

/// Share of the theoretical bandwidth that a sweep over memory reaches, about
/// what STREAM does.
const REACHED_BANDWIDTH: f64 = 0.8;

/// A figure of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub(super) step: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    quantity: Quantity,
}

/// What a figure measures, and so what it depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    /// Latency between two CPUs: siblings, in one LLC, in one package, in two packages (0 to 3).
    Cores(usize),
    /// One PAUSE instruction.
    Pause,
    /// Latency of a load from L1, L2 or L3.
    Cache(usize),
    /// Memory latency in the same package, in the other one, and under load.
    Near,
    Far,
    Loaded,
    /// Memory bandwidth of the first NUMA node of a package; of all nodes; of one core; and from
    /// the other package.
    Node(usize),
    AllNodes,
    OneCore,
    FarNode,
    /// Clock of one busy core (0), or of all cores (1).
    Clock(usize),
    /// Time of a thread switch or wake-up on the oldest kind of server, ns.
    Switching(f64),
    /// The rate of a kernel.
    Work(Work),
    /// The share of work that a core's second thread adds.
    SmtYield(f64),
    /// A sweep over memory by all cores, with its share of the bandwidth.
    Sweep(f64),
    /// Dependent loads from memory by one core.
    Chase,
    /// A kernel in last-level caches.
    CacheSweep,
    /// Threads that write the same line: operations per transfer between packages.
    Contended(f64),
}

/// A kernel and where it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Work {
    uses_all_cores: bool,
    /// Its rate on one core of the oldest kind of server, per second.
    rate: f64,
    /// The share of its time that depends on memory.
    memory_share: f64,
    /// The share of work that a core's second thread adds.
    smt_gain: f64,
}

/// What determines a node's figures, beside noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Condition {
    /// Deviation of its processors and of its memory from others of their kind, as logarithms;
    /// positive is faster.
    pub(super) silicon: f64,
    pub(super) memory: f64,
    pub(super) effect: Effect,
}

const WIRING: &str = "wiring";
const ONE_CORE: &str = "kernels-one-core";
const ALL_CORES: &str = "kernels-all-cores";
const SMT: &str = "smt-yield";
const MEMORY: &str = "memory";

const fn figure(
    step: &'static str,
    name: &'static str,
    unit: &'static str,
    quantity: Quantity,
) -> Figure {
    Figure {
        step,
        name,
        unit,
        quantity,
    }
}

/// A kernel on one core; the meaning of the numbers is that of the fields of [`Work`].
const fn one_core(name: &'static str, rate: f64, memory_share: f64, smt_gain: f64) -> Figure {
    let work = Work {
        uses_all_cores: false,
        rate,
        memory_share,
        smt_gain,
    };
    figure(ONE_CORE, name, "/s", Quantity::Work(work))
}

/// A kernel on all cores, as [`one_core`].
const fn all_cores(name: &'static str, rate: f64, memory_share: f64, smt_gain: f64) -> Figure {
    let work = Work {
        uses_all_cores: true,
        rate,
        memory_share,
        smt_gain,
    };
    figure(ALL_CORES, name, "/s", Quantity::Work(work))
}

/// All figures, in the order of their steps.
pub(super) const FIGURES: [Figure; 50] = [
    figure(WIRING, "latency, siblings", "ns", Cores(0)),
    figure(WIRING, "latency, within LLC", "ns", Cores(1)),
    figure(WIRING, "latency, within package", "ns", Cores(2)),
    figure(WIRING, "latency, between packages", "ns", Cores(3)),
    figure(WIRING, "PAUSE", "ns", Pause),
    figure(WIRING, "load latency, L1", "ns", Cache(0)),
    figure(WIRING, "load latency, L2", "ns", Cache(1)),
    figure(WIRING, "load latency, L3", "ns", Cache(2)),
    figure(WIRING, "memory latency, local", "ns", Near),
    figure(WIRING, "memory latency, remote", "ns", Far),
    figure(WIRING, "memory latency, loaded", "ns", Loaded),
    figure(WIRING, "bandwidth, package 0, one node", "GB/s", Node(0)),
    figure(WIRING, "bandwidth, package 1, one node", "GB/s", Node(1)),
    figure(WIRING, "bandwidth, all nodes", "GB/s", AllNodes),
    figure(WIRING, "bandwidth, one core", "GB/s", OneCore),
    figure(WIRING, "bandwidth, remote", "GB/s", FarNode),
    figure(WIRING, "clock, one core", "GHz", Clock(0)),
    figure(WIRING, "clock, all cores", "GHz", Clock(1)),
    figure(WIRING, "context switch", "ns", Switching(1400.0)),
    figure(WIRING, "futex wake", "ns", Switching(2600.0)),
    one_core("integer", 6.1e8, 0.0, 0.25),
    one_core("fibonacci", 4.3e8, 0.0, 0.20),
    one_core("napierian", 9.5e6, 0.0, 0.18),
    one_core("eratosthenes", 3.4e8, 0.1, 0.22),
    one_core("quicksort", 2.2e7, 0.1, 0.30),
    one_core("mean-sd", 1.3e9, 0.3, 0.05),
    one_core("whetstone", 4.8e9, 0.0, 0.32),
    one_core("fft", 3.1e9, 0.2, 0.08),
    one_core("mandelbrot", 1.9e9, 0.0, 0.28),
    one_core("pi", 2.7e5, 0.0, 0.15),
    all_cores("integer", 6.1e8, 0.0, 0.25),
    all_cores("fibonacci", 4.3e8, 0.0, 0.20),
    all_cores("eratosthenes", 3.4e8, 0.1, 0.22),
    all_cores("quicksort", 2.2e7, 0.1, 0.30),
    all_cores("mean-sd", 1.3e9, 0.3, 0.05),
    all_cores("whetstone", 4.8e9, 0.0, 0.32),
    all_cores("fft", 3.1e9, 0.2, 0.08),
    all_cores("mandelbrot", 1.9e9, 0.0, 0.28),
    figure(SMT, "integer", "", SmtYield(0.25)),
    figure(SMT, "quicksort", "", SmtYield(0.30)),
    figure(SMT, "fft", "", SmtYield(0.08)),
    figure(SMT, "mandelbrot", "", SmtYield(0.28)),
    figure(MEMORY, "read", "GB/s", Sweep(1.0)),
    figure(MEMORY, "write", "GB/s", Sweep(0.72)),
    figure(MEMORY, "copy", "GB/s", Sweep(0.85)),
    figure(MEMORY, "triad", "GB/s", Sweep(0.88)),
    figure(MEMORY, "chase", "/s", Chase),
    figure(MEMORY, "cache-l3", "GB/s", CacheSweep),
    figure(MEMORY, "shared-counter", "/s", Contended(1.0)),
    figure(MEMORY, "producer-consumer", "/s", Contended(0.6)),
];

impl Figure {
    /// Does it measure two threads on a core?
    pub(super) const fn needs_smt(&self) -> bool {
        matches!(self.quantity, SmtYield(_) | Cores(0))
    }

    /// Does it measure a kernel, which other processes on the node slow unevenly?
    pub(super) const fn is_work(&self) -> bool {
        matches!(self.quantity, Quantity::Work(_))
    }

    /// Its value on a faultless, average server of a kind.
    fn typical_value(&self, kind: &Generation) -> f64 {
        let clock_ratio = |at: usize| [kind.one_ghz / 3.4, kind.all_ghz / 3.4][at];
        let reached = REACHED_BANDWIDTH * kind.peak_gb_per_s;
        let cores = kind.cores() as f64;
        let far_ns = kind.cores_ns[3];
        match self.quantity {
            Cores(level) => kind.cores_ns[level],
            Pause => kind.pause_cycles() / kind.one_ghz,
            Cache(level) => kind.loads_ns[level],
            Near => kind.loads_ns[3],
            Far => kind.loads_ns[4],
            Loaded => 1.9 * kind.loads_ns[3],
            Node(_) => reached,
            AllNodes => 2.0 * reached,
            // The bytes that a core has in flight, divided by the latency of memory.
            OneCore => 24.0 * 64.0 / kind.loads_ns[3],
            FarNode => 0.4 * reached,
            Clock(at) => [kind.one_ghz, kind.all_ghz][at],
            Switching(ns) => ns / kind.per_cycle,
            Quantity::Work(work) if work.uses_all_cores => {
                work.rate * kind.per_cycle * clock_ratio(1) * cores * (1.0 + work.smt_gain)
            }
            Quantity::Work(work) => work.rate * kind.per_cycle * clock_ratio(0),
            SmtYield(gain) => 1.0 + gain,
            Sweep(share) => 2.0 * reached * share,
            Chase => 1e9 / kind.loads_ns[3],
            CacheSweep => 20.0 * kind.all_ghz * cores,
            Contended(share) => share * 1e9 / far_ns,
        }
    }

    /// By how much a node's value differs from the typical one, as a change of the logarithm.
    fn shift(&self, kind: &Generation, node: &Condition) -> f64 {
        let Condition {
            silicon,
            memory,
            effect,
        } = *node;
        let bandwidth = memory + effect.bandwidth;
        let speed = |at: usize| silicon + effect.clock[at] + effect.work[at];
        match self.quantity {
            Cores(_) | Contended(_) => {
                let slower = effect.core_latency - 0.5 * (silicon + effect.clock[0]);
                let is_rate = matches!(self.quantity, Contended(_));
                if is_rate { -slower } else { slower }
            }
            Pause => -(silicon + effect.clock[0]),
            Cache(_) => -(silicon + effect.clock[0]),
            Near => effect.near_latency - memory - 0.1 * silicon,
            Far => effect.far_latency - memory - 0.1 * silicon,
            Loaded => effect.loaded_latency + effect.near_latency - 1.5 * memory,
            Node(package) => {
                let [right, wrong] = kind.nodes_per_package;
                let nodes = if effect.has_wrong_nodes { wrong } else { right };
                memory + effect.package_bandwidth[package] - (nodes as f64 / right as f64).ln()
            }
            AllNodes | Sweep(_) => bandwidth,
            OneCore => memory + 0.3 * silicon + effect.core_bandwidth - effect.near_latency,
            FarNode => memory + effect.far_bandwidth - effect.far_latency,
            Clock(at) => silicon + effect.clock[at],
            Switching(_) => effect.switching - 0.7 * (silicon + effect.clock[0]),
            Quantity::Work(work) if work.uses_all_cores => {
                let smt = match effect.has_smt {
                    true => 0.0,
                    false => -(1.0 + work.smt_gain).ln(),
                };
                let share = work.memory_share;
                (1.0 - share) * speed(1) + share * bandwidth + smt
            }
            Quantity::Work(work) => {
                let share = work.memory_share;
                (1.0 - share) * speed(0) + share * (memory + effect.core_bandwidth)
            }
            SmtYield(_) => 0.0,
            Chase => memory + 0.1 * silicon - effect.near_latency,
            CacheSweep => speed(1),
        }
    }

    /// The logarithm of its value on a node without noise.
    pub(super) fn true_log(&self, kind: &Generation, node: &Condition) -> f64 {
        self.typical_value(kind).ln() + self.shift(kind, node)
    }
}
