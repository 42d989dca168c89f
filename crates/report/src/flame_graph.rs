//! Flame graphs: the tree of calls as one SVG file, widths proportional to CPU
//! time, callers below what they called.
//!
//! Opens from disk, runs no script and asks for nothing from elsewhere; a
//! pointer over a function shows its figures. Colours distinguish kinds for
//! colour-blind eyes, too (Okabe and Ito 2008), and every colour is named in
//! words. What is too narrow to be drawn is counted.

use std::collections::BTreeMap;

use super::markup::escape;
use super::style::visible;
use super::svg::canvas::{Anchor, Area, Canvas, Words, cut, number};
use pinwise_format::{count, seconds};
use pinwise_profile::{Function, Kind};
use pinwise_record::{CallChangeRecord, ChangeRecord, FunctionKind, ProfileDiff, ProfileRecord};

/// Width of the graph, and what is around it, pixels.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 20.0;
/// Height of a call, and of its letters, pixels.
const ROW: f64 = 18.0;
const LETTERS: f64 = 11.5;
/// Narrower ones are not drawn, pixels; narrower than this has no words.
const NARROWEST: f64 = 1.0;
const NARROWEST_WORDS: f64 = 22.0;
/// Calls deeper than this are not drawn.
const DEEPEST: usize = 150;

/// A change of less than this share of all time is no change to the eye; then
/// the shares from which colours get stronger.
const STEPS: [f64; 3] = [0.005, 0.02, 0.1];

const STYLE: &str = ".page{fill:#fff}.on{fill:#1d2433}.faint{fill:#667085}\
.strong{fill:#1d2433;font-weight:600}.mono{fill:#10151f;font-family:ui-monospace,'DejaVu Sans Mono',monospace}\
.frame rect{stroke:#fff;stroke-width:0.5}.frame:hover rect{stroke:#10151f;stroke-width:1}\
.user{fill:#9ccbea}.kernel{fill:#d9a7c7}.pause{fill:#f0a30a}.left_out{fill:#dcdfe4}.broken{fill:#f3d9d9}.all{fill:#e8eaee}\
.up1{fill:#fbe0c8}.up2{fill:#f6b27b}.up3{fill:#ee8336}\
.down1{fill:#d5e6f4}.down2{fill:#95c1e4}.down3{fill:#5799cf}.flat{fill:#eceef1}";

/// A call to be drawn.
struct Call {
    parent: Option<usize>,
    /// What stands on it.
    label: String,
    /// What a pointer shows.
    title: String,
    /// Class of the style sheet.
    class: String,
    /// Itself and what it called, s.
    time_s: f64,
}

/// What could not be drawn.
#[derive(Default)]
struct Hidden {
    count: usize,
    time_s: f64,
}

/// The profile's stacks.
#[must_use]
pub fn flame_graph(record: &ProfileRecord) -> String {
    let calls = calls(record);
    let total = &record.figures.total;
    let unit = &record.work.unit;
    let each = total.cpu_s_per_unit;
    let each = each.map_or_else(String::new, |each| {
        format!(", {} per {unit}", seconds(each))
    });
    let mut page = Page::new();
    page.line(18.0, "strong", &record.title());
    page.line(13.0, "on", &record.sentence);
    let made = format!(
        "{} of CPU time{each}; {} samples by {} at {} Hz",
        seconds(total.cpu_s),
        total.samples,
        record.event,
        record.hz
    );
    page.line(12.0, "faint", &made);
    if let Some(stacks) = super::profile::stacks(record) {
        page.line(12.0, "faint", &stacks);
    }
    page.legend(&[
        ("user", "program and libraries"),
        ("kernel", "kernel"),
        ("pause", "waiting in a spin hint (PAUSE)"),
        ("left_out", "stacks not listed one by one"),
        ("broken", "callers missing: broken stacks"),
    ]);
    page.graph(&calls, "all CPU time");
    page.finish(&record.title())
}

fn calls(record: &ProfileRecord) -> Vec<Call> {
    let Some(tree) = record.figures.calls.tree() else {
        return Vec::new();
    };
    let total_s = tree.total().cpu_s();
    let units = record.work.count;
    let unit = &record.work.unit;
    let nodes = tree.nodes().iter();
    nodes
        .map(|node| {
            let time_s = node.total.cpu_s();
            let each = match units > 0.0 {
                true => format!(", {} per {unit}", seconds(time_s / units)),
                false => String::new(),
            };
            let title = format!(
                "{}: {} of {} ({:.1} %), {} samples{each}; itself {}",
                full_name(&node.function),
                seconds(time_s),
                seconds(total_s),
                100.0 * time_s / total_s.max(1e-12),
                node.total.samples,
                seconds(node.own.cpu_s())
            );
            Call {
                parent: node.parent,
                label: node.function.name.clone(),
                title,
                class: FunctionKind::from(node.function.kind).to_string(),
                time_s,
            }
        })
        .collect()
}

