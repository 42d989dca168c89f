//! The speed of threads at their places, in closed form.
//!
//! The structure is Pandia's (Goodman, Varisteas and Harris 2017): each thread's demands are summed
//! at every resource on its way, and the most contended one slows it down, smoothly;
//! synchronisation and load imbalance are added.

use super::cpu_table::{CpuTable, CpuUnits};
use super::crowd::{Crowd, UnitCounts};
use super::keys::{Figures, Keys};
use crate::demand::{Demand, Pages};
use pinwise_placement::{MemoryBinding, MemoryPolicy};

/// Additional latency of memory of another node of the package.
const NEAR_MEMORY_NS: f64 = 15.0;

/// The nodes of a program's pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Homes {
    /// The node of each thread's pages.
    Own(Vec<usize>),
    /// All pages are interleaved over these nodes.
    Interleaved(Vec<usize>),
}

impl Homes {
    /// The nodes of pages first touched by threads at these positions.
    pub(super) fn new(
        table: &CpuTable,
        demand: &Demand,
        memory: Option<&MemoryBinding>,
        at: &[usize],
    ) -> Self {
        let nodes: Vec<usize> = memory.map_or(Vec::new(), |memory| {
            let known = &table.node_numbers;
            let index = |number: &usize| known.iter().position(|node| node == number);
            memory.nodes.iter().filter_map(index).collect()
        });
        let has = |policies: [MemoryPolicy; 2]| {
            memory.is_some_and(|memory| policies.contains(&memory.policy))
        };
        // All nodes have the same bandwidth here, and thus the same weight.
        let is_spread = has([MemoryPolicy::Interleave, MemoryPolicy::Weighted]);
        if is_spread && !nodes.is_empty() {
            return Self::Interleaved(nodes);
        }
        // Nodes here are never full.
        let is_bound = has([MemoryPolicy::Bind, MemoryPolicy::Preferred]);
        let home = |&at: &usize| {
            let own = table.cpus[at].node;
            // A bound page of a thread elsewhere is on the first remaining node.
            match nodes.first() {
                Some(&first) if is_bound && !nodes.contains(&own) => first,
                _ => own,
            }
        };
        match demand.pages {
            Pages::Local => Self::Own(at.iter().map(home).collect()),
            Pages::First => Self::Own(at.first().map(home).into_iter().collect()),
        }
    }

    /// Calls `call` with each node of a thread's pages and its share of them.
    fn for_each_node(&self, thread: usize, mut call: impl FnMut(usize, f64)) {
        match self {
            Self::Own(nodes) => {
                if let Some(&node) = nodes.get(thread).or(nodes.first()) {
                    call(node, 1.0);
                }
            }
            Self::Interleaved(nodes) => {
                let share = 1.0 / nodes.len() as f64;
                for &node in nodes {
                    call(node, share);
                }
            }
        }
    }
}

/// The machine and the program, which determine a run's speed.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpeedModel<'a> {
    pub(super) table: &'a CpuTable,
    pub(super) keys: &'a Keys,
    pub(super) figures: &'a Figures,
    pub(super) demand: &'a Demand,
}

/// Shares of reused data that must be fetched from a cache or memory farther away.
struct Misses {
    /// Misses of each core's own cache.
    inner: Vec<f64>,
    /// Misses of each last-level cache.
    outer: Vec<f64>,
}

/// The components of a unit of work at a thread's place, s per s alone.
#[derive(Debug, Clone, Copy)]
struct UnitCosts {
    /// Issue slots needed while computing, as time.
    slots: f64,
    /// Waiting for memory, without load.
    memory: f64,
    /// Total, without saturation.
    time: f64,
    /// Traffic, 1e9 bytes.
    traffic: f64,
}

/// The speed of work at its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Speeds {
    /// Seconds per second of work alone, including turns on shared CPUs; by thread.
    pub(super) stretch: Vec<f64>,
    /// The longest one-way time between two threads, ns.
    pub(super) farthest_ns: f64,
}

