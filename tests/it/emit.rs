//! `apply --as` and `compare --emit`: if the tool is installed, the printed command is run, and it
//! prints its mask.

use std::process::Command;

use serde_json::Value;

use crate::support::{
    decode_output, has_program, pinwise, read_allowed_cpus, report_skip, run_for_json, split_words,
};

/// CPUs that this test may use.
fn list_allowed_cpus() -> Vec<usize> {
    let list = read_allowed_cpus("self");
    let cpus = pinwise_topology::CpuSet::parse_list(&list).unwrap();
    cpus.iter().collect()
}

/// The CPUs in a line of `/proc/PID/status`.
fn parse_allowed_list(status: &str) -> String {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_else(|| panic!("no mask in: {status}"))
        .trim()
        .to_owned()
}

/// Runs `apply --as` for one tool and returns its part of the record.
#[track_caller]
fn emit_for(place: &str, tool: &str, command: &[&str]) -> Value {
    let mut words = vec!["apply", "--place", place, "--as", tool, "--format", "json"];
    if !command.is_empty() {
        words.push("--");
        words.extend(command);
    }
    run_for_json(&words)["tools"][0].clone()
}

/// Runs what was printed for a shell: variables, files and lines. Returns its output, or the
/// script and its error.
#[track_caller]
fn run_emission(emission: &Value, folder: &std::path::Path) -> Result<String, String> {
    let mut shell = Command::new("sh");
    let mut script = String::new();
    for piece in emission["pieces"].as_array().unwrap() {
        if let Some(line) = piece["command"].as_str() {
            script.push_str(&format!("{line}\n"));
        }
        if let Some(name) = piece["variable"].as_str() {
            shell.env(name, piece["value"].as_str().unwrap());
        }
        if let Some(file) = piece["file"].as_str() {
            std::fs::write(folder.join(file), piece["text"].as_str().unwrap()).unwrap();
        }
    }
    let output = shell
        .args(["-e", "-c", &script])
        .current_dir(folder)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .unwrap();
    let (out, err) = decode_output(&output);
    if output.status.success() {
        Ok(out)
    } else {
        Err(format!("{script}: {err}"))
    }
}

const SHOW_MASK: [&str; 3] = ["grep", "Cpus_allowed_list", "/proc/self/status"];

/// Checks that the printed command grants exactly the requested CPU.
#[track_caller]
fn check_granted_cpus(tool: &str, program: &str) {
    if !has_program(program) {
        return report_skip(&format!("{tool}: {program} is not installed"));
    }
    let folder = tempfile::tempdir().unwrap();
    for cpu in list_allowed_cpus() {
        let emission = emit_for(&format!("cpu:{cpu}"), tool, &SHOW_MASK);
        let out = run_emission(&emission, folder.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parse_allowed_list(&out), cpu.to_string(), "{tool}");
    }
}

#[test]
fn tools_grant_the_printed_cpus() {
    for tool in ["taskset", "numactl", "hwloc-bind"] {
        check_granted_cpus(tool, tool);
    }
    for tool in ["jvm", "go", "tokio", "rayon"] {
        check_granted_cpus(tool, "taskset");
    }
}

#[test]
fn mpirun_starts_processes_on_the_printed_cpus() {
    check_granted_cpus("openmpi", "mpirun");
    if !has_program("mpirun") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cpus = list_allowed_cpus();
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let place = format!("cpu:{}/bound", list.join(","));
    let out = match run_emission(&emit_for(&place, "openmpi", &SHOW_MASK), folder.path()) {
        Ok(out) => out,
        // Other versions have other options.
        Err(error) => return report_skip(&error.replace('\n', " ")),
    };
    let mut seen: Vec<String> = out.lines().map(parse_allowed_list).collect();
    seen.sort();
    let mut expected = list;
    expected.sort();
    assert_eq!(seen, expected);
}

