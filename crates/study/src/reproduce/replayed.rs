//! The 2018 report's producer and consumer, executed on this machine
//! with its PAUSE stretched or shortened to the report's.
//!
//! It judges what was executed; if other programs left too little of that, or theory allows either
//! result, it judges nothing.

use std::time::Duration;

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, experiment};
use crate::is_interrupt;
use crate::spin::replay::{self, Experiment, ReplayPlan};
use pinwise_machine::{Prober, Replayer};
use pinwise_record::{ClaimRecord, ExperimentRecord, ReplayCell, SpinReplayRecord};
use pinwise_spin::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

/// PAUSE on the report's machine, ns, and CPUs on the same step of its loop.
const PAUSE_NS: f64 = 43.0;
const CPUS: u64 = 24;
/// Items of each delay, gone through twice.
const ITEMS: usize = 4;
const REPEATS: usize = 2;
/// Fewer than these say nothing.
const MIN_ITEMS: u64 = 3;
/// The tolerance of the report's "about" for a time.
const ABOUT_S: f64 = 0.25;

/// Both experiments.
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
            claims(&record, 0, old_claim),
            claims(&record, 1, |delay_ms| {
                let claim = format!("repaired, a sender every {delay_ms} ms");
                (
                    Claim::new(claim, "about 1.2 s").with_figure(1.2, "s"),
                    ABOUT_S,
                )
            }),
        ),
        Err(error) if is_interrupt(&error) => return Err(error),
        Err(error) => (
            refuse_claims(&error.to_string()),
            refuse_claims(&error.to_string()),
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

fn old_claim(delay_ms: f64) -> (Claim, f64) {
    let claim = format!("a sender every {delay_ms} ms");
    if delay_ms < 2.5 {
        (
            Claim::new(claim, "2.2 to 2.3 s").with_figure(2.25, "s"),
            0.1,
        )
    } else {
        (
            Claim::new(claim, "about 1.2 s").with_figure(1.2, "s"),
            ABOUT_S,
        )
    }
}

fn refuse_claims(why: &str) -> Vec<ClaimRecord> {
    let claim = Claim::new(
        "a sender every 1 to 9 ms",
        "2.2 s at 1 and 2 ms, else about 1.2 s",
    );
    vec![claim.not_here(why)]
}

/// The claims on an algorithm's cells.
fn claims(
    record: &SpinReplayRecord,
    algorithm: usize,
    claim: impl Fn(f64) -> (Claim, f64),
) -> Vec<ClaimRecord> {
    let cells = record.algorithms.get(algorithm).map(|of| &of.cells);
    let judged = |cell: &ReplayCell| {
        let (claim, most) = claim(cell.delay_ms);
        match (&cell.measured, cell.cliff_percent) {
            (_, Some(percent)) if cell.unstable => claim.not_here(&format!(
                "a change of PAUSE by {percent:.1} % gives the other result: either is right"
            )),
            (Some(measured), _) if cell.items >= MIN_ITEMS => {
                let found = ClaimResult {
                    value: measured.seconds_per_100_items,
                    low: time_s(cell, measured.lateness_low_us),
                    high: time_s(cell, measured.lateness_high_us),
                };
                claim.judge_figure(found, Judge::Within(most))
            }
            _ => claim.not_here("other programs disturbed nearly all items"),
        }
    };
    cells.into_iter().flatten().map(judged).collect()
}

/// Duration of 100 items with a lateness.
fn time_s(cell: &ReplayCell, late_us: f64) -> f64 {
    100.0 * (cell.hold_ms * 1e-3 + late_us * 1e-6)
}
