//! Measures memory: load latency by working-set size (the ladder), bandwidth by number of CPUs and by
//! node, latency under load, and latency between nodes.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::costs::sample_one;
use super::estimate::Effort;
use super::session::Session;
use pinwise_machine::{MachineError, Probe, Stream};
use pinwise_placement::{Placement, Wish};
use pinwise_record::{
    BandwidthRecord, LadderPoint, LadderRecord, LoadedLatencyRecord, Median, PlateauRecord,
};
use pinwise_stats::describe::median;
use pinwise_topology::{CacheType, CpuSet, Topology};
use pinwise_wiring::ladder::{self, ReportedCache, next_sizes};

const CHASE: Effort = Effort {
    least: 9,
    most: 60,
    precision: 0.03,
    limit: Duration::from_millis(500),
};
const STREAMS: Effort = Effort {
    least: 5,
    most: 25,
    precision: 0.04,
    limit: Duration::from_secs(1),
};
/// The first working set of the ladder, bytes.
const MIN_LADDER_BYTES: usize = 4 << 10;
/// The ladder exceeds the largest reported cache by this factor, since the report may be too small.
const LADDER_PER_CACHE: u64 = 4;
/// Bounds of the ladder's last working set, bytes.
const LADDER_END_BYTES: RangeInclusive<u64> = 128 << 20..=1 << 30;
/// The ladder and the arrays take at most 1/8 of the memory.
const MEMORY_DIVISOR: u64 = 8;
/// Passes over the ladder, the first, coarse one included.
const PASSES: usize = 4;
/// Maximum number of sizes in each further pass.
const SIZES_PER_PASS: usize = 8;
/// All arrays of a stream together have at least this many times the size of all caches, so that
/// memory is measured (STREAM's rule).
const ARRAYS_PER_CACHE: u64 = 4;
/// Bounds of one array of one thread, bytes.
const ARRAY_BYTES: RangeInclusive<u64> = 32 << 20..=256 << 20;
/// Bandwidth is measured on at most this many different numbers of CPUs.
const MAX_COUNTS: usize = 6;
/// At most this many places of missing bandwidths are named.
const MAX_NAMED: usize = 3;

/// Sizes of the largest reported data cache and of the memory, bytes.
fn cache_and_memory_bytes(topology: &Topology) -> (u64, u64) {
    let data = topology
        .caches
        .iter()
        .filter(|c| c.kind != CacheType::Instruction);
    let cache = data.filter_map(|c| c.size_bytes).max().unwrap_or(32 << 20);
    let nodes = topology.usable_memory_nodes();
    let memory: u64 = nodes.iter().filter_map(|n| n.memory_bytes).sum();
    (cache, if memory == 0 { u64::MAX } else { memory })
}

/// Largest working set of the ladder, bytes.
fn ladder_end_bytes(topology: &Topology) -> usize {
    let (cache, memory) = cache_and_memory_bytes(topology);
    let wanted =
        (LADDER_PER_CACHE * cache).clamp(*LADDER_END_BYTES.start(), *LADDER_END_BYTES.end());
    usize::try_from(wanted.min(memory / MEMORY_DIVISOR)).unwrap_or(usize::MAX)
}

