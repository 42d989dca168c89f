//! A search drawn, as one SVG file: predicted against measured, and best so
//! far against runs.
//!
//! Opens from disk, runs no script and asks for nothing from elsewhere; a
//! pointer over a mark shows its figures. Kinds of marks differ in form as
//! well as in colour (Okabe and Ito 2008).

mod axis;
mod course;
mod scatter;

use crate::markup::escape;
use crate::style::visible;
use crate::svg::canvas::{Anchor, Area, Canvas, Words, cut, folded, number};
use pinwise_record::{PredictedArm, SearchRecord};

/// Around everything, pixels.
const MARGIN: f64 = 24.0;
/// Between the margins, pixels.
const WIDTH: f64 = 1100.0;
/// Of each plot, what is left for the numbers at its left, pixels.
const NUMBERS: f64 = 82.0;
/// Width and height of a plot, pixels.
const PLOT_WIDTH: f64 = 410.0;
const PLOT_HEIGHT: f64 = 410.0;
/// Height of letters, pixels.
const LETTERS: f64 = 12.0;
/// Letters of a number along an axis, at most.
const LONGEST_NUMBER: usize = 10;
/// Lines of the verdict at most.
const VERDICT_LINES: usize = 3;

const STYLE: &str = ".page{fill:#fff}.on{fill:#1d2433}.faint{fill:#667085}\
.strong{fill:#1d2433;font-weight:600}\
.frame{fill:none;stroke:#98a2b3}.grid{stroke:#eceef1}.diagonal{stroke:#98a2b3;stroke-dasharray:5 4}\
.whisker{stroke:#0072b2;opacity:.45}.dot{fill:#0072b2}.hollow{fill:#fff;stroke:#0072b2;stroke-width:1.4}\
.never{stroke:#98a2b3;stroke-width:1.2;fill:none}.pale{stroke:#98a2b3;stroke-width:.8;opacity:.4}\
.best{fill:none;stroke:#007a57;stroke-width:2.5}.default{fill:none;stroke:#c04f00;stroke-width:2.5}\
.bestword{fill:#007a57;font-weight:600}.defaultword{fill:#c04f00;font-weight:600}\
.bestword,.defaultword{paint-order:stroke;stroke:#fff;stroke-width:3px}\
.band{fill:#0072b2;opacity:.16}.course{fill:none;stroke:#0072b2;stroke-width:2}\
.level{stroke:#c04f00;stroke-width:1.4;stroke-dasharray:7 4}\
.better{fill:none;stroke:#5b3f8c;stroke-width:2}.betterword{fill:#5b3f8c}\
.regret{fill:none;stroke:#a8611a;stroke-width:2;stroke-dasharray:3 3}.regretword{fill:#a8611a}";

/// The search as one SVG file.
#[must_use]
pub fn search_picture(record: &SearchRecord) -> String {
    let mut page = Page {
        canvas: Canvas::default(),
        y: MARGIN,
    };
    page.line(19.0, "strong", &record.title());
    page.verdict(record);
    page.y += 14.0;
    let top = page.y;
    let left = scatter::draw(&mut page.canvas, MARGIN, top, record);
    let right = course::draw(&mut page.canvas, MARGIN + WIDTH / 2.0, top, record);
    page.y = left.max(right);
    page.finish(record)
}

/// The drawing from top to bottom.
struct Page {
    canvas: Canvas,
    y: f64,
}

impl Page {
    /// A line of words, cut where it is too long.
    fn line(&mut self, size: f64, class: &str, text: &str) {
        let text = cut(text, size, WIDTH);
        words(
            &mut self.canvas,
            (MARGIN, self.y + size),
            class,
            size,
            &text,
        );
        self.y += size * 1.45;
    }

    fn verdict(&mut self, record: &SearchRecord) {
        let sentence = visible(&record.verdict.sentence);
        let mut lines = folded(&sentence, 13.0, WIDTH, "on");
        if lines.len() > VERDICT_LINES {
            lines.truncate(VERDICT_LINES);
            if let Some(last) = lines.last_mut() {
                last.push('…');
            }
        }
        for line in lines {
            self.line(13.0, "on", &line);
        }
        let place = format!(
            "{} · metric: {} · record {}",
            record.host.name(),
            record.metric.name,
            record.id
        );
        self.line(LETTERS, "faint", &place);
    }

    fn finish(self, record: &SearchRecord) -> String {
        let (width, height) = (number(WIDTH + 2.0 * MARGIN), number(self.y + MARGIN));
        let title = escape(&visible(&record.title())).into_owned();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\">\n\
             <title>{title}</title>\n\
             <style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            self.canvas.into_body()
        )
    }
}

/// Words that begin at a point.
fn words(canvas: &mut Canvas, at: (f64, f64), class: &str, size: f64, text: &str) {
    let words = Words {
        class,
        size,
        anchor: Anchor::Start,
        text,
    };
    canvas.words(at.0, at.1, words);
}

/// A straight line.
fn line(canvas: &mut Canvas, from: (f64, f64), to: (f64, f64), class: &str) {
    canvas.raw(&format!(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>\n",
        number(from.0),
        number(from.1),
        number(to.0),
        number(to.1)
    ));
}

fn circle(canvas: &mut Canvas, at: (f64, f64), radius: f64, class: &str) {
    canvas.raw(&format!(
        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"/>\n",
        number(at.0),
        number(at.1),
        number(radius)
    ));
}

/// Lines from point to point; of fewer than two there is nothing to be seen.
fn path(canvas: &mut Canvas, points: &[(f64, f64)], class: &str) {
    if points.len() < 2 {
        return;
    }
    canvas.raw(&format!(
        "<polyline points=\"{}\" class=\"{class}\"/>\n",
        joined(points.iter())
    ));
}

/// The area between two courses of the same places.
fn band(canvas: &mut Canvas, low: &[(f64, f64)], high: &[(f64, f64)]) {
    if low.len() < 2 {
        return;
    }
    canvas.raw(&format!(
        "<polygon points=\"{}\" class=\"band\"/>\n",
        joined(low.iter().chain(high.iter().rev()))
    ));
}

fn joined<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> String {
    let texts: Vec<String> = points
        .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
        .collect();
    texts.join(" ")
}

/// A cost that can be drawn: above 0 and finite.
fn drawable(cost: f64) -> Option<f64> {
    (cost.is_finite() && cost > 0.0).then_some(cost)
}

/// Ends of an arm's interval that can be drawn.
fn band_of(arm: &PredictedArm) -> impl Iterator<Item = f64> {
    [arm.low, arm.high].into_iter().filter_map(drawable)
}

/// A cost in the metric's unit; one that is out of all proportion keeps short.
fn shown(record: &SearchRecord, cost: f64) -> String {
    let Some(cost) = drawable(cost) else {
        return "–".to_owned();
    };
    let text = super::costs(record, cost, &record.metric.unit);
    match text.chars().count() {
        0..=LONGEST_NUMBER => text,
        _ => format!("{cost:.1e}"),
    }
}

/// The plot at a place.
const fn plot(x: f64, y: f64, height: f64) -> Area {
    Area {
        x: x + NUMBERS,
        y,
        width: PLOT_WIDTH,
        height,
    }
}

#[cfg(test)]
mod tests;
