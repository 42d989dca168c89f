//! Compares `pinwise search` with other ways to find the best placement: how many runs it needs, and
//! how much slower its choice is than the best. The random simulated machines have a known truth and
//! do not follow the search's own model.
//!
//! A filter is text that `/WORLD/NOISE/` must contain, several joined by `+`; `2x8x8x2` selects the
//! machine of that shape, and `varied demands`, `two basins`, `nothing matters` and `fits, SERIES`
//! select searches without rivals.

mod beyond;
mod contest;
#[path = "../../tests/it/rivals.rs"]
mod rivals;
#[path = "../../tests/it/search_worlds.rs"]
mod search_worlds;
mod table;
mod worlds;

use anyhow::{Result, bail};
use contest::{ContestOutcome, Rival};
use pinwise_sim::world::{self, World};
use worlds::{Case, Noise};

use crate::table::Table;

/// Default number of seeds for each kind of world and noise.
const SEEDS: u64 = 125;
/// The machine that has a table of its own.
const TOPOLOGY: &str = "package:2 l3:8 core:8 pu:2";
/// Its name in filters.
const TOPOLOGY_NAME: &str = "2x8x8x2";

/// The parsed arguments.
struct Arguments {
    seeds: u64,
    filter: String,
    rivals: Vec<Rival>,
}

impl Arguments {
    fn selects(&self, label: &str) -> bool {
        self.filter.split('+').all(|part| label.contains(part))
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments = parse_arguments(arguments)?;
    let mut table = Table::new("search", table::HEAD);
    let mut cells = Vec::new();
    for world in World::ALL {
        let name = world.name();
        for noise in Noise::ALL {
            if arguments.selects(&format!("/{name}/{}/", noise.name())) {
                let describe = |seed| world::describe(world, seed);
                let outcomes = run_contests(noise, &arguments, &describe)?;
                table::add_cell(&mut table, name, noise.name(), &outcomes, &arguments.rivals);
                cells.push((name, noise.name(), outcomes));
            }
        }
    }
    table.publish()?;
    table::publish_statements(&cells)?;
    table::publish_random(&cells)?;
    publish_one_machine(&arguments)?;
    beyond::publish(arguments.seeds, &|label| arguments.selects(label))
}

/// The same for one machine, of shape [`TOPOLOGY`].
fn publish_one_machine(arguments: &Arguments) -> Result<()> {
    let threads = worlds::threads_with_most_shapes(TOPOLOGY)?;
    let mut table = Table::new("search-one-machine", table::HEAD);
    for world in World::ALL {
        let name = world.name();
        let noise = Noise::LogNormal;
        if !arguments.selects(&format!("{TOPOLOGY_NAME}/{name}/{}/", noise.name())) {
            continue;
        }
        let describe = |seed| world::describe_on(world, seed, TOPOLOGY, threads);
        let outcomes = run_contests(noise, arguments, &describe)?;
        table::add_cell(&mut table, name, noise.name(), &outcomes, &arguments.rivals);
    }
    table.publish()
}

fn parse_arguments(arguments: &[String]) -> Result<Arguments> {
    let mut arguments = arguments.iter().cloned();
    let seeds = arguments.next().map_or(Ok(SEEDS), |text| text.parse())?;
    let filter = arguments.next().unwrap_or_default();
    let names = arguments.next().unwrap_or_default();
    let mut rivals = Vec::new();
    for name in names.split('+').filter(|name| !name.is_empty()) {
        match Rival::ALL.into_iter().find(|rival| rival.name() == name) {
            Some(rival) => rivals.push(rival),
            None => bail!("no such rival: {name}"),
        }
    }
    if rivals.is_empty() {
        rivals = Rival::ALL.to_vec();
    }
    Ok(Arguments {
        seeds,
        filter,
        rivals,
    })
}

type Describe<'a> = dyn Fn(u64) -> String + Sync + 'a;

/// Runs the contest for the requested number of seeds, half of them on a second thread. Seeds that
/// leave only one placement are skipped. The result does not depend on the threads.
fn run_contests(
    noise: Noise,
    arguments: &Arguments,
    describe: &Describe<'_>,
) -> Result<Vec<ContestOutcome>> {
    let every_other = |first: u64| -> Result<Vec<ContestOutcome>> {
        let mut outcomes = Vec::new();
        for seed in (first..).step_by(2) {
            if outcomes.len() as u64 * 2 + first > arguments.seeds {
                break;
            }
            let case = Case::new(&describe(seed), noise, seed)?;
            if case.has_choice() {
                outcomes.push(contest::run(&case, &arguments.rivals, seed)?);
            }
        }
        Ok(outcomes)
    };
    let (own, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| every_other(2));
        (every_other(1), other.join())
    });
    let mut outcomes = own?;
    match other {
        Ok(other) => outcomes.extend(other?),
        Err(_) => bail!("a thread of the benchmark panicked"),
    }
    if outcomes.is_empty() {
        bail!("no seed leaves a choice of placements");
    }
    Ok(outcomes)
}
