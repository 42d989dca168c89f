//! Costs of loads and streams on a simulated machine.

use super::Batch;
use super::description::{CacheFigure, Figures};
use super::truth::Truth;
use pinwise_machine::{Probe, Stream};
use pinwise_topology::{CacheType, CpuSet};

/// Loads of a batch of a chase.
const LOADS: f64 = 20_000.0;

/// Rate at which a chase is written once before it runs, and an array before it is streamed, bytes
/// per second.
const WRITTEN_PER_S: f64 = 5e9;

/// Default load latencies of caches by level, ns: those of Zen 3 and Skylake-SP at 3 GHz (4, 12 to
/// 14, 46 to 70 cycles).
const LEVEL_NS: [f64; 5] = [1.3, 4.0, 15.0, 40.0, 60.0];

/// Default sizes by level.
const LEVEL_BYTES: [u64; 5] = [32 << 10, 1 << 20, 32 << 20, 128 << 20, 256 << 20];

/// A cache serves all loads of a working set up to this share of its size, and half of the loads if
/// the working set is larger by [`HALF_SERVED`] of its size. Real caches degrade gradually:
/// replacement is not ideal, and pages collide.
const ALL_SERVED: f64 = 0.8;
const HALF_SERVED: f64 = 0.35;

/// Factor on latency under load: it rises late and steeply, `1 + (factor − 1) × u⁴`.
fn load_factor(utilisation: f64, factor: f64) -> f64 {
    1.0 + (factor - 1.0) * utilisation.min(1.0).powi(4)
}

/// Time to prepare the memory, s.
pub(super) fn preparation_s(probe: &Probe) -> f64 {
    let bytes = match probe {
        Probe::Chase { bytes, .. } | Probe::LoadedLatency { bytes, .. } => *bytes,
        Probe::Bandwidth { bytes, stream, .. } => bytes.saturating_mul(stream.arrays()),
        _ => 0,
    };
    bytes as f64 / WRITTEN_PER_S
}

/// The batch of a probe of memory, without noise.
pub(super) fn memory_batch(probe: &Probe, truth: &Truth, figures: &Figures) -> Batch {
    match probe {
        Probe::Chase { cpu, bytes, node } => {
            let ns = chase_ns(*cpu, *bytes, *node, 1.0, truth, figures);
            latency_batch(ns)
        }
        Probe::LoadedLatency {
            cpu,
            loaders,
            bytes,
        } => {
            let load = Streaming::new(loaders, Stream::Read, usize::MAX, None, truth, figures);
            let here = load.utilisation(truth.node_of(*cpu));
            let factor = load_factor(here, figures.loaded_factor);
            let ns = chase_ns(*cpu, *bytes, None, factor, truth, figures);
            Batch {
                background: Some(load.gb_per_s()),
                ..latency_batch(ns)
            }
        }
        Probe::Bandwidth {
            cpus,
            stream,
            bytes,
            node,
        } => {
            let all = Streaming::new(cpus, *stream, *bytes, *node, truth, figures);
            let moved = *bytes as f64 * stream.arrays() as f64 * cpus.len() as f64;
            let takes_s = moved * 1e-9 / all.gb_per_s();
            Batch::new(all.gb_per_s(), f64::INFINITY, takes_s)
        }
        _ => Batch::new(0.0, 0.0, 0.0),
    }
}

fn latency_batch(ns: f64) -> Batch {
    Batch {
        is_latency: true,
        ..Batch::timed(ns, LOADS)
    }
}

/// One load of a chain through this many bytes; `loaded` multiplies memory latency.
fn chase_ns(
    cpu: usize,
    bytes: usize,
    node: Option<usize>,
    loaded: f64,
    truth: &Truth,
    figures: &Figures,
) -> f64 {
    let remote = if truth.is_remote(cpu, node) {
        figures.remote_memory_ns
    } else {
        0.0
    };
    let mut ns = 0.0;
    let mut served = 0.0f64;
    for cache in effective_caches(cpu, truth, figures) {
        let share = served_share(bytes as f64 / cache.bytes as f64).max(served);
        ns += (share - served) * cache.ns;
        served = share;
    }
    ns += (1.0 - served) * (figures.memory_ns + remote) * loaded;
    let tlb = figures.tlb.map_or(0.0, |tlb| {
        tlb.ns * (1.0 - served_share(bytes as f64 / tlb.bytes as f64))
    });
    ns + tlb
}

