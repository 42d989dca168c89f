//! Random machines with random programs, as descriptions: test cases for a search.
//!
//! The text of a seed never changes. [`SimulatedMachine::from_text`] opens it, and every program name
//! runs the described program. The figures are scaled until the times of placements differ by about
//! an amount drawn first, so that placement matters unless the world is a flat one.

mod draw;
mod shapes;

use std::path::PathBuf;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::SimulatedMachine;
use draw::{Family, RandomFigures};
use pinwise_topology::Topology;
use shapes::Hardware;

/// How a random machine and program behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum World {
    /// Mild mechanisms: a small model is nearly right.
    Fits,
    /// Groups of threads, saturation, a falling clock, imbalance, and 3 % unexplained: small models
    /// are off.
    Misfits,
    /// Units hardly matter, and 25 % are unexplained.
    Useless,
    /// Nothing matters by more than 0.2 %.
    Flat,
}

impl World {
    /// All kinds of world.
    pub const ALL: [Self; 4] = [Self::Fits, Self::Misfits, Self::Useless, Self::Flat];

    /// The name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Misfits => "misfits",
            Self::Useless => "useless",
            Self::Flat => "flat",
        }
    }
}

/// Noise of the runs of a description.
#[derive(Debug, Clone, PartialEq)]
pub enum WorldNoise {
    /// None at all.
    None,
    /// Log-normal, with this standard deviation of ln(time).
    LogNormal(f64),
    /// A recorded series; its path is relative to the description's folder.
    Series(PathBuf),
}

/// Default noise of a world, as the standard deviation of ln(time).
const DEFAULT_SD: f64 = 0.03;
/// Limits the scalings towards the target spread.
const MAX_TRIES: u32 = 24;

/// Shapes of machines that are or were sold, 8 to 384 CPUs: packages, nodes per package, last-level
/// caches per node, cores per cache, CPUs per core.
const SHAPES: [[usize; 5]; 26] = [
    [1, 1, 1, 4, 2],
    [1, 1, 1, 8, 1],
    [1, 1, 2, 4, 2],
    [1, 1, 1, 8, 2],
    [1, 1, 2, 6, 2],
    [1, 1, 2, 8, 2],
    [1, 1, 4, 6, 2],
    [1, 1, 8, 4, 2],
    [1, 4, 2, 4, 2],
    [1, 1, 8, 8, 2],
    [1, 4, 2, 8, 2],
    [1, 1, 12, 8, 2],
    [1, 4, 3, 8, 2],
    [1, 1, 1, 24, 2],
    [1, 1, 1, 48, 1],
    [2, 1, 1, 8, 2],
    [2, 1, 1, 16, 2],
    [2, 1, 1, 28, 2],
    [2, 1, 1, 40, 2],
    [2, 1, 8, 4, 2],
    [2, 1, 4, 6, 2],
    [2, 1, 8, 8, 2],
    [2, 4, 2, 8, 2],
    [2, 1, 12, 8, 2],
    [2, 4, 3, 8, 2],
    [4, 1, 1, 18, 2],
];

/// Describes a random machine with a random program.
#[must_use]
pub fn describe(world: World, seed: u64) -> String {
    let mut chance = random_stream(seed, 5);
    let shape = SHAPES[chance.random_range(0..SHAPES.len())];
    let topology = synthetic_topology(shape, chance.random());
    let threads = draw_threads(shape, &mut chance);
    describe_on(world, seed, &topology, threads)
}

/// Describes a program of this many threads on this topology, with random figures. An invalid
/// topology is written unchanged, and refused when opened.
#[must_use]
pub fn describe_on(world: World, seed: u64, topology: &str, threads: usize) -> String {
    let mut chance = random_stream(seed, 6);
    let family = Family::ALL[chance.random_range(0..Family::ALL.len())];
    let hardware = Topology::from_synthetic(topology)
        .ok()
        .map(|topology| Hardware::new(&topology, threads));
    let Some(hardware) = hardware.filter(|hardware| hardware.masks.len() > 1) else {
        let drawn = RandomFigures::new(world, family, &Hardware::default(), threads, &mut chance);
        return write_description(world, seed, topology, threads, &drawn);
    };
    // The target spread of placements, as ln of the slowest time over the fastest; the figures are
    // scaled until they nearly reach it.
    let target = (0.05f64.ln() * (1.0 - chance.random::<f64>())).exp();
    let mut drawn = RandomFigures::new(world, family, &hardware, threads, &mut chance);
    let mut best = (f64::INFINITY, String::new());
    for _ in 0..MAX_TRIES {
        // The unexplained part does not count in the spread.
        let explained = drawn.without_unexplained();
        let spread = hardware.spread(&write_description(
            world, seed, topology, threads, &explained,
        ));
        let distance = drawn.distance(world, spread, target);
        if distance < best.0 {
            best = (
                distance,
                write_description(world, seed, topology, threads, &drawn),
            );
        }
        if distance <= 0.0 {
            break;
        }
        drawn.scale(world, spread, target);
    }
    best.1
}

