//! `fleet diff`: compares two fleets, or two groups of machines.

use anyhow::{Context, bail};

use super::nodes::{FleetWithNodes, is_folder, load_fleet};
use crate::cli::Exit;
use crate::cli::args::{FleetDiffArgs, Global};
use crate::cli::terminal::Terminal;
use pinwise_format::count;
use pinwise_nodes::{Group, Side, compare_groups, group_nodes};

/// The most groups that an error lists.
const MAX_NAMES: usize = 8;

/// A fleet, its groups, and the position of the one to compare.
struct LoadedSide {
    loaded: FleetWithNodes,
    groups: Vec<Group>,
    chosen: usize,
}

pub(super) fn diff(
    global: &Global,
    args: &FleetDiffArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let a = load_side(global, &args.a, terminal).with_context(|| format!("A, '{}'", args.a))?;
    let b = load_side(global, &args.b, terminal).with_context(|| format!("B, '{}'", args.b))?;
    if a.loaded.id == b.loaded.id && a.chosen == b.chosen {
        bail!(
            "{} is both A and B: name another fleet, or another of its groups",
            args.a
        );
    }
    let difference = compare_groups(a.to_side(), b.to_side())?;
    terminal.show(&difference, pinwise_report::render_fleet_diff)?;
    Ok(Exit::Done)
}

impl LoadedSide {
    fn to_side(&self) -> Side<'_> {
        Side {
            fleet: &self.loaded.id,
            nodes: &self.loaded.nodes,
            group: &self.groups[self.chosen],
        }
    }
}

/// Loads `FLEET` or `FLEET/GROUP`; the path of a fleet's folder may contain slashes.
fn load_side(global: &Global, text: &str, terminal: &Terminal) -> anyhow::Result<LoadedSide> {
    let (fleet, group) = match text.rsplit_once('/') {
        Some((fleet, group)) if !is_folder(text) && !fleet.is_empty() => (fleet, Some(group)),
        _ => (text, None),
    };
    // A group's name may contain slashes, too: then the fleet's name ends at the first.
    let (fleet, group) = match text.split_once('/') {
        Some((first, rest)) if group.is_some() && !is_folder(fleet) => (first, Some(rest)),
        _ => (fleet, group),
    };
    let loaded = load_fleet(global, fleet)?;
    let groups = group_nodes(&loaded.nodes);
    if groups.is_empty() {
        bail!("fleet {} has no node with a record", loaded.id);
    }
    let chosen = match group {
        Some(group) => find_group(&groups, group)?,
        None => 0,
    };
    if group.is_none() && groups.len() > 1 {
        terminal.note(&format!(
            "{} has {}; this is the largest: {}.",
            loaded.id,
            count(groups.len(), "group"),
            groups[0].name
        ));
    }
    Ok(LoadedSide {
        loaded,
        groups,
        chosen,
    })
}

/// The position of the group with a number (from 1), a name, or a unique prefix of one.
fn find_group(groups: &[Group], wanted: &str) -> anyhow::Result<usize> {
    if let Some(number) = wanted
        .parse::<usize>()
        .ok()
        .filter(|n| (1..=groups.len()).contains(n))
    {
        return Ok(number - 1);
    }
    if let Some(exact) = groups.iter().position(|group| group.name == wanted) {
        return Ok(exact);
    }
    let has_prefix = |group: &Group| group.name.starts_with(wanted);
    let matching: Vec<usize> = (0..groups.len())
        .filter(|at| has_prefix(&groups[*at]))
        .collect();
    let list_groups = || {
        let names = groups.iter().zip(1..).take(MAX_NAMES);
        let names: Vec<String> = names.map(|(g, at)| format!("{at} {}", g.name)).collect();
        names.join("; ")
    };
    match matching.as_slice() {
        [one] => Ok(*one),
        [] => bail!("no group '{wanted}': {}", list_groups()),
        several => bail!(
            "{} groups begin with '{wanted}': {}",
            several.len(),
            list_groups()
        ),
    }
}
