//! Profiles of programs with known properties, which the tests compile, and refusals of bad input.
//!
//! Nothing depends on speed: shares and ratios of CPU time have generous limits. A message says if
//! this user may not sample, or if there is no C compiler.

mod attribution;
mod stacks;

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::{Running, decode_output, has_program, pinwise, report_skip, split_words};

/// Spins for thousands of hints (first argument), computes millions of steps (second), prints how
/// much it did, and ends with a status (third).
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#if defined(__x86_64__)
#define HINT() __asm__ volatile("pause")
#else
#define HINT() __asm__ volatile("isb")
#endif
static volatile int ready;
static volatile unsigned long sink;
__attribute__((noinline)) void spin_for(long n) { while (n-- > 0 && !ready) HINT(); sink++; }
__attribute__((noinline)) unsigned long compute(long n) {
  unsigned long x = 1;
  for (long i = 0; i < n; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
  return x;
}
int main(int argc, char **argv) {
  long spins = atol(argv[1]), steps = atol(argv[2]);
  for (int i = 0; i < 10; i++) { spin_for(spins * 100); sink += compute(steps * 100000); }
  printf("%ld items\n", 4 * spins);
  return argc > 3 ? atoi(argv[3]) : 0;
}
"#;

/// A folder with the program and a store.
struct ProfiledProgram {
    folder: tempfile::TempDir,
}

impl ProfiledProgram {
    /// `None`, with the reason, if nothing can be compiled or sampled here.
    fn new() -> Option<Self> {
        if !has_program("cc") {
            report_skip("no C compiler (cc)");
            return None;
        }
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(stage.path("prog.c"), PROGRAM).unwrap();
        stage.run_shell("cc -O1 -fno-omit-frame-pointer -o prog prog.c");
        let seen = stage.run_for_json(&["profile", "--store", "none", "--", "./prog", "100", "10"]);
        if seen["event"] == "proc" {
            report_skip(&format!("no samples here: {}", seen["notes"]));
            return None;
        }
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn run_shell(&self, line: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path());
        assert!(shell.status().unwrap().success(), "{line}");
    }

    /// Standard output as JSON, of a command that must succeed.
    #[track_caller]
    fn run_for_json(&self, arguments: &[&str]) -> Value {
        let text = self.run_for_text(&[&["--format", "json"], arguments].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Standard output of a command that must succeed.
    #[track_caller]
    fn run_for_text(&self, arguments: &[&str]) -> String {
        let (out, err, status) = self.run(arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {err}");
        out
    }

    /// Standard output, standard error, and the exit status.
    fn run(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let mut command = pinwise(&self.path("store.db"));
        command.args(arguments).current_dir(self.folder.path());
        let output = command.output().unwrap();
        let (out, err) = decode_output(&output);
        (out, err, output.status.code())
    }
}

fn to_number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn find_function<'a>(record: &'a Value, name: &str) -> &'a Value {
    let functions = record["functions"].as_array().unwrap();
    let mut named = functions.iter().filter(|f| f["name"] == name);
    named
        .next()
        .unwrap_or_else(|| panic!("{name}: {functions:?}"))
}

#[test]
fn functions_hints_and_exports_of_a_profile_are_right() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    let metric = "regex:([0-9]+) items higher";
    let files = split_words("--report a.html --folded a.txt --export-json a.json");
    let command = ["profile", "--metric", metric, "--runs", "2"];
    let record =
        stage.run_for_json(&[&command, &files[..], &["--", "./prog", "10000", "100"]].concat());
    assert_eq!(record["schema"], "pinwise.profile/1");
    assert_eq!(record["work"]["count"], 80_000.0, "{}", record["work"]);
    assert_eq!(record["runs"].as_array().unwrap().len(), 2);
    let total = to_number(&record["total"]["samples"]);
    let spin = find_function(&record, "spin_for");
    let own = to_number(&spin["own"]["samples"]);
    let waits = to_number(&spin["waits"]["samples"]);
    // The other samples are at other instructions of the loop: many, on processors whose hint
    // takes only a few cycles.
    assert!(waits > 0.5 * own && own <= total, "{spin}");
    assert_eq!(find_function(&record, "compute")["waits"]["samples"], 0);
    // Which instruction is the hottest depends on how long the hint takes on this processor.
    let instructions = record["instructions"].as_array().unwrap();
    let hot = instructions.iter().find(|i| i["function"] == "spin_for");
    let hot = hot.unwrap_or_else(|| panic!("{instructions:?}"));
    let lines = hot["lines"].as_array().unwrap();
    let hottest = lines
        .iter()
        .find(|l| l["address"] == hot["address"])
        .unwrap();
    assert_eq!(hottest["waits"], true, "{hot}");
    assert!(lines.iter().any(|line| line["is_hint"] == true), "{hot}");

    let folded = std::fs::read_to_string(stage.path("a.txt")).unwrap();
    let counts = folded.lines().map(|line| line.rsplit(' ').next().unwrap());
    let sum: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(Some(sum), record["total"]["samples"].as_u64(), "{folded}");
    let page = std::fs::read_to_string(stage.path("a.html")).unwrap();
    assert!(page.contains(record["id"].as_str().unwrap()), "{page}");
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(stage.path("a.json")).unwrap()).unwrap();
    assert_eq!(kept, record);
    // The stored record is the same, and sufficient for text and page.
    assert_eq!(stage.run_for_json(&["record", "show", "last"]), record);
    assert_eq!(
        stage.run_for_text(&["record", "show", "last", "--format", "html"]),
        page
    );
    let text = stage.run_for_text(&["record", "show", "last"]);
    assert!(
        text.contains("waiting in the hint") && text.contains("self/item"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let history = stage.run_for_text(&["record", "history"]);
    assert!(
        history.contains("profile ./prog") && history.contains("waits in spin"),
        "{history}"
    );
}

#[test]
fn spin_waits_are_found_in_a_stripped_program() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    stage.run_shell("cp prog bare && strip bare");
    let share = |program: &str| {
        let record = stage.run_for_json(&["profile", "--", program, "10000", "100"]);
        let hot = record["instructions"][0].clone();
        let waits = to_number(&record["waits"]["cpu_s"]);
        (waits / to_number(&record["total"]["cpu_s"]), hot)
    };
    let (named, _) = share("./prog");
    let (bare, hot) = share("./bare");
    assert!((named - bare).abs() < 0.2 && bare > 0.3, "{named} {bare}");
    assert!(hot["function"].as_str().unwrap().starts_with("0x"), "{hot}");
    assert!(hot["module"].as_str().unwrap().ends_with("/bare"), "{hot}");
    assert!(hot["lines"].as_array().unwrap().len() > 3, "{hot}");
}

#[test]
fn a_diff_names_the_function_that_grew() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    stage.run_for_json(&["profile", "--runs", "2", "--", "./prog", "6000", "100"]);
    stage.run_for_json(&["profile", "--runs", "1", "--", "./prog", "18000", "100"]);
    let diff = stage.run_for_json(&["profile", "diff", "last~1", "last"]);
    assert_eq!(diff["schema"], "pinwise.profile-diff/1");
    assert_eq!(diff["unit"], "run");
    let largest = &diff["functions"][0];
    assert_eq!(largest["name"], "spin_for", "{largest}");
    assert_eq!(largest["own"]["is_noise"], false, "{largest}");
    let ratio = to_number(&diff["waits"]["after_s"]) / to_number(&diff["waits"]["before_s"]);
    assert!((2.0..4.5).contains(&ratio), "{}", diff["waits"]);
    let is_known = |side: &str| !diff[side]["pause_ns"].is_null();
    if is_known("before") && is_known("after") {
        let sentence = diff["sentences"][0].as_str().unwrap_or_default();
        assert!(sentence.contains("more time in PAUSE"), "{diff}");
    } else {
        report_skip("PAUSE could not be measured");
    }
    let back = stage.run_for_json(&["profile", "diff", "last", "last~1"]);
    let change = |diff: &Value| to_number(&diff["total"]["delta_s"]);
    assert!((change(&diff) + change(&back)).abs() < 1e-9);
    let text = stage.run_for_text(&["profile", "diff", "last~1", "last"]);
    assert!(
        text.contains("spin_for") && text.contains("self/run"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_failed_command_ends_the_profile_with_what_it_has() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    let command = ["--", "./prog", "3000", "10", "3"];
    let (out, err, status) = stage.run(&[&["profile", "--runs", "3"], &command[..]].concat());
    assert_eq!(status, Some(2), "{err}");
    assert!(
        out.contains("exit status 3") && out.contains("1 of 3 runs"),
        "{out}"
    );
    let stored = stage.run_for_json(&["record", "show", "last"]);
    assert_eq!(stored["exit"], 3);
    assert_eq!(stored["runs"].as_array().unwrap().len(), 1);
    let (_, err, status) = stage.run(&["profile", "--", "./nothing-there"]);
    assert_eq!(status, Some(2));
    assert!(
        err.contains("nothing-there") && err.lines().count() == 1,
        "{err}"
    );
    let metric = ["profile", "--metric", "regex:([0-9]+) rows higher"];
    let without_match = [&metric[..], &["--", "./prog", "9", "1"]].concat();
    let (_, err, status) = stage.run(&without_match);
    assert_eq!(status, Some(2));
    assert!(
        err.contains("--metric") && err.contains("matches nothing"),
        "{err}"
    );
}

#[test]
fn a_command_that_is_ended_by_the_requested_limit_has_not_failed() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    for command in [&["trace"][..], &["profile"], &["spin", "attach"]] {
        let line = [command, &["--for", "200ms", "--", "sleep", "600"]].concat();
        let record = stage.run_for_json(&line);
        assert_eq!(record["exit"], Value::Null, "{line:?}");
        let text = record.to_string();
        assert!(text.contains("its time limit"), "{record}");
        assert!(!text.contains("-0.0"), "{record}");
    }
}

#[test]
fn a_process_is_profiled_and_may_end() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    let start_spinner =
        |spins: &str| Running::start(Command::new(stage.path("prog")).args([spins, "1"]));
    let mut endless = start_spinner("100000000000");
    let line = format!(
        "profile --pid {} --for 400ms --units 50:request",
        endless.id()
    );
    let watched = stage.run_for_json(&split_words(&line));
    assert!(
        endless.0.try_wait().unwrap().is_none(),
        "the process was ended"
    );
    drop(endless);
    assert_eq!(watched["work"]["unit"], "request");
    assert_eq!(watched["work"]["count"], 50.0);
    assert_eq!(find_function(&watched, "spin_for")["kind"], "user");
    assert!(to_number(&watched["waits"]["samples"]) > 0.0, "{watched}");

    // It ends long before the time limit.
    let mut brief = start_spinner("30000");
    let pid = brief.id();
    let seen = stage.run(&["profile", "--pid", &pid, "--for", "5m", "--format", "json"]);
    brief.0.wait().unwrap();
    let (out, err, status) = seen;
    if status == Some(2) {
        assert!(err.contains("no such process"), "{err}");
        return;
    }
    let record: Value = serde_json::from_str(&out).unwrap();
    assert!(to_number(&record["wall_s"]) < 299.0, "{}", record["wall_s"]);
    assert_eq!(record["work"]["unit"], "second");
    let (_, err, status) = stage.run(&["profile", "--pid", &pid]);
    assert_eq!(status, Some(2));
    assert!(err.contains(&pid), "{err}");
}

