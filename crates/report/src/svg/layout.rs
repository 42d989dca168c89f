//! Where the boxes of a machine go: a box for every unit with CPUs, one within
//! the other, those side by side in rows that make a page of a sensible shape.

use super::canvas::width;
use pinwise_format::round_bytes;
use pinwise_record::{CacheKind, LevelName, TopologyRecord};
use pinwise_topology::{CacheType, CpuSet, Node, Topology};

/// Widest machine that is drawn without wrapping more than it must, pixels.
const WIDEST: f64 = 1360.0;
/// Boxes are arranged so that they come out about so much wider than high.
const SHAPE: f64 = 2.0;
/// The same for a machine's packages: pages are wide.
const PAGE_SHAPE: f64 = 2.6;
/// A box is widened for its label up to here, pixels.
const LONGEST_LABEL: f64 = 260.0;
/// More ways of wrapping than this are not compared.
const MOST_WAYS: usize = 64;

/// What a box stands for, with its index in the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Machine,
    Package(usize),
    Numa(usize),
    Cache(usize),
    Core(usize),
    Cpu(usize),
}

/// A line at the top of a box.
#[derive(Debug)]
pub(super) struct Strip {
    pub(super) label: String,
    /// Shown at the right where there is room.
    pub(super) detail: String,
    pub(super) class: &'static str,
}

/// A box with the boxes inside it, their places relative to it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) part: Part,
    pub(super) title: String,
    pub(super) strips: Vec<Strip>,
    pub(super) children: Vec<(f64, f64, Self)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Sizes that depend on how many CPUs there are, pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) cell_width: f64,
    pub(super) cell_height: f64,
    /// Letters of CPUs, and of strips.
    pub(super) cell_letters: f64,
    pub(super) letters: f64,
    pub(super) gap: f64,
    pub(super) padding: f64,
}

impl Scale {
    pub(super) fn of(cpus: usize) -> Self {
        let (cell_width, cell_height, cell_letters, letters, gap, padding) = match cpus {
            ..=16 => (46.0, 34.0, 15.0, 14.0, 8.0, 10.0),
            17..=64 => (36.0, 26.0, 12.5, 13.0, 6.0, 8.0),
            65..=256 => (30.0, 20.0, 10.5, 11.5, 4.0, 6.0),
            _ => (25.0, 15.0, 8.5, 10.5, 2.5, 5.0),
        };
        Self {
            cell_width,
            cell_height,
            cell_letters,
            letters,
            gap,
            padding,
        }
    }

    pub(super) fn strip_height(self) -> f64 {
        self.letters * 1.7
    }
}

/// Everything that gets a box. A cache within a core gets none: the heading
/// has those once.
pub(super) fn parts(topology: &Topology) -> Vec<(Part, CpuSet)> {
    let mut parts: Vec<(Part, CpuSet)> = Vec::new();
    let packages = topology.packages.iter().enumerate();
    parts.extend(packages.map(|(index, cpus)| (Part::Package(index), cpus.clone())));
    let nodes = topology.numa_nodes.iter().enumerate();
    parts.extend(nodes.map(|(index, node)| (Part::Numa(index), node.cpus.clone())));
    let mut caches: Vec<usize> = (0..topology.caches.len()).collect();
    caches.retain(|&index| is_shared(topology, index));
    caches.sort_by_key(|&index| std::cmp::Reverse(topology.caches[index].level));
    let of = |index: usize| topology.caches[index].cpus.clone();
    parts.extend(
        caches
            .into_iter()
            .map(|index| (Part::Cache(index), of(index))),
    );
    let cores = topology.cores.iter().enumerate();
    parts.extend(cores.map(|(index, cpus)| (Part::Core(index), cpus.clone())));
    let cpus = topology.cpus.iter().enumerate();
    parts.extend(
        cpus.filter(|(_, cpu)| cpu.online)
            .map(|(index, cpu)| (Part::Cpu(index), CpuSet::single(cpu.id))),
    );
    parts
}

