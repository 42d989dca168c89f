//! The false claims of `record diff` and `fleet diff`.

use anyhow::Result;
use pinwise_nodes::simulate::{SimulatedFleet, SimulationPlan};
use pinwise_nodes::{Nodes, Side, compare_groups, group_nodes};

use super::{Arguments, Noise, sessions};
use crate::share::format_percent;
use crate::table::Table;

/// Diffs of two sessions of the same arms, the second 3 % slower as a whole, that report a changed
/// arm.
pub(super) fn publish_sessions(noises: &[Noise], arguments: &Arguments) -> Result<()> {
    let mut table = Table::new("method-sessions", "noise | arms | diffs | claim a change");
    for (name, noise) in noises {
        for arms in [2, 6] {
            if !arguments.selects(&format!("{name}/{arms}/sessions/")) {
                continue;
            }
            let (all, half) = (arguments.replays as u64, arguments.replays as u64 / 2);
            let claims = std::thread::scope(|scope| {
                let other = scope.spawn(|| sessions::tally_pairs(noise, 1.0, arms, 0..half).claims);
                let own = sessions::tally_pairs(noise, 1.0, arms, half..all).claims;
                own + other.join().unwrap_or_default()
            });
            table.add_row(format!(
                "{name} | {arms} | {all} | {}",
                format_percent(claims as usize, arguments.replays)
            ));
        }
    }
    table.publish()
}

/// Diffs of two equal fleets whose headline claims a difference.
pub(super) fn publish_fleets(arguments: &Arguments) -> Result<()> {
    let mut table = Table::new("method-fleets", "nodes | diffs | claim a difference");
    for size in [4, 16, 40] {
        if !arguments.selects(&format!("fleets/{size}/")) {
            continue;
        }
        let simulate_nodes = |seed: u64| {
            let fleet = SimulatedFleet::new(SimulationPlan {
                user: None,
                id: "f".to_owned(),
                nodes: size,
                seed,
                noise: 0.03,
                faults: 0.0,
                started: "2026-01-01T00:00:00Z".to_owned(),
            });
            let mut nodes = Nodes::new();
            for node in fleet.nodes() {
                nodes.add(node);
            }
            nodes
        };
        let claims = (0..arguments.replays as u64).filter(|pair| {
            let (a, b) = (simulate_nodes(2 * pair), simulate_nodes(2 * pair + 1));
            let (of_a, of_b) = (group_nodes(&a), group_nodes(&b));
            let side = |nodes, group| Side {
                fleet: "f",
                nodes,
                group,
            };
            let found = compare_groups(side(&a, &of_a[0]), side(&b, &of_b[0]));
            found.is_ok_and(|found| found.figures.iter().any(|figure| figure.differs))
        });
        table.add_row(format!(
            "{size} | {} | {}",
            arguments.replays,
            format_percent(claims.count(), arguments.replays)
        ));
    }
    table.publish()
}
