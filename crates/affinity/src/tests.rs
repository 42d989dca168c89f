//! Chosen CPUs, and masks that are really set.

use proptest::prelude::*;

use super::*;
use pinwise_topology::{Capture, Level, Topology};

fn host(description: &str) -> Host {
    Host::from_topology(Topology::from_synthetic(description).unwrap()).unwrap()
}

#[track_caller]
fn check(description: &str, threads: usize, cpus: &[usize]) {
    let places = host(description).place(threads);
    let order: Vec<usize> = (0..threads).map(|thread| places.cpu(thread)).collect();
    assert_eq!(order, cpus, "{description}, {threads} threads");
}

#[test]
fn cores_are_used_before_siblings_and_one_cache_before_several() {
    check("package:2 l3:2 core:4 pu:2", 3, &[0, 2, 4]);
    check("package:2 l3:2 core:4 pu:2", 5, &[0, 2, 4, 8, 10]);
    check("package:1 l3:1 core:2 pu:2", 3, &[0, 2, 1]);
    // More threads than cores of a package: both packages, evenly.
    check("package:2 l3:2 core:1 pu:2", 3, &[0, 2, 4]);
    // More threads than CPUs share in turn.
    check("package:1 l3:1 core:2 pu:1", 5, &[0, 1, 0, 1, 0]);
}

#[test]
fn quotas_bound_the_number_of_workers() {
    let mut topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
    let mut workers = |cpus: Option<f64>| {
        topology.quota = cpus.map(|cpus| pinwise_topology::Quota {
            cpus,
            source: String::new(),
        });
        let host = Host::from_topology(topology.clone()).unwrap();
        let workers = host.workers();
        assert_eq!(host.place(0).threads(), workers.parallelism);
        (
            workers.parallelism,
            workers.on_own_cores,
            workers.cores_per_llc,
        )
    };
    assert_eq!(workers(None), (16, 8, vec![4, 4]));
    assert_eq!(workers(Some(2.5)), (3, 3, vec![4, 4]));
    assert_eq!(workers(Some(0.1)), (1, 1, vec![4, 4]));
    assert_eq!(workers(Some(12.0)), (12, 8, vec![4, 4]));
    assert_eq!(workers(Some(1e9)), (16, 8, vec![4, 4]));
}

/// Two fast cores with siblings and four slow ones, behind one cache.
fn hybrid() -> Host {
    let mut capture = Capture::new();
    let dir = "sys/devices/system/cpu";
    capture.insert(format!("{dir}/online"), "0-7");
    for cpu in 0..8 {
        let core = if cpu < 4 {
            format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1)
        } else {
            format!("{cpu}")
        };
        capture.insert(format!("{dir}/cpu{cpu}/topology/core_cpus_list"), core);
        capture.insert(format!("{dir}/cpu{cpu}/cache/index0/level"), "3");
        capture.insert(format!("{dir}/cpu{cpu}/cache/index0/type"), "Unified");
        capture.insert(
            format!("{dir}/cpu{cpu}/cache/index0/shared_cpu_list"),
            "0-7",
        );
    }
    capture.insert("sys/devices/cpu_core/cpus", "0-3");
    capture.insert("sys/devices/cpu_atom/cpus", "4-7");
    Host::from_topology(Topology::from_files(&mut &capture).0).unwrap()
}

#[test]
fn fast_cores_come_first_and_slow_ones_before_siblings() {
    let places = hybrid().place(7);
    let order: Vec<usize> = (0..7).map(|thread| places.cpu(thread)).collect();
    assert_eq!(order, [0, 2, 4, 5, 6, 7, 1]);
    assert_eq!(hybrid().locate(5).unwrap().kind.as_deref(), Some("E"));
}

#[test]
fn forbidden_and_offline_cpus_are_refused_by_name() {
    let mut capture = Capture::new();
    let dir = "sys/devices/system/cpu";
    capture.insert(format!("{dir}/online"), "0-5");
    capture.insert(format!("{dir}/present"), "0-7");
    capture.insert("pinwise/affinity", "0-3");
    capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    capture.insert("proc/self/cgroup", "0::/job");
    capture.insert("sys/fs/cgroup/job/cpuset.cpus.effective", "0-4");
    let host = Host::from_topology(Topology::from_files(&mut &capture).0).unwrap();
    let refused = |name: &str| {
        let placement = name.parse().unwrap();
        host.place_as(&placement, 1).unwrap_err().to_string()
    };
    assert_eq!(refused("cpu:6"), "cpu:6: CPU 6 is offline");
    assert_eq!(
        refused("cpu:5"),
        "cpu:5: CPU 5 is forbidden: the cpuset /sys/fs/cgroup/job leaves only 0-4"
    );
    let outside = host.place_as(&"cpu:4".parse().unwrap(), 1).unwrap();
    assert_eq!(outside.cpu(0), 4, "a mask is not a limit");
    assert!(refused("cpu:9").contains("there is no CPU 9"));
    let error = Host::from_topology(Topology::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("this process may use no CPU"),
        "{error}"
    );
}

