//! Files of a made-up machine that contradict each other: each contradiction is reported, and the
//! likelier reading taken.

use crate::{Capture, CpuSet, Level, Topology};

const CPU_DIR: &str = "sys/devices/system/cpu";

/// Two packages of four cores that share an L3, CPUs 0-3 and 4-7.
fn machine() -> Capture {
    let mut capture = Capture::new();
    capture.insert(format!("{CPU_DIR}/online"), "0-7");
    for cpu in 0..8 {
        let dir = format!("{CPU_DIR}/cpu{cpu}");
        let package = if cpu < 4 { "0-3" } else { "4-7" };
        for (file, text) in [
            ("topology/core_cpus_list", format!("{cpu}")),
            ("topology/core_id", format!("{cpu}")),
            ("topology/package_cpus_list", package.to_owned()),
            ("topology/physical_package_id", format!("{}", cpu / 4)),
            ("cache/index3/level", "3".to_owned()),
            ("cache/index3/type", "Unified".to_owned()),
            ("cache/index3/id", format!("{}", cpu / 4)),
            ("cache/index3/shared_cpu_list", package.to_owned()),
        ] {
            capture.insert(format!("{dir}/{file}"), text);
        }
    }
    capture
}

/// Printed by most distributions' kernels, which could have such CPUs but do not.
#[test]
fn a_missing_mask_of_the_kernel_is_empty() {
    let mut capture = machine();
    capture.insert(format!("{CPU_DIR}/nohz_full"), "(null)\n");
    let (topology, warnings) = Topology::from_capture(&capture);
    assert_eq!(warnings, Vec::<String>::new());
    assert!(topology.nohz_full.is_empty());
}

/// The machine with another file for some of its CPUs.
fn alter_capture(file: &str, text: impl Fn(usize) -> String) -> Capture {
    let mut capture = machine();
    for cpu in 0..8 {
        capture.insert(format!("{CPU_DIR}/cpu{cpu}/{file}"), text(cpu));
    }
    capture
}

#[track_caller]
fn check(capture: &Capture, level: Level, units: &[&str], warning: &str) {
    let (topology, warnings) = Topology::from_capture(capture);
    let read: Vec<String> = topology
        .units(level)
        .iter()
        .map(CpuSet::to_string)
        .collect();
    assert_eq!(read, units);
    assert!(
        warnings.iter().any(|known| known.contains(warning)),
        "{warnings:?}"
    );
}

