//! Imports of traces that perf and ftrace recorded (`tests/data/traces`): the numbers of events are
//! those that `perf script` and `grep` count, and damaged files are reported in one line.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use pinwise_sched::import::{Facts, Import, ImportError, Imported, TraceSubject};
use pinwise_sched::{Event, EventKind, LeaveReason, Tid};

use crate::support::{
    decode_output, has_program, pinwise, read_recorded_trace, report_skip, run, split_words,
};

struct Trace {
    facts: Facts,
    events: Vec<Event>,
    imported: Imported,
}

fn import_trace(content: &[u8], subject: TraceSubject) -> Result<Trace, ImportError> {
    let import = Import::open(Cursor::new(content))?;
    let facts = import.facts().clone();
    let mut events = Vec::new();
    let imported = import.read(subject, &mut |batch| events.extend_from_slice(batch))?;
    Ok(Trace {
        facts,
        events,
        imported,
    })
}

impl Trace {
    fn count(&self, is_counted: impl Fn(&EventKind) -> bool) -> usize {
        let events = self.events.iter();
        events.filter(|event| is_counted(&event.what)).count()
    }

    /// Switches, also those of which only the thread that leaves is recorded.
    fn count_switches(&self) -> usize {
        self.count(|what| matches!(what, EventKind::Switch { .. } | EventKind::Out { .. }))
    }

    /// Switches away from threads that are called `sched-pipe` at that moment.
    fn count_switches_of_pipe(&self) -> usize {
        let mut names: BTreeMap<Tid, Box<str>> = BTreeMap::new();
        let mut count = 0;
        for event in &self.events {
            match &event.what {
                EventKind::Name { thread, name } => drop(names.insert(*thread, name.clone())),
                EventKind::Switch { prev: thread, .. } | EventKind::Out { thread, .. } => {
                    let name = names.get(thread);
                    count += usize::from(name.is_some_and(|name| &**name == "sched-pipe"));
                }
                _ => {}
            }
        }
        count
    }

    fn count_wakes(&self) -> usize {
        self.count(|what| matches!(what, EventKind::Wake { .. }))
    }

    #[track_caller]
    fn check_order(&self) {
        let is_sorted = self.events.is_sorted_by_key(|event| event.time_ns);
        assert!(is_sorted, "events are in the order of time");
        let begin = self.events.first().unwrap().time_ns;
        let end = self.events.last().unwrap().time_ns;
        assert!(begin > 0 && end - begin < 60_000_000_000, "{begin} {end}");
    }
}

/// The numbers are those that `perf script` and `grep` count: all switches, those of the two
/// threads of `perf bench sched pipe`, wake-ups. In `wide.data` three switches, and in `own.data`
/// two, have no record of the thread that leaves: the import completes them.
#[test]
fn everything_in_a_trace_is_read() {
    // (file, switches, those of sched-pipe, wake-ups, all CPUs)
    for (name, switches, of_pipe, wakes, has_all_cpus) in [
        ("sched.data", 270, 202, 168, true),
        ("all.data", 308, 201, 161, true),
        ("pipe.data", 281, 201, 223, true),
        ("task.data", 203, 200, 0, false),
        ("wide.data", 649, 203, 0, true),
        ("own.data", 206, 204, 0, false),
        ("plain.txt", 205, 123, 146, true),
        ("tgid.txt", 205, 123, 146, true),
        ("latency.txt", 205, 123, 146, true),
    ] {
        let trace = import_trace(&read_recorded_trace(name), TraceSubject::Default)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        trace.check_order();
        let found = (
            trace.count_switches(),
            trace.count_switches_of_pipe(),
            trace.count_wakes(),
        );
        assert_eq!(found, (switches, of_pipe, wakes), "{name}");
        let scope = trace.facts.scope;
        assert!(scope.has_switches, "{name}");
        assert_eq!(scope.has_all_cpus, has_all_cpus, "{name}");
        assert_eq!(scope.has_wakeups, wakes > 0, "{name}");
        let is_perf = name.ends_with(".data");
        assert_eq!(
            trace.facts.format,
            if is_perf { "perf.data" } else { "ftrace" }
        );
        assert_eq!(trace.facts.has_command, is_perf, "{name}");
        assert_eq!(trace.imported.root.is_some(), is_perf, "{name}");
        if is_perf {
            assert_eq!(trace.facts.cpus, Some((2, 2)), "{name}");
            assert_eq!(trace.facts.host.as_deref(), Some("vm"), "{name}");
        }
    }
}

/// The latency format gives times from its first event, in µs.
#[test]
fn all_layouts_of_ftrace_give_the_same_switches() {
    let [plain, tgid, latency] = ["plain.txt", "tgid.txt", "latency.txt"].map(|name| {
        let trace = import_trace(&read_recorded_trace(name), TraceSubject::Default).unwrap();
        let switches = trace.events.into_iter();
        let switches = switches.filter(|event| matches!(event.what, EventKind::Switch { .. }));
        switches.collect::<Vec<Event>>()
    });
    assert_eq!(plain, tgid);
    for (one, other) in plain.iter().zip(&latency) {
        assert_eq!((one.cpu, &one.what), (other.cpu, &other.what));
        let shift = plain[0].time_ns - latency[0].time_ns;
        assert!(one.time_ns.abs_diff(other.time_ns + shift) <= 1000);
    }
}

