//! The placements of a machine as text: how many there are, and the even ones by name.

use super::comparison::render_answer;
use super::style::{Palette, columns, cpu_noun, paragraph, table, visible, width};
use pinwise_format::{grouped_digits, power_of_ten};
use pinwise_record::{PlacementsRecord, ShapeRecord, ThreadPlacements};

/// Numbers with more digits than this are also shown as a power of ten.
const MAX_PLAIN_DIGITS: usize = 9;
/// The column at which names begin.
const NAME_COLUMN: usize = 40;

/// Lists the shapes of one number of threads, or a table of several numbers.
#[must_use]
pub fn render_placements(record: &PlacementsRecord, palette: Palette) -> String {
    let listed = match &record.threads[..] {
        [only] => list_shapes(only),
        several => format_summary_table(several),
    };
    listed + &render_answer(&record.answer, palette)
}

fn format_summary_table(several: &[ThreadPlacements]) -> String {
    let row = |placements: &ThreadPlacements| {
        vec![
            placements.threads.to_string(),
            placements.shapes.len().to_string(),
            format_count(&placements.placements),
        ]
    };
    let mut text = table(
        &["threads", "shapes", "placements"],
        several.iter().map(row).collect(),
    );
    text.push_str("\nPlacements that differ only by swapping equal units are counted once.\n");
    text.push_str("Shapes are evenly spread placements: --placements N lists them.\n");
    text
}

fn list_shapes(placements: &ThreadPlacements) -> String {
    let mut text = " pkg numa  llc core  id                 placement, CPUs\n".to_owned();
    for shape in &placements.shapes {
        text.push_str(&format_shape_lines(shape));
    }
    text
}

fn format_shape_lines(shape: &ShapeRecord) -> String {
    let units = format!(
        "{:>4} {:>4} {:>4} {:>4}  {:<16}",
        shape.packages, shape.numa_nodes, shape.llcs, shape.cores, shape.id
    );
    let name = visible(&shape.name);
    let fits = NAME_COLUMN + width(&name) <= columns();
    let indent = if fits { NAME_COLUMN } else { 4 };
    let indent = " ".repeat(indent);
    let name = match fits {
        true => format!("{units:<NAME_COLUMN$}{name}\n"),
        false => format!("{units}\n{indent}{name}\n"),
    };
    let cpus = format!(
        "{} {}",
        cpu_noun(shape.cpu_count),
        shape.cpus.replace(',', ", ")
    );
    format!("{name}{}\n", paragraph(&indent, &indent, &cpus))
}

/// Formats a number such as `18,145` or `6,856,396,806,172,085 (6.9·10^15)`.
fn format_count(digits: &str) -> String {
    let plain = grouped_digits(digits);
    match digits.parse() {
        Ok(value) if digits.len() > MAX_PLAIN_DIGITS => {
            format!("{plain} ({})", power_of_ten(value))
        }
        _ => plain,
    }
}
