//! Reports how much of the machine other processes used during the runs, and whether that changed.

use std::collections::BTreeSet;

use pinwise_record::{Comparison, Finding, Phase, RunRecord, Severity};
use pinwise_stats::describe::median;

/// It is a finding if other processes use more than this share of the CPUs …
const FOREIGN_SHARE: f64 = 0.05;
/// … and more than this many: every system has some background work.
const FOREIGN_CPUS: f64 = 0.25;

/// Runs without a companion, whose load was requested and is not reported.
pub(super) fn runs_alone(record: &Comparison) -> impl Iterator<Item = &RunRecord> {
    let alone = record
        .arms
        .iter()
        .filter(|arm| arm.setting.beside.is_empty());
    alone.flat_map(|arm| &arm.runs)
}

/// CPUs that other processes used during the median run; `None` if unknown for all runs.
pub(crate) fn foreign_cpus<'r>(runs: impl Iterator<Item = &'r RunRecord>) -> Option<f64> {
    let shares: Vec<f64> = runs
        .filter_map(|run| Some(run.foreign_cpu_s? / run.wall_s))
        .collect();
    median(&shares)
}

/// Do others use half of the CPUs or more?
pub(super) fn is_busy(record: &Comparison) -> bool {
    let busy = foreign_cpus(runs_alone(record));
    busy.is_some_and(|busy| busy >= 0.5 * record.host.counts.cpus as f64)
}

pub(super) fn check_foreign_load(record: &Comparison) -> Option<Finding> {
    let busy = foreign_cpus(runs_alone(record))?;
    let places: BTreeSet<&str> = record
        .arms
        .iter()
        .map(|arm| arm.placement.name.as_str())
        .collect();
    let (effect, advice) = match places.len() > 1 {
        _ if record.metric.name == "cpu" => (
            "add to CPU time through shared caches and cores",
            "See `pinwise doctor`.",
        ),
        true => (
            "slow placements on those CPUs",
            "See `pinwise doctor`; compare again on a quiet machine before making it permanent.",
        ),
        false => (
            "slow every arm, some runs more than others",
            "See `pinwise doctor`; a quiet machine needs fewer runs.",
        ),
    };
    report_load(busy, record.host.counts.cpus, effect, advice)
}

/// The finding that other processes used `busy` of the machine's CPUs; `None` if that is little.
pub(crate) fn report_load(busy: f64, cpus: usize, effect: &str, advice: &str) -> Option<Finding> {
    let cpus = cpus.max(1) as f64;
    (busy > FOREIGN_CPUS.max(FOREIGN_SHARE * cpus)).then(|| {
        Finding::new(
            "foreign_load",
            Severity::Warning,
            format!("Other processes used {busy:.1} of {cpus} CPUs meanwhile and {effect}."),
            advice,
        )
        .with_evidence("foreign_cpus_median", busy)
    })
}

/// CPUs that other processes used in the first and in the last third of the blocks, if they used
/// clearly more in one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LoadChange {
    early: f64,
    late: f64,
    cpus: usize,
}

impl LoadChange {
    pub(super) fn from_record(record: &Comparison) -> Option<Self> {
        let third = record.blocks / 3;
        let load = |is_in: &dyn Fn(usize) -> bool| {
            let runs = runs_alone(record).filter(|run| run.phase == Phase::Confirmation);
            foreign_cpus(runs.filter(|run| is_in(run.block)))
        };
        let early = load(&|block| block < third)?;
        let late = load(&|block| block >= record.blocks - third)?;
        let cpus = record.host.counts.cpus.max(1);
        let is_change = (late - early).abs() > FOREIGN_CPUS.max(FOREIGN_SHARE * cpus as f64);
        is_change.then_some(Self { early, late, cpus })
    }

    pub(super) fn is_more(&self) -> bool {
        self.late > self.early
    }

    /// `0.2 of 2 CPUs in the first third, 1.6 in the last`.
    pub(super) fn describe(&self) -> String {
        let Self { early, late, cpus } = self;
        format!("{early:.1} of {cpus} CPUs in the first third, {late:.1} in the last")
    }
}

#[cfg(test)]
mod tests {
    use super::super::caveats;
    use super::*;

    #[test]
    fn drift_with_changing_load_is_attributed_to_the_load() {
        let mut record: Comparison = serde_json::from_str(include_str!(
            "../../../../tests/data/records/comparison.json"
        ))
        .unwrap();
        assert_eq!(LoadChange::from_record(&record), None);
        let blocks = record.blocks;
        for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
            let load = if run.block < blocks / 2 { 0.2 } else { 1.6 };
            run.foreign_cpu_s = Some(load * run.wall_s);
        }
        let change = LoadChange::from_record(&record).unwrap();
        assert!(change.is_more());
        let cpus = record.host.counts.cpus;
        let words = format!("0.2 of {cpus} CPUs in the first third, 1.6 in the last");
        assert_eq!(change.describe(), words);
        record.contrasts[0].by_time = Some(pinwise_record::SplitRecord {
            first: 1.03,
            second: 1.2,
        });
        let found = caveats::list_contrast_caveats(&record.contrasts[0], &record);
        let found = found.iter().find(|found| found.check == "depends_on_time");
        let found = found.unwrap();
        assert!(found.sentence.contains(&words), "{}", found.sentence);
        assert!(!found.advice.contains("--warmup"), "{}", found.advice);
    }
}