/// Measures the ladder on the first CPU, and reads the caches from it: first a coarse grid, then sizes
/// around the knees, until these are narrow or the time is over. Oddities are added to `notes`.
pub(super) fn measure_ladder(
    session: &mut Session<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<LadderRecord>, MachineError> {
    let Some(cpu) = session.topology.allowed.first() else {
        return Ok(None);
    };
    let largest = ladder_end_bytes(&session.topology);
    let mut points: Vec<LadderPoint> = Vec::new();
    for pass in 0..PASSES {
        let max_sizes = if pass == 0 {
            usize::MAX
        } else {
            SIZES_PER_PASS
        };
        let sizes = next_sizes(
            &ladder_points(&points),
            MIN_LADDER_BYTES,
            largest,
            max_sizes,
        );
        let missed = measure_sizes(session, cpu, &sizes, &mut points)?;
        if missed > 0 && pass == 0 {
            session.leave_out(format!(
                "{missed} of {} sizes of the cache ladder (time budget used up).",
                sizes.len()
            ));
        }
        if missed > 0 || sizes.is_empty() {
            break;
        }
    }
    points.sort_by_key(|point| point.bytes);
    let ladder_read = ladder::find_plateaus(
        &ladder_points(&points),
        &reported_caches(&session.topology, cpu),
    );
    notes.extend(ladder_read.notes);
    let plateaus = ladder_read.plateaus.iter().map(|plateau| PlateauRecord {
        level: plateau.level,
        latency_ns: plateau.latency_ns,
        effective_bytes: plateau.effective_bytes,
        reported_bytes: plateau.reported_bytes,
    });
    Ok((!points.is_empty()).then(|| LadderRecord {
        cpu,
        plateaus: plateaus.collect(),
        points,
        hint: ladder_read.hint.map(Into::into),
    }))
}

/// Measures these sizes; returns how many were skipped for lack of time.
fn measure_sizes(
    session: &mut Session<'_>,
    cpu: usize,
    sizes: &[usize],
    points: &mut Vec<LadderPoint>,
) -> Result<usize, MachineError> {
    for (done, &bytes) in sizes.iter().enumerate() {
        if session.time_left().is_zero() {
            return Ok(sizes.len() - done);
        }
        session.report_progress(done as f64 / sizes.len() as f64);
        let chase = Probe::Chase {
            cpu,
            bytes,
            node: None,
        };
        if let Some(latency_ns) = session.median(chase, CHASE)? {
            points.push(LadderPoint { bytes, latency_ns });
        }
    }
    Ok(0)
}

fn ladder_points(points: &[LadderPoint]) -> Vec<ladder::Point> {
    let point = |point: &LadderPoint| ladder::Point {
        bytes: point.bytes,
        ns: point.latency_ns.value,
        interval_ns: point.latency_ns.low.zip(point.latency_ns.high),
    };
    points.iter().map(point).collect()
}

/// Data caches of a CPU as the system reports them.
pub(super) fn reported_caches(topology: &Topology, cpu: usize) -> Vec<ReportedCache> {
    let caches = topology.caches.iter();
    caches
        .filter(|cache| cache.kind != CacheType::Instruction && cache.cpus.contains(cpu))
        .filter_map(|cache| {
            Some(ReportedCache {
                level: cache.level,
                bytes: cache.size_bytes?,
            })
        })
        .collect()
}

/// CPU sets of growing size, each spread over the machine.
fn spread_cpu_sets(topology: &Topology) -> Vec<CpuSet> {
    let all = topology.allowed.len();
    let doubling = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < all);
    let mut counts: Vec<usize> = doubling.collect();
    counts.push(all);
    while counts.len() > MAX_COUNTS {
        counts.remove(counts.len() / 2);
    }
    let mut sets: Vec<CpuSet> = counts
        .into_iter()
        .filter_map(|count| {
            let spread = Placement::with_count(Wish::Spread, count);
            spread.realise(topology).ok().map(|place| place.cpus)
        })
        .collect();
    sets.dedup();
    sets
}

/// Bytes of one array of each of this many threads.
fn array_bytes(topology: &Topology, threads: usize) -> usize {
    let (cache, memory) = cache_and_memory_bytes(topology);
    let llcs = topology.llcs.len().max(1) as u64;
    let threads = threads.max(1) as u64;
    let wanted = ARRAYS_PER_CACHE * cache * llcs / threads;
    let wanted = wanted.clamp(*ARRAY_BYTES.start(), *ARRAY_BYTES.end());
    // A stream has up to three arrays.
    let most = memory / MEMORY_DIVISOR / 3 / threads;
    usize::try_from(wanted.min(most)).unwrap_or(usize::MAX)
}

/// Lists bandwidths by place, such as `write, copy of CPUs 0-1; read of CPU 0 …`.
fn name_bandwidths(missed: &[(CpuSet, Stream, Option<usize>)]) -> String {
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for (cpus, stream, node) in missed {
        let node = node.map_or_else(String::new, |node| format!(" from node {node}"));
        let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        let place = format!("{noun} {cpus}{node}");
        match places.iter_mut().find(|(other, _)| *other == place) {
            Some((_, streams)) => streams.push(stream.name()),
            None => places.push((place, vec![stream.name()])),
        }
    }
    let more = if places.len() > MAX_NAMED { " …" } else { "" };
    let places = places.into_iter().take(MAX_NAMED);
    let places = places.map(|(place, streams)| format!("{} of {place}", streams.join(", ")));
    let places: Vec<String> = places.collect();
    format!("{}{more}", places.join("; "))
}

/// Measures bandwidth by number of CPUs, then from each node's CPUs to each node's memory.
pub(super) fn measure_bandwidth(
    session: &mut Session<'_>,
) -> Result<Vec<BandwidthRecord>, MachineError> {
    let mut wanted: Vec<(CpuSet, Stream, Option<usize>)> = Vec::new();
    for cpus in spread_cpu_sets(&session.topology) {
        wanted.extend(Stream::ALL.map(|stream| (cpus.clone(), stream, None)));
    }
    for (cpus, memory) in node_pairs(&session.topology) {
        wanted.push((cpus, Stream::Read, Some(memory)));
    }
    let mut records = Vec::new();
    let total = wanted.len();
    for (done, (cpus, stream, node)) in wanted.iter().cloned().enumerate() {
        if session.time_left().is_zero() {
            let missed = wanted.get(done..).unwrap_or_default();
            session.leave_out(format!(
                "{} of {total} bandwidths, {} (time budget used up).",
                missed.len(),
                name_bandwidths(missed)
            ));
            break;
        }
        session.report_progress(done as f64 / total as f64);
        let bytes = array_bytes(&session.topology, cpus.len());
        let list = cpus.to_string();
        let probe = Probe::Bandwidth {
            cpus,
            stream,
            bytes,
            node,
        };
        if let Some(gb_per_s) = session.median(probe, STREAMS)? {
            records.push(BandwidthRecord {
                stream: stream.name().to_owned().into(),
                cpus: list,
                node,
                gb_per_s,
            });
        }
    }
    Ok(records)
}

