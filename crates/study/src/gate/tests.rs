use super::measured::{BASE, HEAD, Measured, Pair};
use super::*;
use pinwise_placement::Placement;
use pinwise_record::{GateCpuTime, GateDecision, GateLink, GateOutcome, MetricRecord, Stopped};
use pinwise_sim::SimulatedMachine;
use pinwise_stats::fixed_width::FixedWidth;
use pinwise_stats::regression::{Regression, Standing};
use pinwise_workload::{Command, Metric};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MACHINE: &str = r#"
topology = "core:2 pu:1"
[workload.default]
base_s = 0.05
[workload."head/slow"]
base_s = 0.0525
[workload."head/fast"]
base_s = 0.045
[workload."head/broken"]
base_s = 0.05
exit = 1
[noise]
kind = "lognormal"
sd = 0.01
"#;

fn workload(build: &str, program: &str) -> Workload {
    let command = Command::from_line(program).unwrap();
    Workload {
        folder: Some(build.into()),
        ..Workload::new(command)
    }
}

fn build(name: &str) -> BuildRecord {
    BuildRecord {
        name: name.to_owned(),
        folder: name.to_owned(),
        commit: None,
        variant: None,
    }
}

fn plan_benchmark(program: &str) -> PlannedBenchmark {
    PlannedBenchmark {
        name: program.to_owned(),
        base: Some(workload("base", program)),
        head: Some(workload("head", program)),
        metric: Metric::wall(),
        with_cpu: false,
        min_effect: 0.01,
    }
}

fn plan(benchmarks: Vec<PlannedBenchmark>, budget_s: u64, seed: u64) -> GatePlan {
    let topology = pinwise_topology::Topology::from_synthetic("core:2 pu:1").unwrap();
    GatePlan {
        base: build("base"),
        head: build("head"),
        suite: "suite.toml".to_owned(),
        benchmarks,
        place: Placement::os_default().realise(&topology).unwrap(),
        alpha: 0.05,
        budget: Some(Duration::from_secs(budget_s)),
        max_pairs: None,
        is_open_ended: false,
        score: Score::default(),
        is_chained: false,
        seed,
        id: "gate".to_owned(),
        started: String::new(),
        argv: Vec::new(),
        tags: Vec::new(),
    }
}

/// An observer that ignores everything.
struct NoObserver;

impl Observer for NoObserver {}

fn gate(benchmarks: Vec<PlannedBenchmark>, budget_s: u64, seed: u64) -> GateRecord {
    let mut machine = SimulatedMachine::from_text("test", MACHINE, seed).unwrap();
    let plan = plan(benchmarks, budget_s, seed);
    run(&plan, &mut machine, &mut NoObserver).unwrap()
}

fn outcome<'a>(record: &'a GateRecord, name: &str) -> &'a GateOutcome {
    let benchmark = record.benchmarks.iter().find(|b| b.name == name).unwrap();
    &benchmark.outcome
}

#[test]
fn a_slower_benchmark_fails_the_gate_after_all_are_decided() {
    let suite = ["same", "slow", "fast", "other"]
        .map(plan_benchmark)
        .to_vec();
    let record = gate(suite, 60, 1);
    assert_eq!(record.verdict.decision, GateDecision::Fail);
    assert_eq!(*outcome(&record, "slow"), GateOutcome::Slower);
    // It may pass without being certainly faster.
    assert_ne!(*outcome(&record, "fast"), GateOutcome::Slower);
    assert!(record.benchmarks[2].ratio.unwrap() < 0.95, "{record:?}");
    for name in ["same", "other"] {
        assert_eq!(*outcome(&record, name), GateOutcome::Passed, "{record:?}");
    }
    assert_eq!(record.stopped, Some(Stopped::Precision));
    let sentence = &record.verdict.sentence;
    assert!(
        sentence.starts_with("1 of 4 benchmarks is slower: slow by "),
        "{sentence}"
    );
    let slow = &record.benchmarks[1];
    assert!(slow.low.unwrap() < 1.05 && slow.high.unwrap() > 1.05);
}

