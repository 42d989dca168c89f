//! Readers on their own: the examples of the tools' manuals, and arbitrary text.

use proptest::prelude::*;

use super::*;
use pinwise_topology::{CpuSet, Topology};

fn server() -> Topology {
    Topology::from_synthetic("package:2 [numa] l3:1 core:2 pu:2").unwrap()
}

#[track_caller]
fn check_set(set: Result<CpuSet, ReadError>, list: &str) {
    assert_eq!(set.unwrap().to_string(), list);
}

#[track_caller]
fn check_sets(sets: Result<Vec<CpuSet>, ReadError>, lists: &[&str]) {
    let sets: Vec<String> = sets.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(sets, lists);
}

#[test]
fn lists_of_the_manuals_are_read() {
    let all = CpuSet::first_n(8);
    check_set(taskset_list("0,5,8-11"), "0,5,8-11");
    check_set(taskset_list("0-30:10"), "0,10,20,30");
    check_set(numactl_list("!1-5", &all), "0,6-7");
    check_set(numactl_list("all", &all), "0-7");
    assert!(numactl_list("+0-1", &all).is_err());
    check_set(systemd_list("0 2-3,5"), "0,2-3,5");
    check_set(libvirt_cpuset("1-4,^3,6"), "1-2,4,6");
    assert_eq!(
        gomp_list("0 3 1-2 4-15:2").unwrap(),
        [0, 3, 1, 2, 4, 6, 8, 10, 12, 14]
    );
    check_sets(kmp_proclist("[7,4-6:2,{3,2}]"), &["7", "4", "6", "2-3"]);
    check_sets(slurm_binding("mask_cpu:0x3,0xC"), &["0-1", "2-3"]);
    check_sets(slurm_binding("map_cpu:2,0"), &["2", "0"]);
}

#[test]
fn places_of_the_standard_are_read() {
    let places = |text: &str| omp_places(text, &server());
    let four = ["0-3", "4-7", "8-11", "12-15"];
    check_sets(
        places("{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}"),
        &four,
    );
    check_sets(places("{0:4},{4:4},{8:4},{12:4}"), &four);
    check_sets(places("{0:4}:4:4"), &four);
    check_sets(places("{6}:3:-2"), &["6", "4", "2"]);
    check_sets(places("{0:4,!2}"), &["0-1,3"]);
    check_sets(places("{0}:3,!{1}"), &["0", "2"]);
    check_sets(places("cores(3)"), &["0-1", "2-3", "4-5"]);
    check_sets(places("sockets"), &["0-3", "4-7"]);
    check_sets(places("ll_caches"), &["0-3", "4-7"]);
    check_sets(places("numa_domains(1)"), &["0-3"]);
    check_sets(places("threads(2)"), &["0", "1"]);
    for bad in [
        "{0",
        "{}",
        "{0}:0",
        "{0}:3:-1",
        "kettles",
        "cores(",
        "{0}x",
        "0",
        "{1}:2:2:2",
    ] {
        assert!(places(bad).is_err(), "{bad}");
    }
}

#[test]
fn places_of_hwloc_are_read() {
    let machine = server();
    check_set(hwloc_location("0x5", &machine), "0,2");
    check_set(hwloc_location("core:1", &machine), "2-3");
    check_set(hwloc_location("pu:2-4", &machine), "2-4");
    check_set(hwloc_location("package:1", &machine), "4-7");
    check_set(hwloc_location("numa:all", &machine), "0-7");
    for bad in ["core:9", "kettle:0", "pu:x", "xyz"] {
        assert!(hwloc_location(bad, &machine).is_err(), "{bad}");
    }
}

#[test]
fn damaged_lists_are_refused() {
    for bad in [
        "1-",
        "-1",
        "5-3",
        "a",
        "0-9:0",
        "99999999999999999999",
        "20000",
    ] {
        assert!(taskset_list(bad).is_err(), "{bad}");
        assert!(libvirt_cpuset(bad).is_err(), "{bad}");
        assert!(gomp_list(bad).is_err(), "{bad}");
    }
    assert!(systemd_list("0-4:2").is_err());
    for bad in ["", "[", "[{1]", "[1,]", "[1 2]", "1,2"] {
        assert!(kmp_proclist(bad).is_err(), "{bad}");
    }
    for bad in ["", "mask_cpu:", "mask_cpu:x", "rank", "tree:1"] {
        assert!(slurm_binding(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "([0-9a-f:,{}\\[\\]!^ ()x-]|cores|mask_cpu:|pu:){0,24}") {
        let machine = server();
        let _ = taskset_list(&text);
        let _ = numactl_list(&text, &machine.allowed);
        let _ = systemd_list(&text);
        let _ = libvirt_cpuset(&text);
        let _ = gomp_list(&text);
        let _ = kmp_proclist(&text);
        let _ = slurm_binding(&text);
        let _ = hwloc_location(&text, &machine);
        let _ = omp_places(&text, &machine);
    }
}
