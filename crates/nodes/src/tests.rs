//! Groups, outliers, common settings and differences, on simulated nodes with known faults.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use pinwise_record::{
    Answer, FleetDiff, FleetNode, FleetRecord, FleetReport, Header, NodeFigure, NodeStep,
    OutlierKind, StepState,
};

const STEPS: [(&str, &str, usize); 4] = [
    ("wiring", "ns", 8),
    ("memory", "GB/s", 6),
    ("kernels", "/s", 10),
    ("smt", "", 4),
];

fn draw_noise(random: &mut ChaCha8Rng, freedom: f64) -> f64 {
    // Bailey (1994), scaled to a standard deviation of 1.
    loop {
        let u: f64 = random.random_range(-1.0..1.0);
        let v: f64 = random.random_range(-1.0..1.0);
        let w = u * u + v * v;
        if w > 0.0 && w <= 1.0 {
            let t = u * (freedom * (w.powf(-2.0 / freedom) - 1.0) / w).sqrt();
            return t / (freedom / (freedom - 2.0)).sqrt();
        }
    }
}

/// Student's degrees of freedom of noise with light tails.
const TAME: f64 = 30.0;

/// Nodes that differ by 3 % of light-tailed noise, and by what `change` does to each.
fn make_nodes(nodes: usize, seed: u64, change: impl FnMut(usize, &mut FleetNode)) -> Nodes {
    make_nodes_with(nodes, seed, TAME, change)
}

fn make_nodes_with(
    count: usize,
    seed: u64,
    freedom: f64,
    mut change: impl FnMut(usize, &mut FleetNode),
) -> Nodes {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut nodes = Nodes::new();
    for number in 0..count {
        let mut node = make_node(number, &mut random, freedom);
        change(number, &mut node);
        nodes.add(node);
    }
    nodes
}

fn make_node(number: usize, random: &mut ChaCha8Rng, freedom: f64) -> FleetNode {
    let mut figures = Vec::new();
    for (step, unit, many) in STEPS {
        for at in 0..many {
            let value = 100.0 * (0.03 * draw_noise(random, freedom)).exp();
            let half = 0.05 * (0.2 * draw_noise(random, 30.0)).exp();
            figures.push(NodeFigure {
                step: step.to_owned(),
                name: format!("figure {at}"),
                unit: unit.to_owned(),
                value,
                low: Some(value * (1.0 - half)),
                high: Some(value * (1.0 + half)),
            });
        }
    }
    make_node_with(number, &[("smt", "on")], figures)
}

/// A node with these figures, a serial number, a BIOS, and `more` settings.
fn make_node_with(number: usize, more: &[(&str, &str)], figures: Vec<NodeFigure>) -> FleetNode {
    let name = format!("n{number}");
    let settings = [("bios", "1.4"), ("serial", name.as_str())];
    FleetNode {
        header: Header::new(FleetNode::join_id("f", &name), "", Vec::new()),
        fleet: "f".to_owned(),
        ended: None,
        attempts: 1,
        host: None,
        settings: { settings.iter().chain(more) }
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        steps: Vec::new(),
        figures,
        clock_ahead_s: None,
        answer: Answer::default(),
        node: name,
    }
}

/// Multiplies a step's figures.
fn scale(node: &mut FleetNode, step: &str, factor: f64) {
    for figure in node.figures.iter_mut().filter(|figure| figure.step == step) {
        for value in [
            Some(&mut figure.value),
            figure.low.as_mut(),
            figure.high.as_mut(),
        ] {
            value.into_iter().for_each(|value| *value *= factor);
        }
    }
}

fn set(node: &mut FleetNode, name: &str, value: &str) {
    node.settings.insert(name.to_owned(), value.to_owned());
}

fn report_on(nodes: &Nodes) -> FleetReport {
    compare_nodes(
        nodes,
        &ReportContext {
            fleet: "f",
            record: None,
            false_discoveries: 0.05,
            now: "2026-01-01T00:00:00Z",
            host: "here",
        },
    )
}

fn list_outliers(report: &FleetReport, kind: OutlierKind) -> BTreeSet<&str> {
    let all = report
        .outliers
        .iter()
        .filter(|outlier| outlier.kind == kind);
    all.map(|outlier| outlier.node.as_str()).collect()
}

