//! Records for tests, of this crate and of those that use it.

#![allow(
    clippy::wildcard_imports,
    clippy::unwrap_used,
    reason = "made for tests, of nearly all types of this crate"
)]

use super::*;
use pinwise_placement::UsedUnits;
use proptest::prelude::{any, *};

/// Generates any figure, or none.
fn any_figure() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(any::<f64>())
}

fn any_count() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(any::<u64>())
}

/// Generates any run; its figures need not be consistent.
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
            foreign_cpu_s: others.0,
            steal_s: others.1,
            throttled: counts[8],
            throttled_s: others.1,
            sched_ext: (place.1 > 4).then(|| "lavd".to_owned()),
            companion: (place.1 > 5).then_some(MetricReading {
                value: others.2,
                cost: others.3,
            }),
            metric: MetricReading {
                value: others.2,
                cost: others.3,
            },
            ..RunRecord::default()
        },
    )
}

/// Figures of a trace, some unknown.
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
        memory_limit: None,
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

/// A finished search over this many arms (at least four), of which the fourth is best.
pub fn build_search(arms: usize, is_simulated: bool) -> SearchRecord {
    let text = include_str!("../../../tests/data/search.json");
    let mut record: SearchRecord = serde_json::from_str(text).unwrap();
    for number in record.arms.len()..arms {
        let (mut arm, mut predicted) = (record.arms[1].clone(), record.predictions[1].clone());
        arm.name = format!("{}{number}", arm.name);
        arm.cores += number;
        predicted.arm.clone_from(&arm.name);
        let factor = 1.0 + 0.01 * number as f64;
        predicted.predicted *= factor;
        predicted.low *= factor;
        predicted.high *= factor;
        predicted.ratio *= factor;
        record.arms.push(arm);
        record.predictions.push(predicted);
    }
    record.arms.truncate(arms);
    for arm in &mut record.arms {
        let used = UsedUnits {
            packages: arm.packages,
            numa_nodes: arm.numa_nodes,
            llcs: arm.llcs,
            cores: arm.cores,
            cpus: arm.cpu_count,
        };
        arm.label = label_placement(&arm.name, &used);
    }
    record.predictions.truncate(arms);
    for run in &mut record.runs {
        run.arm %= arms;
    }
    if is_simulated {
        record.host.machine_spec = "sim:large.toml".to_owned();
        record.host.simulated = true;
        record.true_regret = Some(0.0);
        record.truth = record.best.clone().map(|best| TruthRecord {
            best,
            cost: 1.2,
            default_ratio: 1.333,
            prediction_error: Some(0.018),
            coverage: 0.91,
        });
        for arm in &mut record.predictions {
            arm.truth = Some(arm.predicted);
        }
        for point in &mut record.progress {
            point.true_regret = Some(0.0);
        }
    }
    record.conclude();
    record
}
