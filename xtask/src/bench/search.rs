//! Runs and regret of the search for the best placement, beside its rivals.

use anyhow::Result;

use super::{Setting, library_benchmark};

/// Machines with a program for each kind of world and noise.
const SEEDS: &str = "125";

pub(super) fn run(_: &Setting) -> Result<String> {
    let tables = library_benchmark("search", &[SEEDS])?;
    Ok(section(&tables))
}

fn section(tables: &str) -> String {
    format!(
        "## The search for the best placement

Random simulated machines of 8 to 384 CPUs with a random program, of which the
truth is known (`docs/simulated-machines.md`); their model is not the search's.
In `fits` the machine has the mechanisms that the search expects, in `misfits`
others too, in `useless` placements differ by what no model knows, in `flat`
nothing matters. Noise is log-normal or a recording, replayed from a random
moment. *Candidates*: the even spreads of the program's threads and
`os-default`, the same for all. *Runs*: median, and what nine in ten stay
within; those of `os-default` count, a warm-up does not. *Regret*: true cost of
the choice over the lowest true cost that anybody could have chosen, minus 1;
without an answer the choice is who led at the end. Indifference zone 1 %, or half the
noise of a run where that is more, but at most 3 % for that; error 5 %,
the search at most 200 runs.

Random search draws candidates without replacement and then runs again what
looks best. *Every candidate five times* compares medians. *Early stopping* runs
rounds of all that are left, drops those whose paired 95 % interval against the
leader excludes it, and ends when no interval leaves room for one that is better
by 1 %. Thompson sampling (top-two, Russo 2016) takes arms as independent and
stops by the search's own rule; both end after 20 runs of every candidate.
Sequential halving runs two blocks of every round's survivors and eight of the
last three.

The last table is of searches as the command makes them (up to 30 pairs against
`os-default`, 20 of the least resource), in worlds that the others do not draw.
*Varied demands*: 24 threads on `package:2 l3:8 core:8 pu:2` with the demands of
README's example varied and noise of 3 %; runs of `os-default` vary far more.
*Two basins*: shapes cost less and less towards one end, and the very other end is
best. *Nothing matters*: `flat` with 24 threads there. *With confirmation*: all
runs, the warm-up among them. Shares are with 95 % Wilson intervals. *Smaller is
enough*: how often a smaller arm than the best was said to be within 5 % of it.

{}",
        tables.trim_end()
    )
}
