//! What a replay says: how late a released lock is noticed, and how late that was predicted.

use super::{ReplayCell, ReplayExperiment, ReplayedAlgorithm, SpinReplayRecord};
use crate::Answer;
use crate::spin::first_name;
use pinwise_format::{count_of, grouped, percent, seconds, three_digits};

/// Fewer good items than this have no median worth its name.
const MIN_ITEMS: u64 = 5;
const NOTICES: &str = "notices a released lock ";

impl SpinReplayRecord {
    /// Fills in the answer from its results.
    pub fn conclude(&mut self) {
        let cells = || self.algorithms.iter().flat_map(|one| &one.cells);
        let is_unsure = cells().any(|cell| cell.items < MIN_ITEMS);
        let advice = match is_unsure {
            true => format!(
                "Repeat it while the machine is idle: pinwise spin replay --experiment {} --realtime",
                self.experiment
            ),
            false => {
                "Get settings that bound the spin on this machine: pinwise spin advise".to_owned()
            }
        };
        let mut worst: Vec<WorstCell<'_>> = self
            .algorithms
            .iter()
            .filter_map(|one| self.find_worst_cell(one))
            .collect();
        worst.sort_by(|a, b| a.late_us.total_cmp(&b.late_us));
        let described = match worst.as_slice() {
            [] => None,
            [only] => Some(only.describe(NOTICES, self.wake_ns)),
            [best, .., last] => {
                let last = last.describe(NOTICES, self.wake_ns);
                Some(format!("{last}; {}", best.describe("", None)))
            }
        };
        let sentence = match described {
            // Contention has no prediction.
            None => self.conclusions.first().cloned().unwrap_or_default(),
            Some(described) => format!("{}{described}.", describe_few(cells())),
        };
        self.answer = Answer { sentence, advice };
    }

    /// The cell of an algorithm with the greatest lateness; what was not measured counts as predicted.
    fn find_worst_cell<'a>(&self, one: &'a ReplayedAlgorithm) -> Option<WorstCell<'a>> {
        let late_us = |cell: &ReplayCell| {
            let measured = cell.measured.as_ref().map(|measured| measured.lateness_us);
            measured.or(cell.predicted.lateness_us)
        };
        let known = one
            .cells
            .iter()
            .filter_map(|cell| Some((cell, late_us(cell)?)));
        let cells = known.clone().count();
        let (cell, late_us) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let compared = one.cells.iter().filter_map(compare_with_prediction);
        Some(WorstCell {
            name: first_name(&one.name, &one.algorithm),
            cell,
            late_us,
            when: match cells {
                1 => String::new(),
                _ if self.experiment == ReplayExperiment::Handoff => {
                    format!(" (held for {} ms)", cell.hold_ms)
                }
                _ => format!(" (delay {} ms)", cell.delay_ms),
            },
            worst_predicted: compared.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs())),
        })
    }
}

struct WorstCell<'a> {
    name: &'a str,
    cell: &'a ReplayCell,
    late_us: f64,
    /// Which of several cells it is.
    when: String,
    /// How many times as late as predicted the cell is that differs most from it.
    worst_predicted: Option<f64>,
}

/// Times that differ by no more than this factor agree.
const NEAR: f64 = 1.1;

/// Does a ratio differ notably from 1, and by notably more than another does?
fn is_off_by_more(ratio: f64, other: f64) -> bool {
    ratio.ln().abs() > other.ln().abs() + NEAR.ln()
}

/// How many times as late as predicted a lock was noticed; `None` if one of the two is unknown.
fn compare_with_prediction(cell: &ReplayCell) -> Option<f64> {
    let predicted_us = cell.predicted.lateness_us.filter(|us| *us > 0.0)?;
    Some(cell.measured.as_ref()?.lateness_us / predicted_us)
}

impl WorstCell<'_> {
    /// How late it is, beside a waiter that parks, if what waking one takes is known, and beside
    /// the prediction.
    fn describe(&self, verb: &str, wake_ns: Option<f64>) -> String {
        let late = seconds(self.late_us * 1e-6);
        let wake = wake_ns.map_or_else(String::new, |ns| {
            let (times, wake) = (self.late_us * 1e3 / ns, seconds(ns * 1e-9));
            match times < NEAR {
                true => format!(", no later than by waking a parked thread ({wake})"),
                false => format!(
                    ", {} times what waking a parked thread takes ({wake})",
                    three_digits(times)
                ),
            }
        });
        let typically = match self.cell.items {
            _ if self.cell.measured.is_none() => "predictably ".to_owned(),
            few if few < MIN_ITEMS => format!("in {} ", count_of(few, "item", "items")),
            _ => "typically ".to_owned(),
        };
        let beside = self.describe_prediction().unwrap_or_default();
        let Self { name, when, .. } = self;
        format!("{name} {verb}{typically}{late} late{when}{wake}{beside}")
    }

    fn describe_prediction(&self) -> Option<String> {
        let ratio = compare_with_prediction(self.cell)?;
        let predicted = seconds(self.cell.predicted.lateness_us? * 1e-6);
        Some(match (ratio, self.worst_predicted) {
            (_, Some(most)) if is_off_by_more(most, ratio) => {
                let times = most.max(1.0 / most);
                format!(
                    "; {predicted} predicted, other predictions are off by up to {times:.1} times"
                )
            }
            (more, _) if more >= NEAR => format!("; {more:.1} times the predicted {predicted}"),
            (less, _) if less * NEAR < 1.0 => {
                format!("; {} of the predicted {predicted}", percent(less))
            }
            _ => format!("; as predicted ({predicted})"),
        })
    }
}

