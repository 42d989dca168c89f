//! PAUSE on the real host. Of its absolute cost only plausibility is asserted.

use crate::support::{report_skip, run_for_json_unless_busy};

fn run_spin(arguments: &[&str]) -> Option<serde_json::Value> {
    run_for_json_unless_busy(&[&["--format", "json", "spin"], arguments].concat())
}

#[test]
fn every_cpu_has_a_cost_and_cycles_that_belong_together() {
    let Some(record) = run_spin(&["pause", "--for", "200ms"]) else {
        return;
    };
    let cpus = record["cpus"].as_array().unwrap();
    if cpus.is_empty() {
        report_skip("no CPU had an undisturbed batch");
        return;
    }
    for cpu in cpus {
        let pause_ns = cpu["pause_ns"].as_f64().unwrap();
        assert!((0.05..1000.0).contains(&pause_ns), "{cpu}");
        let (low, high) = (cpu["pause_ns_low"].as_f64(), cpu["pause_ns_high"].as_f64());
        assert!(low.is_none_or(|low| low <= pause_ns), "{cpu}");
        assert!(high.is_none_or(|high| high >= pause_ns), "{cpu}");
        let Some(cycles) = cpu["pause_cycles"].as_f64() else {
            assert!(cpu["method"].is_null());
            continue;
        };
        assert!((0.2..1000.0).contains(&cycles), "{cpu}");
        // Both are measured one after the other, and the clock may change in between.
        let ghz = cpu["ghz"].as_f64().unwrap();
        let ratio = cycles / (pause_ns * ghz);
        assert!((0.4..2.5).contains(&ratio), "{cpu}");
        match cpu["counted_cycles"].as_f64() {
            None => assert!(record["counter_unavailable"].is_string(), "{record}"),
            Some(counted) => {
                let chain = cpu["chain_cycles"].as_f64().unwrap();
                assert!((0.5..2.0).contains(&(counted / chain)), "{cpu}");
            }
        }
    }
    assert!(!record["chips"].as_array().unwrap().is_empty());
}

#[test]
fn advice_for_another_chip_needs_only_wake_ups_from_here() {
    let Some(record) = run_spin(&["advise", "--pause-ns", "43"]) else {
        return;
    };
    assert!(record["budget_ns"].as_f64().unwrap() > 0.0);
    assert!(record["budget_pauses"].as_u64().unwrap() >= 1);
}