/// Prints the mask of every OpenMP thread, in the order of their numbers.
const OPENMP: &str = r#"#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
int main(void) {
  #pragma omp parallel
  #pragma omp for ordered schedule(static, 1)
  for (int i = 0; i < omp_get_num_threads(); i++) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    #pragma omp ordered
    {
      for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) printf("%d ", cpu);
      printf("\n");
    }
  }
  return 0;
}
"#;

#[test]
fn openmp_threads_run_on_the_printed_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("masks.c");
    std::fs::write(&source, OPENMP).unwrap();
    let compiled = Command::new("gcc")
        .args(["-fopenmp", "-o", "masks", "masks.c"])
        .current_dir(folder.path())
        .output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        return report_skip("no gcc with -fopenmp");
    }
    let cpus = list_allowed_cpus();
    // The order of CPUs is not ascending if there are several cores.
    let place = "spread/bound";
    let order = run_for_json(&["apply", "--place", place, "--as", "omp", "--format", "json"]);
    let order: Vec<String> = order["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    for tool in ["omp", "gomp"] {
        let out = run_emission(&emit_for(place, tool, &["./masks"]), folder.path()).unwrap();
        let masks: Vec<&str> = out.lines().map(str::trim).collect();
        assert_eq!(masks, order, "{tool}");
    }
    let out = run_emission(&emit_for("os-default", "omp", &["./masks"]), folder.path()).unwrap();
    let all: Vec<String> = cpus.iter().map(usize::to_string).collect();
    for mask in out.lines() {
        assert_eq!(mask.trim(), all.join(" "));
    }
    assert_eq!(out.lines().count(), cpus.len());
}

#[test]
fn systemd_accepts_the_drop_in() {
    if !has_program("systemd-analyze") {
        return report_skip("systemd-analyze is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let cpu = list_allowed_cpus()[0];
    let emission = emit_for(&format!("cpu:{cpu}/mem=bind"), "systemd:demo", &[]);
    let unit = folder.path().join("demo.service");
    std::fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
    let drop_in = folder.path().join("demo.service.d");
    std::fs::create_dir(&drop_in).unwrap();
    let text = emission["pieces"][0]["text"].as_str().unwrap();
    let check = |text: &str| {
        std::fs::write(drop_in.join("50-pinwise.conf"), text).unwrap();
        let output = Command::new("systemd-analyze")
            .args(["verify", "--man=no", "--recursive-errors=no"])
            .arg(&unit)
            .output()
            .unwrap();
        decode_output(&output).1
    };
    let names_drop_in = |message: &str| message.contains("50-pinwise.conf");
    // Silence means something only if a wrong line is reported.
    let message = check("[Service]\nCPUAffinity=kettle\n");
    if !names_drop_in(&message) {
        return report_skip(&format!("verify reads no drop-in: {message}"));
    }
    let message = check(text);
    assert!(!names_drop_in(&message), "{text}: {message}");
}

#[test]
fn the_verdict_of_a_record_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("machine.toml");
    let text = "topology = \"package:1 core:2 pu:1\"\n[workload.default]\nbase_s = 0.5\n[effects]\n\"cpu:0\" = 0.8\n\"cpu:1\" = 1.2\n[noise]\nsd = 0.005\n";
    std::fs::write(&machine, text).unwrap();
    let machine = format!("sim:{}", machine.display());
    let store = folder.path().join("store.db");
    let pinwise = |words: &[&str]| {
        let output = pinwise(&store).args(words).output().unwrap();
        let (out, err) = decode_output(&output);
        (out, err, output.status.code())
    };
    // If os-default is best, no command is needed.
    let slower = "--seed 1 --place os-default --place cpu:1 --emit taskset -- prog";
    let line = [
        &["compare", "--machine", &machine][..],
        &split_words(slower),
    ]
    .concat();
    let (out, err, status) = pinwise(&line);
    assert_eq!(status, Some(0), "{err}");
    assert!(!out.contains("# taskset"), "{out}");
    assert_eq!(
        err.lines().last(),
        Some("--emit: Nothing to apply: the verdict is to change nothing.")
    );
    let (out, _, status) = pinwise(&["apply", "last", "--as", "docker", "--machine", &machine]);
    assert_eq!(status, Some(0));
    assert_eq!(
        out,
        "# Nothing to apply: the verdict is to change nothing.\n"
    );
    let places = "--seed 1 --place os-default --place cpu:0 --emit taskset -- prog";
    let line = [
        &["compare", "--machine", &machine][..],
        &split_words(places),
    ]
    .concat();
    let (out, err, status) = pinwise(&line);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("# taskset\ntaskset -c 0 prog\n"), "{out}");
    let (out, err, status) = pinwise(&["apply", "last", "--as", "docker", "--machine", &machine]);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("--cpuset-cpus=0 IMAGE prog"), "{out}");
    assert_eq!(err, "");
    let other = ["--machine", "sim:core:4 pu:2"];
    let (_, err, status) = pinwise(&[&["apply", "last", "--as", "docker"][..], &other].concat());
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("from another machine"), "{err}");
    let quick = folder.path().join("quick.toml");
    std::fs::write(&quick, text.replace("base_s = 0.5", "base_s = 0.003")).unwrap();
    check_nothing_is_applied(&format!("sim:{}", quick.display()), pinwise);
}

