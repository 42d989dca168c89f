use super::worlds::{JointMachine, JointWorld};
use super::*;
use crate::compare::NoObserver;
use pinwise_record::{ContrastVerdict, LimitState, Stopped, VerdictKind};
use pinwise_topology::CpuSet;
use pinwise_workload::joint::RoundReport;

fn plan(world: &JointWorld, seed: u64) -> JointSearch {
    JointSearch {
        programs: world.file.clone(),
        runner: vec!["round".to_owned()],
        max_rounds: 80,
        pairs: 10,
        budget: None,
        min_effect: 0.01,
        timeout: None,
        seed,
        id: "id".to_owned(),
        argv: Vec::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        tags: Vec::new(),
        past: PastRounds::default(),
    }
}

/// The answer of a search, and how much more it costs than the best plan, relative.
struct Replay {
    programs: usize,
    /// Compared with the best of the first plans.
    regret: f64,
    /// Compared with the best plan that moving cores makes of those.
    regret_of_all: f64,
    /// Are the limits kept, if any plan keeps them?
    kept: bool,
    rounds: usize,
    /// How much less the best plan costs than no placement, relative.
    gain: f64,
    sentence: String,
}

fn replay(seed: u64) -> Replay {
    let world = JointWorld::draw(seed);
    let mut machine = JointMachine::new(&world, seed);
    let record = run(&plan(&world, seed), &mut machine, &mut NoObserver).unwrap();
    let (structured, best) = world.best();
    let joint = record.joint.as_ref().unwrap();
    let placed: Place = joint
        .programs
        .iter()
        .map(|program| CpuSet::parse_list(&program.cpus).unwrap())
        .collect();
    let default: Place = vec![world.topology.allowed.clone(); placed.len()];
    let answer = match record.verdict.kind {
        VerdictKind::Best => &placed,
        _ => &default,
    };
    let (cost, kept) = world.truth(answer);
    Replay {
        programs: placed.len(),
        regret: (cost - structured).exp_m1(),
        regret_of_all: (cost - best).exp_m1(),
        kept: kept || best > 500.0,
        rounds: machine.rounds,
        gain: -(best - world.truth(&default).0).exp_m1(),
        sentence: record.verdict.sentence,
    }
}

/// Seven worlds that are searched within a second, and one of six programs with a limit; sixty with
/// `PINWISE_REPLAYS=all`.
fn seeds_to_replay() -> Vec<u64> {
    match std::env::var("PINWISE_REPLAYS") {
        Ok(which) if which == "all" => (0..60).collect(),
        _ => (3..10).chain([24]).collect(),
    }
}

#[test]
fn nine_of_ten_answers_within_80_rounds_cost_at_most_3_percent_more_than_the_best() {
    let replay_and_print = |seed: u64| {
        let replay = replay(seed);
        println!(
            "{seed}: {} programs, regret {:.3}, {:.3} of all, gain {:.3}, limits {}, {} rounds: {}",
            replay.programs,
            replay.regret,
            replay.regret_of_all,
            replay.gain,
            if replay.kept { "kept" } else { "broken" },
            replay.rounds,
            replay.sentence,
        );
        replay
    };
    let replays: Vec<Replay> = seeds_to_replay()
        .into_iter()
        .map(replay_and_print)
        .collect();
    assert!(replays.iter().all(|replay| replay.rounds <= 80));
    let good = replays.iter().filter(|r| r.kept && r.regret <= 0.03);
    let good = good.count();
    println!("{good} of {} within 3 %", replays.len());
    assert!(10 * good >= 9 * replays.len(), "{good}");
}

