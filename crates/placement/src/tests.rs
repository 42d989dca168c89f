//! Placements on machines that nobody owns.

use super::*;
use pinwise_topology::{Capture, Device, Topology};
use proptest::prelude::*;

const TWO_SOCKETS: &str = "package:2 l3:2 core:2 pu:2";
/// The numbering of most servers: siblings are N/2 apart.
const INTERLEAVED: &str = "package:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)";

#[track_caller]
fn check(machine: &str, placement: &str, cpus: &str) {
    let topology = Topology::from_synthetic(machine).unwrap();
    let parsed: Placement = placement.parse().unwrap();
    assert_eq!(
        parsed.realise(&topology).unwrap().cpus.to_string(),
        cpus,
        "{placement}"
    );
    assert_eq!(parsed.to_string().parse::<Placement>().unwrap(), parsed);
}

#[test]
fn names_stand_for_cpus() {
    check(TWO_SOCKETS, "os-default", "0-15");
    check(TWO_SOCKETS, "0-2,4", "0-2,4");
    check(TWO_SOCKETS, "compact*3", "0-2");
    check(TWO_SOCKETS, "one-per-core", "0,2,4,6,8,10,12,14");
    check(TWO_SOCKETS, "one-per-core*3", "0,2,4");
    check(TWO_SOCKETS, "one-per-llc", "0,4,8,12");
    check(TWO_SOCKETS, "one-per-numa", "0");
    check(TWO_SOCKETS, "spread*2", "0,8");
    check(TWO_SOCKETS, "spread*4", "0,4,8,12");
    check(TWO_SOCKETS, "spread*5", "0,2,4,8,12");
    check(TWO_SOCKETS, "spread*9", "0-2,4,6,8,10,12,14");
    check(TWO_SOCKETS, "balanced*4", "0,2,4,6");
    check(TWO_SOCKETS, "balanced*9", "0-2,4,6,8,10,12,14");
    check(TWO_SOCKETS, "one-core:3", "6-7");
    check(TWO_SOCKETS, "one-llc:1", "4-7");
    check(TWO_SOCKETS, "one-llc:1*2", "4-5");
    check(TWO_SOCKETS, "one-package:1", "8-15");
    check(TWO_SOCKETS, "cpu:1,3-4", "1,3-4");
    check(TWO_SOCKETS, "mask:0x55", "0,2,4,6");
    check(INTERLEAVED, "compact*2", "0,4");
    check(INTERLEAVED, "one-per-core", "0-3");
    check(INTERLEAVED, "spread*2", "0,2");
}

#[test]
fn shapes_use_the_stated_number_of_units() {
    check(TWO_SOCKETS, "shape:pkg=1,llc=2,core=2,smt=1", "0,4");
    check(TWO_SOCKETS, "shape:llc=2", "0-3,8-11");
    check(TWO_SOCKETS, "shape:core=4,smt=2", "0-1,4-5,8-9,12-13");
    check(TWO_SOCKETS, "shape:pkg=1,core=4,smt=1", "0,2,4,6");
}

#[track_caller]
fn check_refusal(machine: &str, placement: &str, part: &str) {
    let topology = Topology::from_synthetic(machine).unwrap();
    let error = match placement.parse::<Placement>() {
        Err(error) => error.to_string(),
        Ok(parsed) => parsed.realise(&topology).unwrap_err().to_string(),
    };
    assert!(error.contains(part), "{placement}: {error}");
}

