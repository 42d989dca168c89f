//! Commands that cannot be measured: one clear line, exit status 2, and
//! nothing left behind.

use super::trial::{Trial, find_two_cpus, finish};
use crate::support::split_words;

#[test]
fn programs_that_cannot_be_started_are_refused() {
    let trial = Trial::new();
    trial.run_shell("echo text > plain; echo text > marked; chmod +x marked; mkdir folder");
    trial.run_shell("printf '#!/no/such/interpreter\\n' > orphan; chmod +x orphan");
    let cases: [(&str, &[&str]); 7] = [
        (
            "no-such-program",
            &["no-such-program: no such program", "PATH"],
        ),
        ("./no-such-program", &["./no-such-program: no such program"]),
        ("plain", &["plain: no such program", "./plain"]),
        ("./plain", &["./plain", "chmod +x"]),
        ("./marked", &["./marked", "#!"]),
        ("./folder", &["./folder", "folder"]),
        ("./orphan", &["./orphan", "#!"]),
    ];
    for (program, words) in cases {
        trial.compare(&["--", program]).check_refused(words);
        let status = if words[0].contains("no such") {
            127
        } else {
            126
        };
        trial.run(&["run", program]).check_exit(status, words);
        trial
            .run(&["compare", "--self", "--", program])
            .check_refused(words);
        trial.run(&["compare", "--", program]).check_refused(words);
    }
    let line = "ls -l";
    let ended = trial.compare(&["--", line]);
    ended.check_refused(&["ls -l: no such program", "space"]);
    // A folder of PATH that may not be searched is skipped; a file that is not executable is
    // reported only if no other is found.
    trial.run_shell("mkdir -p folder/plain other; echo > other/tool; chmod 644 other/tool");
    let search = |program: &str| {
        let mut command = trial.pinwise(&["run", "--", program]);
        let path = "/proc/1/root/no:file/below:folder:other:/usr/bin:/bin";
        finish(command.env("PATH", path).spawn().unwrap())
    };
    search("true").check_success();
    search("tool").check_exit(126, &["tool: cannot be executed", "chmod +x"]);
    search("no-such-program").check_exit(127, &["no such program"]);
    trial.check_no_process_left();
    assert_eq!(
        trial.files(),
        ["folder", "marked", "orphan", "other", "plain"]
    );
}

