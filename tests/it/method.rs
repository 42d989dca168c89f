//! Error rates and power of comparisons and searches, on simulated machines of known truth. Few
//! replays are run here (a fifth, unless all are requested), with fixed seeds and limits that allow
//! for chance; `cargo lab method` makes the full table.

use pinwise_record::{ContrastVerdict, SearchAnswer, SearchRecord};
use pinwise_sim::world::{self, World, WorldNoise};
use pinwise_stats::describe::quantile;
use pinwise_stats::judge::Judge;

use crate::replay::{Cell, Tally, independent_noise, read_series, replay, replay_each};
use crate::search_worlds;
use crate::support::replay_count;

/// Replays a cell, half of it on another thread.
fn replay_halves(cell: &Cell, all: usize) -> Tally {
    let replays = replay_count(all);
    let half = replays / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| replay(cell, half, 1_000_000));
        replay(cell, replays - half, 0).plus(other.join().expect("the other half"))
    })
}

/// Checks that a share is at most this, plus three standard errors.
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

/// Checks that a share is at least this, less three standard errors.
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

/// Checks that claims about the spread are rare, and that intervals of the ratio of spreads contain
/// 1 as often as they should.
#[track_caller]
fn check_equal_spreads(tally: &Tally) {
    assert_at_most(0.05, tally, tally.spread_claims);
    let bound = 0.95 - 3.0 * (0.95 * 0.05 / tally.spreads.max(1) as f64).sqrt();
    let coverage = tally.spreads_covered as f64 / tally.spreads.max(1) as f64;
    assert!(coverage >= bound, "{coverage} below {bound}: {tally:?}");
}

/// Checks that intervals contain the truth as often as they should, and that undecided contrasts
/// report an interval and the time that a verdict would take.
#[track_caller]
fn check_coverage(tally: &Tally) {
    let bound = 0.95 - 3.0 * (0.95 * 0.05 / tally.contrasts as f64).sqrt();
    assert!(tally.coverage() >= bound, "below {bound}: {tally:?}");
    assert_eq!(tally.mute, 0, "undecided without interval or time");
}

#[track_caller]
fn check_identical_arms(cell: &Cell, replays: usize) {
    let tally = replay_halves(cell, replays);
    assert_at_most(0.05, &tally, tally.false_claims);
    check_coverage(&tally);
    check_equal_spreads(&tally);
}

#[test]
fn identical_arms_rarely_differ() {
    for name in ["aa_cpu1", "aa_cpu2", "aa_mem1", "aa_bg", "light_cpu"] {
        let noise = read_series(&format!("{name}.csv.xz"));
        check_identical_arms(&Cell::new(&noise, 2, 1.0, 40), 200);
    }
}

#[test]
fn no_winner_is_invented_among_many_identical_arms() {
    let noise = read_series("aa_cpu2.csv.xz");
    for (arms, max_runs, replays) in [(5, 30, 200), (20, 24, 100)] {
        check_identical_arms(&Cell::new(&noise, arms, 1.0, max_runs), replays);
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
        (&independent_noise(0.0175), 1.02, 20),
    ] {
        let tally = replay_halves(&Cell::new(noise, 2, effect, max_runs), 120);
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
        let tally = replay_halves(&open_ended(&noise, 2, 1.0, 150), 150);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
    }
    let medium = read_series("aa_cpu2.csv.xz");
    for (arms, effect, max_runs) in [(2, 1.02, 400), (2, 0.95, 200), (5, 0.95, 200)] {
        let tally = replay_halves(&open_ended(&medium, arms, effect, max_runs), 100);
        assert_at_least(0.95, &tally, tally.found);
        assert_at_most(0.005, &tally, tally.wrong_direction);
        check_coverage(&tally);
    }
}

#[test]
fn the_winner_among_64_is_found() {
    for (series, share) in [("light_cpu", 0.95), ("aa_cpu2", 0.85)] {
        let noise = read_series(&format!("{series}.csv.xz"));
        let tally = replay_halves(&Cell::new(&noise, 64, 0.95, 15), 24);
        assert_at_least(share, &tally, tally.named_best);
        check_coverage(&tally);
    }
}

