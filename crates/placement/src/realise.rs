//! From a wish to the CPUs of one machine.
//!
//! All placements build on two orders of the allowed CPUs: *compact* walks the tree depth first,
//! *spread* alternates between the outermost units first. The result stays within the allowed CPUs,
//! except for explicit CPUs outside the process's own mask; one that is offline or outside its
//! cpuset is an error, because the kernel would silently drop it from the mask.

use super::orders::Orders;
use super::space::{Lacking, Space};
use super::{Kind, MemoryPolicy, Placement, RealiseError, Shape, UsedUnits, Wish};
use pinwise_topology::{CacheType, CpuSet, Level, NumaNode, Topology};

/// A placement on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Realised {
    /// The placement that was realised.
    pub placement: Placement,
    /// The mask that all threads share, or are bound within.
    pub cpus: CpuSet,
    /// The same CPUs in the placement's order, for bound threads.
    pub order: Vec<usize>,
    /// Memory policy with its nodes.
    pub memory: Option<MemoryBinding>,
    /// The units that the CPUs use.
    pub used: UsedUnits,
}

/// A memory policy and the NUMA nodes it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBinding {
    /// The policy.
    pub policy: MemoryPolicy,
    /// The operating system's node numbers.
    pub nodes: Vec<usize>,
}

impl Placement {
    /// The CPUs of this placement on a machine.
    ///
    /// # Errors
    /// [`RealiseError`] if the machine lacks what is requested or this process may not use it.
    pub fn realise(&self, topology: &Topology) -> Result<Realised, RealiseError> {
        if topology.allowed.is_empty() && !self.may_leave_mask() {
            return Err(RealiseError::NothingAllowed {
                placement: self.to_string(),
            });
        }
        let restricted;
        let topology = match &self.locality {
            None => topology,
            Some(locality) => {
                restricted = locality.restrict(topology, self)?;
                &restricted
            }
        };
        let candidates = self.list_candidates(topology)?;
        let order: Vec<usize> = match self.count {
            None => candidates,
            Some(count) if count > candidates.len() => {
                return Err(self.too_many_cpus(count, candidates.len()));
            }
            Some(count) => candidates.into_iter().take(count).collect(),
        };
        let cpus: CpuSet = order.iter().copied().collect();
        let memory = match &self.memory {
            None => None,
            Some(wish) => Some(MemoryBinding {
                policy: wish.policy,
                nodes: match &wish.nodes {
                    Some(nodes) => self.check_memory_nodes(topology, nodes)?,
                    None => self.find_nodes_with_memory(topology, &cpus, wish.policy)?,
                },
            }),
        };
        Ok(Realised {
            placement: self.clone(),
            used: UsedUnits::count(topology, &cpus),
            cpus,
            order,
            memory,
        })
    }

    /// A process's own mask is a default: explicit CPUs may lie outside it, as for `taskset`.
    /// Shapes stay within.
    const fn may_leave_mask(&self) -> bool {
        matches!(self.wish, Wish::Cpus(_) | Wish::Mask(_) | Wish::Isolated)
    }

    /// The CPUs that fit the wish, best first.
    fn list_candidates(&self, topology: &Topology) -> Result<Vec<usize>, RealiseError> {
        let orders = Orders::from_topology(topology);
        match &self.wish {
            Wish::OsDefault | Wish::Compact => Ok(orders.compact()),
            Wish::Spread => Ok(orders.spread()),
            Wish::Balanced => Ok(orders.balanced()),
            Wish::OnePerCore => self.select_first_of_each(topology, Level::Core, &orders),
            Wish::OnePerLlc => self.select_first_of_each(topology, Level::Llc, &orders),
            Wish::OnePerNuma => self.select_first_of_each(topology, Level::Numa, &orders),
            Wish::PCores => self.select_kind(topology, "P", &orders),
            Wish::ECores => self.select_kind(topology, "E", &orders),
            Wish::Isolated => self.find_isolated(topology),
            Wish::LargestLlc => self.select_largest_llc(topology, &orders),
            Wish::BestCore => self.select_best_cores(topology, &orders),
            Wish::One(level, index) => self.select_unit(topology, *level, *index, &orders),
            Wish::Cpus(set) | Wish::Mask(set) => self.check_cpus(topology, set),
            Wish::Shape(shape) => match shape.cpus {
                Some(cpus) => self.spread_evenly_over(topology, shape, cpus),
                None => self.narrow_to_shape(topology, *shape, &orders),
            },
            Wish::Tree(branches) => {
                let found = Space::from_topology(topology).realise(branches);
                self.list_or_impossible(found)
            }
        }
    }