#[test]
fn suites_without_a_change_pass_and_raise_few_alarms() {
    let mut passed = 0;
    for seed in 0..30 {
        let suite = ["a", "b", "c", "d", "e"].map(plan_benchmark).to_vec();
        let record = gate(suite, 60, seed);
        assert_ne!(record.verdict.decision, GateDecision::Broken);
        passed += usize::from(record.verdict.decision == GateDecision::Pass);
    }
    assert!(passed > 26, "{passed}");
}

#[test]
fn a_gate_that_cannot_decide_is_undecided_within_its_budget() {
    let record = gate(["a", "b", "c"].map(plan_benchmark).to_vec(), 3, 1);
    assert_eq!(record.verdict.decision, GateDecision::Undecided);
    assert_eq!(record.stopped, Some(Stopped::Budget));
    assert!(record.elapsed_s <= 3.0, "{}", record.elapsed_s);
    let sentence = &record.verdict.sentence;
    assert!(sentence.starts_with("Undecided: 3 of 3"), "{sentence}");
    assert!(
        record.verdict.advice.contains("--budget"),
        "{:?}",
        record.verdict
    );
}

/// Collects warnings.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Observer for Warnings {
    fn warn(&mut self, sentence: &str) {
        self.0.push(sentence.to_owned());
    }
}

#[test]
fn a_short_budget_is_warned_of_and_spent_on_some_benchmarks() {
    let mut machine = SimulatedMachine::from_text("test", MACHINE, 1).unwrap();
    let names = ["slow", "b", "c", "d", "e", "f", "g", "h"];
    // Time for 30 pairs of 0.1 s; a verdict needs at least six of each.
    let plan = plan(names.map(plan_benchmark).to_vec(), 3, 1);
    let mut warnings = Warnings::default();
    let record = run(&plan, &mut machine, &mut warnings).unwrap();
    assert!(warnings.0[0].starts_with("The budget is too short for 8 benchmarks"));
    assert_eq!(warnings.0.len(), 1);
    let judged = record.benchmarks.iter().filter(|b| b.high_alone.is_some());
    assert!((1..8).contains(&judged.count()), "{record:?}");
}

#[test]
fn benchmarks_that_one_build_lacks_do_not_stop_the_others() {
    let mut suite = ["same", "gone", "new"].map(plan_benchmark).to_vec();
    suite[1].head = None;
    suite[2].base = None;
    let record = gate(suite, 60, 1);
    assert_eq!(*outcome(&record, "same"), GateOutcome::Passed);
    assert_eq!(*outcome(&record, "gone"), GateOutcome::Missing);
    assert_eq!(*outcome(&record, "new"), GateOutcome::New);
    assert_eq!(record.verdict.decision, GateDecision::Broken);
    assert!(record.findings.iter().any(|found| found.check == "new"));
}

#[test]
fn a_benchmark_that_fails_at_once_ends_the_gate() {
    let record = gate(
        ["same", "broken", "slow"].map(plan_benchmark).to_vec(),
        60,
        1,
    );
    assert_eq!(*outcome(&record, "broken"), GateOutcome::Failed);
    assert_eq!(*outcome(&record, "slow"), GateOutcome::Undecided);
    assert_eq!(record.verdict.decision, GateDecision::Broken);
    assert_eq!(record.stopped, Some(Stopped::Failed));
    let problem = record.benchmarks[1].problem.as_deref().unwrap();
    assert!(problem.starts_with("it fails in head: "), "{problem}");
}

#[test]
fn either_build_may_run_first_in_a_pair() {
    let record = gate(["same"].map(plan_benchmark).to_vec(), 30, 1);
    let pairs = &record.benchmarks[0].pairs;
    let first = pairs.iter().filter(|pair| pair.head_first).count();
    assert!(first > 0 && first < pairs.len());
    assert!(pairs.windows(2).all(|two| two[0].at_s < two[1].at_s));
}

