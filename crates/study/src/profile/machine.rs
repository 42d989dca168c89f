//! The basis of differences between machines, measured right after a profile: the core's clock, and
//! latency and bandwidth of memory.

use std::time::Duration;

use pinwise_machine::{MachineError, Probe, Prober, Stream};
use pinwise_record::{ProbedFigure, ProfileMachine};
use pinwise_stats::describe::{median_interval, quantile};
use pinwise_topology::{CacheType, CpuSet, Topology};

/// Batches that are enough, and time for the clock and for each figure of
/// memory: half a second in total, at most.
const BATCHES: usize = 60;
const CLOCK_TIME: Duration = Duration::from_millis(50);
const MEMORY_TIME: Duration = Duration::from_millis(250);
/// The working set is this many times the largest cache, within bounds: a longer chain takes too
/// long to link.
const CACHES: u64 = 2;
const WORKING_SET: (u64, u64) = (32 << 20, 128 << 20);

/// What a machine is at a CPU now.
pub(super) fn measure(
    machine: &mut (impl Prober + ?Sized),
    topology: &Topology,
    cpu: usize,
) -> Result<ProfileMachine, MachineError> {
    let cache_bytes = topology
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheType::Instruction && cache.cpus.contains(cpu))
        .filter_map(|cache| cache.size_bytes)
        .max();
    let wanted = CACHES.saturating_mul(cache_bytes.unwrap_or(0));
    let bytes = usize::try_from(wanted.clamp(WORKING_SET.0, WORKING_SET.1)).unwrap_or(usize::MAX);
    let mut figure = |probe: Probe, limit: Duration| {
        let batches = machine.probe(&[probe], BATCHES, limit)?;
        let values = batches.into_iter().next().map(|batches| batches.values);
        Ok::<_, MachineError>(values.and_then(|values| median(&values)))
    };
    let chase = Probe::Chase {
        cpu,
        bytes,
        node: None,
    };
    let read = Probe::Bandwidth {
        cpus: CpuSet::from_iter([cpu]),
        stream: Stream::Read,
        bytes,
        node: None,
    };
    Ok(ProfileMachine {
        cycle_ns: figure(Probe::Cycle { cpu }, CLOCK_TIME)?,
        memory_ns: figure(chase, MEMORY_TIME)?,
        gb_per_s: figure(read, MEMORY_TIME)?,
        cache_bytes,
    })
}

fn median(values: &[f64]) -> Option<ProbedFigure> {
    let interval = median_interval(values, 0.95);
    (!values.is_empty()).then(|| ProbedFigure {
        value: quantile(values, 0.5),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    })
}
