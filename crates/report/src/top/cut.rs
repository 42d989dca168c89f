//! Fits text to a number of columns; names may contain anything.

use super::{Piece, Row};
use crate::style::{is_hidden, truncate, width};

/// Replaces by `?` what could deceive a terminal or a reader: control characters, marks that write
/// into the previous cell or change the direction of writing, and on ASCII-only terminals all other
/// characters.
pub(super) fn make_printable(name: &str, ascii: bool) -> String {
    let shown = |c: char| {
        let is_bad = is_hidden(c) || width(c.encode_utf8(&mut [0; 4])) == 0;
        if is_bad || (ascii && !c.is_ascii()) {
            '?'
        } else {
            c
        }
    };
    name.chars().map(shown).collect()
}

/// Cuts a text to this many columns, with `~` at the end if it was longer.
pub(super) fn shorten_to(text: &str, columns: usize) -> String {
    truncate(text, columns, '~')
}

/// Pads or cuts a text to exactly this many columns, left-aligned.
pub(super) fn pad_left_aligned(text: &str, columns: usize) -> String {
    let mut text = shorten_to(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Pads or cuts a text to exactly this many columns, right-aligned.
pub(super) fn pad_right_aligned(text: &str, columns: usize) -> String {
    let text = shorten_to(text, columns);
    let missing = columns.saturating_sub(width(&text));
    format!("{}{text}", " ".repeat(missing))
}

/// Cuts a row to this many columns.
pub(super) fn cut_row(row: &mut Row, columns: usize) {
    let mut left = columns;
    for piece in row.iter_mut() {
        piece.text = shorten_to(&piece.text, left);
        left -= width(&piece.text).min(left);
    }
    row.retain(|piece| !piece.text.is_empty());
}

/// Joins pieces with two spaces between them, as many as fit.
pub(super) fn join_pieces(pieces: Vec<Piece>, columns: usize) -> Row {
    let mut row = Row::new();
    let mut used = 0;
    for piece in pieces {
        let gap = if row.is_empty() { 0 } else { 2 };
        let more = width(&piece.text) + gap;
        if used + more > columns && !row.is_empty() {
            break;
        }
        used += more;
        if gap > 0 {
            row.push(Piece::plain("  "));
        }
        row.push(piece);
    }
    row
}
