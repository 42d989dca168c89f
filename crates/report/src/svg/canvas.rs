//! Shapes and words as SVG, and how wide words are.

use crate::markup::escape;
use crate::style::{visible, wrapped};

/// A rectangle, in pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Where words are anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Words in one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    /// Class of the style sheet: colour and weight.
    pub(crate) class: &'a str,
    /// Height of the letters, pixels.
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    pub(crate) text: &'a str,
}

/// The drawing so far.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: String,
}

impl Canvas {
    pub(crate) fn into_body(self) -> String {
        self.body
    }

    /// A rectangle of a class, with rounded corners.
    pub(crate) fn rect(&mut self, area: Area, radius: f64, class: &str) {
        self.push_rect(area, radius, &format!("class=\"{class}\""));
    }

    /// A rectangle of a colour.
    pub(crate) fn fill(&mut self, area: Area, colour: &str) {
        self.push_rect(area, 0.0, &format!("fill=\"{colour}\""));
    }

    fn push_rect(&mut self, area: Area, radius: f64, paint: &str) {
        let rounded = match radius > 0.0 {
            true => format!(" rx=\"{}\"", number(radius)),
            false => String::new(),
        };
        self.body.push_str(&format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{rounded} {paint}/>\n",
            number(area.x),
            number(area.y),
            number(area.width),
            number(area.height)
        ));
    }

    /// Words with their baseline at `y`.
    pub(crate) fn words(&mut self, x: f64, y: f64, words: Words<'_>) {
        let anchor = match words.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.body.push_str(&format!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" class=\"{}\"{anchor}>{}</text>\n",
            number(x),
            number(y),
            number(words.size),
            words.class,
            escape(&visible(words.text))
        ));
    }

    /// A group of shapes with words that a pointer over it shows.
    pub(crate) fn titled(&mut self, title: &str, draw: impl FnOnce(&mut Self)) {
        self.body.push_str("<g>");
        self.title(title);
        draw(self);
        self.body.push_str("</g>\n");
    }

    pub(crate) fn title(&mut self, title: &str) {
        let title = escape(&visible(title)).into_owned();
        self.body.push_str(&format!("<title>{title}</title>\n"));
    }

    /// Markup of the caller's own, without any string from outside.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
    }
}

/// A coordinate with one digit after the point, which is finer than a pixel.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// About how wide words are in a sans-serif font: fonts differ, so this is
/// that of a wide one (`DejaVu Sans` has 0.61 of the size on average).
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.61
}

/// Words cut to a width, with an ellipsis.
pub(crate) fn cut(text: &str, size: f64, limit: f64) -> String {
    let most = text.chars().count();
    let fitting = (0..=most).take_while(|&n| n as f64 * size * 0.61 <= limit);
    crate::style::shortened(text, fitting.count().saturating_sub(1))
}

/// Words folded into lines of a width; those of a bold class are wider.
pub(crate) fn folded(text: &str, size: f64, limit: f64, class: &str) -> Vec<String> {
    let share = match class {
        "strong" | "alarm" => 0.64,
        _ => 0.57,
    };
    let most = (1..400).take_while(|&n| f64::from(n) * size * share <= limit);
    wrapped(text, most.count().max(10))
}
