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
    check_set(parse_taskset_list("0,5,8-11"), "0,5,8-11");
    check_set(parse_taskset_list("0-30:10"), "0,10,20,30");
    check_set(parse_numactl_list("!1-5", &all), "0,6-7");
    check_set(parse_numactl_list("all", &all), "0-7");
    assert!(parse_numactl_list("+0-1", &all).is_err());
    check_set(parse_systemd_list("0 2-3,5"), "0,2-3,5");
    check_set(parse_libvirt_cpuset("1-4,^3,6"), "1-2,4,6");
    assert_eq!(
        parse_gomp_list("0 3 1-2 4-15:2").unwrap(),
        [0, 3, 1, 2, 4, 6, 8, 10, 12, 14]
    );
    check_sets(
        parse_kmp_proclist("[7,4-6:2,{3,2}]"),
        &["7", "4", "6", "2-3"],
    );
    check_sets(parse_slurm_binding("mask_cpu:0x3,0xC"), &["0-1", "2-3"]);
    check_sets(parse_slurm_binding("map_cpu:2,0"), &["2", "0"]);
}

#[test]
fn places_of_the_standard_are_read() {
    let places = |text: &str| parse_omp_places(text, &server());
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
    check_set(parse_hwloc_location("0x5", &machine), "0,2");
    check_set(parse_hwloc_location("core:1", &machine), "2-3");
    check_set(parse_hwloc_location("pu:2-4", &machine), "2-4");
    check_set(parse_hwloc_location("package:1", &machine), "4-7");
    check_set(parse_hwloc_location("numa:all", &machine), "0-7");
    for bad in ["core:9", "kettle:0", "pu:x", "xyz"] {
        assert!(parse_hwloc_location(bad, &machine).is_err(), "{bad}");
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
        assert!(parse_taskset_list(bad).is_err(), "{bad}");
        assert!(parse_libvirt_cpuset(bad).is_err(), "{bad}");
        assert!(parse_gomp_list(bad).is_err(), "{bad}");
    }
    assert!(parse_systemd_list("0-4:2").is_err());
    for bad in ["", "[", "[{1]", "[1,]", "[1 2]", "1,2"] {
        assert!(parse_kmp_proclist(bad).is_err(), "{bad}");
    }
    for bad in ["", "mask_cpu:", "mask_cpu:x", "rank", "tree:1"] {
        assert!(parse_slurm_binding(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "([0-9a-f:,{}\\[\\]!^ ()x-]|cores|mask_cpu:|pu:){0,24}") {
        let machine = server();
        let _ = parse_taskset_list(&text);
        let _ = parse_numactl_list(&text, &machine.allowed);
        let _ = parse_systemd_list(&text);
        let _ = parse_libvirt_cpuset(&text);
        let _ = parse_gomp_list(&text);
        let _ = parse_kmp_proclist(&text);
        let _ = parse_slurm_binding(&text);
        let _ = parse_hwloc_location(&text, &machine);
        let _ = parse_omp_places(&text, &machine);
    }
}