/// The kernel that recorded these traces left out a few switches from its own threads. If half of a
/// switch is recorded, as in `wide.data`, the import completes it.
#[test]
fn a_thread_that_leaves_a_cpu_came_to_it_before() {
    for (name, missing) in [
        ("sched.data", 0),
        ("all.data", 0),
        ("pipe.data", 1),
        ("wide.data", 0),
        ("plain.txt", 0),
    ] {
        let trace = import_trace(&read_recorded_trace(name), TraceSubject::Default).unwrap();
        let mut running: BTreeMap<u32, Tid> = BTreeMap::new();
        let mut broken = 0;
        for event in &trace.events {
            if let EventKind::Switch { prev, next, .. } = event.what {
                let before = running.insert(event.cpu, next);
                broken += usize::from(before.is_some_and(|before| before != prev));
            }
        }
        assert_eq!(broken, missing, "{name}");
    }
}

#[test]
fn exits_are_reported_once_after_the_last_switch() {
    for name in ["sched.data", "wide.data", "own.data", "plain.txt"] {
        let trace = import_trace(&read_recorded_trace(name), TraceSubject::Default).unwrap();
        let mut gone: Vec<Tid> = Vec::new();
        let mut ended = 0;
        for event in &trace.events {
            match event.what {
                EventKind::Exit { thread } => gone.push(thread),
                EventKind::Fork { child, .. } => gone.retain(|thread| *thread != child),
                EventKind::Switch { prev, left, .. } => {
                    assert!(!gone.contains(&prev), "{name}: {event:?}");
                    ended += usize::from(left == LeaveReason::Ended);
                }
                EventKind::Out { left, .. } => ended += usize::from(left == LeaveReason::Ended),
                _ => {}
            }
        }
        let count = gone.len();
        gone.sort_unstable();
        gone.dedup();
        assert_eq!(gone.len(), count, "{name}");
        assert!(ended > 0, "{name}");
    }
}

#[test]
fn a_requested_process_is_followed() {
    let content = read_recorded_trace("tgid.txt");
    let first = import_trace(&content, TraceSubject::Default).unwrap();
    let process = first.events.iter().find_map(|event| match event.what {
        EventKind::Fork { child, .. } => Some(child),
        _ => None,
    });
    let read_again = import_trace(&content, TraceSubject::Process(process.unwrap())).unwrap();
    assert_eq!(read_again.imported.root, process);
    assert!(read_again.count(|what| matches!(what, EventKind::Follow { .. })) >= 1);
    let error = import_trace(&content, TraceSubject::Process(4))
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "process 4 is not in it");
}

#[test]
fn files_that_cannot_be_used_are_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let own = read_recorded_trace("own.data");
    let sched = read_recorded_trace("sched.data");
    let change = |from: &[u8], to: &[u8]| {
        let at = sched
            .windows(from.len())
            .position(|part| part == from)
            .unwrap();
        let mut content = sched.clone();
        content[at..at + to.len()].copy_from_slice(to);
        content
    };
    for (name, content, part) in [
        ("short", own[..90].to_vec(), "byte 90: the file ends here"),
        (
            "cut",
            sched[..60_000].to_vec(),
            "byte 60000: the file ends before the descriptions",
        ),
        (
            "field",
            change(b" prev_pid;", b" prev_pod;"),
            "sched:sched_switch in the file has no field 'prev_pid'",
        ),
        (
            "moved",
            change(b"next_pid;\toffset:56", b"next_pid;\toffset:xx"),
            "'next_pid' without offset:",
        ),
        (
            "nocpu",
            read_recorded_trace("nocpu.data"),
            "perf record --sample-cpu",
        ),
        (
            "clock",
            read_recorded_trace("clock.data"),
            "it has no switches of threads; record them",
        ),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        check_refused(&path, &[], part);
    }
}

#[test]
fn a_full_disk_under_an_export_is_reported() {
    if !Path::new("/dev/full").exists() {
        return report_skip("no /dev/full here");
    }
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good");
    std::fs::write(&good, read_recorded_trace("own.data")).unwrap();
    let full = ["--export", "csv:/dev/full"];
    check_refused(&good, &full, "--export /dev/full: No space");
}

#[track_caller]
fn check_refused(path: &Path, options: &[&str], part: &str) {
    let path = path.to_str().unwrap();
    let output = run(&[&["trace", "import", path], options].concat());
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{path}: {err}");
    assert!(err.contains(part), "{path} {options:?}: {err}");
    let errors = err.lines().filter(|line| line.starts_with("error:"));
    assert_eq!(errors.count(), 1, "{err}");
}

