//! Sentences on traces, from synthetic figures.

use super::words::{compare_traces, describe_arm};
use super::*;
use crate::compare::{NoObserver, Tuning, run};
use pinwise_machine::Host;
use pinwise_record::examples::any_figures;
use pinwise_record::{LowerBound, MigrationCounts, SharingCauses, TraceFigures, TraceTier};
use pinwise_sim::SimulatedMachine;
use pinwise_workload::Command;

const PLAIN: &str = "topology = \"core:2 pu:2\"\n[effects]\none-core = 0.8\n[noise]\nsd = 0.01";

/// os-default against one-core on a simulated machine.
fn compare_traced(text: &str, is_traced: bool) -> Comparison {
    let mut machine = SimulatedMachine::from_text("m", text, 1).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let placements = ["os-default", "one-core"].map(|name| name.parse().unwrap());
    let command = Command::from_line("prog").unwrap();
    let plan = ComparePlan {
        tuning: Tuning {
            budget: None,
            max_runs: Some(20),
            ..Tuning::default()
        },
        ..ComparePlan::compare_placements(command, &topology, &placements).unwrap()
    };
    let mut record = run(&plan, &mut machine, &mut NoObserver).unwrap();
    if is_traced {
        trace_arms(&mut record, &plan, &mut machine, &mut NoObserver);
    }
    record
}

/// Figures of one second of CPU time: migrations across cores, LLCs and packages, per cent of it with
/// avoidable and with any SMT sharing, and seconds queued.
fn figures(
    moves: (u64, u64, u64),
    sharing: Option<(f64, f64)>,
    queued_s: Option<f64>,
) -> TraceFigures {
    let mut figures = any_figures(1.0);
    figures.totals.migrations = MigrationCounts {
        core: moves.0,
        llc: moves.1,
        package: moves.2,
        ..MigrationCounts::default()
    };
    figures.waits.total_s = queued_s;
    let smt = &mut figures.avoidable_smt_sharing;
    smt.percent = sharing.map(|(avoidable, _)| avoidable);
    smt.shared_percent = sharing.map(|(_, shared)| shared);
    smt.by = sharing.map(|(avoidable, _)| SharingCauses {
        scheduler_s: 0.01 * avoidable,
        ..SharingCauses::default()
    });
    figures
}

#[track_caller]
fn check(figures: &TraceFigures, expected: &str) {
    assert_eq!(describe_arm("a", figures), expected);
}

#[test]
fn a_lower_bound_is_reported_as_at_least() {
    let mut figures = figures((0, 0, 0), None, Some(1.0));
    figures.lower_bounds = vec![LowerBound::Queued];
    check(
        &figures,
        "a never migrated; its threads were queued at least 50 % of their time.",
    );
}

#[test]
fn migrations_sharing_and_queueing_are_listed() {
    check(&figures((0, 0, 0), None, None), "a never migrated.");
    check(&figures((1, 0, 0), None, Some(0.0)), "a migrated once.");
    check(
        &figures((389, 20, 3), Some((0.2, 0.3)), Some(0.001)),
        "a migrated 412 times, 20 of them across LLCs, 3 across packages.",
    );
    check(
        &figures((0, 0, 2), Some((31.4, 40.0)), Some(1.0)),
        "a migrated twice, 2 of them across packages; 31 % of its CPU time was beside a busy \
         SMT sibling while a core idled, by the scheduler; its threads were queued 50 % of \
         their time.",
    );
    check(
        &figures((0, 0, 0), Some((0.0, 96.0)), None),
        "a never migrated; 96 % of its CPU time was beside a busy SMT sibling, while no core \
         idled.",
    );
}

#[test]
fn the_cause_of_more_than_half_of_the_sharing_is_named() {
    let shown = |scheduler_s, mask_s, other_processes_s| {
        let mut figures = figures((0, 0, 0), Some((30.0, 30.0)), None);
        figures.avoidable_smt_sharing.by = Some(SharingCauses {
            scheduler_s,
            mask_s,
            other_processes_s,
        });
        let shown = describe_arm("a", &figures);
        shown.rsplit_once("core idled").unwrap().1.to_owned()
    };
    assert_eq!(shown(2.0, 1.0, 0.5), ", by the scheduler.");
    assert_eq!(shown(0.0, 1.0, 0.5), ", because of its affinity mask.");
    assert_eq!(shown(0.0, 1.0, 1.5), ", beside other programs.");
    assert_eq!(shown(1.0, 1.0, 0.0), ".");
}

/// The sentence on the difference of these traces.
fn compare_figures(base: TraceFigures, other: TraceFigures) -> Option<String> {
    let mut record = compare_traced(PLAIN, false);
    for (arm, figures) in record.arms.iter_mut().zip([base, other]) {
        arm.trace = Some(ArmTrace {
            tier: TraceTier::Bpf,
            elapsed_s: 1.0,
            sentence: String::new(),
            notes: Vec::new(),
            figures,
        });
    }
    compare_traces(&record)
}

#[test]
fn the_sentence_says_what_two_arms_differ_in() {
    let quiet = || figures((0, 0, 0), Some((0.0, 0.0)), Some(0.0));
    let shown = compare_figures(
        figures((389, 23, 0), Some((31.0, 31.0)), Some(0.02)),
        quiet(),
    );
    assert_eq!(
        shown.unwrap(),
        "In one traced run each, os-default migrated 412 times, 23 of them across LLCs, and \
         one-core never did; 31 % of os-default's CPU time was beside a busy SMT sibling while a \
         core idled, with one-core 0 %."
    );
    let shown = compare_figures(quiet(), figures((3, 0, 0), None, Some(0.02)));
    assert_eq!(
        shown.unwrap(),
        "In one traced run each, the scheduler did much the same with os-default and one-core."
    );
}

#[test]
fn one_trace_adds_nothing_to_the_verdict() {
    assert_eq!(compare_traces(&compare_traced(PLAIN, false)), None);
}

#[test]
fn an_unavailable_trace_is_reported_and_leaves_the_record_unchanged() {
    let (plain, traced) = (compare_traced(PLAIN, false), compare_traced(PLAIN, true));
    assert!(traced.arms.iter().all(|arm| arm.trace.is_none()));
    assert_eq!((traced.verdict, traced.arms), (plain.verdict, plain.arms));
    let shown: Vec<&Finding> = traced
        .header
        .findings
        .iter()
        .filter(|finding| finding.check == "trace_unavailable")
        .collect();
    assert_eq!(shown.len(), 1);
    assert!(
        shown[0].sentence.contains("[scheduler]"),
        "{}",
        shown[0].sentence
    );
}
