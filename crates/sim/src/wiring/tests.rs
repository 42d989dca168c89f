use std::time::Duration;

use proptest::prelude::*;

use crate::{DescriptionError, SimulatedMachine};
use pinwise_machine::{Batches, Host, Port, Probe, Prober, Stream};
use pinwise_stats::describe::{quantile, sd};
use pinwise_topology::CpuSet;

const MINUTE: Duration = Duration::from_secs(60);

fn open(toml: &str, seed: u64) -> Result<SimulatedMachine, DescriptionError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, toml).unwrap();
    SimulatedMachine::open(path.to_str().unwrap(), seed)
}

fn open_wired(reported: &str, wiring: &str) -> SimulatedMachine {
    open(&format!("topology = \"{reported}\"\n[wiring]\n{wiring}"), 1).unwrap()
}

fn run_probe(machine: &mut SimulatedMachine, probe: &Probe, batches: usize) -> Batches {
    let probes = std::slice::from_ref(probe);
    machine.probe(probes, batches, MINUTE).unwrap().remove(0)
}

fn probe_median(machine: &mut SimulatedMachine, probe: &Probe) -> f64 {
    let batches = run_probe(machine, probe, 101);
    assert_eq!(batches.unavailable, None, "{probe:?}");
    quantile(&batches.values, 0.5)
}

const fn transfer(a: usize, b: usize) -> Probe {
    Probe::Transfer { a, b, home: None }
}

fn contention(a: usize, b: usize) -> Probe {
    let port = Port::Spin;
    Probe::Contention { a, b, port }
}

/// Checks that two figures differ by at most this share.
fn check_near(found: f64, expected: f64, share: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() <= share, "{found} is not {expected}");
}

#[test]
fn latency_follows_the_true_topology() {
    let exact = "noise_sd = 0.01\npair_sd = 0.0\n";
    let reported = "pu:32";
    let truth = "topology = \"package:2 numa:2 l3:2 core:2 pu:2\"\nnuma_ns = 80\n";
    let mut machine = open_wired(reported, &format!("{exact}{truth}"));
    for (b, expected) in [(1, 14.0), (2, 36.0), (4, 80.0), (8, 110.0), (16, 200.0)] {
        check_near(probe_median(&mut machine, &transfer(0, b)), expected, 0.01);
        check_near(probe_median(&mut machine, &transfer(b, 0)), expected, 0.01);
    }
    check_near(probe_median(&mut machine, &contention(0, 1)), 1.7, 0.01);
    check_near(probe_median(&mut machine, &contention(0, 2)), 1.02, 0.01);
    assert_eq!(machine.topology().unwrap().0.counts().cores, 32);
}

#[test]
fn without_the_section_the_report_is_true() {
    let mut machine = SimulatedMachine::open("package:2 l3:2 core:2 pu:1", 1).unwrap();
    for (b, expected) in [(1, 36.0), (2, 110.0), (4, 200.0)] {
        check_near(probe_median(&mut machine, &transfer(0, b)), expected, 0.1);
    }
}

#[test]
fn cpus_of_a_cluster_share_an_l2_and_cpus_without_caches_have_one_latency() {
    let mut clustered = open_wired(
        "l3:1 l2:2 core:2 pu:1",
        "l2_ns = 25\npair_sd = 0.0\nnoise_sd = 0.01",
    );
    check_near(probe_median(&mut clustered, &transfer(0, 1)), 25.0, 0.01);
    check_near(probe_median(&mut clustered, &transfer(0, 2)), 36.0, 0.01);
    let mut flat = open_wired("core:4 pu:1", "pair_sd = 0.0\nnoise_sd = 0.01");
    check_near(probe_median(&mut flat, &transfer(0, 3)), 36.0, 0.01);
}

