//! Settings of other tools, read back by the tests of their emitters.
//!
//! The syntaxes are those that [`super::emit`] writes, as far as the tools document them. A machine
//! is needed only for names of its units. Relative numbers are refused.

mod lists;
mod openmp;

pub(crate) use lists::{
    gomp_list, hwloc_location, kmp_proclist, libvirt_cpuset, numactl_list, slurm_binding,
    systemd_list, taskset_list,
};
pub(crate) use openmp::omp_places;

/// Why a tool's setting could not be read: the piece, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{piece}': {reason}")]
pub(crate) struct ReadError {
    /// The invalid piece.
    pub(crate) piece: String,
    /// What is wrong with it.
    pub(crate) reason: &'static str,
}

fn wrong(piece: &str, reason: &'static str) -> ReadError {
    ReadError {
        piece: piece.to_owned(),
        reason,
    }
}

/// A number of a CPU or a node.
fn number(text: &str, piece: &str) -> Result<usize, ReadError> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number
        .filter(|&n| n <= pinwise_topology::CpuSet::MAX_CPU)
        .ok_or_else(|| wrong(piece, "a number of a CPU or a range such as 0-3 is needed"))
}

/// Limits the places in a text.
const MAX_PLACES: usize = pinwise_topology::CpuSet::MAX_CPU + 1;

#[cfg(test)]
mod tests;
