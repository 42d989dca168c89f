//! Plans for machines that are not available here.

use super::super::smt::smt;
use super::*;
use pinwise_kernels::work::find;

fn plan(machine: &str, wanted: &BenchRequest) -> Vec<Trial> {
    let topology = Topology::from_synthetic(machine).unwrap();
    let smt = smt(&topology, None);
    let caches = super::super::cache_fit::caches(&topology, None).sizes;
    let facts = MachineFacts {
        topology: &topology,
        smt: &smt,
        caches: &caches,
    };
    trials(wanted, facts).unwrap().0
}

fn fibonacci() -> BenchRequest {
    BenchRequest {
        kernels: vec![find("fibonacci").unwrap()],
        ..BenchRequest::default()
    }
}

fn suite(suite: Suite) -> BenchRequest {
    BenchRequest {
        suite: Some(suite),
        ..BenchRequest::default()
    }
}

fn names(trial: &Trial) -> Vec<String> {
    trial.cells.iter().map(|cell| trial.name(cell)).collect()
}

#[test]
fn two_cpus_leave_one_question() {
    let trials = plan("core:2 pu:1", &fibonacci());
    assert_eq!(trials.len(), 1);
    assert_eq!(names(&trials[0]), ["1 @ os-default", "2 @ os-default"]);
    assert_eq!(trials[0].work, 20);
}

#[test]
fn smt_is_asked_of_a_core_and_of_the_machine() {
    let trials = plan("core:2 pu:2", &suite(Suite::Smt));
    assert_eq!(trials[0].question, Question::SmtCore);
    assert_eq!(names(&trials[0]), ["1 @ cpu:2", "2 @ cpu:2-3"]);
    assert_eq!(trials[1].question, Question::SmtMachine);
    assert_eq!(names(&trials[1]), ["2 @ one-per-core", "4 @ os-default"]);
    let one_core = plan("core:1 pu:2", &suite(Suite::Smt));
    assert!(one_core.iter().all(|t| t.question == Question::SmtCore));
    assert!(plan("core:4 pu:1", &suite(Suite::Smt)).is_empty());
}

#[test]
fn placements_that_come_to_the_same_are_one_cell() {
    let trials = plan("core:4 pu:2", &fibonacci());
    let scaling = &trials[0];
    assert_eq!(
        names(scaling),
        [
            "1 @ os-default",
            "2 @ os-default",
            "2 @ one-per-core*2",
            "2 @ compact*2",
            "4 @ os-default",
            "4 @ one-per-core",
            "4 @ compact*4",
            "8 @ os-default",
        ]
    );
    let merged = scaling
        .cells
        .iter()
        .find(|cell| cell.threads == 4 && !cell.same_as.is_empty());
    assert_eq!(merged.unwrap().same_as, ["spread*4"]);
    assert_eq!(merged.unwrap().family, "one-per-core");
    assert_eq!(trials.len(), 3);
}

#[test]
fn what_is_asked_for_is_kept() {
    let wanted = BenchRequest {
        places: vec!["cpu:0".parse().unwrap(), "spread".parse().unwrap()],
        threads: vec![1, 3],
        ..fibonacci()
    };
    let trials = plan("core:4 pu:1", &wanted);
    assert_eq!(trials.len(), 1);
    // One CPU of `spread` is CPU 0.
    assert_eq!(
        names(&trials[0]),
        ["1 @ cpu:0", "3 @ cpu:0", "3 @ spread*3"]
    );
}

#[test]
fn several_builds_need_versions() {
    let wanted = BenchRequest {
        isas: vec![Isa::V1, Isa::Native],
        ..fibonacci()
    };
    assert!(plan("core:2 pu:1", &wanted).is_empty());
    for trial in plan(
        "core:2 pu:1",
        &BenchRequest {
            isas: vec![Isa::V1, Isa::Native],
            ..suite(Suite::Scaling)
        },
    ) {
        assert_eq!(trial.question, Question::Builds);
        assert_eq!(
            names(&trial),
            ["v1 1 @ os-default", "native 1 @ os-default"]
        );
    }
}

#[test]
fn work_is_shared_without_a_rest_and_within_reason() {
    let of = |numbers: &[usize]| {
        let topology = Topology::from_synthetic("core:256 pu:1").unwrap();
        let cells: Vec<Cell> = numbers
            .iter()
            .map(|&threads| cell(threads, Wish::OsDefault, Isa::Native, &topology).unwrap())
            .collect();
        work(&cells)
    };
    assert_eq!(of(&[1]), 10);
    assert_eq!(of(&[1, 2]), 20);
    assert_eq!(of(&[1, 2, 4, 6]), 60);
    assert_eq!(of(&[1, 2, 4, 8, 16]), 96);
    assert_eq!(of(&[1, 3, 7]), 84);
    assert_eq!(of(&[256, 128, 1]), 512);
    // No common multiple within reason: some work is left over.
    assert_eq!(of(&[7, 11, 13, 17]), 85);
}

#[test]
fn threads_that_share_come_in_pairs() {
    for kernel in KERNELS.iter().filter(|k| k.group == Group::Sharing) {
        assert_eq!(numbers_of_threads(kernel, 7), [1, 2, 4]);
        assert_eq!(numbers_of_threads(kernel, 1), [1, 2]);
    }
    let fibonacci = find("fibonacci").unwrap();
    assert_eq!(numbers_of_threads(fibonacci, 6), [1, 2, 4, 6]);
    assert_eq!(numbers_of_threads(fibonacci, 1), [1]);
}