#[test]
fn impossible_requests_are_refused() {
    check_refusal(TWO_SOCKETS, "", "empty");
    check_refusal(TWO_SOCKETS, "one-per-kore", "did you mean 'one-per-core'?");
    for name in known_names() {
        check_refusal(TWO_SOCKETS, "zzz", name);
    }
    check_refusal(TWO_SOCKETS, "cpu:", "names no CPU");
    check_refusal(TWO_SOCKETS, "cpu:x", "'x' is not a CPU number");
    check_refusal(TWO_SOCKETS, "cpu:99", "no CPU 99");
    check_refusal(TWO_SOCKETS, "cpu:0*2", "*N cannot be used");
    check_refusal(TWO_SOCKETS, "compact*0", "number of CPUs");
    check_refusal(
        TWO_SOCKETS,
        "compact*17",
        "needs 17 CPUs, but only 16 are available",
    );

    check_refusal(
        TWO_SOCKETS,
        "compact/mem=far",
        "'/mem=far': a memory policy is",
    );
    check_refusal(TWO_SOCKETS, "compact/mem=local:0", "takes no nodes");
    check_refusal(
        TWO_SOCKETS,
        "compact/mem=bind:",
        "write the nodes after bind: such as bind:0-1",
    );
    check_refusal(TWO_SOCKETS, "compact/mem=bind:x", "write the nodes after");
    check_refusal(TWO_SOCKETS, "compact/shared", "'/shared' is not known");
    check_refusal(
        TWO_NODES,
        "compact/mem=bind:1,7",
        "no memory of node 7 (only of 0-1)",
    );
    check_refusal(TWO_SOCKETS, "one-llc:4", "may use no LLC 4 (only");
    check_refusal(
        "numa:1 core:2 pu:1",
        "one-numa:1",
        "this process may use no NUMA node 1 (only 0)",
    );
    let largest = format!("one-llc:{}", usize::MAX);
    check_refusal(TWO_SOCKETS, &largest, "(only 0-3)");
    check_refusal(TWO_SOCKETS, "one-llc:x", "index of the unit");
    check_refusal(TWO_SOCKETS, "p-cores", "reports no kinds of core");
    check_refusal(
        TWO_SOCKETS,
        "shape:llc=1,core=4",
        "cannot take 4 cores from 1 LLC",
    );
    check_refusal(TWO_SOCKETS, "shape:smt=4", "4 CPUs per core");
    check_refusal(TWO_SOCKETS, "shape:cache=1", "'cache' is not a level");
    check_refusal("core:2 pu:1", "one-llc", "no shared caches");
}

#[test]
fn without_allowed_cpus_nothing_can_be_placed() {
    let mut topology = Topology::from_synthetic(TWO_SOCKETS).unwrap();
    topology.allowed = CpuSet::new();
    for name in ["os-default", "compact*2", "one-core"] {
        let placement: Placement = name.parse().unwrap();
        let error = placement.realise(&topology).unwrap_err().to_string();
        assert!(error.contains("may not use any CPU"), "{error}");
    }
}

const TWO_NODES: &str = "package:2 [numa(memory=1GB)] core:2 pu:1";

#[test]
fn memory_comes_from_the_nodes_named_or_those_of_the_cpus() {
    let topology = Topology::from_synthetic(TWO_NODES).unwrap();
    let check = |name: &str, policy: MemoryPolicy, nodes: &[usize]| {
        let placement: Placement = name.parse().unwrap();
        assert_eq!(placement.to_string(), name);
        let memory = placement.realise(&topology).unwrap().memory.unwrap();
        assert_eq!((memory.policy, memory.nodes.as_slice()), (policy, nodes));
    };
    check("one-numa:1/mem=bind", MemoryPolicy::Bind, &[1]);
    check("one-numa:1/mem=bind:0", MemoryPolicy::Bind, &[0]);
    check("os-default/mem=weighted", MemoryPolicy::Weighted, &[0, 1]);
    check(
        "cpu:0/mem=interleave:0-1",
        MemoryPolicy::Interleave,
        &[0, 1],
    );
    check("cpu:0/bound/mem=preferred:1", MemoryPolicy::Preferred, &[1]);
    let merged = ["cpu:0/mem=bind", "cpu:0/mem=bind:0", "cpu:0/mem=bind:1"];
    let arms = merged.map(|name| {
        let placement: Placement = name.parse().unwrap();
        placement.realise(&topology).unwrap()
    });
    let merged = merge_equivalent(arms.to_vec());
    assert_eq!(merged.len(), 2);
    assert_eq!(merged[0].also_named, ["cpu:0/mem=bind:0"]);
}

