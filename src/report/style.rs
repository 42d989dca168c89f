//! Colour, wrapping and numbers, the same for all texts.

use anstyle::{AnsiColor, Effects, Style};
use comfy_table::{Table, presets};

use super::WIDTH;

/// The few ways in which text may stand out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Palette {
    is_colored: bool,
}

impl Palette {
    /// With or without colour.
    #[must_use]
    pub const fn new(is_colored: bool) -> Self {
        Self { is_colored }
    }

    /// A heading or the verdict.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.paint(Style::new().effects(Effects::BOLD), text)
    }

    /// Something good.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// Something bad.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }

    /// Something to look at.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// Something beside the point.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().effects(Effects::DIMMED), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.is_colored {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Text with control characters, which could fool a terminal, made visible.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped: String = if c.is_control() {
                c.escape_default().collect()
            } else {
                c.to_string()
            };
            escaped.chars().collect::<Vec<char>>()
        })
        .collect()
}

/// Like [`visible`], but lines stay lines.
pub(super) fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

/// A paragraph within the width, its further lines indented.
pub(super) fn paragraph(first: &str, rest: &str, text: &str) -> String {
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    let lines: Vec<String> = visible_lines(text)
        .lines()
        .flat_map(|line| {
            textwrap::wrap(line, &options)
                .into_iter()
                .map(std::borrow::Cow::into_owned)
                .collect::<Vec<String>>()
        })
        .collect();
    lines.join("\n")
}

/// At most `width` characters, with an ellipsis where it was longer.
pub(super) fn shortened(text: &str, width: usize) -> String {
    let text = visible(text);
    if text.chars().count() <= width {
        return text;
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A table without lines, two spaces before each row.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table.add_rows(rows);
    table
        .lines()
        .map(|line| format!(" {}\n", line.trim_end()))
        .collect()
}

/// A relative change such as `+1.3 %`; one that rounds to nothing has no sign.
pub(super) fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    if percent.abs() < 0.05 {
        return "±0.0 %".to_owned();
    }
    let sign = if percent < 0.0 { '−' } else { '+' };
    format!("{sign}{:.1} %", percent.abs())
}

/// A time with three digits that count: `1.23 s`, `66.4 ms`, `850 µs`.
pub(super) fn seconds(value: f64) -> String {
    let (scaled, unit) = if value >= 1.0 {
        (value, "s")
    } else if value >= 1e-3 {
        (value * 1e3, "ms")
    } else {
        (value * 1e6, "µs")
    };
    format!("{} {unit}", three_digits(scaled))
}

/// A value of a metric with its unit.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "s" => seconds(value),
        "bytes" => bytes(value),
        "" => three_digits(value),
        other => format!("{} {other}", scaled(value)),
    }
}

/// A size in binary units.
pub(super) fn bytes(value: f64) -> String {
    let mut value = value;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{} {unit}", three_digits(value))
}

fn scaled(value: f64) -> String {
    for (limit, letter) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= limit {
            return format!("{}{letter}", three_digits(value / limit));
        }
    }
    three_digits(value)
}

fn three_digits(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(seconds(1.2345), "1.23 s");
        assert_eq!(seconds(0.0664), "66.4 ms");
        assert_eq!(seconds(0.000_85), "850 µs");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(quantity(2.5e9, "cycles"), "2.50G cycles");
    }

    #[test]
    fn hostile_text_is_made_visible() {
        assert_eq!(visible("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }

    #[test]
    fn colour_only_where_wanted() {
        assert_eq!(Palette::new(false).bad("x"), "x");
        assert!(Palette::new(true).bad("x").contains("\u{1b}["));
    }
}