#[test]
fn a_benchmark_that_times_out_is_slower_by_a_bound() {
    let text = format!("{MACHINE}\n[workload.\"base/old\"]\nbase_s = 20.0\n");
    let text = text.replace(
        "[workload.\"head/slow\"]\nbase_s = 0.0525",
        "[workload.\"head/slow\"]\nbase_s = 20.0",
    );
    let gate = |program: &str, timeout_s: f64, seed| {
        let mut machine = SimulatedMachine::from_text("test", &text, seed).unwrap();
        let mut benchmark = plan_benchmark(program);
        for build in [&mut benchmark.base, &mut benchmark.head] {
            let timeout = Some(Duration::from_secs_f64(timeout_s));
            build.as_mut().unwrap().timeout = timeout;
        }
        run(
            &plan(vec![benchmark], 60, seed),
            &mut machine,
            &mut NoObserver,
        )
        .unwrap()
    };
    // Several seeds, so that either build runs first in some.
    for seed in 0..4 {
        let record = gate("slow", 2.0, seed);
        assert_eq!(record.verdict.decision, GateDecision::Fail, "{record:?}");
        let slow = &record.benchmarks[0];
        assert_eq!(slow.outcome, GateOutcome::Slower);
        assert_eq!(slow.standing, "timed out");
        assert!(slow.change.starts_with("≥ "), "{}", slow.change);
        let sentence = &slow.sentence;
        assert!(
            sentence.starts_with("slow: head is at least "),
            "{sentence}"
        );
        assert!(sentence.ends_with("times slower than base (its run did not end within 2 s)."));
        let verdict = &record.verdict.sentence;
        assert!(
            verdict.starts_with("The benchmark is slower: slow by ≥ "),
            "{verdict}"
        );
        let old = gate("old", 2.0, seed);
        assert_eq!(old.benchmarks[0].outcome, GateOutcome::Faster);
        // A time-out close to the other build's time proves nothing.
        let near = gate("slow", 0.06, seed);
        assert_eq!(near.benchmarks[0].outcome, GateOutcome::Failed);
    }
}

#[test]
fn a_gate_stops_at_the_maximum_number_of_pairs() {
    let mut machine = SimulatedMachine::from_text("test", MACHINE, 1).unwrap();
    let mut plan = plan(["a", "b"].map(plan_benchmark).to_vec(), 600, 1);
    plan.max_pairs = Some(7);
    let record = run(&plan, &mut machine, &mut NoObserver).unwrap();
    assert_eq!(record.stopped, Some(Stopped::Runs));
    assert!(record.benchmarks.iter().all(|b| b.pairs.len() == 7));
}

#[test]
fn an_open_ended_gate_goes_on_until_all_is_decided() {
    let mut alarms = 0;
    for seed in 0..40 {
        let mut machine = SimulatedMachine::from_text("test", MACHINE, seed).unwrap();
        let mut plan = plan(
            ["same", "other", "slow"].map(plan_benchmark).to_vec(),
            0,
            seed,
        );
        (plan.budget, plan.is_open_ended) = (None, true);
        let record = run(&plan, &mut machine, &mut NoObserver).unwrap();
        assert_eq!(record.stopped, Some(Stopped::Precision));
        assert_eq!(*outcome(&record, "slow"), GateOutcome::Slower, "{seed}");
        let is_alarm = |name| *outcome(&record, name) != GateOutcome::Passed;
        alarms += usize::from(is_alarm("same") || is_alarm("other"));
    }
    // One gate in twenty may call something slower or faster that is not.
    assert!(alarms <= 4, "{alarms}");
}