fn served_share(ratio: f64) -> f64 {
    let over = (ratio - ALL_SERVED).max(0.0) / HALF_SERVED;
    1.0 / (1.0 + over.powi(3))
}

/// The caches of a CPU, inner ones first, with their effective sizes.
fn effective_caches(cpu: usize, truth: &Truth, figures: &Figures) -> Vec<CacheFigure> {
    if figures.caches.is_empty() {
        caches_of_topology(cpu, truth)
    } else {
        figures.caches.clone()
    }
}

/// The caches of the true topology, with default ones for levels that it does not name.
fn caches_of_topology(cpu: usize, truth: &Truth) -> Vec<CacheFigure> {
    let cache_figure = |level: u8, bytes: Option<u64>| {
        let index = usize::from(level).clamp(1, LEVEL_NS.len()) - 1;
        CacheFigure {
            bytes: bytes.unwrap_or(LEVEL_BYTES[index]).max(1),
            ns: LEVEL_NS[index],
        }
    };
    let mut levels: Vec<(u8, CacheFigure)> = truth
        .topology
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheType::Instruction && cache.cpus.contains(cpu))
        .map(|cache| (cache.level, cache_figure(cache.level, cache.size_bytes)))
        .collect();
    // A description often names only the level that divides the CPUs.
    let innermost = levels.iter().map(|(level, _)| *level).min().unwrap_or(4);
    levels.extend((1..innermost.min(4)).map(|level| (level, cache_figure(level, None))));
    levels.sort_by_key(|(level, _)| *level);
    levels.into_iter().map(|(_, cache)| cache).collect()
}

/// The bandwidth of streams, node by node.
struct Streaming {
    nodes: Vec<NodeBandwidth>,
}

struct NodeBandwidth {
    node: usize,
    /// What its streams would read without a limit.
    demanded_gb_per_s: f64,
    max_gb_per_s: f64,
}

impl Streaming {
    fn new(
        cpus: &CpuSet,
        stream: Stream,
        bytes: usize,
        node: Option<usize>,
        truth: &Truth,
        figures: &Figures,
    ) -> Self {
        // Share of the read bandwidth.
        let stream_share = match stream {
            Stream::Read => 1.0,
            // A written line is read first, and both are transferred.
            Stream::Write => 0.5,
            Stream::Copy => 0.7,
            Stream::Triad => 0.8,
        };
        let mut cores: Vec<usize> = cpus.iter().map(|cpu| truth.core_of(cpu)).collect();
        cores.sort_unstable();
        cores.dedup();
        let mut nodes: Vec<NodeBandwidth> = Vec::new();
        for core in cores {
            let Some(cpu) = cpus.iter().find(|&cpu| truth.core_of(cpu) == core) else {
                continue;
            };
            let needed = bytes.saturating_mul(stream.arrays()) as f64;
            let largest = effective_caches(cpu, truth, figures)
                .last()
                .map_or(0, |c| c.bytes);
            let fits = needed * cpus.len() as f64 <= largest as f64;
            let remote = if truth.is_remote(cpu, node) {
                figures.memory_ns / (figures.memory_ns + figures.remote_memory_ns)
            } else {
                1.0
            };
            let (demanded, max) = if fits {
                (figures.cache_gb_per_s, f64::MAX)
            } else {
                (figures.core_gb_per_s * remote, figures.node_gb_per_s)
            };
            let node = node.unwrap_or_else(|| truth.node_of(cpu));
            match nodes.iter_mut().find(|known| known.node == node) {
                Some(known) => known.demanded_gb_per_s += demanded * stream_share,
                None => nodes.push(NodeBandwidth {
                    node,
                    demanded_gb_per_s: demanded * stream_share,
                    max_gb_per_s: max * stream_share,
                }),
            }
        }
        Self { nodes }
    }

    fn gb_per_s(&self) -> f64 {
        let achieved = |node: &NodeBandwidth| node.demanded_gb_per_s.min(node.max_gb_per_s);
        self.nodes.iter().map(achieved).sum()
    }

    fn utilisation(&self, node: usize) -> f64 {
        let known = self.nodes.iter().find(|known| known.node == node);
        known.map_or(0.0, |node| node.demanded_gb_per_s / node.max_gb_per_s)
    }
}
