//! Two fleets of simulated machines that differ in one known property.

use std::collections::BTreeMap;

use pinwise_nodes::{Nodes, Side, compare_groups, group_nodes};
use pinwise_record::{
    Answer, AttributionRecord, FleetDiff, FleetNode, Header, PartRecord, StepResult,
};

use super::tests::{A, Truth, simulate_profile};

const NODES: usize = 9;

/// A node whose step profiled a program on a machine with these properties.
fn node(number: usize, step: &str, truth: Truth, seed: u64) -> FleetNode {
    let body = serde_json::to_string(&simulate_profile(truth, seed)).unwrap();
    let name = format!("n{number}");
    FleetNode {
        header: Header::new(FleetNode::join_id("f", &name), "", Vec::new()),
        fleet: "f".to_owned(),
        ended: None,
        attempts: 1,
        host: None,
        settings: BTreeMap::new(),
        steps: Vec::new(),
        figures: StepResult::from_json(step, &body).figures,
        clock_ahead_s: None,
        answer: Answer::default(),
        node: name,
    }
}

fn fleet(step: &str, nodes: usize, truth: impl Fn(usize) -> Truth, seed: u64) -> Nodes {
    let mut fleet = Nodes::new();
    for number in 0..nodes {
        fleet.add(node(number, step, truth(number), seed + number as u64));
    }
    fleet
}

fn compare_fleets(a: &Nodes, b: &Nodes) -> FleetDiff {
    let (groups_a, groups_b) = (group_nodes(a), group_nodes(b));
    let side = |nodes, group| Side {
        fleet: "f",
        nodes,
        group,
    };
    compare_groups(side(a, &groups_a[0]), side(b, &groups_b[0])).unwrap()
}

fn part<'a>(found: &'a AttributionRecord, name: &str) -> &'a PartRecord {
    found
        .parts
        .iter()
        .find(|part| part.part.as_str() == name)
        .unwrap()
}

/// Checks that the interval of the named part contains the planted share of the difference in elapsed
/// time, that it is most of it, and that all parts add up to 1. `place`: index of the planted time.
#[track_caller]
fn check(a: &Nodes, b: &Nodes, truth: Truth, name: &str, place: usize) {
    let diff = compare_fleets(a, b);
    assert_eq!(diff.attributions.len(), 2, "elapsed and CPU time");
    let found = &diff.attributions[0].attribution;
    let (before, after) = (A.times(), truth.times());
    let whole = after.iter().sum::<f64>() - before.iter().sum::<f64>();
    assert!(
        (found.delta.value / whole - 1.0).abs() < 0.03,
        "{whole}: {}",
        found.sentence
    );
    let share = part(found, name).share.unwrap();
    let planted = (after[place] - before[place]) / whole;
    let holds = (share.low..=share.high).contains(&planted);
    assert!(holds && share.value > 0.6, "{planted}: {}", found.sentence);
    let shares = found.parts.iter().filter_map(|part| part.share);
    let sum: f64 = shares.map(|share| share.value).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
}

fn simulate(truth: Truth, seed: u64) -> Nodes {
    fleet("app", NODES, |_| truth, seed)
}

#[test]
fn a_difference_between_fleets_is_attributed_to_the_planted_cause() {
    let a = simulate(A, 100);
    for (truth, name, place) in [
        (
            Truth {
                pause_ns: 43.0,
                ..A
            },
            "spin-wait-length",
            2,
        ),
        (
            Truth {
                memory_ns: 200.0,
                ..A
            },
            "memory",
            0,
        ),
        (Truth { ghz: 1.6, ..A }, "frequency", 1),
        (Truth { sleeps_s: 2.0, ..A }, "waiting", 3),
    ] {
        check(&a, &simulate(truth, 200), truth, name, place);
    }
}

#[test]
fn equal_fleets_have_no_difference_to_explain() {
    for found in compare_fleets(&simulate(A, 100), &simulate(A, 200)).attributions {
        let found = found.attribution;
        assert!(
            found.sentence.contains("no difference to explain"),
            "{}",
            found.sentence
        );
        assert!(found.parts.iter().all(|part| part.share.is_none()));
    }
}

#[test]
fn one_broken_node_does_not_change_the_attribution() {
    let slow = Truth {
        memory_ns: 200.0,
        ..A
    };
    let broken = Truth {
        ghz: 0.2,
        pause_ns: 60.0,
        ..A
    };
    let a = fleet(
        "app",
        NODES,
        |number| if number == 4 { broken } else { A },
        100,
    );
    check(&a, &simulate(slow, 200), slow, "memory", 0);
}

#[test]
fn steps_may_have_different_names_in_the_two_fleets() {
    let slow = Truth { ghz: 1.6, ..A };
    let b = fleet("app-again", NODES, |_| slow, 200);
    check(&simulate(A, 100), &b, slow, "frequency", 1);
}
