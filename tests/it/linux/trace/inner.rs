//! One trace in a process of its own: a `LinuxMachine` takes the signals and children of the
//! whole process, which tests share.
//!
//! The test starts its own program again with one ignored test, which makes the trace that an
//! environment variable describes, and writes a summary of its events to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use pinwise_machine::linux::{CycleCounting, LinuxMachine};
use pinwise_machine::{
    Host, Listener, MachineError, Output as RunOutput, Request, Subject, TraceOrder, TraceResult,
    Tracer,
};
use pinwise_sched::{Event, EventKind, LeaveReason, Tier};
use pinwise_workload::{Command as WorkloadCommand, Workload};
use serde_json::{Value, json};

/// Environment variable with the request, as JSON.
const REQUEST: &str = "PINWISE_TEST_TRACE";
/// Environment variable with the file for the results.
const ANSWER: &str = "PINWISE_TEST_ANSWER";

/// A requested trace: `{"command": […]}`, `{"pid": n}` or `{"all": true}`, with `tier`, `limit_ms`
/// and `rounds` (after which the listener stops the trace). `{"tiers": true}` requests instead the
/// reasons why tiers are not available.
pub(super) struct TraceRequest(pub(super) Value);

impl TraceRequest {
    /// Traces; returns what was observed, or `{"error": …}`.
    #[track_caller]
    pub(super) fn run(&self) -> Value {
        let (child, answer) = self.start();
        finish(child, &answer)
    }

    /// Starts the trace.
    pub(super) fn start(&self) -> (Child, tempfile::NamedTempFile) {
        self.start_as(&[])
    }

    /// Starts the trace by another command, such as one that gives up rights.
    pub(super) fn start_as(&self, wrapper: &[&str]) -> (Child, tempfile::NamedTempFile) {
        let answer = tempfile::NamedTempFile::new().unwrap();
        let everybody = std::fs::Permissions::from_mode(0o666);
        answer.as_file().set_permissions(everybody).unwrap();
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let name = concat!(module_path!(), "::trace_of_another_test");
        let name = name.split_once("::").unwrap().1;
        let test = [own, "--exact", name, "--ignored", "--test-threads=1"];
        let line = [wrapper, &test].concat();
        let child = Command::new(line[0])
            .args(&line[1..])
            .env(REQUEST, self.0.to_string())
            .env(ANSWER, answer.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        (child, answer)
    }
}

/// Waits for a trace and reads what was seen.
#[track_caller]
pub(super) fn finish(child: Child, answer: &tempfile::NamedTempFile) -> Value {
    let output: Output = child.wait_with_output().unwrap();
    let text = std::fs::read_to_string(answer.path()).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}: {output:?}"))
}

#[test]
#[ignore = "started by other tests, in a process of its own"]
fn trace_of_another_test() {
    let request: Value = serde_json::from_str(&std::env::var(REQUEST).unwrap()).unwrap();
    let answer = match trace(&request) {
        Ok(answer) => answer,
        Err(error) => json!({"error": error.to_string()}),
    };
    // The file is not created again: it may belong to another user.
    let path = std::env::var_os(ANSWER).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(answer.to_string().as_bytes()).unwrap();
}

fn trace(request: &Value) -> Result<Value, MachineError> {
    let mut machine = LinuxMachine::open(CycleCounting::IfCheap)?;
    if request["tiers"].is_boolean() {
        let tiers = machine.tiers();
        let reported = tiers.iter().map(|tier| {
            let refused = tier.refusal.as_ref();
            let reason = refused.map(|refusal| refusal.reason.clone());
            let remedy = refused.and_then(|refusal| refusal.remedy.clone());
            (tier.tier.name().to_owned(), json!([reason, remedy]))
        });
        return Ok(Value::Object(reported.collect()));
    }
    let (topology, _) = machine.topology()?;
    let words: Vec<String> = serde_json::from_value(request["command"].clone()).unwrap_or_default();
    let command = WorkloadCommand::from_argv(words);
    let workload = Workload::new(command.unwrap_or(WorkloadCommand::from_line("true").unwrap()));
    let run_request = Request {
        output: RunOutput::Discard,
        ..Request::new(&workload, &topology.allowed)
    };
    let subject = match (&request["command"], request["pid"].as_i64()) {
        (Value::Array(_), _) => Subject::Command(&run_request),
        (_, Some(pid)) => Subject::Process(i32::try_from(pid).unwrap()),
        _ => Subject::Everything,
    };
    let order = TraceOrder {
        subject,
        tier: request["tier"]
            .as_str()
            .map(|tier| tier.parse::<Tier>().unwrap()),
        limit: request["limit_ms"].as_u64().map(Duration::from_millis),
        round: Duration::from_millis(100),
        interrupts: false,
        leaves_daemons: false,
    };
    let mut seen = EventSummary {
        rounds_left: request["rounds"].as_u64().unwrap_or(u64::MAX),
        ..EventSummary::default()
    };
    let traced = machine.trace(&order, &mut seen)?;
    Ok(seen.to_json(&traced))
}

