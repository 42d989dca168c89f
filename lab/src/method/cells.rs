//! Arms that differ by a factor or not at all, on recorded and synthetic noise.

use anyhow::Result;
use pinwise_stats::confirm::Score;
use pinwise_stats::judge::Judge;

use super::replay::Cell;
use super::{Arguments, Noise};
use crate::share::format_percent;
use crate::table::Table;

/// Synthetic disturbances, for the error rate only.
const SYNTHETIC: [(&str, &str); 8] = [
    ("drift", "sd = 0.03\ndrift = 5.0"),
    (
        "bursts",
        "sd = 0.01\nbursts = { every_s = 12.0, lasts_s = 3.0, factor = 1.5 }",
    ),
    (
        "level shifts",
        "sd = 0.01\nlevel_shifts = { dwell_s = 8.0, levels = [1.0, 1.1, 1.3] }",
    ),
    (
        "wander",
        "sd = 0.01\nwander = { correlation = 0.95, sd = 0.1 }",
    ),
    ("period", "sd = 0.01\nperiod = { runs = 4, factor = 1.4 }"),
    ("clock of 1 ms", "sd = 0.02\nclock_s = 0.001"),
    ("clock of 10 ms", "sd = 0.02\nclock_s = 0.01"),
    ("clock of 10 ms, SD 10 %", "sd = 0.1\nclock_s = 0.01"),
];

/// Judges of what is not the typical run, on equal arms.
const JUDGES: [Judge; 2] = [Judge::Mean, Judge::Percentile(90)];

/// Arms, true ratio of the planted arm, runs per arm.
const CELLS: [(usize, f64, usize); 13] = [
    (2, 1.0, 40),
    (2, 1.0, 130),
    (5, 1.0, 20),
    (5, 1.0, 40),
    (20, 1.0, 24),
    (2, 1.02, 20),
    (2, 1.02, 40),
    (2, 1.02, 130),
    (2, 1.05, 130),
    (2, 1.10, 130),
    (2, 0.95, 40),
    (5, 0.98, 40),
    (64, 0.95, 15),
];

pub(super) fn publish(noises: &[Noise], arguments: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method",
        "noise | arms | effect | runs/arm | score | replays | false claims | found | \
         wrong direction | coverage | named best | runs",
    );
    for (name, noise) in noises {
        for (arms, effect, max_runs) in CELLS {
            let label = format!("{name}/{arms}/{:+.0}%/{max_runs}/", 100.0 * (effect - 1.0));
            if !arguments.selects(&label) {
                continue;
            }
            let cell = Cell::new(noise, arms, effect, max_runs);
            table.add_row(format_row(name, &cell, arguments));
            if arms == 2 && (effect - 1.02).abs() < 1e-9 {
                let score = Score::Rank;
                table.add_row(format_row(name, &Cell { score, ..cell }, arguments));
            }
        }
    }
    for (name, noise) in SYNTHETIC {
        for max_runs in [20, 40, 130] {
            if arguments.selects(&format!("{name}/2/+0%/{max_runs}/")) {
                let cell = Cell::new(noise, 2, 1.0, max_runs);
                table.add_row(format_row(name, &cell, arguments));
            }
        }
    }
    table.publish()
}

fn format_row(name: &str, cell: &Cell, arguments: &Arguments) -> String {
    let tally = arguments.replay(cell);
    let percent = |count: usize| format!("{:.1} %", 100.0 * tally.share(count));
    let if_so = |is_so: bool, text: String| if is_so { text } else { "–".to_owned() };
    let is_planted = (cell.effect - 1.0).abs() > 1e-12;
    format!(
        "{name} | {} | {:+.0} % | {} | {} | {} | {} | {} | {} | {:.1} % | {} | {:.0}",
        cell.arms,
        100.0 * (cell.effect - 1.0),
        cell.max_runs,
        match cell.score {
            Score::Weighted => "weighted",
            Score::Rank => "rank",
        },
        tally.replays,
        if_so(
            !is_planted || cell.arms > 2,
            format_percent(tally.false_claims, tally.replays)
        ),
        if_so(is_planted, percent(tally.found)),
        if_so(is_planted, percent(tally.wrong_direction)),
        100.0 * tally.coverage(),
        if_so(cell.effect < 1.0, percent(tally.named_best)),
        tally.runs as f64 / tally.replays as f64
    )
}

/// Equal arms whose means and tails are judged.
pub(super) fn publish_judges(noises: &[Noise], arguments: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method-judges",
        "noise | judge | runs/arm | replays | false claims | coverage",
    );
    for (name, noise) in noises {
        for judge in JUDGES {
            if !arguments.selects(&format!("{name}/judge {judge}/")) {
                continue;
            }
            let cell = Cell {
                judge,
                ..Cell::new(noise, 2, 1.0, 130)
            };
            let tally = arguments.replay(&cell);
            table.add_row(format!(
                "{name} | {judge} | {} | {} | {} | {:.1} %",
                cell.max_runs,
                tally.replays,
                format_percent(tally.false_claims, tally.replays),
                100.0 * tally.coverage()
            ));
        }
    }
    table.publish()
}
