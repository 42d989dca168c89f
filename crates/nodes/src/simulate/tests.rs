//! The same plan gives the same records, and every fault changes the figures that it should, and no
//! others.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{Nodes, ReportContext, compare_nodes};
use pinwise_spin::chips;

fn make_plan(nodes: usize, seed: u64) -> SimulationPlan {
    SimulationPlan {
        user: None,
        id: format!("sim-{nodes}-{seed}"),
        nodes,
        seed,
        noise: 0.0,
        faults: 0.03,
        started: "2026-11-23T00:00:00Z".to_owned(),
    }
}

fn read_figure(node: &FleetNode, step: &str, name: &str) -> f64 {
    let found = node
        .figures
        .iter()
        .find(|f| f.step == step && f.name == name);
    found
        .unwrap_or_else(|| panic!("{} lacks {step} {name}", node.node))
        .value
}

#[test]
fn the_same_plan_gives_the_same_records() {
    let text = |plan: SimulationPlan| {
        let fleet = SimulatedFleet::new(plan);
        let nodes: Vec<FleetNode> = fleet.nodes().collect();
        serde_json::to_string(&(fleet.record(), nodes)).unwrap()
    };
    let mut noisy = make_plan(60, 7);
    noisy.noise = 0.03;
    assert_eq!(text(noisy.clone()), text(noisy.clone()));
    let other = SimulationPlan {
        seed: 8,
        ..noisy.clone()
    };
    assert_ne!(text(noisy), text(other));
}

#[test]
fn every_node_has_its_figures_and_settings() {
    for nodes in [1, 16, 60, 1000] {
        let fleet = SimulatedFleet::new(make_plan(nodes, 1));
        let faults: BTreeMap<&str, &str> = { fleet.record().planted.iter() }
            .map(|p| (p.node.as_str(), p.fault.as_str()))
            .collect();
        let mut ids = BTreeSet::new();
        for node in fleet.nodes() {
            let is_smt_off = faults.get(node.node.as_str()) == Some(&"smt-off");
            let missing = if is_smt_off { 5 } else { 0 };
            assert_eq!(node.figures.len(), FIGURES_PER_NODE - missing, "{node:?}");
            for figure in &node.figures {
                let (low, high) = (figure.low.unwrap(), figure.high.unwrap());
                assert!(figure.value.is_finite() && figure.value > 0.0, "{figure:?}");
                assert!(low <= figure.value && figure.value <= high, "{figure:?}");
            }
            let host = node.host.as_ref().expect("a host");
            assert_eq!(
                host.machine.microcode.as_ref(),
                node.settings.get("microcode")
            );
            assert!(ids.insert(node.id.clone()));
        }
        assert_eq!(ids.len(), nodes);
        let names = FIGURES.iter().map(|f| (f.step, f.name));
        assert_eq!(names.collect::<BTreeSet<_>>().len(), 50);
    }
}

#[test]
fn chips_and_shapes_are_known() {
    for kind in &GENERATIONS {
        assert!(kind.pause_cycles().is_finite(), "{}", kind.cpu);
        let chip = chips::find_chips(kind.vendor, kind.family, kind.model, Some(kind.stepping));
        assert!(
            chip.iter()
                .any(|chip| (chip.pause_cycles.0 - kind.pause_cycles()).abs() < 1e-9),
            "{}: {chip:?}",
            kind.cpu
        );
        for has_smt in [true, false] {
            for nodes in kind.nodes_per_package {
                let host = node::make_host(kind, has_smt, nodes).expect(kind.cpu);
                assert_eq!(host.counts.cores, kind.cores());
                assert_eq!(host.counts.cpus, kind.cores() * if has_smt { 2 } else { 1 });
                assert_eq!(host.counts.numa_nodes, 2 * nodes, "{}", kind.cpu);
                assert_eq!(host.counts.llcs, kind.llc_count(nodes), "{}", kind.cpu);
                assert_eq!(host.counts.packages, 2);
            }
        }
    }
}

