//! The machine drawn, and its latency matrix, as one SVG file.
//!
//! It has its own background and style sheet, so that it looks the same in a
//! light and in a dark viewer, and asks for nothing from elsewhere. Layout
//! reckons with a wide font, since it cannot measure the viewer's.

mod canvas;
mod layout;
mod machine;
mod matrix;

use canvas::{Anchor, Area, Canvas, Words, folded, number};
use machine::MachineDrawing;
use matrix::MatrixDrawing;

use super::markup::escape;
use super::measured::level_noun;
use super::style::visible;
use pinwise_format::{count, nanoseconds, round_bytes};
use pinwise_record::{Agreement, Contradiction, Measured, TopologyRecord};
use pinwise_topology::{CacheType, CpuSet, Topology};

/// Around everything, pixels.
const MARGIN: f64 = 28.0;
/// Words need this much, whatever the machine, pixels.
const NARROWEST: f64 = 620.0;
/// Width of what stands beside the matrix, pixels.
const SIDE: f64 = 340.0;
/// Of hybrid machines, N different cores are listed.
const MOST_CORES: usize = 4;

/// The machine as one SVG file.
#[must_use]
pub fn topology_svg(topology: &Topology, record: &TopologyRecord) -> String {
    let machine = MachineDrawing::new(topology, record);
    let measured = record.measured.as_deref();
    let matrix = measured.and_then(MatrixDrawing::new);
    let matrix_width = matrix.as_ref().map_or(0.0, |m| m.width() + MARGIN + SIDE);
    let mut page = Page {
        canvas: Canvas::default(),
        width: machine.width.max(matrix_width).max(NARROWEST),
        y: MARGIN,
    };
    page.heading(topology, record);
    for contradiction in &record.contradictions {
        page.contradiction(contradiction);
    }
    page.section("As the system reports it");
    page.y = machine.draw(&mut page.canvas, MARGIN, page.y, page.width);
    if let Some(measured) = measured {
        page.measured(measured, matrix.as_ref());
    }
    page.finish(&describe(record))
}

/// What a screen reader says of the drawing.
fn describe(record: &TopologyRecord) -> String {
    let counts = &record.counts;
    let name = record.machine.cpu_model.as_deref().unwrap_or("a machine");
    format!(
        "How the CPUs of {name} are wired: {}, {}, {}, {}, {}.",
        count(counts.cpus, "CPU"),
        count(counts.cores, "core"),
        count(counts.llcs, "last-level cache"),
        count(counts.numa_nodes, "NUMA node"),
        count(counts.packages, "package")
    )
}

/// The drawing from top to bottom.
struct Page {
    canvas: Canvas,
    /// Between the margins, pixels.
    width: f64,
    /// Where the next part starts.
    y: f64,
}

impl Page {
    /// A line of words, cut into several where it is too long.
    fn lines(&mut self, x: f64, limit: f64, size: f64, class: &str, text: &str) {
        for line in folded(text, size, limit, class) {
            let words = Words {
                class,
                size,
                anchor: Anchor::Start,
                text: &line,
            };
            self.canvas.words(x, self.y + size, words);
            self.y += size * 1.45;
        }
    }

    fn heading(&mut self, topology: &Topology, record: &TopologyRecord) {
        let machine = &record.machine;
        let model = machine.cpu_model.as_deref().unwrap_or("Unknown processor");
        self.lines(MARGIN, self.width, 21.0, "strong", model);
        let kernel = machine
            .kernel
            .as_ref()
            .map(|kernel| format!("Linux {kernel}"));
        let virtual_machine = machine
            .hypervisor
            .as_ref()
            .map(|name| format!("virtual machine ({name})"));
        let names = [
            machine.hostname.clone(),
            machine.arch.clone(),
            kernel,
            virtual_machine,
        ];
        let names: Vec<String> = names.into_iter().flatten().collect();
        if !names.is_empty() {
            self.lines(MARGIN, self.width, 13.0, "faint", &names.join(" · "));
        }
        let counts = &record.counts;
        let listed = [
            count(counts.cpus, "CPU"),
            count(counts.cores, "core"),
            count(counts.llcs, "last-level cache"),
            count(counts.numa_nodes, "NUMA node"),
            count(counts.packages, "package"),
        ];
        self.lines(MARGIN, self.width, 13.0, "on", &listed.join(" · "));
        for line in caches_of_cores(topology) {
            self.lines(MARGIN, self.width, 13.0, "faint", &line);
        }
        if let Some(quota) = &record.quota {
            let line = format!("CPU time is limited to {:.2} CPUs' worth", quota.cpus);
            self.lines(MARGIN, self.width, 13.0, "alarm", &line);
        }
        self.y += 6.0;
    }

