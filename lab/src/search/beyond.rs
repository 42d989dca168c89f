//! Searches with the command's settings, in further worlds: decisions, runs, regret, and how often
//! the other statements are true.

use anyhow::Result;
use pinwise_record::{SearchAnswer, SearchRecord};
use pinwise_sim::world::{self, World, WorldNoise};

use super::search_worlds::{self, SERIES, SERVER};
use super::table::{format_percent, quantile};
use crate::share::format_count;
use crate::table::Table;

type Draw = Box<dyn Fn(u64) -> (usize, String) + Sync>;

/// Prints the table of the selected worlds.
pub(super) fn publish(seeds: u64, is_selected: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut table = Table::new(
        "search-beyond",
        "world | seeds | runs | 90 % | with confirmation | decided | does not matter | regret | \
         95 % | over 3 % | truths in 90 % intervals | smaller is enough | wrongly",
    );
    for (name, draw) in list_worlds() {
        if is_selected(&format!("/{name}/")) {
            table.add_row(format_row(&name, &run_searches(seeds, &*draw)));
        }
    }
    table.publish()
}

fn list_worlds() -> Vec<(String, Draw)> {
    let mut cells: Vec<(String, Draw)> = vec![
        (
            "varied demands".to_owned(),
            Box::new(search_worlds::varied_demands),
        ),
        ("two basins".to_owned(), Box::new(search_worlds::two_basins)),
        (
            "nothing matters".to_owned(),
            Box::new(|seed| (24, world::describe_on(World::Flat, seed, SERVER, 24))),
        ),
    ];
    for series in SERIES {
        let noise = WorldNoise::Series(format!("{series}.csv.xz").into());
        let draw = move |seed| {
            let text = world::describe_on(World::Fits, seed, "package:2 l3:2 core:4 pu:2", 8);
            (8, world::with_noise(&text, &noise))
        };
        cells.push((format!("fits, {series}"), Box::new(draw)));
    }
    cells
}

/// Runs the search for every seed, on two threads.
fn run_searches(seeds: u64, draw: &(dyn Fn(u64) -> (usize, String) + Sync)) -> Vec<SearchRecord> {
    let every_other = |first: u64| -> Vec<SearchRecord> {
        let seeds = (first..=seeds).step_by(2);
        seeds
            .map(|seed| {
                let (threads, text) = draw(seed);
                search_worlds::search(threads, &text, seed)
            })
            .collect()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| every_other(2));
        let mut all = every_other(1);
        all.extend(other.join().expect("the other half"));
        all
    })
}

fn format_row(name: &str, records: &[SearchRecord]) -> String {
    let runs = |share| quantile(records.iter().map(|r| r.runs_used as f64), share);
    let runs_with_confirmation = quantile(records.iter().map(|r| r.runs.len() as f64), 0.5);
    let regrets = || records.iter().map(search_worlds::regret);
    let count_answers = |kind| records.iter().filter(|r| r.verdict.kind == kind).count();
    let decided = records.len() - count_answers(SearchAnswer::Undecided);
    let far = regrets().filter(|regret| *regret > 0.03).count();
    let truths = records.iter().filter_map(|record| record.truth.as_ref());
    let coverage: Vec<f64> = truths.map(|truth| truth.coverage).collect();
    let mean = coverage.iter().sum::<f64>() / coverage.len().max(1) as f64;
    let smaller: Vec<bool> = records
        .iter()
        .filter_map(search_worlds::is_smaller_claim_wrong)
        .collect();
    let wrong = smaller.iter().filter(|is_wrong| **is_wrong).count();
    let n = records.len();
    format!(
        "{name} | {n} | {:.0} | {:.0} | {runs_with_confirmation:.0} | {} | {} | {} | {} | {} | {} | {} | {}",
        runs(0.5),
        runs(0.9),
        format_count(decided, n),
        format_count(count_answers(SearchAnswer::DoesNotMatter), n),
        format_percent(quantile(regrets(), 0.5)),
        format_percent(quantile(regrets(), 0.95)),
        format_count(far, n),
        format_percent(mean),
        smaller.len(),
        format_count(wrong, smaller.len()),
    )
}