#[test]
fn error_rates_hold_on_synthetic_noises() {
    for noise in [
        "sd = 0.03\ndrift = 5.0",
        "sd = 0.01\nbursts = { every_s = 12.0, lasts_s = 3.0, factor = 1.5 }",
        "sd = 0.01\nlevel_shifts = { dwell_s = 8.0, levels = [1.0, 1.1, 1.3] }",
        "sd = 0.01\nwander = { correlation = 0.95, sd = 0.1 }",
        "sd = 0.01\nperiod = { runs = 4, factor = 1.4 }",
    ] {
        check_identical_arms(&Cell::new(noise, 2, 1.0, 40), 200);
    }
}

/// Arms with the same centre but another spread or skew: every claim of speed is false.
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
        let tally = replay_halves(&Cell::with_behaviour(noise, behaviour, max_runs), 150);
        assert_at_most(0.05, &tally, tally.faster + tally.slower);
        check_coverage(&tally);
    }
    // Exponential delays of 2 % on average against normal noise, centred so that the typical
    // (Hodges–Lehmann) difference is 0.
    let skewed = Cell {
        effect: (-0.0185_f64).exp(),
        ..Cell::with_behaviour("sd = 0.014", "exponential = 0.02", 130)
    };
    let tally = replay_halves(&skewed, 150);
    assert_at_most(0.07, &tally, tally.faster + tally.slower);
}

/// A clock with steps of 10 ms, and runs of 66 ms: ties are no claims, and differences within a step
/// are not called the same.
#[test]
fn coarse_clocks_make_no_claim() {
    for (noise, max_runs) in [
        ("sd = 0.02\nclock_s = 0.01", 40),
        ("sd = 0.1\nclock_s = 0.01", 40),
        ("sd = 0.02\nclock_s = 0.001", 40),
    ] {
        let tally = replay_halves(&Cell::new(noise, 2, 1.0, max_runs), 150);
        assert_at_most(0.05, &tally, tally.false_claims);
        check_coverage(&tally);
        assert_eq!(tally.same, 0, "the step is coarser than 1 %");
    }
    let slower = replay_halves(&Cell::new("sd = 0.02\nclock_s = 0.01", 2, 1.02, 40), 100);
    assert_eq!(slower.same, 0);
    check_coverage(&slower);
}

#[test]
fn a_tail_that_contradicts_withholds_the_verdict() {
    let mostly_faster = Cell {
        effect: 0.99,
        ..Cell::with_behaviour("sd = 0.003", "slow_share = 0.3\nslow_factor = 1.2", 40)
    };
    let tally = replay_halves(&mostly_faster, 100);
    assert!(tally.share(tally.named_best) < 0.2, "{tally:?}");
    let rarely_slow =
        Cell::with_behaviour("sd = 0.003", "slow_share = 0.1\nslow_factor = 2.0", 130);
    let tally = replay_halves(&rarely_slow, 100);
    assert!(tally.share(tally.same) < 0.15, "{tally:?}");
    let by_mean = Cell {
        judge: Judge::Mean,
        ..rarely_slow
    };
    let tally = replay_halves(&by_mean, 100);
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
            let tally = replay_halves(&cell, 100);
            assert_at_most(0.05, &tally, tally.false_claims);
        }
    }
}

#[test]
fn effects_of_order_and_warm_up_are_found() {
    let slows_next = replay_halves(
        &Cell::with_behaviour("sd = 0.01", "leaves_factor = 1.05", 60),
        100,
    );
    assert_at_least(0.9, &slows_next, slows_next.by_order);
    assert!(slows_next.share(slows_next.faster) < 0.15, "{slows_next:?}");
    let cold = replay_halves(
        &Cell::with_behaviour("sd = 0.01", "cold_factor = 1.2\ncold_runs = 8.0", 60),
        100,
    );
    assert_at_least(0.9, &cold, cold.by_time);
    let hardly_cold = replay_halves(
        &Cell::with_behaviour("sd = 0.01", "cold_factor = 1.05\ncold_runs = 8.0", 40),
        100,
    );
    assert_at_least(0.8, &hardly_cold, hardly_cold.by_time);
    let gains_after_others = replay_halves(
        &Cell::with_behaviour("sd = 0.01", "after_others_factor = 0.95", 40),
        100,
    );
    assert_at_least(0.8, &gains_after_others, gains_after_others.by_order);
    let even = replay_halves(
        &Cell::new(&read_series("light_cpu.csv.xz"), 2, 1.0, 60),
        200,
    );
    assert_at_most(0.06, &even, even.by_order);
    assert_at_most(0.06, &even, even.by_time);
}

