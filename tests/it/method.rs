//! The method on known truth: whole comparisons on simulated machines, through the code path of
//! real ones. Numbers of replays are small here, a fifth of them unless all are requested, seeds
//! fixed and limits wide enough for chance; `cargo lab method` makes the full table.

use pinwise_record::{ContrastVerdict, SearchAnswer, SearchRecord};
use pinwise_sim::world::{self, World, WorldNoise};
use pinwise_stats::describe::quantile;
use pinwise_stats::judge::Judge;

use crate::replay::{Cell, Tally, independent, read_series, replay, replay_each};
use crate::search_worlds;
use crate::support::replay_count;

/// Runs a cell on both processors.
fn measure(cell: &Cell, all: usize) -> Tally {
    let replays = replay_count(all);
    let half = replays / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| replay(cell, half, 1_000_000));
        replay(cell, replays - half, 0).plus(other.join().expect("the other half"))
    })
}

/// At most this share, but for what chance adds in three cases of a thousand.
#[track_caller]
fn assert_at_most(limit: f64, tally: &Tally, count: usize) {
    let n = tally.replays as f64;
    let bound = limit + 3.0 * (limit * (1.0 - limit) / n).sqrt();
    let share = tally.share(count);
    assert!(
        share <= bound,
        "{share} is above {limit} ({bound}): {tally:?}"
    );
}

/// At least this share, with the same allowance.
#[track_caller]
fn assert_at_least(limit: f64, tally: &Tally, count: usize) {
    let n = tally.replays as f64;
    let bound = limit - 3.0 * (limit * (1.0 - limit) / n).sqrt();
    let share = tally.share(count);
    assert!(
        share >= bound,
        "{share} is below {limit} ({bound}): {tally:?}"
    );
}

/// Noise that all arms share does not make one look steadier, and intervals of
/// ratios of spreads hold 1 as often as they say.
#[track_caller]
fn check_equal_spreads(tally: &Tally) {
    assert_at_most(0.05, tally, tally.spread_claims);
    let bound = 0.95 - 3.0 * (0.95 * 0.05 / tally.spreads.max(1) as f64).sqrt();
    let coverage = tally.spreads_covered as f64 / tally.spreads.max(1) as f64;
    assert!(coverage >= bound, "{coverage} below {bound}: {tally:?}");
}

/// Intervals hold the truth as often as they say, and what is undecided says
/// what is still possible and what it would take.
#[track_caller]
fn check_coverage(tally: &Tally) {
    let bound = 0.95 - 3.0 * (0.95 * 0.05 / tally.contrasts as f64).sqrt();
    assert!(tally.coverage() >= bound, "below {bound}: {tally:?}");
    assert_eq!(tally.mute, 0, "undecided without interval or time");
}

#[test]
fn identical_arms_rarely_differ() {
    for name in ["aa_cpu1", "aa_cpu2", "aa_mem1", "aa_bg", "light_cpu"] {
        let noise = read_series(&format!("{name}.csv.xz"));
        let tally = measure(&Cell::new(&noise, 2, 1.0, 40), 200);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
        check_equal_spreads(&tally);
    }
}

#[test]
fn no_winner_is_invented_among_many_identical_arms() {
    let noise = read_series("aa_cpu2.csv.xz");
    for (arms, max_runs, replays) in [(5, 30, 200), (20, 24, 100)] {
        let tally = measure(&Cell::new(&noise, arms, 1.0, max_runs), replays);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
        check_equal_spreads(&tally);
    }
}

#[test]
fn planted_effects_are_found_in_the_right_direction() {
    let light = read_series("light_cpu.csv.xz");
    let medium = read_series("aa_cpu2.csv.xz");
    for (noise, effect, max_runs) in [
        (&light, 1.02, 40),
        (&medium, 1.02, 130),
        (&medium, 0.98, 130),
        (&independent(0.0175), 1.02, 20),
    ] {
        let tally = measure(&Cell::new(noise, 2, effect, max_runs), 120);
        assert_at_least(0.8, &tally, tally.found);
        assert_at_most(0.005, &tally, tally.wrong_direction);
        check_coverage(&tally);
        check_equal_spreads(&tally);
    }
}

