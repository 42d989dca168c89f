//! Simulated machines for tests of the search, also used by `lab`: a scheduler whose runs vary far
//! more than those of bound threads, and shapes with a second optimum at the far end.

use pinwise_machine::Output;
use pinwise_placement::space::Space;
use pinwise_record::SearchRecord;
use pinwise_sim::SimulatedMachine;
use pinwise_study::search::{self, NoObserver, SearchPlan};
use pinwise_topology::Topology;
use pinwise_workload::{Command, Metric, Workload};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::root;

/// Two packages of eight caches of eight cores of two CPUs.
pub(crate) const SERVER: &str = "package:2 l3:8(size=32MB) core:8 pu:2";

/// Names of recorded noises in `tests/data/series`.
pub(crate) const SERIES: [&str; 6] = [
    "aa_bg",
    "aa_cpu1",
    "aa_cpu2",
    "aa_mem1",
    "light_cpu",
    "medium_mem",
];

/// The demands of the example in docs/search.md, varied: threads, and the description of a machine.
pub(crate) fn varied_demands(seed: u64) -> (usize, String) {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut log_uniform =
        |low: f64, high: f64| -> f64 { low * (high / low).powf(chance.random::<f64>()) };
    let node = log_uniform(40.0, 160.0);
    let issue = log_uniform(0.5, 1.0);
    let memory = log_uniform(0.05, 0.5);
    let traffic = log_uniform(0.5, 6.0);
    let exchanges = log_uniform(3e4, 1e6);
    let policy = ["random-idle", "core-first", "llc-first"][chance.random_range(0..3)];
    let text = format!(
        "topology = \"{SERVER}\"\n[performance]\npolicy = \"{policy}\"\n\
         node_gb_per_s = {node:?}\n[workload.default]\nbase_s = 40.0\nthreads = 24\n\
         [workload.default.demand]\nissue_share = {issue:?}\nmemory_share = {memory:?}\n\
         gb_per_s = {traffic:?}\nexchanges_per_s = {exchanges:?}\n[noise]\nsd = 0.03\n"
    );
    (24, text)
}

/// A world in which costs fall towards one end of the shapes, but the opposite end is best. If
/// `seed / 4` is even, that is the most compact shape, else the most spread.
pub(crate) fn two_basins(seed: u64) -> (usize, String) {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let (topology, threads) = match seed % 4 {
        0 => (SERVER, 16),
        1 => (SERVER, 24),
        2 => ("package:2 l3:4 core:4 pu:2", 8),
        _ => (SERVER, 32),
    };
    let machine = Topology::from_synthetic(topology).expect("a topology");
    let shapes = Space::from_topology(&machine).shapes(threads);
    let (deep, shallow) = (
        chance.random_range(0.65..0.85),
        chance.random_range(0.86..0.95),
    );
    let last = (shapes.len() - 1) as f64;
    let mut text = format!(
        "topology = \"{topology}\"\n[workload.default]\nbase_s = 1.0\nthreads = {threads}\n[effects]\n"
    );
    for (index, shape) in shapes.iter().enumerate() {
        let along = index as f64 / last;
        let from_deep = if (seed / 4) % 2 == 1 {
            1.0 - along
        } else {
            along
        };
        let cost: f64 = match from_deep < 1e-9 {
            true => deep,
            false => 1.15 + (shallow - 1.15) * from_deep,
        };
        text.push_str(&format!("\"{}\" = {cost:?}\n", shape.placement));
    }
    text.push_str("[noise]\nsd = 0.02\n");
    (threads, text)
}

/// The plan of a search with the default options of the command.
pub(crate) fn plan(threads: usize, seed: u64) -> SearchPlan {
    SearchPlan {
        workload: Workload::new(Command::from_line("sim-workload").expect("a command")),
        threads: vec![threads],
        sets_threads: true,
        default_threads: threads,
        default_is_counted: false,
        min_effect: 0.01,
        max_slowdown: 0.05,
        metric: Metric::wall(),
        unit: String::new(),
        max_runs: Some(200),
        budget: None,
        confirmation_pairs: 30,
        warmup: 1,
        seed,
        output: Output::Discard,
        id: format!("search-{seed}"),
        argv: Vec::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        tags: Vec::new(),
    }
}

/// Searches a world.
pub(crate) fn search(threads: usize, text: &str, seed: u64) -> SearchRecord {
    let plan = plan(threads, seed);
    let folder = root().join("tests/data/series");
    let machine = SimulatedMachine::from_text_in("world", text, &folder, seed);
    let mut machine = machine.expect("a machine");
    search::run(&plan, None, &mut machine, &mut NoObserver).expect("a search")
}

/// Regret of the answer, or of the last leader if there is no answer.
pub(crate) fn regret(record: &SearchRecord) -> f64 {
    let led = record.progress.last().and_then(|point| point.true_regret);
    record.true_regret.or(led).unwrap_or(f64::INFINITY)
}

/// Whether the claim is wrong that a smaller arm than the best is nearly as good; `None` without a
/// claim.
pub(crate) fn is_smaller_claim_wrong(record: &SearchRecord) -> Option<bool> {
    let least = record.least.as_ref()?;
    let best = record.best.as_ref().filter(|best| **best != least.arm)?;
    let truth = |name: &str| {
        let arm = record.predictions.iter().find(|arm| arm.arm == name);
        arm.and_then(|arm| arm.truth)
    };
    Some(truth(&least.arm)? > truth(best)? * (1.0 + record.plan.least_within))
}