#[test]
fn far_lines_and_far_cores_cost_more() {
    let mut homes = open_wired(
        "package:2 [numa] l3:2 core:2 pu:1",
        "pair_sd = 0.0\nnoise_sd = 0.0\nhome_penalty_ns = 130\nhome_node = 0",
    );
    let at = |a, b, home| Probe::Transfer { a, b, home };
    // Another LLC of the second package: expensive if the line is homed in the first.
    check_near(probe_median(&mut homes, &at(4, 6, None)), 240.0, 1e-9);
    check_near(probe_median(&mut homes, &at(4, 6, Some(1))), 110.0, 1e-9);
    // Within an LLC, and with a CPU at the home, it makes no difference.
    check_near(probe_median(&mut homes, &at(4, 5, None)), 36.0, 1e-9);
    check_near(probe_median(&mut homes, &at(0, 4, Some(1))), 200.0, 1e-9);
    let mut mesh = open_wired(
        "l3:1 core:9 pu:1",
        "pair_sd = 0.0\nnoise_sd = 0.0\ngradient = 0.5",
    );
    check_near(probe_median(&mut mesh, &transfer(0, 1)), 36.0 * 1.125, 1e-9);
    check_near(probe_median(&mut mesh, &transfer(0, 8)), 36.0 * 1.5, 1e-9);
}

#[test]
fn noise_is_as_described() {
    let probe = transfer(0, 1);
    let logs = |batches: &Batches| batches.values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let mut noisy = open_wired("pu:2", "noise_sd = 0.1");
    check_near(sd(&logs(&run_probe(&mut noisy, &probe, 5000))), 0.1, 0.05);
    let mut outlying = open_wired("pu:2", "outliers = { share = 0.2, factor = 10.0 }");
    let batches = run_probe(&mut outlying, &probe, 5000);
    let high = batches
        .values
        .iter()
        .filter(|&&value| value > 100.0)
        .count();
    check_near(high as f64 / 5000.0, 0.2, 0.1);
    let mut lossy = open_wired("pu:2", "switched = 0.3\nstolen = 0.2");
    let batches = run_probe(&mut lossy, &probe, 5000);
    assert_eq!(batches.values.len(), 5000);
    let all = (batches.values.len() + batches.switched + batches.stolen) as f64;
    check_near(batches.switched as f64 / all, 0.3, 0.1);
    check_near(batches.stolen as f64 / all, 0.2, 0.1);
    let mut pairs = open_wired("core:60 pu:1", "noise_sd = 0.0\npair_sd = 0.1");
    let pair_medians: Vec<f64> = (1..60)
        .map(|b| probe_median(&mut pairs, &transfer(0, b)).ln())
        .collect();
    check_near(sd(&pair_medians), 0.1, 0.3);
    check_near(
        probe_median(&mut pairs, &transfer(7, 0)).ln(),
        pair_medians[6],
        1e-9,
    );
}

#[test]
fn wander_has_the_described_spread_around_the_true_latency() {
    let mut machine = open_wired(
        "pu:2",
        "noise_sd = 0.0\npair_sd = 0.0\nwander = { sd = 0.2, time_s = 0.01 }",
    );
    let levels: Vec<f64> = (0..800)
        .map(|_| {
            machine.now_s += 0.1;
            probe_median(&mut machine, &transfer(0, 1)).ln()
        })
        .collect();
    check_near(sd(&levels), 0.2, 0.1);
    check_near(quantile(&levels, 0.5), 36.0f64.ln(), 0.02);
}

#[test]
fn probes_take_their_time_and_the_limit_cuts_them() {
    let mut machine = open_wired(
        "core:4 pu:1",
        "noise_sd = 0.0\npair_sd = 0.0\nparallel_disturbance = 1.5",
    );
    let mut took = |probes: &[Probe], limit_s: f64| {
        let before = machine.now();
        let limit = Duration::from_secs_f64(limit_s);
        let batches = machine.probe(probes, 300, limit).unwrap();
        (batches, (machine.now() - before).as_secs_f64())
    };
    let (_, alone_s) = took(&[transfer(0, 1)], 1.0);
    check_near(alone_s, 1e-4 + 300.0 * 400.0 * 36e-9, 1e-6);
    let (both, both_s) = took(&[transfer(0, 1), transfer(2, 3)], 1.0);
    check_near(both_s, 1e-4 + 1.5 * (alone_s - 1e-4), 1e-6);
    assert_eq!(both.len(), 2);
    check_near(both[1].values[0], 54.0, 1e-9);
    let (cut, cut_s) = took(&[transfer(0, 1)], 0.001);
    assert_eq!(cut[0].values.len(), 69);
    check_near(cut_s, 0.0011, 1e-6);
}