/// Do several cores share the cache?
fn is_shared(topology: &Topology, index: usize) -> bool {
    let cache = &topology.caches[index];
    let first = cache.cpus.first().and_then(|cpu| topology.cpu(cpu)?.core);
    let is_private = first.is_some_and(|core| cache.cpus.is_subset(&topology.cores[core]));
    cache.kind != CacheType::Instruction && !is_private
}

/// Turns the tree into boxes with places.
pub(super) struct Layout<'a> {
    pub(super) topology: &'a Topology,
    pub(super) record: &'a TopologyRecord,
    pub(super) scale: Scale,
}

impl Layout<'_> {
    pub(super) fn block(&self, node: &Node<Part>) -> Block {
        if node.kind == Part::Machine && node.children.len() == 1 {
            return self.only(node);
        }
        let (inner, strips, title) = self.same_cpus(node);
        let children: Vec<Block> = inner.children.iter().map(|c| self.block(c)).collect();
        let (padding, gap) = match node.kind {
            Part::Machine => (0.0, self.scale.padding * 2.0),
            Part::Cpu(_) => (0.0, 0.0),
            Part::Core(_) if children.len() < 2 => (0.0, 0.0),
            Part::Core(_) => (self.scale.gap * 0.6, self.scale.gap * 0.5),
            _ => (self.scale.padding, self.scale.gap),
        };
        let top = strips.len() as f64 * self.scale.strip_height() + padding;
        let holds_packages = inner
            .children
            .iter()
            .any(|child| matches!(child.kind, Part::Package(_)));
        let shape = match holds_packages || node.kind == Part::Machine {
            true => PAGE_SHAPE,
            false => SHAPE,
        };
        let placed = arranged(children, gap, shape);
        let labels = strips.iter().map(|s| width(&s.label, self.scale.letters));
        let widest_label = labels.fold(0.0, f64::max).min(LONGEST_LABEL);
        let (width, height) = match node.kind {
            Part::Cpu(_) => (self.scale.cell_width, self.scale.cell_height),
            _ => (
                placed.width.max(widest_label) + 2.0 * padding,
                placed.height + top + padding,
            ),
        };
        let moved = placed.blocks.into_iter();
        Block {
            part: node.kind,
            title,
            strips,
            children: moved
                .map(|(x, y, block)| (x + padding, y + top, block))
                .collect(),
            width,
            height,
        }
    }

    /// A package that is one node with one cache is one box: the innermost of
    /// those, the strips of all and what a pointer over the box shows.
    fn same_cpus<'t>(&self, node: &'t Node<Part>) -> (&'t Node<Part>, Vec<Strip>, String) {
        let mut inner = node;
        let mut strips = vec![self.strip(node.kind, &node.cpus)];
        let mut titles = vec![self.title(node.kind, &node.cpus)];
        while let [only] = &inner.children[..]
            && only.cpus == node.cpus
            && !matches!(only.kind, Part::Core(_) | Part::Cpu(_))
        {
            strips.push(self.strip(only.kind, &only.cpus));
            titles.push(self.title(only.kind, &only.cpus));
            inner = only;
        }
        (
            inner,
            strips.into_iter().flatten().collect(),
            titles.join("; "),
        )
    }

    /// The root around the only box of the machine.
    fn only(&self, node: &Node<Part>) -> Block {
        let block = self.block(&node.children[0]);
        Block {
            part: Part::Machine,
            title: String::new(),
            strips: Vec::new(),
            width: block.width,
            height: block.height,
            children: vec![(0.0, 0.0, block)],
        }
    }

    fn strip(&self, part: Part, cpus: &CpuSet) -> Option<Strip> {
        let (label, detail, class) = match part {
            Part::Machine | Part::Core(_) | Part::Cpu(_) => return None,
            Part::Package(index) => {
                let class = self.contradicted(&LevelName::Package, "package");
                (format!("Package {index}"), format!("CPUs {cpus}"), class)
            }
            Part::Numa(index) => {
                let node = &self.topology.numa_nodes[index];
                let memory = node.memory_bytes.map_or_else(String::new, round_bytes);
                let class = self.contradicted(&LevelName::Numa, "numa");
                (format!("NUMA node {}", node.node), memory, class)
            }
            Part::Cache(index) => {
                let cache = &self.topology.caches[index];
                let size = cache.size_bytes.map_or_else(String::new, round_bytes);
                let is_last = self.topology.llcs.contains(&cache.cpus);
                let class = match is_last {
                    true => self.contradicted(&LevelName::Llc, "cache"),
                    false => "cache",
                };
                (
                    format!("L{} {size}", cache.level),
                    format!("CPUs {cpus}"),
                    class,
                )
            }
        };
        let label = match class {
            "contradicted" => format!("{label} · measured otherwise"),
            _ => label,
        };
        Some(Strip {
            label,
            detail,
            class,
        })
    }

    /// Strips of a level that measurement contradicts stand out.
    fn contradicted(&self, level: &LevelName, class: &'static str) -> &'static str {
        let mut contradictions = self.record.contradictions.iter();
        match contradictions.any(|contradiction| contradiction.level == *level) {
            true => "contradicted",
            false => class,
        }
    }

    fn title(&self, part: Part, cpus: &CpuSet) -> String {
        let name = match part {
            Part::Machine => "Machine".to_owned(),
            Part::Package(index) => format!("Package {index}"),
            Part::Numa(index) => {
                let node = &self.topology.numa_nodes[index];
                let memory = node
                    .memory_bytes
                    .map_or_else(String::new, |bytes| format!(" ({})", round_bytes(bytes)));
                format!("NUMA node {}{memory}", node.node)
            }
            Part::Cache(index) => {
                let cache = &self.topology.caches[index];
                let size = cache.size_bytes.map_or_else(String::new, round_bytes);
                format!(
                    "L{} {} cache {size}",
                    cache.level,
                    CacheKind::from(cache.kind)
                )
            }
            Part::Core(index) => format!("core {index}"),
            Part::Cpu(_) => return String::new(),
        };
        format!("{name}: CPUs {cpus}")
    }
}