fn full_name(function: &Function) -> String {
    match (function.kind, function.module.as_str()) {
        (Kind::Pause, _) => "waiting in a spin hint".to_owned(),
        (Kind::LeftOut, _) => "stacks not listed one by one".to_owned(),
        (Kind::Broken, _) => "broken stacks: callers missing".to_owned(),
        (_, "") => function.name.clone(),
        (_, module) => format!("{} ({module})", function.name),
    }
}

/// The stacks of two profiles, coloured by what changed per unit of work: first
/// with the widths of after, then with those of before, where what has gone is
/// seen.
#[must_use]
pub fn flame_graph_diff(record: &ProfileDiff) -> String {
    let total_s = record.total.before_s.max(record.total.after_s);
    let unit = &record.unit;
    let panel = |time: fn(&ChangeRecord) -> f64| -> Vec<Call> {
        let calls = record.calls.iter();
        calls
            .map(|call| changed(call, time(&call.total), total_s, unit))
            .collect()
    };
    let mut page = Page::new();
    let title = format!("{} less {}", record.after.title, record.before.title);
    page.line(18.0, "strong", &title);
    let heading = format!(
        "CPU time per {unit}: {} before, {} after",
        seconds(record.total.before_s),
        seconds(record.total.after_s)
    );
    page.line(13.0, "on", &heading);
    for sentence in &record.sentences {
        page.line(13.0, "on", &format!("{sentence}."));
    }
    page.legend(&[
        ("up3", "more, by 10 % of all CPU time or above"),
        ("up2", "2 to 10 %"),
        ("up1", "0.5 to 2 %"),
        ("flat", "no change, or chance"),
        ("down1", "less, by 0.5 to 2 %"),
        ("down2", "2 to 10 %"),
        ("down3", "10 % or above"),
    ]);
    page.line(13.0, "strong", "After: widths as after");
    page.graph(&panel(|change| change.after_s), "all CPU time after");
    page.line(13.0, "strong", "Before: widths as before");
    page.graph(&panel(|change| change.before_s), "all CPU time before");
    page.finish(&title)
}

fn changed(call: &CallChangeRecord, time_s: f64, total_s: f64, unit: &str) -> Call {
    let change = &call.total;
    let sign = if change.delta_s < 0.0 { '−' } else { '+' };
    let title = format!(
        "{}: {sign}{} per {unit} (±{}); {} before, {} after; {} and {} samples",
        full_name(&call.function.function()),
        seconds(change.delta_s.abs()),
        seconds(change.interval_s()),
        seconds(change.before_s),
        seconds(change.after_s),
        change.before_samples,
        change.after_samples
    );
    Call {
        parent: call.parent,
        label: call.function.name.clone(),
        title,
        class: class_of(change, total_s).to_owned(),
        time_s,
    }
}

fn class_of(change: &ChangeRecord, total_s: f64) -> &'static str {
    let share = change.delta_s / total_s.max(1e-12);
    let step = STEPS.iter().filter(|step| share.abs() >= **step).count();
    match (step, share > 0.0) {
        (0, _) => "flat",
        _ if change.is_noise => "flat",
        (1, true) => "up1",
        (2, true) => "up2",
        (_, true) => "up3",
        (1, false) => "down1",
        (2, false) => "down2",
        (_, false) => "down3",
    }
}

/// The drawing from top to bottom.
struct Page {
    canvas: Canvas,
    y: f64,
}

impl Page {
    fn new() -> Self {
        Self {
            canvas: Canvas::default(),
            y: MARGIN,
        }
    }

    /// A line of words, cut where it is too long.
    fn line(&mut self, size: f64, class: &str, text: &str) {
        let text = cut(text, size, WIDTH);
        let words = Words {
            class,
            size,
            anchor: Anchor::Start,
            text: &text,
        };
        self.canvas.words(MARGIN, self.y + size, words);
        self.y += size * 1.5;
    }

