use std::collections::BTreeMap;

use super::*;
use pinwise_machine::{CommandRunner, Host, Tracer};
use pinwise_sched::{Analysis, Summary};
use pinwise_workload::{Command, Workload};
use proptest::prelude::*;

/// Keeps everything; stops after this many rounds.
#[derive(Default)]
struct Recorder {
    events: Vec<Event>,
    rounds: Vec<u64>,
    max_rounds: Option<usize>,
}

impl Listener for Recorder {
    fn events(&mut self, events: &[Event]) {
        self.events.extend_from_slice(events);
    }

    fn round(&mut self, now_ns: u64) -> bool {
        self.rounds.push(now_ns);
        self.max_rounds.is_none_or(|max| self.rounds.len() < max)
    }
}

fn open_machine(text: &str, seed: u64) -> SimulatedMachine {
    SimulatedMachine::from_text("test", text, seed).unwrap()
}

fn with_parsed_request<T>(line: &str, cpus: &str, use_it: impl FnOnce(&Request<'_>) -> T) -> T {
    let workload = Workload::new(Command::from_line(line).unwrap());
    use_it(&Request::new(&workload, &CpuSet::parse_list(cpus).unwrap()))
}

fn trace_order(subject: Subject<'_>) -> TraceOrder<'_> {
    TraceOrder {
        subject,
        tier: None,
        limit: None,
        round: Duration::from_millis(100),
        interrupts: false,
        leaves_daemons: false,
    }
}

/// Sums of events: CPU time and moves of followed threads, CPU time of others.
#[derive(Debug, Default, PartialEq)]
struct Totals {
    own_ns: u64,
    foreign_ns: u64,
    migrations: u64,
    threads: usize,
}

#[derive(Default)]
struct Replay {
    on: BTreeMap<u32, (Tid, u64)>,
    last: BTreeMap<Tid, u32>,
    own: Vec<Tid>,
    totals: Totals,
}

impl Replay {
    fn leave(&mut self, event: &Event, thread: Tid) {
        if thread == IDLE {
            assert!(!self.on.contains_key(&event.cpu), "{event:?}");
            return;
        }
        let (was, since) = self.on.remove(&event.cpu).unwrap();
        assert_eq!(was, thread, "{event:?}");
        let time = event.time_ns - since;
        if self.own.contains(&thread) {
            self.totals.own_ns += time;
        } else {
            self.totals.foreign_ns += time;
        }
    }

    fn arrive(&mut self, event: &Event, thread: Tid) {
        if thread == IDLE {
            return;
        }
        let is_elsewhere = self.on.values().any(|(on, _)| *on == thread);
        assert!(!is_elsewhere, "on two CPUs: {event:?}");
        self.on.insert(event.cpu, (thread, event.time_ns));
        let last = self.last.insert(thread, event.cpu);
        let has_moved = last.is_some_and(|last| last != event.cpu);
        self.totals.migrations += u64::from(has_moved && self.own.contains(&thread));
    }
}

/// Sums events, and fails if they contradict each other.
#[track_caller]
fn sum_events(events: &[Event], end_ns: u64) -> Totals {
    let mut replay = Replay::default();
    let mut time_ns = 0;
    for event in events {
        assert!(event.time_ns >= time_ns, "{event:?}");
        time_ns = event.time_ns;
        match &event.what {
            EventKind::Switch { prev, next, .. } => {
                replay.leave(event, *prev);
                replay.arrive(event, *next);
            }
            EventKind::In { thread } => replay.arrive(event, *thread),
            EventKind::Out { thread, .. } => replay.leave(event, *thread),
            EventKind::Follow { thread } => replay.own.push(*thread),
            EventKind::Fork { parent, child, .. } if replay.own.contains(parent) => {
                replay.own.push(*child);
            }
            _ => {}
        }
    }
    for (cpu, (thread, _)) in replay.on.clone() {
        let event = Event {
            time_ns: end_ns,
            cpu,
            what: EventKind::Exit { thread },
        };
        replay.leave(&event, thread);
    }
    replay.totals.threads = replay.own.len();
    replay.totals
}

/// Traces a run and compares the sums of its events with its figures.
#[track_caller]
fn check_trace(text: &str, cpus: &str, tier: Tier, seed: u64) -> (Recorder, TraceResult) {
    let (mut recorder, mut machine) = (Recorder::default(), open_machine(text, seed));
    let traced = with_parsed_request("prog", cpus, |request| {
        let order = TraceOrder {
            tier: Some(tier),
            ..trace_order(Subject::Command(request))
        };
        machine.trace(&order, &mut recorder).unwrap()
    });
    let found = sum_events(&recorder.events, traced.to_ns);
    let run = traced.run.clone().unwrap();
    let used = run.user.unwrap() + run.system.unwrap();
    // Every time is rounded to a nanosecond.
    let slack = u64::try_from(recorder.events.len()).unwrap() + 2;
    let differ = |a: u64, b: Duration| u128::from(a).abs_diff(b.as_nanos());
    assert!(
        differ(found.own_ns, used) <= slack.into(),
        "{found:?} {run:?}"
    );
    if traced.scope.has_all_cpus {
        let foreign = run.foreign_cpu.unwrap_or_default();
        assert!(
            differ(found.foreign_ns, foreign) <= slack.into(),
            "{found:?} {run:?}"
        );
    }
    assert_eq!(Some(found.migrations), run.counts.migrations);
    assert_eq!(Some(found.threads), run.threads.map(|n| n as usize));
    assert!(differ(traced.to_ns - traced.from_ns, run.wall) <= 1);
    (recorder, traced)
}

const MACHINE: &str = "topology = \"core:2 pu:2\"
[scheduler]
policy = \"random-idle\"
slice_s = 0.003
[workload.default]
base_s = 0.2
threads = 3
burst_s = 0.01
wait_s = 0.004
[noise]
sd = 0.1
";

const NEIGHBOUR: &str = "[[scheduler.neighbour]]
name = \"noise\"
cpus = \"1\"
burst_s = 0.005
wait_s = 0.005
";

fn machine_with_neighbour() -> String {
    MACHINE.replace("[workload", &format!("{NEIGHBOUR}[workload"))
}

#[test]
fn events_sum_to_the_runs_figures() {
    for tier in [Tier::Switch, Tier::CpuWide, Tier::Tracepoint, Tier::Bpf] {
        for cpus in ["0-3", "0", "1,2"] {
            check_trace(MACHINE, cpus, tier, 7);
            check_trace(&machine_with_neighbour(), cpus, tier, 7);
        }
    }
}

#[test]
fn tiers_leave_out_what_they_do_not_show() {
    let count_events = |tier: Tier, is: fn(&EventKind) -> bool| {
        let (recorder, traced) = check_trace(&machine_with_neighbour(), "0-3", tier, 3);
        assert_eq!(traced.scope, tier.scope());
        recorder
            .events
            .iter()
            .filter(|event| is(&event.what))
            .count()
    };
    let wake = |what: &EventKind| matches!(what, EventKind::Wake { .. });
    let switch = |what: &EventKind| matches!(what, EventKind::Switch { .. });
    let half = |what: &EventKind| matches!(what, EventKind::In { .. } | EventKind::Out { .. });
    let noise =
        |what: &EventKind| matches!(what, EventKind::Name { name, .. } if &**name == "noise");
    assert!(count_events(Tier::Bpf, wake) > 10 && count_events(Tier::CpuWide, wake) == 0);
    assert!(count_events(Tier::CpuWide, switch) > 10 && count_events(Tier::Switch, switch) == 0);
    assert!(count_events(Tier::Switch, half) > 10 && count_events(Tier::Bpf, half) == 0);
    assert_eq!(
        (
            count_events(Tier::Bpf, noise),
            count_events(Tier::Switch, noise)
        ),
        (1, 0)
    );
}

#[test]
fn tracing_does_not_change_a_run() {
    for text in [MACHINE.to_owned(), machine_with_neighbour()] {
        let (mut plain, mut watched) = (open_machine(&text, 5), open_machine(&text, 5));
        with_parsed_request("prog", "0-3", |request| {
            for _ in 0..3 {
                let run = plain.run(request).unwrap();
                let order = trace_order(Subject::Command(request));
                let traced = watched.trace(&order, &mut Recorder::default()).unwrap();
                assert_eq!(traced.run, Some(run));
            }
        });
    }
}

#[test]
fn names_masks_and_waits_are_reported() {
    let text = "topology = \"core:2 pu:2\"\n[scheduler]\npolicy = \"core-first\"\n\
                [workload.default]\nbase_s = 0.1\nthreads = 2\nplaces_itself = true";
    let (recorder, _) = check_trace(text, "0,1", Tier::Bpf, 1);
    let masks: Vec<String> = recorder
        .events
        .iter()
        .filter_map(|event| match &event.what {
            EventKind::Mask { cpus, .. } => Some(cpus.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(masks, ["0", "1"]);
    // Two threads on one CPU: the second waits while the first runs.
    let text = text.replace("places_itself = true", "");
    let (recorder, _) = check_trace(&text, "3", Tier::Bpf, 1);
    let woken: Vec<u32> = recorder
        .events
        .iter()
        .filter_map(|event| match event.what {
            EventKind::Wake { target, .. } => Some(target),
            _ => None,
        })
        .collect();
    assert_eq!(woken, [3, 3]);
}

#[test]
fn a_limit_or_a_listener_ends_a_trace() {
    let mut machine = open_machine(MACHINE, 2);
    with_parsed_request("prog", "0", |request| {
        let order = TraceOrder {
            limit: Some(Duration::from_millis(50)),
            round: Duration::from_millis(20),
            ..trace_order(Subject::Command(request))
        };
        let mut recorder = Recorder::default();
        let traced = machine.trace(&order, &mut recorder).unwrap();
        let run = traced.run.unwrap();
        assert_eq!(
            (run.end, run.wall),
            (End::TimedOut, Duration::from_millis(50))
        );
        assert_eq!(
            (traced.to_ns - traced.from_ns, recorder.rounds.len()),
            (50_000_000, 2)
        );
        assert!(
            recorder
                .events
                .iter()
                .all(|event| event.time_ns <= traced.to_ns)
        );
        let mut recorder = Recorder {
            max_rounds: Some(1),
            ..Recorder::default()
        };
        let traced = machine.trace(&order, &mut recorder).unwrap();
        assert_eq!(traced.run.unwrap().wall, Duration::from_millis(20));
    });
}

#[test]
fn everything_is_the_default_workload_and_its_neighbours() {
    let mut machine = open_machine(&machine_with_neighbour(), 2);
    let order = TraceOrder {
        limit: Some(Duration::from_secs(1)),
        ..trace_order(Subject::Everything)
    };
    let mut recorder = Recorder::default();
    let traced = machine.trace(&order, &mut recorder).unwrap();
    assert_eq!(
        (traced.run, traced.to_ns - traced.from_ns),
        (None, 1_000_000_000)
    );
    let found = sum_events(&recorder.events, traced.to_ns);
    assert_eq!((found.threads, found.foreign_ns), (4, 0));
    assert!(found.own_ns > 1_000_000_000, "{found:?}");
    assert_eq!(machine.now(), Duration::from_secs(1));
    // Without a limit only the listener ends it.
    let mut recorder = Recorder {
        max_rounds: Some(30),
        ..Recorder::default()
    };
    let order = TraceOrder {
        limit: None,
        ..order
    };
    let traced = machine.trace(&order, &mut recorder).unwrap();
    assert_eq!(traced.to_ns - traced.from_ns, 3_000_000_000);
}

#[test]
fn endless_time_without_events_is_reported_in_about_100_rounds() {
    let text =
        "topology = \"pu:1\"\n[scheduler]\npolicy = \"pinned\"\n[workload.default]\nbase_s = 1e6";
    let (recorder, _) = check_trace(text, "0", Tier::Bpf, 1);
    assert!((90..110).contains(&recorder.rounds.len()));
}

#[test]
fn only_mechanisms_and_kernels_can_be_traced() {
    let mut plain = open_machine("topology = \"core:2 pu:2\"", 1);
    assert!(plain.tiers().iter().all(|tier| tier.refusal.is_some()));
    let mut refused = |line: &str, tier: Option<Tier>| {
        with_parsed_request(line, "0-3", |request| {
            let order = TraceOrder {
                tier,
                ..trace_order(Subject::Command(request))
            };
            let traced = plain.trace(&order, &mut Recorder::default());
            traced
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        })
    };
    let refusal = refused("prog", None);
    assert!(refusal.contains("[scheduler]"), "{refusal}");
    assert_eq!(refused("pinwise bench kernel pi --threads 2", None), "");
    let refusal = refused("pinwise bench kernel pi", Some(Tier::Proc));
    assert!(
        refusal.starts_with("tier 'proc' is not available here"),
        "{refusal}"
    );
    let process = plain.trace(&trace_order(Subject::Process(1)), &mut Recorder::default());
    assert!(process.is_err_and(|error| error.to_string().starts_with("process 1: ")));
    let available = open_machine(MACHINE, 1).tiers();
    let refused: Vec<Tier> = available
        .iter()
        .filter(|a| a.refusal.is_some())
        .map(|a| a.tier)
        .collect();
    assert_eq!(refused, [Tier::Proc]);
}

#[test]
fn only_the_beginning_of_a_long_run_is_traced_and_a_note_says_so() {
    let text = MACHINE.replace("base_s = 0.2", "base_s = 3000.0");
    let mut machine = open_machine(&text, 1);
    let traced = with_parsed_request("prog", "0-3", |request| {
        machine
            .trace(
                &trace_order(Subject::Command(request)),
                &mut Recorder::default(),
            )
            .unwrap()
    });
    assert!(
        traced.notes[0].contains("too many steps"),
        "{:?}",
        traced.notes
    );
    let wall_ns = traced.run.unwrap().wall.as_nanos();
    assert!(u128::from(traced.to_ns - traced.from_ns) < wall_ns);
}

#[test]
fn wrong_neighbours_are_refused_with_their_key() {
    for (line, key) in [
        ("threads = 0", "scheduler.neighbour[0].threads"),
        ("burst_s = 0.0", "scheduler.neighbour[0].burst_s"),
        ("cpus = \"9\"", "scheduler.neighbour[0].cpus"),
        ("cpus = \"x\"", "scheduler.neighbour[0].cpus"),
        ("color = 1", "unknown field"),
    ] {
        let word = line.split(' ').next().unwrap();
        let kept = NEIGHBOUR.lines().filter(|old| !old.starts_with(word));
        let text = kept.chain([line]).collect::<Vec<_>>().join("\n");
        let text = MACHINE.replace("[workload", &format!("{text}\n[workload"));
        let error = SimulatedMachine::from_text("x", &text, 1).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn a_neighbour_uses_its_described_share() {
    // Pinned next to the command on one CPU, without slices: it computes half of the time,
    // undisturbed on its own CPU.
    let text = "topology = \"core:2 pu:1\"\n[scheduler]\npolicy = \"core-first\"\n\
                [[scheduler.neighbour]]\nname = \"n\"\ncpus = \"1\"\nburst_s = 0.01\nwait_s = 0.03\n\
                [workload.default]\nbase_s = 100";
    let (_, traced) = check_trace(text, "0", Tier::Bpf, 4);
    let run = traced.run.unwrap();
    let share = run.foreign_cpu.unwrap().as_secs_f64() / run.wall.as_secs_f64();
    assert!((share - 0.25).abs() < 0.03, "{share}");
    assert!((run.wall.as_secs_f64() - 100.0).abs() < 1e-6, "{run:?}");
}

/// The analysis of a run.
fn analyse_run(text: &str, cpus: &str, tier: Tier) -> (Summary, Run) {
    let (recorder, traced) = check_trace(text, cpus, tier, 11);
    let (topology, _) = open_machine(text, 1).topology().unwrap();
    let mut analysis = Analysis::new(&topology, traced.scope);
    for event in &recorder.events {
        analysis.add_event(event);
    }
    let summary = analysis.finish(Some((traced.from_ns, traced.to_ns)));
    (summary, traced.run.unwrap())
}

/// A machine of two packages of two cores with two CPUs, with threads that never wait.
fn computing_threads(threads: u32, policy: &str, more: &str) -> String {
    format!(
        "topology = \"package:2 core:2 pu:2\"\n[scheduler]\npolicy = \"{policy}\"\n{more}\n\
         [workload.default]\nbase_s = 2\nthreads = {threads}"
    )
}

/// Shares of CPU time, per cent: beside a busy sibling, and avoidable by the scheduler, the mask,
/// others.
#[track_caller]
fn check_sharing(text: &str, cpus: &str, expected: [f64; 4]) {
    let (summary, _) = analyse_run(text, cpus, Tier::Bpf);
    let sharing = summary.sharing.unwrap();
    let avoidable = sharing.avoidable.unwrap();
    let parts = [
        sharing.shared,
        avoidable.scheduler,
        avoidable.mask,
        avoidable.others,
    ];
    let found = parts.map(|part| 100.0 * part as f64 / summary.cpu_ns as f64);
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 3.0;
    assert!(
        found.iter().zip(&expected).all(is_near),
        "{found:?}, not {expected:?}: {text} on {cpus}"
    );
}

#[test]
fn the_analysis_finds_sharing_and_its_cause() {
    let free = |threads| computing_threads(threads, "core-first", "");
    check_sharing(&free(3), "0-7", [0.0, 0.0, 0.0, 0.0]);
    check_sharing(&free(2), "0,1", [100.0, 0.0, 100.0, 0.0]);
    check_sharing(&free(4), "0-3", [100.0, 0.0, 100.0, 0.0]);
    check_sharing(&free(8), "0-7", [100.0, 0.0, 0.0, 0.0]);
    check_sharing(&free(2), "0,2", [0.0, 0.0, 0.0, 0.0]);
    // A scheduler that places two threads often, blind to cores, puts them on one core in one case of
    // seven.
    let blind = computing_threads(2, "random-idle", "slice_s = 0.001");
    check_sharing(&blind, "0-7", [100.0 / 7.0, 100.0 / 7.0, 0.0, 0.0]);
    // A program on the sibling: its work of 2 ms takes 3.2 ms beside that of the run, between waits
    // of 2 ms.
    let beside =
        "[[scheduler.neighbour]]\nname = \"n\"\ncpus = \"1\"\nburst_s = 0.002\nwait_s = 0.002";
    let crowded = computing_threads(1, "core-first", beside);
    check_sharing(&crowded, "0", [61.5, 0.0, 61.5, 0.0]);
    check_sharing(
        &computing_threads(1, "pinned", beside),
        "0-7",
        [61.5, 0.0, 0.0, 61.5],
    );
}

#[test]
fn the_analysis_agrees_with_the_runs_figures() {
    for tier in [Tier::Switch, Tier::CpuWide, Tier::Bpf] {
        let (summary, run) = analyse_run(&machine_with_neighbour(), "0-2", tier);
        assert_eq!(
            summary.unknown.contradictions + summary.unknown.backwards,
            0
        );
        assert_eq!(Some(summary.migrations.total()), run.counts.migrations);
        assert_eq!(summary.threads, 3);
        let used = (run.user.unwrap() + run.system.unwrap()).as_nanos();
        assert!(u128::from(summary.cpu_ns).abs_diff(used) < 10_000, "{tier}");
        let foreign = run.foreign_cpu.unwrap().as_nanos();
        match summary.foreign_ns {
            Some(found) => assert!(u128::from(found).abs_diff(foreign) < 10_000, "{tier}"),
            None => assert_eq!(tier, Tier::Switch),
        }
    }
}

#[test]
fn the_analysis_finds_waits_and_their_causes() {
    // Two threads on one CPU in turns: one of them always waits behind the other while the rest of
    // the machine is forbidden.
    let text = computing_threads(2, "core-first", "slice_s = 0.002");
    let (summary, run) = analyse_run(&text, "0", Tier::Bpf);
    let waited = summary.waits.total_ns.unwrap() as f64 / run.wall.as_nanos() as f64;
    assert!((waited - 1.0).abs() < 0.01, "{waited}");
    let causes = summary.waits.causes.unwrap();
    assert!(
        causes.mask as f64 > 0.99 * waited * run.wall.as_nanos() as f64,
        "{causes:?}"
    );
    // The same with a scheduler that keeps them there needlessly.
    let text = computing_threads(9, "pinned", "slice_s = 0.002");
    let (summary, _) = analyse_run(&text, "0-7", Tier::Bpf);
    let causes = summary.waits.causes.unwrap();
    assert_eq!((causes.mask, causes.scheduler), (0, 0), "{causes:?}");
    assert!(causes.own > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn events_never_contradict_themselves(
        threads in 1u32..9, cores in 1usize..4, smt in 1usize..3, policy in 0usize..3,
        wait in proptest::option::of(0.001f64..0.1), slice in proptest::option::of(0.001f64..0.1),
        neighbours in 0usize..3, itself in any::<bool>(), tier in 1usize..5, seed in any::<u64>(),
    ) {
        let policy = ["random-idle", "core-first", "pinned"][policy];
        let mut text = format!("topology = \"core:{cores} pu:{smt}\"\n[scheduler]\npolicy = \"{policy}\"\n");
        if let Some(slice) = slice { text += &format!("slice_s = {slice}\n"); }
        for number in 0..neighbours {
            text += &format!("[[scheduler.neighbour]]\nname = \"a neighbour of many words\"\nthreads = {}\nburst_s = 0.01\nwait_s = 0.02\n", number + 1);
        }
        text += &format!("[workload.default]\nbase_s = 0.5\nthreads = {threads}\nplaces_itself = {itself}\n");
        if let Some(wait) = wait { text += &format!("burst_s = 0.02\nwait_s = {wait}\n"); }
        let last = cores * smt - 1;
        check_trace(&text, &format!("0-{last}"), Tier::ALL[tier], seed);
    }
}
