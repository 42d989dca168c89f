//! `spin attach` on real programs, which the tests compile: who spins is found
//! without symbols, and who does not is left in peace.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{self, Running, go_settings, has_program, report_skip, root, run_for_json};

/// How long programs run at first, s: enough for hundreds of samples of a thread
/// that gets half of a CPU.
const SECONDS: f64 = 0.4;

/// Maximum time, if other programs leave little, s.
const MAX_SECONDS: f64 = 600.0;

/// A program of `tests/data/programs`, compiled by this command line with the output's path added;
/// `None`, with a message, if the compiler is missing.
fn compiled(folder: &Path, source: &str, compiler: &[&str]) -> Option<PathBuf> {
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

/// Two threads that share a pthread spin lock.
fn spin_lock(folder: &Path) -> Option<PathBuf> {
    compiled(folder, "spin_lock.c", &["cc", "-O2", "-pthread"])
}

/// Number of samples from which on even waits that cycle through functions are judged: those need
/// pairs of samples at one instruction.
const MIN_SAMPLES: u64 = 300;

/// The same for a turn of so many instructions that one in forty samples falls where the one before
/// did.
const MIN_SAMPLES_UNOPTIMISED: u64 = 1500;

/// What is found in a command whose last argument is how many seconds it runs: as
/// many as it takes for enough samples.
fn attach(command: &[&str]) -> Value {
    attach_until(MIN_SAMPLES, command)
}

fn attach_until(enough: u64, command: &[&str]) -> Value {
    let look = ["--format", "json", "spin", "attach", "--hz", "3989", "--"];
    look_for(enough, |seconds| {
        let last = seconds.to_string();
        support::run_for_json_in_session(&[&look[..], command, &[&last]].concat())
    })
}

/// The first look of this many seconds that has enough samples.
fn look_for(enough: u64, mut look: impl FnMut(f64) -> Value) -> Value {
    let mut seconds = SECONDS;
    loop {
        let record = look(seconds);
        let samples = record["samples"].as_u64().unwrap();
        if samples > enough {
            return record;
        }
        seconds *= (1.5 * enough as f64 / samples.max(1) as f64).clamp(1.5, 10.0);
        let notes = &record["notes"];
        assert!(seconds < MAX_SECONDS, "{samples} samples: {notes}");
    }
}

fn share(record: &Value) -> f64 {
    record["spin_share"].as_f64().unwrap()
}

/// The hottest place: its kind, and the algorithms that it may be.
fn hottest(record: &Value) -> (String, Vec<String>) {
    let place = &record["places"][0];
    let algorithms = place["algorithms"].as_array().unwrap();
    let ids = algorithms.iter().map(|a| a["algorithm"].as_str().unwrap());
    (
        place["kind"].as_str().unwrap().to_owned(),
        ids.map(str::to_owned).collect(),
    )
}

#[track_caller]
fn check_spins(record: &Value, kinds: &[&str], algorithm: &str) {
    assert!(share(record) > 0.2, "{record:#}");
    let (kind, algorithms) = hottest(record);
    assert!(kinds.contains(&kind.as_str()), "{kind}: {record:#}");
    assert!(
        algorithms.iter().any(|id| id == algorithm),
        "{algorithms:?}: {record:#}"
    );
}

/// May perf events sample programs here?
fn can_sample() -> bool {
    let record = run_for_json(&["--format", "json", "spin", "attach", "--", "true"]);
    let is_seen = record["event"] != "proc";
    if !is_seen {
        report_skip(&format!("no perf events here: {}", record["notes"]));
    }
    is_seen
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_lock_of_the_net_framework_is_blind() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [&["-O2"][..], &["-O0"], &["-O2", "-s"]] {
        let compiler = [&["cc", "-pthread"], options].concat();
        let Some(program) = compiled(folder.path(), "netfx_lock.c", &compiler) else {
            return;
        };
        let record = attach(&[program.to_str().unwrap()]);
        check_spins(&record, &["blind_delay"], "netfx_awarelock");
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
    let Some(program) = spin_lock(folder.path()) else {
        return;
    };
    let record = attach(&[program.to_str().unwrap()]);
    check_spins(&record, &["polling"], "glibc_spinlock");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn libgomp_is_found_without_symbols() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let compiler = ["gcc", "-O2", "-fopenmp", "-s"];
    let Some(program) = compiled(folder.path(), "openmp.c", &compiler) else {
        return;
    };
    let record = attach(&["env", "OMP_WAIT_POLICY=active", program.to_str().unwrap()]);
    check_spins(&record, &["polling"], "libgomp");
    let place = &record["places"][0];
    assert!(place["module"].as_str().unwrap().contains("libgomp"));
    let tunables = place["algorithms"][0]["tunables"].to_string();
    assert!(tunables.contains("GOMP_SPINCOUNT"), "{tunables}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_that_a_jvm_makes_is_seen() {
    if !can_sample() {
        return;
    }
    for program in ["java", "javac"] {
        if !has_program(program) {
            return report_skip(&format!("{program} is not installed"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("javac")
        .arg("-d")
        .arg(folder.path())
        .arg(root().join("tests/data/programs/OnSpinWait.java"))
        .status()
        .unwrap();
    assert!(status.success());
    let classes = folder.path().to_str().unwrap();
    let record = attach(&["java", "-cp", classes, "OnSpinWait"]);
    check_spins(&record, &["polling"], "java_onspinwait");
    assert!(record["places"][0]["module"].is_null());
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
        let Some(program) = compiled(folder.path(), source, compiler) else {
            continue;
        };
        let record = attach(&[program.to_str().unwrap()]);
        assert!(share(&record) < 0.05, "{source}: {record:#}");
        assert_eq!(record["findings"], serde_json::json!([]), "{source}");
    }
}

/// The program that yields, and works in ways that look like waits.
fn polls(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    let compiler = [&["cc", "-O2", "-pthread"], options].concat();
    compiled(folder, "polls.c", &compiler)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn work_that_looks_like_a_wait_is_work() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-O0", "-fno-omit-frame-pointer"]] {
        let Some(program) = polls(folder.path(), options) else {
            return;
        };
        for what in ["drain", "clock"] {
            let record = attach(&[program.to_str().unwrap(), what]);
            // The clock is read in a loop, too, for as long as that takes.
            let most = if what == "clock" { 0.15 } else { 0.05 };
            assert!(share(&record) < most, "{what}: {record:#}");
            assert_eq!(record["findings"], serde_json::json!([]), "{what}");
        }
    }
}

/// Threads of a program of `tests/data/programs`, by name, that spin in between
/// these parts of their CPU time; all others are a failure.
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
    let Some(program) = compiled(folder.path(), source, &["cc", level, "-pthread"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let look = ["--format", "json", "spin", "attach", "--hz", "3989", "--"];
    let record = run_for_json(&[&look[..], &[program, "all", "0.25"]].concat());
    let threads = record["threads"].as_array().unwrap();
    // Main only starts them.
    let seen = threads.iter().filter(|one| one["name"] != "program");
    let shares: Vec<(&str, f64)> = seen
        .map(|one| {
            let spin = one["spin_s"].as_f64().unwrap();
            let share = spin / one["cpu_s"].as_f64().unwrap();
            (one["name"].as_str().unwrap(), share)
        })
        .collect();
    assert!(shares.len() >= fewest, "{shares:?}");
    // Without optimisation the low bits of this one's count pass through a register: whether it is
    // taken for a count depends on where samples fall, and beside others it often is not.
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
fn ways_to_work_are_no_waits() {
    if can_sample() {
        check_threads("work.c", 24, 0.0..=0.05);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_place_that_yields_is_the_function_that_asks_for_it() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-fno-omit-frame-pointer"]] {
        let Some(program) = polls(folder.path(), options) else {
            return;
        };
        let record = attach(&[program.to_str().unwrap(), "yield"]);
        if record["notes"].to_string().contains("not seen") {
            return report_skip("what the kernel does is hidden from this user");
        }
        assert!(share(&record) > 0.65, "{record:#}");
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
    let Some(program) = compiled(folder.path(), "gosched.go", &["go", "build"]) else {
        return;
    };
    let record = attach(&[program.to_str().unwrap()]);
    assert!(share(&record) > 0.65, "{record:#}");
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
        let Some(program) = compiled(folder.path(), "try_recv.rs", &compiler) else {
            return;
        };
        let program = program.to_str().unwrap();
        for what in ["channel", "sync_channel", "flag"] {
            let record = attach_until(MIN_SAMPLES_UNOPTIMISED, &[program, what]);
            assert!(share(&record) > 0.65, "{level} {what}: {record:#}");
            assert_eq!(record["places"][0]["kind"], "bare_load", "{level} {what}");
        }
        let record = attach_until(MIN_SAMPLES_UNOPTIMISED, &[program, "queue"]);
        assert!(share(&record) < 0.05, "{level}: {record:#}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_java_lock_without_a_hint_is_seen() {
    if !can_sample() {
        return;
    }
    for program in ["java", "javac"] {
        if !has_program(program) {
            return report_skip(&format!("{program} is not installed"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("tests/data/programs/CasLock.java");
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(folder.path()).arg(source);
    assert!(compiler.status().unwrap().success());
    let classes = folder.path().to_str().unwrap();
    for how in ["cas", "ticket"] {
        // What the first two tiers of compilation make is too long for a
        // polling loop, or counts in memory: the last one alone, at once.
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
        let look = ["--format", "json", "spin", "attach", "--pid", &pid];
        let record = look_for(MIN_SAMPLES, |seconds| {
            let time = format!("{seconds}s");
            run_for_json(&[&look[..], &["--hz", "3989", "--for", &time]].concat())
        });
        // Four threads share one lock, and its owner sleeps.
        assert!(share(&record) > 0.5, "{how}: {record:#}");
        let place = &record["places"][0];
        assert_eq!(place["kind"], "bare_load", "{how}: {record:#}");
        let algorithms = place["algorithms"].to_string();
        assert!(!algorithms.contains("netfx"), "{algorithms}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_process_is_looked_at_and_left_alone() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = spin_lock(folder.path()) else {
        return;
    };
    let start = |seconds: &str| Running::start(Command::new(&program).arg(seconds));
    let mut running = start("100");
    let pid = running.id();
    let record = look_for(MIN_SAMPLES, |seconds| {
        let time = format!("{seconds}s");
        run_for_json(&[
            "--format", "json", "spin", "attach", "--for", &time, "--pid", &pid,
        ])
    });
    // On a busy machine the thread that waits may get far less CPU time than the one that works.
    let threads = record["threads"].as_array().unwrap();
    let waits = threads.iter().any(|thread| {
        let [spin_s, cpu_s] = ["spin_s", "cpu_s"].map(|of| thread[of].as_f64().unwrap());
        spin_s > 0.5 * cpu_s
    });
    assert!(waits, "{record:#}");
    assert_eq!(record["exit"], Value::Null);
    assert!(running.0.try_wait().unwrap().is_none(), "it was ended");
    // A process that ends while it is watched is not an error.
    let short = start("5");
    let pid = short.id();
    let look = [
        "--format", "json", "spin", "attach", "--for", "20s", "--pid", &pid,
    ];
    let ended = std::thread::spawn(move || {
        let mut short = short;
        short.0.wait().unwrap()
    });
    let record = run_for_json(&look);
    assert!(ended.join().unwrap().success());
    assert!(record["wall_s"].as_f64().unwrap() < 15.0);
}

#[test]
fn cpu_time_alone_is_reported_as_such() {
    let command = [
        "sh",
        "-c",
        "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
    ];
    let mut arguments = vec![
        "--format", "json", "spin", "attach", "--event", "proc", "--",
    ];
    arguments.extend(command);
    let record = run_for_json(&arguments);
    assert_eq!(record["event"], "proc");
    for unknown in ["shares", "spin_share", "pauses_per_s"] {
        assert_eq!(record[unknown], Value::Null, "{unknown}");
    }
    assert!(record["cpu_s"].as_f64().unwrap() > 0.0);
    assert_eq!(record["findings"][0]["check"], "unseen");
}

#[test]
fn a_gate_fails_by_status_1() {
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
    let Some(program) = spin_lock(folder.path()) else {
        return;
    };
    let program = program.to_str().unwrap();
    let seconds = SECONDS.to_string();
    let gate = [
        "spin",
        "attach",
        "--max-spin",
        "1%",
        "--",
        program,
        &seconds,
    ];
    let output = support::run(&gate);
    let (_, err) = support::decode_output(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("--max-spin 1.0 %"), "{err}");
}
