//! Colour, wrapping and numbers, the same for all texts.

use anstyle::{Ansi256Color, AnsiColor, Effects, Style};
use comfy_table::{Table, presets};

use std::cell::Cell;

use super::WIDTH;

/// Backgrounds of figures, from cool to hot: green, sand, orange, red,
/// purple of the 256-colour palette. Black reads well on all of them.
pub(super) const HEAT: [u8; 5] = [71, 186, 215, 203, 133];
pub(super) const BLACK: u8 = 16;

/// The few ways to emphasise text, and whether it names records.
#[derive(Debug, Clone, Copy, Default)]
pub struct Palette {
    is_colored: bool,
    is_unstored: bool,
}

impl Palette {
    /// With or without colour.
    #[must_use]
    pub const fn new(is_colored: bool) -> Self {
        Self {
            is_colored,
            is_unstored: false,
        }
    }

    /// For records that are not stored: nothing shows them later.
    #[must_use]
    pub const fn unstored(self) -> Self {
        Self {
            is_unstored: true,
            ..self
        }
    }

    /// The id of a text's record, as a sentence.
    pub(super) fn record(self, id: &str) -> String {
        match self.is_unstored {
            true => "Not stored.".to_owned(),
            false => format!("Record {}.", visible(id)),
        }
    }

    /// As the last line of a text; empty for a record without a name, such as older ones of kinds
    /// that were not stored.
    pub(super) fn record_line(self, id: &str) -> String {
        match id {
            "" => String::new(),
            id => self.faint(&format!("\n{}\n", self.record(id))),
        }
    }

