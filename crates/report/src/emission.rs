//! A placement in another tool's syntax, for a terminal.

use super::style::{Palette, paragraph, visible_lines};
use pinwise_placement::emit::Emission;

/// Commands and files are printed ready to be copied; everything else is in comments.
#[must_use]
pub fn render_emission(emission: &Emission, palette: Palette) -> String {
    let mut text = format!(
        "{}\n",
        palette.strong(&format!("# {}", emission.tool.name()))
    );
    text.push_str(&format!("{}\n", visible_lines(&emission.text())));
    let comment = |label: &str, sentence: &str| {
        let shown = paragraph(&format!("# {label}"), "#   ", sentence);
        format!("{}\n", palette.faint(&shown))
    };
    for sentence in &emission.unsupported {
        text.push_str(&comment("cannot: ", sentence));
    }
    for sentence in &emission.notes {
        text.push_str(&comment("note: ", sentence));
    }
    // A command is not wrapped, so that it can be copied.
    let verify = format!("# verify: {}\n", visible_lines(&emission.verify));
    text.push_str(&verify);
    text
}
