//! Settings that make an algorithm's spinning as long as blocking costs.

use super::*;

fn advise_on(pause_ns: f64, cpus: u64) -> Vec<Advice> {
    advise(&Costs {
        pause_ns,
        futex_wake_ns: 6_000.0,
        context_switch_ns: 2_000.0,
        cpus,
    })
}

#[track_caller]
fn check(pause_ns: f64, setting: &str, usual_us: f64, suggested: Option<&str>) {
    let all = advise_on(pause_ns, 24);
    let row = all.iter().find(|row| row.setting == setting).unwrap();
    let usual = row.usual_ns.unwrap() * 1e-3;
    assert!((usual - usual_us).abs() < 0.01 * usual_us, "{usual}");
    assert_eq!(row.suggested.as_deref(), suggested);
}

#[test]
fn counts_fit_into_the_cost_of_blocking() {
    // 8 µs: 200 PAUSEs of 40 ns.
    check(40.0, "GOMP_SPINCOUNT", 12_000.0, Some("200"));
    check(4.0, "GOMP_SPINCOUNT", 1_200.0, Some("2000"));
    check(40.0, "mutex_max_spin", 24.0, Some("200"));
    // 600 of 12 ns are nearly 8 µs: nothing to change.
    check(12.0, "mutex_max_spin", 7.2, None);
    check(0.1, "glibc.pthread.mutex_spin_count", 0.0099, Some("32767"));
    // 50 times 75 PAUSEs; 3 times 75 of 40 ns are 9 µs.
    check(40.0, "innodb_spin_wait_pause_multiplier", 150.0, Some("3"));
    check(40.0, "innodb_sync_spin_loops", 120.0, Some("2"));
    check(40.0, "DOTNET_Monitor_SpinCount", 7.252, None);
    check(40.0, "KMP_BLOCKTIME", 200_000.0, Some("8us"));
}

#[test]
fn the_net_framework_s_factor_gives_the_rounds_that_fit() {
    use crate::algorithm::{Algorithm, Backoff, Bound, Growth};
    for (pause_ns, cpus, expected_pauses) in [(40.0, 24, 500), (1.0, 24, 6_500), (0.3, 48, 20_000)]
    {
        let all = advise_on(pause_ns, cpus);
        let row = all.iter().find(|row| row.usual == "0x4E20").unwrap();
        let hex = row.suggested.as_deref().unwrap().trim_start_matches("0x");
        let factor = u64::from_str_radix(hex, 16).unwrap();
        let changed = Algorithm {
            backoff: Backoff::Rounds {
                repetitions: 10,
                first: 50,
                growth: Growth::Times(3),
                below: Bound::PerCpu(factor),
            },
            ..NETFX_AWARELOCK
        };
        let setting = Setting {
            cpus,
            hint_ns: pause_ns,
        };
        let wait = changed.compute_wait(&setting, Case::Typical).unwrap();
        assert_eq!(wait.total_hints(), Some(expected_pauses), "{pause_ns}");
        let described = row.suggested_ns.unwrap();
        assert!(
            (described - expected_pauses as f64 * pause_ns).abs() < 1.0,
            "{described}"
        );
    }
}

#[test]
fn libomp_gets_units_only_if_it_supports_them() {
    let all = advise_on(40.0, 24);
    let rows = all.iter().filter(|row| row.setting == "KMP_BLOCKTIME");
    let described: Vec<_> = rows
        .map(|row| (row.suggested.as_deref().unwrap(), row.usual))
        .collect();
    assert_eq!(described, [("8us", "200ms"), ("0", "200")]);
}

#[test]
fn every_row_says_why() {
    for row in advise_on(43.0, 24) {
        assert_eq!(row.versions.is_some(), row.algorithm.is_some());
        assert!(row.reasoning.len() > 40, "{}", row.setting);
        assert_eq!(row.suggested.is_some(), row.suggested_ns.is_some());
        if let Some(id) = row.algorithm {
            assert!(find_algorithm(id).is_ok(), "{id}");
        }
    }
}
