//! A table of a joint plan's programs: where each runs, and its metric with and without placement.

use super::super::style::{quantity, shorten, table_without, visible};
use super::{CPUS_WIDTH, NAME_WIDTH, or_dash};
use pinwise_format::count;
use pinwise_record::{Direction, JointProgramRecord, JointRecord};
use std::cmp::Ordering;

const HEADER: [&str; 7] = [
    "program",
    "placement",
    "CPUs",
    "default",
    "placed",
    "change",
    "limit",
];

/// The table, and a line on how many placements were searched.
pub(super) fn format_programs_table(joint: &JointRecord) -> String {
    let rows = joint
        .programs
        .iter()
        .map(|program| format_program_row(program).to_vec());
    // Without a limit there is no column for one.
    let has_limit = joint.programs.iter().any(|program| program.limit.is_some());
    let hidden: &[&str] = if has_limit { &[] } else { &["limit"] };
    let shown = |cells: Vec<String>| {
        let cells = HEADER.iter().zip(cells);
        let cells = cells.filter(|(name, _)| !hidden.contains(*name));
        cells.map(|(_, cell)| cell).collect()
    };
    let header: Vec<&str> = HEADER.into_iter().filter(|n| !hidden.contains(n)).collect();
    let table = table_without(
        &["placement", "CPUs"],
        &[],
        &header,
        rows.map(shown).collect(),
    );
    format!(
        "{table}  The joint cost is their geometric mean by weight. {} searched in {}.\n",
        count(joint.plans, "joint placement"),
        count(joint.rounds, "round"),
    )
}

fn format_program_row(program: &JointProgramRecord) -> [String; 7] {
    let unit = &program.metric.unit;
    let value = |value: Option<f64>| value.map_or("–".to_owned(), |value| quantity(value, unit));
    // Programs of one plan may have figures of either direction.
    let is_higher_better = program.metric.better == Direction::Higher;
    let both = program.default_value.zip(program.placed_value);
    let change = both.and_then(|(before, now)| now.partial_cmp(&before));
    let direction = match change {
        Some(Ordering::Greater) if is_higher_better => " better",
        Some(Ordering::Less) if !is_higher_better => " better",
        Some(Ordering::Greater | Ordering::Less) => " worse",
        _ => "",
    };
    let sign = match program.metric.better {
        Direction::Higher => '≥',
        _ => '≤',
    };
    let limit = program.limit.map_or(String::new(), |limit| {
        let state = program.placed_limit.as_ref();
        let state = state.map_or("", |state| state.as_str());
        let before = program.default_limit.as_ref();
        let before = before.filter(|before| Some(*before) != program.placed_limit.as_ref());
        let before = before.map_or_else(String::new, |state| format!(", before {state}"));
        format!("{sign} {}: {state}{before}", quantity(limit, unit))
    });
    [
        shorten(&visible(&program.name), NAME_WIDTH),
        shorten(&program.placement, NAME_WIDTH),
        shorten(&program.cpus, CPUS_WIDTH),
        value(program.default_value),
        value(program.placed_value),
        format!("{}{direction}", or_dash(&program.change)),
        limit,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::MetricRecord;

    #[test]
    fn each_program_says_which_direction_is_better() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let record: pinwise_record::Comparison = serde_json::from_str(text).unwrap();
        let change = |better: Direction, placed: f64| {
            let program = JointProgramRecord {
                name: "web".to_owned(),
                change: "+50.0 %".to_owned(),
                default_value: Some(2.0),
                placed_value: Some(placed),
                metric: MetricRecord {
                    better,
                    ..record.metric.clone()
                },
                command: Vec::new(),
                load: None,
                weight: 1.0,
                limit: None,
                placement: String::new(),
                cpus: String::new(),
                default_limit: None,
                placed_limit: None,
            };
            format_program_row(&program)[5].clone()
        };
        assert_eq!(change(Direction::Lower, 3.0), "+50.0 % worse");
        assert_eq!(change(Direction::Higher, 3.0), "+50.0 % better");
        assert_eq!(change(Direction::Lower, 1.0), "+50.0 % better");
        assert_eq!(change(Direction::Lower, 2.0), "+50.0 %");
    }
}