#[test]
fn masks_are_set_and_given_back() {
    let before = current_mask().unwrap();
    let places = Host::discover().unwrap().place(0);
    for thread in 0..places.threads() {
        let bound = places.bind(thread).unwrap();
        assert_eq!(current_mask().unwrap(), CpuSet::single(places.cpu(thread)));
        assert_eq!(current_cpu(), Some(places.cpu(thread)));
        assert_eq!(*bound.before(), before);
    }
    assert_eq!(current_mask().unwrap(), before);
    std::thread::scope(|scope| {
        let kept = scope.spawn(|| {
            places.bind(0).unwrap().keep();
            current_mask().unwrap()
        });
        assert_eq!(kept.join().unwrap(), CpuSet::single(places.cpu(0)));
    });
}

#[test]
fn a_mask_that_someone_else_set_is_left_alone() {
    let before = current_mask().unwrap();
    if before.len() < 2 {
        eprintln!("SKIPPED a_mask_that_someone_else_set_is_left_alone: one CPU only");
        return;
    }
    let (first, last) = (before.first().unwrap(), before.last().unwrap());
    std::thread::spawn(move || {
        let bound = bind(&CpuSet::single(first)).unwrap();
        mask::set_affinity(&CpuSet::single(last)).unwrap();
        drop(bound);
        assert_eq!(current_mask().unwrap(), CpuSet::single(last));
    })
    .join()
    .unwrap();
}

#[test]
fn a_refused_mask_changes_nothing() {
    let before = current_mask().unwrap();
    assert!(matches!(bind(&CpuSet::new()), Err(BindError::Empty)));
    let absent = CpuSet::MAX_CPU;
    let error = bind(&CpuSet::single(absent)).unwrap_err().to_string();
    assert!(
        error.contains(&format!("there is no CPU {absent}")),
        "{error}"
    );
    let partly = before.union(&CpuSet::single(absent));
    let error = bind(&partly).unwrap_err();
    assert!(
        matches!(error, BindError::Cut { .. } | BindError::Refused { .. }),
        "{error}"
    );
    assert_eq!(current_mask().unwrap(), before);
}

proptest! {
    #[test]
    fn places_are_allowed_even_and_close(
        packages in 1usize..3,
        llcs in 1usize..5,
        cores in 1usize..5,
        smt in 1usize..3,
        forbidden in proptest::collection::btree_set(0usize..64, 0..20),
        threads in 1usize..80,
    ) {
        let mut topology =
            Topology::from_synthetic(&format!("package:{packages} l3:{llcs} core:{cores} pu:{smt}")).unwrap();
        topology.allowed = topology.online.difference(&forbidden.into_iter().collect());
        prop_assume!(!topology.allowed.is_empty());
        let host = Host::from_topology(topology.clone()).unwrap();
        let places = host.place(threads);
        prop_assert!(places.cpus().is_subset(&topology.allowed));
        prop_assert_eq!(places.cpus().len(), threads.min(topology.allowed.len()));

        let cores = topology.allowed_units(Level::Core);
        let used = |unit: &CpuSet| unit.intersection(places.cpus()).len();
        let fullest = cores.iter().map(used).max().unwrap();
        prop_assert!(fullest <= 1 || cores.iter().all(|core| used(core) > 0));

        let caches = topology.allowed_units(Level::Llc);
        let cores_in = |unit: &CpuSet| cores.iter().filter(|core| core.is_subset(unit)).count();
        if caches.iter().any(|cache| cores_in(cache) >= threads) {
            prop_assert_eq!(caches.iter().filter(|cache| used(cache) > 0).count(), 1);
        } else if threads > topology.packages.iter().map(cores_in).max().unwrap() && threads <= cores.len() {
            // All of the machine: no cache has two more threads than one with a free core.
            let fullest = caches.iter().map(used).max().unwrap();
            prop_assert!(caches.iter().all(|c| used(c) == cores_in(c) || used(c) + 1 >= fullest));
        }
    }

    #[test]
    fn every_thread_has_a_cpu_and_cpus_are_shared_evenly(threads in 1usize..200) {
        let places = host("package:2 l3:2 core:2 pu:2").place(threads);
        let mut load = std::collections::BTreeMap::new();
        for thread in 0..threads {
            *load.entry(places.cpu(thread)).or_insert(0) += 1;
        }
        let (least, most) = (load.values().min().unwrap(), load.values().max().unwrap());
        prop_assert!(most - least <= 1);
    }
}
