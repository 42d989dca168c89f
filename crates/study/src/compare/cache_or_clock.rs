//! On machines whose last-level caches and cores differ: does the program gain more from the larger
//! cache or from the faster cores? All intervals against the baseline hold at once: two that do not
//! overlap mean that their arms differ.

use pinwise_record::{Arm, Comparison, ContrastVerdict, Finding, Severity};

/// The answer; `None` unless both placements were measured.
pub(super) fn compare_cache_and_clock(record: &Comparison) -> Option<Finding> {
    let (cache, clock) = (
        find_arm(record, "largest-llc")?,
        find_arm(record, "best-core")?,
    );
    let cache_cost = cost_over_baseline(record, cache)?;
    let clock_cost = cost_over_baseline(record, clock)?;
    let answer = if cache_cost.high < clock_cost.low {
        "from the larger cache than from faster cores"
    } else if clock_cost.high < cache_cost.low {
        "from faster cores than from the larger cache"
    } else if cache_cost.is_same && clock_cost.is_same {
        return Some(note(
            "Neither the larger cache nor faster cores make a difference to this program."
                .to_owned(),
            String::new(),
        ));
    } else {
        let (cache, clock) = (&cache.placement.name, &clock.placement.name);
        return Some(note(
            "Whether this program gains more from the larger cache or from faster cores is undecided."
                .to_owned(),
            format!("Compare the two alone: --place {cache} --place {clock}"),
        ));
    };
    let (cache, clock) = (&cache.name, &clock.name);
    let sentence = format!("This program gains more {answer} ({cache} against {clock}).");
    Some(note(sentence, String::new()))
}

fn note(sentence: String, advice: String) -> Finding {
    Finding::new("cache_or_clock", Severity::Note, sentence, advice)
}

fn find_arm<'a>(record: &'a Comparison, placement: &str) -> Option<&'a Arm> {
    let mut arms = record.arms.iter();
    arms.find(|arm| {
        let name = &arm.placement.name;
        name.split(['*', '/']).next() == Some(placement)
    })
}

/// Interval of an arm's cost divided by the baseline's.
struct CostRatio {
    low: f64,
    high: f64,
    is_same: bool,
}

fn cost_over_baseline(record: &Comparison, arm: &Arm) -> Option<CostRatio> {
    if arm.name == record.baseline {
        return Some(CostRatio {
            low: 1.0,
            high: 1.0,
            is_same: true,
        });
    }
    let mut contrasts = record.contrasts.iter();
    let contrast = contrasts.find(|contrast| contrast.arm == arm.name)?;
    // A caveat that withholds the arm's verdict leaves this question open, too.
    let is_sure = !contrast.is_withheld();
    let end = |end: Option<f64>, unknown: f64| end.filter(|_| is_sure).unwrap_or(unknown);
    Some(CostRatio {
        low: end(contrast.low, 0.0),
        high: end(contrast.high, f64::INFINITY),
        is_same: contrast.verdict == ContrastVerdict::Same,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::ContrastRecord;

    /// The finding on a record in which the two arms have these intervals.
    fn conclusion(cache: (f64, f64), clock: (f64, f64), change: fn(&mut ContrastRecord)) -> String {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        assert_eq!(compare_cache_and_clock(&record), None);
        let mut contrast = record.contrasts[0].clone();
        let baseline = record.baseline.clone();
        let mut others = record.arms.iter_mut().filter(|arm| arm.name != baseline);
        record.contrasts.clear();
        for (name, (low, high)) in [("largest-llc/mem=local", cache), ("best-core*4", clock)] {
            let arm = others.next().unwrap();
            arm.placement.name = name.to_owned();
            contrast.arm.clone_from(&arm.name);
            (contrast.low, contrast.high) = (Some(low), Some(high));
            change(&mut contrast);
            record.contrasts.push(contrast.clone());
        }
        let finding = compare_cache_and_clock(&record).unwrap();
        format!("{} {}", finding.sentence, finding.advice)
    }

    #[test]
    fn the_question_is_decided_only_by_intervals_that_do_not_overlap() {
        let (fast, slow) = ((0.7, 0.8), (0.9, 1.1));
        let cache = conclusion(fast, slow, |_| {});
        let words = "This program gains more from the larger cache than from faster cores";
        assert!(cache.starts_with(words), "{cache}");
        let clock = conclusion(slow, fast, |_| {});
        assert!(clock.contains("more from faster cores than"), "{clock}");
        let both = conclusion((0.7, 0.95), slow, |_| {});
        let advice = "--place largest-llc/mem=local --place best-core*4";
        assert!(both.ends_with(advice), "{both}");
        let doubtful = conclusion(fast, slow, |contrast| contrast.depends_on_time = true);
        assert!(doubtful.contains("is undecided"), "{doubtful}");
        let same = conclusion((0.99, 1.01), (0.99, 1.01), |contrast| {
            contrast.verdict = ContrastVerdict::Same;
        });
        assert!(same.starts_with("Neither"), "{same}");
    }
}
