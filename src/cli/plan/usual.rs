//! Which placements `compare` tries: those that are named, or those that the
//! configuration has for all commands.

use anyhow::Context;

use super::parse_placements;
use crate::cli::args::CompareArgs;
use crate::cli::terminal::Terminal;
use pinwise_placement::{Placement, merge_equivalent};
use pinwise_topology::Topology;

/// Explicit or implied placements; `None`: those that suit the program.
pub(super) fn wanted_places(
    args: &CompareArgs,
    candidates: usize,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Option<Vec<Placement>>> {
    let has_other_arms = candidates > 1
        || !args.what_if.machines.is_empty()
        || !args.interrupts.irqs.is_empty()
        || !args.memory_policies.is_empty()
        || args.groups.are_given()
        || !args.companions.companions.is_empty()
        || args.scheduling.are_given();
    Ok(if !args.places.is_empty() {
        Some(parse_placements(&args.places)?)
    } else if has_other_arms {
        Some(vec![Placement::os_default()])
    } else {
        usual_places(args, topology, terminal)?
    })
}

/// The placements of the configuration, if they differ on this machine: what was
/// written for one machine is used on others, too.
fn usual_places(
    args: &CompareArgs,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Option<Vec<Placement>>> {
    const SOURCE: &str = "places of config.toml";
    if args.usual_places.is_empty() {
        return Ok(None);
    }
    let mut usual = Vec::new();
    let mut realised = Vec::new();
    for placement in parse_placements(&args.usual_places).context(SOURCE)? {
        match placement.realise(topology) {
            Ok(place) => {
                usual.push(placement);
                realised.push(place);
            }
            Err(error) => terminal.note(&format!("{SOURCE}: {error}; left out")),
        }
    }
    if merge_equivalent(realised).len() < 2 {
        terminal.note(&format!(
            "{SOURCE} do not differ on this machine: trying what suits it and the program"
        ));
        return Ok(None);
    }
    Ok(Some(usual))
}
