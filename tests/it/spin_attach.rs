//! `spin attach` on real programs, which the tests compile: spin-waits are found without symbols,
//! and work is not taken for them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{
    self, Running, go_settings, has_program, report_skip, root, run_for_json, split_words,
};

/// Duration of programs in the first attempt, seconds: enough for hundreds of samples of a thread that
/// gets half of a CPU.
const SECONDS: f64 = 0.4;

/// Longest run if other programs leave little CPU time, seconds.
const MAX_SECONDS: f64 = 600.0;

/// Compiles a program of `tests/data/programs` with this command line, to which the paths are
/// added; `None`, with a message, if the compiler is missing.
fn compile(folder: &Path, source: &str, compiler: &[&str]) -> Option<PathBuf> {
    if !has_program(compiler[0]) {
        report_skip(&format!("{} is not installed", compiler[0]));
        return None;
    }
    let program = folder.join("program");
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .arg("-o")
        .arg(&program)
        .arg(root().join("tests/data/programs").join(source))
        .envs(go_settings())
        .env("HOME", folder)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && words.contains("omp.h") {
        report_skip("the compiler has no OpenMP");
        return None;
    }
    assert!(output.status.success(), "{words}");
    Some(program)
}

/// Compiles the program of two threads that share a pthread spin lock.
fn compile_spin_lock(folder: &Path) -> Option<PathBuf> {
    compile(folder, "spin_lock.c", &["cc", "-O2", "-pthread"])
}

/// Enough samples to judge even waits that cycle through functions: such a verdict needs pairs of
/// samples at one instruction.
const MIN_SAMPLES: u64 = 300;

/// The same for unoptimised code, in whose loops only one sample in forty is at the instruction of
/// the one before.
const MIN_SAMPLES_UNOPTIMISED: u64 = 1500;

/// The record of a command that takes the number of seconds as its last argument: it runs longer
/// until there are enough samples.
fn attach(command: &[&str]) -> Value {
    attach_until(MIN_SAMPLES, command)
}

/// The least share of CPU time that programs spend spinning that do little else.
const SPINS: f64 = 0.2;
/// Attempts to see threads spin for each other: beside other programs they may hardly run at once.
const ATTEMPTS: usize = 8;

/// The record of a command whose threads spin for each other.
fn attach_spinning(command: &[&str]) -> Value {
    let mut records = (0..ATTEMPTS).map(|_| attach(command));
    let first = records.next().unwrap();
    match spin_share(&first) > SPINS {
        true => first,
        false => records.find(|r| spin_share(r) > SPINS).unwrap_or(first),
    }
}

fn attach_until(enough: u64, command: &[&str]) -> Value {
    let options = ["--format", "json", "spin", "attach", "--hz", "3989", "--"];
    repeat_until(enough, |seconds| {
        let last = seconds.to_string();
        support::run_for_json_in_session(&[&options[..], command, &[&last]].concat())
    })
}

/// Attaches for longer and longer until there are enough samples.
fn repeat_until(enough: u64, mut attach: impl FnMut(f64) -> Value) -> Value {
    let mut seconds = SECONDS;
    loop {
        let record = attach(seconds);
        let samples = record["samples"].as_u64().unwrap();
        if samples > enough {
            return record;
        }
        seconds *= (1.5 * enough as f64 / samples.max(1) as f64).clamp(1.5, 10.0);
        let notes = &record["notes"];
        assert!(seconds < MAX_SECONDS, "{samples} samples: {notes}");
    }
}

fn spin_share(record: &Value) -> f64 {
    record["spin_share"].as_f64().unwrap()
}

/// Checks that the program spins, and that its hottest loop is of this kind and may be of this
/// algorithm.
#[track_caller]
fn check_spins(record: &Value, kind: &str, algorithm: &str) {
    assert!(spin_share(record) > SPINS, "{record:#}");
    let place = &record["places"][0];
    assert_eq!(place["kind"], kind, "{record:#}");
    let mut algorithms = place["algorithms"].as_array().unwrap().iter();
    assert!(
        algorithms.any(|found| found["algorithm"] == algorithm),
        "{record:#}"
    );
}