/// Two commands in one place under load: CPU time decides, and makes no claim about equal ones.
#[test]
fn cpu_time_finds_effects_that_load_hides() {
    for name in ["aa_bg", "aa_cpu1"] {
        let cell = |effect: f64| Cell {
            with_cpu: true,
            ..Cell::new(&read_series(&format!("{name}.csv.xz")), 2, effect, 80)
        };
        let slower = replay_halves(&cell(1.02), 100);
        assert_at_least(0.8, &slower, slower.found);
        assert_eq!(slower.wrong_direction, 0, "{slower:?}");
        let equal = replay_halves(&cell(1.0), 200);
        assert_at_most(0.05, &equal, equal.false_claims);
        check_coverage(&equal);
    }
}

/// CPU time shows a change in fewer runs, but the user asked about wall-clock time.
#[test]
fn a_comparison_does_not_end_before_wall_clock_time_is_known() {
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
        ..Cell::with_behaviour(
            "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
            "load_factor = 2.0",
            60,
        )
    };
    let tally = replay_halves(&under_load, 100);
    assert_at_least(0.8, &tally, tally.by_load);
    assert!(tally.share(tally.recommended) < 0.2, "{tally:?}");
    let steady = Cell {
        effect: 0.9,
        ..Cell::with_behaviour(
            "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
            "sd = 0.0",
            60,
        )
    };
    let tally = replay_halves(&steady, 100);
    assert_at_least(0.9, &tally, tally.recommended);
}

/// Every fifth seed, unless all replays are requested.
fn select_seeds(seeds: std::ops::Range<u64>) -> Vec<u64> {
    let count = usize::try_from(seeds.end - seeds.start).expect("few seeds");
    let step = count.div_ceil(replay_count(count));
    seeds.step_by(step).collect()
}

/// Runs a search for each seed, half of them on another thread.
fn run_searches(
    seeds: std::ops::Range<u64>,
    world: &(dyn Fn(u64) -> (usize, String) + Sync),
) -> Vec<SearchRecord> {
    let seeds = select_seeds(seeds);
    let search_each = |seeds: Vec<u64>| -> Vec<SearchRecord> {
        let records = seeds.into_iter().map(|seed| {
            let (threads, text) = world(seed);
            search_worlds::search(threads, &text, seed)
        });
        records.collect()
    };
    let middle = seeds.len().div_ceil(2);
    let (some, others) = (seeds[..middle].to_vec(), seeds[middle..].to_vec());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| search_each(others));
        let mut all = search_each(some);
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
    let found = run_searches(0..8, &search_worlds::two_basins);
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

/// Runs of `os-default` vary by up to a half if the scheduler ignores the topology.
#[test]
fn a_search_decides_under_an_erratic_scheduler() {
    let found = run_searches(3..13, &search_worlds::varied_demands);
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
    let found = run_searches(1..7, &flat);
    let runs = median_runs(&found);
    assert!(runs <= 36.0, "{runs}");
    let is_flat = |r: &&SearchRecord| r.verdict.kind == SearchAnswer::DoesNotMatter;
    let open = found.len() - found.iter().filter(is_flat).count();
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
        let found = run_searches(1..9, &fits);
        let truths = found.iter().filter_map(|record| record.truth.as_ref());
        let coverage: Vec<f64> = truths.map(|truth| truth.coverage).collect();
        let mean = coverage.iter().sum::<f64>() / coverage.len() as f64;
        // An allowance for chance: a tenth with eight searches, a fifth with two.
        let min_mean = 0.85 - 0.28 / (coverage.len() as f64).sqrt();
        assert!(mean >= min_mean, "{series}: {coverage:?}");
    }
}