/// Memory that is only behind nodes of its own, and cpusets that hold such nodes alone.
#[test]
fn a_policy_without_memory_near_the_cpus_is_refused() {
    let mut capture = Capture::new();
    capture.insert("sys/devices/system/cpu/online", "0-2");
    for (node, cpus, kib) in [(0, "0", 0), (1, "1", 0), (2, "", 4096)] {
        let dir = format!("sys/devices/system/node/node{node}");
        capture.insert(format!("{dir}/cpulist"), cpus);
        capture.insert(
            format!("{dir}/meminfo"),
            format!("Node {node} MemTotal: {kib} kB\n"),
        );
    }
    for cpu in 0..3 {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/core_id");
        capture.insert(file, cpu.to_string());
    }
    capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    capture.insert("proc/self/cgroup", "0::/");
    capture.insert("sys/fs/cgroup/cpuset.cpus.effective", "0-2");
    capture.insert("sys/fs/cgroup/cpuset.mems.effective", "2");
    let topology = Topology::from_capture(&capture).0;
    let realise = |name: &str| {
        let placement: Placement = name.parse().unwrap();
        let realised = placement.realise(&topology);
        realised.map(|realised| realised.memory.unwrap().nodes)
    };
    let error = |name: &str| realise(name).unwrap_err().to_string();
    assert_eq!(
        error("cpu:0/mem=bind"),
        "cpu:0/mem=bind: this process may use no memory of node 0 (only of 2)"
    );
    assert_eq!(
        error("os-default/mem=interleave"),
        "os-default/mem=interleave: this process may use no memory of node 0-1 (only of 2)"
    );
    assert_eq!(
        error("cpu:2/mem=preferred"),
        "cpu:2/mem=preferred: no NUMA node is reported for CPU 2; name nodes with memory: 2"
    );
    assert_eq!(realise("cpu:0/mem=bind:2").unwrap(), [2]);
    assert_eq!(realise("cpu:0/mem=local").unwrap(), Vec::<usize>::new());
}

fn restricted_topology() -> Topology {
    let mut capture = Capture::new();
    for cpu in 0..8 {
        let dir = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        capture.insert(format!("{dir}/core_id"), (cpu / 2).to_string());
        let first = cpu / 2 * 2;
        capture.insert(
            format!("{dir}/core_cpus_list"),
            format!("{first}-{}", first + 1),
        );
    }
    capture.insert("sys/devices/system/cpu/online", "0-6");
    capture.insert("sys/devices/system/cpu/isolated", "0,6");
    capture.insert("pinwise/affinity", "1-5");
    capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    capture.insert("proc/self/cgroup", "0::/");
    capture.insert("sys/fs/cgroup/cpuset.cpus.effective", "0-5");
    Topology::from_capture(&capture).0
}

#[test]
fn restrictions_are_respected_and_named() {
    let topology = restricted_topology();
    let cpus = |name: &str| {
        let placement: Placement = name.parse().unwrap();
        placement.realise(&topology).map(|r| r.cpus.to_string())
    };
    assert_eq!(cpus("os-default").unwrap(), "1-5");
    assert_eq!(cpus("one-per-core").unwrap(), "1-2,4");
    let error = |name: &str| cpus(name).unwrap_err().to_string();
    assert_eq!(error("cpu:7"), "cpu:7: CPU 7 is offline");
    // A mask is a default, a cpuset a limit.
    assert_eq!(cpus("cpu:0-1").unwrap(), "0-1");
    assert_eq!(cpus("isolated").unwrap(), "0");
    assert_eq!(
        error("cpu:5-6"),
        "cpu:5-6: CPU 6 is forbidden: the cpuset /sys/fs/cgroup leaves only 0-5"
    );
}

#[test]
fn equivalent_arms_are_merged() {
    let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
    let arms = [
        "os-default",
        "spread*2",
        "cpu:0-1",
        "cpu:0",
        "one-core",
        "cpu:0/mem=bind",
    ]
    .map(|name| {
        name.parse::<Placement>()
            .unwrap()
            .realise(&topology)
            .unwrap()
    });
    let merged = merge_equivalent(arms.to_vec());
    let names: Vec<(String, Vec<String>)> = merged
        .into_iter()
        .map(|one| (one.placement.placement.to_string(), one.also_named))
        .collect();
    assert_eq!(
        names,
        [
            (
                "os-default".to_owned(),
                vec!["spread*2".to_owned(), "cpu:0-1".to_owned()]
            ),
            ("cpu:0".to_owned(), vec!["one-core".to_owned()]),
            ("cpu:0/mem=bind".to_owned(), vec![]),
        ]
    );
}

#[test]
fn default_arms_are_few_and_fit_the_machine() {
    let names = |machine: &str, threads: usize| -> Vec<String> {
        let topology = Topology::from_synthetic(machine).unwrap();
        default_placements(&topology, Some(threads))
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        names("core:2 pu:1", 1),
        ["os-default", "one-core", "one-core:1"]
    );
    assert_eq!(
        names("core:2 pu:1", 2),
        ["os-default", "compact*2", "spread*2", "one-core"]
    );
    assert_eq!(
        names("package:2 l3:1 core:4 pu:2", 4),
        [
            "os-default",
            "one-per-core",
            "compact*4",
            "spread*4",
            "one-llc",
            "one-package"
        ]
    );
}

