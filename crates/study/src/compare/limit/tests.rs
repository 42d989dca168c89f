use super::*;
use crate::compare::{NoObserver, Tuning, run};
use pinwise_placement::Placement;
use pinwise_record::{Phase, Stopped, VerdictKind};
use pinwise_sim::SimulatedMachine;
use pinwise_topology::Topology;
use pinwise_workload::Command;

/// Compares `os-default` with single CPUs on which runs take this many times as long.
fn compare_scaled_arms(effects: &[f64], tuning: Tuning, seed: u64) -> Comparison {
    let cpus = effects.iter().enumerate();
    let costs: String = cpus
        .clone()
        .map(|(cpu, effect)| format!("\"cpu:{cpu}\" = {effect}\n"))
        .collect();
    let shape = format!("core:{} pu:1", effects.len().max(2));
    let text = format!(
        "topology = \"{shape}\"\n[workload.default]\nbase_s = 0.05\n[effects]\n{costs}[noise]\nkind = \"lognormal\"\nsd = 0.02\n"
    );
    let mut machine = SimulatedMachine::from_text("test", &text, seed).unwrap();
    let topology = Topology::from_synthetic(&shape).unwrap();
    let names = cpus.map(|(cpu, _)| format!("cpu:{cpu}"));
    let names = std::iter::once("os-default".to_owned()).chain(names);
    let places: Vec<Placement> = names.map(|name| name.parse().unwrap()).collect();
    let command = Command::from_line("prog").unwrap();
    let plan = ComparePlan {
        tuning: Tuning {
            budget: None,
            ..tuning
        },
        seed,
        ..ComparePlan::compare_placements(command, &topology, &places).unwrap()
    };
    run(&plan, &mut machine, &mut NoObserver).unwrap()
}

fn tuning_with_limit(max_runs: usize) -> Tuning {
    Tuning {
        max_runs: Some(max_runs),
        limit: Some(0.02),
        ..Tuning::default()
    }
}

fn limits(record: &Comparison) -> Vec<&LimitRecord> {
    let contrasts = record.contrasts.iter();
    contrasts.map(|c| c.limit.as_ref().unwrap()).collect()
}

#[test]
fn runs_stop_as_soon_as_the_limit_is_decided() {
    for (effect, outcome) in [(1.05, GateOutcome::Slower), (0.99, GateOutcome::Passed)] {
        for seed in 0..6 {
            let record = compare_scaled_arms(&[effect], tuning_with_limit(200), seed);
            let [limit] = limits(&record)[..] else {
                panic!("{record:?}")
            };
            assert_eq!(limit.outcome, outcome, "{}", limit.sentence);
            assert_eq!(record.stopped, Some(Stopped::Precision));
            let contrast = &record.contrasts[0];
            match outcome {
                GateOutcome::Slower => assert!(contrast.low.unwrap() > 1.02),
                _ => assert!(contrast.high.unwrap() <= 1.02),
            }
        }
    }
}

#[test]
fn an_arm_exactly_at_the_limit_stays_undecided_to_the_end() {
    // 2 % slower with a limit of 2 %: neither side of the limit can be claimed.
    let records = (0..8).map(|seed| compare_scaled_arms(&[1.02], tuning_with_limit(60), seed));
    let is_undecided = |record: &Comparison| limits(record)[0].outcome == GateOutcome::Undecided;
    let records: Vec<Comparison> = records.collect();
    let undecided: Vec<&Comparison> = records.iter().filter(|r| is_undecided(r)).collect();
    assert!(undecided.len() >= 6, "{} of 8", undecided.len());
    for record in undecided {
        assert_eq!(record.stopped, Some(Stopped::Runs));
        assert!(record.blocks >= 58, "{}", record.blocks);
        let sentence = &limits(record)[0].sentence;
        assert!(
            sentence.starts_with("cpu:0 is undecided at 2.0 %: between "),
            "{sentence}"
        );
    }
}

#[test]
fn requiring_a_verdict_beside_the_limit_takes_more_runs() {
    let passed = compare_scaled_arms(&[1.0], tuning_with_limit(300), 1);
    let tuning = Tuning {
        requires_verdict: true,
        ..tuning_with_limit(300)
    };
    let decided = compare_scaled_arms(&[1.0], tuning, 1);
    assert!(passed.blocks < decided.blocks);
    assert_eq!(passed.verdict.kind, VerdictKind::Undecided);
    assert_eq!(passed.verdict.sentence, limits(&passed)[0].sentence);
    let passes =
        "cpu:0 is not slower than os-default by more than 2.0 % in the typical run: at most ";
    assert!(
        passed.verdict.sentence.starts_with(passes),
        "{:?}",
        passed.verdict
    );
    assert_ne!(decided.verdict.kind, VerdictKind::Undecided);
    assert_eq!(limits(&decided)[0].outcome, GateOutcome::Passed);
}

#[test]
fn with_a_limit_no_arm_is_screened_or_dropped() {
    let mut effects = [1.0; 9];
    // Far ahead of the others, so that they would be dropped without a limit.
    effects[8] = 0.8;
    effects[3] = 1.1;
    let record = compare_scaled_arms(&effects, tuning_with_limit(150), 1);
    assert_eq!(record.contrasts.len(), 9);
    for (cpu, limit) in limits(&record).into_iter().enumerate() {
        let expected = match cpu {
            3 => GateOutcome::Slower,
            _ => GateOutcome::Passed,
        };
        assert_eq!(limit.outcome, expected, "{}", limit.sentence);
    }
    let mut runs = record.arms.iter().flat_map(|arm| &arm.runs);
    assert!(runs.all(|run| run.phase != Phase::Screening));
}
