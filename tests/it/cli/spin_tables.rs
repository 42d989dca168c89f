//! `spin pause`, `spin predict` and `spin advise` on simulated machines and on chips of the table.

use super::Stage;

#[test]
fn pause_is_measured_stored_and_shown_again() {
    let stage = Stage::new();
    let line = "--machine sim:levels.toml spin pause --seed 3";
    let printed = stage.run_ok(line);
    assert_eq!(printed.out, stage.run_ok("record show last").out);
    let history = stage.run_for_json("record history --limit 1");
    assert_eq!(history["records"][0]["schema"], "pinwise.spin-pause/1");
    assert_eq!(history["records"][0]["title"], "spin pause");
    let record = stage.run_for_json(line);
    for cpu in record["cpus"].as_array().unwrap() {
        assert!((20.0..40.0).contains(&cpu["pause_ns"].as_f64().unwrap()));
        assert!((70.0..95.0).contains(&cpu["pause_cycles"].as_f64().unwrap()));
        assert_eq!(cpu["levels"].as_array().unwrap().len(), 2);
        assert_eq!(cpu["method"], "add-chain");
        assert!(cpu["counted_cycles"].is_null());
    }
    assert!(record["check"].is_null());
    let one = stage.run_for_json("--machine sim:levels.toml spin pause --cpus 1 --for 100ms");
    assert_eq!(one["cpus"].as_array().unwrap().len(), 1);
}

#[test]
fn the_check_uses_the_given_limits() {
    let stage = Stage::new();
    let line = "--machine sim:long-pause.toml spin pause --check --seed 3";
    let generous = format!("{line} --max-total 10s --max-blind-gap 1s");
    assert_eq!(stage.run(&generous).status, 0);
    let strict = format!("{line} --max-total 1ms --max-blind-gap 1s");
    assert!(stage.run(&strict).out.contains("libgomp would spin 12."));
    let ran = stage.run("--machine sim:mute.toml spin pause --check");
    assert_eq!(ran.status, 1, "an unknown cost passed: {ran}");
}

/// The figures of the field report.
#[test]
fn predictions_of_the_field_report_are_reproduced() {
    let stage = Stage::new();
    let predict = |line: &str| {
        let record = stage.run_for_json(&format!("spin predict -a netfx_awarelock {line}"));
        assert_eq!(record["schema"], "pinwise.spin-predict/1");
        record["predictions"][0].clone()
    };
    for (line, expected_ms) in [
        ("--pause-cycles 11 --ghz 2.8 --cpu-count 24", 19.33),
        ("--pause-cycles 140 --ghz 2.8 --cpu-count 24", 246.03),
        ("--pause-cycles 140 --ghz 2.8 --cpu-count 48", 246.03),
        ("--pause-ns 50 --cpu-count 24", 246.03),
    ] {
        let found = predict(line);
        let ms = found["total_ms"].as_f64().unwrap();
        assert!((ms - expected_ms).abs() < 0.006, "{found}");
        assert_eq!(found["total_pauses"], 4_920_500);
        assert_eq!(found["blind_gap_pauses"], 328_050);
    }
    assert!(predict("--pause-ns 50 --cpu-count 2")["ghz"].is_null());
}

#[test]
fn without_a_chip_the_machine_is_measured() {
    let stage = Stage::new();
    let record = stage
        .run_for_json("--machine sim:long-pause.toml spin predict -a netfx_awarelock --seed 1");
    let row = &record["predictions"][0];
    assert_eq!(row["cpus"], 24);
    let pause_ns = row["pause_ns"].as_f64().unwrap();
    assert!((pause_ns - 43.0).abs() < 1.0, "{pause_ns}");
    assert!(record["processor"]["chip"].is_null());
}

#[test]
fn advice_says_what_why_and_how_to_verify() {
    let stage = Stage::new();
    let record = stage
        .run_for_json("--machine sim:long-pause.toml spin advise --pause-ns 43 --cpu-count 24");
    assert_eq!(record["schema"], "pinwise.spin-advice/1");
    let rows = record["advice"].as_array().unwrap();
    let gomp = rows.iter().find(|row| row["setting"] == "GOMP_SPINCOUNT");
    let gomp = gomp.unwrap();
    let spins: f64 = gomp["suggested"].as_str().unwrap().parse().unwrap();
    let budget_ns = record["budget_ns"].as_f64().unwrap();
    assert!((spins * 43.0 - budget_ns).abs() <= 22.0, "{gomp}");
    for row in rows {
        assert!(!row["reasoning"].as_str().unwrap().is_empty());
    }
}