/// Every node's CPUs with every node's memory; empty if only one node has memory.
fn node_pairs(topology: &Topology) -> Vec<(CpuSet, usize)> {
    let memory: Vec<usize> = topology
        .usable_memory_nodes()
        .iter()
        .map(|n| n.node)
        .collect();
    if memory.len() < 2 {
        return Vec::new();
    }
    let nodes = topology.numa_nodes.iter();
    let cpu_sets: Vec<CpuSet> = nodes
        .map(|node| node.cpus.intersection(&topology.allowed))
        .filter(|cpus| !cpus.is_empty())
        .collect();
    let with_all = |cpus: &CpuSet| {
        let cpus = cpus.clone();
        memory
            .clone()
            .into_iter()
            .map(move |node| (cpus.clone(), node))
    };
    cpu_sets.iter().flat_map(with_all).collect()
}

/// Measures memory latency while none, one, half and all of the other CPUs read memory.
pub(super) fn measure_under_load(
    session: &mut Session<'_>,
) -> Result<Vec<LoadedLatencyRecord>, MachineError> {
    let Some(cpu) = session.topology.allowed.first() else {
        return Ok(Vec::new());
    };
    let others: Vec<usize> = session.topology.allowed.iter().skip(1).collect();
    let bytes = ladder_end_bytes(&session.topology);
    let mut counts = vec![0, 1, others.len() / 2, others.len()];
    counts.retain(|count| *count <= others.len());
    counts.sort_unstable();
    counts.dedup();
    let mut records = Vec::new();
    for count in counts {
        if session.time_left().is_zero() {
            session.leave_out("Part of the latency under load (time budget used up).");
            break;
        }
        let loaders: CpuSet = others.iter().copied().take(count).collect();
        let list = loaders.to_string();
        let probe = if count == 0 {
            Probe::Chase {
                cpu,
                bytes,
                node: None,
            }
        } else {
            Probe::LoadedLatency {
                cpu,
                loaders,
                bytes,
            }
        };
        let sample = sample_one(session, probe, STREAMS)?;
        if let Some(latency_ns) = sample.median() {
            records.push(LoadedLatencyRecord {
                cpu,
                loaders: list,
                // Interrupted batches have absurd rates.
                background_gb_per_s: median(&sample.background).unwrap_or(0.0),
                latency_ns,
            });
        }
    }
    Ok(records)
}

/// Latency of a node's memory from a CPU of the same or another node.
#[derive(Debug, Clone)]
pub(super) struct NodeLatency {
    pub(super) cpu_node: usize,
    pub(super) memory_node: usize,
    pub(super) latency_ns: Median,
}

/// Measures the latency from every node's CPUs to every node's memory; empty if only one node has
/// memory.
pub(super) fn measure_node_latencies(
    session: &mut Session<'_>,
) -> Result<Vec<NodeLatency>, MachineError> {
    let mut found = Vec::new();
    let bytes = ladder_end_bytes(&session.topology);
    for (cpus, memory_node) in node_pairs(&session.topology) {
        if session.time_left().is_zero() {
            session.leave_out("Part of the latency between NUMA nodes (time budget used up).");
            break;
        }
        let Some(cpu) = cpus.first() else { continue };
        let node = Some(memory_node);
        let latency = session.median(Probe::Chase { cpu, bytes, node }, CHASE)?;
        let own = session.topology.cpu(cpu).and_then(|c| c.numa_node);
        if let (Some(latency_ns), Some(own)) = (latency, own) {
            found.push(NodeLatency {
                cpu_node: session.topology.numa_nodes[own].node,
                memory_node,
                latency_ns,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_caches_and_stay_below_a_share_of_the_memory() {
        let topology =
            Topology::from_synthetic("[numa(memory=4GB)] l3:1(size=32MB) core:4 pu:1").unwrap();
        assert_eq!(ladder_end_bytes(&topology), 128 << 20);
        assert!(array_bytes(&topology, 4) * 3 * 4 <= 4 << 27);
        let small =
            Topology::from_synthetic("[numa(memory=256MB)] l3:1(size=32MB) core:4 pu:1").unwrap();
        assert_eq!(ladder_end_bytes(&small), 32 << 20);
    }

    #[test]
    fn cpu_sets_double_up_to_all_cpus() {
        let topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
        let sizes: Vec<usize> = spread_cpu_sets(&topology).iter().map(CpuSet::len).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32]);
        let single = Topology::from_synthetic("pu:1").unwrap();
        assert_eq!(spread_cpu_sets(&single).len(), 1);
    }
}