#[test]
fn files_that_agree_are_not_reported() {
    let (topology, warnings) = Topology::from_capture(&machine());
    assert_eq!(topology.counts().llcs, 2);
    assert_eq!(warnings, Vec::<String>::new());
    // Ids may restart in each package.
    let (_, warnings) =
        Topology::from_capture(&alter_capture("cache/index3/id", |_| "0".to_owned()));
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn an_l3_over_two_packages_is_one_in_each() {
    let capture = alter_capture("cache/index3/shared_cpu_list", |_| "0-7".to_owned());
    check(
        &capture,
        Level::Llc,
        &["0-3", "4-7"],
        "of 2 packages, which is impossible",
    );
}

#[test]
fn lists_take_precedence_if_an_l3_id_has_several() {
    let halves = ["0-1", "2-3", "4-5", "6-7"];
    let capture = alter_capture("cache/index3/shared_cpu_list", |cpu| {
        halves[cpu / 2].to_owned()
    });
    let warning = "The L3 with id 0 has 2 lists of CPUs that do not overlap, 0-1; 2-3";
    check(&capture, Level::Llc, &halves, warning);
    let many = alter_capture("cache/index3/shared_cpu_list", |cpu| cpu.to_string());
    check(
        &many,
        Level::Llc,
        &["0", "1", "2", "3", "4", "5", "6", "7"],
        "4 lists of CPUs",
    );
}

#[test]
fn lists_take_precedence_if_one_has_several_l3_ids() {
    let capture = alter_capture("cache/index3/id", |cpu| (cpu / 2).to_string());
    let warning = "CPUs 0-3 are listed as sharing an L3, but give it 2 ids, 0; 1";
    check(&capture, Level::Llc, &["0-3", "4-7"], warning);
}

#[test]
fn packages_of_one_id_are_one() {
    let mut capture = alter_capture("topology/package_cpus_list", |cpu| cpu.to_string());
    for cpu in 0..8 {
        let file = format!("{CPU_DIR}/cpu{cpu}/topology/physical_package_id");
        capture.insert(file, "0");
    }
    let warning = "make 8 packages, but all CPUs have one package id: taken as one package";
    check(&capture, Level::Package, &["0-7"], warning);
}

#[test]
fn a_quota_above_the_allowed_cpus_has_no_effect() {
    let mut capture = machine();
    capture.insert("pinwise/affinity", "0-1");
    capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    capture.insert("proc/self/cgroup", "0::/\n");
    capture.insert("sys/fs/cgroup/cpu.max", "800000 100000");
    let warning = "exceeds the 2 that this process may use: it has no effect";
    check(&capture, Level::Package, &["0-3", "4-7"], warning);
}

#[test]
fn a_core_over_two_packages_is_one_in_each() {
    let capture = alter_capture("topology/core_cpus_list", |cpu| match cpu {
        3 | 4 => "3-4".to_owned(),
        _ => cpu.to_string(),
    });
    let mut capture = capture;
    capture.insert(format!("{CPU_DIR}/cpu4/topology/core_id"), "3");
    check(
        &capture,
        Level::Core,
        &["0", "1", "2", "3", "4", "5", "6", "7"],
        "CPUs 3-4 are reported as one core over 2 packages, which is impossible",
    );
}

#[test]
fn nodes_across_packages_are_kept_and_reported() {
    let mut capture = machine();
    for (node, cpus) in ["0-1,4-5", "2-3,6-7"].into_iter().enumerate() {
        capture.insert(format!("sys/devices/system/node/node{node}/cpulist"), cpus);
    }
    let warning =
        "The last-level cache of CPUs 0-3 and the NUMA node of CPUs 0-1,4-5 overlap only in part";
    check(&capture, Level::Numa, &["0-1,4-5", "2-3,6-7"], warning);
    check(
        &capture,
        Level::Numa,
        &["0-1,4-5", "2-3,6-7"],
        "The NUMA node of CPUs 0-1,4-5 and the package of CPUs 0-3 overlap only in part",
    );
}

/// A machine of hundreds of CPUs may have the same oddity in a file of each.
#[test]
fn the_same_contradiction_of_many_cpus_is_one_warning() {
    let (_, warnings) =
        Topology::from_capture(&alter_capture("cache/index3/shared_cpu_list", |cpu| {
            if cpu == 0 { "0-7" } else { "0" }.to_owned()
        }));
    let alone: Vec<&String> = warnings.iter().filter(|w| w.contains("itself")).collect();
    assert_eq!(
        alone,
        [
            "/sys/devices/system/cpu/cpu1/cache/index3/shared_cpu_list: CPUs 0 are without CPU 1 \
          itself; ignored. The same of 6 more CPUs, 1-7 in all."
        ]
    );
    let (_, warnings) =
        Topology::from_capture(&alter_capture("topology/package_cpus_list", |cpu| {
            format!("{cpu}-{}", cpu + 1)
        }));
    let odd = warnings.iter().filter(|w| w.contains("share a package"));
    let odd: Vec<&String> = odd.collect();
    assert_eq!(odd.len(), 2, "{warnings:?}");
    assert!(odd[1].ends_with("ignored. The same of 2 more."), "{odd:?}");
}

/// lxcfs lists as many CPUs as the container may use, which may be some of the right ones.
#[test]
fn a_cpuset_takes_precedence_over_a_made_up_list() {
    let mut capture = machine();
    capture.insert(format!("{CPU_DIR}/online"), "0-3");
    capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    capture.insert("proc/self/cgroup", "0::/\n");
    capture.insert("sys/fs/cgroup/cpuset.cpus.effective", "2-5");
    let (topology, warnings) = Topology::from_capture(&capture);
    assert_eq!(topology.allowed.to_string(), "2-5");
    assert!(warnings[0].contains("online says 0-3, but this process may use CPUs 2-5"));
    // CPUs that are switched off are not described.
    let is_off = |line: &str| (4..8).any(|cpu| line.contains(&format!("cpu{cpu}/topology")));
    let text = capture.to_text();
    let lines = text.lines().filter(|line| !is_off(line));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let (topology, _) = Topology::from_capture(&Capture::from_text(&text).unwrap());
    assert_eq!(topology.allowed.to_string(), "2-3");
    // Old kernels describe them, and say that they are off.
    for cpu in 4..8 {
        capture.insert(format!("{CPU_DIR}/cpu{cpu}/online"), "0");
    }
    let (topology, _) = Topology::from_capture(&capture);
    assert_eq!(topology.allowed.to_string(), "2-3");
}
