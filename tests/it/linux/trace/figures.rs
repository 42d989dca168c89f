//! What a trace reports of a command is what the kernel counted for it, or is
//! called a lower bound.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::super::limited::Group;
use super::super::trial::list_allowed_cpus;
use super::{WITH_SWITCHES, available_tiers, find_setpriv_to_nobody, keep_available, run_trace};
use crate::support::{PATIENCE, Running, find_finding, report_skip, split_words, wait_until};

fn trace_command(tier: &str, command: &[&str]) -> Value {
    run_trace(tier, &[&["--"], command].concat())
}

fn to_seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn is_lower_bound(record: &Value, figure: &str) -> bool {
    let bounds = record["lower_bounds"].as_array();
    bounds.is_some_and(|bounds| bounds.contains(&json!(figure)))
}

/// Short-lived processes, each of which is one thread.
const STORM: &str = "i=0; while [ $i -lt 300 ]; do (:); i=$((i+1)); done";

#[test]
fn a_thread_is_reported_once() {
    for tier in available_tiers() {
        // A defect showed in two of three runs.
        for _ in 0..4 {
            let record = trace_command(tier, &["sh", "-c", STORM]);
            let threads = record["threads"].as_array().unwrap().iter();
            let ids: Vec<i64> = threads
                .map(|thread| thread["thread"].as_i64().unwrap())
                .collect();
            let distinct: BTreeSet<&i64> = ids.iter().collect();
            assert_eq!(
                distinct.len(),
                ids.len(),
                "{tier}: threads are reported twice"
            );
            if tier != "proc" && record["lost"]["records"] == 0 {
                assert_eq!(record["totals"]["threads"], 301, "{tier}");
            }
        }
    }
}

/// A script of forty processes that run at the same time and note how long the kernel says that
/// they were queued.
fn crowd_script(notes: &Path) -> String {
    let one = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read r w n < /proc/self/schedstat; echo $w >&9";
    format!(
        "exec 9>>{}; k=0; while [ $k -lt 40 ]; do ({one}) & k=$((k+1)); done; wait",
        notes.display()
    )
}

/// Queued time as the trace reported it, and as the processes noted it, seconds.
fn read_queued_times(record: &Value, notes: &Path) -> (f64, f64) {
    let text = std::fs::read_to_string(notes).unwrap();
    let noted = text.lines().map(|line| line.parse::<f64>().unwrap() * 1e-9);
    (to_seconds(&record["waits"]["total_s"]), noted.sum())
}

/// Whether this is root in the first namespaces, to which alone the kernel reports every thread that
/// ends.
fn has_exit_reports() -> bool {
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
    for tier in keep_available(&["switch", "cpu-wide"]) {
        let notes = folder.path().join(tier);
        let record = trace_command(tier, &["sh", "-c", &crowd_script(&notes)]);
        let (reported_s, true_s) = read_queued_times(&record, &notes);
        assert!(true_s > 0.01, "{true_s}");
        assert!(reported_s > 0.0, "{reported_s} of {true_s}");
        if !is_lower_bound(&record, "queued") {
            assert!(
                reported_s > 0.97 * true_s,
                "{tier}: {reported_s} of {true_s}"
            );
        }
    }
}

