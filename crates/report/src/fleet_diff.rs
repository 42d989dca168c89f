//! The differences between two groups of machines, as text: settings, then ratios, the
//! largest first.

use super::profile_diff::list_attributions;
use super::style::{Palette, paragraph, quantity, shorten, table};
use pinwise_format::{count, ratio};
use pinwise_record::{FleetDiff, FleetFigureChange, FleetSide};

/// The most columns of a figure's name.
const FIGURE_WIDTH: usize = 22;
/// The most figures that are listed of one side.
const MAX_NAMES: usize = 6;

/// The difference for a terminal.
#[must_use]
pub fn render_fleet_diff(record: &FleetDiff, palette: Palette) -> String {
    let mut text = format!(
        "{}{}",
        describe_side("A", &record.a, palette),
        describe_side("B", &record.b, palette)
    );
    text.push_str(&format!(
        "\n{}\n",
        palette.strong(&paragraph("", "", &record.sentence))
    ));
    for found in &record.attributions {
        let step = format!("Sources of the difference of {}", found.step);
        text.push_str(&format!(
            "\n{}\n",
            palette.strong(&paragraph("", "", &step))
        ));
        text.push_str(&list_attributions(std::slice::from_ref(&found.attribution)));
    }
    if !record.settings.is_empty() {
        text.push_str(&format!("\n{}\n", palette.strong("Settings that differ")));
        let shown = |value: &Option<String>| {
            let value = value.as_deref();
            value.map_or_else(|| "unknown".to_owned(), |v| shorten(v, 26))
        };
        let rows = record.settings.iter().map(|setting| {
            let name = shorten(&setting.name, 24);
            vec![name, shown(&setting.a), shown(&setting.b)]
        });
        text.push_str(&table(&["", "A", "B"], rows.collect()));
    }
    text.push_str(&format!(
        "\n{}\n",
        palette.strong("Figures, the largest change first")
    ));
    let rows = record.figures.iter().map(format_figure_row).collect();
    text.push_str(&table(
        &["figure", "A", "B", "B/A", "95 % interval", "differs"],
        rows,
    ));
    if !record.only_one.is_empty() {
        let names = record.only_one.iter().take(MAX_NAMES);
        let names: Vec<&str> = names.map(String::as_str).collect();
        let more = record.only_one.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let line = format!("Only in one of them: {}{more}.", names.join(", "));
        text.push_str(&format!("\n{}\n", paragraph("", "", &line)));
    }
    text
}

fn describe_side(letter: &str, side: &FleetSide, palette: Palette) -> String {
    let nodes = count(side.nodes, "node");
    let line = format!("{}, {}: {nodes}", side.fleet, side.group);
    let line = paragraph(&format!("{letter}: "), "   ", &line);
    format!("{}\n", palette.faint(&line))
}

fn format_figure_row(figure: &FleetFigureChange) -> Vec<String> {
    let interval = match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("{}–{}", ratio(low), ratio(high)),
        _ => "–".to_owned(),
    };
    vec![
        shorten(&format!("{} · {}", figure.step, figure.name), FIGURE_WIDTH),
        quantity(figure.a, &figure.unit),
        quantity(figure.b, &figure.unit),
        ratio(figure.ratio),
        interval,
        if figure.differs { "yes" } else { "–" }.to_owned(),
    ]
}
