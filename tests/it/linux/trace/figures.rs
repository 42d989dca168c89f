//! What a trace reports of a command is what the kernel counted for it, or is
//! called a lower bound.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::super::limited::Group;
use super::super::trial::allowed_cpus;
use super::{WITH_SWITCHES, as_nobody, permitted};
use crate::support::{PATIENCE, Running, json as record_of, skipped};

fn all_tiers() -> Vec<&'static str> {
    permitted(&[&["proc"][..], &WITH_SWITCHES].concat())
}

fn trace(tier: &str, command: &[&str]) -> Value {
    let arguments = [
        "trace",
        "--tier",
        tier,
        "--no-cost",
        "--format",
        "json",
        "--",
    ];
    record_of(&[&arguments[..], command].concat())
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn is_bound(record: &Value, figure: &str) -> bool {
    let bounds = record["lower_bounds"].as_array();
    bounds.is_some_and(|bounds| bounds.contains(&json!(figure)))
}

fn finding<'a>(record: &'a Value, check: &str) -> Option<&'a Value> {
    let findings = record["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["check"] == check)
}

/// Short-lived processes, each of which is one thread.
const STORM: &str = "i=0; while [ $i -lt 300 ]; do (:); i=$((i+1)); done";

#[test]
fn a_thread_is_reported_once() {
    for tier in all_tiers() {
        // Two of three runs reported some twice.
        for _ in 0..4 {
            let record = trace(tier, &["sh", "-c", STORM]);
            let threads = record["threads"].as_array().unwrap();
            let mut numbers: Vec<i64> = threads
                .iter()
                .map(|thread| thread["thread"].as_i64().unwrap())
                .collect();
            let many = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), many, "{tier}: threads are reported twice");
            if tier != "proc" && record["lost"]["records"] == 0 {
                assert_eq!(record["totals"]["threads"], 301, "{tier}");
            }
        }
    }
}

/// Forty processes that each use some CPU time on the same CPU, and note how
/// long the kernel says that they were queued.
fn crowd(notes: &Path) -> String {
    let one = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read r w n < /proc/self/schedstat; echo $w >&9";
    format!(
        "exec 9>>{}; k=0; while [ $k -lt 40 ]; do ({one}) & k=$((k+1)); done; wait",
        notes.display()
    )
}

/// Queued time as the trace reported it, and as the processes did.
fn queued_times(record: &Value, notes: &Path) -> (f64, f64) {
    let text = std::fs::read_to_string(notes).unwrap();
    let reported = text.lines().map(|line| line.parse::<f64>().unwrap() * 1e-9);
    (seconds(&record["waits"]["total_s"]), reported.sum())
}

/// Root in the first namespaces, to whom the kernel reports every thread that ends.
fn learns_of_exits() -> bool {
    let is_first = |name: &str, inode: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        link.to_string_lossy().contains(inode)
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t0"));
    is_root && is_first("pid", "4026531836") && is_first("user", "4026531837")
}

#[test]
fn queued_time_of_threads_that_ended_is_known_or_a_lower_bound() {
    let folder = tempfile::tempdir().unwrap();
    for tier in permitted(&["switch", "cpu-wide"]) {
        let notes = folder.path().join(tier);
        let record = trace(tier, &["sh", "-c", &crowd(&notes)]);
        let (reported_s, true_s) = queued_times(&record, &notes);
        assert!(true_s > 0.01, "{true_s}");
        assert!(reported_s > 0.0, "{reported_s} of {true_s}");
        if !is_bound(&record, "queued") {
            assert!(
                reported_s > 0.97 * true_s,
                "{tier}: {reported_s} of {true_s}"
            );
        }
    }
}

