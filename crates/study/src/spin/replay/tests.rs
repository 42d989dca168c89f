//! Replays on simulated machines, whose results must be those of theory.

use super::*;
use pinwise_record::ReleaseSeen;
use pinwise_sim::SimulatedMachine;
use pinwise_spin::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

fn plan_of(algorithms: &[Option<&'static Algorithm>]) -> ReplayPlan {
    ReplayPlan {
        experiment: Experiment::ProducerConsumer,
        algorithms: algorithms.to_vec(),
        hint_ns: Some(43.0),
        chip: None,
        cpus_assumed: Some(24),
        hold: Duration::from_millis(10),
        delays: (1..=9).map(Duration::from_millis).collect(),
        items: 20,
        repeats: 1,
        threads: Vec::new(),
        is_realtime: false,
    }
}

fn replay_on(plan: &ReplayPlan, topology: &str) -> Result<SpinReplayRecord> {
    let mut machine = SimulatedMachine::open(topology, 7).unwrap();
    run(plan, &mut machine, &mut |_, _| ())
}

#[test]
fn the_curve_of_the_field_report_has_its_cliff() {
    let both = [Some(&NETFX_AWARELOCK), Some(&CORECLR_MONITOR), None];
    let record = replay_on(&plan_of(&both), "core:2 pu:1").unwrap();
    let [old, new, futex] = &record.algorithms[..] else {
        panic!("{record:?}");
    };
    let times: Vec<f64> = old
        .cells
        .iter()
        .map(|cell| cell.measured.as_ref().unwrap().seconds_per_100_items)
        .collect();
    let expected = [2.22, 2.32, 1.01, 1.11, 1.21, 1.31, 1.41, 1.03, 1.13];
    for ((time, expected), cell) in times.iter().zip(expected).zip(&old.cells) {
        assert!(
            cell.unstable || (time - expected).abs() < 0.01,
            "{time} {expected}"
        );
    }
    let unstable = old.cells.iter().filter(|cell| cell.unstable);
    assert_eq!(
        unstable.map(|cell| cell.delay_ms).collect::<Vec<_>>(),
        [3.0]
    );
    assert!(old.median_error_percent.unwrap() < 0.5, "{old:?}");
    assert_eq!(old.stable_cells, 8);
    for repaired in new.cells.iter().chain(&futex.cells) {
        let measured = repaired.measured.as_ref().unwrap();
        assert!((measured.seconds_per_100_items - 1.0).abs() < 0.01);
        assert_eq!(
            (measured.parks, &repaired.predicted.seen),
            (20, &ReleaseSeen::Parked)
        );
    }
    // Waking up is measured: no prediction of looks applies to it.
    assert_eq!(
        (new.median_error_percent, futex.total_hints),
        (None, Some(0))
    );
    assert!(
        record
            .conclusions
            .iter()
            .any(|s| s.contains("uncertain at 3 ms"))
    );
    assert!(
        record
            .conclusions
            .iter()
            .any(|s| s.contains("At 2 ms 100 items take 2.3")),
        "{:?}",
        record.conclusions
    );
}

#[test]
fn the_delay_of_a_hand_off_is_the_time_until_the_release() {
    let mut plan = plan_of(&[Some(&NETFX_AWARELOCK)]);
    plan.experiment = Experiment::Handoff;
    plan.delays = vec![Duration::from_millis(8)];
    let record = replay_on(&plan, "core:2 pu:1").unwrap();
    let cell = &record.algorithms[0].cells[0];
    assert!((cell.hold_ms - 8.0).abs() < 1e-9 && cell.delay_ms == 0.0);
    let late_us = cell.predicted.lateness_us.unwrap();
    assert!((late_us - 13_158.15).abs() < 0.01, "{late_us}");
    assert_eq!(record.hold_ms, None);
}

#[track_caller]
fn check_refusal(plan: &ReplayPlan, topology: &str, words: &str) {
    let error = replay_on(plan, topology).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_reason() {
    let mut one = plan_of(&[None]);
    check_refusal(&one, "core:1 pu:1", "only CPU 0 is allowed");
    one.experiment = Experiment::Contend;
    check_refusal(&one, "core:2 pu:1", "executes no instructions");
    const LOADS: Algorithm = Algorithm {
        unit: pinwise_spin::algorithm::Unit::Load,
        ..NETFX_AWARELOCK
    };
    check_refusal(
        &plan_of(&[Some(&LOADS)]),
        "core:2 pu:1",
        "without spin-wait hints",
    );
    const UNKNOWN: Algorithm = Algorithm {
        backoff: pinwise_spin::algorithm::Backoff::Unknown,
        ..NETFX_AWARELOCK
    };
    check_refusal(
        &plan_of(&[Some(&UNKNOWN)]),
        "core:2 pu:1",
        "its exact steps are not known",
    );
}

#[test]
fn siblings_are_used_if_there_is_only_one_core() {
    let record = replay_on(&plan_of(&[None]), "core:1 pu:2").unwrap();
    assert!(
        record
            .notes
            .iter()
            .any(|note| note.contains("share a core"))
    );
    let record = replay_on(&plan_of(&[None]), "core:2 pu:2").unwrap();
    assert_eq!(record.cpus, [0, 2]);
}
