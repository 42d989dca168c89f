//! Threads that contend for a lock, by each algorithm in turn.

use std::time::Duration;

use anyhow::Result;

use super::{Arm, OnCell, ReplayPlan, assemble};
use pinwise_machine::{ContendOrder, ContentionResult, Replayer};
use pinwise_record::{ContentionCell, SpinReplayRecord};
use pinwise_stats::describe::{median, quantile};
use pinwise_topology::Topology;

/// How long a cell contends.
const TIME: Duration = Duration::from_millis(350);
/// Work under the lock: 0.1 to 0.2 µs.
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
                    time: TIME,
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
        let mut of = assemble::algorithm(arm, Vec::new());
        let cells = threads.iter().zip(found);
        of.contention = cells.map(|(&count, found)| cell(count, found)).collect();
        record.algorithms.push(of);
    }
    record.conclusions.extend(conclusion(record));
    record.header.notes.push(
        "Contention also depends on the scheduler: it is measured, not predicted.".to_owned(),
    );
    Ok(())
}

fn cell(threads: usize, found: &[ContentionResult]) -> ContentionCell {
    let median = |figure: fn(&ContentionResult) -> f64| {
        let values: Vec<f64> = found.iter().map(figure).collect();
        quantile(&values, 0.5)
    };
    ContentionCell {
        threads: threads as u64,
        operations_per_cpu_s: median(|c| operations(c) / cpu_ns(c) * 1e9),
        spinning_share: median(|c| {
            let hints = c.threads.iter().map(|thread| thread.hints as f64);
            (hints.sum::<f64>() * c.hint.achieved_ns / cpu_ns(c)).min(1.0)
        }),
        longest_ms: median(|c| {
            let longest = c.threads.iter().map(|thread| thread.longest_ns);
            longest.fold(0.0, f64::max) * 1e-6
        }),
        parks_per_1000: median(|c| {
            let parks: u64 = c.threads.iter().map(|thread| thread.parks).sum();
            1000.0 * parks as f64 / operations(c)
        }),
    }
}

fn operations(contended: &ContentionResult) -> f64 {
    let operations: u64 = contended
        .threads
        .iter()
        .map(|thread| thread.operations)
        .sum();
    operations.max(1) as f64
}

fn cpu_ns(contended: &ContentionResult) -> f64 {
    let cpu_ns: f64 = contended.threads.iter().map(|thread| thread.cpu_ns).sum();
    cpu_ns.max(1.0)
}

/// The most threads, and the algorithm with most throughput per CPU time there.
fn conclusion(record: &SpinReplayRecord) -> Option<String> {
    let last = |of: &pinwise_record::ReplayedAlgorithm| {
        let cell = of.contention.last()?;
        Some((
            of.algorithm.clone(),
            cell.threads,
            cell.operations_per_cpu_s,
            cell.spinning_share,
        ))
    };
    let ends: Vec<_> = record.algorithms.iter().filter_map(last).collect();
    let best = ends.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let worst = ends.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let millions = |rate: f64| rate * 1e-6;
    Some(if ends.len() == 1 {
        format!(
            "{} threads with {}: {:.2} million operations per second of CPU time, {:.0} % of it spun.",
            best.1,
            best.0,
            millions(best.2),
            100.0 * best.3
        )
    } else {
        format!(
            "{} threads: {:.2} million operations per second of CPU time with {}, {:.2} with {}, \
             which spins {:.0} % of it.",
            best.1,
            millions(best.2),
            best.0,
            millions(worst.2),
            worst.0,
            100.0 * worst.3
        )
    })
}
