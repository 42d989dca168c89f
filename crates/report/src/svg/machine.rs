//! The machine as nested boxes: packages, NUMA nodes, shared caches, cores and
//! CPUs. Boxes that hold the same CPUs are one box with several strips.

use super::canvas::{Anchor, Area, Canvas, Words, cut, width};
use super::layout::{Block, Layout, Part, Scale, Strip, parts};
use pinwise_format::round_bytes;
use pinwise_record::TopologyRecord;
use pinwise_topology::{Cpu, CpuSet, Node, Topology};

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
        bottom = self.draw_devices(canvas, x, bottom, page);
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
            let size = node.memory_bytes.map_or_else(String::new, round_bytes);
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

    /// Devices that have a name, a strip for those near the same CPUs.
    fn draw_devices(&self, canvas: &mut Canvas, x: f64, y: f64, page: f64) -> f64 {
        let mut near: Vec<(Option<&CpuSet>, Vec<&str>)> = Vec::new();
        for device in &self.topology.devices {
            let Some(name) = device.names.first() else {
                continue;
            };
            let cpus = device.cpus.as_ref();
            match near.iter_mut().find(|(known, _)| *known == cpus) {
                Some((_, names)) => names.push(name),
                None => near.push((cpus, vec![name])),
            }
        }
        let mut bottom = y;
        for (cpus, names) in near {
            let place = match cpus {
                Some(cpus) => format!("near CPUs {cpus}"),
                None => "place unknown".to_owned(),
            };
            let strip = Strip {
                label: format!("{}: {place}", names.join(", ")),
                detail: String::new(),
                class: "device",
            };
            let area = Area {
                x,
                y: bottom + 8.0,
                width: page,
                height: self.scale.strip_height(),
            };
            canvas.titled(&strip.label, |canvas| {
                self.draw_strip(canvas, &strip, 0, area)
            });
            bottom = area.y + area.height;
        }
        bottom
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
        "device" => "on",
        "contradicted" => "contradicted-words",
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

/// What the style sheet says of the machine's boxes.
pub(super) fn style() -> String {
    let boxes = [
        ("package-box", "#f4f6f9", "#8b97a8"),
        ("numa-box", "#f3faf5", "#9ccbb0"),
        ("cache-box", "#fffaf0", "#e3bd7a"),
        ("core-box", "#e6ecf8", "#aebfe0"),
        ("package", "#475369", "#475369"),
        ("numa", "#d3eedd", "#9ccbb0"),
        ("device", "#e8e3f4", "#b3a4d6"),
        ("cache", "#fde8c0", "#e3bd7a"),
        ("contradicted", "#fbd5d5", "#d14343"),
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