    /// A card that cannot be overlooked.
    fn contradiction(&mut self, contradiction: &Contradiction) {
        let title = format!(
            "Contradicted: {} (confidence {:.2})",
            level_noun(&contradiction.level),
            contradiction.confidence
        );
        let parts = [
            ("alarm", title),
            ("on", format!("Reported: {}", contradiction.claim)),
            ("on", format!("Measured: {}", contradiction.measured)),
            ("strong", contradiction.advice.clone()),
        ];
        let limit = self.width - 28.0;
        let lines: Vec<(&str, String)> = parts
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .flat_map(|(class, text)| {
                let lines = folded(text, 13.0, limit, class).into_iter();
                lines.map(|line| (*class, line))
            })
            .collect();
        self.y += 6.0;
        let card = Area {
            x: MARGIN,
            y: self.y,
            width: self.width,
            height: lines.len() as f64 * 19.0 + 14.0,
        };
        self.canvas.rect(card, 5.0, "card");
        self.canvas
            .rect(Area { width: 6.0, ..card }, 2.0, "card-edge");
        self.y += 7.0;
        for (class, line) in lines {
            let words = Words {
                class,
                size: 13.0,
                anchor: Anchor::Start,
                text: &line,
            };
            self.canvas.words(MARGIN + 18.0, self.y + 13.5, words);
            self.y += 19.0;
        }
        self.y += 7.0;
    }

    fn section(&mut self, title: &str) {
        self.y += 16.0;
        self.lines(MARGIN, self.width, 15.0, "strong", title);
        self.y += 6.0;
    }

    fn measured(&mut self, measured: &Measured, matrix: Option<&MatrixDrawing>) {
        self.y += 8.0;
        self.section(match matrix {
            Some(_) => "As measured: one-way time of a cache line between two CPUs",
            None => "As measured",
        });
        let top = self.y;
        let mut bottom = top;
        let mut left = MARGIN;
        let mut limit = self.width;
        if let Some(matrix) = matrix {
            bottom = matrix.draw(&mut self.canvas, MARGIN, top);
            left += matrix.width() + MARGIN;
            limit = SIDE;
            self.y = matrix.draw_scale(&mut self.canvas, left, top + 18.0, limit);
            for remark in matrix.remarks(measured) {
                self.lines(left, limit, 12.0, "faint", &remark);
            }
            self.y += 10.0;
        }
        self.findings(measured, left, limit);
        self.y = self.y.max(bottom);
    }

    fn findings(&mut self, measured: &Measured, x: f64, limit: f64) {
        if !measured.verdicts.is_empty() {
            self.lines(x, limit, 14.0, "strong", "Reported versus measured");
            for verdict in &measured.verdicts {
                let (mark, class, word) = match verdict.verdict {
                    Agreement::Agrees => ("✓", "on", "agrees"),
                    Agreement::Contradicted => ("✗", "alarm", "contradicted"),
                    Agreement::CannotTell if verdict.alone.is_some() => {
                        ("?", "faint", "unstable, trust neither")
                    }
                    Agreement::CannotTell => ("?", "faint", "inconclusive"),
                };
                let line = format!("{mark} {}: {word}", level_noun(&verdict.level));
                self.lines(x, limit, 12.5, class, &line);
            }
            self.y += 8.0;
        }
        self.levels(measured, x, limit);
        if let Some(drift) = &measured.drift {
            self.y += 8.0;
            self.lines(x, limit, 14.0, "strong", "Watched");
            let class = if drift.changes > 0 { "alarm" } else { "on" };
            self.lines(x, limit, 12.5, class, &drift.sentence);
        }
    }

