//! The cost of a cache line between two CPUs of a true wiring.

use super::description::Figures;
use super::truth::{Shared, Truth};

impl Truth {
    /// One-way time of a line homed on node `home`, ns.
    pub(super) fn transfer_ns(
        &self,
        a: usize,
        b: usize,
        home: Option<usize>,
        figures: &Figures,
    ) -> f64 {
        let shared = self.innermost_shared(a, b);
        let base = match shared {
            Shared::Thread => return figures.stacked_ns,
            Shared::Core => return figures.smt_ns,
            Shared::L2 => figures.l2_ns.unwrap_or(figures.llc_ns),
            Shared::Llc => figures.llc_ns,
            Shared::Node => figures.numa_ns.unwrap_or(figures.package_ns),
            Shared::Package => figures.package_ns,
            Shared::Nothing => figures.remote_ns,
        };
        let far = base * (1.0 + figures.gradient * self.distance(a, b));
        let asks_home = !matches!(shared, Shared::L2 | Shared::Llc);
        if asks_home && self.is_homed_elsewhere(a, b, home.or(figures.home_node)) {
            far + figures.home_penalty_ns
        } else {
            far
        }
    }

    /// Distance between two cores as a share of the mesh, 0 to 1.
    fn distance(&self, a: usize, b: usize) -> f64 {
        let (Some(a), Some(b)) = (self.units(a), self.units(b)) else {
            return 0.0;
        };
        ((a.x - b.x).abs() + (a.y - b.y).abs()) / self.span
    }

    fn is_homed_elsewhere(&self, a: usize, b: usize, home: Option<usize>) -> bool {
        let node_of = |cpu| self.units(cpu).map(|units| units.node);
        let home = home.and_then(|number| self.node_index(number));
        home.is_some() && node_of(a) != home && node_of(b) != home
    }
}