#[test]
fn the_record_has_figures_and_limits_of_each_program() {
    let world = JointWorld::draw(6);
    let mut machine = JointMachine::new(&world, 6);
    let record = run(&plan(&world, 6), &mut machine, &mut NoObserver).unwrap();
    let joint = record.joint.as_ref().unwrap();
    assert_eq!(joint.programs.len(), world.file.len());
    let rounds: usize = joint.tried.iter().map(|trial| trial.figures.len()).sum();
    assert_eq!(rounds + 1, joint.rounds);
    for program in &joint.programs {
        assert!(program.default_value.is_some() && program.placed_value.is_some());
        assert_eq!(program.limit.is_some(), program.placed_limit.is_some());
        assert!(!program.change.is_empty());
    }
    assert_eq!(record.metric.name, "joint cost");
    let headline = record.verdict.headline.as_ref().unwrap();
    assert!(
        headline.of.starts_with("the joint cost of "),
        "{headline:?}"
    );
    assert!(record.title().starts_with("joint plan: p0, p1"));
    if record.verdict.kind == VerdictKind::Best {
        let first = &record.verdict.commands[0].line;
        assert_eq!(first, "pinwise apply id --as systemd");
    }
    assert_ne!(joint.programs[0].placed_limit, Some(LimitState::Broken));
}

#[test]
fn the_name_of_a_plan_has_the_programs_that_it_places() {
    let mut search = plan(&JointWorld::draw(6), 6);
    let programs = [search.programs.clone(), search.programs.clone()].concat();
    search.programs = programs.into_iter().cycle().take(4).collect();
    let topology = Topology::from_synthetic("core:4 pu:1").unwrap();
    let space = Space::from_topology(&topology);
    let name = |cpus: [&str; 4]| {
        let place: Place = cpus.map(|cpus| CpuSet::parse_list(cpus).unwrap()).to_vec();
        name_plan(&search, &place, &topology, &space)
    };
    let [first, second] = [0, 1].map(|at| search.programs[at].name.clone());
    assert_eq!(name(["0-3"; 4]), "os-default");
    let one = name(["0-3", "1", "0-3", "0-3"]);
    assert!(one.starts_with(&format!("{second} on ")), "{one}");
    assert!(!one.contains("os-default"), "{one}");
    let all = name(["0", "1", "2", "3"]);
    assert!(all.starts_with(&format!("{first} on ")), "{all}");
    assert!(all.ends_with(" and 2 more"), "{all}");
}

#[test]
fn an_undecided_plan_that_costs_more_than_none_does_not_lead() {
    let world = JointWorld::draw(3);
    let mut machine = JointMachine::new(&world, 3);
    let mut record = run(&plan(&world, 3), &mut machine, &mut NoObserver).unwrap();
    let joint = record.joint.take().unwrap();
    let contrast = &mut record.contrasts[0];
    contrast.verdict = ContrastVerdict::Undecided;
    contrast.effect.interval.clear();
    contrast.ratio = 1.087;
    record.stopped = Some(Stopped::Budget);
    let mut search = plan(&world, 3);
    conclusion::write_verdict(&mut record, &joint, &search);
    let sentence = &record.verdict.sentence;
    assert!(
        sentence.contains("nothing beats os-default so far"),
        "{sentence}"
    );
    assert!(!sentence.contains("()"), "{sentence}");
    assert!(record.verdict.advice.contains("--budget"));
    // So many pairs as the width asks for, in the copied command.
    search.argv = ["pinwise", "search", "--joint", "f.toml", "--confirm", "6"]
        .map(str::to_owned)
        .to_vec();
    (record.stopped, record.blocks) = (Some(Stopped::Runs), 6);
    let contrast = &mut record.contrasts[0];
    (contrast.ratio, contrast.low, contrast.high) = (0.95, Some(0.88), Some(1.02));
    conclusion::write_verdict(&mut record, &joint, &search);
    let [command] = record.verdict.commands.as_slice() else {
        panic!("{:?}", record.verdict);
    };
    assert_eq!(
        command.line,
        "pinwise search --confirm 19 --max-runs 57 --joint f.toml"
    );
    record.contrasts[0].ratio = 0.999;
    conclusion::write_verdict(&mut record, &joint, &search);
    assert!(record.verdict.commands.is_empty());
}