#[test]
fn slow_nodes_are_found_and_others_are_not() {
    let (mut right, mut wrong, mut planted) = (0, 0, 0);
    for seed in 0..10 {
        let is_slow = |number: usize| number % 33 == 7;
        let nodes = make_nodes(300, seed, |number, node| {
            if is_slow(number) {
                scale(node, "memory", 0.88);
            }
        });
        let report = report_on(&nodes);
        let named = list_outliers(&report, OutlierKind::Figure);
        let is_planted = |node: &&&str| node[1..].parse().is_ok_and(is_slow);
        let hits = named.iter().filter(is_planted).count();
        right += hits;
        wrong += named.len() - hits;
        planted += (0..300).filter(|number| is_slow(*number)).count();
    }
    assert!(
        right as f64 >= 0.95 * planted as f64,
        "{right} of {planted}"
    );
    assert!(
        wrong as f64 <= 0.05 * (right + wrong) as f64,
        "{wrong} false of {}",
        right + wrong
    );
}

/// The share of fleets without faults in which a node is named.
fn measure_false_alarms(nodes: usize, freedom: f64, seeds: u64) -> f64 {
    let has_alarm = |seed: &u64| {
        let made = make_nodes_with(nodes, *seed, freedom, |_, _| {});
        !report_on(&made).outliers.is_empty()
    };
    (0..seeds).filter(has_alarm).count() as f64 / seeds as f64
}

#[test]
fn a_fleet_without_faults_rarely_has_outliers() {
    // 5 % of 60 fleets is 3; chance gives more than 9 in one series of a thousand.
    for nodes in [16, 64] {
        let rate = measure_false_alarms(nodes, 30.0, 60);
        assert!(rate <= 9.0 / 60.0, "{nodes} nodes: {rate}");
    }
}

#[test]
fn heavy_tailed_noise_rarely_makes_outliers() {
    let rate = measure_false_alarms(150, 4.0, 40);
    assert!(rate <= 0.25, "{rate}");
}

#[test]
fn outliers_are_found_even_if_a_third_of_the_nodes_are_slow() {
    let nodes = make_nodes(100, 3, |number, node| {
        if number < 30 {
            scale(node, "kernels", 0.75);
        }
    });
    let report = report_on(&nodes);
    let found = list_outliers(&report, OutlierKind::Figure);
    let right = found
        .iter()
        .filter(|n| n[1..].parse().is_ok_and(|at: usize| at < 30))
        .count();
    assert!(right >= 29 && found.len() - right <= 2, "{found:?}");
}

#[test]
fn a_rare_setting_is_an_anomaly_and_a_common_one_a_group() {
    let nodes = make_nodes(100, 1, |number, node| {
        if number < 40 {
            set(node, "bios", "1.5");
        }
        if number == 50 || number == 5 {
            set(node, "smt", "off");
            scale(node, "smt", 0.7);
        }
    });
    let report = report_on(&nodes);
    let sizes: Vec<usize> = report.groups.iter().map(|group| group.nodes).collect();
    assert_eq!(sizes, [60, 40]);
    assert!(
        report.groups[0].name.contains("bios 1.4"),
        "{}",
        report.groups[0].name
    );
    let both = BTreeSet::from(["n5", "n50"]);
    assert_eq!(list_outliers(&report, OutlierKind::Setting), both);
    assert!(list_outliers(&report, OutlierKind::Figure).is_superset(&both));
    // The serial number is not an anomaly.
    assert!(
        report
            .outliers
            .iter()
            .all(|outlier| outlier.figure != "serial")
    );
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.check == "free-settings")
    );
}

#[test]
fn nodes_of_a_small_fleet_with_the_same_hardware_stay_in_one_group() {
    let nodes = make_nodes(16, 1, |number, node| {
        if number < 7 {
            set(node, "kernel", "6.2");
        } else {
            set(node, "kernel", "6.1");
        }
        if number < 2 {
            set(node, "smt", "off");
        }
    });
    let report = report_on(&nodes);
    assert_eq!(report.groups.len(), 1);
    assert_eq!(
        list_outliers(&report, OutlierKind::Setting),
        BTreeSet::from(["n0", "n1"])
    );
}

