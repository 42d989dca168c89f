//! What `record diff` and `fleet diff` claim when nothing changed.

use anyhow::Result;
use pinwise_nodes::simulate::{SimulatedFleet, SimulationPlan};
use pinwise_nodes::{Nodes, Side, compare_groups, group_nodes};

use super::{Arguments, Noise, sessions};
use crate::share::percent_of;
use crate::table::Table;

/// Two sessions of the same arms, the second 3 % slower as a whole: how often is
/// any of them reported to have changed?
pub(super) fn publish_sessions(noises: &[Noise], asked: &Arguments) -> Result<()> {
    let mut table = Table::new("method-sessions", "noise | arms | diffs | claim a change");
    for (name, noise) in noises {
        for arms in [2, 6] {
            if !asked.takes(&format!("{name}/{arms}/sessions/")) {
                continue;
            }
            let (all, half) = (asked.replays as u64, asked.replays as u64 / 2);
            let claims = std::thread::scope(|scope| {
                let other = scope.spawn(|| sessions::tally(noise, 1.0, arms, 0..half).claims);
                let own = sessions::tally(noise, 1.0, arms, half..all).claims;
                own + other.join().unwrap_or_default()
            });
            table.add_row(format!(
                "{name} | {arms} | {all} | {}",
                percent_of(claims as usize, asked.replays)
            ));
        }
    }
    table.publish()
}

/// Two fleets that are alike: how often does the headline of their `fleet diff`
/// claim a difference?
pub(super) fn publish_fleets(asked: &Arguments) -> Result<()> {
    let mut table = Table::new("method-fleets", "nodes | diffs | claim a difference");
    for size in [4, 16, 40] {
        if !asked.takes(&format!("fleets/{size}/")) {
            continue;
        }
        let nodes = |seed: u64| {
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
        let claims = (0..asked.replays as u64).filter(|pair| {
            let (a, b) = (nodes(2 * pair), nodes(2 * pair + 1));
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
            asked.replays,
            percent_of(claims.count(), asked.replays)
        ));
    }
    table.publish()
}
