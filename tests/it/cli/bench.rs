//! Built-in workloads over threads and placements, on machines whose scheduler
//! and siblings are known; kernels as arms of `compare`.

use super::Stage;

#[test]
fn siblings_that_cost() {
    let line = "--format json bench fibonacci --machine sim:costs.toml --seed 1";
    let ran = Stage::new().succeed(line);
    let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let conclusions = record["conclusions"].to_string();
    assert!(
        conclusions.contains("On all cores, SMT costs"),
        "{conclusions}"
    );
    assert!(
        conclusions.contains("Run one thread per core"),
        "{conclusions}"
    );
}

/// The truth lies in the interval as often as it must: in 95 % of 60 intervals on 30 machines, with
/// an allowance of three deviations.
#[test]
fn the_smt_yield_of_a_known_machine_is_found() {
    let stage = Stage::new();
    let truth = 0.25;
    let (mut held, mut all) = (0, 0);
    for seed in 0..30 {
        let line = format!(
            "bench fibonacci --machine sim:smt.toml --seed {seed} --max-runs 12 --store none"
        );
        let record = stage.json(&line);
        for kernel in record["kernels"].as_array().unwrap() {
            let found = &kernel["smt_yield"];
            let Some(low) = found["low"].as_f64() else {
                continue;
            };
            all += 1;
            held += usize::from(low <= truth && truth <= found["high"].as_f64().unwrap());
        }
    }
    assert!(all >= 50, "{all}");
    let least = 0.95 - 3.0 * (0.95 * 0.05 / all as f64).sqrt();
    assert!(held as f64 >= least * all as f64, "{held} of {all}");
}

#[test]
fn a_bench_is_stored_shown_and_exported() {
    let stage = Stage::new();
    let line = "bench fibonacci --machine sim:plain.toml --seed 1 --max-runs 8";
    let shown = stage.succeed(line);
    assert_eq!(stage.succeed("record show last").out, shown.out);
    let record = stage.json("record show last");
    assert_eq!(record["schema"], "pinwise.bench/1");
    let exported = stage.json("record show last --format json");
    assert_eq!(exported, record);
    let csv = stage.succeed("record show last --format csv").out;
    let cells = record["kernels"][0]["cells"].as_array().unwrap().len();
    assert_eq!(csv.lines().count(), 1 + cells, "{csv}");
    // Its parts are stored under the names that it gives.
    let part = record["kernels"][0]["comparison"].as_str().unwrap();
    let part = stage.json(&format!("record show {part}"));
    assert_eq!(part["study"], "bench");
    let history = stage.json("record history");
    assert_eq!(history["records"][0]["title"], "bench fibonacci");
    assert_eq!(history["records"][1]["title"], "part of a bench: fibonacci");
    assert_eq!(stage.run("record show last --format hyperfine").status, 2);
}

#[test]
fn kernels_as_arms_of_compare() {
    let stage = Stage::new();
    let record = stage.json(
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

/// One short run for real: the kernel's own figures arrive.
#[test]
fn bench_runs_a_kernel_of_this_machine() {
    let stage = Stage::new();
    let record =
        stage.json("bench fibonacci --threads 1,2 --work 2 --max-runs 2 --warmup 0 --budget 1m");
    let kernel = &record["kernels"][0];
    assert_eq!(kernel["operation"], "calls");
    assert!(kernel["working_set_bytes"].as_u64().unwrap() > 0);
    for cell in kernel["cells"].as_array().unwrap() {
        assert!(cell["rate"]["value"].as_f64().unwrap() > 1e6, "{cell}");
    }
}
