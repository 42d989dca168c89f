use super::*;
use pinwise_machine::{CommandRunner, Host, Request, Simulation};
use pinwise_stats::describe::{quantile, sd};
use pinwise_topology::CpuSet;
use pinwise_workload::{Command, Workload};

fn open_world(world: World, seed: u64) -> (String, SimulatedMachine, Hardware) {
    let text = describe(world, seed);
    let mut machine = SimulatedMachine::from_text("w", &text, 1)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (topology, _) = machine.topology().unwrap();
    let hardware = Hardware::new(&topology, parse_threads(&text));
    (text, machine, hardware)
}

fn parse_threads(text: &str) -> usize {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("threads = "));
    line.unwrap().parse().unwrap()
}

fn true_cost_s(machine: &SimulatedMachine, cpus: &CpuSet) -> f64 {
    let workload = Workload::new(Command::from_line("sim-workload").unwrap());
    let request = Request::new(&workload, cpus);
    machine.true_cost(&request).unwrap()
}

/// The spreads of 80 worlds, apart from those with a single even placement.
fn measure_spreads(world: World) -> Vec<f64> {
    (0..80)
        .filter_map(|seed| {
            let (text, _, hardware) = open_world(world, seed);
            (hardware.masks.len() > 1).then(|| hardware.spread(&text))
        })
        .collect()
}

#[test]
fn placements_differ_by_5_to_100_percent() {
    for world in [World::Fits, World::Misfits] {
        let spreads = measure_spreads(world);
        assert!(spreads.len() > 50);
        let within = spreads
            .iter()
            .filter(|spread| (0.035..1.4).contains(*spread));
        let share = within.count() as f64 / spreads.len() as f64;
        assert!(share > 0.94, "{world:?}: {share} {spreads:?}");
        assert!(quantile(&spreads, 0.1) < 0.1, "{spreads:?}");
        assert!(quantile(&spreads, 0.9) > 0.4, "{spreads:?}");
    }
}

#[test]
fn flat_worlds_are_flat() {
    for seed in 0..40 {
        let (text, machine, hardware) = open_world(World::Flat, seed);
        let spread = hardware.spread(&text);
        assert!(spread < 0.002, "seed {seed}: {spread}");
        // The scheduler's own choice is no worse.
        let all = CpuSet::parse_list(&format!("0-{}", parse_threads(&text) - 1)).unwrap();
        let (default, first) = (
            true_cost_s(&machine, &machine.description.topology.allowed),
            true_cost_s(&machine, &all),
        );
        assert!(
            (default / first).ln().abs() < 0.004,
            "seed {seed}: {default} {first}"
        );
    }
}

#[test]
fn placements_of_useless_worlds_differ_without_a_reason() {
    let mut unexplained = Vec::new();
    for seed in 0..80 {
        let (text, machine, hardware) = open_world(World::Useless, seed);
        let plain = text.replace("unexplained_sd = 0.25", "unexplained_sd = 0.0");
        assert!(
            hardware.spread(&plain) < 0.25,
            "{seed}: {}",
            hardware.spread(&plain)
        );
        let plain = open(&plain).unwrap();
        let difference = |mask| (true_cost_s(&machine, mask) / true_cost_s(&plain, mask)).ln();
        unexplained.extend(hardware.masks.iter().map(difference));
    }
    let found = sd(&unexplained);
    assert!((found - 0.25).abs() < 0.03, "{found}");
}

#[test]
fn a_seed_gives_the_same_world_for_ever() {
    for world in World::ALL {
        assert_eq!(describe(world, 7), describe(world, 7));
        assert_ne!(describe(world, 7), describe(world, 8));
        let text = describe(world, 7);
        assert!(
            text.starts_with(&format!("# A random world, {}: ", world.name())),
            "{text}"
        );
    }
}

#[test]
fn every_shape_is_a_valid_topology() {
    for shape in SHAPES {
        for is_split in [false, true] {
            let topology = Topology::from_synthetic(&synthetic_topology(shape, is_split)).unwrap();
            let counts = topology.counts();
            let cpus: usize = shape.iter().product();
            assert!((8..=384).contains(&cpus));
            assert_eq!((counts.cpus, counts.packages), (cpus, shape[0]));
            assert_eq!(counts.numa_nodes, shape[0] * shape[1]);
            assert_eq!(counts.llcs, shape[0] * shape[1] * shape[2]);
        }
    }
}

#[test]
fn noise_can_be_replaced() {
    let text = describe(World::Fits, 1);
    let sd = with_noise(&text, &WorldNoise::LogNormal(0.1));
    assert!(
        sd.ends_with("[noise]\nsd = 0.1\n") && !sd.contains("0.03\n"),
        "{sd}"
    );
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/series");
    let noise = WorldNoise::Series(PathBuf::from("aa_cpu2.csv.xz"));
    let replayed = with_noise(&text, &noise);
    SimulatedMachine::from_text_in("w", &replayed, &folder, 1).unwrap();
    let none = with_noise(&text, &WorldNoise::None);
    let mut machine = open(&none).unwrap();
    let (workload, cpus) = (
        Workload::new(Command::from_line("x").unwrap()),
        CpuSet::first_n(1),
    );
    let request = Request::new(&workload, &cpus);
    let run = machine.run(&request).unwrap();
    let truth = machine.true_cost(&request).unwrap();
    assert!((run.wall.as_secs_f64() - truth).abs() < 1e-8);
}

#[test]
fn worlds_can_be_described_on_any_topology() {
    let text = describe_on(World::Fits, 3, "core:4 pu:1", 2);
    assert_eq!(parse_threads(&text), 2);
    SimulatedMachine::from_text("w", &text, 1).unwrap();
    let text = describe_on(World::Fits, 3, "kore:4", 2);
    assert!(SimulatedMachine::from_text("w", &text, 1).is_err());
    let text = describe_on(World::Misfits, 3, "core:4 pu:1", 100);
    SimulatedMachine::from_text("w", &text, 1).unwrap();
}