#[test]
fn the_wiring_moves_between_states_at_the_described_rates() {
    let text = "topology = \"l3:1 core:2 pu:1\"\n[wiring]\nnoise_sd = 0.0\npair_sd = 0.0\n\
        [[wiring.states]]\ntopology = \"l3:1 core:2 pu:1\"\ndwell_s = 10.0\n\
        [[wiring.states]]\ntopology = \"l3:2 core:1 pu:1\"\ndwell_s = 5.0\nweight = 9.0\n\
        [[wiring.states]]\ntopology = \"core:1 pu:2\"\ndwell_s = 5.0\n";
    let watch = |seed, steps: u32| {
        let mut machine = open(text, seed).unwrap();
        let mut seen = Vec::new();
        for step in 1..=steps {
            machine.now_s = f64::from(step) * (20_000.0 / f64::from(steps));
            seen.push(probe_median(&mut machine, &transfer(0, 1)));
        }
        seen
    };
    let seen = watch(1, 40_000);
    let share = |ns: f64| {
        let alike = seen.iter().filter(|&&value| (value - ns).abs() < 1.0);
        alike.count() as f64 / seen.len() as f64
    };
    // Nine of ten moves from the first lead to the second; from the others half or nine of ten lead
    // back. The shares of time follow.
    assert!((share(36.0) - 0.49).abs() < 0.06, "{}", share(36.0));
    assert!(share(110.0) > 0.3 && share(14.0) > 0.03);
    check_near(share(36.0) + share(110.0) + share(14.0), 1.0, 1e-9);
    assert!((seen[0] - 36.0).abs() < 1e-6);
    // The moves do not depend on how often they are observed.
    let rarely = watch(1, 4000);
    let differing = rarely.iter().zip(seen.iter().skip(9).step_by(10));
    let differing = differing.filter(|(a, b)| (*a - *b).abs() > 1.0).count();
    assert!(
        differing < rarely.len() / 100,
        "{differing} of {}",
        rarely.len()
    );
}

#[test]
fn stacked_cpus_take_turns() {
    let mut machine = open_wired("core:3 pu:1", "stacked = [\"0,2\"]");
    let limit = Duration::from_millis(50);
    let batches = machine
        .probe(&[transfer(0, 2)], 50, limit)
        .unwrap()
        .remove(0);
    assert!(
        batches.values.is_empty() && batches.stolen == 1,
        "{batches:?}"
    );
    let batches = run_probe(&mut machine, &contention(2, 0), 200);
    check_near(quantile(&batches.values, 0.5), 2.0, 0.02);
    assert!(batches.stolen > 100);
    check_near(probe_median(&mut machine, &transfer(0, 1)), 36.0, 0.1);
}

#[test]
fn coarse_clocks_and_ignored_affinity_show_in_batches() {
    let mut coarse = open_wired("pu:2", "timer_step_ns = 2000.0");
    let batches = run_probe(&mut coarse, &transfer(0, 1), 500);
    let off_grid = |value: &f64| (value / 5.0 - (value / 5.0).round()).abs() > 1e-9;
    assert!(!batches.values.iter().any(off_grid));
    let mean = batches.values.iter().sum::<f64>() / 500.0;
    check_near(mean, 36.0, 0.1);
    check_near(
        probe_median(&mut coarse, &Probe::TimerStep { cpu: 0 }),
        2000.0,
        1e-9,
    );
    let mut adrift = open_wired("core:4 pu:2", "ignores_affinity = true");
    let batches = run_probe(&mut adrift, &transfer(0, 1), 500);
    assert!(!batches.was_in_place);
    assert!(batches.values.iter().any(|value| *value < 20.0));
    assert!(batches.values.iter().filter(|value| **value > 30.0).count() > 300);
}