#[test]
fn an_open_ended_comparison_keeps_its_error_rate_and_finds_effects() {
    let open_ended = |noise: &str, arms, effect, max_runs| Cell {
        is_open_ended: true,
        ..Cell::new(noise, arms, effect, max_runs)
    };
    for name in ["aa_cpu1", "aa_cpu2", "aa_bg", "light_cpu"] {
        let noise = read_series(&format!("{name}.csv.xz"));
        let tally = measure(&open_ended(&noise, 2, 1.0, 150), 150);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
    }
    let medium = read_series("aa_cpu2.csv.xz");
    for (arms, effect, most) in [(2, 1.02, 400), (2, 0.95, 200), (5, 0.95, 200)] {
        let tally = measure(&open_ended(&medium, arms, effect, most), 100);
        assert_at_least(0.95, &tally, tally.found);
        assert_at_most(0.005, &tally, tally.wrong_direction);
        check_coverage(&tally);
    }
}

#[test]
fn the_winner_among_64_is_found() {
    for (series, share) in [("light_cpu", 0.95), ("aa_cpu2", 0.85)] {
        let noise = read_series(&format!("{series}.csv.xz"));
        let tally = measure(&Cell::new(&noise, 64, 0.95, 15), 24);
        assert_at_least(share, &tally, tally.named_best);
        check_coverage(&tally);
    }
}

#[test]
fn synthetic_noises_of_other_shapes_keep_the_level() {
    for noise in [
        "sd = 0.03\ndrift = 5.0",
        "sd = 0.01\nbursts = { every_s = 12.0, lasts_s = 3.0, factor = 1.5 }",
        "sd = 0.01\nlevel_shifts = { dwell_s = 8.0, levels = [1.0, 1.1, 1.3] }",
        "sd = 0.01\nwander = { correlation = 0.95, sd = 0.1 }",
        "sd = 0.01\nperiod = { runs = 4, factor = 1.4 }",
    ] {
        let tally = measure(&Cell::new(noise, 2, 1.0, 40), 200);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
        check_equal_spreads(&tally);
    }
}

/// Arms of one centre whose runs spread, or are skewed, differently: a claim of
/// speed is false.
#[test]
fn equal_centres_with_unequal_spread_or_shape_make_no_claim() {
    let quiet = "sd = 0.01";
    let noisy = read_series("aa_cpu2.csv.xz");
    for (noise, behaviour, max_runs) in [
        (quiet, "sd = 0.02", 130),
        (quiet, "sd = 0.05", 40),
        (quiet, "sd = 0.05", 130),
        (&noisy, "sd = 0.05", 130),
    ] {
        let tally = measure(&Cell::behaving(noise, behaviour, max_runs), 150);
        assert_at_most(0.05, &tally, tally.faster + tally.slower);
        check_coverage(&tally);
    }
    // Delays of 2 % on average against normal noise: centred so that the
    // typical (Hodges–Lehmann) difference is 0.
    let skewed = Cell {
        effect: (-0.0185_f64).exp(),
        ..Cell::behaving("sd = 0.014", "exponential = 0.02", 130)
    };
    let tally = measure(&skewed, 150);
    assert_at_most(0.07, &tally, tally.faster + tally.slower);
}

/// A clock that ticks every 10 ms, runs of 66 ms: ties are not claims, and differences within a
/// step are not called the same.
#[test]
fn coarse_clocks_make_no_claim() {
    for (noise, max_runs) in [
        ("sd = 0.02\nclock_s = 0.01", 40),
        ("sd = 0.1\nclock_s = 0.01", 40),
        ("sd = 0.02\nclock_s = 0.001", 40),
    ] {
        let tally = measure(&Cell::new(noise, 2, 1.0, max_runs), 150);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
        assert_eq!(tally.same, 0, "the step is coarser than 1 %");
    }
    let slower = measure(&Cell::new("sd = 0.02\nclock_s = 0.01", 2, 1.02, 40), 100);
    assert_eq!(slower.same, 0);
    check_coverage(&slower);
}

#[test]
fn a_tail_that_contradicts_withholds_the_verdict() {
    let mostly_faster = Cell {
        effect: 0.99,
        ..Cell::behaving("sd = 0.003", "slow_share = 0.3\nslow_factor = 1.2", 40)
    };
    let tally = measure(&mostly_faster, 100);
    assert!(tally.share(tally.named_best) < 0.2, "{tally:?}");
    let rarely_slow = Cell::behaving("sd = 0.003", "slow_share = 0.1\nslow_factor = 2.0", 130);
    let tally = measure(&rarely_slow, 100);
    assert!(tally.share(tally.same) < 0.15, "{tally:?}");
    let by_mean = Cell {
        judge: Judge::Mean,
        ..rarely_slow
    };
    let tally = measure(&by_mean, 100);
    assert!(tally.share(tally.slower) > 0.8, "{tally:?}");
}

