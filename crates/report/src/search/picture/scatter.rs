//! Predicted against measured: every arm one mark.

use super::axis::{Axis, level, upright};
use super::{LETTERS, PLOT_HEIGHT, band_of, circle, drawable, line, plot, shown, words};
use crate::style::shortened;
use crate::svg::canvas::{Anchor, Area, Canvas, Words, width};
use pinwise_record::{PredictedArm, SearchRecord};

/// Dots get smaller where there are very many.
const MANY: usize = 80;
/// Intervals widen the axes by no more than this factor beyond the marks.
const WIDEST: f64 = 1.25;

/// What is drawn of an arm.
struct Mark<'a> {
    arm: &'a PredictedArm,
    /// Measured or true cost; `None` of arms that nothing is known of.
    x: Option<f64>,
    y: f64,
    has_run: bool,
}

/// Draws it with its left upper corner at a place; where it ends below.
pub(super) fn draw(canvas: &mut Canvas, x: f64, y: f64, record: &SearchRecord) -> f64 {
    words(
        canvas,
        (x, y + 14.0),
        "strong",
        14.0,
        "Predicted against measured",
    );
    let area = plot(x, y + 30.0, PLOT_HEIGHT);
    let marks = marks(record);
    let Some((low, high)) = ends(&marks) else {
        words(
            canvas,
            (x, y + 40.0),
            "faint",
            LETTERS,
            "No run counts yet.",
        );
        return y + 60.0;
    };
    let costs = Axis::costs(low, high);
    let across = costs.between(area.x, area.x + area.width);
    let upwards = costs.between(area.y + area.height, area.y);
    let name = |cost: f64| shown(record, cost);
    upright(canvas, area, upwards, "faint", name);
    level(canvas, area, across, name);
    let corner = |value: f64| (across.at(value), upwards.at(value));
    line(canvas, corner(low / 9.0), corner(high * 9.0), "diagonal");
    canvas.rect(area, 0.0, "frame");
    let drawing = Drawing {
        record,
        area,
        across,
        upwards,
        radius: if marks.len() > MANY { 2.4 } else { 3.8 },
    };
    for mark in &marks {
        drawing.whisker(canvas, mark);
    }
    for mark in &marks {
        drawing.mark(canvas, mark);
    }
    drawing.name_the_two(canvas, &marks);
    let has_truth = record.predictions.iter().any(|arm| arm.truth.is_some());
    legend(canvas, area, has_truth)
}

fn marks(record: &SearchRecord) -> Vec<Mark<'_>> {
    let arms = record.predictions.iter();
    let mut marks: Vec<Mark<'_>> = arms
        .filter_map(|arm| {
            let measured = arm.measured.and_then(|measured| drawable(measured.value));
            Some(Mark {
                arm,
                x: measured.or(arm.truth.and_then(drawable)),
                y: drawable(arm.predicted)?,
                has_run: measured.is_some(),
            })
        })
        .collect();
    // Those that ran stand above all others.
    marks.sort_by_key(|mark| mark.has_run);
    marks
}

/// The least and the largest cost to be drawn.
fn ends(marks: &[Mark<'_>]) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = Vec::new();
    for mark in marks {
        values.push(mark.y);
        values.extend(mark.x);
        if let Some(first) = &mark.arm.first_prediction {
            values.extend(drawable(first.predicted));
            values.extend(drawable(first.measured));
        }
    }
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    let intervals = marks.iter().flat_map(|mark| band_of(mark.arm));
    let (mut low, mut high) = (least, most);
    for end in intervals {
        low = low.min(end.max(least / WIDEST));
        high = high.max(end.min(most * WIDEST));
    }
    Some((low, high))
}

struct Drawing<'a> {
    record: &'a SearchRecord,
    area: Area,
    across: Axis,
    upwards: Axis,
    radius: f64,
}

