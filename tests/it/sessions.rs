//! Pairs of experiments whose truth is known, and what `diff` reports of them. Each is simulated
//! with its own seed, as if they ran on different days. Used by the tests and by `lab`.

use std::ops::Range;

use pinwise_machine::Host;
use pinwise_placement::Placement;
use pinwise_record::{ChangeVerdict, Comparison, DiffRecord, StoredRecord, Summary};
use pinwise_sim::SimulatedMachine;
use pinwise_study::change::{ChangeError, Side, compare_records};
use pinwise_study::compare::{self, ComparePlan, NoObserver, Tuning};
use pinwise_workload::Command;

/// A comparison of `os-default` and `arms − 1` CPUs, of which the first takes
/// `effect` times as long as the others.
pub(crate) fn run_experiment(
    noise: &str,
    base_s: f64,
    effect: f64,
    arms: usize,
    seed: u64,
) -> Comparison {
    let text = format!(
        "topology = \"core:6 pu:1\"\n[workload.default]\nbase_s = {base_s}\n[effects]\n\"cpu:0\" = {effect}\n[noise]\n{noise}\n"
    );
    let mut machine = SimulatedMachine::from_text("machine", &text, seed).expect("a description");
    let (topology, _) = machine.topology().expect("a topology");
    let cpus = (1..arms).map(|cpu| format!("cpu:{}", cpu - 1));
    let placements: Vec<Placement> = std::iter::once("os-default".to_owned())
        .chain(cpus)
        .map(|name| name.parse().expect("a placement"))
        .collect();
    let command = Command::from_line("prog").expect("a command");
    let plan = ComparePlan {
        id: format!("{seed}"),
        tuning: Tuning {
            budget: None,
            max_runs: Some(30),
            precision: Some(1e-4),
            ..Tuning::default()
        },
        seed,
        ..ComparePlan::compare_placements(command, &topology, &placements).expect("a plan")
    };
    compare::run(&plan, &mut machine, &mut NoObserver).expect("a record")
}

pub(crate) fn diff(a: &Comparison, b: &Comparison) -> Result<DiffRecord, ChangeError> {
    let parts = [a, b].map(|record| {
        let text = serde_json::to_string(record).expect("JSON");
        (record.entry(), Summary::from_json(&text), text)
    });
    let [a, b] = [&parts[0], &parts[1]].map(|(entry, summary, record)| Side {
        entry,
        summary,
        record,
    });
    compare_records(a, b)
}

/// Counts of what `diff` reports of pairs of experiments. The second one is slower as a whole, and
/// one of its arms has an effect.
#[derive(Debug, Default)]
pub(crate) struct SessionTally {
    /// Any arm is reported to have changed.
    pub(crate) claims: u32,
    /// Verdicts on the arm that may have changed.
    pub(crate) lower: u32,
    pub(crate) higher: u32,
    pub(crate) same: u32,
}

pub(crate) fn tally_pairs(
    noise: &str,
    effect: f64,
    arms: usize,
    pairs: Range<u64>,
) -> SessionTally {
    let mut found = SessionTally::default();
    for pair in pairs {
        let a = run_experiment(noise, 0.066, 1.0, arms, 2 * pair);
        let b = run_experiment(noise, 0.066 * 1.03, effect, arms, 2 * pair + 1);
        let diff = diff(&a, &b).expect("two comparisons");
        let is_claim = |verdict| matches!(verdict, ChangeVerdict::Lower | ChangeVerdict::Higher);
        found.claims += u32::from(diff.figures.iter().any(|figure| is_claim(figure.verdict)));
        match diff.figures[0].verdict {
            ChangeVerdict::Lower => found.lower += 1,
            ChangeVerdict::Higher => found.higher += 1,
            ChangeVerdict::Same => found.same += 1,
            ChangeVerdict::CannotTell => {}
        }
    }
    found
}