    fn require_units(
        &self,
        topology: &Topology,
        level: Level,
    ) -> Result<Vec<CpuSet>, RealiseError> {
        let units = topology.allowed_units(level);
        if units.is_empty() {
            return Err(RealiseError::NotReported {
                placement: self.to_string(),
                noun: match level {
                    Level::Llc => "shared caches",
                    other => other.noun(),
                },
            });
        }
        Ok(units)
    }

    fn select_first_of_each(
        &self,
        topology: &Topology,
        level: Level,
        orders: &Orders,
    ) -> Result<Vec<usize>, RealiseError> {
        let firsts: CpuSet = self
            .require_units(topology, level)?
            .iter()
            .filter_map(CpuSet::first)
            .collect();
        Ok(orders.select(&firsts))
    }

    fn select_kind(
        &self,
        topology: &Topology,
        name: &'static str,
        orders: &Orders,
    ) -> Result<Vec<usize>, RealiseError> {
        let kind = topology.kinds.iter().find(|kind| kind.name == name);
        let cpus = kind
            .map(|kind| kind.cpus.intersection(&topology.allowed))
            .filter(|cpus| !cpus.is_empty())
            .ok_or_else(|| RealiseError::NotReported {
                placement: self.to_string(),
                noun: "kinds of core (P and E) that this process may use",
            })?;
        Ok(orders.select(&cpus))
    }

    fn select_largest_llc(
        &self,
        topology: &Topology,
        orders: &Orders,
    ) -> Result<Vec<usize>, RealiseError> {
        let llcs = self.require_units(topology, Level::Llc)?;
        let sizes: Vec<Option<u64>> = llcs.iter().map(|cpus| llc_bytes(topology, cpus)).collect();
        let largest = sizes.iter().max().copied().flatten();
        let (Some(largest), true) = (largest, sizes.iter().any(|size| *size != sizes[0])) else {
            return Err(RealiseError::NotReported {
                placement: self.to_string(),
                noun: "last-level caches of different sizes that this process may use",
            });
        };
        let first = sizes.iter().position(|size| *size == Some(largest));
        Ok(orders.select(&llcs[first.unwrap_or_default()]))
    }

    fn select_best_cores(
        &self,
        topology: &Topology,
        orders: &Orders,
    ) -> Result<Vec<usize>, RealiseError> {
        if topology.ranks.is_empty() {
            return Err(RealiseError::NotReported {
                placement: self.to_string(),
                noun: "cores that are faster than others",
            });
        }
        let firsts = self.select_first_of_each(topology, Level::Core, orders)?;
        let mut ranked: Vec<usize> = Vec::with_capacity(firsts.len());
        for rank in &topology.ranks {
            ranked.extend(firsts.iter().filter(|&&cpu| rank.contains(cpu)));
        }
        if self.count.is_none() {
            ranked.truncate(1);
        }
        Ok(ranked)
    }

    fn select_unit(
        &self,
        topology: &Topology,
        level: Level,
        index: usize,
        orders: &Orders,
    ) -> Result<Vec<usize>, RealiseError> {
        let units = self.require_units(topology, level)?;
        let unit = units.get(index).ok_or_else(|| RealiseError::NoSuchUnit {
            placement: self.to_string(),
            noun: level.noun(),
            index,
            known: (0..units.len()).collect(),
        })?;
        Ok(orders.select(unit))
    }