/// Who may not ask the kernel for the last figures of threads says so.
#[test]
fn without_rights_queued_time_is_a_lower_bound() {
    let Some(nobody) = as_nobody() else { return };
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let notes = folder.path().join("notes");
    let mut command = Command::new(&nobody[0]);
    command
        .args(&nobody[1..])
        .arg(env!("CARGO_BIN_EXE_pinwise"));
    command.args(["trace", "--tier", "switch", "--no-cost", "--format", "json"]);
    command.args(["--", "sh", "-c", &crowd(&notes)]);
    command
        .env("PINWISE_STORE", "none")
        .env_remove("PINWISE_RUN");
    command.env("XDG_RUNTIME_DIR", folder.path());
    let output = command.output().unwrap();
    let (out, err) = crate::support::texts(&output);
    if err.contains("is not available here") || err.contains("Permission denied") {
        skipped(err.trim());
        return;
    }
    assert!(output.status.success(), "{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let (reported_s, true_s) = queued_times(&record, &notes);
    assert!(
        is_bound(&record, "queued") || reported_s > 0.97 * true_s,
        "{reported_s} of {true_s} is not called a lower bound"
    );
}

/// Two processes that wake each other up, and note at their end who they are and how
/// long the kernel says that they ran.
fn ping_pong(folder: &Path) -> String {
    let end = "read -r pid rest < /proc/self/stat; read -r r w n < /proc/self/schedstat";
    let side = |name: &str, first: &str, then: &str| {
        format!(
            "(i=0; while [ $i -lt 4000 ]; do {first}; {then}; i=$((i+1)); done; {end}; echo $pid $r > {name})"
        )
    };
    let one = side("one", "echo x >&3", "read -r x <&4");
    let other = side("other", "read -r x <&3", "echo x >&4");
    format!(
        "cd {}; rm -f there back; mkfifo there back; exec 3<>there 4<>back; {one} & {other} & wait",
        folder.display()
    )
}

/// Switches that do not reach the tracer took up to 6 % of the CPU time of threads
/// that sleep often.
#[test]
fn cpu_time_of_threads_that_ended_is_that_of_the_kernel() {
    if !learns_of_exits() {
        skipped("the kernel does not report ends of threads to this user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for tier in permitted(&WITH_SWITCHES) {
        let record = trace(tier, &["sh", "-c", &ping_pong(folder.path())]);
        let threads = record["threads"].as_array().unwrap();
        for side in ["one", "other"] {
            let note = std::fs::read_to_string(folder.path().join(side)).unwrap();
            let (thread, ran_ns) = note.trim().split_once(' ').unwrap();
            let thread: i64 = thread.parse().unwrap();
            let true_s = ran_ns.parse::<f64>().unwrap() * 1e-9;
            let of_thread = threads.iter().find(|of| of["thread"] == thread).unwrap();
            let reported_s = seconds(&of_thread["cpu_s"]);
            // It ran a little longer, to its end.
            let wanted_s = true_s - 1e-6..true_s + 0.05;
            assert!(
                wanted_s.contains(&reported_s),
                "{tier}: {reported_s} of {true_s}"
            );
        }
    }
}

#[test]
fn polling_agrees_with_the_kernels_counts() {
    let record = trace("proc", &["sh", "-c", STORM]);
    let unseen = finding(&record, "unseen");
    let evidence = unseen.map(|finding| &finding["evidence"]);
    let unseen = unseen.unwrap_or_else(|| panic!("{}", record["totals"]));
    assert_eq!(unseen["severity"], "warning", "{evidence:?}");
    for figure in ["cpu_time", "switches", "threads", "migrations", "queued"] {
        assert!(is_bound(&record, figure), "{figure}");
    }
    // One process that lives long is seen whole, unless others take the time of the
    // last look.
    let line = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let until = Instant::now() + PATIENCE;
    let record = loop {
        let record = trace("proc", &["sh", "-c", line]);
        if finding(&record, "unseen").is_none() {
            break record;
        }
        assert!(Instant::now() < until, "{}", record["findings"]);
    };
    assert!(!is_bound(&record, "cpu_time"));
}

#[test]
fn a_quota_of_an_attached_process_is_reported() {
    let Some(group) = Group::limited_to(0.1, "attached") else {
        skipped("it needs a cgroup with a quota of its own");
        return;
    };
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let is_taken = group.take(&busy);
    let number = busy.id().to_string();
    let records: Vec<(&str, Value)> = if is_taken {
        let tiers = all_tiers().into_iter();
        let trace = |tier: &'static str| {
            let arguments = ["trace", "--tier", tier, "--no-cost", "--format", "json"];
            let whom = ["--pid", &number, "--for", "1500ms"];
            let until = Instant::now() + PATIENCE;
            // A machine that is stopped meanwhile has no periods to count, and if records were lost
            // no sums hold.
            loop {
                let record = record_of(&[&arguments[..], &whom].concat());
                let is_held_back = record["throttled"]["times"].as_u64() >= Some(5);
                let lost = &record["lost"];
                let is_whole = lost["records"].as_u64() == Some(0);
                let is_seen = lost["idle_task_unseen"].is_null();
                if (is_held_back && is_whole) || !is_seen || Instant::now() > until {
                    return (tier, record);
                }
            }
        };
        tiers.map(trace).collect()
    } else {
        skipped("the cgroup takes no process");
        Vec::new()
    };
    busy.kill().unwrap();
    busy.wait().unwrap();
    for (tier, record) in records {
        // Some kernels give perf no events of an idle task, for an unknown time; the trace must say
        // so.
        if !record["lost"]["idle_task_unseen"].is_null() {
            let reason = finding(&record, "idle_task_unseen").unwrap();
            skipped(&format!("{tier}: {}", reason["sentence"]));
            continue;
        }
        let times = record["throttled"]["times"].as_u64().unwrap_or(0);
        assert!(times >= 5, "{tier}: {}", record["throttled"]);
        assert!(
            finding(&record, "throttled").is_some(),
            "{tier}: {}",
            record["findings"]
        );
        let Some(because) = record["waits"]["because"].as_object() else {
            continue;
        };
        let of = |cause: &str| because[cause].as_f64().unwrap();
        // There is one thread: it waited as long as the quota held the CPU back.
        let held_s = seconds(&record["throttled"]["seconds"]);
        let waited_s = seconds(&record["waits"]["total_s"]);
        let expected_s = held_s.min(waited_s);
        let seen = format!(
            "{tier}: {because:?} of {}, held back {}, lost {}",
            record["waits"], record["throttled"], record["lost"]
        );
        assert!(expected_s > 0.1, "{seen}");
        assert!(of("throttled_s") > 0.8 * expected_s, "{seen}");
        // A wait that began on a CPU of which nothing was known has no cause.
        let causes: f64 = because.keys().map(|cause| of(cause)).sum();
        assert!(causes < waited_s + 1e-6, "{seen}");
    }
}

/// Periods in which the cgroup was held back so far, and for how long, seconds.
fn throttling_so_far(group: &Group) -> (u64, f64) {
    let text = std::fs::read_to_string(group.0.join("cpu.stat")).unwrap();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    let of_v2 = number("throttled_usec ").map(|us| us as f64 * 1e-6);
    let held_s = of_v2.or_else(|| number("throttled_time ").map(|ns| ns as f64 * 1e-9));
    (number("nr_throttled ").unwrap(), held_s.unwrap())
}

/// A shell, `systemd-run` and container starters put a child into a cgroup.
#[test]
fn a_quota_that_a_command_or_its_child_enters_is_reported() {
    let Some(group) = Group::limited_to(0.1, "entered") else {
        skipped("it needs a cgroup with a quota of its own");
        return;
    };
    let procs = group.0.join("cgroup.procs");
    let own = format!("echo $$ > {} && while :; do :; done", procs.display());
    let child = format!("sh -c '{own}'; :");
    let scripts = [&own, &child];
    for (tier, script) in all_tiers()
        .into_iter()
        .flat_map(|tier| scripts.map(|script| (tier, script)))
    {
        let arguments = ["trace", "--tier", tier, "--no-cost", "--format", "json"];
        let whom = ["--for", "2s", "--", "sh", "-c", script];
        let until = Instant::now() + PATIENCE;
        // A machine that is stopped meanwhile has no periods to count; beside others, a process may
        // end before its cgroup is known, and then nothing is reported.
        loop {
            let (times_before, before_s) = throttling_so_far(&group);
            let record = record_of(&[&arguments[..], &whom].concat());
            let (times, held_s) = throttling_so_far(&group);
            let seen = format!("{tier}: {script}: {record}");
            let reported = &record["throttled"]["seconds"];
            if times - times_before >= 5 && !reported.is_null() {
                let reported_s = seconds(reported);
                let true_s = held_s - before_s;
                assert!(reported_s > 0.8 * true_s, "{true_s}, {seen}");
                assert!(reported_s < true_s + 1e-6, "{true_s}, {seen}");
                assert!(finding(&record, "throttled").is_some(), "{seen}");
                assert!(finding(&record, "idle_while_waiting").is_none(), "{seen}");
                break;
            }
            assert!(Instant::now() < until, "{seen}");
        }
    }
}

/// The kernel holds these threads back, not the others that run meanwhile.
#[test]
fn limits_of_a_class_are_not_blamed_on_others() {
    let line = "while :; do :; done";
    let deadline = [
        "chrt",
        "-d",
        "--sched-runtime",
        "10000000",
        "--sched-deadline",
        "100000000",
        "--sched-period",
        "100000000",
        "0",
        "sh",
        "-c",
        line,
    ];
    let is_permitted = Command::new("chrt")
        .args(&deadline[1..9])
        .arg("true")
        .output();
    if !is_permitted.is_ok_and(|output| output.status.success()) {
        return skipped("chrt -d is not permitted");
    }
    for tier in permitted(&["bpf"]) {
        let arguments = ["trace", "--tier", tier, "--no-cost", "--format", "json"];
        let whom = [&["--for", "1s", "--"][..], &deadline].concat();
        let until = Instant::now() + PATIENCE;
        // If events were lost because of other programs, no cause is claimed.
        let record = loop {
            let record = record_of(&[&arguments[..], &whom].concat());
            if record["waits"]["because"]["scheduling_class_s"].is_number() {
                break record;
            }
            assert!(Instant::now() < until, "{record}");
        };
        let because = &record["waits"]["because"];
        let of = |cause: &str| seconds(&because[cause]);
        assert!(of("scheduling_class_s") > 0.5, "{record}");
        let blamed_s = of("scheduler_s") + of("mask_s") + of("other_processes_s");
        assert!(blamed_s < 0.5 * of("scheduling_class_s"), "{record}");
        assert!(finding(&record, "scheduling_class").is_some(), "{record}");
    }
}

/// Beside a busy program of the usual class the kernel stops a real-time thread in each
/// period.
#[test]
fn the_limit_of_real_time_threads_is_not_blamed_on_others() {
    let limit = |name: &str| {
        let path = format!("/proc/sys/kernel/sched_rt_{name}_us");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().parse::<i64>().unwrap_or(-1)
    };
    let (budget, period) = (limit("runtime"), limit("period"));
    if budget < 0 || budget >= period {
        return skipped("sched_rt_runtime_us limits no real-time thread here");
    }
    let is_permitted = Command::new("chrt").args(["-f", "1", "true"]).output();
    if !is_permitted.is_ok_and(|output| output.status.success()) {
        return skipped("chrt -f is not permitted");
    }
    let cpu = allowed_cpus()[0].to_string();
    let line = "while :; do :; done";
    let usual = ["-c", &cpu, "sh", "-c", line];
    let _beside = Running::start(Command::new("taskset").args(usual));
    for tier in permitted(&["bpf"]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let arguments = ["trace", "--tier", tier, "--no-cost", "--format", "json"];
            let real_time = [
                "--for", "2s", "--", "taskset", "-c", &cpu, "chrt", "-f", "1",
            ];
            let whom = [&real_time[..], &["sh", "-c", line]].concat();
            let record = record_of(&[&arguments[..], &whom].concat());
            let because = &record["waits"]["because"];
            let of = |cause: &str| because[cause].as_f64().unwrap_or(0.0);
            let blamed_s = of("scheduler_s") + of("mask_s") + of("other_processes_s");
            // Before it is a real-time thread, it waits like any other.
            if of("scheduling_class_s") > 0.0 && blamed_s < of("scheduling_class_s") {
                break;
            }
            assert!(Instant::now() < until, "{record}");
        }
    }
}

/// It is first seen as a copy of pinwise.
#[test]
fn a_command_has_its_own_name_in_every_tier() {
    for tier in all_tiers() {
        let record = trace(tier, &["sleep", "0.3"]);
        assert_eq!(record["threads"][0]["name"], "sleep", "{tier}: {record}");
    }
}
