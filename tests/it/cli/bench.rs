//! Built-in workloads over threads and placements, on machines whose scheduler
//! and siblings are known; kernels as arms of `compare`.

use super::Stage;

/// A machine with siblings that add a quarter to most kernels and cost others
/// something; and one without.
const SMT: &str = r#"topology = "package:1 l3:1(size=32MB) core:4 l1d:1(size=32KB) pu:2"
[scheduler]
policy = "core-first"
smt_throughput = 1.25
[noise]
sd = 0.01
"#;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("smt.toml", SMT);
    stage.write(
        "costs.toml",
        &format!("{SMT}[workload.fibonacci]\nbase_s = 1.0\nsmt_throughput = 0.9\n"),
    );
    stage.write(
        "plain.toml",
        "topology = \"core:4 pu:1\"\n[noise]\nsd = 0.01\n",
    );
    stage
}

#[test]
fn threads_times_placements_and_what_siblings_add() {
    let line = "bench fibonacci --machine sim:smt.toml --seed 1";
    stage().snapshot("bench-smt", line);
}

#[test]
fn a_machine_without_siblings() {
    let stage = stage();
    stage.snapshot(
        "bench-no-smt",
        "bench --suite smt --machine sim:plain.toml --seed 1",
    );
    stage.snapshot(
        "bench-scaling",
        "bench fibonacci --machine sim:plain.toml --seed 1 --place spread --place cpu:0 --threads 1,2,4 --max-runs 10",
    );
}

#[test]
fn siblings_that_cost() {
    let line = "--format json bench fibonacci --machine sim:costs.toml --seed 1";
    let ran = stage().succeed(line);
    let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let said = record["conclusions"].to_string();
    assert!(said.contains("On all cores, SMT costs"), "{said}");
    assert!(said.contains("Run one thread per core"), "{said}");
}

/// The truth lies in the interval as often as it must: 95 % of them, of 60
/// intervals on 30 machines, with the allowance of three deviations.
#[test]
fn the_yield_of_a_known_machine_comes_out() {
    let stage = stage();
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
    let stage = stage();
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
    // What it is made of is there under the names that it gives.
    let part = record["kernels"][0]["comparison"].as_str().unwrap();
    let part = stage.json(&format!("record show {part}"));
    assert_eq!(part["study"], "bench");
    let history = stage.json("record history");
    assert_eq!(history["records"][0]["title"], "bench fibonacci");
    assert_eq!(history["records"][1]["title"], "part of a bench: fibonacci");
    assert_eq!(stage.run("record show last --format hyperfine").status, 2);
}

#[test]
fn a_seed_repeats_a_bench() {
    let stage = stage();
    let figures = |seed: u32| {
        let line = format!("bench fibonacci --machine sim:plain.toml --seed {seed} --max-runs 8");
        let record = stage.json(&line);
        record["kernels"][0]["cells"].clone()
    };
    assert_eq!(figures(5), figures(5));
    assert_ne!(figures(5), figures(6));
}

#[test]
fn kernels_as_arms_of_compare() {
    let stage = stage();
    stage.snapshot(
        "compare-kernel",
        "compare --machine sim:smt.toml --seed 3 --kernel 'fibonacci --threads 4' --max-runs 15",
    );
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

#[test]
fn what_bench_and_kernels_refuse() {
    let stage = stage();
    let lines = [
        "bench",
        "bench fibonaci",
        "bench fibonacci --suite smt",
        "bench --suite speed",
        "bench fibonacci --threads 0",
        "bench fibonacci --threads 4..1",
        "bench fibonacci --threads many",
        "bench fibonacci --threads 1",
        "bench fibonacci --work 0",
        "bench fibonacci --place nowhere",
        "bench fibonacci --place cpu:9",
        "bench fibonacci --isa v9",
        "bench fibonacci --isa v3",
        "bench fibonacci --isa v1,native",
        "bench --suite smt --threads 1..2",
        "bench --suite all --place cpu:0",
        "bench fibonacci --export-hyperfine x.json",
        "bench jitter",
        "bench jitter --cpus 9",
        "bench jitter --cpus x",
        "bench jitter --cpus ''",
        "bench jitter --for 0s",
        "bench jitter --for 5",
        "bench jitter --threshold 100ns",
        "bench jitter --threshold small",
        "bench jitter fibonacci",
        "compare --kernel fibonaci",
        "compare --kernel ''",
        "compare --kernel 'fibonacci --threads 0'",
        "compare --kernel 'fibonacci --seconds 1s'",
        "compare --kernel 'fibonacci --size 5'",
        "compare --kernel 'fibonacci --frobnicate'",
        "compare --kernel --list",
        "compare --kernel fibonacci --isa v1,native",
        "compare --kernel 'fibonacci --isa v1' --isa v2",
        "compare --kernel fibonacci -- prog",
        "compare --isa v1 -- prog",
    ]
    .map(|line| format!("{line} --machine sim:plain.toml"));
    // What stands behind -- is the command's.
    let lines = lines.map(|line| match line.split_once(" -- prog ") {
        Some((start, machine)) => format!("{start} {machine} -- prog"),
        None => line,
    });
    super::refusals::refused(&stage, "bench", lines);
    let kept = stage.json("record history");
    assert!(kept["records"].as_array().unwrap().is_empty());
}

/// One short run for real: the kernel's own figures arrive.
#[test]
fn a_real_kernel() {
    let stage = stage();
    let record =
        stage.json("bench fibonacci --threads 1,2 --work 2 --max-runs 2 --warmup 0 --budget 1m");
    let kernel = &record["kernels"][0];
    assert_eq!(kernel["operation"], "calls");
    assert!(kernel["working_set_bytes"].as_u64().unwrap() > 0);
    for cell in kernel["cells"].as_array().unwrap() {
        assert!(cell["rate"]["value"].as_f64().unwrap() > 1e6, "{cell}");
    }
}
