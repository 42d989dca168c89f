//! Records made for tests, here and in the crates above.

#![allow(
    clippy::wildcard_imports,
    clippy::unwrap_used,
    reason = "made for tests, of nearly all types of this crate"
)]

use super::*;
use crate::Header;
use pinwise_placement::UsedUnits;
use pinwise_topology::Topology;
use proptest::prelude::{any, *};

/// Any figure, or none.
pub fn any_figure() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(any::<f64>())
}

fn any_count() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(any::<u64>())
}

/// Any run that can be written down; its figures need not fit each other.
pub fn any_run() -> impl Strategy<Value = RunRecord> {
    let phase = prop::sample::select(vec![
        Phase::Warmup,
        Phase::Screening,
        Phase::Confirmation,
        Phase::Dropped,
    ]);
    let place = (0usize..9, 0usize..9, 0usize..9, phase);
    let times = (any::<f64>(), any::<f64>(), any_figure(), any_figure());
    let end = prop::option::of(any::<i32>());
    let ends = (end.clone(), end, any::<bool>(), prop::option::of(0u32..99));
    let counts = prop::collection::vec(any_count(), 9);
    let others = (any_figure(), any_figure(), any_figure(), any_figure());
    (place, times, ends, counts, others, "[0-9,-]{0,6}").prop_map(
        |(place, times, ends, counts, others, granted_cpus)| RunRecord {
            block: place.0,
            order: place.1,
            block_runs: place.2,
            phase: place.3,
            at_s: times.0,
            wall_s: times.1,
            user_s: times.2,
            sys_s: times.3,
            queued_s: others.0,
            max_rss_bytes: counts[0],
            exit: ends.0,
            signal: ends.1,
            timed_out: ends.2,
            threads: ends.3,
            migrations: counts[1],
            context_switches: counts[2],
            involuntary_switches: counts[3],
            minor_faults: counts[4],
            major_faults: counts[5],
            cycles: counts[6],
            instructions: counts[7],
            granted_cpus,
            coverage: None,
            foreign_cpu_s: others.0,
            steal_s: others.1,
            throttled: counts[8],
            throttled_s: others.1,
            sched_ext: (place.1 > 4).then(|| "lavd".to_owned()),
            metric: MetricReading {
                value: others.2,
                cost: others.3,
            },
        },
    )
}

/// Figures of a trace, some of them unknown.
pub fn any_figures(value: f64) -> TraceFigures {
    TraceFigures {
        totals: TraceTotals {
            threads: 2,
            switches: Some(7),
            cpu_s: value,
            ..TraceTotals::default()
        },
        waits: WaitRecord {
            total_s: Some(value),
            ..WaitRecord::default()
        },
        avoidable_smt_sharing: SmtSharingRecord::default(),
        idle_while_waiting: IdleWaitingRecord::default(),
        lost: LostRecord::default(),
        lower_bounds: Vec::new(),
        throttled: None,
        memory: Some(MemoryRecord {
            looks: 3,
            nodes: vec![NodePagesRecord {
                node: 1,
                bytes: value,
                last_bytes: 4096,
                cpu_percent: value,
            }],
            huge_percent: value,
            local: Some(LocalShare {
                percent: value,
                low: 0.0,
                high: value,
            }),
            far_percent: Some(value),
            is_balanced: Some(true),
        }),
    }
}

