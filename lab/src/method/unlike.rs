//! Arms that differ in spread, shape, warm-up or after-effect.

use anyhow::Result;

use super::Arguments;
use super::replay::{Cell, recorded};
use crate::share::percent_of;
use crate::table::Table;

/// Noise of independent runs.
const QUIET: &str = "sd = 0.01";

/// Arms of the same centre and more: what it is, the noise of both, what is
/// true of the second arm alone and its effect, runs per arm.
const ARMS: [(&str, &str, &str, f64, &[usize]); 20] = [
    ("spread 1:2", QUIET, "sd = 0.01732", 1.0, &[40, 130]),
    ("spread 1:3", QUIET, "sd = 0.02828", 1.0, &[130]),
    ("spread 1:5", QUIET, "sd = 0.04899", 1.0, &[40, 130]),
    (
        "spread 5 % more, aa_cpu2",
        "aa_cpu2",
        "sd = 0.05",
        1.0,
        &[130],
    ),
    (
        "spread 5 % more, light_cpu",
        "light_cpu",
        "sd = 0.05",
        1.0,
        &[130],
    ),
    // The typical (Hodges–Lehmann) difference of the two is 0.
    (
        "delays of 2 % against none",
        "sd = 0.014",
        "exponential = 0.02",
        0.981_60,
        &[40, 130],
    ),
    (
        "two modes against one, same centre",
        QUIET,
        "slow_share = 0.5\nslow_factor = 1.1",
        0.953_46,
        &[130],
    ),
    (
        "leaves 5 % for the next",
        QUIET,
        "leaves_factor = 1.05",
        1.0,
        &[40, 130],
    ),
    (
        "leaves 5 % for the next",
        "light_cpu",
        "leaves_factor = 1.05",
        1.0,
        &[130],
    ),
    (
        "leaves 5 % for the next",
        "aa_cpu2",
        "leaves_factor = 1.05",
        1.0,
        &[130],
    ),
    (
        "5 % less after another",
        QUIET,
        "after_others_factor = 0.95",
        1.0,
        &[40, 130],
    ),
    (
        "5 % less after another",
        "light_cpu",
        "after_others_factor = 0.95",
        1.0,
        &[130],
    ),
    (
        "warms up, 5 % over 8 runs",
        QUIET,
        "cold_factor = 1.05\ncold_runs = 8.0",
        1.0,
        &[40, 130],
    ),
    (
        "warms up, 20 % over 8 runs",
        QUIET,
        "cold_factor = 1.2\ncold_runs = 8.0",
        1.0,
        &[130],
    ),
    (
        "warms up, 20 % over 8 runs",
        "light_cpu",
        "cold_factor = 1.2\ncold_runs = 8.0",
        1.0,
        &[130],
    ),
    (
        "warms up, 10 % over 60 runs",
        QUIET,
        "cold_factor = 1.1\ncold_runs = 60.0",
        1.0,
        &[130],
    ),
    (
        "30 % of runs +20 %, others −1 %",
        "sd = 0.003",
        "slow_share = 0.3\nslow_factor = 1.2",
        0.99,
        &[40, 130],
    ),
    (
        "10 % of runs twice as slow",
        "sd = 0.003",
        "slow_share = 0.1\nslow_factor = 2.0",
        1.0,
        &[40, 130],
    ),
    (
        "faster by 10 %, slower under load",
        "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
        "load_factor = 2.0",
        0.9,
        &[60],
    ),
    (
        "faster by 10 %, load or not",
        "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
        "",
        0.9,
        &[60],
    ),
];

pub(super) fn publish(asked: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method-unlike",
        "the second arm | noise | runs/arm | replays | faster | slower | same | by order | \
         by time | by load | advised to run it",
    );
    for (what, noise, behaviour, effect, counts) in ARMS {
        let (name, noise) = match noise.contains('=') {
            true => (noise.replace('\n', ", "), noise.to_owned()),
            false => (noise.to_owned(), recorded(&format!("{noise}.csv.xz"))),
        };
        for &max_runs in counts {
            if !asked.takes(&format!("{what}/unlike/{max_runs}/")) {
                continue;
            }
            let tally = asked.replay(&Cell {
                effect,
                ..Cell::behaving(&noise, behaviour, max_runs)
            });
            let percent = |count: usize| percent_of(count, tally.replays);
            table.row(format!(
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