/// Checks that no placement is recommended for runs that are mostly process start-up, however clear
/// the difference.
fn check_nothing_is_applied(
    machine: &str,
    pinwise: impl Fn(&[&str]) -> (String, String, Option<i32>),
) {
    let places = "--seed 1 --place os-default --place cpu:0 --emit taskset -- prog";
    let (out, err, status) =
        pinwise(&[&["compare", "--machine", machine][..], &split_words(places)].concat());
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("cpu:0 is faster than os-default"), "{out}");
    assert!(!out.contains("best") && !out.contains("# taskset"), "{out}");
    let (out, err, status) = pinwise(&["apply", "last", "--as", "docker", "--machine", machine]);
    assert_eq!((out.as_str(), status), ("", Some(2)), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(
        err.contains("No placement is recommended for runs"),
        "{err}"
    );
    let (out, err, status) = pinwise(&split_words(&parse_advice(&err)));
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.contains("--cpuset-cpus=0"), "{out}");
}

/// The arguments of the command at the end of a refusal.
fn parse_advice(refusal: &str) -> String {
    let command = refusal.split("all the same: pinwise ").nth(1);
    let command = command.unwrap_or_else(|| panic!("{refusal}"));
    command.trim_end().replace('\'', "")
}

#[test]
fn a_refusal_says_how_to_apply_an_arm_anyway() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let run = |line: &str| {
        let output = pinwise(&store).args(split_words(line)).output().unwrap();
        let (out, err) = decode_output(&output);
        (out, err, output.status.code())
    };
    let file = folder.path().join("machine.toml");
    std::fs::write(&file, "topology = \"core:4 pu:1\"\n").unwrap();
    let machine = format!("--machine sim:{}", file.display());
    // Two runs do not decide.
    let places = "--place os-default --place cpu:0 --place cpu:1";
    run(&format!(
        "compare {machine} --seed 1 {places} --max-runs 2 -- prog"
    ));
    for tool in ["docker", "taskset"] {
        let (out, err, status) = run(&format!("apply last --as {tool} {machine}"));
        assert_eq!((out.as_str(), status), ("", Some(2)), "{err}");
        assert!(err.contains("(os-default, cpu:0, cpu:1)"), "{err}");
        let (out, err, status) = run(&parse_advice(&err));
        assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
        assert!(out.contains("prog"), "{out}");
    }
    let (out, _, _) = run(&format!("apply last --arm cpu:1 --as docker {machine}"));
    assert!(out.contains("--cpuset-cpus=1 IMAGE prog"), "{out}");
    let (_, err, status) = run(&format!("apply last --arm cpu:2 {machine}"));
    assert_eq!(status, Some(2));
    assert!(
        err.contains("has no such arm (arms: os-default, cpu:0"),
        "{err}"
    );
}