/// A number between 0 and 1 that looks like chance.
fn chance(number: usize, stream: u64) -> f64 {
    let mut bits = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream << 32);
    bits = (bits ^ (bits >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^= bits >> 29;
    (bits % 100_003) as f64 / 100_003.0
}

fn run(at: usize, cost: f64) -> RunRecord {
    RunRecord {
        block: at / 4,
        order: at % 4,
        block_runs: 4,
        at_s: at as f64 * 1.6,
        wall_s: cost,
        user_s: Some(cost * 60.0),
        exit: Some(0),
        threads: Some(128),
        granted_cpus: "0-255".to_owned(),
        metric: MetricReading {
            value: Some(cost),
            cost: Some(cost),
        },
        ..RunRecord::default()
    }
}

fn arm(number: usize) -> SearchArm {
    let (packages, llcs) = (1 + number % 2, 1 + number % 16);
    let name = match number {
        0 => "os-default".to_owned(),
        n => format!(
            "shape:pkg={packages},llc={llcs},core={},smt=1*{n}",
            8 * llcs
        ),
    };
    let cores = 8 * llcs;
    let cpu_count = if number == 0 { 256 } else { 128 };
    let used = UsedUnits {
        packages,
        numa_nodes: packages,
        llcs,
        cores,
        cpus: cpu_count,
    };
    SearchArm {
        placement: name.clone(),
        label: label(&name, &used),
        name,
        place_id: (number > 0).then(|| format!("{number:016x}")),
        threads: Some(128),
        cpus: if number == 0 { "0-255" } else { "0-127" }.to_owned(),
        packages,
        numa_nodes: packages,
        llcs,
        cores,
        cpu_count,
        features: vec![chance(number, 1), (number % 2) as f64, 0.5],
        refined_from: None,
        invalid: None,
    }
}

/// Cost of an arm; the fourth is best, `os-default` costs a third more.
fn cost(number: usize) -> f64 {
    match number {
        0 => 1.6,
        3 => 1.2,
        n => 1.22 + 0.9 * chance(n, 2),
    }
}

fn predicted_arm(number: usize, is_simulated: bool) -> PredictedArm {
    let (truth, runs) = (cost(number), usize::from(number < 17) * (1 + number % 3));
    let has_run = runs > 0;
    let error = 0.06 * (chance(number, 3) - 0.5);
    let width = if has_run { 0.012 } else { 0.06 };
    let cost = truth * (1.0 + if has_run { 0.2 * error } else { error });
    PredictedArm {
        arm: arm(number).name,
        predicted: cost,
        low: cost * (1.0 - width),
        high: cost * (1.0 + width),
        ratio: cost / 1.6,
        change: String::new(),
        runs,
        measured: has_run.then_some(Estimate {
            value: truth,
            low: None,
            high: None,
        }),
        first_prediction: (has_run && number > 5).then_some(FirstPredictionRecord {
            predicted: truth * (1.0 + error),
            low: truth * (0.93 + error),
            high: truth * (1.07 + error),
            measured: truth,
        }),
        beats_best: 0.01,
        truth: is_simulated.then_some(truth),
    }
}

fn progress(arms: usize, is_simulated: bool) -> Vec<ProgressPoint> {
    let leaders = [0, 2, 2, 3, 3, 3];
    let points = leaders.into_iter().enumerate();
    points
        .map(|(at, leader)| {
            let leader = leader.min(arms - 1);
            let width = 0.12 / (at + 1) as f64;
            ProgressPoint {
                runs: 6 + 4 * at,
                leader: arm(leader).name,
                predicted: cost(leader),
                low: cost(leader) * (1.0 - width),
                high: cost(leader) * (1.0 + width),
                probability_of_better: 0.8 / ((at + 1) * (at + 1)) as f64,
                expected_loss: 0.004,
                true_regret: is_simulated.then(|| cost(leader) / cost(3.min(arms - 1)) - 1.0),
            }
        })
        .collect()
}

fn model() -> SearchModelRecord {
    let feature = |name: &str, meaning: &str, effect: f64, sd: f64| FeatureRecord {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        effect,
        sd,
        change: None,
        is_clear: false,
    };
    SearchModelRecord {
        features: vec![
            feature("smt", "threads that share a core with another", 0.21, 0.02),
            feature("packages", "communication between packages", 0.08, 0.01),
            feature("llc", "threads that share a last-level cache", 0.02, 0.03),
        ],
        noise_sd: 0.012,
        block_sd: 0.004,
        explained_sd: 0.09,
        unexplained_sd: 0.02,
        inflation: 1.0,
        prediction_error: Some(0.021),
        judgement: ModelJudgement::Fits,
    }
}

fn example_plan() -> SearchPlanRecord {
    SearchPlanRecord {
        threads: vec![128],
        default_threads: Some(128),
        counted_threads: None,
        sets_threads: true,
        within: 0.01,
        least_within: 0.05,
        error: 0.05,
        max_runs: Some(200),
        confirmation_pairs: 30,
        budget_s: None,
        warmup: 1,
        any_status: false,
        output: "discard".to_owned(),
    }
}

fn search_answer(arms: usize) -> (String, SearchVerdict) {
    let best = arm(3.min(arms - 1)).name;
    let verdict = SearchVerdict {
        kind: SearchAnswer::Best,
        sentence: format!("{best} is best: 25.1 % less time than os-default (22.8 to 27.3 %)."),
        headline: None,
        beside: Vec::new(),
        advice: String::new(),
        commands: Vec::new(),
        not_recommended: None,
        condition: "Of 128 threads, one CPU each.".to_owned(),
    };
    (best, verdict)
}

fn confirmation(best: &str) -> ConfirmationRecord {
    ConfirmationRecord {
        arm: best.to_owned(),
        pairs: 9,
        runs: 18,
        ratio: 0.749,
        low: Some(0.727),
        high: Some(0.772),
        confidence: 0.95,
        verdict: PairsVerdict::Faster,
        sentence: "Confirmed in 9 fresh pairs: 25.1 % less time than os-default (22.8 to 27.3 %)."
            .to_owned(),
    }
}

/// A smaller arm that pairs confirmed.
fn least(best: &str) -> LeastRecord {
    LeastRecord {
        arm: best.to_owned(),
        of_best: 0.98,
        low: 0.96,
        high: 0.995,
        measured: true,
        pairs: 12,
        confirmed: true,
        sentence: "64 cores of one package: 98 % of the best.".to_owned(),
        basis: String::new(),
        commands: Vec::new(),
    }
}

/// A finished search over this many arms (at least one).
pub fn search(arms: usize, is_simulated: bool) -> SearchRecord {
    let topology = Topology::from_synthetic("package:2 l3:8 core:8 pu:2").unwrap();
    let spec = if is_simulated {
        "sim:large.toml"
    } else {
        "local"
    };
    let (best, verdict) = search_answer(arms);
    let step = |at: usize| match at {
        0 => SearchStep::Warmup,
        1..6 => SearchStep::Profiling,
        _ => SearchStep::Search,
    };
    let mut record = SearchRecord {
        header: Header {
            pinwise_version: "0.1.0".to_owned(),
            ..Header::new(
                "20261121-213203-00000001",
                "2026-11-21T21:32:03Z",
                Vec::new(),
            )
        },
        host: HostRecord::new(spec.to_owned(), is_simulated, &topology),
        command: vec!["./prog".to_owned(), "-t".to_owned(), "{threads}".to_owned()],
        workload: WorkloadRecord {
            input: None,
            environment: Vec::new(),
            prepare: None,
            conclude: None,
            timeout_s: None,
            recipe: None,
            verify: None,
            expect: None,
            program: None,
        },
        argv: Vec::new(),
        again: None,
        metric: MetricRecord::new(&pinwise_workload::Metric::wall(), ""),
        seed: 1,
        plan: example_plan(),
        space: vec![SpaceRecord {
            threads: 128,
            placements: "282429536481000000".to_owned(),
            shapes: 45,
        }],
        arms: (0..arms).map(arm).collect(),
        runs: (0..24)
            .map(|at| SearchRun {
                arm: at % arms,
                step: step(at),
                run: run(at, cost(at % arms)),
            })
            .collect(),
        predictions: (0..arms)
            .map(|at| predicted_arm(at, is_simulated))
            .collect(),
        progress: progress(arms, is_simulated),
        model: Some(model()),
        runs_used: 23,
        zone: 0.01,
        confirmation: Some(confirmation(&best)),
        other_cpus: Vec::new(),
        least: Some(least(&best)),
        verdict,
        true_regret: is_simulated.then_some(0.0),
        truth: is_simulated.then(|| TruthRecord {
            best: best.clone(),
            cost: 1.2,
            default_ratio: 1.333,
            prediction_error: Some(0.018),
            coverage: 0.91,
        }),
        best: Some(best),
        stopped: Some(Stopped::Precision),
        ended: Stopped::words(Some(Stopped::Precision)).to_owned(),
        elapsed_s: 61.5,
    };
    record.conclude();
    record
}