/// A gate between two commits; `program` is the head's benchmark, `at` the time and the seed.
fn gate_commits(base: &str, head: &str, program: &str, at: u64) -> GateRecord {
    let mut machine = SimulatedMachine::from_text("test", MACHINE, at).unwrap();
    let plan = GatePlan {
        is_chained: true,
        ..plan(vec![plan_benchmark(program)], 30, at)
    };
    let mut record = run(&plan, &mut machine, &mut NoObserver).unwrap();
    (record.base.commit, record.head.commit) = (Some(base.to_owned()), Some(head.to_owned()));
    record.benchmarks[0].name = "parse".to_owned();
    record.id = format!("gate-{at}");
    record.started = format!("2026-11-25T10:00:{at:02}Z");
    record
}

#[test]
fn a_gate_of_commits_measures_further_and_keeps_its_verdict() {
    // Twice as slow, so that the verdict comes after few pairs.
    let machine = MACHINE.replace("base_s = 0.0525", "base_s = 0.1");
    let slow = |is_chained: bool, budget_s: u64| {
        let mut machine = SimulatedMachine::from_text("test", &machine, 1).unwrap();
        let plan = GatePlan {
            is_chained,
            ..plan(vec![plan_benchmark("slow")], budget_s, 1)
        };
        let record = run(&plan, &mut machine, &mut NoObserver).unwrap();
        let slow = &record.benchmarks[0];
        assert_eq!(slow.outcome, GateOutcome::Slower, "{is_chained}");
        assert_eq!(record.stopped, Some(Stopped::Precision));
        (slow.pairs.len(), slow.link)
    };
    let (verdict_pairs, no_link) = slow(false, 60);
    let (history_pairs, link) = slow(true, 60);
    assert!(verdict_pairs < 20 && no_link.is_none(), "{verdict_pairs}");
    assert!(history_pairs >= 20, "{history_pairs}");
    let link = link.unwrap();
    assert!(link.pairs <= history_pairs && link.ratio > 1.03, "{link:?}");
    // A budget that ends before the history has enough pairs.
    let (pairs, link) = slow(true, 2);
    assert!((verdict_pairs..20).contains(&pairs), "{pairs}");
    assert_eq!(link.unwrap().pairs, pairs);
}

#[test]
fn gates_are_chained_from_commit_to_commit() {
    let gates = [
        gate_commits("c", "d", "same", 5),
        gate_commits("b", "c", "slow", 2),
        gate_commits("a", "b", "same", 1),
        // The same commits again, and commits that lead nowhere.
        gate_commits("b", "c", "slow", 3),
        gate_commits("x", "y", "fast", 4),
    ];
    let history = chain_gates(&gates, "parse").unwrap();
    let commits: Vec<(&str, &str)> = history
        .steps
        .iter()
        .map(|step| (step.base.as_str(), step.head.as_str()))
        .collect();
    assert_eq!(commits, [("a", "b"), ("b", "c"), ("c", "d")]);
    assert_eq!(history.steps[1].records, ["gate-2", "gate-3"]);
    assert_eq!(history.left_out, 1);
    let since_first = &history.steps[2].since_first;
    assert!((since_first.value - 5.0).abs() < 2.0, "{since_first:?}");
    let [change] = history.changes.as_slice() else {
        panic!("{:?}", history.changes);
    };
    assert_eq!((change.base.as_str(), change.head.as_str()), ("b", "c"));
    assert_eq!((change.word.as_str(), change.steps), ("slower", 1));
    let (low, high) = (change.effect.low.unwrap(), change.effect.high.unwrap());
    assert!(low > 0.0 && low < 5.0 && high > 5.0, "{change:?}");
}

#[test]
fn gates_of_one_second_are_chained_by_their_commits() {
    let newest_first = [
        gate_commits("b", "c", "same", 1),
        gate_commits("a", "b", "same", 1),
    ];
    let steps = chain_gates(&newest_first, "parse").unwrap().steps;
    assert_eq!(steps.len(), 2);
}

