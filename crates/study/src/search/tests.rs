use proptest::prelude::*;

use super::*;
use crate::error::StudyError;
use pinwise_machine::Host;
use pinwise_record::{
    NotRecommended, PairsVerdict, SearchAnswer, SearchStep, SearchVerdict, Stopped,
};
use pinwise_sim::SimulatedMachine;
use pinwise_sim::world::{self, World};
use pinwise_stats::describe::quantile;
use pinwise_workload::Command;

fn plan(threads: &[usize], seed: u64) -> SearchPlan {
    SearchPlan {
        workload: Workload::new(Command::from_line("sim-workload").unwrap()),
        threads: threads.to_vec(),
        sets_threads: threads.len() > 1,
        default_threads: threads[threads.len() - 1],
        default_is_counted: false,
        min_effect: 0.01,
        max_slowdown: 0.05,
        metric: Metric::wall(),
        unit: String::new(),
        max_runs: Some(200),
        budget: None,
        confirmation_pairs: 30,
        warmup: 0,
        seed,
        output: Output::Discard,
        id: "id".to_owned(),
        argv: Vec::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        tags: Vec::new(),
    }
}

fn machine(text: &str, seed: u64) -> SimulatedMachine {
    SimulatedMachine::from_text("test", text, seed).unwrap()
}

fn search(text: &str, plan: &SearchPlan) -> SearchRecord {
    run(plan, None, &mut machine(text, plan.seed), &mut NoObserver).unwrap()
}

const SERVER: &str = "package:2 l3:2 core:4 pu:2";

/// The first four of twelve seeds; all with `PINWISE_REPLAYS=all`.
fn seeds_to_replay() -> std::ops::Range<u64> {
    match std::env::var("PINWISE_REPLAYS") {
        Ok(which) if which == "all" => 1..13,
        _ => 1..5,
    }
}

fn search_worlds(world: World, seeds: std::ops::Range<u64>) -> Vec<SearchRecord> {
    seeds
        .map(|seed| {
            let text = world::describe_on(world, seed, SERVER, 8);
            search(&text, &plan(&[8], seed))
        })
        .collect()
}

#[test]
fn answers_are_nearly_the_best_within_60_runs() {
    for world in [World::Fits, World::Misfits, World::Useless] {
        let found = search_worlds(world, seeds_to_replay());
        let regrets: Vec<f64> = found.iter().filter_map(|r| r.true_regret).collect();
        assert!(
            6 * regrets.len() >= 5 * found.len(),
            "{world:?}: {regrets:?}"
        );
        assert!(quantile(&regrets, 0.5) <= 0.01, "{world:?}: {regrets:?}");
        assert!(quantile(&regrets, 0.9) <= 0.06, "{world:?}: {regrets:?}");
        let runs: Vec<f64> = found.iter().map(|r| r.runs_used as f64).collect();
        assert!(quantile(&runs, 0.5) <= 60.0, "{world:?}: {runs:?}");
    }
}

#[test]
fn programs_to_which_placement_does_not_matter_are_recognised() {
    let records = search_worlds(World::Flat, 1..13);
    let is_recognised = |r: &&SearchRecord| r.verdict.kind == SearchAnswer::DoesNotMatter;
    // If fresh pairs are undecided, the answer is to leave it alone.
    assert!(
        12 * records.iter().filter(is_recognised).count() >= 7 * records.len(),
        "{:?}",
        verdicts(&records)
    );
    let is_left_alone = |r: &&SearchRecord| r.verdict.kind == SearchAnswer::LeaveAlone;
    assert!(
        records
            .iter()
            .filter(|r| is_recognised(r) || is_left_alone(r))
            .count()
            + 1
            >= records.len(),
        "{:?}",
        verdicts(&records)
    );
    // Fresh pairs are judged at 95 %: one of twelve may err.
    let is_best = |r: &&SearchRecord| r.verdict.kind == SearchAnswer::Best;
    let wrong = records.iter().filter(is_best).count();
    assert!(wrong <= 1, "{:?}", verdicts(&records));
    let found = search_worlds(World::Useless, 1..13);
    assert!(
        found.iter().filter(is_recognised).count() <= 1,
        "{:?}",
        verdicts(&found)
    );
}

fn verdicts(records: &[SearchRecord]) -> Vec<&str> {
    records
        .iter()
        .map(|r| r.verdict.sentence.as_str())
        .collect()
}

