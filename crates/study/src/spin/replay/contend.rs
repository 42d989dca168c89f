//! Measures threads that contend for a lock, with each algorithm in turn.

use std::time::Duration;

use anyhow::Result;

use super::{Arm, OnCell, ReplayPlan, assemble};
use pinwise_machine::{ContendOrder, ContentionResult, Replayer};
use pinwise_record::{ContentionCell, SpinReplayRecord};
use pinwise_stats::describe::{median, quantile};
use pinwise_topology::Topology;

/// How long threads contend per cell and repeat.
const CELL_TIME: Duration = Duration::from_millis(350);
/// Work while holding the lock, cycles: 0.1 to 0.2 µs.
const SECTION_CYCLES: u32 = 500;
/// The default numbers of threads per CPU.
const THREADS_PER_CPU: [usize; 3] = [1, 2, 4];

/// Executes all cells and records them.
pub(super) fn run(
    plan: &ReplayPlan,
    arms: &[Arm],
    topology: &Topology,
    machine: &mut (impl Replayer + ?Sized),
    on_cell: OnCell<'_>,
    record: &mut SpinReplayRecord,
) -> Result<()> {
    let allowed: Vec<usize> = topology.allowed.iter().collect();
    let threads = if plan.threads.is_empty() {
        THREADS_PER_CPU.map(|each| each * allowed.len()).to_vec()
    } else {
        plan.threads.clone()
    };
    record.cpus.clone_from(&allowed);
    let mut found: Vec<Vec<Vec<ContentionResult>>> =
        vec![vec![Vec::new(); threads.len()]; arms.len()];
    let all = plan.repeats * threads.len() * arms.len();
    let mut done = 0;
    for _ in 0..plan.repeats {
        for (at, &count) in threads.iter().enumerate() {
            for (arm, found) in arms.iter().zip(&mut found) {
                on_cell(done, all);
                done += 1;
                let order = ContendOrder {
                    waiter: arm.waiter(plan.hint_ns),
                    cpus: allowed.iter().copied().cycle().take(count).collect(),
                    section_cycles: SECTION_CYCLES,
                    time: CELL_TIME,
                };
                found[at].push(machine.contend(&order)?);
            }
        }
    }
    let achieved: Vec<f64> = found
        .iter()
        .flatten()
        .flatten()
        .map(|c| c.hint.achieved_ns)
        .collect();
    record.hint.achieved_ns = median(&achieved);
    let result = found.iter().flatten().flatten().next();
    record.hint.recipe = result.map(|contended| assemble::record_hint(contended.hint.kind));
    for (arm, found) in arms.iter().zip(&found) {
        let mut replayed = assemble::record_algorithm(arm, Vec::new());
        let cells = threads.iter().zip(found);
        let cells = cells.map(|(&count, results)| record_cell(count, results));
        replayed.contention = cells.collect();
        record.algorithms.push(replayed);
    }
    record.conclusions.extend(compare_throughput(record));
    record.header.notes.push(
        "Contention also depends on the scheduler: it is measured, not predicted.".to_owned(),
    );
    Ok(())
}

/// Medians over the repeats of a cell.
fn record_cell(threads: usize, results: &[ContentionResult]) -> ContentionCell {
    let median = |figure: fn(&ContentionResult) -> f64| {
        let values: Vec<f64> = results.iter().map(figure).collect();
        quantile(&values, 0.5)
    };
    ContentionCell {
        threads: threads as u64,
        operations_per_cpu_s: median(|c| total_operations(c) / total_cpu_ns(c) * 1e9),
        spinning_share: median(|c| {
            let hints = c.threads.iter().map(|thread| thread.hints as f64);
            (hints.sum::<f64>() * c.hint.achieved_ns / total_cpu_ns(c)).min(1.0)
        }),
        longest_ms: median(|c| {
            let longest = c.threads.iter().map(|thread| thread.longest_ns);
            longest.fold(0.0, f64::max) * 1e-6
        }),
        parks_per_1000: median(|c| {
            let parks: u64 = c.threads.iter().map(|thread| thread.parks).sum();
            1000.0 * parks as f64 / total_operations(c)
        }),
    }
}

fn total_operations(contended: &ContentionResult) -> f64 {
    let operations: u64 = contended
        .threads
        .iter()
        .map(|thread| thread.operations)
        .sum();
    operations.max(1) as f64
}

fn total_cpu_ns(contended: &ContentionResult) -> f64 {
    let cpu_ns: f64 = contended.threads.iter().map(|thread| thread.cpu_ns).sum();
    cpu_ns.max(1.0)
}

/// Compares the throughput of algorithms at the largest number of threads.
fn compare_throughput(record: &SpinReplayRecord) -> Option<String> {
    let ends: Vec<(&str, &ContentionCell)> = record
        .algorithms
        .iter()
        .filter_map(|replayed| Some((&replayed.algorithm[..], replayed.contention.last()?)))
        .collect();
    let throughput = |cell: &ContentionCell| cell.operations_per_cpu_s;
    let by_throughput = |a: &&(&str, &ContentionCell), b: &&(&str, &ContentionCell)| {
        throughput(a.1).total_cmp(&throughput(b.1))
    };
    let &(best, best_cell) = ends.iter().max_by(by_throughput)?;
    let &(worst, worst_cell) = ends.iter().min_by(by_throughput)?;
    let millions = |cell: &ContentionCell| throughput(cell) * 1e-6;
    let threads = best_cell.threads;
    Some(if ends.len() == 1 {
        format!(
            "{threads} threads with {best}: {:.2} million operations per second of CPU time, {:.0} % of it spun.",
            millions(best_cell),
            100.0 * best_cell.spinning_share
        )
    } else {
        format!(
            "{threads} threads: {:.2} million operations per second of CPU time with {best}, {:.2} \
             with {worst}, which spins {:.0} % of it.",
            millions(best_cell),
            millions(worst_cell),
            100.0 * worst_cell.spinning_share
        )
    })
}
