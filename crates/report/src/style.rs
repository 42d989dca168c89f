//! Colours, wrapping, tables and quantities for all texts.

use anstyle::{Ansi256Color, AnsiColor, Effects, Style};
use comfy_table::{Table, presets};

use std::cell::Cell;

use super::WIDTH;

/// Backgrounds from a low to a high load: green, sand, orange, red,
/// purple of the 256-colour palette. Black reads well on all of them.
pub(super) const HEAT: [u8; 5] = [71, 186, 215, 203, 133];
pub(super) const BLACK: u8 = 16;

/// How text is emphasised, and whether it ends with the record's id.
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

    /// For records that are not stored: their ids are not shown.
    #[must_use]
    pub const fn unstored(self) -> Self {
        Self {
            is_unstored: true,
            ..self
        }
    }

    /// A sentence with the record's id.
    pub(super) fn record(self, id: &str) -> String {
        match self.is_unstored {
            true => "Not stored.".to_owned(),
            false => format!("Record {}.", visible(id)),
        }
    }

    /// The last line of a text, with the record's id; empty for a record without an id, such as
    /// older ones of kinds that were not stored.
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

    /// Something that needs attention.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// Something secondary.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().effects(Effects::DIMMED), text)
    }

    /// A figure on the background of its class, from 0 (the lowest) to `last`.
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

/// The widest paragraphs, in columns: wider ones are hard to read.
const MAX_PARAGRAPH_WIDTH: usize = 100;

thread_local! {
    /// The width that this thread lays text out for; `None` for a file.
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

/// The number of columns that text may take.
pub(super) fn columns() -> usize {
    COLUMNS.get().unwrap_or(WIDTH)
}

/// The number of columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    textwrap::core::display_width(text)
}

/// Cuts a text to this many columns, with a mark at the end if it was longer.
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

/// Invisible characters: format characters (such as those that change the direction of writing),
/// line separators, and the default-ignorable characters of Unicode 17. The page's `visible` has
/// the same list.
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
    // The comparison makes it fast for ASCII: the first invisible character is U+00AD.
    c.is_control() || (c > '\u{9f}' && HIDDEN.iter().any(|(low, high)| (*low..=*high).contains(&c)))
}

/// Makes everything visible that could deceive a terminal or its reader.
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

/// Like [`visible`], but line breaks stay.
#[must_use]
pub fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

/// Like [`visible`] for data in any format; line breaks and tabs stay. Characters are escaped as in
/// JSON, so that JSON stays valid.
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

/// Wraps text to the width; `first` begins its first line, `rest` all others. A number stays on one
/// line with its unit.
pub(super) fn paragraph(first: &str, rest: &str, text: &str) -> String {
    let options = textwrap::Options::new(columns().min(MAX_PARAGRAPH_WIDTH))
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

/// Wraps text to this width, unless a word is longer. A number stays on one line with its unit.
pub(super) fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let options =
        textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(&glue_units(&visible(text)), options)
        .into_iter()
        .map(|line| line.replace(GLUE, " "))
        .collect()
}

/// Stands for a space at which lines are not broken. It is a private-use character, so that
/// no-break spaces in the text are not changed.
const GLUE: char = '\u{e000}';

/// Joins numbers and units such as `4.2 %`, `12 blocks`, `3 min`, so that they stay on one line.
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

/// The noun before a list of this many CPUs: `CPU 3`, `CPUs 0-3`.
pub(super) const fn cpu_noun(count: usize) -> &'static str {
    if count == 1 { "CPU" } else { "CPUs" }
}

/// A list of CPUs with its noun.
pub(super) fn name_cpus(list: &str) -> String {
    let is_one = list.bytes().all(|byte| byte.is_ascii_digit());
    format!("{} {list}", cpu_noun(if is_one { 1 } else { 2 }))
}

/// Cuts a text to this many columns, with an ellipsis if it was longer.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    truncate(&visible(text), columns, '…')
}

/// Columns with words are not cut to less than this width.
const MIN_WORDS_WIDTH: usize = 12;
/// Cells that begin with a digit are not cut, unless they are wider than this: then they are lists
/// of CPUs, not figures.
const MAX_FIGURE_WIDTH: usize = 24;

/// Formats a table without lines, two spaces before each row; cells are made [`visible`]. If the
/// terminal is too narrow, words are cut; if that is not enough, the last columns are left out.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    table_without(&[], &[], header, rows)
}

