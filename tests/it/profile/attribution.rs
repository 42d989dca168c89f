//! Which part of the difference of two profiles comes from spin-waits, and which from memory.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{ProfiledProgram, to_number};
use crate::support::{Running, has_program, report_skip, split_words};

/// One thread computes while the other waits for it at a barrier.
const BARRIERS: &str = r"
#include <omp.h>
static volatile unsigned long sink;
int main(void) {
  #pragma omp parallel num_threads(2)
  for (int round = 0; round < 20; round++) {
    if (omp_get_thread_num() == 0) {
      unsigned long x = 1;
      for (long i = 0; i < 20000000; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
      sink += x;
    }
    #pragma omp barrier
  }
  return 0;
}
";

/// The sum of the parts whose names begin like this, seconds per unit: after minus before.
fn sum_parts(attribution: &Value, name: &str) -> f64 {
    let parts = attribution["parts"].as_array().unwrap().iter();
    parts
        .filter(|part| part["part"].as_str().unwrap().starts_with(name))
        .filter_map(|part| part["delta_s"]["value"].as_f64())
        .sum()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn more_cpu_time_of_a_spinning_runtime_is_attributed_to_spin_waits() {
    if !std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        return report_skip("libgomp does not spin on one CPU");
    }
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    std::fs::write(stage.path("barriers.c"), BARRIERS).unwrap();
    let compiler = "gcc -O1 -fopenmp -o barriers barriers.c";
    let compiled = Command::new("sh")
        .args(["-c", compiler])
        .current_dir(stage.folder.path())
        .stderr(Stdio::null())
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return report_skip("no gcc with -fopenmp");
    }
    for spins in ["GOMP_SPINCOUNT=0", "GOMP_SPINCOUNT=infinite"] {
        stage.run_for_json(&["profile", "--", "env", spins, "./barriers"]);
    }
    let diff = stage.run_for_json(&["profile", "diff", "last~1", "last"]);
    let all = diff["attributions"].as_array().unwrap();
    let cpu = all.iter().find(|found| found["of"] == "cpu").unwrap();
    let whole = to_number(&cpu["delta"]["value"]);
    assert_eq!(cpu["is_difference"], true, "{cpu}");
    assert!(sum_parts(cpu, "spin-wait") > 0.6 * whole, "{cpu}");
    let sentence = cpu["sentence"].as_str().unwrap();
    assert!(sentence.contains("spin-waits"), "{sentence}");
    let text = stage.run_for_text(&["profile", "diff", "last~1", "last"]);
    assert!(
        text.contains("Part") && text.contains("unexplained"),
        "{text}"
    );
}

#[test]
fn time_taken_by_competitors_is_attributed_to_waiting_and_memory() {
    if !has_program("taskset") {
        return report_skip("no taskset, which places the competitors");
    }
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    let program = env!("CARGO_BIN_EXE_pinwise");
    let kernel = split_words("--store none bench kernel chase --threads 1");
    let profile = || {
        let command = ["profile", "--place", "cpu:0", "--", program];
        stage.run_for_json(&[&command, &kernel[..], &["--work", "10", "--size", "64MiB"]].concat())
    };
    profile();
    let competitors = [(); 2].map(|()| {
        let endless = ["-c", "0", "sh", "-c", "while :; do :; done"];
        Running::start(Command::new("taskset").args(endless))
    });
    profile();
    drop(competitors);
    let diff = stage.run_for_json(&["profile", "diff", "last~1", "last"]);
    let wall = &diff["attributions"][0];
    assert_eq!(wall["of"], "wall", "{diff}");
    let whole = to_number(&wall["delta"]["value"]);
    // Other programs may have slowed the first run as much, or more.
    if whole.abs() < 0.2 * to_number(&wall["before_s"]) {
        return report_skip("other programs slowed both runs alike");
    }
    let by_competitors = sum_parts(wall, "waiting") + sum_parts(wall, "memory");
    assert!(by_competitors / whole > 0.5, "{wall}");
    assert!(
        sum_parts(wall, "spin-wait").abs() < 0.02 * whole.abs(),
        "{wall}"
    );
}