#[test]
fn a_gate_that_passed_after_few_pairs_keeps_the_chain_together() {
    let mut few = gate_commits("b", "c", "same", 2);
    let parse = &mut few.benchmarks[0];
    (parse.low, parse.high) = (None, None);
    assert!(parse.high_alone.is_some() && parse.link.is_some());
    let gates = [
        gate_commits("a", "b", "same", 1),
        few,
        gate_commits("c", "d", "same", 3),
    ];
    let history = chain_gates(&gates, "parse").unwrap();
    assert_eq!((history.steps.len(), history.left_out), (3, 0));
    let middle = &history.steps[1].effect;
    assert!(
        middle.low < Some(middle.value) && middle.high > Some(middle.value),
        "{middle:?}"
    );
}

#[test]
fn a_history_uses_cpu_time_if_all_gates_have_it_more_precisely() {
    // Slower by 9 %, which other programs hide in wall-clock time.
    let disturbed = |base: &str, head: &str, at: u64| {
        let mut gate = gate_commits(base, head, "same", at);
        let parse = &mut gate.benchmarks[0];
        let link = |ratio: f64, error: f64| {
            Some(GateLink {
                ratio,
                error,
                pairs: 30,
            })
        };
        parse.link = link(1.1, 0.1);
        parse.cpu = Some(GateCpuTime {
            ratio: 1.09,
            low: Some(1.08),
            high: Some(1.10),
            high_alone: None,
            level: Some(0.05),
            link: link(1.09, 0.005),
            effect: MetricRecord::new(&Metric::cpu(), "").effect(1.09, Some(1.08), Some(1.10)),
            decides: true,
        });
        gate
    };
    let mut gates = [disturbed("a", "b", 1), disturbed("b", "c", 2)];
    let found = chain_gates(&gates, "parse").unwrap();
    // One change over both steps is more certain than one of a step.
    assert_eq!(
        (found.metric.name.as_str(), found.changes.len()),
        ("cpu", 1)
    );
    assert!(found.method.contains("Of CPU time"), "{}", found.method);
    assert!((found.steps[0].effect.value - 9.0).abs() < 0.1, "{found:?}");
    gates[0].benchmarks[0].cpu = None;
    let found = chain_gates(&gates, "parse").unwrap();
    assert_eq!(
        (found.metric.name.as_str(), found.changes.len()),
        ("wall", 0)
    );
}

#[test]
fn a_history_ends_at_a_cycle_of_commits() {
    let gates = [
        gate_commits("a", "b", "same", 1),
        gate_commits("b", "a", "same", 2),
    ];
    let steps = chain_gates(&gates, "parse").unwrap().steps;
    assert_eq!(steps.len(), 2);
    // Gates of folders have no commits.
    assert_eq!(
        chain_gates(&[gate(vec![plan_benchmark("same")], 10, 1)], "same"),
        None
    );
    assert_eq!(chain_gates(&gates, "other"), None);
}

/// Noise recorded beside programs that kept the CPUs busy.
const LOADED: &str = concat!(
    "topology = \"core:2 pu:1\"\n\
     [workload.default]\nbase_s = 0.2\n\
     [workload.\"head/slow\"]\nbase_s = 0.206\n\
     [noise]\nkind = \"series\"\nseries = \"",
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/series/aa_cpu1.csv.xz\"\n"
);

/// A gate of one benchmark under that load.
fn gate_under_load(program: &str, with_cpu: bool, seed: u64) -> GateRecord {
    gate_on(LOADED, program, with_cpu, seed)
}

fn gate_on(machine: &str, program: &str, with_cpu: bool, seed: u64) -> GateRecord {
    let mut machine = SimulatedMachine::from_text("test", machine, seed).unwrap();
    let mut benchmark = plan_benchmark(program);
    benchmark.with_cpu = with_cpu;
    let plan = plan(vec![benchmark], 25, seed);
    run(&plan, &mut machine, &mut NoObserver).unwrap()
}

