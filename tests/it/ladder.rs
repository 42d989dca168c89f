//! The cache ladder: probes of simulated machines give the capacities of their descriptions.

use std::time::Duration;

use pinwise_machine::{Host, Probe, Prober};
use pinwise_sim::SimulatedMachine;
use pinwise_wiring::ladder::{Ladder, Point, ReportedCache, find_plateaus, next_sizes};

const REPORTED: &str = "package:1 l3:1(size=32MB) l2:2(size=512KB) l1d:1(size=32KB) core:1 pu:2";

/// Probes CPU 0 as `topology --measure` does. Returns its ladder, and the number of sizes probed.
fn probe_ladder(wiring: &str, seed: u64) -> (Ladder, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    std::fs::write(
        &path,
        format!("topology = \"{REPORTED}\"\n[wiring]\n{wiring}\n"),
    )
    .unwrap();
    let mut machine = SimulatedMachine::open(path.to_str().unwrap(), seed).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let reported: Vec<ReportedCache> = topology
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(0))
        .filter_map(|cache| {
            let (level, bytes) = (cache.level, cache.size_bytes?);
            Some(ReportedCache { level, bytes })
        })
        .collect();
    let mut points = Vec::new();
    loop {
        let sizes = next_sizes(&points, 4 << 10, 512 << 20, 40);
        if sizes.is_empty() {
            return (find_plateaus(&points, &reported), points.len());
        }
        for bytes in sizes {
            let (cpu, node) = (0, None);
            let probe = Probe::Chase { cpu, bytes, node };
            let batches = machine.probe(&[probe], 15, Duration::from_secs(1)).unwrap();
            let mut values = batches[0].values.clone();
            values.sort_by(f64::total_cmp);
            points.push(Point {
                bytes,
                ns: values[values.len() / 2],
                interval_ns: Some((values[3], values[11])),
            });
        }
    }
}

/// Checks the effective capacities, bytes, and the latency of memory.
fn check(wiring: &str, capacities: &[f64], memory_ns: f64) {
    for seed in 0..5 {
        let (ladder, sizes) = probe_ladder(wiring, seed);
        let found: Vec<f64> = ladder
            .plateaus
            .iter()
            .filter_map(|plateau| plateau.effective_bytes)
            .map(|bytes| bytes as f64)
            .collect();
        assert_eq!(found.len(), capacities.len(), "{wiring}: {ladder:?}");
        for (found, expected) in found.iter().zip(capacities) {
            let ratio = found / expected;
            assert!(
                (0.8..1.3).contains(&ratio),
                "{wiring}: {found} for {expected}"
            );
        }
        let last = ladder.plateaus.last().unwrap();
        assert_eq!(last.level, None);
        assert!((last.latency_ns / memory_ns).ln().abs() < 0.1, "{ladder:?}");
        assert!(sizes <= 70, "{sizes} sizes");
    }
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

#[test]
fn simulated_caches_are_found() {
    let reported = [32.0 * KIB, 512.0 * KIB, 32.0 * MIB];
    check("", &reported, 90.0);
    check(
        "noise_sd = 0.1\noutliers = { share = 0.05, factor = 5.0 }",
        &reported,
        90.0,
    );
    check("tlb = { bytes = 2097152, ns = 6.0 }", &reported, 96.0);
    check("timer_step_ns = 100.0\nmemory_ns = 140.0", &reported, 140.0);
}

#[test]
fn a_smaller_cache_than_reported_is_found() {
    let caches = "caches = [{ bytes = 32768, ns = 1.3 }, { bytes = 524288, ns = 4.0 }, { bytes = 8388608, ns = 15.0 }]";
    check(caches, &[32.0 * KIB, 512.0 * KIB, 8.0 * MIB], 90.0);
    let (ladder, _) = probe_ladder(caches, 1);
    let outer = ladder.plateaus[2];
    assert_eq!(
        (outer.level, outer.reported_bytes),
        (Some(3), Some(32 << 20))
    );
}