#[test]
fn means_and_percentiles_of_equal_arms_rarely_differ() {
    for name in ["light_cpu", "aa_cpu1"] {
        let noise = read_series(&format!("{name}.csv.xz"));
        for judge in [Judge::Mean, Judge::Percentile(90)] {
            let cell = Cell {
                judge,
                ..Cell::new(&noise, 2, 1.0, 60)
            };
            let tally = measure(&cell, 100);
            assert_at_most(0.05, &tally, tally.false_claims);
        }
    }
}

#[test]
fn after_effects_and_warm_up_are_found() {
    let messy = measure(
        &Cell::behaving("sd = 0.01", "leaves_factor = 1.05", 60),
        100,
    );
    assert_at_least(0.9, &messy, messy.by_order);
    assert!(messy.share(messy.faster) < 0.15, "{messy:?}");
    let cold = measure(
        &Cell::behaving("sd = 0.01", "cold_factor = 1.2\ncold_runs = 8.0", 60),
        100,
    );
    assert_at_least(0.9, &cold, cold.by_time);
    let hardly_cold = measure(
        &Cell::behaving("sd = 0.01", "cold_factor = 1.05\ncold_runs = 8.0", 40),
        100,
    );
    assert_at_least(0.8, &hardly_cold, hardly_cold.by_time);
    let gaining = measure(
        &Cell::behaving("sd = 0.01", "after_others_factor = 0.95", 40),
        100,
    );
    assert_at_least(0.8, &gaining, gaining.by_order);
    let even = measure(
        &Cell::new(&read_series("light_cpu.csv.xz"), 2, 1.0, 60),
        200,
    );
    assert_at_most(0.06, &even, even.by_order);
    assert_at_most(0.06, &even, even.by_time);
}

/// Two commands in one place, with others making wall-clock time vary: CPU time decides, and claims
/// nothing about equal ones.
#[test]
fn cpu_time_finds_effects_that_load_hides() {
    for name in ["aa_bg", "aa_cpu1"] {
        let cell = |effect: f64| Cell {
            with_cpu: true,
            ..Cell::new(&read_series(&format!("{name}.csv.xz")), 2, effect, 80)
        };
        let slower = measure(&cell(1.02), 100);
        assert_at_least(0.8, &slower, slower.found);
        assert_eq!(slower.wrong_direction, 0, "{slower:?}");
        let equal = measure(&cell(1.0), 200);
        assert_at_most(0.05, &equal, equal.false_claims);
        check_coverage(&equal);
    }
}

/// CPU time shows a change in fewer runs, but a comparison of wall-clock time reports how much of
/// that there is.
#[test]
fn cpu_time_does_not_end_a_comparison_before_wall_clock_time_tells_something() {
    let cell = Cell {
        with_cpu: true,
        ..Cell::new(&read_series("aa_bg.csv.xz"), 2, 2.0, 80)
    };
    let mut open = Vec::new();
    replay_each(&cell, 50, 1, |record| {
        let contrast = &record.contrasts[0];
        let low = contrast.low.unwrap_or_default();
        if contrast.verdict == ContrastVerdict::Undecided && low < 0.5 {
            open.push(contrast.sentence.clone());
        }
    });
    assert!(open.is_empty(), "{} of 50: {}", open.len(), open[0]);
}

#[test]
fn arms_that_depend_on_load_are_not_recommended() {
    let under_load = Cell {
        effect: 0.9,
        ..Cell::behaving(
            "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
            "load_factor = 2.0",
            60,
        )
    };
    let tally = measure(&under_load, 100);
    assert_at_least(0.8, &tally, tally.by_load);
    assert!(tally.share(tally.recommended) < 0.2, "{tally:?}");
    let steady = Cell {
        effect: 0.9,
        ..Cell::behaving(
            "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
            "sd = 0.0",
            60,
        )
    };
    let tally = measure(&steady, 100);
    assert_at_least(0.9, &tally, tally.recommended);
}

/// Every fifth seed, unless all replays are requested.
fn every_fifth(seeds: std::ops::Range<u64>) -> Vec<u64> {
    let count = usize::try_from(seeds.end - seeds.start).expect("few seeds");
    let step = count.div_ceil(replay_count(count));
    seeds.step_by(step).collect()
}

