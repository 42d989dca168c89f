//! Random machines with random programs, as descriptions: test cases for a search.
//!
//! A seed gives the same text for ever. The text has comments, and [`SimulatedMachine::from_text`]
//! opens it; every program name runs the described program. Figures are redrawn until placements
//! differ by about a preselected amount, so that placement matters unless a flat world was
//! requested.

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
    /// All, in this order.
    pub const ALL: [Self; 4] = [Self::Fits, Self::Misfits, Self::Useless, Self::Flat];

    /// Its word.
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

/// Default noise of a world.
const USUAL_SD: f64 = 0.03;
/// Limits the tries to meet the wanted spread.
const MAX_TRIES: u32 = 24;

/// Shapes of machines that are or were sold, 8 to 384 CPUs: packages, nodes of
/// each, last-level caches of each, cores of each, CPUs of each.
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

/// A random machine with a random program.
#[must_use]
pub fn describe(world: World, seed: u64) -> String {
    let mut chance = stream(seed, 5);
    let shape = SHAPES[chance.random_range(0..SHAPES.len())];
    let topology = synthetic(shape, chance.random());
    let threads = draw_threads(shape, &mut chance);
    describe_on(world, seed, &topology, threads)
}

/// The same on this machine, for a program of this many threads. An invalid topology is written
/// unchanged, and refused when opened.
#[must_use]
pub fn describe_on(world: World, seed: u64, topology: &str, threads: usize) -> String {
    let mut chance = stream(seed, 6);
    let family = Family::ALL[chance.random_range(0..Family::ALL.len())];
    let hardware = Topology::from_synthetic(topology)
        .ok()
        .map(|topology| Hardware::new(&topology, threads));
    let Some(hardware) = hardware.filter(|hardware| hardware.masks.len() > 1) else {
        let drawn = RandomFigures::new(world, family, &Hardware::default(), threads, &mut chance);
        return text(world, seed, topology, threads, &drawn);
    };
    // The wanted difference between placements, as ln of the slowest over the fastest; the figures
    // are scaled until they nearly reach it.
    let wanted = (0.05f64.ln() * (1.0 - chance.random::<f64>())).exp();
    let mut drawn = RandomFigures::new(world, family, &hardware, threads, &mut chance);
    let mut best = (f64::INFINITY, String::new());
    for _ in 0..MAX_TRIES {
        // The unexplained part is not structure and does not count here.
        let structure = drawn.without_unexplained();
        let spread = hardware.spread(&text(world, seed, topology, threads, &structure));
        let miss = drawn.miss(world, spread, wanted);
        if miss < best.0 {
            best = (miss, text(world, seed, topology, threads, &drawn));
        }
        if miss <= 0.0 {
            break;
        }
        drawn.scale(world, spread, wanted);
    }
    best.1
}

/// The same description with other noise.
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

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    chance.set_stream(number);
    chance
}

/// A shape in hwloc's syntax. Most systems number the first CPUs of all cores before the second
/// ones.
fn synthetic([packages, nodes, llcs, cores, smt]: [usize; 5], is_split: bool) -> String {
    let llc_bytes = if llcs > 1 || nodes > 1 {
        cores * 4
    } else {
        (cores * 3) / 2
    };
    let all = packages * nodes * llcs * cores;
    let indexes = if is_split && smt > 1 {
        let numbers: Vec<String> = (0..all)
            .flat_map(|core| (0..smt).map(move |rank| (rank * all + core).to_string()))
            .collect();
        format!("(indexes={})", numbers.join(","))
    } else {
        String::new()
    };
    format!(
        "package:{packages} numa:{nodes} l3:{llcs}(size={llc_bytes}MB) l2:{cores}(size=1MB) core:1 pu:{smt}{indexes}"
    )
}

/// A power of two, three quarters of one, the cores of all or of a package,
/// three quarters of the cores, all CPUs.
fn draw_threads([packages, nodes, llcs, cores, smt]: [usize; 5], chance: &mut ChaCha8Rng) -> usize {
    let of_package = nodes * llcs * cores;
    let all = packages * of_package;
    let power = 1usize << chance.random_range(2..=all.ilog2().max(2));
    let threads = match chance.random_range(0..12) {
        0..5 => power,
        5 => power * 3 / 4,
        6 | 7 => all,
        8 | 9 => of_package,
        10 => all * 3 / 4,
        _ => all * smt,
    };
    threads.clamp(2, all * smt)
}

/// The description.
fn text(world: World, seed: u64, topology: &str, threads: usize, drawn: &RandomFigures) -> String {
    let kind = match world {
        World::Fits => "mechanisms are mild",
        World::Misfits => "mechanisms that a small model does not know",
        World::Useless => "units hardly matter, placements do, for no reason",
        World::Flat => "nothing matters by more than 0.2 %",
    };
    format!(
        "# A random world, {}: {kind}. Seed {seed}, family {}.\n\
         topology = \"{topology}\"\n\n{}\n\n[workload.default]\n\
         base_s = {:?}\nthreads = {threads}\n\n[workload.default.demand]\n{}\n\n\
         [noise]\nsd = {USUAL_SD}\n",
        world.name(),
        drawn.family.name(),
        drawn.machine(),
        drawn.base_s,
        drawn.demand(),
    )
}

/// The machine of a text that this module wrote.
fn open(text: &str) -> Option<SimulatedMachine> {
    SimulatedMachine::from_text("world", text, 0).ok()
}

#[cfg(test)]
mod tests;
