//! `spin pause`, `spin predict` and `spin advise`: what chips and algorithms are
//! known, and what comes of them. On simulated machines and chips of the table.

use super::Stage;

const LONG_PAUSE: &str = include_str!("../../../crates/study/field-reports/long-pause.toml");

/// The field report's machine, and one where all is well and PAUSE has two
/// levels.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("long.toml", LONG_PAUSE);
    stage.write(
        "levels.toml",
        "topology = \"package:1 core:2 pu:1\"
[wiring]
pause_ns = 27.5
ghz = 2.8
noise_sd = 0.004
pause_modes = { ns = 31.0, share = 0.4 }
lacks = [\"pause_counted\"]
",
    );
    stage
}

#[test]
fn pause_is_measured_stored_and_shown_again() {
    let stage = stage();
    let line = "--machine sim:levels.toml spin pause --seed 3";
    stage.snapshot("spin_pause", line);
    let printed = stage.succeed(line);
    assert_eq!(printed.out, stage.succeed("record show last").out);
    let history = stage.json("record history --limit 1");
    assert_eq!(history["records"][0]["schema"], "pinwise.spin-pause/1");
    assert_eq!(history["records"][0]["title"], "spin pause");
    let record = stage.json(line);
    for cpu in record["cpus"].as_array().unwrap() {
        assert!((20.0..40.0).contains(&cpu["pause_ns"].as_f64().unwrap()));
        assert!((70.0..95.0).contains(&cpu["pause_cycles"].as_f64().unwrap()));
        assert_eq!(cpu["levels"].as_array().unwrap().len(), 2);
        assert_eq!(cpu["method"], "add-chain");
        assert!(cpu["counted_cycles"].is_null());
    }
    assert!(record["check"].is_null());
    let one = stage.json("--machine sim:levels.toml spin pause --cpus 1 --for 100ms");
    assert_eq!(one["cpus"].as_array().unwrap().len(), 1);
}

#[test]
fn the_check_is_a_line_where_all_is_well_and_names_who_waits_too_long() {
    let stage = stage();
    let fine = stage.snapshot(
        "spin_pause_check_fine",
        "--machine sim:levels.toml spin pause --check --seed 3",
    );
    assert_eq!((fine.status, fine.out.lines().count()), (0, 1));
    assert!(fine.out.ends_with("2 processors: no long-PAUSE problem\n"));
    let line = "--machine sim:long.toml spin pause --check --seed 3";
    let bad = stage.snapshot("spin_pause_check_long", line);
    assert_eq!(bad.status, 1);
    assert!(bad.out.contains("netfx_awarelock"));
    let generous = format!("{line} --max-total 10s --max-blind-gap 1s");
    assert_eq!(stage.run(&generous).status, 0);
    let strict = format!("{line} --max-total 1ms --max-blind-gap 1s");
    assert!(stage.run(&strict).out.contains("libgomp would spin 12."));
}

#[test]
fn predictions_of_a_chip() {
    let stage = stage();
    stage.snapshot(
        "spin_predict_chip",
        "spin predict --cpu skylake-sp --cpus 24",
    );
    stage.snapshot(
        "spin_predict_one",
        "spin predict --algorithm netfx_awarelock --cpu Skylake_SP --cpus 24",
    );
    stage.snapshot(
        "spin_predict_curve",
        "spin predict -a netfx_awarelock -a go_mutex --cpu skylake-sp --cpus 1..128",
    );
    stage.snapshot(
        "spin_predict_move",
        "spin predict --from broadwell --to skylake-sp --cpus 24",
    );
}

