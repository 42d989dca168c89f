//! Arms that differ in spread, shape, warm-up or after-effect.

use anyhow::Result;

use super::Arguments;
use super::replay::{Cell, read_series};
use crate::share::format_percent;
use crate::table::Table;

/// Per case: its description, the noise of both arms, the behaviour and the effect of the second
/// arm, runs per arm. The typical (Hodges–Lehmann) difference with delays is 0.
const ARMS: &str = "\
spread 1:2 | sd = 0.01 | sd = 0.01732 | 1.0 | 40 130
spread 1:3 | sd = 0.01 | sd = 0.02828 | 1.0 | 130
spread 1:5 | sd = 0.01 | sd = 0.04899 | 1.0 | 40 130
spread 5 % more, aa_cpu2 | aa_cpu2 | sd = 0.05 | 1.0 | 130
spread 5 % more, light_cpu | light_cpu | sd = 0.05 | 1.0 | 130
delays of 2 % against none | sd = 0.014 | exponential = 0.02 | 0.98160 | 40 130
two modes against one, same centre | sd = 0.01 | slow_share = 0.5; slow_factor = 1.1 | 0.95346 | 130
leaves 5 % for the next | sd = 0.01 | leaves_factor = 1.05 | 1.0 | 40 130
leaves 5 % for the next | light_cpu | leaves_factor = 1.05 | 1.0 | 130
leaves 5 % for the next | aa_cpu2 | leaves_factor = 1.05 | 1.0 | 130
5 % less after another | sd = 0.01 | after_others_factor = 0.95 | 1.0 | 40 130
5 % less after another | light_cpu | after_others_factor = 0.95 | 1.0 | 130
warms up, 5 % over 8 runs | sd = 0.01 | cold_factor = 1.05; cold_runs = 8.0 | 1.0 | 40 130
warms up, 20 % over 8 runs | sd = 0.01 | cold_factor = 1.2; cold_runs = 8.0 | 1.0 | 130
warms up, 20 % over 8 runs | light_cpu | cold_factor = 1.2; cold_runs = 8.0 | 1.0 | 130
warms up, 10 % over 60 runs | sd = 0.01 | cold_factor = 1.1; cold_runs = 60.0 | 1.0 | 130
30 % of runs +20 %, others −1 % | sd = 0.003 | slow_share = 0.3; slow_factor = 1.2 | 0.99 | 40 130
10 % of runs twice as slow | sd = 0.003 | slow_share = 0.1; slow_factor = 2.0 | 1.0 | 40 130
faster by 10 %, slower under load | sd = 0.02; load = { dwell_s = 0.3, most_cpus = 0.3 } | load_factor = 2.0 | 0.9 | 60
faster by 10 %, load or not | sd = 0.02; load = { dwell_s = 0.3, most_cpus = 0.3 } | | 0.9 | 60";

pub(super) fn publish(arguments: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method-unlike",
        "the second arm | noise | runs/arm | replays | faster | slower | same | by order | \
         by time | by load | advised to run it",
    );
    for row in ARMS.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (what, noise, behaviour) = (cells[0], cells[1], cells[2]);
        let effect: f64 = cells[3].parse()?;
        let (name, noise) = match noise.contains('=') {
            true => (noise.replace("; ", ", "), noise.replace("; ", "\n")),
            false => (noise.to_owned(), read_series(&format!("{noise}.csv.xz"))),
        };
        for max_runs in cells[4].split(' ') {
            let max_runs: usize = max_runs.parse()?;
            if !arguments.selects(&format!("{what}/unlike/{max_runs}/")) {
                continue;
            }
            let tally = arguments.replay(&Cell {
                effect,
                ..Cell::with_behaviour(&noise, behaviour, max_runs)
            });
            let percent = |count: usize| format_percent(count, tally.replays);
            table.add_row(format!(
                "{what} | {name} | {max_runs} | {} | {} | {} | {} | {} | {} | {} | {}",
                tally.replays,
                percent(tally.faster),
                percent(tally.slower),
                percent(tally.same),
                percent(tally.by_order),
                percent(tally.by_time),
                percent(tally.by_load),
                percent(tally.recommended),
            ));
        }
    }
    table.publish()
}
