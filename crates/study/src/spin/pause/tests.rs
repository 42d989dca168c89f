//! Measures PAUSE on simulated machines: its levels, and the check of algorithms.

use super::*;
use pinwise_machine::Host;
use pinwise_sim::SimulatedMachine;

fn measure_pause(description: &str, limits: Option<Limits>) -> SpinPauseRecord {
    let mut machine = SimulatedMachine::from_text("test", description, 7).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let plan = PausePlan {
        cpus: topology.allowed,
        time: Duration::from_secs(1),
        limits,
    };
    run(&plan, &mut machine).unwrap()
}

const LIMITS: Limits = Limits {
    total_ns: 50e6,
    blind_gap_ns: 2e6,
};

#[test]
fn the_pause_and_cycles_of_each_cpu_are_measured() {
    let record = measure_pause(
        "topology = \"core:2 pu:1\"\n[wiring]\npause_ns = 30\nghz = 2.5",
        Some(LIMITS),
    );
    assert_eq!(record.cpus.len(), 2);
    for cpu in &record.cpus {
        assert!((cpu.pause_ns - 30.0).abs() < 0.5, "{cpu:?}");
        let cycles = cpu.pause_cycles.unwrap();
        assert!((cycles - 75.0).abs() < 1.5, "{cycles}");
        assert!(cpu.levels.is_empty() && cpu.hints.is_empty());
        assert!(cpu.disagreement_share.unwrap() < 0.03);
        assert_eq!(cpu.method, Some(CycleMethod::Counter));
    }
    let check = record.check.unwrap();
    assert!(check.is_fine, "{check:?}");
    assert!(check.sentence.ends_with("no long-PAUSE problem."));
}

#[test]
fn two_levels_are_reported() {
    let record = measure_pause(
        "topology = \"core:1 pu:1\"\n[wiring]\npause_ns = 27.5\nghz = 2.8\nnoise_sd = 0.004\npause_modes = { ns = 31.0, share = 0.4 }\nlacks = [\"pause_counted\"]",
        None,
    );
    let cpu = &record.cpus[0];
    assert_eq!(cpu.method, Some(CycleMethod::Additions));
    assert!(record.counter_unavailable.is_some());
    let [low, high] = cpu.levels.as_slice() else {
        panic!("{:?}", cpu.levels);
    };
    assert!((low.pause_cycles.unwrap() - 77.0).abs() < 1.0, "{low:?}");
    assert!((high.pause_ns - 31.0).abs() < 0.5, "{high:?}");
    assert!((low.share - 0.6).abs() < 0.1, "{low:?}");
}

#[test]
fn scattered_values_above_a_sharp_level_are_a_second_level() {
    // 60 % within 0.1 % of 90 cycles, the rest anywhere from 91.5 to 96.
    let sharp = (0..600).map(|i| 90.0 + 0.0001 * f64::from(i));
    let diffuse = (0..400).map(|i| 91.5 + 4.5 * f64::from(i) / 400.0);
    let both: Vec<f64> = sharp.chain(diffuse).collect();
    let modes = find_cycle_levels(&both).unwrap();
    assert!((modes.low_share - 0.6).abs() < 0.02, "{modes:?}");
    assert!((modes.high_ns - 93.75).abs() < 0.2, "{modes:?}");
    // One level with noise to both sides, and one with stray batches.
    let wide: Vec<f64> = (0..1000).map(|i| 85.0 + 0.01 * f64::from(i)).collect();
    assert_eq!(find_cycle_levels(&wide), None);
    let mut stray = vec![90.0; 950];
    stray.extend((0..50).map(|i| 91.5 + 0.1 * f64::from(i)));
    assert_eq!(find_cycle_levels(&stray), None);
    assert_eq!(find_cycle_levels(&[]), None);
}

#[test]
fn long_pauses_fail_the_check() {
    let record = measure_pause(
        include_str!("../../../field-reports/long-pause.toml"),
        Some(LIMITS),
    );
    let check = record.check.unwrap();
    assert!(!check.is_fine);
    let worst = &check.too_long[0];
    assert_eq!(worst.algorithm, "netfx_awarelock");
    // 4,920,500 PAUSEs of 43 ns.
    assert!((worst.total_ms.unwrap() - 211.6).abs() < 4.0, "{worst:?}");
}

#[test]
fn a_machine_without_pause_fails_the_check_with_a_note() {
    let record = measure_pause(
        "topology = \"core:1 pu:1\"\n[wiring]\nlacks = [\"pause\"]",
        Some(LIMITS),
    );
    assert!(record.cpus.is_empty());
    assert!(!record.check.unwrap().is_fine);
    assert_eq!(record.header.notes.len(), 1);
}
