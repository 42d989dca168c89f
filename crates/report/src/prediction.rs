//! Predictions from a search as text.

use super::search::{SHAPE, format_placements_table, format_shape_unless_shown};
use super::style::{Palette, columns, paragraph, quantity, shorten, visible};
use pinwise_format::shell;
use pinwise_format::{count, percent, three_digits};
use pinwise_record::{Direction, PlacementPrediction, PredictedPlacement};

/// The most rows of the table.
const MAX_ROWS: usize = 12;

/// The predictions for a terminal.
#[must_use]
pub fn render_prediction(record: &PlacementPrediction, palette: Palette) -> String {
    let command = shell::line(&record.command);
    let title = shorten(&format!("predicted: {command}"), columns());
    let machine = match record.is_searched_machine {
        true => format!("{}, the machine that was searched", record.machine),
        false => format!("{}, not the machine that was searched", record.machine),
    };
    let subtitle = shorten(&format!("{machine} · search {}", record.search), columns());
    let mut text = format!("{}\n{subtitle}\n\n", palette.strong(&title));
    if record.placements.is_empty() {
        text.push_str("No placement to predict.\n");
        return text;
    }
    let shown = record.placements.iter().take(MAX_ROWS);
    let is_checked = record.checked > 0;
    let rows = shown.map(|placement| format_prediction_row(record, placement, is_checked));
    let mut header = vec!["placement", "threads", "cost", "ratio", "90 %"];
    if is_checked {
        header.extend(["truth", "error"]);
    }
    header.push(SHAPE);
    text.push_str(&format_placements_table(
        &["threads"],
        &header,
        rows.collect(),
    ));
    if record.placements.len() > MAX_ROWS {
        let left = record.placements.len() - MAX_ROWS;
        text.push_str(&format!(
            "  and {}, worse than these\n",
            count(left, "other")
        ));
    }
    text.push_str(&format!("\n{}\n", describe_accuracy(record)));
    text
}

fn format_prediction_row(
    record: &PlacementPrediction,
    placement: &PredictedPlacement,
    is_checked: bool,
) -> Vec<String> {
    // The cost of a rate is its inverse, which has no familiar unit.
    let unit = match record.better {
        Direction::Higher => "",
        Direction::Lower | Direction::Other(_) => record.unit.as_str(),
    };
    let dash = || "–".to_owned();
    let mut cells = vec![
        placement.label.clone(),
        placement.threads.to_string(),
        placement
            .cost
            .map_or_else(dash, |cost| quantity(cost, unit)),
        format!("{:.3}", placement.ratio),
        format!(
            "{}–{}",
            three_digits(placement.low),
            three_digits(placement.high)
        ),
    ];
    if is_checked {
        let truth = match placement.cost {
            Some(_) => placement.truth.map(|truth| quantity(truth, unit)),
            None => placement.true_ratio.map(|ratio| format!("{ratio:.3}")),
        };
        cells.push(truth.unwrap_or_else(dash));
        let error = placement
            .error
            .map(|error| pinwise_format::change(1.0 + error));
        cells.push(error.unwrap_or_else(dash));
    }
    cells.push(format_shape_unless_shown(
        &placement.place,
        &placement.label,
    ));
    cells
}

fn describe_accuracy(record: &PlacementPrediction) -> String {
    let mut note = "Ratios are to os-default, with 90 % intervals.".to_owned();
    match record.median_error {
        Some(error) => note.push_str(&format!(
            " Off by {} (median of {}); {} true ratios lie in their intervals.",
            percent(error),
            record.checked,
            record.covered
        )),
        None => note.push_str(" Nothing was run."),
    }
    paragraph("", "", &visible(&note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(truth: bool) -> PlacementPrediction {
        let placements = (0u8..14).map(|at| {
            let ratio = 0.8 + 0.05 * f64::from(at);
            PredictedPlacement {
                place: format!("shape:pkg=2,numa=2,llc={at},core=128,smt=2"),
                label: format!("128 cores in {at} LLCs, 2 packages"),
                threads: 128,
                cpus: "0-127".to_owned(),
                cost: Some(ratio * 1.5),
                ratio,
                low: ratio * 0.97,
                high: ratio * 1.03,
                runs: 0,
                truth: truth.then_some(1.53 * ratio),
                true_ratio: truth.then_some(1.02 * ratio),
                error: truth.then_some(-0.0196),
            }
        });
        let mut record = PlacementPrediction {
            pinwise_version: "0".to_owned(),
            search: "20261121-213203-00000001".to_owned(),
            command: vec!["prog".to_owned(), "\u{1b}[31m".to_owned()],
            metric: "wall".to_owned(),
            unit: "s".to_owned(),
            better: Direction::Lower,
            machine: "sim:large.toml".to_owned(),
            is_searched_machine: truth,
            placements: placements.collect(),
            checked: 0,
            covered: 0,
            median_error: None,
        };
        record.summarise_errors();
        record
    }

    #[test]
    fn predictions_with_and_without_truth() {
        for (name, truth) in [("prediction-checked", true), ("prediction", false)] {
            let text = render_prediction(&record(truth), Palette::new(false));
            for line in text.lines() {
                assert!(line.chars().count() <= crate::WIDTH, "{line}");
            }
            assert!(!text.contains('\u{1b}'));
            insta::assert_snapshot!(name, text);
        }
        let mut none = record(false);
        none.placements.clear();
        assert!(render_prediction(&none, Palette::new(false)).contains("No placement"));
    }
}