#[test]
fn clocks_and_waits_are_as_described() {
    let mut machine = open_wired(
        "core:2 pu:1",
        "ghz = 4.0\ntick_ghz = 2.0\npause_ns = 35.0\ncontext_switch_ns = 900\nfutex_wake_ns = 7000",
    );
    for (probe, expected) in [
        (Probe::Pause { cpu: 1 }, 35.0),
        (Probe::PauseCycles { cpu: 0 }, 140.0),
        (Probe::Cycle { cpu: 0 }, 0.25),
        (Probe::Tick { cpu: 0 }, 0.5),
        (Probe::TimerStep { cpu: 0 }, 1.0),
        (Probe::ContextSwitch { cpu: 0 }, 900.0),
        (
            Probe::FutexWake {
                waker: 0,
                sleeper: 1,
            },
            7000.0,
        ),
        (
            Probe::FutexWake {
                waker: 1,
                sleeper: 1,
            },
            900.0,
        ),
    ] {
        check_near(probe_median(&mut machine, &probe), expected, 0.02);
    }
    let text = "pause_ns = 20.0\npause_modes = { ns = 43.0, share = 0.3 }";
    let batches = run_probe(
        &mut open_wired("pu:1", text),
        &Probe::Pause { cpu: 0 },
        4000,
    );
    let high = batches.values.iter().filter(|&&value| value > 30.0).count();
    check_near(high as f64 / 4000.0, 0.3, 0.1);
}

fn chase(cpu: usize, bytes: usize, node: Option<usize>) -> Probe {
    Probe::Chase { cpu, bytes, node }
}

#[test]
fn chase_latency_depends_on_the_cache_that_holds_the_working_set() {
    let mut machine = open_wired(
        "package:2 [numa] l3:1(size=32MB) l2:2(size=512KB) l1d:1(size=32KB) core:1 pu:2",
        "noise_sd = 0.0\nmemory_ns = 100.0\nremote_memory_ns = 50.0",
    );
    for (bytes, expected) in [
        (16 << 10, 1.3),
        (200 << 10, 4.0),
        (8 << 20, 15.0),
        (1 << 30, 100.0),
    ] {
        check_near(
            probe_median(&mut machine, &chase(0, bytes, Some(0))),
            expected,
            0.05,
        );
    }
    check_near(
        probe_median(&mut machine, &chase(0, 1 << 30, Some(1))),
        150.0,
        0.05,
    );
    let mut described = open_wired(
        "l3:1(size=32MB) pu:2",
        "noise_sd = 0.0\ncaches = [{ bytes = 32768, ns = 1.0 }, { bytes = 8388608, ns = 10.0 }]\ntlb = { bytes = 2000000, ns = 4.0 }",
    );
    check_near(
        probe_median(&mut described, &chase(0, 1 << 20, None)),
        10.0,
        0.05,
    );
    check_near(
        probe_median(&mut described, &chase(0, 6 << 20, None)),
        14.0,
        0.05,
    );
    check_near(
        probe_median(&mut described, &chase(0, 32 << 20, None)),
        94.0,
        0.05,
    );
}

#[test]
fn streams_saturate_their_nodes() {
    let mut machine = open_wired("package:2 [numa] core:8 pu:2", "noise_sd = 0.0");
    let bandwidth = |cpus: &str, stream, node| Probe::Bandwidth {
        cpus: CpuSet::parse_list(cpus).unwrap(),
        stream,
        bytes: 256 << 20,
        node,
    };
    for (cpus, node, expected) in [
        ("0", None, 12.0),
        ("0-1", None, 12.0),
        ("0,2", None, 24.0),
        ("0-15", None, 40.0),
        ("0-31", None, 80.0),
        ("0-31", Some(0), 40.0),
        ("16", Some(0), 12.0 * 90.0 / 150.0),
    ] {
        let found = probe_median(&mut machine, &bandwidth(cpus, Stream::Read, node));
        check_near(found, expected, 1e-6);
    }
    for stream in Stream::ALL {
        assert!(probe_median(&mut machine, &bandwidth("0", stream, None)) <= 12.0);
    }
}

