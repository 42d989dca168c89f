//! Best so far against runs: what the leader was expected to cost,
//! how likely a better arm was, and on a simulated machine how wrong it was.

use super::axis::{Axis, end_of_runs, level, upright, upright_right};
use super::{LETTERS, PLOT_HEIGHT, band, circle, drawable, line, path, plot, shown, words};
use crate::style::shortened;
use crate::svg::canvas::{Anchor, Area, Canvas, Words, width};
use pinwise_format::percent;
use pinwise_record::{ProgressPoint, SearchRecord};

/// Height of the lower plot, and between the two, pixels.
const LOWER: f64 = 104.0;
const BETWEEN: f64 = 52.0;
/// The interval widens the axis by no more than this factor.
const WIDEST: f64 = 1.3;

/// Draws it with its left upper corner at a place; where it ends below.
pub(super) fn draw(canvas: &mut Canvas, x: f64, y: f64, record: &SearchRecord) -> f64 {
    words(
        canvas,
        (x, y + 14.0),
        "strong",
        14.0,
        "Best so far against runs",
    );
    let points: Vec<&ProgressPoint> = record
        .progress
        .iter()
        .filter(|point| drawable(point.predicted).is_some())
        .collect();
    let Some(last) = points.last() else {
        words(
            canvas,
            (x, y + 40.0),
            "faint",
            LETTERS,
            "No block is over yet.",
        );
        return y + 60.0;
    };
    let most = points.iter().map(|point| point.runs).max();
    let runs = Axis::from_zero(end_of_runs(most.unwrap_or(last.runs)));
    let upper = plot(x, y + 30.0, PLOT_HEIGHT - LOWER - BETWEEN);
    let lower = plot(x, upper.y + upper.height + BETWEEN, LOWER);
    let across = runs.between(upper.x, upper.x + upper.width);
    leader(canvas, upper, across, record, &points);
    chances(canvas, lower, across, &points);
    legend(
        canvas,
        lower,
        points.iter().any(|p| p.true_regret.is_some()),
    )
}

/// Whole numbers only: there is no half run.
fn run_number(runs: f64) -> String {
    if (runs - runs.round()).abs() < 1e-9 {
        format!("{runs:.0}")
    } else {
        String::new()
    }
}

fn leader(
    canvas: &mut Canvas,
    area: Area,
    across: Axis,
    record: &SearchRecord,
    points: &[&ProgressPoint],
) {
    let default = record
        .predictions
        .first()
        .and_then(|arm| drawable(arm.predicted));
    let costs = points.iter().map(|point| point.predicted).chain(default);
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for cost in costs {
        least = least.min(cost);
        most = most.max(cost);
    }
    let (mut low, mut high) = (least, most);
    for point in points {
        low = low.min(drawable(point.low).unwrap_or(least).max(least / WIDEST));
        high = high.max(drawable(point.high).unwrap_or(most).min(most * WIDEST));
    }
    let upwards = Axis::costs(low, high).between(area.y + area.height, area.y);
    upright(canvas, area, upwards, "faint", |cost| shown(record, cost));
    level(canvas, area, across, run_number);
    let along = |cost: fn(&ProgressPoint) -> f64| -> Vec<(f64, f64)> {
        let places = points.iter();
        places
            .map(|point| (across.at(point.runs as f64), upwards.at(cost(point))))
            .collect()
    };
    band(canvas, &along(|p| p.low), &along(|p| p.high));
    if let Some(default) = default {
        let y = upwards.at(default);
        line(canvas, (area.x, y), (area.x + area.width, y), "level");
        let above = y - 5.0;
        let y = if above - LETTERS > area.y {
            above
        } else {
            y + LETTERS + 3.0
        };
        let text = "os-default";
        // Before the first block there is nothing that it could cover.
        let wide = width(text, LETTERS);
        let first = points.first().map_or(area.x, |p| across.at(p.runs as f64));
        let x = match first - area.x > wide + 12.0 {
            true => area.x + 6.0,
            false => area.x + area.width - wide - 6.0,
        };
        words(canvas, (x, y), "defaultword", LETTERS, text);
    }
    path(canvas, &along(|p| p.predicted), "course");
    canvas.rect(area, 0.0, "frame");
    dots(canvas, record, points, &along(|p| p.predicted));
}

/// A dot at each block, filled where another arm took the lead.
fn dots(
    canvas: &mut Canvas,
    record: &SearchRecord,
    points: &[&ProgressPoint],
    places: &[(f64, f64)],
) {
    let mut before: Option<&str> = None;
    for (point, place) in points.iter().zip(places) {
        let is_new = before != Some(point.leader.as_str());
        before = Some(&point.leader);
        let title = format!(
            "after {} runs {} leads: expected {} ({} to {}), probability of a better one {}",
            point.runs,
            shortened(&point.leader, 200),
            shown(record, point.predicted),
            shown(record, point.low),
            shown(record, point.high),
            percent(point.probability_of_better)
        );
        canvas.titled(&title, |canvas| {
            let class = if is_new { "dot" } else { "hollow" };
            circle(canvas, *place, if is_new { 4.2 } else { 2.6 }, class);
        });
    }
}

/// Probability of a better arm at the left, true regret at the right, where it is known.
fn chances(canvas: &mut Canvas, area: Area, across: Axis, points: &[&ProgressPoint]) {
    let bottom = area.y + area.height;
    let chance = Axis::from_zero(1.0).between(bottom, area.y);
    upright(canvas, area, chance, "betterword", |share| {
        format!("{:.0} %", 100.0 * share)
    });
    level(canvas, area, across, run_number);
    let along = |axis: Axis, share: fn(&ProgressPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let shares = points.iter().filter_map(|p| Some((p.runs, share(p)?)));
        shares
            .map(|(runs, share)| (across.at(runs as f64), axis.at(share)))
            .collect()
    };
    let regrets = points.iter().filter_map(|point| point.true_regret);
    if let Some(most) = regrets.filter(|r| r.is_finite()).reduce(f64::max) {
        let regret = Axis::from_zero(most.max(0.01) * 1.05).between(bottom, area.y);
        upright_right(canvas, area, regret, "regretword", percent);
        path(canvas, &along(regret, |p| p.true_regret), "regret");
    }
    path(
        canvas,
        &along(chance, |p| Some(p.probability_of_better)),
        "better",
    );
    canvas.rect(area, 0.0, "frame");
}

/// What the lines mean; where it ends.
fn legend(canvas: &mut Canvas, area: Area, has_regret: bool) -> f64 {
    let mut y = area.y + area.height + 38.0;
    let x = area.x;
    let middle = Words {
        class: "faint",
        size: LETTERS - 1.0,
        anchor: Anchor::Middle,
        text: "runs of profiling, search and refinement",
    };
    canvas.words(area.x + area.width / 2.0, y - 4.0, middle);
    let mut entry = |class: &str, text: &str| {
        y += 18.0;
        line(canvas, (x, y - 4.0), (x + 22.0, y - 4.0), class);
        words(canvas, (x + 30.0, y), "on", LETTERS, text);
    };
    entry(
        "course",
        "expected cost of the leader, with its 90 % interval",
    );
    entry("better", "probability of a better placement");
    if has_regret {
        entry(
            "regret",
            "true regret: how much dearer than the true best (right)",
        );
    }
    circle(canvas, (x + 11.0, y + 14.0), 4.2, "dot");
    words(
        canvas,
        (x + 30.0, y + 18.0),
        "on",
        LETTERS,
        "another placement takes the lead",
    );
    y + 26.0
}
