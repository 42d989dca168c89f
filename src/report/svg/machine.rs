//! The machine as nested boxes: packages, NUMA nodes, shared caches, cores and
//! CPUs. Boxes that hold the same CPUs are one box with several strips.

use super::canvas::{Anchor, Area, Canvas, Words, cut, width};
use crate::record::TopologyRecord;
use crate::report::style::round_size;
use crate::topology::{CacheType, Cpu, CpuSet, Node, Topology};

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
enum Part {
    Machine,
    Package(usize),
    Numa(usize),
    Cache(usize),
    Core(usize),
    Cpu(usize),
}

/// A line at the top of a box.
#[derive(Debug)]
struct Strip {
    label: String,
    /// Shown at the right where there is room.
    detail: String,
    class: &'static str,
}

/// A box with the boxes inside it, their places relative to it.
#[derive(Debug)]
struct Block {
    part: Part,
    title: String,
    strips: Vec<Strip>,
    children: Vec<(f64, f64, Self)>,
    width: f64,
    height: f64,
}

/// Sizes that depend on how many CPUs there are, pixels.
#[derive(Debug, Clone, Copy)]
struct Scale {
    cell_width: f64,
    cell_height: f64,
    /// Letters of CPUs, and of strips.
    cell_letters: f64,
    letters: f64,
    gap: f64,
    padding: f64,
}

impl Scale {
    fn of(cpus: usize) -> Self {
        let (cell_width, cell_height, cell_letters, letters, gap, padding) = match cpus {
            ..=16 => (46.0, 34.0, 15.0, 14.0, 8.0, 10.0),
            ..=64 => (36.0, 26.0, 12.5, 13.0, 6.0, 8.0),
            ..=256 => (30.0, 20.0, 10.5, 11.5, 4.0, 6.0),
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

    fn strip_height(self) -> f64 {
        self.letters * 1.7
    }
}

/// The machine, ready to be drawn.
#[derive(Debug)]
pub(super) struct MachineDrawing<'a> {
    topology: &'a Topology,
    record: &'a TopologyRecord,
    scale: Scale,
    root: Block,
    /// Width of everything, pixels.
    pub(super) width: f64,
}

impl<'a> MachineDrawing<'a> {
    pub(super) fn new(topology: &'a Topology, record: &'a TopologyRecord) -> Self {
        let scale = Scale::of(topology.cpus.len());
        let tree = Node::nest(Part::Machine, topology.online.clone(), parts(topology));
        let layout = Layout {
            topology,
            record,
            scale,
        };
        let root = layout.block(&tree);
        Self {
            topology,
            record,
            scale,
            width: root.width,
            root,
        }
    }

    /// Draws it, not wider than the page, and returns where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, x: f64, y: f64, page: f64) -> f64 {
        for (left, top, block) in &self.root.children {
            self.draw_block(canvas, block, x + left, y + top);
        }
        let mut bottom = y + self.root.height;
        bottom = self.draw_memory_only(canvas, x, bottom);
        bottom = self.draw_offline(canvas, x, bottom, page);
        self.draw_key(canvas, x, bottom + 10.0, page)
    }

    fn draw_block(&self, canvas: &mut Canvas, block: &Block, x: f64, y: f64) {
        if let Part::Cpu(index) = block.part {
            self.draw_cpu(canvas, &self.topology.cpus[index], x, y);
            return;
        }
        let area = Area {
            x,
            y,
            width: block.width,
            height: block.height,
        };
        canvas.titled(&block.title, |canvas| {
            canvas.rect(area, 5.0, box_class(block.part));
            for (line, strip) in block.strips.iter().enumerate() {
                self.draw_strip(canvas, strip, line, area);
            }
        });
        for (left, top, child) in &block.children {
            self.draw_block(canvas, child, x + left, y + top);
        }
    }

    fn draw_strip(&self, canvas: &mut Canvas, strip: &Strip, line: usize, area: Area) {
        let height = self.scale.strip_height();
        let y = area.y + line as f64 * height;
        let band = Area { y, height, ..area };
        canvas.rect(band, 5.0, strip.class);
        let words = |anchor, class, text| Words {
            class,
            size: self.scale.letters,
            anchor,
            text,
        };
        let baseline = y + height * 0.5 + self.scale.letters * 0.36;
        let inner = area.width - 2.0 * self.scale.padding;
        let label = cut(&strip.label, self.scale.letters, inner);
        let class = strip_words(strip.class);
        canvas.words(
            area.x + self.scale.padding,
            baseline,
            words(Anchor::Start, class, &label),
        );
        let room = inner - width(&label, self.scale.letters) - 14.0;
        if !strip.detail.is_empty() && width(&strip.detail, self.scale.letters) <= room {
            let right = area.x + area.width - self.scale.padding;
            canvas.words(right, baseline, words(Anchor::End, class, &strip.detail));
        }
    }

