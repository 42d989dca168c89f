//! The placements of a machine: how many, and the even ones by name.

use super::style::{Palette, columns, cpu_noun, paragraph, power_of_ten, table, visible, width};
use pinwise_format::{count, grouped_digits};
use pinwise_record::{PlacementsRecord, ShapeRecord, ThreadPlacements};

/// More digits than this are also given as a power of ten.
const PLAIN_DIGITS: usize = 9;
/// Column that names begin in.
const NAME_COLUMN: usize = 40;

/// The shapes of one number of threads, or a table of several numbers.
#[must_use]
pub fn placements(record: &PlacementsRecord, palette: Palette) -> String {
    match &record.threads[..] {
        [only] => list_threads(only, palette),
        several => summary(several),
    }
}

fn summary(several: &[ThreadPlacements]) -> String {
    let row = |of: &ThreadPlacements| {
        vec![
            of.threads.to_string(),
            of.shapes.len().to_string(),
            many(&of.placements),
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

fn list_threads(of: &ThreadPlacements, palette: Palette) -> String {
    let heading = format!(
        "{}: {} of {} {}",
        count(of.threads, "thread"),
        count(of.shapes.len(), "shape"),
        many(&of.placements),
        if of.placements == "1" {
            "placement"
        } else {
            "placements"
        },
    );
    let mut text = format!("{}\n\n", palette.strong(&paragraph("", "  ", &heading)));
    text.push_str(" pkg numa  llc core  id                 placement, CPUs\n");
    for shape in &of.shapes {
        text.push_str(&shape_lines(shape));
    }
    text
}

fn shape_lines(shape: &ShapeRecord) -> String {
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

/// `18,145`, `6,856,396,806,172,085 (6.9·10^15)`.
fn many(digits: &str) -> String {
    let plain = grouped_digits(digits);
    match digits.parse() {
        Ok(value) if digits.len() > PLAIN_DIGITS => format!("{plain} ({})", power_of_ten(value)),
        _ => plain,
    }
}
