//! A simulated fleet with known faults, on which the analysis and the page are tested.
//!
//! A fleet has one to three kinds of server, and each node fifty figures. A figure is the product
//! of its value on that kind of server, of the node's own deviation (processors of a kind differ by
//! 0.6 %, their memory by 0.5 %, and each of both changes many figures), of the effect of a fault,
//! and of noise. The logarithm of the noise follows Student's t with 30 degrees of freedom, scaled
//! to the standard deviation of the plan. Large shares of the nodes have a second BIOS and a second
//! kernel, which are no faults and change nothing.
//!
//! The same plan always gives the same records: nothing is read, not even a clock.

mod fault;
mod figures;
mod generation;
mod node;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

pub use fault::Fault;
use figures::FIGURES;
use generation::GENERATIONS;
use pinwise_format::whole_usize;
use pinwise_record::{FleetNode, FleetRecord, FleetStep, Header, HostRecord, PlantedFault};

/// Number of figures of a node; a node without SMT lacks some.
pub const FIGURES_PER_NODE: usize = FIGURES.len();

/// The stream of random numbers that chooses nodes and faults; node number n
/// has stream n + 1.
const FAULT_STREAM: u64 = 0;

/// From this many nodes on, a fleet has two kinds of servers.
const MIN_FOR_TWO_KINDS: usize = 48;
/// From this many on, it has three.
const MIN_FOR_THREE_KINDS: usize = 200;

/// A fleet to be simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationPlan {
    /// The fleet's id.
    pub id: String,
    /// The user who simulates it.
    pub user: Option<u32>,
    /// Number of nodes.
    pub nodes: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Standard deviation of the logarithm of measured figures.
    pub noise: f64,
    /// Share of nodes with a fault, 0 to 1.
    pub faults: f64,
    /// The time in its records, RFC 3339.
    pub started: String,
}

/// A simulated fleet.
#[derive(Debug)]
pub struct SimulatedFleet {
    plan: SimulationPlan,
    record: FleetRecord,
    faults: BTreeMap<usize, Fault>,
    /// Hosts by generation of the server, and shape.
    hosts: BTreeMap<(usize, node::HostShape), HostRecord>,
}

impl SimulatedFleet {
    /// Prepares the fleet; `nodes` makes its nodes one by one.
    #[must_use]
    pub fn new(plan: SimulationPlan) -> Self {
        let faults = choose_faults(&plan);
        let planted = faults.iter().map(|(&node, fault)| PlantedFault {
            node: format_node_name(node, plan.nodes),
            fault: fault.name().to_owned(),
        });
        let record = FleetRecord {
            header: Header::new(&plan.id, &plan.started, vec![FleetRecord::tag(&plan.id)]),
            host: "simulated".to_owned(),
            user: plan.user,
            launcher: "simulated".to_owned(),
            steps: list_steps(),
            nodes: Vec::new(),
            asked: plan.nodes,
            folder: None,
            jobs: Vec::new(),
            left_out: Vec::new(),
            planted: planted.collect(),
        };
        Self {
            hosts: make_hosts(count_kinds(plan.nodes)),
            plan,
            record,
            faults,
        }
    }

    /// The fleet's record, with the planted faults.
    #[must_use]
    pub const fn record(&self) -> &FleetRecord {
        &self.record
    }

    /// The processor of each kind of server and its number of nodes, the oldest kind first.
    #[must_use]
    pub fn kinds(&self) -> Vec<(&'static str, usize)> {
        let mut counts = vec![0; count_kinds(self.plan.nodes)];
        for node in 0..self.plan.nodes {
            counts[kind_of(node, self.plan.nodes)] += 1;
        }
        { GENERATIONS.iter().map(|kind| kind.cpu) }
            .zip(counts)
            .collect()
    }

    /// The nodes, made on demand.
    pub fn nodes(&self) -> impl Iterator<Item = FleetNode> + '_ {
        (0..self.plan.nodes).map(|number| {
            let mut random = seed_stream(&self.plan, number as u64 + 1);
            let kind = kind_of(number, self.plan.nodes);
            let node = node::Node::draw(
                &GENERATIONS[kind],
                self.faults.get(&number).copied(),
                &mut random,
            );
            let host = self.hosts.get(&(kind, node.shape())).cloned();
            node.make_record(&self.plan, number, host, &mut random)
        })
    }
}

/// Chooses which nodes have which fault. Every kind of fault occurs once before any occurs twice,
/// in random order.
fn choose_faults(plan: &SimulationPlan) -> BTreeMap<usize, Fault> {
    let count = whole_usize(plan.faults.clamp(0.0, 1.0) * plan.nodes as f64);
    let mut random = seed_stream(plan, FAULT_STREAM);
    let mut nodes: Vec<usize> = (0..plan.nodes).collect();
    nodes.shuffle(&mut random);
    let mut faults = Vec::new();
    while faults.len() < count {
        let mut round = Fault::ALL;
        round.shuffle(&mut random);
        faults.extend(round);
    }
    nodes.into_iter().zip(faults).take(count).collect()
}

fn seed_stream(plan: &SimulationPlan, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    random.set_stream(number);
    random
}

const fn count_kinds(nodes: usize) -> usize {
    match nodes {
        0..MIN_FOR_TWO_KINDS => 1,
        MIN_FOR_TWO_KINDS..MIN_FOR_THREE_KINDS => 2,
        _ => 3,
    }
}

/// The kind of a node, as an index into `GENERATIONS`. The oldest kind comes first and has the
/// whole fleet, 60 % or half of it if there are one, two or three kinds.
const fn kind_of(node: usize, nodes: usize) -> usize {
    let tenth = 10 * node / nodes;
    match count_kinds(nodes) {
        1 => 0,
        2 if tenth < 6 => 0,
        2 => 1,
        _ if tenth < 5 => 0,
        _ if tenth < 8 => 1,
        _ => 2,
    }
}

/// `n00001` of 10,000, `n001` of 500.
fn format_node_name(node: usize, nodes: usize) -> String {
    let digits = nodes.to_string().len().max(3);
    format!("n{:0digits$}", node + 1)
}

/// The host record of every kind of server in every shape that occurs.
fn make_hosts(kinds: usize) -> BTreeMap<(usize, node::HostShape), HostRecord> {
    let mut found = BTreeMap::new();
    for (kind, generation) in GENERATIONS.iter().enumerate().take(kinds) {
        for has_smt in [true, false] {
            for nodes_per_package in generation.nodes_per_package {
                let shape = node::HostShape {
                    has_smt,
                    nodes_per_package,
                };
                let host = node::make_host(generation, has_smt, nodes_per_package);
                found.extend(host.map(|host| ((kind, shape), host)));
            }
        }
    }
    found
}

fn list_steps() -> Vec<FleetStep> {
    let mut steps: Vec<FleetStep> = Vec::new();
    for figure in &FIGURES {
        if steps.iter().any(|step| step.name == figure.step) {
            continue;
        }
        let mut arguments = vec!["bench".to_owned()];
        if figure.step == FIGURES[0].step {
            arguments = vec!["topology".to_owned(), "--measure".to_owned()];
        } else {
            let same = FIGURES.iter().filter(|other| other.step == figure.step);
            arguments.extend(same.map(|figure| figure.name.to_owned()));
        }
        steps.push(FleetStep {
            name: figure.step.to_owned(),
            arguments,
            timeout_s: None,
        });
    }
    steps
}