    /// Checks that this process may use the memory of explicit nodes.
    fn check_memory_nodes(
        &self,
        topology: &Topology,
        nodes: &CpuSet,
    ) -> Result<Vec<usize>, RealiseError> {
        let usable = topology.usable_memory_nodes().into_iter();
        let usable: CpuSet = usable.map(|node| node.node).collect();
        let absent = nodes.difference(&usable);
        match absent.is_empty() {
            true => Ok(nodes.iter().collect()),
            false => Err(RealiseError::NoMemory {
                placement: self.to_string(),
                nodes: absent,
                usable,
            }),
        }
    }

    /// The nodes of these CPUs, at least one of which must have memory: the kernel refuses any
    /// policy but `local` without a node.
    fn find_nodes_with_memory(
        &self,
        topology: &Topology,
        cpus: &CpuSet,
        policy: MemoryPolicy,
    ) -> Result<Vec<usize>, RealiseError> {
        let numbers = |nodes: Vec<&NumaNode>| nodes.into_iter().map(|node| node.node).collect();
        let usable: CpuSet = numbers(topology.usable_memory_nodes());
        // A cpuset lists only nodes with memory, so a node without memory is never in it.
        let nodes = topology.numa_nodes.iter();
        let near = nodes.filter(|node| node.cpus.intersects(cpus));
        let near: CpuSet = numbers(near.collect());
        let with_memory = near.intersection(&usable);
        if !with_memory.is_empty() || policy == MemoryPolicy::Local {
            return Ok(with_memory.iter().collect());
        }
        let placement = self.to_string();
        Err(match near.is_empty() {
            true => RealiseError::NoNode {
                placement,
                cpus: cpus.clone(),
                usable,
            },
            false => RealiseError::NoMemory {
                placement,
                nodes: near,
                usable,
            },
        })
    }

    fn find_isolated(&self, topology: &Topology) -> Result<Vec<usize>, RealiseError> {
        let cpus = topology.isolated.intersection(&topology.reachable());
        match cpus.is_empty() {
            false => Ok(cpus.iter().collect()),
            true => Err(RealiseError::NotReported {
                placement: self.to_string(),
                noun: "isolated CPUs (isolcpus) that this process may use",
            }),
        }
    }

    fn check_cpus(&self, topology: &Topology, set: &CpuSet) -> Result<Vec<usize>, RealiseError> {
        let placement = self.to_string();
        let present: CpuSet = topology.cpus.iter().map(|cpu| cpu.id).collect();
        let absent = set.difference(&present);
        if !absent.is_empty() {
            return Err(RealiseError::Absent {
                placement,
                cpus: absent,
                present,
            });
        }
        let offline = set.difference(&topology.online);
        if !offline.is_empty() {
            return Err(RealiseError::Offline {
                placement,
                cpus: offline,
            });
        }
        for restriction in topology.restrictions.iter().filter(|r| !r.is_mask) {
            let forbidden = set.difference(&restriction.leaves);
            if !forbidden.is_empty() {
                return Err(RealiseError::Forbidden {
                    placement,
                    cpus: forbidden,
                    by: restriction.by.clone(),
                    leaves: restriction.leaves.clone(),
                });
            }
        }
        Ok(set.iter().collect())
    }

    fn spread_evenly_over(
        &self,
        topology: &Topology,
        shape: &Shape,
        cpus: usize,
    ) -> Result<Vec<usize>, RealiseError> {
        let available = topology.allowed.len();
        if cpus > available {
            return Err(self.too_many_cpus(cpus, available));
        }
        self.list_or_impossible(Space::from_topology(topology).spread_evenly(shape, cpus))
    }

    fn list_or_impossible(
        &self,
        found: Result<CpuSet, Lacking>,
    ) -> Result<Vec<usize>, RealiseError> {
        let lacking = |Lacking { wanted, from }| RealiseError::Impossible {
            placement: self.to_string(),
            wanted,
            from,
        };
        Ok(found.map_err(lacking)?.iter().collect())
    }