impl SpeedModel<'_> {
    /// Number of threads that are partners: all, if there are no groups.
    fn group_size(&self, threads: usize) -> usize {
        let described = self
            .demand
            .group
            .and_then(|group| usize::try_from(group).ok());
        described.unwrap_or(threads).clamp(1, threads.max(1))
    }

    /// The speed of each thread at its position.
    pub(super) fn compute_speeds(&self, at: &[usize], homes: &Homes) -> Speeds {
        let group = self.group_size(at.len());
        let crowd = Crowd::new(self.table, group, at);
        let distance_ns = self.distances_ns(group, at);
        let misses = self.compute_misses(&crowd);
        let mut costs: Vec<UnitCosts> = at
            .iter()
            .enumerate()
            .map(|(thread, &at)| {
                let latency_ratio = self.latency_ratio(&self.table.cpus[at], thread, homes);
                self.unit_costs(&crowd, &misses, at, latency_ratio, distance_ns[thread])
            })
            .collect();
        self.share_slots(&crowd, at, &mut costs);
        let load = self.compute_load(&crowd, at, &costs, homes);
        let alone = self.time_alone();
        let stretch = costs
            .iter()
            .enumerate()
            .map(|(thread, cost)| {
                let cpu = &self.table.cpus[at[thread]];
                let time =
                    self.saturated_time(cost, &load.utilisation_of(self, cpu, thread, homes));
                let turns = crowd.on_cpu[at[thread]];
                let switching = if turns > 1.5 {
                    self.keys.switch_loss
                } else {
                    0.0
                };
                time / alone * turns * (1.0 + switching)
            })
            .collect();
        Speeds {
            stretch,
            farthest_ns: self.farthest_ns(&crowd, at.len()),
        }
    }

    /// Seconds per second of work of a single thread on this CPU.
    pub(super) fn stretch_alone(&self, at: usize) -> f64 {
        let speed = self.table.cpus[at].speed;
        let computing = self.demand.computing_share() / speed;
        let (demand, traffic) = (self.demand, self.demand.gb_per_s);
        let waiting = demand.memory_share + demand.cache_share;
        let cost = UnitCosts {
            slots: 0.0,
            memory: demand.memory_share,
            time: computing + waiting,
            traffic,
        };
        self.saturated_time(&cost, &self.utilisation_alone(&cost)) / self.time_alone()
    }

    /// Time of a unit of work alone on the fastest CPU, before normalisation.
    fn time_alone(&self) -> f64 {
        let cost = UnitCosts {
            slots: 0.0,
            memory: self.demand.memory_share,
            time: 1.0,
            traffic: self.demand.gb_per_s,
        };
        self.saturated_time(&cost, &self.utilisation_alone(&cost))
    }

    fn utilisation_alone(&self, cost: &UnitCosts) -> Utilisation {
        let rate = cost.traffic / cost.time;
        Utilisation {
            core: rate / self.figures.core_gb_per_s,
            node: rate / self.figures.node_gb_per_s,
            link: 0.0,
        }
    }

    /// A unit of work at this position, without saturation.
    fn unit_costs(
        &self,
        crowd: &Crowd,
        misses: &Misses,
        at: usize,
        latency_ratio: f64,
        distance_ns: f64,
    ) -> UnitCosts {
        let (keys, demand, cpu) = (self.keys, self.demand, &self.table.cpus[at]);
        let package = cpu.package;
        let idle_cores = (self.table.cores_of[package] - 1.0).max(1.0);
        let clock = 1.0 - keys.turbo_drop * (crowd.active_cores[package] - 1.0) / idle_cores;
        let has_busy_sibling = crowd.busy_cpus[cpu.core] > 1.5;
        let partition = if has_busy_sibling {
            1.0 + keys.smt_partition
        } else {
            1.0
        };
        let computing = demand.computing_share() / (cpu.speed * clock);
        let (inner, outer) = (misses.inner[cpu.core], misses.outer[cpu.llc]);
        let (llc, memory) = (keys.llc_load_ns, self.figures.memory_ns);
        let fetching = demand.cache_share
            * (1.0
                + inner * (llc / keys.l2_load_ns - 1.0).max(0.0)
                + outer * ((memory * latency_ratio - llc) / keys.l2_load_ns).max(0.0));
        let waiting = demand.memory_share * latency_ratio;
        let exchanging = demand.exchanges_per_s * 2.0 * distance_ns * 1e-9;
        UnitCosts {
            slots: demand.issue_share * computing * partition,
            memory: waiting + demand.cache_share * outer * memory * latency_ratio / keys.l2_load_ns,
            time: computing * partition + fetching + waiting + exchanging,
            traffic: demand.gb_per_s + demand.reuse_gb_per_s * outer,
        }
    }

    /// Misses in cores' own caches and in last-level caches, beyond those of a single thread.
    fn compute_misses(&self, crowd: &Crowd) -> Misses {
        let table = self.table;
        if self.demand.cache_share <= 0.0 && self.demand.reuse_gb_per_s <= 0.0 {
            return Misses {
                inner: vec![0.0; table.cores],
                outer: vec![0.0; table.llc_bytes.len()],
            };
        }
        let own = self.demand.private_bytes as f64;
        let shared = self.demand.shared_bytes as f64;
        let hill = |bytes: f64, size: f64| {
            let fullness = (bytes / size).powi(self.keys.cache_sharpness);
            if fullness.is_finite() {
                fullness / (1.0 + fullness)
            } else {
                1.0
            }
        };
        let alone = hill(own, table.largest_l2_bytes());
        let inner = crowd.on_core.iter().zip(&table.l2_bytes);
        let alone_outer = hill(own + shared, table.largest_llc_bytes());
        let held = crowd.on_llc.iter().zip(&crowd.groups);
        let outer = held.zip(&table.llc_bytes);
        Misses {
            inner: inner
                .map(|(threads, &size)| (hill(own * threads, size) - alone).max(0.0))
                .collect(),
            outer: outer
                .map(|((threads, groups), &size)| {
                    (hill(own * threads + shared * groups, size) - alone_outer).max(0.0)
                })
                .collect(),
        }
    }

    /// Latency of this thread's memory relative to that of its own node.
    fn latency_ratio(&self, cpu: &CpuUnits, thread: usize, homes: &Homes) -> f64 {
        let mut extra_ns = 0.0;
        homes.for_each_node(thread, |node, share| {
            extra_ns += share
                * if node == cpu.node {
                    0.0
                } else if self.table.package_of_node[node] == cpu.package {
                    NEAR_MEMORY_NS
                } else {
                    self.figures.remote_memory_ns
                };
        });
        1.0 + extra_ns / self.figures.memory_ns
    }

    /// Siblings share issue slots; waiting threads free theirs.
    fn share_slots(&self, crowd: &Crowd, at: &[usize], costs: &mut [UnitCosts]) {
        let mut demanded = vec![0.0; self.table.cores];
        for (cost, &at) in costs.iter().zip(at) {
            // Threads of one CPU take turns.
            demanded[self.table.cpus[at].core] += cost.slots / cost.time / crowd.on_cpu[at];
        }
        for (cost, &at) in costs.iter_mut().zip(at) {
            cost.time *= demanded[self.table.cpus[at].core].max(1.0);
        }
    }

    /// Mean one-way time between each thread and its partners, ns.
    fn distances_ns(&self, group: usize, at: &[usize]) -> Vec<f64> {
        let mut distances = Vec::with_capacity(at.len());
        if self.demand.exchanges_per_s <= 0.0 {
            distances.resize(at.len(), 0.0);
            return distances;
        }
        let mut unit_counts = UnitCounts::new(self.table);
        for members in at.chunks(group) {
            unit_counts.add(self.table, members, 1.0);
            let partners = (members.len() as f64 - 1.0).max(1.0);
            for &at in members {
                let sum = unit_counts.sum_ns(&self.table.cpus[at], members.len(), self.figures);
                distances.push(sum / partners);
            }
            unit_counts.add(self.table, members, -1.0);
        }
        distances
    }

    /// The longest one-way time between two of the threads, ns.
    fn farthest_ns(&self, crowd: &Crowd, threads: usize) -> f64 {
        let [smt, llc, node, package, remote] = self.figures.transfer_ns;
        let are_several = |counts: &[f64]| counts.iter().filter(|&&count| count > 0.5).count() > 1;
        let mut farthest: f64 = if threads > 1 { smt } else { 0.0 };
        for (is_crossed, ns) in [
            (are_several(&crowd.on_core), llc),
            (are_several(&crowd.on_llc), node),
            (are_several(&crowd.on_node), package),
            (are_several(&crowd.on_package), remote),
        ] {
            if is_crossed {
                farthest = farthest.max(ns);
            }
        }
        farthest
    }

    /// The load of threads with these costs on cores, nodes and links.
    fn compute_load(
        &self,
        crowd: &Crowd,
        at: &[usize],
        costs: &[UnitCosts],
        homes: &Homes,
    ) -> Load {
        let packages = self.table.packages;
        let mut load = Load {
            cores: vec![0.0; self.table.cores],
            nodes: vec![0.0; self.table.nodes],
            links: vec![0.0; packages * packages],
        };
        for (thread, (cost, &at)) in costs.iter().zip(at).enumerate() {
            let cpu = &self.table.cpus[at];
            let rate = cost.traffic / cost.time / crowd.on_cpu[at];
            load.cores[cpu.core] += rate / self.figures.core_gb_per_s;
            homes.for_each_node(thread, |node, share| {
                load.nodes[node] += rate * share / self.figures.node_gb_per_s;
                let home = self.table.package_of_node[node];
                if home != cpu.package {
                    let link = cpu.package * packages + home;
                    load.links[link] += rate * share / self.keys.link_gb_per_s;
                }
            });
        }
        load
    }

    /// Time of a unit of work under this load: latency grows with the use of memory, and bandwidth
    /// is capped.
    fn saturated_time(&self, cost: &UnitCosts, loaded: &Utilisation) -> f64 {
        if cost.traffic <= 0.0 {
            return cost.time;
        }
        let power = |load: f64| load.powi(4).min(f64::MAX / 8.0);
        let root = |sum: f64| sum.sqrt().sqrt();
        let on_node = power(loaded.node);
        let use_of_memory = loaded.node / root(1.0 + on_node);
        let queueing = (self.figures.loaded_factor - 1.0) * use_of_memory.powi(4);
        let latency_bound = cost.time + cost.memory * queueing;
        let bound = power(loaded.core) + on_node + power(loaded.link);
        let bandwidth_bound = cost.time * root(bound);
        // A smooth maximum, scaled so that no power overflows.
        let longest = latency_bound.max(bandwidth_bound);
        let sum = power(latency_bound / longest) + power(bandwidth_bound / longest);
        longest * root(sum)
    }
}

/// Utilisation of every core, node and link; above 1 the demand exceeds the capacity.
struct Load {
    cores: Vec<f64>,
    nodes: Vec<f64>,
    /// From each package to each.
    links: Vec<f64>,
}

/// Utilisation of one thread's resources: the worst of several nodes.
#[derive(Debug, Clone, Copy)]
struct Utilisation {
    core: f64,
    node: f64,
    link: f64,
}

impl Load {
    fn utilisation_of(
        &self,
        model: &SpeedModel<'_>,
        cpu: &CpuUnits,
        thread: usize,
        homes: &Homes,
    ) -> Utilisation {
        let mut loaded = Utilisation {
            core: self.cores[cpu.core],
            node: 0.0,
            link: 0.0,
        };
        homes.for_each_node(thread, |node, _| {
            loaded.node = loaded.node.max(self.nodes[node]);
            let home = model.table.package_of_node[node];
            let link = self.links[cpu.package * model.table.packages + home];
            loaded.link = loaded.link.max(link);
        });
        loaded
    }
}
