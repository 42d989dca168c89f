//! Searches as the command makes them, in worlds that the other tables do not
//! draw: what is decided, in how many runs, at what regret, and how often what
//! is said besides is true.

use pinwise_record::{SearchAnswer, SearchRecord};
use pinwise_sim::world::{self, World, WorldNoise};

use crate::search_worlds::{self, SERIES, SERVER};
use crate::table::{percent, quantile};

/// Deviate of 95 % Wilson intervals.
const DEVIATE: f64 = 1.96;

type Draw = Box<dyn Fn(u64) -> (usize, String) + Sync>;

/// The tables, of those worlds whose `/NAME/` is asked for.
pub(crate) fn print(seeds: u64, takes: &dyn Fn(&str) -> bool) {
    let mut is_first = true;
    for (name, draw) in cells() {
        if !takes(&format!("/{name}/")) {
            continue;
        }
        if is_first {
            println!(
                "\n| world | seeds | runs | 90 % | with confirmation | decided | does not matter | regret | 95 % | over 3 % | truths in 90 % intervals | smaller is enough | wrongly |"
            );
            println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
            is_first = false;
        }
        print_cell(&name, &searches(seeds, &*draw));
    }
}

fn cells() -> Vec<(String, Draw)> {
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

/// Half of the seeds on a second thread.
fn searches(seeds: u64, draw: &(dyn Fn(u64) -> (usize, String) + Sync)) -> Vec<SearchRecord> {
    let every_other = |first: u64| -> Vec<SearchRecord> {
        let seeds = (first..=seeds).step_by(2);
        let made = seeds.map(|seed| {
            let (threads, text) = draw(seed);
            search_worlds::search(threads, &text, seed)
        });
        made.collect()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| every_other(2));
        let mut all = every_other(1);
        all.extend(other.join().expect("the other half"));
        all
    })
}

fn print_cell(name: &str, records: &[SearchRecord]) {
    let runs = |share| quantile(records.iter().map(|r| r.runs_used as f64), share);
    let all = quantile(records.iter().map(|r| r.runs.len() as f64), 0.5);
    let regrets = || records.iter().map(search_worlds::regret);
    let of = |kind| records.iter().filter(|r| r.verdict.kind == kind).count();
    let decided = records.len() - of(SearchAnswer::Undecided);
    let far = regrets().filter(|regret| *regret > 0.03).count();
    let truths = records.iter().filter_map(|record| record.truth.as_ref());
    let coverage: Vec<f64> = truths.map(|truth| truth.coverage).collect();
    let mean = coverage.iter().sum::<f64>() / coverage.len().max(1) as f64;
    let smaller: Vec<bool> = records.iter().filter_map(search_worlds::least).collect();
    let wrong = smaller.iter().filter(|is_false| **is_false).count();
    let n = records.len();
    println!(
        "| {name} | {n} | {:.0} | {:.0} | {all:.0} | {} | {} | {} | {} | {} | {} | {} | {} |",
        runs(0.5),
        runs(0.9),
        wilson(decided, n),
        wilson(of(SearchAnswer::DoesNotMatter), n),
        percent(quantile(regrets(), 0.5)),
        percent(quantile(regrets(), 0.95)),
        wilson(far, n),
        percent(mean),
        smaller.len(),
        wilson(wrong, smaller.len()),
    );
}

/// A share with its 95 % interval (Wilson, JASA 1927).
fn wilson(count: usize, of: usize) -> String {
    if of == 0 {
        return "–".to_owned();
    }
    let n = of as f64;
    let share = count as f64 / n;
    let square = DEVIATE * DEVIATE;
    let middle = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half =
        DEVIATE / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    format!(
        "{count} of {of} ({:.0}–{:.0} %)",
        100.0 * (middle - half).max(0.0),
        100.0 * (middle + half).min(1.0)
    )
}
