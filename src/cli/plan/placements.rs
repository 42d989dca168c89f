//! The placements that `compare` tries: those of the command line, or those that the configuration
//! has for all commands.

use anyhow::Context;

use super::groups;
use super::parse_placements;
use crate::cli::args::CompareArgs;
use crate::cli::terminal::Terminal;
use pinwise_placement::{Placement, merge_equivalent};
use pinwise_topology::Topology;

/// Explicit or implied placements; `None` if those that suit the program should be tried.
pub(super) fn list_explicit(
    args: &CompareArgs,
    candidates: usize,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Option<Vec<Placement>>> {
    let has_other_arms = candidates > 1
        || !args.interrupts.irqs.is_empty()
        || args.groups.are_given()
        || multiplies_arms(args);
    Ok(if !args.places.is_empty() {
        Some(parse_placements(&args.places)?)
    } else if has_other_arms {
        let default = (!is_baseline_from_option(args)).then(Placement::os_default);
        Some(default.into_iter().collect())
    } else {
        list_configured(args, topology, terminal)?
    })
}

/// Do options add arms that are others with something changed?
fn multiplies_arms(args: &CompareArgs) -> bool {
    !args.what_if.machines.is_empty()
        || !args.memory_policies.is_empty()
        || !args.companions.companions.is_empty()
        || args.scheduling.are_given()
}

/// Is the baseline an arm of another option, such as `limit=1`? Then `os-default` would be an arm
/// that nobody requested, unless options such as `--memory` make their arms from it.
fn is_baseline_from_option(args: &CompareArgs) -> bool {
    let machines = args.what_if.machines.iter().cloned();
    let mut names = groups::list_arm_names(&args.groups).chain(machines);
    let needs_places = !args.memory_policies.is_empty();
    wanted_baseline(args)
        .is_some_and(|baseline| !needs_places && names.any(|name| baseline.contains(&name)))
}

/// The arm that `--baseline` names. Of a limit beside a cpuset it is the limit: the
/// question is which of the two, and `os-default` is neither.
pub(super) fn wanted_baseline(args: &CompareArgs) -> Option<String> {
    let stands_alone = args.places.is_empty()
        && args.commands.is_empty()
        && args.parameters.is_empty()
        && args.parameter_lists.is_empty()
        && !multiplies_arms(args);
    let implied = || groups::limit_beside_cpusets(&args.groups).filter(|_| stands_alone);
    args.baseline.clone().or_else(implied)
}

/// The placements of the configuration; `None` if they do not differ on this machine: the file may
/// have been written for another one.
fn list_configured(
    args: &CompareArgs,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Option<Vec<Placement>>> {
    const SOURCE: &str = "places of config.toml";
    if args.default_places.is_empty() {
        return Ok(None);
    }
    let mut configured = Vec::new();
    let mut realised = Vec::new();
    for placement in parse_placements(&args.default_places).context(SOURCE)? {
        match placement.realise(topology) {
            Ok(place) => {
                configured.push(placement);
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
    Ok(Some(configured))
}