/// Without noise, only faults and the small differences between processors change a figure.
#[test]
fn every_fault_changes_its_figures_or_settings() {
    let fleet = SimulatedFleet::new(SimulationPlan {
        faults: 0.3,
        ..make_plan(1000, 3)
    });
    let faults: BTreeMap<String, String> = { fleet.record().planted.iter() }
        .map(|p| (p.node.clone(), p.fault.clone()))
        .collect();
    assert_eq!(faults.len(), 300);
    let nodes: Vec<FleetNode> = fleet.nodes().collect();
    let find_faultless = |kind: &str| {
        let fits = |n: &&FleetNode| {
            let model = n.host.as_ref().and_then(|h| h.machine.cpu_model.as_deref());
            !faults.contains_key(&n.node) && model == Some(kind)
        };
        nodes.iter().find(fits).expect(kind)
    };
    let mut nodes_with_fault: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &nodes {
        let Some(fault) = faults.get(&node.node) else {
            continue;
        };
        *nodes_with_fault.entry(fault).or_default() += 1;
        let model = node.host.as_ref().and_then(|h| h.machine.cpu_model.clone());
        let other = find_faultless(&model.unwrap());
        let ratio = |step, name| read_figure(node, step, name) / read_figure(other, step, name);
        let setting = |name: &str| (node.settings[name].as_str(), other.settings[name].as_str());
        let differs = |name: &str| setting(name).0 != setting(name).1;
        match fault.as_str() {
            "slow-dimm-channel" => {
                let packages = [
                    "bandwidth, package 0, one node",
                    "bandwidth, package 1, one node",
                ];
                let lowest = packages.map(|name| ratio("wiring", name));
                let lowest = lowest[0].min(lowest[1]);
                assert!((0.77..0.91).contains(&lowest), "{lowest}");
            }
            "smt-off" => {
                assert_eq!(setting("smt"), ("off", "on"));
                assert!(ratio("kernels-all-cores", "integer") < 0.85);
                assert!(node.figures.iter().all(|f| f.step != "smt-yield"));
            }
            "wrong-nps" => {
                assert!(differs("numa-nodes-per-package"));
                assert!(ratio("wiring", "bandwidth, package 0, one node") < 0.6);
                assert!(ratio("wiring", "memory latency, local") < 0.98);
            }
            "old-microcode" => assert!(differs("microcode")),
            "throttling" => {
                let clock = ratio("wiring", "clock, all cores");
                assert!((0.72..0.95).contains(&clock), "{clock}");
                assert!(ratio("kernels-all-cores", "mandelbrot") < 0.95);
            }
            "noisy-neighbour" => {
                assert!(ratio("kernels-one-core", "pi") < 1.01);
                assert!(ratio("wiring", "clock, all cores") > 0.96);
            }
            other => panic!("{other}"),
        }
        let is_of_settings = ["smt-off", "wrong-nps", "old-microcode"].contains(&fault.as_str());
        for name in ["smt", "numa-nodes-per-package", "microcode", "governor"] {
            assert!(is_of_settings || !differs(name), "{fault}: {name}");
        }
    }
    assert_eq!(nodes_with_fault.len(), Fault::ALL.len());
    assert!(
        nodes_with_fault.values().all(|&many| many == 50),
        "{nodes_with_fault:?}"
    );
}

#[test]
fn noise_has_the_planned_spread() {
    let noise = 0.03;
    let quiet = SimulatedFleet::new(SimulationPlan {
        faults: 0.0,
        ..make_plan(400, 5)
    });
    let noisy = SimulatedFleet::new(SimulationPlan {
        faults: 0.0,
        noise,
        ..make_plan(400, 5)
    });
    let errors: Vec<f64> = { quiet.nodes().zip(noisy.nodes()) }
        .flat_map(|(a, b)| a.figures.into_iter().zip(b.figures))
        .map(|(a, b)| (b.value / a.value).ln())
        .collect();
    assert_eq!(errors.len(), 400 * FIGURES_PER_NODE);
    let sd = pinwise_stats::describe::sd(&errors);
    let mean = pinwise_stats::describe::mean(&errors);
    assert!((sd - noise).abs() < 0.0005, "{sd}");
    assert!(mean.abs() < 0.0007, "{mean}");
    let beyond = errors.iter().filter(|e| e.abs() > 3.0 * noise).count();
    // 0.44 % of Student's distribution with 30 degrees, 0.27 % of a normal one.
    let share = beyond as f64 / errors.len() as f64;
    assert!((0.0030..0.0062).contains(&share), "{share}");
}

/// At 3 % noise, at least 95 % of the planted faults are named, and at most 5 % of the named nodes
/// have no fault.
#[test]
fn planted_faults_are_named_and_hardly_any_others() {
    let (mut found, mut planted, mut false_shares) = (0, 0, Vec::new());
    let mut missed: Vec<String> = Vec::new();
    for seed in 1..=6 {
        let fleet = SimulatedFleet::new(SimulationPlan {
            noise: 0.03,
            ..make_plan(1000, seed)
        });
        let mut nodes = Nodes::new();
        fleet.nodes().for_each(|node| nodes.add(node));
        let report = compare_nodes(
            &nodes,
            &ReportContext {
                fleet: &fleet.record().id,
                record: None,
                false_discoveries: 0.05,
                now: "2026-11-23T00:00:00Z",
                host: "here",
            },
        );
        let named: BTreeSet<&str> = report.outliers.iter().map(|o| o.node.as_str()).collect();
        let faults: BTreeMap<&str, &str> = { fleet.record().planted.iter() }
            .map(|p| (p.node.as_str(), p.fault.as_str()))
            .collect();
        let right = named
            .iter()
            .filter(|node| faults.contains_key(*node))
            .count();
        found += right;
        planted += faults.len();
        false_shares.push((named.len() - right) as f64 / named.len() as f64);
        let lacking = faults.iter().filter(|(node, _)| !named.contains(*node));
        missed.extend(lacking.map(|(node, fault)| format!("{seed} {node} {fault}")));
    }
    let mean = pinwise_stats::describe::mean(&false_shares);
    assert!(
        100 * found >= 95 * planted,
        "{found} of {planted}; missed {missed:?}"
    );
    assert!(mean <= 0.05, "false: {false_shares:?}; missed {missed:?}");
}