#[test]
fn cpu_time_shows_what_other_programs_hide() {
    let count_failed = |with_cpu: bool| {
        let gates = (0..20).map(|seed| gate_under_load("slow", with_cpu, seed));
        gates
            .filter(|gate| gate.verdict.decision == GateDecision::Fail)
            .count()
    };
    let (with, without) = (count_failed(true), count_failed(false));
    assert!(with >= 18 && without <= 10, "{with} and {without} of 20");
    let record = gate_under_load("slow", true, 1);
    let slow = &record.benchmarks[0];
    let cpu = slow.cpu.as_ref().unwrap();
    assert!(cpu.decides && cpu.low.unwrap() > 1.0, "{cpu:?}");
    assert_eq!(slow.change, format!("{} CPU", cpu.effect.text));
    assert_eq!(slow.standing, "slower (CPU time)");
    let words = " % more CPU time; its wall-clock time is undecided: ";
    assert!(slow.sentence.contains(words), "{}", slow.sentence);
    let sentence = &record.verdict.sentence;
    assert!(sentence.ends_with(" % of CPU time."), "{sentence}");
}

#[test]
fn a_benchmark_passes_by_cpu_time_under_load() {
    let end = |with_cpu: bool| {
        let gates: Vec<GateRecord> = (0..20)
            .map(|seed| gate_under_load("same", with_cpu, seed))
            .collect();
        let passed = |gate: &&GateRecord| gate.verdict.decision == GateDecision::Pass;
        let record = gates.iter().find(passed).cloned();
        let pairs = |gate: &GateRecord| gate.benchmarks[0].pairs.len();
        let pairs: usize = gates.iter().map(pairs).sum();
        (gates.iter().filter(passed).count(), pairs, record)
    };
    let ((with, pairs, record), (without, more_pairs, _)) = (end(true), end(false));
    assert!(with >= 13 && without <= 8, "{with} and {without} of 20");
    assert!(pairs < more_pairs, "{pairs} and {more_pairs} pairs");
    let record = record.unwrap();
    let same = &record.benchmarks[0];
    assert_eq!(same.standing, "passed (CPU time)");
    assert!(same.interval.starts_with("≤ "), "{}", same.interval);
    let words = "same does not need 1.0 % more CPU time: ";
    assert!(same.sentence.starts_with(words), "{}", same.sentence);
    let sentence = &record.verdict.sentence;
    let words =
        "No benchmark is slower by 1.0 % or more in the typical run: 1 passed, 1 by CPU time.";
    assert_eq!(sentence, words);
}

/// The standing after pairs of equal CPU time whose wall-clock time other programs disturb; `ready`
/// threads of the head run or wait for a CPU on average, one of the base.
fn judge_ready_threads(ready: f64) -> Standing {
    let benchmark = plan_benchmark("waits");
    let question = benchmark.question(&plan(Vec::new(), 60, 1));
    let figure = Regression::new(question, 2);
    let cpu = Some(figure.clone());
    let mut measured = Measured::new(figure, cpu, FixedWidth::new(question), false);
    let mut chance = ChaCha8Rng::seed_from_u64(2);
    for at in 0..60 {
        let mut draw = |spread: f64| 0.2 * (1.0 + spread * chance.random::<f64>());
        let cpu_s = [draw(0.004), draw(0.004)];
        let wall_s = [draw(0.3), draw(0.3) / ready];
        let pair = Pair {
            figures: wall_s,
            costs: wall_s,
            order: if at % 2 == 0 {
                [BASE, HEAD]
            } else {
                [HEAD, BASE]
            },
            before: None,
            load: None,
            at: Duration::from_millis(500 * at),
            cpu_s: Some(cpu_s),
            cpu_share: 1.0,
            ready: Some([1.0, ready]),
        };
        measured.add_pair(&pair, 60);
    }
    measured.standing()
}

/// Waiting is no CPU time.
#[test]
fn a_benchmark_that_waits_longer_passes_by_no_cpu_time() {
    assert_eq!(judge_ready_threads(1.0), Standing::Passed);
    assert_eq!(judge_ready_threads(0.97), Standing::Undecided);
}