/// Whether perf events may sample programs here.
fn can_sample() -> bool {
    let record = run_for_json(&["--format", "json", "spin", "attach", "--", "true"]);
    let can_sample = record["event"] != "proc";
    if !can_sample {
        report_skip(&format!("no perf events here: {}", record["notes"]));
    }
    can_sample
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_lock_of_the_net_framework_waits_in_a_blind_delay() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [&["-O2"][..], &["-O0"], &["-O2", "-s"]] {
        let compiler = [&["cc", "-pthread"], options].concat();
        let Some(program) = compile(folder.path(), "netfx_lock.c", &compiler) else {
            return;
        };
        let record = attach_spinning(&[program.to_str().unwrap()]);
        check_spins(&record, "blind_delay", "netfx_awarelock");
        let shares = &record["shares"];
        let blind = shares["blind_delay_s"].as_f64().unwrap();
        assert!(blind > 10.0 * shares["polling_s"].as_f64().unwrap());
        assert!(record["pauses_per_s"].as_f64().unwrap() > 1e5);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_pthread_spin_lock_polls() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_spin_lock(folder.path()) else {
        return;
    };
    let record = attach_spinning(&[program.to_str().unwrap()]);
    check_spins(&record, "polling", "glibc_spinlock");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn libgomp_is_found_without_symbols() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let compiler = ["gcc", "-O2", "-fopenmp", "-s"];
    let Some(program) = compile(folder.path(), "openmp.c", &compiler) else {
        return;
    };
    let record = attach_spinning(&["env", "OMP_WAIT_POLICY=active", program.to_str().unwrap()]);
    check_spins(&record, "polling", "libgomp");
    let place = &record["places"][0];
    assert!(place["module"].as_str().unwrap().contains("libgomp"));
    let tunables = place["algorithms"][0]["tunables"].to_string();
    assert!(tunables.contains("GOMP_SPINCOUNT"), "{tunables}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn waits_in_code_that_a_jvm_generates_are_seen() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if !compile_java(folder.path(), "OnSpinWait.java") {
        return;
    }
    let classes = folder.path().to_str().unwrap();
    let record = attach_spinning(&["java", "-cp", classes, "OnSpinWait"]);
    check_spins(&record, "polling", "java_onspinwait");
    assert!(record["places"][0]["module"].is_null());
}

/// Compiles a Java program of `tests/data/programs`; false, with a message, if there is no Java.
#[cfg(target_arch = "x86_64")]
fn compile_java(folder: &Path, source: &str) -> bool {
    if !has_program("java") || !has_program("javac") {
        report_skip("java and javac are not installed");
        return false;
    }
    let source = root().join("tests/data/programs").join(source);
    let mut compiler = Command::new("javac");
    let status = compiler.arg("-d").arg(folder).arg(source).status();
    assert!(status.unwrap().success());
    true
}

#[test]
fn mutexes_that_are_rarely_contended_do_not_spin() {
    if !can_sample() {
        return;
    }
    let compilers = [
        (&["rustc", "-O", "--edition", "2021"][..], "mutex.rs"),
        (&["go", "build"], "mutex.go"),
    ];
    for (compiler, source) in compilers {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = compile(folder.path(), source, compiler) else {
            continue;
        };
        let record = attach(&[program.to_str().unwrap()]);
        assert!(spin_share(&record) < 0.05, "{source}: {record:#}");
        assert_eq!(record["findings"], serde_json::json!([]), "{source}");
    }
}

/// Compiles the program that yields, and works in ways that look like waits.
#[cfg(target_arch = "x86_64")]
fn compile_polls(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    let compiler = [&["cc", "-O2", "-pthread"], options].concat();
    compile(folder, "polls.c", &compiler)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn work_that_looks_like_a_wait_is_not_taken_for_one() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-O0", "-fno-omit-frame-pointer"]] {
        let Some(program) = compile_polls(folder.path(), options) else {
            return;
        };
        for what in ["drain", "clock"] {
            let record = attach(&[program.to_str().unwrap(), what]);
            // In this one, reading the clock may be a loop of its own.
            let most = if what == "clock" { 0.15 } else { 0.05 };
            assert!(spin_share(&record) < most, "{what}: {record:#}");
            assert_eq!(record["findings"], serde_json::json!([]), "{what}");
        }
    }
}