/// The program fails on its best CPUs; most other placements are equal.
const FAILING: &str = r#"
topology = "package:2 l3:2 core:4 pu:2"
[workload.default]
base_s = 1.0
threads = 4
fails = ["shape:pkg=1,llc=1,core=4,cpu=4"]
[effects]
"shape:pkg=1,llc=1,core=4,cpu=4" = 0.5
"shape:pkg=2,llc=4,core=4,cpu=4" = 0.8
[noise]
sd = 0.02
"#;

#[test]
fn an_arm_that_fails_never_wins() {
    for seed in 1..6 {
        let record = search(FAILING, &plan(&[4], seed));
        let crashed = "shape:pkg=1,llc=1,core=4,cpu=4";
        assert_ne!(record.best.as_deref(), Some(crashed));
        assert!(record.predictions.iter().all(|arm| arm.arm != crashed));
        let arm = record.arms.iter().find(|arm| arm.name == crashed).unwrap();
        if record
            .runs
            .iter()
            .any(|run| record.arms[run.arm].name == crashed)
        {
            assert!(arm.invalid.is_some());
            assert!(record.findings.iter().any(|f| f.check == "failed_arm"));
        }
        assert_eq!(
            record.best.as_deref(),
            Some("shape:pkg=2,llc=4,core=4,cpu=4")
        );
    }
}

#[test]
fn the_best_has_commands_of_launchers_but_os_default_has_none() {
    let whats = |record: &SearchRecord| -> Vec<String> {
        let commands = record.verdict.commands.iter();
        commands.map(|command| command.what.clone()).collect()
    };
    let best = search(FAILING, &plan(&[4], 1));
    assert_eq!(
        whats(&best),
        ["taskset", "pinwise", "systemd", "Slurm", "Docker", "OpenMP"]
            .map(|tool| format!("with {tool}"))
    );
    let cpus = &best
        .arms
        .iter()
        .find(|arm| Some(&arm.name) == best.best.as_ref())
        .unwrap()
        .cpus;
    let docker = &best.verdict.commands[4].line;
    assert_eq!(
        *docker,
        format!("docker run --rm -i --cpuset-cpus={cpus} IMAGE sim-workload")
    );
    let none = search_worlds(World::Flat, 1..4);
    let left: Vec<_> = none
        .iter()
        .filter(|r| r.best.as_deref() == Some("os-default"))
        .collect();
    assert!(!left.is_empty());
    assert!(left.iter().all(|record| whats(record).is_empty()));
}

#[test]
fn a_command_that_fails_everywhere_is_an_error() {
    let text = "topology = \"core:4 pu:2\"\n[workload.default]\nbase_s = 1.0\nexit = 7\n";
    let mut machine = machine(text, 1);
    let error = run(&plan(&[2], 1), None, &mut machine, &mut NoObserver).unwrap_err();
    assert!(error.to_string().contains("exit status 7"), "{error}");
}

#[test]
fn a_budget_that_is_too_small_leaves_the_search_undecided() {
    let text = world::describe_on(World::Misfits, 3, SERVER, 8);
    for most in [1, 2, 6] {
        let plan = SearchPlan {
            max_runs: Some(most),
            confirmation_pairs: 2,
            ..plan(&[8], 3)
        };
        let record = search(&text, &plan);
        assert!(record.runs_used <= most);
        assert_eq!(record.best, None);
        assert_eq!(record.verdict.kind, SearchAnswer::Undecided);
        assert_eq!(record.stopped, Some(Stopped::Runs));
        assert!(
            record.verdict.advice.contains("--max-runs"),
            "{:?}",
            record.verdict
        );
    }
}

#[test]
fn a_resumed_search_ends_like_an_uninterrupted_one() {
    let text = world::describe_on(World::Misfits, 4, SERVER, 8);
    let plan = plan(&[8], 4);
    let whole = search(&text, &plan);
    let mut cut = whole.clone();
    cut.runs.truncate(9);
    cut.stopped = None;
    let mut again = machine(&text, plan.seed);
    let resumed = run(&plan, Some(&cut), &mut again, &mut NoObserver).unwrap();
    assert_eq!(resumed, whole);
}