/// As on processors with two dies, one with stacked cache and one with a higher clock.
#[test]
fn the_largest_cache_and_the_fastest_cores_are_arms() {
    let mut machine = Topology::from_synthetic("l3:2 core:4 pu:2").unwrap();
    let plain = machine.clone();
    let sizes = [96 << 20, 32 << 20];
    for (cpus, size) in machine.llcs.clone().iter().zip(sizes) {
        let mut caches = machine.caches.iter_mut();
        let llc = caches.find(|cache| cache.cpus == *cpus && cache.level == 3);
        llc.unwrap().size_bytes = Some(size);
    }
    let list = |text: &&str| CpuSet::parse_list(text).unwrap();
    machine.ranks = ["12-13", "8-9", "10-11,14-15", "0-7"]
        .iter()
        .map(list)
        .collect();
    let order = |name: &str| {
        let placement: Placement = name.parse().unwrap();
        let realised = placement.realise(&machine);
        realised.map(|realised| realised.order).unwrap()
    };
    assert_eq!(order("largest-llc*3"), [0, 1, 2]);
    assert_eq!(order("best-core"), [12]);
    assert_eq!(order("best-core*5"), [12, 8, 10, 14, 0]);
    let arms = default_placements(&machine, Some(4));
    let names: Vec<String> = arms.iter().map(ToString::to_string).collect();
    assert_eq!(names[5..], ["largest-llc", "best-core*4"]);
    // Its eight CPUs are too few.
    assert!(
        default_placements(&machine, Some(9))
            .iter()
            .all(|arm| arm.wish != Wish::LargestLlc)
    );
    for (name, missing) in [
        ("largest-llc", "last-level caches of different sizes"),
        ("best-core*2", "cores that are faster than others"),
    ] {
        let placement: Placement = name.parse().unwrap();
        let error = placement.realise(&plain).unwrap_err().to_string();
        assert!(error.contains(missing), "{error}");
    }
}

#[test]
fn placements_are_given_in_the_words_of_other_tools() {
    let topology = Topology::from_synthetic("[numa] core:2 pu:2").unwrap();
    let placement: Placement = "one-per-core/mem=bind".parse().unwrap();
    let realised = placement.realise(&topology).unwrap();
    let lines = equivalents(&realised, &topology);
    let lines: Vec<String> = lines.iter().map(emit::Emission::line).collect();
    let hwloc = "hwloc-bind --cpubind 0x5 --physical --membind numa:0 --mempolicy bind --strict --";
    assert_eq!(
        lines,
        [
            "taskset -c 0,2 COMMAND",
            "numactl -C 0,2 --membind=0 COMMAND",
            &format!("{hwloc} COMMAND"),
            "OMP_PLACES='{0,2}' OMP_PROC_BIND=close OMP_NUM_THREADS=2 COMMAND",
            "srun --ntasks=1 --cpus-per-task=2 --cpu-bind=mask_cpu:0x5 --mem-bind=mask_mem:0x1 COMMAND",
        ]
    );
}

#[test]
fn openmp_places_in_even_steps_are_shortened() {
    let topology = Topology::from_synthetic("core:16 pu:2").unwrap();
    let places = |placement: &str| {
        let placement: Placement = format!("{placement}/bound").parse().unwrap();
        let realised = placement.realise(&topology).unwrap();
        let line = equivalents(&realised, &topology)[3].line();
        let (places, _) = line.split_once(" OMP_PROC_BIND").unwrap();
        places.replace("OMP_PLACES=", "").replace('\'', "")
    };
    assert_eq!(places("os-default"), "{0}:32");
    assert_eq!(places("one-per-core"), "{0}:16:2");
    assert_eq!(places("cpu:3"), "{3}");
    assert_eq!(places("cpu:0,1,2"), "{0},{1},{2}");
    assert_eq!(places("cpu:0,2-6,8,10,12"), "{0},{2}:5,{8},{10},{12}");
}

fn list_placements() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "os-default",
        "compact",
        "one-per-core",
        "one-per-llc",
        "spread",
        "balanced",
        "one-core:1",
        "one-llc",
        "one-package",
        "shape:core=2",
        "shape:llc=1,smt=1",
    ]);
    (names, prop::option::of(1usize..6)).prop_map(|(name, count)| match count {
        Some(count) if name != "os-default" => format!("{name}*{count}"),
        _ => name.to_owned(),
    })
}

