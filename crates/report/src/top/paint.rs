//! Draws rows into the cells of a terminal, or converts them to text.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::{Row, Tone};
use crate::style::{BLACK, HEAT, Palette};

/// Draws rows into a buffer, from its upper left corner; what does not fit is
/// left out.
pub fn draw(rows: &[Row], is_colored: bool, buffer: &mut Buffer) {
    let area = buffer.area;
    for (row, y) in rows.iter().zip(area.top()..area.bottom()) {
        let mut x = area.left();
        for piece in row {
            let left = usize::from(area.right().saturating_sub(x));
            let style = to_style(piece.tone, is_colored);
            (x, _) = buffer.set_stringn(x, y, &piece.text, left, style);
        }
    }
}

fn to_style(tone: Tone, is_colored: bool) -> Style {
    let plain = Style::new();
    match tone {
        Tone::Plain => plain,
        Tone::Strong => plain.add_modifier(Modifier::BOLD),
        Tone::Faint => plain.add_modifier(Modifier::DIM),
        Tone::Chosen => plain.add_modifier(Modifier::REVERSED),
        Tone::Warn if is_colored => plain.fg(Color::Yellow),
        Tone::Warn => plain.add_modifier(Modifier::BOLD),
        // An idle CPU has no background.
        Tone::Heat(0) => plain,
        Tone::Heat(class) if is_colored => {
            let place = usize::from(class).min(HEAT.len() - 1);
            plain
                .bg(Color::Indexed(HEAT[place]))
                .fg(Color::Indexed(BLACK))
        }
        Tone::Heat(_) => plain,
    }
}

/// Converts rows to text, each with a line break, without trailing spaces.
#[must_use]
pub fn rows_to_text(rows: &[Row], palette: Palette) -> String {
    let mut text = String::new();
    for row in rows {
        let last = row.iter().rposition(|p| !p.text.trim_end().is_empty());
        let shown = &row[..last.map_or(0, |last| last + 1)];
        for (place, piece) in shown.iter().enumerate() {
            let is_last = Some(place) == last;
            let kept = if is_last {
                piece.text.trim_end()
            } else {
                &piece.text
            };
            text.push_str(&apply_tone(kept, piece.tone, palette));
        }
        text.push('\n');
    }
    text
}

fn apply_tone(text: &str, tone: Tone, palette: Palette) -> String {
    match tone {
        Tone::Strong => palette.strong(text),
        Tone::Faint => palette.faint(text),
        Tone::Warn => palette.warn(text),
        Tone::Heat(class) if class > 0 => palette.heat(usize::from(class), HEAT.len() - 1, text),
        Tone::Plain | Tone::Chosen | Tone::Heat(_) => text.to_owned(),
    }
}