#[test]
fn a_program_that_fails_is_named_with_its_position_in_the_file() {
    let world = JointWorld::draw(7);
    let fail_in_round = |at: usize, report: RoundReport| {
        let mut machine = JointMachine::new(&world, 7);
        machine.failure = Some((at, report));
        let result = run(&plan(&world, 7), &mut machine, &mut NoObserver);
        result.map(|_| ()).map_err(|error| error.to_string())
    };
    let ended = RoundReport {
        programs: Vec::new(),
        failure: Some((1, "it failed, with exit status 3".to_owned())),
    };
    let error = fail_in_round(0, ended.clone()).unwrap_err();
    assert!(
        error.contains(": p1: it failed, with exit status 3"),
        "{error}"
    );
    assert!(
        error.starts_with(&world.file[1].position.to_string()),
        "{error}"
    );
    let mut figures = vec![1.0; world.file.len()];
    figures[0] = 0.001;
    let programs = figures
        .into_iter()
        .map(|wall_s| pinwise_workload::joint::RoundFigures {
            wall_s,
            output: String::new(),
        });
    let brief = RoundReport {
        programs: programs.collect(),
        failure: None,
    };
    let error = fail_in_round(0, brief).unwrap_err();
    assert!(error.contains("p0: it ended after 1.0 ms"), "{error}");
    // A placement under which a program fails is left out.
    assert_eq!(fail_in_round(2, ended), Ok(()));
}

#[test]
fn an_interrupted_search_keeps_its_rounds() {
    let world = JointWorld::draw(7);
    let interrupt_in = |round: usize| {
        let mut machine = JointMachine::new(&world, 7);
        machine.interrupted = Some(round);
        run(&plan(&world, 7), &mut machine, &mut NoObserver)
    };
    let record = interrupt_in(5).unwrap();
    assert_eq!(record.stopped, Some(Stopped::Interrupted));
    let joint = record.joint.as_ref().unwrap();
    let tried: usize = joint.tried.iter().map(|trial| trial.figures.len()).sum();
    assert_eq!((joint.rounds, tried), (5, 4));
    let sentence = &record.verdict.sentence;
    assert!(
        sentence.contains("interrupted after 5 rounds of the search. p0 on "),
        "{sentence}"
    );
    assert_eq!(record.verdict.kind, VerdictKind::Undecided);
    // Before the first placement has run, there is nothing to record.
    for round in [0, 1] {
        let error = interrupt_in(round).unwrap_err();
        assert!(error.is_interrupt(), "{error}");
    }
}

/// Only the first round, which checks that all programs can be measured together, runs again.
#[test]
fn a_resumed_search_makes_the_choices_of_an_uninterrupted_one() {
    let world = JointWorld::draw(7);
    let run_search = |search: &JointSearch, interrupted: Option<usize>| {
        let mut machine = JointMachine::new(&world, 7);
        machine.interrupted = interrupted;
        // Without noise, figures depend on the plan alone.
        machine.is_quiet = true;
        let record = run(search, &mut machine, &mut NoObserver).unwrap();
        (record.joint.unwrap(), machine.rounds)
    };
    let (whole, rounds) = run_search(&plan(&world, 7), None);
    let (part, made) = run_search(&plan(&world, 7), Some(7));
    assert_eq!((part.rounds, made), (7, 7));
    let mut rest = plan(&world, 7);
    rest.past.tried = part.tried;
    let (resumed, made) = run_search(&rest, None);
    assert_eq!(resumed, whole);
    assert_eq!(made, rounds - 6);
    // The time of the interrupted search counts against the budget.
    rest.budget = Some(Duration::from_secs(1000));
    rest.past.spent = Duration::from_secs(700);
    let (stopped, _) = run_search(&rest, None);
    assert!(stopped.rounds < whole.rounds, "{}", stopped.rounds);
}

#[test]
fn plans_with_settings_out_of_range_are_rejected() {
    let world = JointWorld::draw(3);
    let reject = |change: fn(&mut JointSearch)| {
        let mut search = plan(&world, 3);
        change(&mut search);
        let mut machine = JointMachine::new(&world, 3);
        let error = run(&search, &mut machine, &mut NoObserver).unwrap_err();
        assert_eq!(machine.rounds, 0);
        error.to_string()
    };
    assert!(reject(|search| search.pairs = 5).contains("--confirm 5"));
    assert!(reject(|search| search.max_rounds = 30).contains("--max-runs 30"));
    assert!(reject(|search| search.min_effect = 0.0).contains("--min-effect"));
}
