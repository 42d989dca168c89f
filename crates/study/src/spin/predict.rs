//! Predicts the spinning of many algorithms on many numbers of CPUs, as one record.
//!
//! All figures come from `pinwise_spin::prediction`; nothing is measured here.

use std::ops::RangeInclusive;

use pinwise_record::{
    Answer, CliffsRecord, Header, MoveRecord, PredictionRecord, ProcessorRecord, SpinPredictRecord,
};
use pinwise_spin::algorithm::Algorithm;
use pinwise_spin::prediction::{Hints, PauseCost, Prediction, find_cliffs};

/// What to predict.
#[derive(Debug, Clone)]
pub struct PredictionPlan {
    /// The algorithms.
    pub algorithms: Vec<&'static Algorithm>,
    /// The processor; if two are compared, the one that a program moves to.
    pub processor: ProcessorRecord,
    /// The processor that a program moves from, if two are compared.
    pub from: Option<ProcessorRecord>,
    /// Numbers of CPUs, ascending.
    pub cpus: Vec<u64>,
}

/// Predicts each algorithm on each number of CPUs.
#[must_use]
pub fn run(plan: &PredictionPlan) -> SpinPredictRecord {
    let processor = plan.processor.to_pause_cost();
    let mut predictions = Vec::new();
    for algorithm in &plan.algorithms {
        for &cpus in &plan.cpus {
            let prediction = Prediction::new(algorithm, &processor, cpus);
            predictions.push(PredictionRecord::new(&prediction, &processor));
        }
    }
    let mut record = SpinPredictRecord {
        header: Header::default(),
        processor: plan.processor.clone(),
        from: plan.from.clone(),
        predictions,
        moves: plan.from.as_ref().map_or_else(Vec::new, |from| {
            predict_moves(plan, &from.to_pause_cost(), &processor)
        }),
        cliffs: list_cliffs(plan, processor.pause_ns),
        answer: Answer::default(),
    };
    record.conclude();
    record
}

/// What a move between two processors changes, the largest change first.
fn predict_moves(plan: &PredictionPlan, from: &PauseCost, to: &PauseCost) -> Vec<MoveRecord> {
    let mut moves: Vec<MoveRecord> = Vec::new();
    for algorithm in &plan.algorithms {
        for &cpus in &plan.cpus {
            let before = Prediction::new(algorithm, from, cpus);
            let after = Prediction::new(algorithm, to, cpus);
            let ms = |hints: Option<Hints>| hints.map(|hints| hints.ns * 1e-6);
            let (from_ms, to_ms) = (ms(before.total), ms(after.total));
            let ratio = from_ms.zip(to_ms).map(|(from, to)| to / from);
            moves.push(MoveRecord {
                algorithm: algorithm.id.to_owned(),
                cpus,
                from_ms,
                to_ms,
                ratio: ratio.filter(|ratio| ratio.is_finite()),
                from_blind_gap_ms: ms(before.blind_gap),
                to_blind_gap_ms: ms(after.blind_gap),
                immune: algorithm.is_immune(),
            });
        }
    }
    let change_ms = |row: &MoveRecord| match (row.immune, row.from_ms.zip(row.to_ms)) {
        (false, Some((from, to))) => (to - from).abs(),
        _ => -1.0,
    };
    moves.sort_by(|a, b| change_ms(b).total_cmp(&change_ms(a)));
    moves
}

/// The numbers of CPUs at which an algorithm's total changes; none if only one number was
/// requested.
fn list_cliffs(plan: &PredictionPlan, hint_ns: f64) -> Vec<CliffsRecord> {
    let (Some(&first), Some(&last)) = (plan.cpus.first(), plan.cpus.last()) else {
        return Vec::new();
    };
    if first == last {
        return Vec::new();
    }
    let range: RangeInclusive<u64> = first..=last;
    let find = |algorithm: &&'static Algorithm| CliffsRecord {
        algorithm: algorithm.id.to_owned(),
        from_cpus: first,
        to_cpus: last,
        changes_at: find_cliffs(algorithm, hint_ns, range.clone()),
    };
    plan.algorithms.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_spin::chips::chip;
    use pinwise_spin::table::{NETFX_AWARELOCK, algorithms, find_algorithm};

    fn describe_chip(name: &str) -> ProcessorRecord {
        let chip = chip(name).unwrap();
        let processor = PauseCost::from_chip(chip, None);
        ProcessorRecord {
            name: chip.name.to_owned(),
            pause_ns: processor.pause_ns,
            pause_cycles: processor.pause_cycles,
            ghz: processor.ghz,
            ..ProcessorRecord::default()
        }
    }

    #[test]
    fn moves_have_the_largest_change_first_and_immune_algorithms_last() {
        let plan = PredictionPlan {
            algorithms: algorithms().collect(),
            processor: describe_chip("skylake-sp"),
            from: Some(describe_chip("broadwell")),
            cpus: vec![24],
        };
        let record = run(&plan);
        let first = &record.moves[0];
        assert_eq!(first.algorithm, "netfx_awarelock");
        assert!((first.ratio.unwrap() - 14.76).abs() < 0.01, "{first:?}");
        assert_eq!(record.moves.len(), 44);
        assert!(record.cliffs.is_empty());
        let at = |id: &str| record.moves.iter().position(|row| row.algorithm == id);
        assert!(at("go_mutex") < at("coreclr_monitor"));
    }

    #[test]
    fn cliffs_are_found_where_totals_change_with_cpus() {
        let plan = PredictionPlan {
            algorithms: vec![&NETFX_AWARELOCK, find_algorithm("rust_std_mutex").unwrap()],
            processor: describe_chip("skylake-sp"),
            from: None,
            cpus: (1..=128).collect(),
        };
        let record = run(&plan);
        assert_eq!(record.predictions.len(), 256);
        assert_eq!(record.cliffs[0].changes_at, [2, 6, 17, 50]);
        assert!(record.cliffs[1].changes_at.is_empty());
    }
}