    /// Narrows the machine level by level, outermost first: each step keeps the requested number of
    /// units, spread over what the steps before kept.
    fn narrow_to_shape(
        &self,
        topology: &Topology,
        shape: Shape,
        orders: &Orders,
    ) -> Result<Vec<usize>, RealiseError> {
        let mut kept = topology.allowed.clone();
        let mut from = "this machine".to_owned();
        let steps = [
            (Level::Package, shape.packages),
            (Level::Numa, shape.numa_nodes),
            (Level::Llc, shape.llcs),
            (Level::Core, shape.cores),
        ];
        for (level, wanted) in steps {
            let Some(wanted) = wanted else { continue };
            let plural = if wanted == 1 { "" } else { "s" };
            let text = format!("{wanted} {}{plural}", level.noun());
            let chosen = self.spread_units(topology, level, wanted, &kept, orders)?;
            kept = chosen.ok_or_else(|| RealiseError::Impossible {
                placement: self.to_string(),
                wanted: text.clone(),
                from: from.clone(),
            })?;
            from = text;
        }
        if let Some(per_core) = shape.cpus_per_core {
            kept = self.limit_cpus_per_core(topology, per_core, &kept)?;
        }
        Ok(orders.select(&kept))
    }

    fn spread_units(
        &self,
        topology: &Topology,
        level: Level,
        wanted: usize,
        within: &CpuSet,
        orders: &Orders,
    ) -> Result<Option<CpuSet>, RealiseError> {
        let units: Vec<CpuSet> = self
            .require_units(topology, level)?
            .into_iter()
            .map(|unit| unit.intersection(within))
            .filter(|unit| !unit.is_empty())
            .collect();
        let mut chosen: Vec<&CpuSet> = Vec::new();
        for cpu in orders.spread() {
            let unit = units.iter().find(|unit| unit.contains(cpu));
            if let Some(unit) = unit.filter(|unit| !chosen.contains(unit))
                && chosen.len() < wanted
            {
                chosen.push(unit);
            }
        }
        let union = CpuSet::union_of(chosen.iter().copied());
        Ok((chosen.len() == wanted).then_some(union))
    }

    fn limit_cpus_per_core(
        &self,
        topology: &Topology,
        per_core: usize,
        within: &CpuSet,
    ) -> Result<CpuSet, RealiseError> {
        let mut kept = CpuSet::new();
        for core in self.require_units(topology, Level::Core)? {
            let core = core.intersection(within);
            if !core.is_empty() && core.len() < per_core {
                return Err(RealiseError::Impossible {
                    placement: self.to_string(),
                    wanted: format!("{per_core} CPUs per core"),
                    from: format!("the core of CPUs {core}"),
                });
            }
            for cpu in core.iter().take(per_core) {
                kept.insert(cpu);
            }
        }
        Ok(kept)
    }

    fn too_many_cpus(&self, wanted: usize, available: usize) -> RealiseError {
        RealiseError::TooMany {
            placement: self.to_string(),
            wanted,
            available,
        }
    }
}

/// Bytes of the last-level cache of these CPUs, which others may share.
fn llc_bytes(topology: &Topology, cpus: &CpuSet) -> Option<u64> {
    let caches = topology
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheType::Instruction && cpus.is_subset(&cache.cpus));
    caches.max_by_key(|cache| cache.level)?.size_bytes
}

impl Realised {
    /// What the placement controls, as a noun.
    #[must_use]
    pub const fn resource_noun(&self) -> &'static str {
        match self.memory {
            Some(_) => "CPUs and memory",
            None => "CPUs",
        }
    }
}

/// A placement, and the others with the same CPUs and memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The first of them.
    pub placement: Realised,
    /// Names of the others.
    pub also_named: Vec<String>,
}

/// Merges placements with the same CPUs and memory on this machine. Each result is the first of its
/// group, with the names of the others.
#[must_use]
pub fn merge_equivalent(arms: Vec<Realised>) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    for arm in arms {
        let same = merged.iter_mut().find(|known| {
            let first = &known.placement;
            let is_as_bound = match (first.placement.kind, arm.placement.kind) {
                (Kind::Confined, Kind::Confined) => first.cpus == arm.cpus,
                (Kind::Bound, Kind::Bound) => first.order == arm.order,
                _ => false,
            };
            is_as_bound && first.memory == arm.memory
        });
        match same {
            Some(known) => known.also_named.push(arm.placement.to_string()),
            None => merged.push(Merged {
                placement: arm,
                also_named: Vec::new(),
            }),
        }
    }
    merged
}