/// Without rights the kernel does not give the last figures of threads.
#[test]
fn without_rights_queued_time_is_a_lower_bound() {
    let Some(nobody) = find_setpriv_to_nobody() else {
        return;
    };
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let notes = folder.path().join("notes");
    let mut command = Command::new(nobody[0]);
    command
        .args(&nobody[1..])
        .arg(env!("CARGO_BIN_EXE_pinwise"));
    command.args(["trace", "--tier", "switch", "--no-cost", "--format", "json"]);
    command.args(["--", "sh", "-c", &crowd_script(&notes)]);
    command
        .env("PINWISE_STORE", "none")
        .env_remove("PINWISE_RUN");
    command.env("XDG_RUNTIME_DIR", folder.path());
    let output = command.output().unwrap();
    let (out, err) = crate::support::decode_output(&output);
    if err.contains("is not available here") || err.contains("Permission denied") {
        report_skip(err.trim());
        return;
    }
    assert!(output.status.success(), "{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let (reported_s, true_s) = read_queued_times(&record, &notes);
    assert!(
        is_lower_bound(&record, "queued") || reported_s > 0.97 * true_s,
        "{reported_s} of {true_s} is not called a lower bound"
    );
}

/// A script of two processes that wake each other up, and note at their end their thread and for
/// how many nanoseconds the kernel says that it ran.
fn ping_pong_script(folder: &Path) -> String {
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

/// Switches that did not reach the tracer once hid up to 6 % of the CPU time of threads that sleep
/// often.
#[test]
fn cpu_time_of_threads_that_ended_is_that_of_the_kernel() {
    if !has_exit_reports() {
        report_skip("the kernel does not report ends of threads to this user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for tier in keep_available(&WITH_SWITCHES) {
        let record = trace_command(tier, &["sh", "-c", &ping_pong_script(folder.path())]);
        let threads = record["threads"].as_array().unwrap();
        for side in ["one", "other"] {
            let note = std::fs::read_to_string(folder.path().join(side)).unwrap();
            let (thread, ran_ns) = note.trim().split_once(' ').unwrap();
            let thread: i64 = thread.parse().unwrap();
            let true_s = ran_ns.parse::<f64>().unwrap() * 1e-9;
            let mut threads = threads.iter();
            let traced = threads.find(|traced| traced["thread"] == thread).unwrap();
            let reported_s = to_seconds(&traced["cpu_s"]);
            // It ran a little longer than it noted, to its end.
            let expected_s = true_s - 1e-6..true_s + 0.05;
            assert!(
                expected_s.contains(&reported_s),
                "{tier}: {reported_s} of {true_s}"
            );
        }
    }
}

#[test]
fn polling_calls_figures_lower_bounds_unless_all_was_seen() {
    let record = trace_command("proc", &["sh", "-c", STORM]);
    let unseen = find_finding(&record, "unseen");
    let evidence = unseen.map(|finding| &finding["evidence"]);
    let unseen = unseen.unwrap_or_else(|| panic!("{}", record["totals"]));
    assert_eq!(unseen["severity"], "warning", "{evidence:?}");
    for figure in ["cpu_time", "switches", "threads", "migrations", "queued"] {
        assert!(is_lower_bound(&record, figure), "{figure}");
    }
    // One process that lives long is seen to its end, unless others delay the last look.
    let line = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let until = Instant::now() + PATIENCE;
    let record = loop {
        let record = trace_command("proc", &["sh", "-c", line]);
        if find_finding(&record, "unseen").is_none() {
            break record;
        }
        assert!(Instant::now() < until, "{}", record["findings"]);
    };
    assert!(!is_lower_bound(&record, "cpu_time"));
}

#[test]
fn a_quota_of_an_attached_process_is_reported() {
    let Some(group) = Group::limited_to(0.1, "attached") else {
        report_skip("it needs a cgroup with a quota of its own");
        return;
    };
    let busy = Running::start_shell(BUSY);
    let is_taken = group.take(&busy.0);
    let number = busy.id();
    let records: Vec<(&str, Value)> = if is_taken {
        let tiers = available_tiers().into_iter();
        let trace = |tier: &'static str| {
            let until = Instant::now() + PATIENCE;
            // A virtual machine that was stopped meanwhile has too few periods, and with lost
            // records the sums do not hold.
            loop {
                let record = run_trace(tier, &["--pid", &number, "--for", "1500ms"]);
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
        report_skip("the cgroup takes no process");
        Vec::new()
    };
    drop(busy);
    for (tier, record) in records {
        // Some kernels give perf no events of an idle task, some of the time; the trace must report
        // that.
        if !record["lost"]["idle_task_unseen"].is_null() {
            let reason = find_finding(&record, "idle_task_unseen").unwrap();
            report_skip(&format!("{tier}: {}", reason["sentence"]));
            continue;
        }
        let times = record["throttled"]["times"].as_u64().unwrap_or(0);
        assert!(times >= 5, "{tier}: {}", record["throttled"]);
        assert!(
            find_finding(&record, "throttled").is_some(),
            "{tier}: {}",
            record["findings"]
        );
        let Some(causes) = record["waits"]["because"].as_object() else {
            continue;
        };
        // There is one thread: it waited as long as the quota held it back.
        let held_s = to_seconds(&record["throttled"]["seconds"]);
        let waited_s = to_seconds(&record["waits"]["total_s"]);
        let expected_s = held_s.min(waited_s);
        let seen = format!(
            "{tier}: {causes:?} of {}, held back {}, lost {}",
            record["waits"], record["throttled"], record["lost"]
        );
        assert!(expected_s > 0.1, "{seen}");
        assert!(
            to_seconds(&causes["throttled_s"]) > 0.8 * expected_s,
            "{seen}"
        );
        // A wait that began on a CPU of which nothing was known has no cause.
        let explained_s: f64 = causes.values().map(to_seconds).sum();
        assert!(explained_s < waited_s + 1e-6, "{seen}");
    }
}

/// Periods so far in which the cgroup was held back, and for how long, seconds.
fn read_throttling(group: &Group) -> (u64, f64) {
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
        report_skip("it needs a cgroup with a quota of its own");
        return;
    };
    let procs = group.0.join("cgroup.procs");
    let own = format!("echo $$ > {} && while :; do :; done", procs.display());
    let child = format!("sh -c '{own}'; :");
    let scripts = [&own, &child];
    for (tier, script) in available_tiers()
        .into_iter()
        .flat_map(|tier| scripts.map(|script| (tier, script)))
    {
        let until = Instant::now() + PATIENCE;
        // A virtual machine that was stopped meanwhile has too few periods; on a busy one, the
        // process may end before its cgroup is known, and then nothing is reported.
        loop {
            let (times_before, before_s) = read_throttling(&group);
            let record = run_trace(tier, &["--for", "2s", "--", "sh", "-c", script]);
            let (times, held_s) = read_throttling(&group);
            let seen = format!("{tier}: {script}: {record}");
            let reported = &record["throttled"]["seconds"];
            if times - times_before >= 5 && !reported.is_null() {
                let reported_s = to_seconds(reported);
                let true_s = held_s - before_s;
                assert!(reported_s > 0.8 * true_s, "{true_s}, {seen}");
                assert!(reported_s < true_s + 1e-6, "{true_s}, {seen}");
                assert!(find_finding(&record, "throttled").is_some(), "{seen}");
                assert!(
                    find_finding(&record, "idle_while_waiting").is_none(),
                    "{seen}"
                );
                break;
            }
            assert!(Instant::now() < until, "{seen}");
        }
    }
}

/// The kernel holds these threads back, not other threads that run meanwhile.
#[test]
fn limits_of_a_class_are_not_blamed_on_others() {
    let deadline = split_words(
        "chrt -d --sched-runtime 10000000 --sched-deadline 100000000 --sched-period 100000000 0",
    );
    if !can_start(&deadline) {
        return report_skip("chrt -d is not permitted");
    }
    for tier in keep_available(&["bpf"]) {
        let command = ["sh", "-c", BUSY];
        let arguments = [&["--for", "1s", "--"], &deadline[..], &command].concat();
        let until = Instant::now() + PATIENCE;
        // If events were lost because of other programs, no cause is claimed.
        let record = loop {
            let record = run_trace(tier, &arguments);
            if record["waits"]["because"]["scheduling_class_s"].is_number() {
                break record;
            }
            assert!(Instant::now() < until, "{record}");
        };
        let held_s = read_cause_s(&record, "scheduling_class_s");
        assert!(held_s > 0.5, "{record}");
        assert!(sum_blame_on_others_s(&record) < 0.5 * held_s, "{record}");
        assert!(
            find_finding(&record, "scheduling_class").is_some(),
            "{record}"
        );
    }
}

/// Uses all the CPU time that it gets.
const BUSY: &str = "while :; do :; done";

/// Whether this command can start another one.
fn can_start(wrapper: &[&str]) -> bool {
    let mut command = Command::new(wrapper[0]);
    let output = command.args(&wrapper[1..]).arg("true").output();
    output.is_ok_and(|output| output.status.success())
}

/// The time that threads waited for this cause, seconds; 0 if it is unknown.
fn read_cause_s(record: &Value, cause: &str) -> f64 {
    record["waits"]["because"][cause].as_f64().unwrap_or(0.0)
}

fn sum_blame_on_others_s(record: &Value) -> f64 {
    let causes = ["scheduler_s", "mask_s", "other_processes_s"];
    causes.map(|cause| read_cause_s(record, cause)).iter().sum()
}

/// While a busy program of the usual class is ready, the kernel stops a real-time thread in each
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
        return report_skip("sched_rt_runtime_us limits no real-time thread here");
    }
    if !can_start(&["chrt", "-f", "1"]) {
        return report_skip("chrt -f is not permitted");
    }
    let cpu = list_allowed_cpus()[0].to_string();
    let usual = ["-c", &cpu, "sh", "-c", BUSY];
    let _competitor = Running::start(Command::new("taskset").args(usual));
    let line = format!("--for 2s -- taskset -c {cpu} chrt -f 1 sh -c");
    let arguments = [&split_words(&line)[..], &[BUSY]].concat();
    for tier in keep_available(&["bpf"]) {
        wait_until("a wait because of the scheduling class", || {
            let record = run_trace(tier, &arguments);
            let held_s = read_cause_s(&record, "scheduling_class_s");
            // Before it is a real-time thread, it waits like any other.
            held_s > 0.0 && sum_blame_on_others_s(&record) < held_s
        });
    }
}

/// Its first name in a trace is that of pinwise, from which it was forked.
#[test]
fn a_command_has_its_own_name_in_every_tier() {
    for tier in available_tiers() {
        let record = trace_command(tier, &["sleep", "0.3"]);
        assert_eq!(record["threads"][0]["name"], "sleep", "{tier}: {record}");
    }
}