proptest! {
    #[test]
    fn placements_stay_inside_the_allowed_cpus(name in list_placements(), leaves in prop::collection::btree_set(0usize..16, 1..16)) {
        let mut topology = Topology::from_synthetic(TWO_SOCKETS).unwrap();
        topology.allowed = leaves.into_iter().collect();
        let placement: Placement = name.parse().unwrap();
        if let Ok(realised) = placement.realise(&topology) {
            prop_assert!(realised.cpus.is_subset(&topology.allowed));
            prop_assert!(!realised.cpus.is_empty());
            if let Some(count) = placement.count {
                prop_assert_eq!(realised.cpus.len(), count);
            }
        }
    }

    #[test]
    fn relabelling_cpus_only_relabels_the_answer(name in list_placements(), seed in any::<u64>()) {
        use rand::{SeedableRng, seq::SliceRandom};
        let mut numbers: Vec<usize> = (0..16).collect();
        numbers.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(seed));
        let list = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let plain = Topology::from_synthetic(TWO_SOCKETS).unwrap();
        let mixed = Topology::from_synthetic(&format!("{TWO_SOCKETS}(indexes={list})")).unwrap();
        let placement: Placement = name.parse().unwrap();
        let a = placement.realise(&plain).map(|r| r.used);
        let b = placement.realise(&mixed).map(|r| r.used);
        prop_assert_eq!(a, b);
    }
}

/// Two packages of two cores with two CPUs each; a GPU at the second, a network card in an unknown
/// place.
fn two_packages_with_devices() -> Topology {
    let mut topology = Topology::from_synthetic("package:2 core:2 pu:2").unwrap();
    let device = |address: &str, class, name: &str, cpus: Option<&str>| {
        let mut device = Device::new(address, class, Some(0x10de), None).unwrap();
        device.names.push(name.to_owned());
        device.cpus = cpus.map(|list| CpuSet::parse_list(list).unwrap());
        device
    };
    topology.devices = vec![
        device("0000:01:00.0", 0x0200, "eth0", None),
        device("0000:41:00.0", 0x0302, "gpu0", Some("4-7")),
    ]
    .into();
    topology
}

#[test]
fn near_and_far_mean_the_cpus_of_a_device() {
    let topology = two_packages_with_devices();
    for (name, cpus) in [
        ("near:gpu0", "4-7"),
        ("far:gpu0", "0-3"),
        ("near:pci:0000:41:00.0", "4-7"),
        ("near:41:00.0", "4-7"),
        ("near:gpu0*1", "4"),
        ("one-per-core/near:gpu0", "4,6"),
        ("spread*1/far:gpu0/bound", "0"),
        ("one-core/near:gpu0", "4-5"),
        ("shape:core=1,smt=1/near:gpu0", "4"),
    ] {
        let placement: Placement = name.parse().unwrap();
        assert_eq!(placement.to_string(), name);
        // It is a mask of its own, however much it leaves to the scheduler.
        assert_ne!(placement.wish, Wish::OsDefault);
        assert_eq!(
            placement.realise(&topology).unwrap().cpus.to_string(),
            cpus,
            "{name}"
        );
    }
}

#[test]
fn devices_that_do_not_help_are_reported() {
    let topology = two_packages_with_devices();
    let error = |name: &str| match name.parse::<Placement>() {
        Ok(placement) => placement.realise(&topology).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        error("near:gpu1"),
        "near:gpu1: there is no device 'gpu1' on this machine; did you mean 'gpu0'?"
    );
    assert_eq!(
        error("near:disk"),
        "near:disk: there is no device 'disk' on this machine (it has eth0, gpu0)"
    );
    assert_eq!(
        error("far:eth0"),
        "far:eth0: the firmware does not say which CPUs are near eth0"
    );
    for (name, part) in [
        ("near:", "comes one device"),
        ("near", "comes one device"),
        ("near:a b", "comes one device"),
        ("near:gpu0/far:gpu0", "one near: or far: is enough"),
        ("cpu:0/near:gpu0", "combined with named CPUs"),
    ] {
        assert!(error(name).contains(part), "{name}: {}", error(name));
    }
    let mut confined = topology.clone();
    confined.allowed = CpuSet::parse_list("4-7").unwrap();
    let placement: Placement = "far:gpu0".parse().unwrap();
    assert_eq!(
        placement.realise(&confined).unwrap_err().to_string(),
        "far:gpu0: all CPUs that this process may use (4-7) are near gpu0"
    );
    confined.allowed = CpuSet::parse_list("0-3").unwrap();
    let placement: Placement = "near:gpu0".parse().unwrap();
    assert_eq!(
        placement.realise(&confined).unwrap_err().to_string(),
        "near:gpu0: near gpu0 are CPUs 4-7; this process may use only 0-3"
    );
}
