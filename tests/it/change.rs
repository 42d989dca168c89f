//! What `pinwise diff` says of two experiments whose truth is known: each is
//! simulated with a seed of its own, as two that ran on different days.

use pinwise::machine::Machine;
use pinwise::machine::sim::SimulatedMachine;
use pinwise::record::{ChangeVerdict, Comparison, DiffRecord, Keepsake, Outline};
use pinwise::study::change::{Side, between};
use pinwise::study::compare::{self, Plan, Tuning, Unwatched};
use pinwise::workload::Command;

use crate::replay::recorded;

/// A comparison of `os-default` and one CPU, where everything takes `base_s`.
fn experiment(noise: &str, base_s: f64, blocks: usize, seed: u64) -> Comparison {
    let text = format!(
        "topology = \"core:2 pu:1\"\n[workload.default]\nbase_s = {base_s}\n[noise]\n{noise}\n"
    );
    let mut machine = SimulatedMachine::from_text("machine", &text, seed).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let placements = ["os-default", "cpu:0"].map(|name| name.parse().unwrap());
    let command = Command::from_line("prog").unwrap();
    let plan = Plan {
        id: format!("{seed}"),
        tuning: Tuning {
            budget: None,
            max_runs: Some(blocks),
            ..Tuning::default()
        },
        seed,
        ..Plan::of_placements(command, &topology, &placements).unwrap()
    };
    compare::run(&plan, &mut machine, &mut Unwatched).unwrap()
}

fn diff(a: &Comparison, b: &Comparison) -> DiffRecord {
    let parts = [a, b].map(|record| {
        let text = serde_json::to_string(record).unwrap();
        (record.entry(), Outline::of(&text), text)
    });
    let [a, b] = [&parts[0], &parts[1]].map(|(entry, outline, record)| Side {
        entry,
        outline,
        record,
    });
    between(a, b).unwrap()
}

/// How often each verdict came of the arm `os-default`: lower, higher, same.
fn verdicts(noise: &str, ratio: f64, blocks: usize, pairs: u64) -> [u64; 3] {
    let mut found = [0; 3];
    for pair in 0..pairs {
        let a = experiment(noise, 0.066, blocks, 2 * pair);
        let b = experiment(noise, 0.066 * ratio, blocks, 2 * pair + 1);
        match diff(&a, &b).figures[0].verdict {
            ChangeVerdict::Lower => found[0] += 1,
            ChangeVerdict::Higher => found[1] += 1,
            ChangeVerdict::Same => found[2] += 1,
            ChangeVerdict::CannotTell => {}
        }
    }
    found
}

/// Two noises that last shorter than an experiment, and one of a real machine.
fn noises() -> [String; 3] {
    [
        "sd = 0.02".to_owned(),
        "sd = 0.01\nwander = { correlation = 0.6, sd = 0.05 }".to_owned(),
        recorded("light_cpu.csv.xz"),
    ]
}

/// Share of pairs of experiments of which a change is told that was none.
fn false_alarms(noise: &str, pairs: u64) -> f64 {
    let [lower, higher, _] = verdicts(noise, 1.0, 30, pairs);
    (lower + higher) as f64 / pairs as f64
}

#[test]
fn equal_experiments_are_rarely_told_apart() {
    const PAIRS: u64 = 150;
    // What chance adds to 5 % in three cases of a thousand.
    let bound = 0.05 + 3.0 * (0.05 * 0.95 / PAIRS as f64).sqrt();
    for noise in &noises()[..2] {
        let share = false_alarms(noise, PAIRS);
        assert!(share <= bound, "{noise}: {share} above {bound}");
    }
}

/// The recorded machine changes its state between experiments of a few
/// seconds, which neither of them can know: the caveat of every difference
/// says so, and `docs/records.md` how often it happens.
#[test]
fn a_state_that_outlasts_both_experiments_is_taken_for_a_change() {
    let share = false_alarms(&recorded("light_cpu.csv.xz"), 100);
    println!("false alarms on the recorded machine: {share}");
    assert!(share <= 0.3, "{share}");
}

#[test]
fn a_change_of_a_tenth_is_found_in_the_right_direction() {
    for noise in noises() {
        let [lower, higher, same] = verdicts(&noise, 1.1, 30, 40);
        assert!(higher >= 32, "{noise}: found {higher} of 40");
        assert_eq!((lower, same), (0, 0), "{noise}");
        let [lower, higher, same] = verdicts(&noise, 1.0 / 1.1, 30, 40);
        assert!(lower >= 32, "{noise}: found {lower} of 40");
        assert_eq!((higher, same), (0, 0), "{noise}");
    }
}

#[test]
fn what_hardly_varies_and_did_not_change_is_the_same() {
    let [_, _, same] = verdicts("sd = 0.002", 1.0, 40, 20);
    assert!(same >= 18, "{same} of 20");
}