/// Boxes with places, and the size of them together.
struct Arranged {
    blocks: Vec<(f64, f64, Block)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Rows of boxes, wrapped where the whole comes closest to `shape` (width over
/// height) without leaving holes.
fn arranged(blocks: Vec<Block>, gap: f64, shape: f64) -> Arranged {
    let count = blocks.len();
    let step = count.div_ceil(MOST_WAYS).max(1);
    let sizes: Vec<(f64, f64)> = blocks.iter().map(|b| (b.width, b.height)).collect();
    let best = (1..=count)
        .step_by(step)
        .map(|columns| (badness(&sizes, columns, gap, shape), columns))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let columns = best.map_or(1, |(_, columns)| columns);
    let (places, width, height) = rows_of(&sizes, columns, gap);
    Arranged {
        blocks: blocks
            .into_iter()
            .zip(places)
            .map(|(block, (x, y))| (x, y, block))
            .collect(),
        width,
        height,
    }
}

fn badness(sizes: &[(f64, f64)], columns: usize, gap: f64, wanted: f64) -> f64 {
    let (_, width, height) = rows_of(sizes, columns, gap);
    let holes = columns * sizes.len().div_ceil(columns) - sizes.len();
    let shape = (width / height.max(1.0) / wanted).ln().abs();
    let too_wide = (width / WIDEST - 1.0).max(0.0);
    shape + 4.0 * holes as f64 / sizes.len() as f64 + 10.0 * too_wide
}

/// Places in rows of this many, the width and the height.
fn rows_of(sizes: &[(f64, f64)], columns: usize, gap: f64) -> (Vec<(f64, f64)>, f64, f64) {
    let mut places = Vec::with_capacity(sizes.len());
    let (mut widest, mut y) = (0.0_f64, 0.0);
    for row in sizes.chunks(columns) {
        let mut x = 0.0;
        for (width, _) in row {
            places.push((x, y));
            x += width + gap;
        }
        widest = widest.max(x - gap);
        y += row.iter().map(|(_, height)| *height).fold(0.0, f64::max) + gap;
    }
    (places, widest, (y - gap).max(0.0))
}
