//! Built-in workloads over threads and placements, on machines whose scheduler and SMT yield are
//! known; kernels as arms of `compare`.

use super::Stage;

#[test]
fn smt_that_costs_is_reported_with_advice() {
    let line = "--format json bench fibonacci --machine sim:costs.toml --seed 1";
    let ran = Stage::new().run_ok(line);
    let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let conclusions = record["conclusions"].to_string();
    assert!(
        conclusions.contains("On all cores, SMT costs"),
        "{conclusions}"
    );
    let advice = record["advice"].as_str().unwrap();
    assert!(advice.starts_with("Run one thread per core"), "{advice}");
}

/// 95 % of 60 intervals on 30 machines must contain the truth, less three standard errors.
#[test]
fn the_smt_yield_of_a_known_machine_is_found() {
    let stage = Stage::new();
    let truth = 0.25;
    let (mut covered, mut all) = (0, 0);
    for seed in 0..30 {
        let line = format!(
            "bench fibonacci --machine sim:smt.toml --seed {seed} --max-runs 12 --store none"
        );
        let record = stage.run_for_json(&line);
        for kernel in record["kernels"].as_array().unwrap() {
            let found = &kernel["smt_yield"];
            let Some(low) = found["low"].as_f64() else {
                continue;
            };
            all += 1;
            covered += usize::from(low <= truth && truth <= found["high"].as_f64().unwrap());
        }
    }
    assert!(all >= 50, "{all}");
    let min_share = 0.95 - 3.0 * (0.95 * 0.05 / all as f64).sqrt();
    assert!(
        covered as f64 >= min_share * all as f64,
        "{covered} of {all}"
    );
}

#[test]
fn a_bench_is_stored_shown_and_exported() {
    let stage = Stage::new();
    let line = "bench fibonacci --machine sim:plain.toml --seed 1 --max-runs 8";
    let shown = stage.run_ok(line);
    assert_eq!(stage.run_ok("record show last").out, shown.out);
    let record = stage.run_for_json("record show last");
    assert_eq!(record["schema"], "pinwise.bench/1");
    let exported = stage.run_for_json("record show last --format json");
    assert_eq!(exported, record);
    let csv = stage.run_ok("record show last --format csv").out;
    let cells = record["kernels"][0]["cells"].as_array().unwrap().len();
    assert_eq!(csv.lines().count(), 1 + cells, "{csv}");
    // Its comparisons are stored under the ids that it names.
    let part = record["kernels"][0]["comparison"].as_str().unwrap();
    let part = stage.run_for_json(&format!("record show {part}"));
    assert_eq!(part["study"], "bench");
    let history = stage.run_for_json("record history");
    assert_eq!(history["records"][0]["title"], "bench fibonacci");
    assert_eq!(history["records"][1]["title"], "part of a bench: fibonacci");
    assert_eq!(stage.run("record show last --format hyperfine").status, 2);
}

#[test]
fn a_kernel_is_an_arm_of_compare() {
    let stage = Stage::new();
    let record = stage.run_for_json(
        "compare --machine sim:smt.toml --seed 1 --kernel 'fibonacci --threads 2 --work 30 --split dynamic' --place os-default --place one-core --max-runs 8",
    );
    assert_eq!(record["metric"]["name"], "json:.seconds lower");
    assert_eq!(record["metric"]["unit"], "s");
    let words = record["arms"][0]["command"].as_array().unwrap();
    let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(
        words.join(" "),
        "pinwise bench kernel fibonacci --threads 2 --work 30 --isa native --split dynamic --format json"
    );
}

/// The figures of a short run on the real machine.
#[test]
fn bench_runs_a_kernel_of_this_machine() {
    let stage = Stage::new();
    let record = stage
        .run_for_json("bench fibonacci --threads 1,2 --work 2 --max-runs 2 --warmup 0 --budget 1m");
    let kernel = &record["kernels"][0];
    assert_eq!(kernel["operation"], "calls");
    assert!(kernel["working_set_bytes"].as_u64().unwrap() > 0);
    for cell in kernel["cells"].as_array().unwrap() {
        assert!(cell["rate"]["value"].as_f64().unwrap() > 1e6, "{cell}");
    }
}