#[test]
fn every_block_of_the_search_runs_os_default_and_the_winner_is_measured_afresh() {
    let text = world::describe_on(World::Fits, 2, SERVER, 8);
    let record = search(&text, &plan(&[8], 2));
    let blocks = record.runs.iter().map(|run| run.run.block).max().unwrap();
    for block in 0..=blocks {
        let is_least = |run: &&pinwise_record::SearchRun| {
            matches!(run.step, SearchStep::Least | SearchStep::OtherCpus)
        };
        let mut of_block = record.runs.iter().filter(|run| run.run.block == block);
        if of_block.clone().any(|run| is_least(&run)) {
            continue;
        }
        assert!(of_block.any(|run| run.arm == 0), "block {block}");
    }
    let chosen = record
        .runs
        .iter()
        .position(|run| run.step == SearchStep::Confirmation);
    if let Some(confirmation) = &record.confirmation {
        let fresh = &record.runs[chosen.unwrap()..];
        assert!(fresh.iter().all(|run| run.step.is_confirmation()));
        let pairs = record.least.as_ref().map_or(0, |least| least.pairs);
        let others: usize = record.other_cpus.iter().map(|other| other.pairs).sum();
        assert!(others > 0);
        assert_eq!(fresh.len(), 2 * (confirmation.pairs + others + pairs));
    }
}

#[test]
fn a_slow_core_is_avoided_by_the_same_shape_on_other_cpus() {
    let text = |slow: &str| {
        format!(
            "topology = \"package:2 l3:2 core:4 pu:2\"\n[performance]\n\
             policy = \"random-idle\"\n{slow}[workload.default]\nbase_s = 8.0\nthreads = 4\n\
             [workload.default.demand]\nsplit = \"static\"\nexchanges_per_s = 1e6\n\
             [noise]\nsd = 0.01\n"
        )
    };
    let alike = search(&text(""), &plan(&[4], 1));
    assert_eq!(
        alike.verdict.kind,
        SearchAnswer::Best,
        "{:?}",
        alike.verdict
    );
    assert!(alike.best.unwrap().starts_with("shape:"));
    assert!(
        !alike
            .header
            .findings
            .iter()
            .any(|f| f.check == "unlike_cpus")
    );

    // Every shape uses the slow core, so that os-default leads.
    let unlike = search(
        &text("slow_cpus = \"2-3\"\nslow_speed = 0.8\n"),
        &plan(&[4], 1),
    );
    assert_eq!(
        unlike.other_cpus.last().unwrap().verdict,
        PairsVerdict::Faster
    );
    let best = unlike.best.clone().unwrap();
    assert!(best.starts_with("cpu:"), "{best}");
    assert_eq!(unlike.verdict.advice, format!("Use {best}."));
    assert!(unlike.true_regret.unwrap() < 0.01, "{:?}", unlike.truth);
    let finding = unlike.findings.iter().find(|f| f.check == "unlike_cpus");
    let advice = &finding.unwrap().advice;
    assert!(advice.contains("taskset -c LIST"), "{advice}");
    let confirmation = unlike.confirmation.unwrap();
    assert_eq!(
        (confirmation.arm, confirmation.verdict),
        (best, PairsVerdict::Faster)
    );
    assert_eq!(unlike.least, None);
}

#[test]
fn numbers_of_threads_are_searched_together() {
    let text = "topology = \"package:1 l3:2 core:4 pu:1\"\n[performance]\n\
                [workload.default]\nbase_s = 1.0\nthreads = 8\n\
                [workload.default.demand]\nserial = 0.0\n[noise]\nsd = 0.02\n";
    let record = search(text, &plan(&[1, 2, 4, 8], 5));
    let one = record
        .predictions
        .iter()
        .find(|arm| arm.arm.ends_with("1 thread"));
    let ratio = one.unwrap().ratio;
    assert!(
        (4.0..12.0).contains(&ratio),
        "{ratio}: eight threads do eight times the work"
    );
    assert_eq!(
        record.best.as_deref(),
        Some("os-default"),
        "{:?}",
        record.verdict
    );
}

#[test]
fn with_a_single_placement_a_comparison_is_suggested() {
    let mut plan = plan(&[2], 1);
    plan.sets_threads = true;
    plan.argv = ["pinwise", "search", "--threads", "2", "--", "prog"]
        .map(str::to_owned)
        .to_vec();
    let mut two = machine("topology = \"core:2 pu:1\"", 1);
    let error = run(&plan, None, &mut two, &mut NoObserver).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing to search: 2 threads with a CPU each have one placement here; fewer CPUs are \
         tried by: pinwise compare --threads-env 2 -- prog"
    );
}

#[test]
fn one_cpu_leaves_nothing_to_search() {
    let error = run(
        &plan(&[1], 1),
        None,
        &mut machine("topology = \"pu:1\"", 1),
        &mut NoObserver,
    );
    assert!(error.unwrap_err().to_string().contains("nothing to search"));
    let error = run(
        &plan(&[9], 1),
        None,
        &mut machine("topology = \"core:4 pu:2\"", 1),
        &mut NoObserver,
    );
    assert!(error.unwrap_err().to_string().contains("--threads 9"));
}