/// A listener's summary of events.
#[derive(Default)]
struct EventSummary {
    rounds_left: u64,
    last_ns: u64,
    /// Events with an earlier time than a previous one.
    backwards: u64,
    /// Followed threads that were not known before.
    strangers: u64,
    kinds: BTreeMap<&'static str, u64>,
    lost: u64,
    known: BTreeSet<i32>,
    followed: BTreeSet<i32>,
    /// Followed threads that have ended.
    ended: u64,
    gone: BTreeSet<i32>,
    /// Times that a followed thread left its CPU, except at its end.
    switches_out: u64,
    preemptions: u64,
    names: BTreeMap<i32, String>,
    masks: BTreeMap<i32, String>,
    waits: BTreeMap<i32, u64>,
    runs: BTreeMap<i32, u64>,
    on_cpu: BTreeMap<u32, i32>,
    /// Switches from a thread while another one was on the CPU.
    contradictions: u64,
}

impl EventSummary {
    fn to_json(&self, traced: &TraceResult) -> Value {
        let run = traced.run.as_ref();
        let switches =
            run.and_then(|run| Some(run.voluntary_switches? + run.involuntary_switches?));
        let of_followed = self
            .names
            .iter()
            .filter(|(thread, _)| self.followed.contains(thread) || self.gone.contains(thread));
        let names: BTreeSet<&String> = of_followed.map(|(_, name)| name).collect();
        json!({
            "tier": traced.tier.name(),
            "from_ns": traced.from_ns,
            "to_ns": traced.to_ns,
            "notes": traced.notes,
            "own_cpu_s": traced.own_cpu.as_secs_f64(),
            "wall_s": run.map(|run| run.wall.as_secs_f64()),
            "end": run.map(|run| format!("{:?}", run.end)),
            "kernel_switches": switches,
            "kernel_involuntary": run.and_then(|run| run.involuntary_switches),
            "backwards": self.backwards,
            "strangers": self.strangers,
            "kinds": self.kinds,
            "lost": self.lost,
            "known": self.known.len(),
            "followed": self.followed,
            "ended": self.ended,
            "switches_out": self.switches_out,
            "preemptions": self.preemptions,
            "contradictions": self.contradictions,
            "names": names,
            "masks": self.masks,
            "waits": self.waits,
            "runs": self.runs,
        })
    }

    fn count_leave(&mut self, thread: i32, left: LeaveReason) {
        if self.followed.contains(&thread) && left != LeaveReason::Ended {
            self.switches_out += 1;
            self.preemptions += u64::from(left == LeaveReason::Preempted);
        }
    }

    /// Notes the thread that is now on a CPU, and counts a contradiction if `prev` was not there.
    fn note_arrival(&mut self, cpu: u32, prev: Option<i32>, next: i32) {
        let before = self.on_cpu.insert(cpu, next);
        if let (Some(prev), Some(before)) = (prev, before)
            && prev != before
        {
            self.contradictions += 1;
        }
    }

    /// Notes an event that is no switch; returns the name of its kind.
    fn note_other_event(&mut self, event: &Event) -> &'static str {
        match &event.what {
            EventKind::Fork { parent, child, .. } => {
                self.known.insert(*child);
                if self.followed.contains(parent) {
                    self.followed.insert(*child);
                    self.gone.remove(child);
                }
                "fork"
            }
            EventKind::Exit { thread } => {
                if self.followed.contains(thread) {
                    self.ended += 1;
                    self.gone.insert(*thread);
                }
                "exit"
            }
            EventKind::Known { thread, .. } => {
                self.known.insert(*thread);
                "known"
            }
            EventKind::Follow { thread } => {
                self.strangers += u64::from(!self.known.contains(thread));
                self.followed.insert(*thread);
                "follow"
            }
            EventKind::Name { thread, name } => {
                self.names.insert(*thread, name.to_string());
                "name"
            }
            EventKind::Mask { thread, cpus } => {
                self.masks.insert(*thread, cpus.to_string());
                "mask"
            }
            EventKind::Lost { records } => {
                self.lost += records;
                self.on_cpu.remove(&event.cpu);
                "lost"
            }
            EventKind::Sample(sample) => {
                self.waits
                    .insert(sample.thread, sample.wait_ns.unwrap_or(u64::MAX));
                self.runs.insert(sample.thread, sample.run_ns);
                "sample"
            }
            _ => "usage",
        }
    }
}

impl Listener for EventSummary {
    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.backwards += u64::from(event.time_ns < self.last_ns);
            self.last_ns = self.last_ns.max(event.time_ns);
            let kind = match &event.what {
                EventKind::Switch { prev, left, next } => {
                    self.note_arrival(event.cpu, Some(*prev), *next);
                    self.count_leave(*prev, *left);
                    "switch"
                }
                EventKind::In { thread } => {
                    self.note_arrival(event.cpu, None, *thread);
                    "in"
                }
                EventKind::Out { thread, left } => {
                    self.note_arrival(event.cpu, Some(*thread), 0);
                    self.on_cpu.remove(&event.cpu);
                    self.count_leave(*thread, *left);
                    "out"
                }
                EventKind::Wake { .. } => "wake",
                _ => self.note_other_event(event),
            };
            *self.kinds.entry(kind).or_default() += 1;
        }
    }

    fn round(&mut self, _now_ns: u64) -> bool {
        self.rounds_left = self.rounds_left.saturating_sub(1);
        self.rounds_left > 0
    }
}
