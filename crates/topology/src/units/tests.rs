//! Compares the few files with the full report, and reads damaged ones.

use proptest::prelude::*;

use super::*;
use crate::{Cache, Level, Topology};

/// The result of both readers: units by level and caches that cores share, online and allowed CPUs,
/// kinds.
type Units = (Vec<Vec<CpuSet>>, CpuSet, CpuSet, Vec<(String, CpuSet)>);

fn shared_caches(topology: &Topology) -> Vec<CpuSet> {
    let is_of_one = |cache: &Cache| topology.cores.iter().any(|core| cache.cpus.is_subset(core));
    let caches = topology.caches.iter();
    let shared = caches.filter(|cache| cache.level > 1 && !is_of_one(cache));
    shared.map(|cache| cache.cpus.clone()).collect()
}

fn units(topology: &Topology) -> Units {
    let kinds = topology.kinds.iter();
    (
        Level::ALL
            .map(|level| topology.units(level))
            .into_iter()
            .chain([shared_caches(topology)])
            .collect(),
        topology.online.clone(),
        topology.allowed.clone(),
        kinds.map(|k| (k.name.clone(), k.cpus.clone())).collect(),
    )
}

#[track_caller]
fn check(capture: &Capture) {
    let (whole, _) = Topology::from_capture(capture);
    let (few, warnings) = Topology::from_files(&mut &*capture);
    assert_eq!(units(&few), units(&whole));
    assert_eq!(few.quota, whole.quota);
    assert_eq!(few.restrictions, whole.restrictions);
    assert_eq!(warnings, Vec::<String>::new());
}

/// A captured machine: packages × LLCs × cores × SMT, siblings far apart in number if
/// `interleaved`.
fn machine(counts: [usize; 4], interleaved: bool) -> Capture {
    let [packages, llcs, cores, smt] = counts;
    let all_cores = packages * llcs * cores;
    let number = |core: usize, thread: usize| {
        if interleaved {
            thread * all_cores + core
        } else {
            core * smt + thread
        }
    };
    let unit = |of: usize, size: usize| -> CpuSet {
        let inside = (0..all_cores).filter(|core| core / size == of / size);
        let threads = inside.flat_map(|core| (0..smt).map(move |t| (core, t)));
        threads.map(|(core, t)| number(core, t)).collect()
    };
    let mut capture = Capture::new();
    capture.insert(
        "sys/devices/system/cpu/online",
        CpuSet::first_n(all_cores * smt).to_string(),
    );
    for core in 0..all_cores {
        for thread in 0..smt {
            let dir = format!("{CPU_DIR}/cpu{}", number(core, thread));
            let list = |size: usize| unit(core, size).to_string();
            capture.insert(format!("{dir}/topology/core_cpus_list"), list(1));
            capture.insert(
                format!("{dir}/topology/package_cpus_list"),
                list(cores * llcs),
            );
            capture.insert(format!("{dir}/topology/core_id"), format!("{core}"));
            for (index, level, kind, size) in [
                (0, 1, "Data", 1),
                (1, 1, "Instruction", 1),
                (2, 2, "Unified", 1),
                (3, 3, "Unified", cores),
            ] {
                let cache = format!("{dir}/cache/index{index}");
                capture.insert(format!("{cache}/level"), format!("{level}"));
                capture.insert(format!("{cache}/type"), kind);
                capture.insert(format!("{cache}/shared_cpu_list"), list(size));
            }
        }
    }
    capture
}

#[test]
fn regular_machines_are_read_the_same() {
    for interleaved in [false, true] {
        check(&machine([2, 3, 4, 2], interleaved));
        check(&machine([1, 1, 2, 1], interleaved));
    }
}