#[test]
fn a_placement_found_on_a_busy_machine_is_not_recommended() {
    let load = "[noise.load]\nmost_cpus = 20.0\ndwell_s = 1e6\n";
    let searched = |seed: u64, more: &str| {
        let text = world::describe_on(World::Fits, seed, SERVER, 8);
        let found = search(&format!("{text}\n{more}"), &plan(&[8], seed));
        (found.verdict.kind == SearchAnswer::Best).then_some(found.verdict)
    };
    let mut both = (1..13).filter_map(|seed| searched(seed, "").zip(searched(seed, load)));
    let is_recommended = |quiet: &SearchVerdict| quiet.not_recommended.is_none();
    let (quiet, busy) = both.find(|(quiet, _)| is_recommended(quiet)).unwrap();
    assert!(!quiet.commands.is_empty());
    assert_eq!(busy.not_recommended, Some(NotRecommended::BusyMachine));
    assert!(busy.commands.is_empty());
    let words = "No placement is recommended while other processes use ";
    assert!(busy.advice.starts_with(words), "{}", busy.advice);
}

#[test]
fn a_small_gain_that_leaves_no_other_core_is_not_recommended() {
    let searched = |gain: f64| {
        let text = FAILING
            .replace("fails = [\"shape:pkg=1,llc=1,core=4,cpu=4\"]\n", "")
            .replace("= 0.5", &format!("= {}", 1.0 - gain));
        search(&text.replace("= 0.8", "= 1.0"), &plan(&[4], 1)).verdict
    };
    let (small, large) = (searched(0.06), searched(0.3));
    assert_eq!(small.kind, SearchAnswer::Best, "{}", small.sentence);
    assert_eq!(small.not_recommended, Some(NotRecommended::QuietOnly));
    let words = " was not seen there, and on 4 cores this program cannot move away ";
    assert!(small.advice.contains(words), "{}", small.advice);
    let command = ": pinwise apply id --arm shape:pkg=1,llc=1,core=4,cpu=4";
    assert!(small.advice.ends_with(command), "{}", small.advice);
    assert_eq!(large.not_recommended, None);
}

#[test]
fn predictions_hold_here_and_on_another_machine() {
    let text = world::describe_on(World::Fits, 6, SERVER, 8);
    let record = search(&text, &plan(&[8], 6));
    let mut small = machine("topology = \"package:1 l3:2 core:4 pu:2\"", 1);
    let (there, _) = small.topology().unwrap();
    let request = |cpus: &str| predict::PredictionRequest {
        name: cpus.to_owned(),
        cpus: pinwise_topology::CpuSet::parse_list(cpus).unwrap(),
        threads: 8,
    };
    let forecasts = predict::predict(&record, &there, &[request("0-7"), request("0-15")]).unwrap();
    assert_eq!(forecasts[0].cost, None);
    assert!(forecasts[0].low <= forecasts[0].ratio && forecasts[0].ratio <= forecasts[0].high);
    let (here, _) = machine(&text, 1).topology().unwrap();
    let forecasts = predict::predict(&record, &here, &[request("0-7")]).unwrap();
    let arm = record.arms.iter().position(|arm| arm.cpus == "0-7");
    if let Some(arm) = arm {
        let searched = &record.predictions[arm];
        assert!((forecasts[0].cost.unwrap() / searched.predicted - 1.0).abs() < 0.02);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_small_search_ends_within_its_runs(
        packages in 1usize..3, caches in 1usize..3, cores in 1usize..4, pus in 1usize..3,
        share in 0usize..=100, runs in 1usize..40, seed in 0u64..1000,
    ) {
        let topology = format!("package:{packages} l3:{caches} core:{cores} pu:{pus}");
        let cpus = packages * caches * cores * pus;
        let threads = 1 + share * (cpus - 1) / 100;
        let plan = SearchPlan { max_runs: Some(runs), ..plan(&[threads], seed) };
        let text = world::describe_on(World::Misfits, seed, &topology, threads);
        match run(&plan, None, &mut machine(&text, seed), &mut NoObserver) {
            Ok(record) => {
                prop_assert!(record.runs_used <= runs);
                prop_assert!(record.predictions.iter().all(|p| p.predicted.is_finite()));
            }
            Err(StudyError::Plan(text)) => prop_assert!(text.contains("nothing to search")),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
