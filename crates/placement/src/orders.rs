//! The allowed CPUs in the orders used by placements.

use pinwise_topology::{Cache, CpuSet, Level, Node, Topology};

/// Levels of a path, outermost first: those of the machine, and between last-level cache
/// and core the caches that some cores share (the L2 of four E-cores).
const DEPTH: usize = Level::ALL.len() + 1;
/// Index in a path of a cache that some cores share.
const CLUSTER: usize = Level::Core as usize;

/// Indices of units in their parents, by level.
type Path = [usize; DEPTH];

/// The allowed CPUs with their place in the tree.
pub(super) struct Orders {
    paths: Vec<(usize, Path)>,
}

impl Orders {
    pub(super) fn from_topology(topology: &Topology) -> Self {
        let mut paths = Vec::new();
        let clusters = list_clusters(topology);
        let in_clusters: CpuSet = clusters.iter().flat_map(|(_, cpus)| cpus.iter()).collect();
        let slot = |level: Level| level as usize + usize::from(level as usize >= CLUSTER);
        let levels = Level::ALL.into_iter().flat_map(|level| {
            let units = topology.allowed_units(level);
            units.into_iter().map(move |unit| (slot(level), unit))
        });
        let mut units: Vec<(usize, CpuSet)> = levels.chain(clusters).collect();
        units.sort_by_key(|(slot, _)| *slot);
        let tree = Node::nest(DEPTH, topology.allowed.clone(), units);
        collect_paths(&tree, [0; DEPTH], &mut paths);
        // A core that shares no such cache counts as having one of its own.
        for (cpu, path) in &mut paths {
            if !in_clusters.contains(*cpu) {
                path[CLUSTER] = std::mem::take(&mut path[CLUSTER + 1]);
            }
        }
        Self { paths }
    }

    pub(super) fn compact(&self) -> Vec<usize> {
        self.sort_by_key(|path| *path)
    }

    pub(super) fn spread(&self) -> Vec<usize> {
        self.sort_by_key(|path| {
            let mut inside_out = *path;
            inside_out.reverse();
            inside_out
        })
    }

    pub(super) fn balanced(&self) -> Vec<usize> {
        self.sort_by_key(|path| (path[DEPTH - 1], *path))
    }

    pub(super) fn select(&self, set: &CpuSet) -> Vec<usize> {
        let compact = self.compact();
        compact.into_iter().filter(|&c| set.contains(c)).collect()
    }

    fn sort_by_key<K: Ord>(&self, key: impl Fn(&Path) -> K) -> Vec<usize> {
        let mut order: Vec<(K, usize)> = self.paths.iter().map(|(c, p)| (key(p), *c)).collect();
        order.sort();
        order.into_iter().map(|(_, cpu)| cpu).collect()
    }
}

/// Caches that several cores share within a last-level cache, cut to the allowed CPUs.
fn list_clusters(topology: &Topology) -> Vec<(usize, CpuSet)> {
    let is_shared = |cache: &&Cache| {
        let core = cache.cpus.first().and_then(|cpu| topology.cpu(cpu)?.core);
        core.is_some_and(|core| cache.cpus.len() > topology.cores[core].len())
    };
    let caches = topology.caches.iter();
    let inner = caches.filter(|cache| is_shared(cache) && !topology.llcs.contains(&cache.cpus));
    let cut = inner.map(|cache| (CLUSTER, cache.cpus.intersection(&topology.allowed)));
    cut.collect()
}

fn collect_paths(node: &Node<usize>, path: Path, paths: &mut Vec<(usize, Path)>) {
    if node.kind == DEPTH - 1 {
        paths.extend(node.cpus.first().map(|cpu| (cpu, path)));
    }
    for (index, child) in node.children.iter().enumerate() {
        let mut below = path;
        below[child.kind] = index;
        collect_paths(child, below, paths);
    }
}