/// A build that needs more CPU time by the limit itself rarely passes.
#[test]
fn a_benchmark_at_the_limit_rarely_passes_by_cpu_time() {
    let limit = LOADED.replace("base_s = 0.206", "base_s = 0.202");
    let is_passed = |seed: &u64| {
        let gate = gate_on(&limit, "slow", true, *seed);
        gate.verdict.decision == GateDecision::Pass
    };
    let passed = (0..30).filter(is_passed).count();
    // One in forty.
    assert!(passed <= 3, "{passed} of 30");
}

#[test]
fn the_cpu_time_of_equal_builds_raises_few_alarms() {
    let gates = (0..60).map(|seed| gate_under_load("same", true, seed));
    let alarms = gates.filter(|gate| gate.verdict.decision == GateDecision::Fail);
    // One in twenty.
    let alarms = alarms.count();
    assert!(alarms <= 6, "{alarms}");
}

#[test]
fn cpu_time_of_a_program_that_mostly_waits_is_not_judged() {
    let machine = MACHINE.replace("base_s = 0.0525", "base_s = 0.0525\ncpu_share = 0.1");
    let machine = machine.replace("[workload.default]", "[workload.default]\ncpu_share = 0.1");
    let mut machine = SimulatedMachine::from_text("test", &machine, 1).unwrap();
    let mut benchmark = plan_benchmark("slow");
    benchmark.with_cpu = true;
    let record = run(&plan(vec![benchmark], 60, 1), &mut machine, &mut NoObserver).unwrap();
    let slow = &record.benchmarks[0];
    assert_eq!((&slow.outcome, &slow.cpu), (&GateOutcome::Slower, &None));
    assert!(slow.pairs[0].head_cpu_s.is_some());
}

#[test]
fn a_head_that_is_not_slower_may_need_more_cpu_time() {
    let machine = MACHINE.replace("base_s = 0.045", "base_s = 0.045\ncpu_share = 1.3");
    let mut machine = SimulatedMachine::from_text("test", &machine, 1).unwrap();
    let mut benchmark = plan_benchmark("fast");
    benchmark.with_cpu = true;
    let record = run(&plan(vec![benchmark], 60, 1), &mut machine, &mut NoObserver).unwrap();
    let fast = &record.benchmarks[0];
    assert_ne!(fast.outcome, GateOutcome::Slower, "{fast:?}");
    assert!(fast.cpu.as_ref().unwrap().low.unwrap() > 1.1, "{fast:?}");
}

#[test]
fn medians_that_contradict_the_pairs_are_named() {
    let mut record = gate(["same", "slow"].map(plan_benchmark).to_vec(), 60, 1);
    assert_eq!(assemble::compare_medians(&record), None);
    // Slower in its pairs, but with a lower median.
    record.benchmarks[1].base = record.benchmarks[1].head.map(|head| 1.01 * head);
    let found = assemble::compare_medians(&record).unwrap();
    assert!(
        found.sentence.starts_with("slow: believe the change"),
        "{found:?}"
    );
    // Nearly equal in its pairs, and far apart by the medians in the same direction.
    record.benchmarks[0].head = record.benchmarks[0].base.map(|base| 0.91 * base);
    let found = assemble::compare_medians(&record).unwrap();
    assert!(found.sentence.starts_with("same, slow: "), "{found:?}");
}

