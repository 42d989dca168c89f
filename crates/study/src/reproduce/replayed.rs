//! The producer and consumer of the 2018 report, executed on this machine with a PAUSE as long as the
//! report's.
//!
//! Nothing is judged if other programs disturbed too many items, or if a slightly different PAUSE
//! would change the result.

use std::time::Duration;

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, experiment};
use crate::is_interrupt;
use crate::spin::replay::{self, Experiment, ReplayPlan};
use pinwise_machine::{Prober, Replayer};
use pinwise_record::{ClaimRecord, ExperimentRecord, ReplayCell, SpinReplayRecord};
use pinwise_spin::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

/// PAUSE on the report's machine.
const PAUSE_NS: f64 = 43.0;
/// CPUs of the report's machine, on which its spin loop depends.
const CPUS: u64 = 24;
/// Items for each delay.
const ITEMS: usize = 4;
const REPEATS: usize = 2;
/// With fewer undisturbed items, a delay is not judged.
const MIN_ITEMS: u64 = 3;
/// Tolerance of the report's "about" for a time.
const ABOUT_S: f64 = 0.25;

/// Runs both experiments.
///
/// # Errors
/// An interrupt; the claims report whatever else prevents a replay.
pub(super) fn run_experiments(
    machine: &mut (impl Replayer + Prober + ?Sized),
) -> Result<Vec<ExperimentRecord>> {
    let plan = ReplayPlan {
        experiment: Experiment::ProducerConsumer,
        algorithms: vec![Some(&NETFX_AWARELOCK), Some(&CORECLR_MONITOR)],
        hint_ns: Some(PAUSE_NS),
        chip: None,
        cpus_assumed: Some(CPUS),
        hold: Duration::from_millis(10),
        delays: (1..=9).map(Duration::from_millis).collect(),
        items: ITEMS,
        repeats: REPEATS,
        threads: Vec::new(),
        is_realtime: false,
    };
    let (old, new) = match replay::run(&plan, machine, &mut |_, _| ()) {
        Ok(record) => (
            judge_cells(&record, 0, old_claim),
            judge_cells(&record, 1, |delay_ms| {
                let claim = format!("repaired, a sender every {delay_ms} ms");
                (
                    Claim::vague(claim, "about 1.2 s").with_figure(1.2, "s"),
                    ABOUT_S,
                )
            }),
        ),
        Err(error) if is_interrupt(&error) => return Err(error),
        Err(error) => (
            claim_not_here(&error.to_string()),
            claim_not_here(&error.to_string()),
        ),
    };
    Ok(vec![
        experiment(
            "producer-consumer",
            "100 items of 10 ms, the sender coming every 1 to 9 ms; PAUSE made 43 ns",
            old,
        ),
        experiment(
            "spin-old-new",
            "the old spin and the repaired one, same machine",
            new,
        ),
    ])
}

/// The report's claim for a delay, and its tolerance, seconds.
fn old_claim(delay_ms: f64) -> (Claim, f64) {
    let claim = format!("a sender every {delay_ms} ms");
    if delay_ms < 2.5 {
        (
            Claim::new(claim, "2.2 to 2.3 s").with_figure(2.25, "s"),
            0.1,
        )
    } else {
        (
            Claim::vague(claim, "about 1.2 s").with_figure(1.2, "s"),
            ABOUT_S,
        )
    }
}

fn claim_not_here(why: &str) -> Vec<ClaimRecord> {
    let claim = Claim::vague(
        "a sender every 1 to 9 ms",
        "2.2 s at 1 and 2 ms, else about 1.2 s",
    );
    vec![claim.mark_untestable(why)]
}

/// Judges a claim for each delay (cell) of an algorithm.
fn judge_cells(
    record: &SpinReplayRecord,
    algorithm: usize,
    claim: impl Fn(f64) -> (Claim, f64),
) -> Vec<ClaimRecord> {
    let cells = record
        .algorithms
        .get(algorithm)
        .map(|algorithm| &algorithm.cells);
    let judge_cell = |cell: &ReplayCell| {
        let (claim, tolerance_s) = claim(cell.delay_ms);
        match (&cell.measured, cell.cliff_percent) {
            (_, Some(percent)) if cell.unstable => claim.mark_untestable(&format!(
                "a change of PAUSE by {percent:.1} % gives the other result: either is right"
            )),
            (Some(measured), _) if cell.items >= MIN_ITEMS => {
                let result = ClaimResult {
                    value: measured.seconds_per_100_items,
                    low: seconds_per_100_items(cell, measured.lateness_low_us),
                    high: seconds_per_100_items(cell, measured.lateness_high_us),
                };
                claim.judge_figure(result, Judge::Within(tolerance_s))
            }
            _ => claim.mark_untestable("other programs disturbed nearly all items"),
        }
    };
    cells.into_iter().flatten().map(judge_cell).collect()
}

/// Duration of 100 items that are this late each.
fn seconds_per_100_items(cell: &ReplayCell, late_us: f64) -> f64 {
    100.0 * (cell.hold_ms * 1e-3 + late_us * 1e-6)
}