#[test]
fn memory_under_load_is_slower() {
    let mut machine = open_wired("core:8 pu:1", "noise_sd = 0.01");
    let mut loaded = |loaders: &str| {
        let probe = Probe::LoadedLatency {
            cpu: 0,
            loaders: CpuSet::parse_list(loaders).unwrap(),
            bytes: 1 << 30,
        };
        let batches = run_probe(&mut machine, &probe, 21);
        assert_eq!(batches.background.len(), batches.values.len());
        (
            quantile(&batches.background, 0.5),
            quantile(&batches.values, 0.5),
        )
    };
    let (light, heavy) = (loaded("1"), loaded("1-7"));
    check_near(light.0, 12.0, 0.02);
    check_near(heavy.0, 40.0, 0.02);
    assert!(light.1 < 100.0 && heavy.1 > 250.0, "{light:?} {heavy:?}");
}

#[test]
fn impossible_probes_are_reported() {
    let mut machine = open_wired("core:2 pu:1", "lacks = [\"pause_cycles\"]");
    let mut reason = |probe: &Probe| run_probe(&mut machine, probe, 5).unavailable.unwrap();
    for (probe, expected) in [
        (
            Probe::PauseCycles { cpu: 0 },
            "This machine is described as lacking pause_cycles.",
        ),
        (transfer(0, 9), "No such CPU: 9."),
        (
            transfer(1, 1),
            "The probe transfer needs two different CPUs.",
        ),
        (chase(0, 4096, Some(3)), "No such NUMA node: 3."),
    ] {
        assert_eq!(reason(&probe), expected);
    }
}

