//! The false claims about identical arms by tools that run one arm after the other and apply
//! Welch's t-test.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use pinwise_stats::{describe, welch};
use xtask::programs::root;

use super::{Arguments, SERIES};
use crate::table::Table;

pub(super) fn publish(arguments: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method-sweeps",
        "sequential blocks, Welch's test | 2 arms, 20 runs each | 20 arms, 24 runs each",
    );
    for (name, load) in SERIES {
        if !arguments.selects(&format!("{name}/sweeps/")) {
            continue;
        }
        let walls = read_walls(&root().join(format!("tests/data/series/{name}.csv.xz")))?;
        table.add_row(format!(
            "{name} ({load}) | {:.0} % | {:.0} %",
            100.0 * share_of_claims(&walls, 2, 20),
            100.0 * share_of_claims(&walls, 20, 24)
        ));
    }
    table.publish()
}

fn read_walls(path: &Path) -> Result<Vec<f64>> {
    let mut text = String::new();
    let packed = std::fs::File::open(path)?;
    lzma_rust2::XzReader::new(packed, true).read_to_string(&mut text)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let column = reader.headers()?.iter().position(|name| name == "wall");
    let column = column.context("no wall-clock times")?;
    let mut walls = Vec::new();
    for row in reader.records() {
        walls.push(row?.get(column).unwrap_or("").parse()?);
    }
    Ok(walls)
}

/// Share of sweeps in which the arm with the lowest mean is significantly
/// different from the first arm (for two arms: either from the other).
fn share_of_claims(walls: &[f64], arms: usize, runs: usize) -> f64 {
    let length = arms * runs;
    let starts: Vec<usize> = (0..walls.len().saturating_sub(length)).step_by(7).collect();
    let claims = starts.iter().filter(|&&start| {
        let blocks: Vec<&[f64]> = walls[start..start + length].chunks(runs).collect();
        let best = blocks[1..]
            .iter()
            .min_by(|a, b| describe::mean(a).total_cmp(&describe::mean(b)));
        best.is_some_and(|best| welch::two_sided_p(blocks[0], best) < 0.05)
    });
    claims.count() as f64 / starts.len().max(1) as f64
}