impl Drawing<'_> {
    /// Where a mark stands; arms without any truth stand at the left edge.
    fn place(&self, mark: &Mark<'_>) -> (f64, f64) {
        let x = mark.x.map_or(self.area.x + 8.0, |x| self.across.at(x));
        (x, self.upwards.at(mark.y))
    }

    fn whisker(&self, canvas: &mut Canvas, mark: &Mark<'_>) {
        let (x, _) = self.place(mark);
        let [low, high] = [mark.arm.low, mark.arm.high].map(|end| self.upwards.at(end));
        let class = if mark.has_run { "whisker" } else { "pale" };
        if mark.has_run || mark.x.is_some() {
            line(canvas, (x, low), (x, high), class);
        }
        if let Some(first) = &mark.arm.first_prediction {
            let x = self.across.at(first.measured);
            let [low, high] = [first.low, first.high].map(|end| self.upwards.at(end));
            line(canvas, (x, low), (x, high), "whisker");
        }
    }

    fn mark(&self, canvas: &mut Canvas, mark: &Mark<'_>) {
        let (x, y) = self.place(mark);
        let radius = self.radius;
        canvas.titled(&self.title(mark), |canvas| {
            if let Some(first) = &mark.arm.first_prediction {
                let at = (
                    self.across.at(first.measured),
                    self.upwards.at(first.predicted),
                );
                circle(canvas, at, radius, "hollow");
            }
            if mark.has_run {
                circle(canvas, (x, y), radius, "dot");
            } else {
                line(canvas, (x - radius, y), (x + radius, y), "never");
                line(canvas, (x, y - radius), (x, y + radius), "never");
            }
        });
    }

    fn title(&self, mark: &Mark<'_>) -> String {
        let arm = mark.arm;
        let cost = |value: f64| shown(self.record, value);
        let mut title = format!(
            "{}: expected {} ({} to {}), {} of os-default; {} runs",
            shortened(&arm.arm, 200),
            cost(arm.predicted),
            cost(arm.low),
            cost(arm.high),
            pinwise_format::three_digits(arm.ratio),
            arm.runs
        );
        if let Some(measured) = arm.measured {
            title.push_str(&format!("; measured {}", cost(measured.value)));
        }
        if let Some(truth) = arm.truth {
            title.push_str(&format!("; truly {}", cost(truth)));
        }
        title
    }

    /// Rings around the best arm and `os-default`, with their words.
    fn name_the_two(&self, canvas: &mut Canvas, marks: &[Mark<'_>]) {
        let find = |name: Option<&String>| {
            let name = name?;
            marks.iter().find(|mark| mark.arm.arm == *name)
        };
        let default = find(self.record.arms.first().map(|arm| &arm.name));
        let best = find(self.record.best.as_ref());
        let is_one = match (best, default) {
            (Some(best), Some(default)) => best.arm.arm == default.arm.arm,
            _ => false,
        };
        let mut taken = None;
        if let Some(mark) = default {
            let at = self.place(mark);
            circle(canvas, at, self.radius + 4.0, "default");
            let text = if is_one {
                "os-default, best"
            } else {
                "os-default"
            };
            taken = Some(self.word(canvas, at, "defaultword", text, None));
        }
        if let Some(mark) = best.filter(|_| !is_one) {
            let at = self.place(mark);
            circle(canvas, at, self.radius + 4.0, "best");
            self.word(canvas, at, "bestword", "best", taken);
        }
    }

    /// A word beside a ring, inside the plot and not over another; where it
    /// stands.
    fn word(
        &self,
        canvas: &mut Canvas,
        at: (f64, f64),
        class: &str,
        text: &str,
        taken: Option<Area>,
    ) -> Area {
        let (wide, high) = (width(text, LETTERS) * 1.05, LETTERS);
        let fits_right = at.0 + 12.0 + wide < self.area.x + self.area.width - 4.0;
        let x = if fits_right {
            at.0 + 12.0
        } else {
            at.0 - 12.0 - wide
        };
        let (top, bottom) = (
            self.area.y + 4.0,
            self.area.y + self.area.height - 4.0 - high,
        );
        let spot = |y: f64| Area {
            x,
            y: y.clamp(top, bottom),
            width: wide,
            height: high,
        };
        let is_free = |area: &Area| {
            taken.is_none_or(|other| {
                let apart =
                    area.y + area.height + 2.0 < other.y || other.y + other.height + 2.0 < area.y;
                apart || area.x + area.width < other.x || other.x + other.width < area.x
            })
        };
        let offsets = [4.0, 20.0, -18.0, 36.0, -34.0];
        let spots = offsets.map(|offset| spot(at.1 - high + offset + 4.0));
        let chosen = spots.into_iter().find(is_free).unwrap_or(spots[0]);
        let words = Words {
            class,
            size: LETTERS,
            anchor: Anchor::Start,
            text,
        };
        canvas.words(chosen.x, chosen.y + high - 2.0, words);
        chosen
    }
}

/// What the marks mean; where it ends.
fn legend(canvas: &mut Canvas, area: Area, has_truth: bool) -> f64 {
    let mut y = area.y + area.height + 42.0;
    let x = area.x;
    let sentence = "Across: measured, the median of the arm's runs. Upwards: predicted,";
    words(canvas, (x, y - 4.0), "faint", LETTERS - 1.0, sentence);
    words(
        canvas,
        (x, y + 11.0),
        "faint",
        LETTERS - 1.0,
        "with the 90 % interval. On the dashed line they agree.",
    );
    y += 32.0;
    circle(canvas, (x + 5.0, y - 4.0), 3.8, "dot");
    words(
        canvas,
        (x + 16.0, y),
        "on",
        LETTERS,
        "predicted with all runs, its own among them",
    );
    y += 18.0;
    circle(canvas, (x + 5.0, y - 4.0), 3.8, "hollow");
    words(
        canvas,
        (x + 16.0, y),
        "on",
        LETTERS,
        "predicted before its first run, against that run",
    );
    y += 18.0;
    line(canvas, (x + 1.0, y - 4.0), (x + 9.0, y - 4.0), "never");
    line(canvas, (x + 5.0, y - 8.0), (x + 5.0, y), "never");
    let never = match has_truth {
        true => "never run, against the simulated machine's truth",
        false => "never run: predicted only (at the left edge)",
    };
    words(canvas, (x + 16.0, y), "on", LETTERS, never);
    y + 8.0
}