/// The vectors of the field report, and the formula for every number of CPUs.
#[test]
fn predictions_have_their_fields() {
    let stage = stage();
    let one = |line: &str| {
        let record = stage.json(&format!("spin predict -a netfx_awarelock {line}"));
        assert_eq!(record["schema"], "pinwise.spin-predict/1");
        record["predictions"][0].clone()
    };
    for (line, expected_ms) in [
        ("--pause-cycles 11 --ghz 2.8 --cpus 24", 19.33),
        ("--pause-cycles 140 --ghz 2.8 --cpus 24", 246.03),
        ("--pause-cycles 140 --ghz 2.8 --cpus 48", 246.03),
        ("--pause-ns 50 --cpus 24", 246.03),
    ] {
        let found = one(line);
        let ms = found["total_ms"].as_f64().unwrap();
        assert!((ms - expected_ms).abs() < 0.006, "{found}");
        assert_eq!(found["total_pauses"], 4_920_500);
        assert_eq!(found["blind_gap_pauses"], 328_050);
    }
    assert!(one("--pause-ns 50 --cpus 2")["ghz"].is_null());
    let record = stage.json("spin predict -a netfx_awarelock --pause-ns 1 --cpus 1..128");
    for row in record["predictions"].as_array().unwrap() {
        let cpus = row["cpus"].as_u64().unwrap();
        let k = (0..).find(|&k| 3u64.pow(k) >= 400 * cpus).unwrap();
        assert_eq!(row["total_pauses"], 10 * 50 * (3u64.pow(k) - 1) / 2);
        assert_eq!(row["blind_gap_pauses"], 50 * 3u64.pow(k - 1));
    }
    assert_eq!(
        record["cliffs"][0]["changes_at"],
        serde_json::json!([2, 6, 17, 50])
    );
}

#[test]
fn without_a_chip_the_machine_is_measured() {
    let stage = stage();
    let record = stage.json("--machine sim:long.toml spin predict -a netfx_awarelock --seed 1");
    let row = &record["predictions"][0];
    assert_eq!(row["cpus"], 24);
    let pause_ns = row["pause_ns"].as_f64().unwrap();
    assert!((pause_ns - 43.0).abs() < 1.0, "{pause_ns}");
    assert!(record["processor"]["chip"].is_null());
}

#[test]
fn advice_says_what_why_and_how_to_verify() {
    let stage = stage();
    stage.snapshot(
        "spin_advise",
        "--machine sim:long.toml spin advise --cpu skylake-sp --seed 3",
    );
    let record = stage.json("--machine sim:long.toml spin advise --pause-ns 43 --cpus 24");
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

#[test]
fn bad_input_is_one_line_with_a_hint() {
    let stage = stage();
    for (name, line) in [
        ("algorithm", "spin predict --algorithm netfx_awarelok"),
        ("chip", "spin predict --cpu skylake-ps --cpus 2"),
        (
            "from",
            "spin predict --from brodwell --to skylake-sp --cpus 2",
        ),
        ("numbers", "spin predict --cpu zen-4 --cpus 9..3"),
        ("ghz", "spin predict --cpu zen-4 --ghz -1 --cpus 2"),
        ("cpus", "--machine sim:long.toml spin pause --cpus 99"),
        ("advise", "spin advise --cpu zen4x"),
    ] {
        let ran = stage.snapshot(&format!("spin_refusal_{name}"), line);
        assert_eq!((ran.status, ran.err.lines().count()), (2, 1), "{ran}");
        assert!(ran.out.is_empty());
    }
    stage.write(
        "mute.toml",
        "topology = \"core:2 pu:1\"\n[wiring]\nlacks = [\"pause\"]\n",
    );
    let ran = stage.run("--machine sim:mute.toml spin pause");
    assert_eq!(ran.status, 2, "{ran}");
    assert!(ran.err.contains("lacking pause"), "{ran}");
    let ran = stage.run("--machine sim:mute.toml spin pause --check");
    assert_eq!(ran.status, 1, "nothing known is not fine: {ran}");
    let ran = stage.run("--machine sim:mute.toml spin predict");
    assert!(ran.err.contains("--pause-ns"), "{ran}");
}

#[test]
fn help_ends_with_examples_that_run() {
    let stage = stage();
    for command in ["pause", "predict", "advise"] {
        let help = stage.succeed(&format!("spin {command} --help")).out;
        let (_, examples) = help.split_once("\nExamples:\n").expect("examples");
        for line in examples.lines().take_while(|line| !line.is_empty()) {
            let line = line.trim().strip_prefix("pinwise ").unwrap();
            let line = line.replace("--for 10s", "--for 100ms");
            let ran = stage.run(&format!("--machine sim:levels.toml {line}"));
            let may_fail = line.contains("--check") && ran.status == 1;
            assert!(ran.status == 0 || may_fail, "{ran}");
            ran.check_form();
        }
    }
}
