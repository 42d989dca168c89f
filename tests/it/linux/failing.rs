//! Commands that cannot be measured: one clear line, exit status 2, and
//! nothing left behind.

use super::trial::{Trial, finish, two_cpus};
use crate::support::words;

#[test]
fn programs_that_cannot_be_started() {
    let trial = Trial::new();
    trial.shell("echo text > plain; echo text > marked; chmod +x marked; mkdir folder");
    trial.shell("printf '#!/no/such/interpreter\\n' > orphan; chmod +x orphan");
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
        trial.compare(&["--", program]).is_refused(words);
        let status = if words[0].contains("no such") {
            127
        } else {
            126
        };
        trial.run(&["run", program]).ends_with(status, words);
        trial
            .run(&["compare", "--self", "--", program])
            .is_refused(words);
        trial.run(&["compare", "--", program]).is_refused(words);
    }
    let line = "ls -l";
    let ended = trial.compare(&["--", line]);
    ended.is_refused(&["ls -l: no such program", "space"]);
    // A folder of PATH that may not be searched is skipped; a file that is not executable is
    // reported only if no other is found.
    trial.shell("mkdir -p folder/plain other; echo > other/tool; chmod 644 other/tool");
    let search = |program: &str| {
        let mut command = trial.pinwise(&["run", "--", program]);
        let path = "/proc/1/root/no:file/below:folder:other:/usr/bin:/bin";
        finish(command.env("PATH", path).spawn().unwrap())
    };
    search("true").succeeded();
    search("tool").ends_with(126, &["tool: cannot be executed", "chmod +x"]);
    search("no-such-program").ends_with(127, &["no such program"]);
    trial.leaves_no_process();
    assert_eq!(
        trial.files(),
        ["folder", "marked", "orphan", "other", "plain"]
    );
}

#[test]
fn a_command_that_always_fails() {
    let trial = Trial::new();
    let line = "echo said on stdout; echo first >&2; echo second >&2; exit 3";
    let ended = trial.compare(&["--shell=sh", "--", line]);
    ended.fails_with(&["exit status 3", "--ignore-failure", "\nfirst\nsecond\n"]);
    let counted = trial.run(&["compare", "--quiet", "--shell=sh", "--", line]);
    counted.fails_with(&["exit status 3", "\nfirst\nsecond\n"]);
    let silent = trial.compare(&["--", "false"]);
    silent.is_refused(&["'false' failed with exit status 1"]);
    trial
        .compare(&["--ignore-failure", "--", "false"])
        .succeeded();
    // If nothing was measured, no record is kept.
    let history = trial.run(&["record", "history"]).out;
    assert!(!history.contains("No arm could be measured"), "{history}");
    assert_eq!(history.matches("false").count(), 1, "{history}");
    trial.leaves_no_process();
    assert_eq!(trial.files(), [""; 0]);
}

#[test]
fn a_command_that_sometimes_fails() {
    let trial = Trial::new();
    let line = "echo >> count; [ $(wc -l < count) -ne 5 ] || { echo the fifth >&2; exit 9; }";
    let ended = trial.compare(&["--max-runs", "9", "--shell=sh", "--", line]);
    ended.fails_with(&["exit status 9", "\nthe fifth\n"]);
    assert_eq!(
        trial.lines("count"),
        6,
        "the block is finished, no other is begun"
    );
    let record = trial.stored();
    assert_eq!(record["stopped"], "failed");
    let invalid = record["arms"].as_array().unwrap().iter();
    assert_eq!(invalid.filter(|arm| !arm["invalid"].is_null()).count(), 1);
}

/// The others go on without it; the exit status still says that one failed.
#[test]
fn an_arm_that_fails_does_not_stop_the_others() {
    let trial = Trial::new();
    let good = words("compare --quiet --max-runs 2 --command true --command true");
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
fn a_command_that_kills_itself() {
    let trial = Trial::new();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("INT", 2)] {
        let line = format!("kill -{name} $$");
        let message = format!("killed by signal {number}");
        for accept in [&[][..], &["--ignore-failure"]] {
            let arguments = [accept, &["--shell=sh", "--", &line]].concat();
            trial.compare(&arguments).is_refused(&[&message]);
        }
    }
    // A stopped command is neither ended nor forgotten.
    let stopped = trial.compare(&["--timeout", "200ms", "--shell=sh", "--", "kill -STOP $$"]);
    stopped.is_refused(&["took longer than its time-out of 0.2 s"]);
    trial.leaves_no_process();
}

#[test]
fn a_command_that_hangs_is_ended_with_its_whole_tree() {
    let trial = Trial::new();
    let unmarked = trial.path("file");
    trial.shell("echo > file");
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
        ended.fails_with(&["took longer than its time-out of 0.15 s", "was killed"]);
        trial.leaves_no_process();
    }
}

#[test]
fn a_command_that_leaves_processes_behind() {
    let trial = Trial::new();
    let ended = trial.compare(&["--shell=sh", "--", "setsid sleep 1000 & exit 0"]);
    ended.is_refused(&["left processes running", "sleep", "in the foreground"]);
    trial.leaves_no_process();
    // One that only takes a little longer belongs to the run.
    trial
        .compare(&["--shell=sh", "--", "sleep 0.05 & exit 0"])
        .succeeded();
    trial.leaves_no_process();
}

/// Memory stays what the bounds of `output.rs` say, whatever is printed.
#[test]
fn a_command_that_prints_gigabytes() {
    let trial = Trial::new();
    let note = "grep VmHWM /proc/$PPID/status >> peak";
    let both = format!("head -c 200M /dev/zero; head -c 200M /dev/zero >&2; {note}");
    trial.compare(&["--shell=sh", "--", &both]).succeeded();
    assert_peaks_below(&trial, 64);

    let metric = "regex:took ([0-9]+) lower";
    let kept = format!("{both}; echo took 7");
    let ended = trial.compare(&["--metric", metric, "--shell=sh", "--", &kept]);
    ended.succeeded();
    assert_eq!(trial.stored()["arms"][0]["runs"][0]["metric"]["value"], 7.0);
    assert_peaks_below(&trial, 160);

    let ended = trial.compare(&["--metric", metric, "--shell=sh", "--", &both]);
    ended.is_refused(&["matches nothing in the program's output", metric]);
    trial.leaves_no_process();
}

/// What the commands saw of pinwise, their parent, at their ends.
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

/// A command that changes its own mask runs on any CPU it likes: the record says what was granted,
/// which is what was requested.
#[test]
fn a_command_that_moves_itself() {
    let Some([first, second]) = two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let place = format!("cpu:{first}");
    let line = format!("taskset -c -p {second} $$");
    let quiet = words("compare --quiet --placebo --max-runs 1 --shell=sh");
    let ended = trial.run(&[&quiet[..], &["--place", &place, "--", &line]].concat());
    ended.succeeded();
    for run in super::trial::runs_of(&trial.stored()) {
        assert_eq!(run["granted_cpus"], first.to_string());
    }
}