    fn draw_cpu(&self, canvas: &mut Canvas, cpu: &Cpu, x: f64, y: f64) {
        let class = cpu_class(self.topology, cpu);
        let area = Area {
            x,
            y,
            width: self.scale.cell_width,
            height: self.scale.cell_height,
        };
        canvas.titled(&cpu_title(self.topology, cpu), |canvas| {
            canvas.rect(area, 3.0, class);
            let words = Words {
                class: if cpu.allowed { "on" } else { "off" },
                size: self.scale.cell_letters,
                anchor: Anchor::Middle,
                text: &cpu.id.to_string(),
            };
            let baseline = y + area.height * 0.5 + self.scale.cell_letters * 0.36;
            canvas.words(x + area.width * 0.5, baseline, words);
        });
    }

    fn draw_memory_only(&self, canvas: &mut Canvas, x: f64, y: f64) -> f64 {
        let nodes = self
            .topology
            .numa_nodes
            .iter()
            .filter(|n| n.cpus.is_empty());
        let mut bottom = y;
        for node in nodes {
            let size = node.memory_bytes.map_or_else(String::new, round_size);
            let strip = Strip {
                label: format!("NUMA node {}: memory only", node.node),
                detail: size,
                class: "numa",
            };
            let area = Area {
                x,
                y: bottom + 8.0,
                width: 340.0,
                height: self.scale.strip_height(),
            };
            self.draw_strip(canvas, &strip, 0, area);
            bottom = area.y + area.height;
        }
        bottom
    }

    fn draw_offline(&self, canvas: &mut Canvas, x: f64, y: f64, page: f64) -> f64 {
        let offline: Vec<&Cpu> = self.topology.cpus.iter().filter(|c| !c.online).collect();
        if offline.is_empty() {
            return y;
        }
        let top = y + 14.0;
        let words = Words {
            class: "faint",
            size: 13.0,
            anchor: Anchor::Start,
            text: "Offline",
        };
        canvas.words(x, top + self.scale.cell_height * 0.5 + 4.0, words);
        let step = self.scale.cell_width + self.scale.gap;
        let line = self.scale.cell_height + self.scale.gap;
        let (mut left, mut row) = (x + 62.0, top);
        for cpu in offline {
            if left + self.scale.cell_width > x + page {
                (left, row) = (x + 62.0, row + line);
            }
            self.draw_cpu(canvas, cpu, left, row);
            left += step;
        }
        row + line
    }

    /// What the colours of CPUs stand for; only those that are there.
    fn draw_key(&self, canvas: &mut Canvas, x: f64, y: f64, page: f64) -> f64 {
        let cpus = &self.topology.cpus;
        let mut entries: Vec<(&str, String)> = Vec::new();
        if self.record.kinds.is_empty() {
            entries.push(("cpu", "CPU".to_owned()));
        }
        for kind in &self.record.kinds {
            entries.push((
                kind_class(&kind.name),
                format!("CPU of a {}-core", kind.name),
            ));
        }
        if cpus.iter().any(|cpu| cpu.online && !cpu.allowed) {
            entries.push((
                "barred",
                "online, but not allowed for this process".to_owned(),
            ));
        }
        if cpus.iter().any(|cpu| !cpu.online) {
            entries.push(("offline", "offline".to_owned()));
        }
        let (mut left, mut y) = (x, y);
        for (class, label) in entries {
            let needed = 22.0 + width(&label, 12.0);
            if left > x && left + needed > x + page {
                (left, y) = (x, y + 19.0);
            }
            let swatch = Area {
                x: left,
                y,
                width: 16.0,
                height: 12.0,
            };
            canvas.rect(swatch, 2.0, class);
            let words = Words {
                class: "faint",
                size: 12.0,
                anchor: Anchor::Start,
                text: &label,
            };
            canvas.words(left + 22.0, y + 10.5, words);
            left += needed + 22.0;
        }
        y + 14.0
    }
}

const fn box_class(part: Part) -> &'static str {
    match part {
        Part::Machine | Part::Package(_) => "package-box",
        Part::Numa(_) => "numa-box",
        Part::Cache(_) => "cache-box",
        Part::Core(_) | Part::Cpu(_) => "core-box",
    }
}

fn strip_words(class: &str) -> &'static str {
    match class {
        "package" => "light",
        "numa" => "numa-words",
        "doubted" => "doubted-words",
        _ => "cache-words",
    }
}

