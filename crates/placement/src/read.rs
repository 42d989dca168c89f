//! Settings of other tools, read back by the tests of their emitters.
//!
//! The syntaxes are those that [`super::emit`] writes, as far as the tools document them. A machine
//! is needed only for names of its units. Relative numbers are refused.

mod lists;
mod openmp;

pub(crate) use lists::{
    parse_gomp_list, parse_hwloc_location, parse_kmp_proclist, parse_libvirt_cpuset,
    parse_numactl_list, parse_slurm_binding, parse_systemd_list, parse_taskset_list,
};
pub(crate) use openmp::parse_omp_places;

/// Why a tool's setting could not be read: the piece, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{piece}': {reason}")]
pub(crate) struct ReadError {
    /// The invalid piece.
    pub(crate) piece: String,
    /// What is wrong with it.
    pub(crate) reason: &'static str,
}

fn error_at(piece: &str, reason: &'static str) -> ReadError {
    ReadError {
        piece: piece.to_owned(),
        reason,
    }
}

/// Parses the number of a CPU or a node.
fn parse_number(text: &str, piece: &str) -> Result<usize, ReadError> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number
        .filter(|&n| n <= pinwise_topology::CpuSet::MAX_CPU)
        .ok_or_else(|| error_at(piece, "a number of a CPU or a range such as 0-3 is needed"))
}

/// Limits the places that are read from one text.
const MAX_PLACES: usize = pinwise_topology::CpuSet::MAX_CPU + 1;

#[cfg(test)]
mod tests;