/// Searches of several seeds, half of them on another thread.
fn searches(
    seeds: std::ops::Range<u64>,
    world: &(dyn Fn(u64) -> (usize, String) + Sync),
) -> Vec<SearchRecord> {
    let seeds = every_fifth(seeds);
    let of = |seeds: Vec<u64>| -> Vec<SearchRecord> {
        let records = seeds.into_iter().map(|seed| {
            let (threads, text) = world(seed);
            search_worlds::search(threads, &text, seed)
        });
        records.collect()
    };
    let middle = seeds.len().div_ceil(2);
    let (some, others) = (seeds[..middle].to_vec(), seeds[middle..].to_vec());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| of(others));
        let mut all = of(some);
        all.extend(other.join().expect("the other half"));
        all
    })
}

fn median_runs(records: &[SearchRecord]) -> f64 {
    let runs: Vec<f64> = records.iter().map(|r| r.runs_used as f64).collect();
    quantile(&runs, 0.5)
}

#[test]
fn a_second_basin_at_the_far_end_is_found() {
    let found = searches(0..8, &search_worlds::two_basins);
    for record in &found {
        let regret = search_worlds::regret(record);
        assert!(regret <= 0.01, "{regret}: {}", record.verdict.sentence);
        assert!(
            !record.verdict.sentence.contains("No other shape"),
            "{}",
            record.verdict.sentence
        );
    }
}

/// Runs of `os-default` vary by up to a half if the scheduler is blind.
#[test]
fn a_search_decides_under_an_erratic_scheduler() {
    let found = searches(3..13, &search_worlds::varied_demands);
    let is_open = |r: &&SearchRecord| r.verdict.kind == SearchAnswer::Undecided;
    let open = found.iter().filter(is_open).count();
    assert!(
        5 * open <= found.len(),
        "{open} of {} undecided",
        found.len()
    );
    let runs = median_runs(&found);
    assert!(runs <= 60.0, "{runs}");
    let regrets: Vec<f64> = found.iter().map(search_worlds::regret).collect();
    assert!(quantile(&regrets, 0.5) <= 0.03, "{regrets:?}");
    for record in found.iter().filter(|r| r.least.is_some()) {
        let least = record.least.as_ref().expect("just seen");
        let is_best = record.best.as_ref() == Some(&least.arm);
        assert!(is_best || least.confirmed && least.pairs > 0, "{least:?}");
    }
    let smaller: Vec<bool> = found
        .iter()
        .filter_map(search_worlds::is_smaller_claim_wrong)
        .collect();
    let wrong = smaller.iter().filter(|is_false| **is_false).count();
    assert!(10 * wrong <= found.len(), "{wrong} of {}", smaller.len());
}

#[test]
fn a_search_soon_reports_that_placement_does_not_matter() {
    let flat = |seed| {
        let text = world::describe_on(World::Flat, seed, search_worlds::SERVER, 24);
        (24, text)
    };
    let found = searches(1..7, &flat);
    let runs = median_runs(&found);
    assert!(runs <= 36.0, "{runs}");
    let is_said = |r: &&SearchRecord| r.verdict.kind == SearchAnswer::DoesNotMatter;
    let open = found.len() - found.iter().filter(is_said).count();
    assert!(open <= (found.len() / 3).max(1), "{open}");
    assert!(found.iter().all(|r| r.verdict.kind != SearchAnswer::Best));
}

#[test]
fn intervals_of_predictions_hold_on_recorded_noise() {
    for series in search_worlds::SERIES {
        let noise = WorldNoise::Series(format!("{series}.csv.xz").into());
        let fits = |seed| {
            let text = world::describe_on(World::Fits, seed, "package:2 l3:2 core:4 pu:2", 8);
            (8, world::with_noise(&text, &noise))
        };
        let found = searches(1..9, &fits);
        let truths = found.iter().filter_map(|record| record.truth.as_ref());
        let coverage: Vec<f64> = truths.map(|truth| truth.coverage).collect();
        let mean = coverage.iter().sum::<f64>() / coverage.len() as f64;
        // What chance takes of few searches: a tenth of eight, a fifth of two.
        let least = 0.85 - 0.28 / (coverage.len() as f64).sqrt();
        assert!(mean >= least, "{series}: {coverage:?}");
    }
}
