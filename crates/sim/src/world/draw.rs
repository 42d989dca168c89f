//! The figures of a random world.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::World;
use super::shapes::Hardware;

/// How a program spends its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Compute,
    Bandwidth,
    Cache,
    Communication,
    Mixed,
}

impl Family {
    pub(super) const ALL: [Self; 5] = [
        Self::Compute,
        Self::Bandwidth,
        Self::Cache,
        Self::Communication,
        Self::Mixed,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Bandwidth => "bandwidth",
            Self::Cache => "cache",
            Self::Communication => "communication",
            Self::Mixed => "mixed",
        }
    }

    /// How much issue slots, memory, caches and distances matter to it.
    const fn weights(self) -> [f64; 4] {
        match self {
            Self::Compute => [1.0, 0.05, 0.05, 0.02],
            Self::Bandwidth => [0.3, 1.0, 0.1, 0.02],
            Self::Cache => [0.3, 0.2, 1.0, 0.02],
            Self::Communication => [0.3, 0.1, 0.1, 1.0],
            Self::Mixed => [0.6, 0.5, 0.5, 0.3],
        }
    }
}

/// Random figures before scaling.
#[derive(Debug, Clone)]
pub(super) struct RandomFigures {
    pub(super) family: Family,
    pub(super) base_s: f64,
    /// Scale of all differences between placements.
    strength: f64,
    policy: &'static str,
    rebalance_s: f64,
    turbo_drop: f64,
    smt_partition: f64,
    node_gb_per_s: f64,
    link_gb_per_s: f64,
    remote_memory_ns: f64,
    transfer_ns: [f64; 4],
    serial: f64,
    issue_share: f64,
    memory_share: f64,
    cache_share: f64,
    gb_per_s: f64,
    reuse_gb_per_s: f64,
    private_bytes: f64,
    shared_bytes: f64,
    pages: &'static str,
    exchanges_per_s: f64,
    group: Option<usize>,
    barriers_per_s: f64,
    split: &'static str,
    imbalance: f64,
    unexplained_sd: f64,
    unexplained_seed: u32,
}

impl RandomFigures {
    pub(super) fn new(
        world: World,
        family: Family,
        hardware: &Hardware,
        threads: usize,
        chance: &mut ChaCha8Rng,
    ) -> Self {
        let [issue, memory, cache, talk] = family.weights();

        let mut log_uniform = |low: f64, high: f64| low * (high / low).powf(chance.random::<f64>());
        let cores = hardware.cores_of_node.max(1) as f64;
        // 2 to 6 GB/s for each core of a node: from servers with many cores to desktops.
        let node_gb_per_s = cores * log_uniform(2.0, 6.0).max(8.0 / cores);
        // A cache share for each core; a working set is half to twice as large.
        let own_cache =
            hardware.llc_bytes.max(1 << 20) as f64 / hardware.cores_of_llc.max(1) as f64;
        let base_s = threads as f64 * log_uniform(0.3, 3.0);
        let mut drawn = Self {
            family,
            base_s,
            strength: 1.0,
            policy: "core-first",
            rebalance_s: log_uniform(0.05, 2.0),
            turbo_drop: log_uniform(0.02, 0.08),
            smt_partition: log_uniform(0.01, 0.08),
            node_gb_per_s,
            link_gb_per_s: node_gb_per_s * log_uniform(0.4, 1.2),
            remote_memory_ns: log_uniform(40.0, 120.0),
            transfer_ns: [
                log_uniform(8.0, 20.0),
                log_uniform(20.0, 50.0),
                log_uniform(70.0, 140.0),
                log_uniform(150.0, 350.0),
            ],
            serial: log_uniform(1e-4, 1e-2),
            issue_share: log_uniform(0.55, 1.0) * issue.max(0.5),
            memory_share: memory * log_uniform(0.15, 0.5),
            cache_share: cache * log_uniform(0.15, 0.4),
            gb_per_s: memory * log_uniform(0.5, 3.0),
            reuse_gb_per_s: cache * log_uniform(0.5, 3.0),
            private_bytes: own_cache * log_uniform(0.25, 1.5),
            shared_bytes: own_cache * log_uniform(0.25, 2.0),
            pages: "local",
            exchanges_per_s: talk * log_uniform(1e4, 3e5),
            group: None,
            barriers_per_s: talk * log_uniform(10.0, 1000.0) / threads as f64,
            split: "dynamic",
            imbalance: 0.0,
            unexplained_sd: 0.0,
            unexplained_seed: 0,
        };
        drawn.unexplained_seed = chance.random();
        drawn.policy = ["random-idle", "core-first", "llc-first"][chance.random_range(0..3)];
        drawn.split = ["dynamic", "static"][chance.random_range(0..2)];
        if world == World::Misfits {
            drawn.add_complications(threads, chance);
        }
        drawn.unexplained_sd = match world {
            World::Misfits => 0.03,
            World::Useless => 0.25,
            World::Fits | World::Flat => 0.0,
        };
        match world {
            World::Flat => drawn.strength = 1e-3,
            World::Useless => drawn.strength = 0.1,
            World::Fits | World::Misfits => {}
        }
        drawn
    }