#[test]
fn runs_before_a_failure_are_shown() {
    let trial = Trial::new();
    // It fails in its seventh run.
    let line = "sh -c 'echo >> runs; test $(wc -l < runs) -ne 7'";
    let ended = trial.run(&["compare", "--max-runs", "9", line, "true"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    let reason = " failed with exit status 1 after 6 good runs (--ignore-failure";
    assert!(ended.err.contains(reason), "{}", ended.err);
    assert!(ended.out.contains("  failed\n"), "{}", ended.out);
    assert!(!ended.out.contains("No verdict"), "{}", ended.out);
    let record = trial.read_record();
    let advised = record["verdict"]["commands"][0]["line"].as_str().unwrap();
    assert!(advised.starts_with("while sh -c '"), "{advised}");
}

#[test]
fn a_command_that_always_fails_is_reported_and_not_stored() {
    let trial = Trial::new();
    let line = "echo said on stdout; echo first >&2; echo second >&2; exit 3";
    let ended = trial.compare(&["--shell=sh", "--", line]);
    ended.check_failure(&["exit status 3", "--ignore-failure", "\nfirst\nsecond\n"]);
    let counted = trial.run(&["compare", "--quiet", "--shell=sh", "--", line]);
    counted.check_failure(&["exit status 3", "\nfirst\nsecond\n"]);
    let silent = trial.compare(&["--", "false"]);
    silent.check_refused(&["'false' failed with exit status 1"]);
    // Quotes around a command would end at its own.
    let quoted = trial.compare(&["--", "false", "a b"]);
    quoted.check_refused(&["measured: false 'a b' failed with exit status 1"]);
    trial
        .compare(&["--ignore-failure", "--", "false"])
        .check_success();
    // If nothing was measured, no record is kept.
    let history = trial.run(&["record", "history"]).out;
    assert!(!history.contains("No arm could be measured"), "{history}");
    assert_eq!(history.matches("false").count(), 1, "{history}");
    trial.check_no_process_left();
    assert_eq!(trial.files(), [""; 0]);
}

#[test]
fn the_block_of_a_failure_is_the_last() {
    let trial = Trial::new();
    let line = "echo >> count; [ $(wc -l < count) -ne 5 ] || { echo the fifth >&2; exit 9; }";
    let ended = trial.compare(&["--max-runs", "9", "--shell=sh", "--", line]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    let reason = "exit status 9 after 2 good runs: the fifth (";
    assert!(ended.err.contains(reason), "{}", ended.err);
    assert_eq!(
        trial.count_lines("count"),
        6,
        "the block is finished, no other is begun"
    );
    let record = trial.read_record();
    assert_eq!(record["stopped"], "failed");
    let invalid = record["arms"].as_array().unwrap().iter();
    assert_eq!(invalid.filter(|arm| !arm["invalid"].is_null()).count(), 1);
}

/// The others go on without it; the exit status still says that one failed.
#[test]
fn an_arm_that_fails_does_not_stop_the_others() {
    let trial = Trial::new();
    let good = split_words("compare --quiet --max-runs 2 --command true --command true");
    let bad = ["--command", "sh -c 'echo the reason >&2; exit 4'"];
    let ended = trial.run(&[&good[..], &bad].concat());
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    assert!(ended.out.contains("Undecided"), "{}", ended.out);
    let warnings = ended.err.lines().filter(|l| l.starts_with("warning: "));
    let message = warnings.filter(|line| !line.contains("--max-runs"));
    assert_eq!(message.count(), 1, "{}", ended.err);
    assert!(ended.err.contains("the reason"), "{}", ended.err);
}

#[test]
fn a_command_that_kills_or_stops_itself_is_refused() {
    let trial = Trial::new();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("INT", 2)] {
        let line = format!("kill -{name} $$");
        let message = format!("killed by signal {number}");
        for accept in [&[][..], &["--ignore-failure"]] {
            let arguments = [accept, &["--shell=sh", "--", &line]].concat();
            trial.compare(&arguments).check_refused(&[&message]);
        }
    }
    // A stopped command is killed at its time-out.
    let stopped = trial.compare(&["--timeout", "200ms", "--shell=sh", "--", "kill -STOP $$"]);
    stopped.check_refused(&["took longer than its time-out of 0.2 s"]);
    trial.check_no_process_left();
}

#[test]
fn a_command_that_hangs_is_ended_with_its_whole_tree() {
    let trial = Trial::new();
    let unmarked = trial.path("file");
    trial.run_shell("echo > file");
    let unmarked = format!("env -i setsid tail -f {} & wait", unmarked.display());
    let trees = [
        &unmarked,
        "exec sleep 1000",
        "sleep 1000 & sleep 1000",
        "(sleep 1000 & sleep 1000 & wait) & setsid sleep 1000 & wait",
        // Nothing of it is in the command's group, and its parents are gone.
        "setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 & exit' & wait; sleep 1000",
        // It ignores SIGTERM.
        "trap '' TERM INT HUP; while :; do sleep 1000; done",
        "yes",
        "yes >&2",
    ];
    for tree in trees {
        let ended = trial.compare(&["--timeout", "150ms", "--shell=sh", "--", tree]);
        ended.check_failure(&["took longer than its time-out of 0.15 s", "was killed"]);
        trial.check_no_process_left();
    }
}

#[test]
fn a_command_that_leaves_processes_behind_is_refused() {
    let trial = Trial::new();
    let ended = trial.compare(&["--shell=sh", "--", "setsid sleep 1000 & exit 0"]);
    ended.check_refused(&["left processes running", "sleep", "in the foreground"]);
    trial.check_no_process_left();
    // One that only takes a little longer belongs to the run.
    trial
        .compare(&["--shell=sh", "--", "sleep 0.05 & exit 0"])
        .check_success();
    trial.check_no_process_left();
}

/// The bounds are in `output.rs` of the machine.
#[test]
fn memory_stays_bounded_while_a_command_prints_much() {
    let trial = Trial::new();
    let note = "grep VmHWM /proc/$PPID/status >> peak";
    let print = format!("head -c 200M /dev/zero; head -c 200M /dev/zero >&2; {note}");
    trial.compare(&["--shell=sh", "--", &print]).check_success();
    assert_peaks_below(&trial, 64);

    let metric = "regex:took ([0-9]+) lower";
    let with_metric = format!("{print}; echo took 7");
    let ended = trial.compare(&["--metric", metric, "--shell=sh", "--", &with_metric]);
    ended.check_success();
    assert_eq!(
        trial.read_record()["arms"][0]["runs"][0]["metric"]["value"],
        7.0
    );
    assert_peaks_below(&trial, 160);

    let ended = trial.compare(&["--metric", metric, "--shell=sh", "--", &print]);
    ended.check_refused(&["matches nothing in the program's output", metric]);
    trial.check_no_process_left();
}

/// Checks the peak memory of pinwise, which the commands noted at their ends.
#[track_caller]
fn assert_peaks_below(trial: &Trial, mebibytes: u64) {
    let text = std::fs::read_to_string(trial.path("peak")).unwrap();
    std::fs::remove_file(trial.path("peak")).unwrap();
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kilobytes < mebibytes * 1024, "{line}");
    }
}

/// A command may change its own mask and run on any CPU; the record has what was requested.
#[test]
fn granted_cpus_are_recorded_of_a_command_that_moves_itself() {
    let Some([first, second]) = find_two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let place = format!("cpu:{first}");
    let line = format!("taskset -c -p {second} $$");
    let quiet = split_words("compare --quiet --placebo --max-runs 1 --shell=sh");
    let ended = trial.run(&[&quiet[..], &["--place", &place, "--", &line]].concat());
    ended.check_success();
    for run in super::trial::list_runs(&trial.read_record()) {
        assert_eq!(run["granted_cpus"], first.to_string());
    }
}
