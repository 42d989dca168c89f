//! How many threads are in each unit: what they have to share.

use super::keys::Figures;
use super::seats::{CpuUnits, Seats};

/// Threads per unit of each level.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) on_cpu: Vec<f64>,
    pub(super) on_core: Vec<f64>,
    /// CPUs of each core with a thread.
    pub(super) busy: Vec<f64>,
    pub(super) on_llc: Vec<f64>,
    /// Groups of threads with one in this cache.
    pub(super) groups: Vec<f64>,
    pub(super) on_node: Vec<f64>,
    pub(super) on_package: Vec<f64>,
    /// Cores of each package with a thread.
    pub(super) active: Vec<f64>,
}

impl Crowd {
    pub(super) fn new(seats: &Seats, group: usize, at: &[usize]) -> Self {
        let llcs = seats.llc_bytes.len();
        let mut crowd = Self {
            on_cpu: vec![0.0; seats.seats.len()],
            on_core: vec![0.0; seats.cores],
            busy: vec![0.0; seats.cores],
            on_llc: vec![0.0; llcs],
            groups: vec![0.0; llcs],
            on_node: vec![0.0; seats.nodes],
            on_package: vec![0.0; seats.packages],
            active: vec![0.0; seats.packages],
        };
        let mut last_group = vec![usize::MAX; llcs];
        for (thread, &at) in at.iter().enumerate() {
            let seat = &seats.seats[at];
            if crowd.on_core[seat.core] < 0.5 {
                crowd.active[seat.package] += 1.0;
            }
            if crowd.on_cpu[at] < 0.5 {
                crowd.busy[seat.core] += 1.0;
            }
            if last_group[seat.llc] != thread / group {
                last_group[seat.llc] = thread / group;
                crowd.groups[seat.llc] += 1.0;
            }
            crowd.on_cpu[at] += 1.0;
            crowd.on_core[seat.core] += 1.0;
            crowd.on_llc[seat.llc] += 1.0;
            crowd.on_node[seat.node] += 1.0;
            crowd.on_package[seat.package] += 1.0;
        }
        crowd
    }
}

/// How many of some threads are in each unit.
pub(super) struct Near {
    pub(super) cores: Vec<f64>,
    pub(super) llcs: Vec<f64>,
    pub(super) nodes: Vec<f64>,
    pub(super) packages: Vec<f64>,
}

impl Near {
    pub(super) fn new(seats: &Seats) -> Self {
        Self {
            cores: vec![0.0; seats.cores],
            llcs: vec![0.0; seats.llc_bytes.len()],
            nodes: vec![0.0; seats.nodes],
            packages: vec![0.0; seats.packages],
        }
    }

    /// Adds threads, or takes them away.
    pub(super) fn count(&mut self, seats: &Seats, members: &[usize], weight: f64) {
        for &at in members {
            let seat = &seats.seats[at];
            self.cores[seat.core] += weight;
            self.llcs[seat.llc] += weight;
            self.nodes[seat.node] += weight;
            self.packages[seat.package] += weight;
        }
    }

    /// One-way times from this seat to all others of this many, ns.
    pub(super) fn sum_ns(&self, seat: &CpuUnits, threads: usize, figures: &Figures) -> f64 {
        let core = self.cores[seat.core];
        let llc = self.llcs[seat.llc].max(core);
        let node = self.nodes[seat.node].max(llc);
        let package = self.packages[seat.package].max(node);
        let all = (threads as f64).max(package);
        let counts = [
            core - 1.0,
            llc - core,
            node - llc,
            package - node,
            all - package,
        ];
        let times = counts.iter().zip(figures.transfer_ns);
        times.map(|(count, ns)| count * ns).sum()
    }
}