    fn levels(&mut self, measured: &Measured, x: f64, limit: f64) {
        self.lines(x, limit, 14.0, "strong", "Levels found");
        if let Some(reason) = &measured.cannot_tell {
            self.lines(x, limit, 12.5, "on", reason);
        }
        if measured.flat {
            let line = "None: each CPU reaches any other alike.";
            self.lines(x, limit, 12.5, "on", line);
        }
        for level in &measured.levels {
            let name = format!(
                "{}: {} (confidence {:.2})",
                level_noun(&level.kind),
                count(level.groups.len(), "group"),
                level.confidence
            );
            self.lines(x, limit, 12.5, "on", &name);
            let outside = level
                .outside_ns
                .map_or_else(String::new, |ns| format!(", {} outside", nanoseconds(ns)));
            let figures = format!("{} within{outside}", nanoseconds(level.inside_ns));
            self.lines(x, limit, 12.5, "faint", &figures);
            self.y += 3.0;
        }
    }

    fn finish(self, description: &str) -> String {
        let (page_width, height) = (self.width + 2.0 * MARGIN, self.y + MARGIN);
        let (page_width, height) = (number(page_width.ceil()), number(height.ceil()));
        let title = escape(&visible(description)).into_owned();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{page_width}\" height=\"{height}\" viewBox=\"0 0 {page_width} {height}\" role=\"img\" aria-label=\"{title}\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\">\n\
             <title>{title}</title>\n\
             <style>{}{}</style>\n\
             <defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#eceef1\"/><path d=\"M0 0v6\" stroke=\"#c3c8d0\" stroke-width=\"2\"/></pattern></defs>\n\
             <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{page_width}\" height=\"{height}\" rx=\"8\"/>\n{}</svg>\n",
            STYLE,
            machine::style(),
            self.canvas.into_body()
        )
    }
}

const STYLE: &str = ".page{fill:#fff}\
.on{fill:#1d2433}.faint{fill:#667085}.light{fill:#fff}.off{fill:#7b828d}\
.strong{fill:#1d2433;font-weight:600}.alarm{fill:#a61b1b;font-weight:600}\
.numa-words{fill:#14532d}.cache-words{fill:#6b4300}.contradicted-words{fill:#8f1d1d;font-weight:600}\
.card{fill:#fdf0ef;stroke:#f0b8b4}.card-edge{fill:#c93535}\
.unmeasured{fill:url(#hatch);stroke:#c3c8d0}\
.border{fill:none;stroke:#fff}.frame{fill:none;stroke:#1d2433}.touch{fill:#000;fill-opacity:0}\
.tick{fill:none;stroke:#667085}";

/// The caches that a core has to itself: one line, or one for each kind of
/// core.
fn caches_of_cores(topology: &Topology) -> Vec<String> {
    let mut listed: Vec<(String, CpuSet)> = Vec::new();
    for core in &topology.cores {
        let Some(first) = core.first() else { continue };
        let caches = topology.caches.iter();
        let own: Vec<String> = caches
            .filter(|cache| cache.cpus.contains(first) && cache.cpus.is_subset(core))
            .map(|cache| {
                let letter = match cache.kind {
                    CacheType::Data => "d",
                    CacheType::Instruction => "i",
                    CacheType::Unified => "",
                };
                let size = cache.size_bytes.map_or_else(String::new, round_bytes);
                format!("L{}{letter} {size}", cache.level)
            })
            .collect();
        let line = own.join(", ");
        match listed.iter_mut().find(|(known, _)| *known == line) {
            Some((_, cpus)) => *cpus = cpus.union(core),
            None => listed.push((line, core.clone())),
        }
    }
    listed.retain(|(line, _)| !line.is_empty());
    let is_one = listed.len() == 1;
    listed.truncate(MOST_CORES);
    listed
        .into_iter()
        .map(|(line, cpus)| match is_one {
            true => format!("Each core: {line}"),
            false => format!("Each core of CPUs {cpus}: {line}"),
        })
        .collect()
}