    /// Are colours used?
    #[must_use]
    pub const fn is_colored(self) -> bool {
        self.is_colored
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

    /// A figure by its class: `class` counts from 0, the coolest, to `last`.
    #[must_use]
    pub fn heat(self, class: usize, last: usize, text: &str) -> String {
        let place = (class * (HEAT.len() - 1)).checked_div(last).unwrap_or(0);
        let background = Ansi256Color(HEAT[place.min(HEAT.len() - 1)]);
        self.paint(Ansi256Color(BLACK).on(background), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.is_colored {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Wider text is hard to read.
const WIDEST_PROSE: usize = 100;

thread_local! {
    /// Number of columns that this thread lays out for; `None` for a file.
    static COLUMNS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Lays out what `work` prints for a terminal with this many columns, or for a file ([`WIDTH`],
/// with wider tables left as they are).
pub fn lay_out_for_columns<T>(columns: Option<usize>, work: impl FnOnce() -> T) -> T {
    let before = COLUMNS.replace(columns);
    let done = work();
    COLUMNS.set(before);
    done
}

/// Columns that a text may take.
pub(super) fn columns() -> usize {
    COLUMNS.get().unwrap_or(WIDTH)
}

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    textwrap::core::display_width(text)
}

/// At most this many columns of a text, with a mark if it was longer.
pub(super) fn truncate(text: &str, columns: usize, mark: char) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let more = width(c.encode_utf8(&mut [0; 4]));
        if used + more + 1 > columns {
            break;
        }
        used += more;
        kept.push(c);
    }
    if columns > 0 {
        kept.push(mark);
    }
    kept
}

/// Characters that show nothing of their own: formats (as those that turn the
/// direction of writing), separators of lines, and what Unicode 17 calls
/// default-ignorable. The page's `visible` has the same.
const HIDDEN: [(char, char); 25] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Could this character deceive a reader? Control characters drive a terminal, and invisible ones
/// make two names look alike.
pub(super) fn is_hidden(c: char) -> bool {
    // Most text is ASCII, and of what follows the first is U+00AD.
    c.is_control() || (c > '\u{9f}' && HIDDEN.iter().any(|(low, high)| (*low..=*high).contains(&c)))
}

/// Text with everything made visible that could deceive a terminal or its reader.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Like [`visible`], but lines stay lines.
#[must_use]
pub fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

/// The same for data in any form, whose lines stay lines: as JSON writes characters, so that JSON
/// stays JSON.
#[must_use]
pub fn visible_data(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && !matches!(c, '\n' | '\t') {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            shown.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A paragraph within the width, its further lines indented. A number stays
/// with its unit.
pub(super) fn paragraph(first: &str, rest: &str, text: &str) -> String {
    let options = textwrap::Options::new(columns().min(WIDEST_PROSE))
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    let lines: Vec<String> = visible_lines(text)
        .lines()
        .flat_map(|line| {
            textwrap::wrap(&glue_units(line), &options)
                .into_iter()
                .map(|line| line.replace(GLUE, " "))
                .collect::<Vec<String>>()
        })
        .collect();
    lines.join("\n")
}

/// Lines of at most this many characters, if words allow it. A number stays with its unit.
pub(super) fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let options =
        textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(&glue_units(&visible(text)), options)
        .into_iter()
        .map(|line| line.replace(GLUE, " "))
        .collect()
}

/// A space that lines are not broken at: a private character, so that no-break
/// spaces of the text's own stay what they are.
const GLUE: char = '\u{e000}';

/// `4.2 %`, `12 blocks`, `3 min`: read as one word, so never on two lines.
fn glue_units(line: &str) -> String {
    let mut glued = String::with_capacity(line.len());
    let mut before = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let starts_unit = rest.peek().is_some_and(|&n| n == '%' || n.is_alphabetic());
        if c == ' ' && before.is_ascii_digit() && starts_unit {
            glued.push(GLUE);
        } else {
            glued.push(c);
        }
        before = c;
    }
    glued
}

/// `1 CPU`, `CPUs 0-3`: the noun before a list of CPUs.
pub(super) const fn cpu_noun(count: usize) -> &'static str {
    if count == 1 { "CPU" } else { "CPUs" }
}

/// A list of CPUs with its noun.
pub(super) fn name_cpus(list: &str) -> String {
    let is_one = list.bytes().all(|byte| byte.is_ascii_digit());
    format!("{} {list}", cpu_noun(if is_one { 1 } else { 2 }))
}

/// At most this many columns, with an ellipsis if it was longer.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    truncate(&visible(text), columns, '…')
}

/// Columns of words are not cut shorter than this.
const NARROWEST_WORDS: usize = 12;
/// Wider cells are cut even if they begin with a digit: lists of CPUs, not figures.
const WIDEST_FIGURE: usize = 24;

/// A table without lines, two spaces before each row. Its cells are made
/// visible here, whatever record they came from. For a terminal that is too narrow
/// words are cut; if that is not enough, the last columns are left out.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    table_without(&[], &[], header, rows)
}

/// The same; columns of `least` are left out if they are empty, and first of all if the table is
/// too wide; they and those of `whole` are never cut.
pub(super) fn table_without(
    least: &[&str],
    whole: &[&str],
    header: &[&str],
    rows: Vec<Vec<String>>,
) -> String {
    let mut all: Vec<Column> = (header.iter().enumerate())
        .map(|(at, name)| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            Column::new(name, cells, !least.contains(name) && !whole.contains(name))
        })
        .filter(|column| {
            let says_something = column.cells.iter().any(|cell| !cell.is_empty());
            says_something || !least.contains(&column.name.as_str())
        })
        .collect();
    let mut left_out = Vec::new();
    if let Some(columns) = COLUMNS.get() {
        let mut least = least.iter();
        while all.len() > 1 && all.iter().map(Column::least_width).sum::<usize>() > columns {
            let named = least
                .next()
                .map(|name| all.iter().position(|c| c.name == *name));
            match named {
                Some(Some(at)) => left_out.push(all.remove(at).name),
                Some(None) => {}
                None => left_out.extend(all.pop().map(|column| column.name)),
            }
        }
        narrow(&mut all, columns);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(
        all.iter()
            .map(|column| truncate(&column.name, column.width, '…')),
    );
    for row in 0..rows.len() {
        table.add_row(all.iter().map(|column| column.cell(row)));
    }
    let lines = table.lines().map(|line| format!(" {}\n", line.trim_end()));
    let mut text: String = lines.collect();
    left_out.retain(|name| !name.is_empty());
    if !left_out.is_empty() {
        let line = format!("(a wider terminal also shows: {})", left_out.join(", "));
        text += &format!("{}\n", paragraph("  ", "  ", &line));
    }
    text
}

/// A column of a table.
struct Column {
    name: String,
    cells: Vec<String>,
    width: usize,
    /// Width that its cells need at least.
    least: usize,
}

impl Column {
    fn new<'c>(name: &str, cells: impl Iterator<Item = &'c String>, may_be_cut: bool) -> Self {
        let cells: Vec<String> = cells.map(|cell| visible(cell)).collect();
        let widest = cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
        let is_words = cells.iter().any(|cell| {
            cell.trim_start_matches(['*', ' '])
                .starts_with(char::is_alphabetic)
        });
        let least = match may_be_cut {
            true if is_words || widest > WIDEST_FIGURE => widest.min(NARROWEST_WORDS),
            true => widest,
            false => widest.max(width(name)),
        };
        Self {
            name: name.to_owned(),
            cells,
            width: widest.max(width(name)),
            least,
        }
    }

