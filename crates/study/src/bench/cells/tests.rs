//! Plans for machines that are not available here.

use super::super::smt::find_smt;
use super::*;
use pinwise_kernels::work::find;

fn plan(machine: &str, wanted: &BenchRequest) -> Vec<Trial> {
    plan_on(&Topology::from_synthetic(machine).unwrap(), wanted)
}

fn plan_on(topology: &Topology, wanted: &BenchRequest) -> Vec<Trial> {
    let smt = find_smt(topology, None);
    let caches = super::super::cache_fit::find_data_caches(topology, None).sizes;
    let facts = MachineFacts {
        topology,
        smt: &smt,
        caches: &caches,
    };
    plan_trials(wanted, facts).unwrap().0
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
fn two_cores_without_smt_are_asked_about_scaling_only() {
    let trials = plan("core:2 pu:1", &fibonacci());
    assert_eq!(trials.len(), 1);
    assert_eq!(names(&trials[0]), ["1 @ os-default", "2 @ os-default"]);
    assert_eq!(trials[0].work, 20);
}

#[test]
fn smt_is_tested_on_one_core_and_on_the_whole_machine() {
    let trials = plan("core:2 pu:2", &suite(Suite::Smt));
    assert_eq!(trials[0].question, Question::SmtCore);
    assert_eq!(names(&trials[0]), ["1 @ cpu:2", "2 @ cpu:2-3"]);
    assert_eq!(trials[1].question, Question::SmtMachine);
    assert_eq!(names(&trials[1]), ["2 @ one-per-core", "4 @ os-default"]);
    let one_core = plan("core:1 pu:2", &suite(Suite::Smt));
    assert!(one_core.iter().all(|t| t.question == Question::SmtCore));
    // A virtual machine may hide siblings, which this suite does not find.
    let mut without = Topology::from_synthetic("core:4 pu:1").unwrap();
    for hypervisor in [None, Some("kvm".to_owned())] {
        without.identity.hypervisor = hypervisor;
        assert!(plan_on(&without, &suite(Suite::Smt)).is_empty());
    }
}

#[test]
fn placements_of_the_same_cpus_are_one_cell() {
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
fn requested_placements_and_thread_counts_are_kept() {
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
fn kernels_without_versions_are_left_out_of_several_builds() {
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
fn work_divides_evenly_among_threads_unless_that_makes_it_large() {
    let work_for = |numbers: &[usize]| {
        let topology = Topology::from_synthetic("core:256 pu:1").unwrap();
        let cells: Vec<Cell> = numbers
            .iter()
            .map(|&threads| new_cell(threads, Wish::OsDefault, Isa::Native, &topology).unwrap())
            .collect();
        units_of_work(&cells)
    };
    assert_eq!(work_for(&[1]), 10);
    assert_eq!(work_for(&[1, 2]), 20);
    assert_eq!(work_for(&[1, 2, 4, 6]), 60);
    assert_eq!(work_for(&[1, 2, 4, 8, 16]), 96);
    assert_eq!(work_for(&[1, 3, 7]), 84);
    assert_eq!(work_for(&[256, 128, 1]), 512);
    // The common multiple is too large: threads get unequal shares.
    assert_eq!(work_for(&[7, 11, 13, 17]), 85);
}

#[test]
fn kernels_that_share_data_get_even_thread_counts() {
    for kernel in KERNELS.iter().filter(|k| k.group == Group::Sharing) {
        assert_eq!(numbers_of_threads(kernel, 7), [1, 2, 4]);
        assert_eq!(numbers_of_threads(kernel, 1), [1, 2]);
    }
    let fibonacci = find("fibonacci").unwrap();
    assert_eq!(numbers_of_threads(fibonacci, 6), [1, 2, 4, 6]);
    assert_eq!(numbers_of_threads(fibonacci, 1), [1]);
}