#[test]
fn errors_in_the_section_name_file_and_key() {
    for (text, part) in [
        ("smt_n = 3", "m.toml:3: unknown field `smt_n`"),
        ("smt_ns = 0.0", "m.toml: wiring.smt_ns: 0 must be from"),
        ("noise_sd = nan", "wiring.noise_sd: NaN must be"),
        (
            "topology = \"kore:3\"",
            "wiring.topology: 'kore' is not a level",
        ),
        (
            "stacked = [\"0-1\", \"1\"]",
            "wiring.stacked: '1' names a CPU",
        ),
        ("stacked = [\"x\"]", "wiring.stacked: 'x'"),
        (
            "lacks = [\"chases\"]",
            "wiring.lacks: 'chases' is not a probe",
        ),
        ("switched = 0.6\nstolen = 0.5", "wiring.stolen: 0.5 must be"),
        (
            "caches = [{ bytes = 2, ns = 1.0 }, { bytes = 1, ns = 2.0 }]",
            "wiring.caches: must grow",
        ),
        (
            "pause_modes = { ns = 4 }",
            "m.toml:3: missing field `share`",
        ),
        (
            "topology = \"pu:2\"\n[[wiring.states]]\ntopology = \"pu:2\"\ndwell_s = 1.0",
            "wiring.states: each state has",
        ),
        (
            "[[wiring.states]]\ntopology = \"pu:2\"\ndwell_s = -1.0",
            "wiring.states.dwell_s: -1 must",
        ),
    ] {
        let whole = format!("topology = \"pu:2\"\n[wiring]\n{text}");
        let error = open(&whole, 1).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// Like a study of 192 CPUs: every pair once, 96 at a time.
#[test]
fn all_pairs_of_a_large_machine_can_be_probed() {
    let mut large = SimulatedMachine::open("package:2 l3:12 core:4 pu:2", 1).unwrap();
    let mut pairs = 0;
    for round in 1..192 {
        let free = |a: &usize| a & round == 0 || (a ^ round) > *a;
        let probes: Vec<Probe> = (0..192)
            .filter(|a| (a ^ round) < 192 && (a ^ round) > *a && free(a))
            .map(|a| transfer(a, a ^ round))
            .collect();
        let batches = large.probe(&probes, 20, MINUTE).unwrap();
        pairs += batches
            .iter()
            .filter(|batches| batches.values.len() == 20)
            .count();
    }
    assert!(pairs > 12_000, "{pairs}");
    assert!(large.now() < MINUTE);
    let mut largest = SimulatedMachine::open("package:8 l3:16 core:4 pu:2", 1).unwrap();
    check_near(probe_median(&mut largest, &transfer(0, 1023)), 200.0, 0.1);
}

#[test]
fn the_same_seed_gives_the_same_batches() {
    let all = |seed| {
        let text = "topology = \"core:2 pu:2\"\n[wiring]\nswitched = 0.1\noutliers = { share = 0.1, factor = 3.0 }";
        let mut machine = open(text, seed).unwrap();
        let probes = [transfer(0, 2), contention(1, 3)];
        machine.probe(&probes, 50, MINUTE).unwrap()
    };
    assert_eq!(all(4), all(4));
    assert_ne!(all(4), all(5));
}

fn any_number() -> impl Strategy<Value = String> {
    let odd = [
        "0.0", "-1.0", "inf", "nan", "1e300", "1e-300", "1e9", "1e-9", "1",
    ];
    prop_oneof![
        (0.001f64..10.0).prop_map(|number| format!("{number:?}")),
        prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

#[test]
fn probes_that_lose_every_batch_end() {
    let text = "topology = \"core:2 pu:2\"\n[wiring]\nstacked = [\"2-3\"]\nstacked_ns = 1e-9\nstolen = 0.99";
    let mut machine = open(text, 1).unwrap();
    let limit = Duration::from_secs(3600);
    for probe in [transfer(2, 3), contention(2, 3)] {
        let batches = machine.probe(&[probe], 5, limit).unwrap().remove(0);
        assert!(batches.values.len() <= 5);
    }
}

proptest! {
    #[test]
    fn any_numbers_give_finite_batches_or_are_refused(
        numbers in prop::collection::vec(any_number(), 4),
        keys in prop::collection::vec(prop::sample::select(vec![
            "smt_ns", "llc_ns", "package_ns", "home_penalty_ns", "gradient", "pair_sd", "noise_sd",
            "switched", "stolen", "timer_step_ns", "parallel_disturbance", "ghz", "pause_ns",
            "memory_ns", "core_gb_per_s", "node_gb_per_s", "loaded_factor", "stacked_ns",
            "smt_contention", "context_switch_ns", "futex_wake_ns",
        ]), 4),
    ) {
        let mut lines: Vec<String> = keys.iter().zip(&numbers).map(|(key, number)| format!("{key} = {number}")).collect();
        lines.sort();
        lines.dedup_by_key(|line| line.split(' ').next().unwrap().to_owned());
        let text = format!("topology = \"numa:2 core:2 pu:2\"\n[wiring]\nstacked = [\"2-3\"]\n{}\n", lines.join("\n"));
        let Ok(mut machine) = open(&text, 1) else { return Ok(()); };
        for probe in all_probes() {
            let before = machine.now();
            let batches = machine.probe(std::slice::from_ref(&probe), 5, Duration::from_millis(5)).unwrap().remove(0);
            prop_assert!(batches.values.len() <= 5);
            prop_assert!(batches.values.iter().all(|value| value.is_finite() && *value >= 0.0), "{:?} {:?}", probe, batches);
            prop_assert!(machine.now() >= before && machine.now() - before < Duration::from_millis(6));
        }
    }
}

fn all_probes() -> Vec<Probe> {
    let cpus = CpuSet::first_n(3);
    let mut probes = vec![
        transfer(0, 1),
        transfer(2, 3),
        transfer(0, 7),
        Probe::Transfer {
            a: 0,
            b: 1,
            home: Some(1),
        },
        contention(0, 1),
        contention(2, 3),
        Probe::Pause { cpu: 0 },
        Probe::PauseCycles { cpu: 0 },
        Probe::Cycle { cpu: 0 },
        Probe::Tick { cpu: 0 },
        Probe::TimerStep { cpu: 0 },
        chase(0, 0, None),
        chase(0, 1 << 20, Some(1)),
        chase(0, usize::MAX, None),
        Probe::LoadedLatency {
            cpu: 7,
            loaders: cpus.clone(),
            bytes: 1 << 28,
        },
        Probe::ContextSwitch { cpu: 0 },
        Probe::FutexWake {
            waker: 0,
            sleeper: 1,
        },
    ];
    probes.extend(Stream::ALL.map(|stream| Probe::Bandwidth {
        cpus: cpus.clone(),
        stream,
        bytes: 1 << 20,
        node: None,
    }));
    probes
}
