//! Measures, right after a profile, what may explain differences between machines: the core's clock,
//! and latency and bandwidth of memory.

use std::time::Duration;

use pinwise_machine::{MachineError, Probe, Prober, Stream};
use pinwise_record::{ProbedFigure, ProfileMachine};
use pinwise_stats::describe::{median_interval, quantile};
use pinwise_topology::{CacheType, CpuSet, Topology};

/// Maximum number of batches of each figure.
const BATCHES: usize = 60;
const CLOCK_LIMIT: Duration = Duration::from_millis(50);
/// Time limit of each of the two figures of memory.
const MEMORY_LIMIT: Duration = Duration::from_millis(250);
/// The working set is this many times the largest cache …
const CACHES: u64 = 2;
/// … within these bounds, bytes: the chain of a larger one takes too long to link.
const WORKING_SET_BYTES: (u64, u64) = (32 << 20, 128 << 20);

/// Measures the machine at a CPU.
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
    let bytes = wanted.clamp(WORKING_SET_BYTES.0, WORKING_SET_BYTES.1);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut measure_figure = |probe: Probe, limit: Duration| {
        let batches = machine.probe(&[probe], BATCHES, limit)?;
        let values = batches.into_iter().next().map(|batches| batches.values);
        Ok::<_, MachineError>(values.and_then(|values| summarise_values(&values)))
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
        cycle_ns: measure_figure(Probe::Cycle { cpu }, CLOCK_LIMIT)?,
        memory_ns: measure_figure(chase, MEMORY_LIMIT)?,
        gb_per_s: measure_figure(read, MEMORY_LIMIT)?,
        cache_bytes,
    })
}

/// The median with its interval; `None` without values.
fn summarise_values(values: &[f64]) -> Option<ProbedFigure> {
    let interval = median_interval(values, 0.95);
    (!values.is_empty()).then(|| ProbedFigure {
        value: quantile(values, 0.5),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    })
}