    /// With the gap before the next one.
    const fn least_width(&self) -> usize {
        self.least + 2
    }

    fn cell(&self, row: usize) -> String {
        let cell = self.cells.get(row).map_or("", String::as_str);
        truncate(cell, self.width, '…')
    }
}

/// Takes from the widest column until all fit; figures stay whole.
fn narrow(all: &mut [Column], columns: usize) {
    while all.iter().map(|column| column.width + 2).sum::<usize>() > columns {
        let wide = all.iter_mut().filter(|column| column.width > column.least);
        match wide.max_by_key(|column| column.width) {
            Some(column) => column.width -= 1,
            None => break,
        }
    }
}

/// `13.9–14.6 ns`: the unit once, if both have the same.
pub(super) fn range(low: &str, high: &str) -> String {
    if low == high {
        return low.to_owned();
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((bare, unit)), Some((_, other))) if unit == other => format!("{bare}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// `2.8·10^17`
pub(super) fn power_of_ten(value: f64) -> String {
    let written = format!("{value:.1e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    format!("{digits}·10^{exponent}")
}

/// A cell of a Markdown table.
pub(super) fn markdown_cell(text: &str) -> String {
    visible(text).replace('|', "\\|")
}

/// A value of a metric with its unit, which a program may have chosen.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    visible(&pinwise_format::quantity(value, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_a_narrow_table() {
        let made = || {
            let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
            table_without(
                &["CPUs"],
                &[],
                &["arm", "CPUs", "change", "verdict"],
                vec![
                    row(["os-default", "0-15", "", ""]),
                    row(["one-per-core/near:gpu0", "0,2,4", "−4.1 %", "faster"]),
                ],
            )
        };
        let wide = "  arm                     CPUs   change  verdict\n  os-default              0-15\n  one-per-core/near:gpu0  0,2,4  −4.1 %  faster\n";
        assert_eq!(made(), wide);
        assert_eq!(lay_out_for_columns(Some(48), made), wide);
        let cut = "  arm           CPUs   change  verdict\n  os-default    0-15\n  one-per-cor…  0,2,4  −4.1 %  faster\n";
        assert_eq!(lay_out_for_columns(Some(38), made), cut);
        let dropped = "  arm            change  verdict\n  os-default\n  one-per-core…  −4.1 %  faster\n  (a wider terminal also shows:\n  CPUs)\n";
        assert_eq!(lay_out_for_columns(Some(32), made), dropped);
        assert_eq!(made(), wide);
    }

    #[test]
    fn prose_is_as_wide_as_reads_well() {
        let text =
            |columns| lay_out_for_columns(columns, || paragraph("", "", &"word ".repeat(60)));
        let widest = |text: String| text.lines().map(width).max().unwrap();
        assert_eq!(widest(text(Some(40))), 39);
        assert_eq!(widest(text(None)), 79);
        assert_eq!(widest(text(Some(200))), 99);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(shorten("日本語", 6), "日本語");
        assert_eq!(shorten("日本語", 5), "日本…");
        assert_eq!(shorten("日本語", 4), "日…");
    }

    #[test]
    fn numbers_stay_with_their_units() {
        let text = "a".repeat(74) + " 12.5 % (3 blocks)";
        assert_eq!(
            paragraph("", "  ", &text),
            format!("{}\n  12.5 % (3 blocks)", "a".repeat(74))
        );
    }

    #[test]
    fn hostile_text_is_made_visible() {
        assert_eq!(visible("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(quantity(1.0, "\u{1b}x"), "1.00 \\u{1b}x");
        let rows = vec![vec!["a\u{1b}[31m\r".to_owned()]];
        assert!(table(&["head"], rows).contains("a\\u{1b}[31m\\r"));
    }

    #[test]
    fn invisible_characters_are_made_visible() {
        for hidden in
            "\u{ad}\u{61c}\u{200b}\u{202e}\u{2028}\u{2060}\u{2066}\u{3164}\u{fe0f}\u{e0041}".chars()
        {
            let escaped = format!("a{}b", hidden.escape_unicode());
            assert_eq!(visible(&format!("a{hidden}b")), escaped);
            assert_eq!(shorten(&format!("a{hidden}b"), 20), escaped);
        }
        let plain = "± 4.2 µs · Ärger → 日本語 \u{e000}";
        assert_eq!(visible(plain), plain);
    }

    #[test]
    fn colour_is_only_used_if_wanted() {
        assert_eq!(Palette::new(false).bad("x"), "x");
        assert!(Palette::new(true).bad("x").contains("\u{1b}["));
    }
}