    /// Adds effects that a small model lacks.
    fn add_complications(&mut self, threads: usize, chance: &mut ChaCha8Rng) {
        self.turbo_drop = chance.random_range(0.05..0.3);
        self.smt_partition = chance.random_range(0.0..0.2);
        // The demand exceeds the bandwidth.
        self.node_gb_per_s *= chance.random_range(0.3..1.0);
        self.imbalance = chance.random_range(0.0..0.3);
        let groups: Vec<usize> = [2, 3, 4, 6, 8, 16]
            .into_iter()
            .filter(|group| 2 * group <= threads)
            .collect();
        if !groups.is_empty() {
            self.group = Some(groups[chance.random_range(0..groups.len())]);
        }
        if chance.random_range(0..4) == 0 {
            self.pages = "first";
        }
    }

    /// These figures without the unexplained part.
    pub(super) fn without_unexplained(&self) -> Self {
        Self {
            unexplained_sd: 0.0,
            ..self.clone()
        }
    }

    /// The distance of a spread from the target, as |ln| beyond a tolerated factor; 0 if it is close
    /// enough.
    pub(super) fn distance(&self, world: World, spread: f64, target: f64) -> f64 {
        // Half of the 0.2 % of a flat world is left for schedulers.
        const MAX_FLAT_SPREAD: f64 = 0.001;
        const MAX_USELESS_SPREAD: f64 = 0.05;
        let above = |limit: f64| (spread / limit).max(1e-9).ln().max(0.0);
        match world {
            World::Flat => above(MAX_FLAT_SPREAD),
            World::Useless => above(MAX_USELESS_SPREAD),
            World::Fits | World::Misfits => {
                let slack = 1.3f64.ln();
                ((spread / target).max(1e-9).ln().abs() - slack).max(0.0)
            }
        }
    }

    /// Scales the differences between placements.
    pub(super) fn scale(&mut self, world: World, spread: f64, target: f64) {
        let target = match world {
            World::Flat => 0.0005,
            World::Useless => 0.03,
            World::Fits | World::Misfits => target,
        };
        let factor = (target / spread.max(1e-6)).clamp(0.2, 5.0).powf(0.7);
        self.strength = (self.strength * factor).clamp(1e-6, 100.0);
    }

    /// Section `[performance]`.
    pub(super) fn performance_section(&self) -> String {
        let [smt, llc, package, remote] = self.transfer_ns;
        format!(
            "[performance]\npolicy = \"{}\"\nrebalance_s = {:?}\nturbo_drop = {:?}\n\
             smt_partition = {:?}\nnode_gb_per_s = {:?}\nlink_gb_per_s = {:?}\n\
             remote_memory_ns = {:?}\nsmt_ns = {:?}\nllc_ns = {:?}\npackage_ns = {:?}\n\
             remote_ns = {:?}",
            self.policy,
            round_to_4_digits(self.rebalance_s),
            round_to_4_digits(self.turbo_drop * self.strength.min(1.0)),
            round_to_4_digits(self.smt_partition * self.strength.min(1.0)),
            round_to_4_digits(self.node_gb_per_s),
            round_to_4_digits(self.link_gb_per_s),
            round_to_4_digits(self.remote_memory_ns),
            round_to_4_digits(smt),
            round_to_4_digits(llc),
            round_to_4_digits(package),
            round_to_4_digits(remote),
        )
    }

    /// Section `[workload.default.demand]`.
    pub(super) fn demand_section(&self) -> String {
        let strength = self.strength;
        let shares = self.memory_share + self.cache_share;
        // Time alone stays the same: shares are scaled below 1.
        let share = |of: f64| {
            of * strength / (1.0 + shares * (strength - 1.0).max(0.0)).max(shares * strength / 0.9)
        };
        let group = self
            .group
            .map_or(String::new(), |group| format!("group = {group}\n"));
        format!(
            "serial = {:?}\nissue_share = {:?}\nmemory_share = {:?}\ncache_share = {:?}\n\
             gb_per_s = {:?}\nreuse_gb_per_s = {:?}\nprivate_bytes = {:.0}\n\
             shared_bytes = {:.0}\npages = \"{}\"\nexchanges_per_s = {:?}\n{group}\
             barriers_per_s = {:?}\nsplit = \"{}\"\nimbalance = {:?}\nunexplained_sd = {:?}\n\
             unexplained_seed = {}",
            round_to_4_digits(self.serial),
            round_to_4_digits(self.issue_share_at(strength)),
            round_to_4_digits(share(self.memory_share)),
            round_to_4_digits(share(self.cache_share)),
            round_to_4_digits((self.gb_per_s * strength).min(1e5)),
            round_to_4_digits((self.reuse_gb_per_s * strength).min(1e5)),
            self.private_bytes,
            self.shared_bytes,
            self.pages,
            round_to_4_digits(self.exchanges_per_s * strength),
            round_to_4_digits(self.barriers_per_s * strength),
            self.split,
            round_to_4_digits(self.imbalance),
            round_to_4_digits(self.unexplained_sd),
            self.unexplained_seed,
        )
    }

    /// The issue share for this strength; at a half, two siblings do not slow each other down.
    fn issue_share_at(&self, strength: f64) -> f64 {
        if strength >= 1.0 {
            return self.issue_share.min(1.0);
        }
        0.5 + (self.issue_share - 0.5) * strength
    }
}

/// Rounds a random figure, so that descriptions stay readable.
fn round_to_4_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