/// How few of the items behind medians of too few are good; empty if enough are.
fn describe_few<'a>(cells: impl Iterator<Item = &'a ReplayCell>) -> String {
    let few = cells.filter(|cell| cell.measured.is_some() && cell.items < MIN_ITEMS);
    let (good, all) = few.fold((0, 0), |(good, all), cell| {
        let items = cell.items;
        (good + items, all + items + cell.switched + cell.stopped)
    });
    match good {
        0 => String::new(),
        _ => format!(
            "Not measured well, {} of {} undisturbed: ",
            grouped(good),
            count_of(all, "item", "items")
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::{SpinReplayRecord, read};

    fn replayed() -> SpinReplayRecord {
        let text = include_str!("../../../../../tests/data/records/spin-replay.json");
        let mut record: SpinReplayRecord = read(text).unwrap();
        let cells = &mut record.algorithms[0].cells;
        for (cell, late_us) in cells.iter_mut().zip([228.0, 566.0]) {
            cell.measured.as_mut().unwrap().lateness_us = late_us;
            cell.predicted.lateness_us = Some(if late_us < 500.0 { 220.0 } else { 466.0 });
            (cell.items, cell.switched, cell.stopped) = (40, 0, 0);
        }
        record
    }

    fn conclude(record: &mut SpinReplayRecord) -> (&str, &str) {
        record.conclude();
        (&record.answer.sentence, &record.answer.advice)
    }

    #[test]
    fn the_greatest_lateness_is_beside_its_prediction() {
        let (sentence, advice) = (&mut replayed(), "pinwise spin advise");
        let (sentence, given) = conclude(sentence);
        assert_eq!(
            sentence,
            ".NET Framework Monitor notices a released lock typically 566 µs late (delay 5 ms), 15.6 times what waking a parked thread takes (36.4 µs); 1.2 times the predicted 466 µs."
        );
        assert!(given.ends_with(advice), "{given}");
        let mut record = replayed();
        for (late_us, end) in [
            (470.0, "; as predicted (466 µs)."),
            (233.0, "; 50.0 % of the predicted 466 µs."),
        ] {
            let measured = record.algorithms[0].cells[1].measured.as_mut();
            measured.unwrap().lateness_us = late_us;
            let (sentence, _) = conclude(&mut record);
            assert!(sentence.ends_with(end), "{sentence}");
        }
        record.algorithms[0].cells[0].predicted.lateness_us = Some(684.0);
        let (sentence, _) = conclude(&mut record);
        let end = "; 466 µs predicted, other predictions are off by up to 3.0 times.";
        assert!(sentence.ends_with(end), "{sentence}");
    }

    #[test]
    fn of_several_algorithms_the_worst_comes_first_and_then_the_best() {
        let mut record = replayed();
        for (name, late_us) in [("middle", 300.0), ("quick", 30.0)] {
            let mut other = record.algorithms[0].clone();
            name.clone_into(&mut other.name);
            for cell in &mut other.cells {
                cell.measured.as_mut().unwrap().lateness_us = late_us;
            }
            record.algorithms.push(other);
        }
        let (sentence, _) = conclude(&mut record);
        assert!(
            sentence.starts_with(".NET Framework Monitor notices"),
            "{sentence}"
        );
        assert!(
            sentence.contains("; quick typically 30.0 µs late (delay 5 ms); 6.4 % of "),
            "{sentence}"
        );
        assert!(!sentence.contains("middle"), "{sentence}");
    }

    #[test]
    fn a_value_of_few_items_is_no_median() {
        let mut record = replayed();
        let cell = &mut record.algorithms[0].cells[1];
        (cell.items, cell.switched, cell.stopped) = (1, 34, 5);
        let (sentence, advice) = conclude(&mut record);
        assert_eq!(
            sentence,
            "Not measured well, 1 of 40 items undisturbed: .NET Framework Monitor notices a released lock in 1 item 566 µs late (delay 5 ms), 15.6 times what waking a parked thread takes (36.4 µs); 1.2 times the predicted 466 µs."
        );
        assert!(advice.contains("--experiment producer-consumer --realtime"));
    }

    #[test]
    fn what_was_not_measured_is_predicted() {
        let mut record = replayed();
        for cell in &mut record.algorithms[0].cells {
            (cell.measured, cell.items, cell.stopped) = (None, 0, 40);
        }
        let (sentence, advice) = conclude(&mut record);
        assert!(
            sentence.contains(" a released lock predictably 466 µs late (delay 5 ms), 12.8 times "),
            "{sentence}"
        );
        assert!(advice.starts_with("Repeat it"), "{advice}");
        record.algorithms.clear();
        record.conclusions = vec!["So it is.".to_owned()];
        assert_eq!(conclude(&mut record).0, "So it is.");
    }
}
