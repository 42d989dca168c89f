//! The known algorithms of waiters, each with its source.
//!
//! Rows are data, from which the waits of a machine are computed.

mod dotnet;
mod languages;
mod libraries;
mod servers;

use super::algorithm::{Algorithm, Backoff, Bound, Evidence, Growth, Tunable, Unit};
use super::nearest_name;

pub use dotnet::{CORECLR_MONITOR, NETFX_AWARELOCK};

/// All known algorithms.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    [
        dotnet::ROWS,
        languages::ROWS,
        libraries::ROWS,
        servers::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// No algorithm has this id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no algorithm is called '{name}'; {}", suggest(*nearest))]
pub struct UnknownAlgorithm {
    /// The requested id.
    pub name: String,
    /// The most similar id.
    pub nearest: Option<&'static str>,
}

fn suggest(nearest: Option<&str>) -> String {
    match nearest {
        Some(id) => format!("did you mean {id}?"),
        None => {
            let ids: Vec<&str> = algorithms().map(|row| row.id).collect();
            format!("known are {}", ids.join(", "))
        }
    }
}

/// Finds the algorithm with an id; case and hyphens do not matter.
///
/// # Errors
/// [`UnknownAlgorithm`], with the nearest one.
pub fn find_algorithm(id: &str) -> Result<&'static Algorithm, UnknownAlgorithm> {
    let wanted = id.to_lowercase().replace('-', "_");
    algorithms()
        .find(|row| row.id == wanted)
        .ok_or_else(|| UnknownAlgorithm {
            name: id.to_owned(),
            nearest: nearest_name(&wanted, algorithms().map(|row| row.id)),
        })
}

/// Units that the runtime of .NET calibrates to 37 ns, with at most 272 ns between two looks
/// (dotnet/runtime, `yieldprocessornormalized.h`).
const NORMALISED: Unit = Unit::Normalised {
    unit_ns: 37.0,
    max_ns: 272.0,
};

/// Values that most rows share.
const DEFAULT_ROW: Algorithm = Algorithm {
    id: "",
    name: "",
    versions: "",
    unit: Unit::Hint,
    backoff: Backoff::Endless { gap: 1 },
    longest: None,
    min_cpus: 1,
    then: "",
    tunables: &[],
    source: "",
    evidence: Evidence::Read,
    note: "",
};

/// A backoff of this many runs, each twice as long as the one before.
const fn doubling(runs: u64, first: u64, cap: u64) -> Backoff {
    Backoff::Counted {
        runs: Bound::Fixed(runs),
        first,
        growth: Growth::Times(2),
        cap,
    }
}

/// A backoff of this many looks, after this many units each.
const fn looking(runs: Bound, each: u64) -> Backoff {
    Backoff::Counted {
        runs,
        first: each,
        growth: Growth::Constant,
        cap: each,
    }
}

const fn tunable(name: &'static str, usual: &'static str, how: &'static str) -> Tunable {
    Tunable { name, usual, how }
}

#[cfg(test)]
pub(crate) mod tests;