#[test]
fn four_nodes_are_compared_by_settings_alone() {
    let nodes = make_nodes(4, 1, |number, node| {
        if number == 2 {
            set(node, "smt", "off");
            scale(node, "smt", 0.1);
        }
    });
    let report = report_on(&nodes);
    assert_eq!(report.groups.len(), 1);
    assert_eq!(report.judged, 0);
    assert_eq!(
        list_outliers(&report, OutlierKind::Setting),
        BTreeSet::from(["n2"])
    );
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.check == "small-groups")
    );
}

#[test]
fn a_shared_setting_explains_slow_nodes() {
    let nodes = make_nodes(200, 5, |number, node| {
        let rack = format!("r{}", number % 10);
        set(node, "rack", if number < 12 { "r77" } else { &rack });
        if number < 11 {
            scale(node, "memory", 0.8);
        }
    });
    let report = report_on(&nodes);
    let first = &report.common[0];
    assert_eq!(
        (first.setting.as_str(), first.value.as_str()),
        ("rack", "r77")
    );
    assert_eq!(first.outliers_with, first.nodes.len());
    assert_eq!(first.others_with, 1);
    assert!(first.adjusted_p < 1e-9);
    assert!(
        first
            .sentence
            .contains("have rack r77; 1 of 189 others do."),
        "{}",
        first.sentence
    );
}

#[test]
fn a_noisy_node_is_found_by_its_wide_intervals() {
    let nodes = make_nodes(100, 2, |number, node| {
        if number == 9 {
            for figure in &mut node.figures {
                figure.low = figure
                    .low
                    .map(|low| figure.value - 3.0 * (figure.value - low));
                figure.high = figure
                    .high
                    .map(|high| figure.value + 3.0 * (high - figure.value));
            }
        }
    });
    let report = report_on(&nodes);
    assert_eq!(
        list_outliers(&report, OutlierKind::Figure),
        BTreeSet::from(["n9"])
    );
    assert!(report.outliers[0].figure.contains("· noise"));
}

#[test]
fn missing_and_doubtful_records_are_findings() {
    let mut nodes = Nodes::new();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for number in 0..3 {
        let mut new_node = make_node(number, &mut random, 30.0);
        new_node.steps = vec![NodeStep {
            name: "wiring".to_owned(),
            state: if number == 1 {
                StepState::Failed
            } else {
                StepState::Done
            },
            record: None,
            attempt: 1,
            verdict: None,
            changes: Vec::new(),
            why: (number == 1).then(|| "timed out".to_owned()),
            elapsed_s: None,
        }];
        new_node.clock_ahead_s = Some(if number == 2 { 3600.0 } else { 0.1 });
        new_node.attempts = 1 + u32::from(number == 2);
        new_node.figures[0].value = if number == 2 { f64::NAN } else { 1.0 };
        nodes.add(new_node.clone());
        if number == 0 {
            nodes.add(new_node);
        }
    }
    let asked: FleetRecord = serde_json::from_value(serde_json::json!({
        "schema": "pinwise.fleet/1", "id": "f", "started": "2026-01-01T00:00:00Z",
        "host": "here", "launcher": "slurm", "steps": [],
        "nodes": ["n0", "n1", "n2", "n3"], "asked": 4, "left_out": ["n4: drained"],
        "jobs": [], "planted": [], "tags": [],
    }))
    .unwrap();
    let report = compare_nodes(
        &nodes,
        &ReportContext {
            fleet: "f",
            record: Some(&asked),
            false_discoveries: 0.05,
            now: "2026-01-01T00:00:00Z",
            host: "here",
        },
    );
    let sentences: BTreeMap<&str, &str> = report
        .findings
        .iter()
        .map(|finding| (finding.check.as_str(), finding.sentence.as_str()))
        .collect();
    assert_eq!(
        sentences["missing-nodes"],
        "1 of 4 nodes has no record: n3."
    );
    assert_eq!(
        sentences["failed-step"],
        "No record of step wiring on 1 node (n1): timed out"
    );
    assert_eq!(sentences["left-out"], "1 node did not answer: n4: drained.");
    assert!(
        sentences["clocks"].contains("n2 +3600 s"),
        "{}",
        sentences["clocks"]
    );
    assert!(sentences["begun-again"].contains("n2"));
    assert!(sentences["skipped-records"].contains("f.n0 (a second record of node n0)"));
    assert!(sentences.contains_key("not-a-number"));
    assert_eq!((report.nodes, report.complete), (3, 2));
}

