//! Outcomes as tables.

use anyhow::Result;
use pinwise_stats::describe;

use super::contest::{ContestOutcome, MULTIPLES, Rival, Score};
use crate::table::Table;

/// World, noise, outcomes.
type Cell = (&'static str, &'static str, Vec<ContestOutcome>);

/// The head of the tables of runs and regrets.
pub(super) const HEAD: &str = "world | noise | seeds | candidates | method | runs | 90 % | \
     regret | 95 % | over 1 % | over 3 %";

/// The search and its rivals in one world.
pub(super) fn add_cell(
    table: &mut Table,
    world: &str,
    noise: &str,
    outcomes: &[ContestOutcome],
    rivals: &[Rival],
) {
    let candidates = quantile(outcomes.iter().map(|o| o.candidates as f64), 0.5);
    let start = format!("{world} | {noise} | {} | {candidates:.0}", outcomes.len());
    let ours: Vec<Score> = outcomes.iter().map(|outcome| outcome.ours).collect();
    table.add_row(format!(
        "{start} | **pinwise search** | {}",
        format_scores(&ours)
    ));
    for (index, rival) in rivals.iter().enumerate() {
        let scored: Vec<Score> = outcomes.iter().map(|o| o.rivals[index]).collect();
        table.add_row(format!(
            "{start} | {} | {}",
            rival.title(),
            format_scores(&scored)
        ));
    }
}

/// Runs (median, 90 %), regret (median, 95 %, shares over 1 % and 3 %).
fn format_scores(scores: &[Score]) -> String {
    let runs = |share| quantile(scores.iter().map(|score| score.runs as f64), share);
    let regrets = || scores.iter().map(|score| score.regret);
    let over = |limit: f64| share(regrets().map(|regret| regret > limit));
    format!(
        "{:.0} | {:.0} | {} | {} | {} | {}",
        runs(0.5),
        runs(0.9),
        format_percent(quantile(regrets(), 0.5)),
        format_percent(quantile(regrets(), 0.95)),
        format_percent(over(0.01)),
        format_percent(over(0.03)),
    )
}

/// The search's statements and the truth.
pub(super) fn publish_statements(cells: &[Cell]) -> Result<()> {
    let mut table = Table::new(
        "search-said",
        "world | noise | seeds | CPUs | true spread | prediction error | 90 % | \
         truths in 90 % intervals | says it does not matter | wrongly | undecided",
    );
    for (world, noise, outcomes) in cells {
        let errors: Vec<f64> = outcomes
            .iter()
            .filter_map(|outcome| outcome.statements.prediction_error)
            .collect();
        let coverages = outcomes
            .iter()
            .filter_map(|outcome| outcome.statements.coverage);
        let error = |share| {
            if errors.is_empty() {
                "–".to_owned()
            } else {
                format_percent(quantile(errors.iter().copied(), share))
            }
        };
        let is_wrong = |o: &ContestOutcome| o.statements.says_same && o.statements.is_different;
        table.add_row(format!(
            "{world} | {noise} | {} | {:.0} | {} | {} | {} | {} | {} | {} | {}",
            outcomes.len(),
            quantile(outcomes.iter().map(|o| o.cpus as f64), 0.5),
            format_percent(quantile(outcomes.iter().map(|o| o.spread), 0.5)),
            error(0.5),
            error(0.9),
            format_percent(mean(coverages)),
            format_percent(share(outcomes.iter().map(|o| o.statements.says_same))),
            format_percent(share(outcomes.iter().map(is_wrong))),
            format_percent(share(outcomes.iter().map(|o| o.statements.is_undecided))),
        ));
    }
    table.publish()
}

/// Random search with more and more runs.
pub(super) fn publish_random(cells: &[Cell]) -> Result<()> {
    let has_random = cells
        .iter()
        .any(|cell| cell.2.iter().any(|o| !o.random.is_empty()));
    if !has_random {
        return Ok(());
    }
    let columns: Vec<String> = MULTIPLES.iter().map(|times| format!("{times}×")).collect();
    let head = format!(
        "95 % of regrets below | noise | seeds | pinwise search | random search, {} of its runs | \
         as good with",
        columns.join(" | ")
    );
    let mut table = Table::new("search-random", &head);
    for (world, noise, outcomes) in cells {
        let ours = quantile(outcomes.iter().map(|o| o.ours.regret), 0.95);
        let random: Vec<f64> = (0..MULTIPLES.len())
            .map(|at| quantile(outcomes.iter().map(|o| o.random[at]), 0.95))
            .collect();
        let as_good = random.iter().position(|regret| *regret <= ours);
        let most = MULTIPLES[MULTIPLES.len() - 1];
        let needed = as_good.map_or(format!("> {most}×"), |at| columns[at].clone());
        let cells: Vec<String> = random.into_iter().map(format_percent).collect();
        table.add_row(format!(
            "{world} | {noise} | {} | {} | {} | {needed}",
            outcomes.len(),
            format_percent(ours),
            cells.join(" | ")
        ));
    }
    table.publish()
}

/// The value below which this share of all lies (0.95: all but one in twenty); of two tied values
/// the higher.
pub(super) fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let at = (share * sorted.len() as f64).ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the number of values"
    )]
    let index = at as usize - 1;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

fn share(flags: impl Iterator<Item = bool>) -> f64 {
    mean(flags.map(|is_so| f64::from(u8::from(is_so))))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    describe::mean(&values.collect::<Vec<f64>>())
}

/// With a decimal below 10 %.
pub(super) fn format_percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.is_nan() {
        "–".to_owned()
    } else if percent.abs() < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}