    /// Colours with their words, in one line.
    fn legend(&mut self, entries: &[(&str, &str)]) {
        let mut x = MARGIN;
        self.y += 4.0;
        for (class, text) in entries {
            let area = Area {
                x,
                y: self.y,
                width: 12.0,
                height: 12.0,
            };
            self.canvas.rect(area, 2.0, class);
            let words = Words {
                class: "faint",
                size: 12.0,
                anchor: Anchor::Start,
                text,
            };
            self.canvas.words(x + 17.0, self.y + 10.5, words);
            x += 17.0 + text.chars().count() as f64 * 12.0 * 0.58 + 18.0;
        }
        self.y += 24.0;
    }

    /// Calls from the bottom up, over a base of all time.
    fn graph(&mut self, calls: &[Call], base: &str) {
        let (placed, hidden) = placed(calls);
        let deepest = placed.iter().map(|place| place.depth).max();
        let rows = deepest.map_or(0, |deepest| deepest + 1) as f64;
        let bottom = self.y + rows * ROW;
        for place in &placed {
            let call = &calls[place.call];
            let area = Area {
                x: MARGIN + place.x,
                y: bottom - (place.depth + 1) as f64 * ROW,
                width: place.width,
                height: ROW - 1.0,
            };
            self.call(area, &call.class, &call.label, &call.title);
        }
        let total_s: f64 = calls
            .iter()
            .filter(|c| c.parent.is_none())
            .map(|c| c.time_s)
            .sum();
        let area = Area {
            x: MARGIN,
            y: bottom,
            width: WIDTH,
            height: ROW - 1.0,
        };
        let base = format!("{base}: {}", seconds(total_s));
        self.call(area, "all", &base, &base);
        self.y = bottom + ROW + 6.0;
        if hidden.count > 0 {
            let note = format!(
                "Not drawn: {}, narrower than a pixel or deeper than {DEEPEST}; {} in all.",
                count(hidden.count, "call"),
                seconds(hidden.time_s)
            );
            self.line(11.0, "faint", &note);
        }
        self.y += 8.0;
    }

    fn call(&mut self, area: Area, class: &str, label: &str, title: &str) {
        self.canvas.raw("<g class=\"frame\">");
        self.canvas.title(title);
        self.canvas.rect(area, 1.0, class);
        if area.width >= NARROWEST_WORDS {
            let text = cut(label, LETTERS, area.width - 6.0);
            let words = Words {
                class: "mono",
                size: LETTERS,
                anchor: Anchor::Start,
                text: &text,
            };
            self.canvas.words(area.x + 3.0, area.y + 12.5, words);
        }
        self.canvas.raw("</g>\n");
    }

    fn finish(self, description: &str) -> String {
        let (width, height) = (number(WIDTH + 2.0 * MARGIN), number(self.y + MARGIN));
        let title = escape(&visible(description)).into_owned();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\">\n\
             <title>{title}</title>\n\
             <style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            self.canvas.into_body()
        )
    }
}

/// Where a call is drawn.
struct Place {
    call: usize,
    depth: usize,
    x: f64,
    width: f64,
}

/// Calls side by side above their callers, in the order of their names, so that
/// two graphs of one program can be laid beside each other.
fn placed(calls: &[Call]) -> (Vec<Place>, Hidden) {
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        children.entry(call.parent).or_default().push(at);
    }
    for siblings in children.values_mut() {
        siblings.sort_by(|a, b| calls[*a].label.cmp(&calls[*b].label).then(a.cmp(b)));
    }
    let roots = children.get(&None).cloned().unwrap_or_default();
    let total_s: f64 = roots.iter().map(|&at| calls[at].time_s).sum();
    let mut hidden = Hidden::default();
    let mut places = Vec::new();
    if total_s <= 0.0 {
        return (places, hidden);
    }
    let scale = WIDTH / total_s;
    // Not by recursion: a record may hold a very deep tree.
    let mut open = vec![(roots, 0, 0.0)];
    while let Some((siblings, depth, left)) = open.pop() {
        let mut x = left;
        for at in siblings {
            let width = calls[at].time_s * scale;
            if width < NARROWEST || depth >= DEEPEST {
                if width > 0.0 {
                    hidden.count += 1;
                    hidden.time_s += calls[at].time_s;
                }
                x += width;
                continue;
            }
            places.push(Place {
                call: at,
                depth,
                x,
                width,
            });
            if let Some(callees) = children.get(&Some(at)) {
                open.push((callees.clone(), depth + 1, x));
            }
            x += width;
        }
    }
    (places, hidden)
}

#[cfg(test)]
#[path = "flame_graph_tests.rs"]
mod tests;