/// Checks that every thread of a program of `tests/data/programs` spins for a share of its CPU time
/// within this range, and that there are at least `fewest`.
#[cfg(target_arch = "x86_64")]
fn check_threads(source: &str, fewest: usize, expected: std::ops::RangeInclusive<f64>) {
    for level in ["-O2", "-O0"] {
        check_threads_at(level, source, fewest, &expected);
    }
}

#[cfg(target_arch = "x86_64")]
fn check_threads_at(
    level: &str,
    source: &str,
    fewest: usize,
    expected: &std::ops::RangeInclusive<f64>,
) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), source, &["cc", level, "-pthread"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let options = ["--format", "json", "spin", "attach", "--hz", "3989", "--"];
    let record = run_for_json(&[&options[..], &[program, "all", "0.25"]].concat());
    let threads = record["threads"].as_array().unwrap();
    // The main thread only starts the others.
    let others = threads.iter().filter(|thread| thread["name"] != "program");
    let shares: Vec<(&str, f64)> = others
        .map(|thread| {
            let spin_s = thread["spin_s"].as_f64().unwrap();
            let share = spin_s / thread["cpu_s"].as_f64().unwrap();
            (thread["name"].as_str().unwrap(), share)
        })
        .collect();
    assert!(shares.len() >= fewest, "{shares:?}");
    // Without optimisation, the low bits of the counter of `look_rarely` pass through a register.
    // Whether it is recognised as a counter then depends on which instructions are sampled.
    let is_chance = |name: &str| level == "-O0" && name == "look_rarely";
    let wrong: Vec<_> = shares
        .iter()
        .filter(|(name, share)| !expected.contains(share) && !is_chance(name))
        .collect();
    assert!(wrong.is_empty(), "{level}: {wrong:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ways_to_wait_are_seen() {
    if can_sample() {
        check_threads("waits.c", 28, 0.65..=1.0);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ways_to_work_are_not_taken_for_waits() {
    if can_sample() {
        check_threads("work.c", 24, 0.0..=0.05);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_wait_that_yields_is_attributed_to_the_function_that_calls() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-fno-omit-frame-pointer"]] {
        let Some(program) = compile_polls(folder.path(), options) else {
            return;
        };
        let record = attach(&[program.to_str().unwrap(), "yield"]);
        if record["notes"].to_string().contains("not seen") {
            return report_skip("what the kernel does is hidden from this user");
        }
        assert!(spin_share(&record) > 0.65, "{record:#}");
        let place = &record["places"][0];
        assert_eq!(place["kind"], "yielding");
        assert_eq!(place["function"], "wait_politely", "{place:#}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn waits_of_go_are_seen() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "gosched.go", &["go", "build"]) else {
        return;
    };
    let record = attach(&[program.to_str().unwrap()]);
    assert!(spin_share(&record) > 0.65, "{record:#}");
    assert_eq!(record["places"][0]["kind"], "yielding");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn polls_of_rust_are_seen_in_every_build() {
    if !can_sample() {
        return;
    }
    for level in ["opt-level=3", "opt-level=0"] {
        let folder = tempfile::tempdir().unwrap();
        let compiler = ["rustc", "-C", level, "--edition", "2021"];
        let Some(program) = compile(folder.path(), "try_recv.rs", &compiler) else {
            return;
        };
        let program = program.to_str().unwrap();
        for what in ["channel", "sync_channel", "flag"] {
            let record = attach_until(MIN_SAMPLES_UNOPTIMISED, &[program, what]);
            assert!(spin_share(&record) > 0.65, "{level} {what}: {record:#}");
            assert_eq!(record["places"][0]["kind"], "bare_load", "{level} {what}");
        }
        let record = attach_until(MIN_SAMPLES_UNOPTIMISED, &[program, "queue"]);
        assert!(spin_share(&record) < 0.05, "{level}: {record:#}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_java_lock_without_a_hint_is_seen() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if !compile_java(folder.path(), "CasLock.java") {
        return;
    }
    let classes = folder.path().to_str().unwrap();
    for how in ["cas", "ticket"] {
        // Code of the first tiers of compilation is too long for a polling loop, or counts in
        // memory: only the last tier is used, from the start.
        let tiers = ["-XX:-TieredCompilation", "-XX:-BackgroundCompilation"];
        let mut java = Command::new("java");
        java.args(tiers)
            .args(["-cp", classes, "CasLock", "600", how])
            .stdout(Stdio::piped());
        let mut running = Running(support::start_in_session(&mut java).spawn().unwrap());
        let mut line = String::new();
        let output = running.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "warm\n");
        let pid = running.id();
        let options = ["--format", "json", "spin", "attach", "--pid", &pid];
        let record = repeat_until(MIN_SAMPLES, |seconds| {
            let time = format!("{seconds}s");
            run_for_json(&[&options[..], &["--hz", "3989", "--for", &time]].concat())
        });
        // Four threads share one lock, and its owner sleeps.
        assert!(spin_share(&record) > 0.5, "{how}: {record:#}");
        let place = &record["places"][0];
        assert_eq!(place["kind"], "bare_load", "{how}: {record:#}");
        let algorithms = place["algorithms"].to_string();
        assert!(!algorithms.contains("netfx"), "{algorithms}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_attached_process_goes_on_and_may_end() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_spin_lock(folder.path()) else {
        return;
    };
    let start = |seconds: &str| Running::start(Command::new(&program).arg(seconds));
    let mut running = start("100");
    let pid = running.id();
    let record = repeat_until(MIN_SAMPLES, |seconds| {
        let time = format!("{seconds}s");
        run_for_json(&[
            "--format", "json", "spin", "attach", "--for", &time, "--pid", &pid,
        ])
    });
    // Both take turns; on a busy machine the one that waits may get far less CPU time than the one
    // that works.
    let threads = record["threads"].as_array().unwrap();
    let has_spinner = threads.iter().any(|thread| {
        let [spin_s, cpu_s] = ["spin_s", "cpu_s"].map(|field| thread[field].as_f64().unwrap());
        spin_s > 0.25 * cpu_s
    });
    assert!(has_spinner, "{record:#}");
    assert_eq!(record["exit"], Value::Null);
    assert!(running.0.try_wait().unwrap().is_none(), "it was ended");
    // A process that ends while it is watched is not an error.
    let short = start("5");
    let pid = short.id();
    let arguments = [
        "--format", "json", "spin", "attach", "--for", "20s", "--pid", &pid,
    ];
    let ended = std::thread::spawn(move || {
        let mut short = short;
        short.0.wait().unwrap()
    });
    let record = run_for_json(&arguments);
    assert!(ended.join().unwrap().success());
    assert!(record["wall_s"].as_f64().unwrap() < 15.0);
}

#[test]
fn without_samples_spinning_is_unknown() {
    let options = split_words("--format json spin attach --event proc -- sh -c");
    let line = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let record = run_for_json(&[&options[..], &[line]].concat());
    assert_eq!(record["event"], "proc");
    for unknown in ["shares", "spin_share", "pauses_per_s"] {
        assert_eq!(record[unknown], Value::Null, "{unknown}");
    }
    assert!(record["cpu_s"].as_f64().unwrap() > 0.0);
    assert_eq!(record["findings"][0]["check"], "unseen");
}

#[test]
fn more_spinning_than_max_spin_ends_with_status_1() {
    if !can_sample() {
        return;
    }
    let output = support::run(&["spin", "attach", "--max-spin", "50%", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = support::run(&["spin", "attach", "--", "false"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    if cfg!(not(target_arch = "x86_64")) {
        return report_skip("the program that spins is written for x86-64");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_spin_lock(folder.path()) else {
        return;
    };
    let program = program.to_str().unwrap();
    let seconds = SECONDS.to_string();
    let options = split_words("spin attach --max-spin 1% --");
    let output = support::run(&[&options[..], &[program, &seconds]].concat());
    let (_, err) = support::decode_output(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("--max-spin 1.0 %"), "{err}");
}