#[test]
fn a_report_of_no_nodes_is_empty() {
    let report = report_on(&Nodes::new());
    assert_eq!(report.sentence, "No node to compare.");
    assert!(report.groups.is_empty());
}

/// Compares the first groups of two fleets.
fn compare_first_groups(a: &Nodes, b: &Nodes) -> Result<FleetDiff, DiffError> {
    let (groups_a, groups_b) = (group_nodes(a), group_nodes(b));
    let side = |nodes, group| Side {
        fleet: "f",
        nodes,
        group,
    };
    compare_groups(side(a, &groups_a[0]), side(b, &groups_b[0]))
}

#[test]
fn a_difference_has_the_planted_ratio() {
    let make = |seed: u64, factor: f64, nodes: usize| {
        make_nodes(nodes, seed, |number, node| {
            scale(node, "wiring", factor);
            if number == 0 {
                scale(node, "wiring", 50.0);
            }
        })
    };
    let (mut covered, mut all) = (0, 0);
    for seed in 0..40 {
        let (a, b) = (make(2 * seed, 1.0, 12), make(2 * seed + 1, 14.0, 20));
        let found = compare_first_groups(&a, &b).unwrap();
        for figure in &found.figures {
            let truth = if figure.step == "wiring" { 14.0 } else { 1.0 };
            all += 1;
            let (low, high) = (figure.low.unwrap(), figure.high.unwrap());
            covered += usize::from(low <= truth && truth <= high);
        }
        assert!(
            found.sentence.starts_with("In B wiring · "),
            "{}",
            found.sentence
        );
        assert!(
            found.sentence.contains("14 times longer"),
            "{}",
            found.sentence
        );
    }
    let share = covered as f64 / f64::from(all);
    assert!((0.93..=0.98).contains(&share), "{share}");
}

/// For two equal fleets, the sentence may claim a difference once in twenty comparisons.
#[test]
fn equal_fleets_rarely_differ() {
    const PAIRS: u64 = 400;
    let make = |seed: u64, nodes: usize| make_nodes(nodes, seed, |_, _| {});
    for nodes in [2, 4, 12] {
        let claims = (0..PAIRS).filter(|pair| {
            let (a, b) = (make(2 * pair, nodes), make(2 * pair + 1, nodes + 4));
            let found = compare_first_groups(&a, &b).unwrap();
            let claims = found.sentence.starts_with("In B");
            let says_what_is_open =
                [" · ", " taken alone, "].map(|part| found.sentence.contains(part));
            assert!(
                claims || says_what_is_open.contains(&true),
                "{}",
                found.sentence
            );
            claims
        });
        let share = claims.count() as f64 / PAIRS as f64;
        println!("{nodes} nodes: {share}");
        // 5 %, and three standard errors.
        assert!(
            share <= 0.05 + 3.0 * (0.05 * 0.95 / PAIRS as f64).sqrt(),
            "{nodes}: {share}"
        );
    }
}

#[test]
fn one_node_a_side_has_ratios_without_intervals() {
    let one = |seed| make_nodes(1, seed, |_, _| {});
    let (a, b) = (one(1), one(2));
    let found = compare_first_groups(&a, &b).unwrap();
    assert!(found.figures.iter().all(|figure| figure.low.is_none()));
    assert!(found.sentence.contains("no interval"), "{}", found.sentence);
    assert!(found.settings.iter().all(|setting| setting.name != "bios"));
}

#[test]
fn fleets_without_a_common_figure_say_which_they_have() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut make = |name: &str| {
        let mut nodes = Nodes::new();
        let mut new_node = make_node(0, &mut random, 30.0);
        new_node.figures.truncate(1);
        new_node.figures[0].name = name.to_owned();
        nodes.add(new_node);
        nodes
    };
    let (a, b) = (make("x"), make("y"));
    let error = compare_first_groups(&a, &b).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("A has wiring · x; B has wiring · y"),
        "{message}"
    );
}