/// Replaces the noise of a description.
#[must_use]
pub fn with_noise(text: &str, noise: &WorldNoise) -> String {
    let before = text.find("\n[noise]").map_or(text, |at| &text[..at]);
    let noise = match noise {
        WorldNoise::None => "kind = \"none\"".to_owned(),
        WorldNoise::LogNormal(sd) => format!("sd = {sd:?}"),
        WorldNoise::Series(file) => {
            let file = toml::Value::String(file.display().to_string());
            format!("series = {file}")
        }
    };
    format!("{}\n\n[noise]\n{noise}\n", before.trim_end())
}

fn random_stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    chance.set_stream(number);
    chance
}

/// A shape in hwloc's syntax. `is_split`: the first CPUs of all cores have lower numbers than the
/// second ones, as on most systems.
fn synthetic_topology([packages, nodes, llcs, cores, smt]: [usize; 5], is_split: bool) -> String {
    let llc_bytes = if llcs > 1 || nodes > 1 {
        cores * 4
    } else {
        (cores * 3) / 2
    };
    let all_cores = packages * nodes * llcs * cores;
    let indexes = if is_split && smt > 1 {
        let numbers: Vec<String> = (0..all_cores)
            .flat_map(|core| (0..smt).map(move |rank| (rank * all_cores + core).to_string()))
            .collect();
        format!("(indexes={})", numbers.join(","))
    } else {
        String::new()
    };
    format!(
        "package:{packages} numa:{nodes} l3:{llcs}(size={llc_bytes}MB) l2:{cores}(size=1MB) core:1 pu:{smt}{indexes}"
    )
}

/// Draws a number of threads: a power of two, three quarters of one, all cores, the cores of a
/// package, three quarters of all cores, or all CPUs.
fn draw_threads([packages, nodes, llcs, cores, smt]: [usize; 5], chance: &mut ChaCha8Rng) -> usize {
    let package_cores = nodes * llcs * cores;
    let all_cores = packages * package_cores;
    let power = 1usize << chance.random_range(2..=all_cores.ilog2().max(2));
    let threads = match chance.random_range(0..12) {
        0..5 => power,
        5 => power * 3 / 4,
        6 | 7 => all_cores,
        8 | 9 => package_cores,
        10 => all_cores * 3 / 4,
        _ => all_cores * smt,
    };
    threads.clamp(2, all_cores * smt)
}

fn write_description(
    world: World,
    seed: u64,
    topology: &str,
    threads: usize,
    drawn: &RandomFigures,
) -> String {
    let kind = match world {
        World::Fits => "mechanisms are mild",
        World::Misfits => "mechanisms that a small model does not know",
        World::Useless => "units hardly matter, placements differ without a reason",
        World::Flat => "nothing matters by more than 0.2 %",
    };
    format!(
        "# A random world, {}: {kind}. Seed {seed}, family {}.\n\
         topology = \"{topology}\"\n\n{}\n\n[workload.default]\n\
         base_s = {:?}\nthreads = {threads}\n\n[workload.default.demand]\n{}\n\n\
         [noise]\nsd = {DEFAULT_SD}\n",
        world.name(),
        drawn.family.name(),
        drawn.performance_section(),
        drawn.base_s,
        drawn.demand_section(),
    )
}

/// The machine of a text that this module wrote.
fn open(text: &str) -> Option<SimulatedMachine> {
    SimulatedMachine::from_text("world", text, 0).ok()
}

#[cfg(test)]
mod tests;