#[test]
fn efficiency_cores_without_the_outer_cache_are_read_the_same() {
    let mut capture = machine([1, 1, 4, 2], false);
    for cpu in [6, 7] {
        let dir = format!("{CPU_DIR}/cpu{cpu}/cache");
        let mut fewer = Capture::new();
        for line in capture.to_text().lines().filter(|l| l.contains('\t')) {
            let (path, content) = line.split_once('\t').unwrap();
            if !path.starts_with(&format!("{dir}/index3")) {
                fewer.insert(path, content);
            }
        }
        capture = fewer;
    }
    for cpu in 0..6 {
        capture.insert(
            format!("{CPU_DIR}/cpu{cpu}/cache/index3/shared_cpu_list"),
            "0-5",
        );
    }
    capture.insert("sys/devices/cpu_core/cpus", "0-5");
    capture.insert("sys/devices/cpu_atom/cpus", "6-7");
    check(&capture);
    let (topology, _) = Topology::from_files(&mut &capture);
    assert_eq!(topology.llcs.len(), 2);
    assert_eq!(topology.kinds.len(), 2);
}

#[test]
fn kinds_by_design_and_capacity_are_read_the_same() {
    let mut capture = machine([1, 1, 4, 1], false);
    for cpu in 0..4 {
        capture.insert(
            format!("{CPU_DIR}/cpu{cpu}/cpu_capacity"),
            if cpu < 2 { "512" } else { "1024" },
        );
    }
    check(&capture);
    for cpu in 0..4 {
        let design = if cpu < 2 { "0x410fd034" } else { "0x410fd090" };
        capture.insert(
            format!("{CPU_DIR}/cpu{cpu}/regs/identification/midr_el1"),
            design,
        );
    }
    check(&capture);
}

/// Linux on Itanium left the lists empty.
#[test]
fn a_cache_without_a_list_is_that_of_the_core() {
    let mut capture = machine([1, 1, 2, 2], false);
    for cpu in 0..4 {
        for index in 0..4 {
            let list = format!("{CPU_DIR}/cpu{cpu}/cache/index{index}/shared_cpu_list");
            capture.insert(list, "");
        }
    }
    check(&capture);
    let (few, _) = Topology::from_files(&mut &capture);
    let llcs: Vec<String> = few.llcs.iter().map(CpuSet::to_string).collect();
    assert_eq!(llcs, ["0-1", "2-3"]);
}

/// Arrow Lake's E-cores: `spread*4` took two of one L2.
#[test]
fn caches_that_several_cores_share_are_read_the_same() {
    let mut capture = machine([1, 1, 8, 1], false);
    let share = |capture: &mut Capture, cpus: std::ops::Range<usize>, list: &str| {
        for cpu in cpus {
            let cache = format!("{CPU_DIR}/cpu{cpu}/cache/index2");
            capture.insert(format!("{cache}/shared_cpu_list"), list);
            capture.insert(format!("{cache}/size"), "4096K");
        }
    };
    share(&mut capture, 4..6, "4-5");
    share(&mut capture, 6..8, "6-7");
    capture.insert("sys/devices/cpu_core/cpus", "0-3");
    capture.insert("sys/devices/cpu_atom/cpus", "4-7");
    check(&capture);
    let (few, _) = Topology::from_files(&mut &capture);
    let lists: Vec<String> = shared_caches(&few).iter().map(CpuSet::to_string).collect();
    assert_eq!(lists, ["4-5", "6-7", "0-7"]);
    // All of one kind, as clusters of arm64 servers.
    let mut capture = machine([1, 2, 4, 1], false);
    for cpus in [0..2, 2..4, 4..6, 6..8] {
        let list = format!("{}-{}", cpus.start, cpus.end - 1);
        share(&mut capture, cpus, &list);
    }
    check(&capture);
    let (few, _) = Topology::from_files(&mut &capture);
    assert_eq!(shared_caches(&few).len(), 6);
}

#[test]
fn ranks_are_read_the_same() {
    let mut capture = machine([1, 1, 4, 1], false);
    for (file, values) in [
        ("cpufreq/cpuinfo_max_freq", ["5", "6", "7", "8"]),
        ("acpi_cppc/highest_perf", ["186", "166", "186", "161"]),
    ] {
        for (cpu, value) in values.into_iter().enumerate() {
            capture.insert(format!("{CPU_DIR}/cpu{cpu}/{file}"), value);
        }
        let (whole, _) = Topology::from_capture(&capture);
        let (mut few, _) = Topology::from_files(&mut &capture);
        assert!(few.ranks.is_empty() && !whole.ranks.is_empty());
        few.read_ranks(&mut &capture);
        assert_eq!(few.ranks, whole.ranks, "{file}");
    }
}

