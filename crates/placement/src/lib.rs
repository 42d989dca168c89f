//! Names for the CPUs that a program's threads may use, and their CPUs on a given machine.
//!
//! ```text
//! NAME[:ARGUMENT][*N][/near:DEVICE|/far:DEVICE][/bound][/mem=POLICY[:NODES]]
//! one-per-core     one-llc:1     spread*4     shape:pkg=1,llc=2,core=8,smt=1
//! shape:llc=2,core=8,cpu=12     tree:1l.4c.2t+.1c.1t     one-per-core/near:gpu0
//! one-numa/mem=bind     os-default/mem=weighted     one-numa:1/mem=preferred:0
//! ```
//!
//! A [`Placement`] is a wish independent of a machine; [`Placement::realise`] turns it into CPUs of
//! one machine, never outside the CPUs that the process may use. A placement is
//! *confined*, one mask for all threads of the program, unless it says `/bound`: one CPU for each
//! thread, in the placement's order of CPUs. Which placement is fast must be measured.
//!
//! ```
//! use pinwise_placement::Placement;
//! use pinwise_topology::Topology;
//!
//! let machine = Topology::from_synthetic("package:2 core:4 pu:2")?;
//! let placement: Placement = "one-per-core*4".parse()?;
//! assert_eq!(placement.realise(&machine)?.cpus.to_string(), "0,2,4,6");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod branches;
mod defaults;
pub mod emit;
mod explain;
mod impossible;
mod interrupts;
mod limit;
mod locality;
mod memory;
mod orders;
mod parse;
mod ranks;
#[cfg(test)]
mod read;
mod realise;
pub mod space;
mod used;

use std::fmt;

use parse::PlainName;
use pinwise_topology::{CpuSet, Level};

pub use branches::{Branch, Branches};
pub use defaults::default_placements;
pub use explain::{equivalents, meaning};
pub use impossible::RealiseError;
pub use interrupts::{InterruptCpus, InterruptError, InterruptPlace, InterruptWish};
pub use limit::{CpuLimit, LimitError};
pub use locality::Locality;
pub use memory::{MemoryPolicy, MemoryWish};
pub use parse::{ParseError, known_names};
pub use ranks::{Rank, RanksError, place_per_device};
pub use realise::{MemoryBinding, Merged, Realised, merge_equivalent};
pub use used::UsedUnits;

/// The number of units used at each level. Omitted levels are used as evenly and as widely as the
/// others allow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Packages in total.
    pub packages: Option<usize>,
    /// NUMA nodes in total.
    pub numa_nodes: Option<usize>,
    /// Last-level-cache domains in total.
    pub llcs: Option<usize>,
    /// Cores in total.
    pub cores: Option<usize>,
    /// CPUs in total, shared out evenly among the units.
    pub cpus: Option<usize>,
    /// CPUs per core.
    pub cpus_per_core: Option<usize>,
}

/// A placement's wish, independent of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Wish {
    /// All allowed CPUs, left to the scheduler.
    OsDefault,
    /// CPUs in the order of the tree: siblings of a core first.
    Compact,
    /// One CPU of each core.
    OnePerCore,
    /// One CPU of each last-level cache.
    OnePerLlc,
    /// One CPU of each NUMA node.
    OnePerNuma,
    /// CPUs as far apart as possible.
    Spread,
    /// Every core once before any second sibling, neighbours first.
    Balanced,
    /// The fastest kind of CPU.
    PCores,
    /// The slowest kind of CPU.
    ECores,
    /// The CPUs that the scheduler leaves alone (`isolcpus`).
    Isolated,
    /// The CPUs of the largest last-level cache.
    LargestLlc,
    /// One CPU of each core, the firmware's favoured cores first; the first core alone
    /// unless cut to N CPUs.
    BestCore,
    /// All CPUs of one unit, by its index.
    One(Level, usize),
    /// These CPUs.
    Cpus(CpuSet),
    /// These CPUs, written as a mask.
    Mask(CpuSet),
    /// The given number of units per level.
    Shape(Shape),
    /// The given number of units of each level in each unit around them.
    Tree(Branches),
}

/// A named placement: a wish, optionally cut to N CPUs, with a memory policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Placement {
    /// What is requested.
    pub wish: Wish,
    /// Use only the first N CPUs.
    pub count: Option<usize>,
    /// Which of the CPUs a thread may use.
    pub kind: Kind,
    /// Only CPUs near or far from a device; `None` for any.
    pub locality: Option<Locality>,
    /// Memory policy; `None` leaves the inherited one.
    pub memory: Option<MemoryWish>,
}

/// Which of a placement's CPUs a thread may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// All of them: one mask for all threads.
    #[default]
    Confined,
    /// One: threads are bound to CPUs in turn, in creation order.
    Bound,
}

impl Placement {
    /// A placement on all CPUs of a wish, with the inherited memory policy.
    #[must_use]
    pub const fn new(wish: Wish) -> Self {
        Self {
            wish,
            count: None,
            kind: Kind::Confined,
            locality: None,
            memory: None,
        }
    }

    /// A placement on the first `count` CPUs of a wish, with the inherited memory policy.
    #[must_use]
    pub const fn with_count(wish: Wish, count: usize) -> Self {
        Self {
            wish,
            count: Some(count),
            kind: Kind::Confined,
            locality: None,
            memory: None,
        }
    }

    /// All allowed CPUs, left to the scheduler.
    #[must_use]
    pub const fn os_default() -> Self {
        Self::new(Wish::OsDefault)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `compact/near:gpu0` is written `near:gpu0`.
        let (as_name, as_suffix) = match &self.wish {
            Wish::Compact => (self.locality.as_ref(), None),
            _ => (None, self.locality.as_ref()),
        };
        let mut text = match &self.wish {
            _ if as_name.is_some() => as_name.map(ToString::to_string).unwrap_or_default(),
            Wish::One(level, index) => {
                let name = one_unit_name(*level);
                if *index == 0 {
                    name.to_owned()
                } else {
                    format!("{name}:{index}")
                }
            }
            Wish::Cpus(set) => format!("cpu:{set}"),
            Wish::Mask(set) => format!("mask:{}", set.to_mask()),
            Wish::Shape(shape) => format!("shape:{shape}"),
            Wish::Tree(branches) => format!("tree:{branches}"),
            plain => PlainName::from_wish(plain)
                .map_or("", |plain| plain.name)
                .to_owned(),
        };
        if let Some(count) = self.count {
            text.push_str(&format!("*{count}"));
        }
        if let Some(locality) = as_suffix {
            text.push_str(&format!("/{locality}"));
        }
        if self.kind == Kind::Bound {
            text.push_str("/bound");
        }
        if let Some(memory) = &self.memory {
            text.push_str(&format!("/mem={memory}"));
        }
        out.pad(&text)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("pkg", self.packages),
            ("numa", self.numa_nodes),
            ("llc", self.llcs),
            ("core", self.cores),
            ("cpu", self.cpus),
            ("smt", self.cpus_per_core),
        ];
        let text: Vec<String> = parts
            .iter()
            .filter_map(|(key, value)| value.map(|v| format!("{key}={v}")))
            .collect();
        out.write_str(&text.join(","))
    }
}

const fn one_unit_name(level: Level) -> &'static str {
    match level {
        Level::Package => "one-package",
        Level::Numa => "one-numa",
        Level::Llc => "one-llc",
        Level::Core => "one-core",
        Level::Cpu => "one-cpu",
    }
}

#[cfg(test)]
mod tests;