/// As [`table`], but the columns `optional` are left out if they are empty, and before all others
/// if the table is too wide. These and the columns `uncut` are never cut.
pub(super) fn table_without(
    optional: &[&str],
    uncut: &[&str],
    header: &[&str],
    rows: Vec<Vec<String>>,
) -> String {
    let mut all: Vec<Column> = (header.iter().enumerate())
        .map(|(at, name)| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            Column::new(
                name,
                cells,
                !optional.contains(name) && !uncut.contains(name),
            )
        })
        .filter(|column| {
            let has_content = column.cells.iter().any(|cell| !cell.is_empty());
            has_content || !optional.contains(&column.name.as_str())
        })
        .collect();
    let mut left_out = Vec::new();
    if let Some(columns) = COLUMNS.get() {
        let mut optional = optional.iter();
        while all.len() > 1 && all.iter().map(Column::min_width_with_gap).sum::<usize>() > columns {
            let next_optional = optional
                .next()
                .map(|name| all.iter().position(|c| c.name == *name));
            match next_optional {
                Some(Some(at)) => left_out.push(all.remove(at).name),
                Some(None) => {}
                None => left_out.extend(all.pop().map(|column| column.name)),
            }
        }
        cut_columns(&mut all, columns);
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
    /// The width to which its cells may be cut.
    min_width: usize,
}

impl Column {
    fn new<'c>(name: &str, cells: impl Iterator<Item = &'c String>, may_be_cut: bool) -> Self {
        let cells: Vec<String> = cells.map(|cell| visible(cell)).collect();
        let widest = cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
        let is_words = cells.iter().any(|cell| {
            cell.trim_start_matches(['*', ' '])
                .starts_with(char::is_alphabetic)
        });
        let min_width = match may_be_cut {
            true if is_words || widest > MAX_FIGURE_WIDTH => widest.min(MIN_WORDS_WIDTH),
            true => widest,
            false => widest.max(width(name)),
        };
        Self {
            name: name.to_owned(),
            cells,
            width: widest.max(width(name)),
            min_width,
        }
    }

    /// The least width, with the gap before the next column.
    const fn min_width_with_gap(&self) -> usize {
        self.min_width + 2
    }

    fn cell(&self, row: usize) -> String {
        let cell = self.cells.get(row).map_or("", String::as_str);
        truncate(cell, self.width, '…')
    }
}

/// Narrows the widest column until all fit; figures are not cut.
fn cut_columns(all: &mut [Column], columns: usize) {
    while all.iter().map(|column| column.width + 2).sum::<usize>() > columns {
        let wide = all
            .iter_mut()
            .filter(|column| column.width > column.min_width);
        match wide.max_by_key(|column| column.width) {
            Some(column) => column.width -= 1,
            None => break,
        }
    }
}

/// Formats a range such as `13.9–14.6 ns`, with the unit once if both have the same.
pub(super) fn format_range(low: &str, high: &str) -> String {
    if low == high {
        return low.to_owned();
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((bare, unit)), Some((_, other))) if unit == other => format!("{bare}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// Escapes a cell of a Markdown table.
pub(super) fn format_markdown_cell(text: &str) -> String {
    visible(text).replace('|', "\\|")
}

/// Formats a value with its unit, which may come from a program.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    visible(&pinwise_format::quantity(value, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_cut_and_columns_left_out_to_fit_the_terminal() {
        let make_table = || {
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
        assert_eq!(make_table(), wide);
        assert_eq!(lay_out_for_columns(Some(48), make_table), wide);
        let cut = "  arm           CPUs   change  verdict\n  os-default    0-15\n  one-per-cor…  0,2,4  −4.1 %  faster\n";
        assert_eq!(lay_out_for_columns(Some(38), make_table), cut);
        let dropped = "  arm            change  verdict\n  os-default\n  one-per-core…  −4.1 %  faster\n  (a wider terminal also shows:\n  CPUs)\n";
        assert_eq!(lay_out_for_columns(Some(32), make_table), dropped);
        assert_eq!(make_table(), wide);
    }

    #[test]
    fn paragraphs_have_a_maximum_width() {
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
    fn only_coloured_palettes_use_escape_codes() {
        assert_eq!(Palette::new(false).bad("x"), "x");
        assert!(Palette::new(true).bad("x").contains("\u{1b}["));
    }
}