/// The switches before the end are imported, or one line says why not.
#[test]
fn files_may_end_anywhere() {
    for name in ["own.data", "wide.data", "pipe.data", "plain.txt"] {
        let content = read_recorded_trace(name);
        let all = import_trace(&content, TraceSubject::Default)
            .unwrap()
            .count_switches();
        let mut imported = 0;
        for end in (0..content.len()).step_by(997) {
            match import_trace(&content[..end], TraceSubject::Default) {
                Ok(trace) => {
                    assert!(trace.count_switches() <= all, "{name} {end}");
                    imported += 1;
                }
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            }
        }
        assert!(imported > 5, "{name}: {imported}");
    }
}

/// The analysis counts events that go backwards: the import keeps their times.
#[test]
fn a_reused_id_is_another_thread_and_backward_times_are_kept() {
    let line =
        |time: &str, rest: &str| format!("            bash-317     [001] d..2. {time}: {rest}\n");
    let fork = "sched_process_fork: comm=a pid=1 child_comm=b child_pid=9";
    let text = [
        line("5.0", fork),
        line("6.0", "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=9 next_prio=120"),
        line("4.0", fork),
    ]
    .concat();
    let trace = import_trace(text.as_bytes(), TraceSubject::Default).unwrap();
    let times: Vec<u64> = trace
        .events
        .iter()
        .map(|e| e.time_ns / 1_000_000_000)
        .collect();
    assert_eq!(times.last(), Some(&4));
    assert_eq!(
        trace.count(|what| *what == EventKind::Exit { thread: 9 }),
        1
    );
    assert_eq!(
        trace.count(|what| matches!(what, EventKind::Fork { .. })),
        2
    );
}

/// Both exports of a real trace contain every event.
#[test]
fn imported_traces_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("t.data"), read_recorded_trace("sched.data")).unwrap();
    let (csv, perfetto) = (at("t.csv"), at("t.pftrace"));
    let output = pinwise(&at("store.db"))
        .args(["trace", "import", "--format", "json"])
        .arg(at("t.data"))
        .args(["--export", &format!("csv:{}", csv.display())])
        .args(["--export", &format!("perfetto:{}", perfetto.display())])
        .output()
        .unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    let record: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["schema"], "pinwise.trace/1");
    assert_eq!(record["tier"], "perf.data");
    assert_eq!(record["source"]["kind"], "import");
    let events = import_trace(&read_recorded_trace("sched.data"), TraceSubject::Default)
        .unwrap()
        .events;
    let lines = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), events.len() + 1);
    let switches = lines
        .lines()
        .filter(|line| line.split(',').nth(2) == Some("switch"));
    assert_eq!(switches.count(), 270);
    assert!(std::fs::metadata(&perfetto).unwrap().len() > 10_000);
    // The record is stored, and its slices are exported as CSV.
    let id = record["id"].as_str().unwrap();
    let output = pinwise(&at("store.db"))
        .args(["record", "show", id, "--format", "csv"])
        .output()
        .unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    let slices = record["timeline"]["packed"]["count"].as_u64().unwrap();
    assert_eq!(out.lines().count() as u64, slices + 1);
    assert!(
        out.starts_with("thread,process,name,cpu,start_s,length_s,end\n"),
        "{out}"
    );
    let output = pinwise(&at("store.db"))
        .args(["record", "show", id, "--format", "markdown"])
        .output()
        .unwrap();
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err.contains("is a trace: --format text, json, html, or csv"),
        "{err}"
    );
}

#[test]
fn perf_and_pinwise_count_the_same_in_a_new_trace() {
    if !has_program("perf") {
        return report_skip("perf is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    let perf = |arguments: &[&str]| {
        let mut command = std::process::Command::new("perf");
        command
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let recorded = perf(&split_words(
        "sched record -o perf.data -- perf bench sched pipe -l 500",
    ));
    if !recorded.status.success() {
        let (_, err) = decode_output(&recorded);
        let last = err.lines().last().unwrap_or("").to_owned();
        return report_skip(&format!("perf sched record is not permitted: {last}"));
    }
    let script = perf(&["script", "-i", "perf.data", "-F", "event,trace"]);
    let (out, _) = decode_output(&script);
    let all = out
        .lines()
        .filter(|line| line.contains("sched:sched_switch:"));
    let all: Vec<&str> = all.collect();
    let of_pipe = all
        .iter()
        .filter(|line| line.contains(" prev_comm=sched-pipe "));
    let content = std::fs::read(&path).unwrap();
    let trace = import_trace(&content, TraceSubject::Default).unwrap();
    assert_eq!(trace.count_switches(), all.len());
    assert_eq!(trace.count_switches_of_pipe(), of_pipe.count());
    assert!(trace.count_switches_of_pipe() >= 100);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// A changed trace is imported or reported in one line.
    #[test]
    fn changed_bytes_do_no_harm(
        which in 0..4_usize,
        places in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::num::u8::ANY), 1..20),
    ) {
        let name = ["own.data", "task.data", "pipe.data", "tgid.txt"][which];
        let mut content = read_recorded_trace(name);
        for (place, byte) in places {
            let place = place.index(content.len());
            content[place] = byte;
        }
        match import_trace(&content, TraceSubject::Default) {
            Ok(trace) => proptest::prop_assert!(trace.events.len() <= content.len()),
            Err(error) => proptest::prop_assert!(!error.to_string().contains('\n')),
        }
    }
}
