//! Two profiles: which part of the difference comes from spin-waits and from memory.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Stage, number};
use crate::support::{has_program, report_skip, split_words};

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

/// After less before of the parts whose names begin so, s per unit.
fn parts(attribution: &Value, name: &str) -> f64 {
    let parts = attribution["parts"].as_array().unwrap().iter();
    parts
        .filter(|part| part["part"].as_str().unwrap().starts_with(name))
        .filter_map(|part| part["delta_s"]["value"].as_f64())
        .sum()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn more_cpu_time_of_a_spinning_runtime_is_spin_waits() {
    if !std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        return report_skip("libgomp does not spin on one CPU");
    }
    let Some(stage) = Stage::new() else { return };
    std::fs::write(stage.path("barriers.c"), BARRIERS).unwrap();
    let compiler = "gcc -O1 -fopenmp -o barriers barriers.c";
    let made = Command::new("sh")
        .args(["-c", compiler])
        .current_dir(stage.folder.path())
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return report_skip("no gcc with -fopenmp");
    }
    for spins in ["GOMP_SPINCOUNT=0", "GOMP_SPINCOUNT=infinite"] {
        stage.json(&["profile", "--", "env", spins, "./barriers"]);
    }
    let diff = stage.json(&["profile", "diff", "last~1", "last"]);
    let all = diff["attributions"].as_array().unwrap();
    let cpu = all.iter().find(|found| found["of"] == "cpu").unwrap();
    let whole = number(&cpu["delta"]["value"]);
    assert_eq!(cpu["is_difference"], true, "{cpu}");
    assert!(parts(cpu, "spin-wait") > 0.6 * whole, "{cpu}");
    let sentence = cpu["sentence"].as_str().unwrap();
    assert!(sentence.contains("spin-waits"), "{sentence}");
    let text = stage.text(&["profile", "diff", "last~1", "last"]);
    assert!(
        text.contains("Part") && text.contains("unexplained"),
        "{text}"
    );
}

#[test]
fn a_neighbour_makes_a_memory_bound_kernel_wait() {
    if !has_program("taskset") {
        return report_skip("no taskset, which places the neighbour");
    }
    let Some(stage) = Stage::new() else { return };
    let program = env!("CARGO_BIN_EXE_pinwise");
    let kernel = split_words("--store none bench kernel chase --threads 1");
    let profile = || {
        let command = ["profile", "--place", "cpu:0", "--", program];
        stage.json(&[&command, &kernel[..], &["--work", "10", "--size", "64MiB"]].concat())
    };
    profile();
    let mut neighbours: Vec<_> = (0..2)
        .map(|_| {
            let mut neighbour = Command::new("taskset");
            let endless = ["-c", "0", "sh", "-c", "while :; do :; done"];
            neighbour.args(endless).spawn().unwrap()
        })
        .collect();
    profile();
    for neighbour in &mut neighbours {
        neighbour.kill().unwrap();
        neighbour.wait().unwrap();
    }
    let diff = stage.json(&["profile", "diff", "last~1", "last"]);
    let wall = &diff["attributions"][0];
    assert_eq!(wall["of"], "wall", "{diff}");
    let whole = number(&wall["delta"]["value"]);
    // Others may have been in the way of the first run as much, or more.
    if whole.abs() < 0.2 * number(&wall["before_s"]) {
        return report_skip("other programs slowed both runs alike");
    }
    let neighbours = parts(wall, "waiting") + parts(wall, "memory");
    assert!(neighbours / whole > 0.5, "{wall}");
    assert!(
        parts(wall, "spin-wait").abs() < 0.02 * whole.abs(),
        "{wall}"
    );
}