fn kind_class(name: &str) -> &'static str {
    match name {
        "E" => "cpu-e",
        "M" => "cpu-m",
        _ => "cpu",
    }
}

fn cpu_class(topology: &Topology, cpu: &Cpu) -> &'static str {
    if !cpu.online {
        return "offline";
    }
    if !cpu.allowed {
        return "barred";
    }
    let kind = cpu.kind.and_then(|index| topology.kinds.get(index));
    kind.map_or("cpu", |kind| kind_class(&kind.name))
}

fn cpu_title(topology: &Topology, cpu: &Cpu) -> String {
    let mut words = vec![format!("CPU {}", cpu.id)];
    let mut unit = |noun: &str, index: Option<usize>| {
        words.extend(index.map(|index| format!("{noun} {index}")));
    };
    unit("core", cpu.core);
    unit("LLC", cpu.llc);
    let node = cpu
        .numa_node
        .and_then(|index| topology.numa_nodes.get(index));
    unit("NUMA node", node.map(|node| node.node));
    unit("package", cpu.package);
    let kind = cpu.kind.and_then(|index| topology.kinds.get(index));
    words.extend(kind.map(|kind| format!("{}-core", kind.name)));
    if !cpu.online {
        words.push("offline".to_owned());
    } else if !cpu.allowed {
        words.push("not allowed for this process".to_owned());
    }
    words.join(", ")
}

/// Everything that gets a box. A cache within a core gets none: the heading
/// tells those once.
fn parts(topology: &Topology) -> Vec<(Part, CpuSet)> {
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
struct Layout<'a> {
    topology: &'a Topology,
    record: &'a TopologyRecord,
    scale: Scale,
}

impl Layout<'_> {
    fn block(&self, node: &Node<Part>) -> Block {
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
                let class = self.doubted("package", "package");
                (format!("Package {index}"), format!("CPUs {cpus}"), class)
            }
            Part::Numa(index) => {
                let node = &self.topology.numa_nodes[index];
                let memory = node.memory_bytes.map_or_else(String::new, round_size);
                let class = self.doubted("numa", "numa");
                (format!("NUMA node {}", node.node), memory, class)
            }
            Part::Cache(index) => {
                let cache = &self.topology.caches[index];
                let size = cache.size_bytes.map_or_else(String::new, round_size);
                let is_last = self.topology.llcs.contains(&cache.cpus);
                let class = match is_last {
                    true => self.doubted("llc", "cache"),
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
            "doubted" => format!("{label} · measured otherwise"),
            _ => label,
        };
        Some(Strip {
            label,
            detail,
            class,
        })
    }

    /// Strips of a level that measurement contradicts stand out.
    fn doubted(&self, level: &str, class: &'static str) -> &'static str {
        let mut contradictions = self.record.contradictions.iter();
        match contradictions.any(|contradiction| contradiction.level == level) {
            true => "doubted",
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
                    .map_or_else(String::new, |bytes| format!(" ({})", round_size(bytes)));
                format!("NUMA node {}{memory}", node.node)
            }
            Part::Cache(index) => {
                let cache = &self.topology.caches[index];
                let size = cache.size_bytes.map_or_else(String::new, round_size);
                format!("L{} {} cache {size}", cache.level, cache.kind.name())
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
    width: f64,
    height: f64,
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

/// Places in rows of so many, the width and the height.
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

/// What the style sheet says of the machine's boxes.
pub(super) fn style() -> String {
    let boxes = [
        ("package-box", "#f4f6f9", "#8b97a8"),
        ("numa-box", "#f3faf5", "#9ccbb0"),
        ("cache-box", "#fffaf0", "#e3bd7a"),
        ("core-box", "#e6ecf8", "#aebfe0"),
        ("package", "#475369", "#475369"),
        ("numa", "#d3eedd", "#9ccbb0"),
        ("cache", "#fde8c0", "#e3bd7a"),
        ("doubted", "#fbd5d5", "#d14343"),
        ("cpu", "#cddbf8", "#7490cc"),
        ("cpu-e", "#c9ede6", "#58a898"),
        ("cpu-m", "#e2d6f6", "#9678c9"),
    ];
    let mut css: String = boxes
        .iter()
        .map(|(class, fill, stroke)| format!(".{class}{{fill:{fill};stroke:{stroke}}}"))
        .collect();
    css.push_str(".barred{fill:url(#hatch);stroke:#a3a9b3}");
    css.push_str(".offline{fill:#fff;stroke:#b6bbc4;stroke-dasharray:3 2}");
    css
}