#[test]
fn control_characters_of_a_name_are_not_printed() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    let name = "a<b>\u{1b}[31m;&\"";
    stage.run_shell("cp prog evil && mv evil \"$(printf 'a<b>\\033[31m;&\"')\"");
    let program = format!("./{name}");
    let files = ["--folded", "e.txt", "--top", "50"];
    let out =
        stage.run_for_text(&[&["profile"], &files[..], &["--", &program, "3000", "20"]].concat());
    let is_clean = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
    assert!(is_clean(&out), "{out:?}");
    let folded = std::fs::read_to_string(stage.path("e.txt")).unwrap();
    assert!(is_clean(&folded), "{folded:?}");
    let diff = stage.run_for_text(&["profile", "diff", "last", "last"]);
    assert!(is_clean(&diff), "{diff:?}");
}

/// Threads that end long before their process does.
const ENDING: &str = r"
#include <pthread.h>
#include <time.h>
static void *work(void *seconds) {
  struct timespec t;
  volatile double x = 0;
  do {
    for (int i = 0; i < 20000; i++) x += i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  } while (t.tv_sec + t.tv_nsec * 1e-9 < *(double *)seconds);
  return 0;
}
int main(void) {
  pthread_t threads[2];
  double seconds[] = {0.17, 0.45};
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &seconds[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  struct timespec rest = {0, 300000000};
  nanosleep(&rest, 0);
  return 0;
}
";

#[test]
fn threads_that_end_early_have_all_their_cpu_time() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    std::fs::write(stage.path("ending.c"), ENDING).unwrap();
    stage.run_shell("cc -O1 -o ending ending.c -lpthread");
    let record = stage.run_for_json(&["profile", "--store", "none", "--", "./ending"]);
    let threads = record["threads"].as_array().unwrap();
    for (thread, seconds) in threads.iter().zip([0.45, 0.17]) {
        let time = to_number(&thread["cpu_s"]);
        // Time that the hypervisor takes is CPU time to the thread, and has no samples.
        assert!((0.85..1.2).contains(&(time / seconds)), "{thread}");
    }
}