#[test]
fn modules_are_split_only_by_known_core_ids() {
    let mut capture = machine([1, 1, 2, 2], false);
    for cpu in 0..4 {
        capture.insert(
            format!("{CPU_DIR}/cpu{cpu}/topology/core_id"),
            format!("{cpu}"),
        );
    }
    check(&capture);
    let cores = |capture: &Capture| Topology::from_files(&mut &*capture).0.cores.len();
    assert_eq!(cores(&capture), 4);
    capture.insert(
        format!("{CPU_DIR}/modalias"),
        "cpu:type:x86,ven0002fam0015mod0002:feature:",
    );
    assert_eq!(cores(&capture), 4);
    capture.insert(
        format!("{CPU_DIR}/modalias"),
        "cpu:type:x86,ven0002fam0019mod0001:feature:",
    );
    assert_eq!(cores(&capture), 2);
}

#[test]
fn quotas_and_cpusets_of_both_versions_are_read_the_same() {
    let mut v2 = machine([1, 2, 2, 2], false);
    v2.insert("pinwise/affinity", "0-5");
    v2.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    v2.insert("proc/self/cgroup", "0::/a/b\n");
    v2.insert("sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-3");
    v2.insert("sys/fs/cgroup/a/cpu.max", "150000 100000");
    v2.insert("sys/fs/cgroup/a/b/cpu.max", "max 100000");
    check(&v2);
    v2.insert("sys/fs/cgroup/cgroup.controllers", "cpu cpuset");
    check(&v2);
    let (topology, _) = Topology::from_files(&mut &v2);
    assert_eq!(topology.allowed.to_string(), "0-3");
    assert!((topology.quota.unwrap().cpus - 1.5).abs() < 1e-9);

    let mut v1 = machine([1, 2, 2, 2], false);
    v1.insert("proc/mounts", "c /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\nc /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n");
    v1.insert("proc/self/cgroup", "2:cpuset:/x\n1:cpu,cpuacct:/x\n");
    v1.insert("sys/fs/cgroup/cpuset/x/cpuset.cpus", "2-3");
    v1.insert("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000");
    v1.insert("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000");
    check(&v1);
}

proptest! {
    #[test]
    fn any_regular_machine_is_read_the_same(
        counts in [1usize..3, 1..4, 1..5, 1..3],
        interleaved: bool,
        off in proptest::collection::btree_set(0usize..48, 0..6),
    ) {
        let mut capture = machine(counts, interleaved);
        let all = CpuSet::first_n(counts.iter().product());
        let online = all.difference(&off.into_iter().collect());
        prop_assume!(!online.is_empty());
        // The kernel removes offline CPUs from every list.
        for line in machine(counts, interleaved).to_text().lines().filter(|l| l.contains('\t')) {
            let (path, content) = line.split_once('\t').unwrap();
            if path.ends_with("_list") || path.ends_with("online") {
                let left = CpuSet::parse_list(content).unwrap().intersection(&online);
                capture.insert(path, left.to_string());
            }
        }
        check(&capture);
    }

    #[test]
    fn any_files_are_read_or_reported(
        files in proptest::collection::vec(("(online|present|modalias|cpu[0-3]/(topology/(core_cpus_list|package_cpus|core_id)|cache/index[0-3]/(level|type|shared_cpu_list|shared_cpu_map)|cpu_capacity))", "[0-9,a-fU\\-\n]{0,8}"), 0..40),
    ) {
        let mut capture = Capture::new();
        for (path, content) in files {
            capture.insert(format!("{CPU_DIR}/{path}"), content);
        }
        let (topology, _) = Topology::from_files(&mut &capture);
        prop_assert!(topology.allowed.is_subset(&topology.online));
    }
}