#[test]
fn an_undecided_gate_names_benchmarks_that_cpu_time_decides() {
    let mut record = gate(vec![plan_benchmark("same")], 60, 1);
    assert_eq!(words::describe_cpu_time(&record), "");
    record.benchmarks[0].outcome = GateOutcome::Undecided;
    assert_eq!(words::describe_cpu_time(&record), "");
    (record.benchmarks[0].low, record.benchmarks[0].high) = (Some(0.97), Some(1.05));
    let mut describe = |low: f64, high: f64| {
        let effect = serde_json::json!({
            "unit": "%", "value": 0.1, "low": null, "high": null, "text": "", "interval": "",
        });
        let cpu = serde_json::json!({
            "ratio": 1.0, "low": low, "high": high, "effect": effect, "decides": false,
        });
        record.benchmarks[0].cpu = Some(serde_json::from_value(cpu).unwrap());
        words::describe_cpu_time(&record)
    };
    let end = ": metric = \"cpu\" in the suite judges that alone. ";
    // It waits longer: to judge CPU time alone would hide that.
    assert_eq!(describe(0.999, 1.001), "");
    assert_eq!(
        describe(1.02, 1.03),
        format!("same would fail by CPU time{end}")
    );
    assert_eq!(
        describe(0.995, 1.02),
        format!("same varies less in CPU time, which decides sooner{end}")
    );
    assert_eq!(describe(0.96, 1.2), "");
}

#[test]
fn a_gate_that_fails_says_that_it_was_interrupted() {
    let text = include_str!("../../../../tests/data/records/gate.json");
    let mut record: GateRecord = serde_json::from_str(text).unwrap();
    for benchmark in &mut record.benchmarks[2..] {
        benchmark.outcome = GateOutcome::Passed;
    }
    record.benchmarks[1].outcome = GateOutcome::Undecided;
    let describe = |record: &GateRecord| words::describe_verdict(record, &GateDecision::Fail);
    assert!(describe(&record).ends_with("; encode is undecided."));
    record.stopped = Some(Stopped::Interrupted);
    let sentence = describe(&record);
    assert!(
        sentence.ends_with("; encode is undecided when interrupted."),
        "{sentence}"
    );
}

#[test]
fn a_failed_gate_is_repeated_for_the_slower_benchmarks() {
    let text = include_str!("../../../../tests/data/records/gate.json");
    let mut record: GateRecord = serde_json::from_str(text).unwrap();
    let rest = "before after --suite bench.toml --machine sim:builds.toml --budget 60s";
    let check = |record: &GateRecord, filter: &str| {
        let repeated = words::repeat_slower(record).unwrap();
        assert_eq!(repeated, format!("pinwise gate {filter}{rest}"));
    };
    check(&record, "--filter '^parse$' ");
    record.benchmarks[0].name = "parse[a.b]".to_owned();
    record.benchmarks[1].outcome = GateOutcome::Slower;
    check(&record, r"--filter '^(parse\[a\.b\]|encode)$' ");
    for benchmark in &mut record.benchmarks {
        benchmark.outcome = GateOutcome::Slower;
    }
    check(&record, "");
    record.argv.clear();
    assert_eq!(words::repeat_slower(&record), None);
}

/// Keeps what a reader sees of an undecided benchmark while the gate runs.
#[derive(Default)]
struct UndecidedRounds(Vec<(String, String)>);

impl Observer for UndecidedRounds {
    fn round(&mut self, record: &GateRecord) {
        let undecided = record.benchmarks_with(&GateOutcome::Undecided);
        let shown = undecided.filter(|b| b.high.is_some_and(|high| high < 1.0 + b.min_effect));
        self.0
            .extend(shown.map(|b| (b.standing.clone(), b.sentence.clone())));
    }
}

#[test]
fn a_benchmark_says_why_it_is_undecided_below_its_limit() {
    let slow = MACHINE.replace("base_s = 0.05\n", "base_s = 1.0\n");
    let mut machine = SimulatedMachine::from_text("test", &slow, 1).unwrap();
    let benchmark = PlannedBenchmark {
        min_effect: 0.1,
        ..plan_benchmark("same")
    };
    let mut rounds = UndecidedRounds::default();
    run(&plan(vec![benchmark], 600, 1), &mut machine, &mut rounds).unwrap();
    let (standing, sentence) = rounds.0.first().expect("a look before 22 pairs");
    assert_eq!(standing, "undecided (too few pairs)");
    assert!(
        sentence.contains(", but it takes more pairs to rule out"),
        "{sentence}"
    );
}
