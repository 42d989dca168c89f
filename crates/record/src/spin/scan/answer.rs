//! What a scan says: do loops check too seldom, and against a limit, do they pass.

use super::{ScannedLoop, SpinScan};
use crate::Answer;
use pinwise_format::{capitalise, count, grouped, nanoseconds, shell};

/// Loops that can go for longer without a check, ns, check too seldom: below, a waiter loses less
/// than what a wake-up costs.
const MAX_GAP_NS: f64 = 1_000.0;
/// The most failing loops that the verdict lists.
const MAX_FAILING_LOOPS: usize = 4;
/// The longest name of a function, in characters.
const MAX_NAME: usize = 60;
/// The id of this machine among the chips.
const HERE: &str = "here";

const NO_HINTS: &str =
    "no loop has a spin-wait hint (PAUSE, YIELD). Loops that spin without one are not looked for.";

impl SpinScan {
    /// Fills in the answer from its loops.
    pub fn conclude(&mut self) {
        let sentence = match self.max_blind_gap_ns {
            _ if self.loops.is_empty() => {
                let gate = self.max_blind_gap_ns.map_or("", |_| "Nothing to judge: ");
                capitalise(&format!("{gate}{NO_HINTS}"))
            }
            Some(limit_ns) => self.judge(limit_ns),
            None => self.describe_longest_gap(),
        };
        // A library runs in a program.
        let mut files = self.binaries.iter().map(|file| &file.path);
        let target = match files.find(|path| !path.contains(".so")) {
            Some(program) => format!("-- {}", shell::word(program)),
            None => "--pid PID".to_owned(),
        };
        let advice =
            format!("See whether it spins, and for how long: pinwise spin attach {target}");
        self.answer = Answer { sentence, advice };
    }

    /// The loop that checks least often, as far as that is known: an unknown gap may be longer.
    fn describe_longest_gap(&self) -> String {
        let known: Vec<(&ScannedLoop, f64)> = self
            .loops
            .iter()
            .filter_map(|one| Some((one, one.longest_gap_ns()?)))
            .collect();
        let unknown: Vec<&ScannedLoop> = self.loops.iter().filter(|one| one.is_unknown()).collect();
        let all = self.loops.len();
        let Some((slowest, _)) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return match self.loops.as_slice() {
                [only] => format!(
                    "How often {}, the only loop with spin-wait hints, checks is not in its code.",
                    only.name()
                ),
                _ => format!(
                    "How often the {} with spin-wait hints check is not in their code.",
                    count(all, "loop")
                ),
            };
        };
        let (name, gap) = (slowest.name(), self.describe_gap(slowest));
        let seldom = known.iter().filter(|one| one.1 > MAX_GAP_NS).count();
        let result = match (seldom, unknown.len()) {
            (0, 0) if all == 1 => format!(
                "The only loop with spin-wait hints, {name}, checks often enough: every {gap}"
            ),
            (0, 0) => format!(
                "No loop with spin-wait hints checks too seldom: of {}, {name} checks least often, every {gap}",
                grouped(all as u64)
            ),
            (0, _) => format!(
                "No loop with spin-wait hints is known to check too seldom: of those known, {name} checks least often, every {gap}"
            ),
            (1, _) if all == 1 => {
                format!("The only loop with spin-wait hints checks too seldom: {name}, every {gap}")
            }
            (1, _) => format!(
                "1 of {} with spin-wait hints checks too seldom: {name}, every {gap}",
                count(all, "loop")
            ),
            (many, _) => format!(
                "{} of {} with spin-wait hints check too seldom: {name} least often, every {gap}",
                grouped(many as u64),
                count(all, "loop")
            ),
        };
        let rest = match unknown.as_slice() {
            [] => String::new(),
            [only] => format!("; how often {} checks is not in its code", only.name()),
            many => format!(
                "; how often {} others check is not in their code",
                grouped(many.len() as u64)
            ),
        };
        format!("{result}{rest}.")
    }

    /// The gap of a loop on this machine or its model, and the range on other chips.
    fn describe_gap(&self, one: &ScannedLoop) -> String {
        let mut gaps = one.list_gaps();
        let own = gaps.iter().position(|gap| gap.1 == HERE);
        let model = || {
            let model = self.assumed_as.as_deref()?;
            gaps.iter().position(|gap| gap.1 == model)
        };
        let own = own.or_else(model).map(|at| gaps.remove(at));
        gaps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let on = |gap: &(f64, &str)| format!("{} on {}", nanoseconds(gap.0), gap.1);
        let own = own.map(|gap| match gap.1 {
            HERE => format!("{} here", nanoseconds(gap.0)),
            _ => format!("{}, this machine's model", on(&gap)),
        });
        let others = match (gaps.first(), gaps.last()) {
            (Some(least), Some(most)) if gaps.len() > 1 => Some(match &own {
                Some(_) => format!(
                    "{} to {} on other chips",
                    nanoseconds(least.0),
                    nanoseconds(most.0)
                ),
                None => format!("{} to {}", on(least), on(most)),
            }),
            (only, _) => only.map(on),
        };
        let parts: Vec<String> = own.into_iter().chain(others).collect();
        parts.join("; ")
    }

    /// Whether the loops pass the limit.
    fn judge(&self, limit_ns: f64) -> String {
        let limit = nanoseconds(limit_ns);
        let failing: Vec<&ScannedLoop> = self
            .loops
            .iter()
            .filter(|one| one.fails == Some(true))
            .collect();
        let unknown = self.loops.iter().filter(|one| one.is_unknown()).count();
        let unknown_gaps = match unknown {
            0 => String::new(),
            1 => " The blind gap of 1 loop is unknown.".to_owned(),
            many => format!(" The blind gaps of {many} loops are unknown."),
        };
        if failing.is_empty() {
            let passed = match unknown {
                0 => "Passed",
                _ => "Unknown gaps aside, passed",
            };
            return format!("{passed}: no known blind gap is longer than {limit}.{unknown_gaps}");
        }
        let exceeds = |one: &&ScannedLoop| one.gaps.iter().any(|gap| gap.exceeds);
        let all = count(self.loops.len(), "loop");
        let shown = failing.iter().take(MAX_FAILING_LOOPS);
        let mut named: Vec<String> = shown.map(|one| self.describe_failure(one)).collect();
        if failing.len() > MAX_FAILING_LOOPS {
            named.push(format!("and {} more", failing.len() - MAX_FAILING_LOOPS));
        }
        let (many, named) = (failing.len(), named.join("; "));
        match failing.iter().any(exceeds) {
            true => format!(
                "Failed: {many} of {all} against a limit of {limit}: {named}.{unknown_gaps}"
            ),
            false => format!(
                "Unknown: {many} of {all} may look less often than every {limit}: {named}. No known blind gap is longer; --unknown pass lets these pass."
            ),
        }
    }

    /// Names a failing loop, and its gaps on the chips on which it fails.
    fn describe_failure(&self, one: &ScannedLoop) -> String {
        let file = self.binaries.get(one.binary).map_or("", |file| &file.path);
        let file = file.rsplit('/').next().unwrap_or(file);
        let chips: Vec<String> = one
            .gaps
            .iter()
            .filter(|gap| gap.exceeds)
            .filter_map(|gap| Some(format!("{} on {}", nanoseconds(gap.ns?), gap.chip)))
            .collect();
        let why = if one.has_deadline() {
            "until a deadline".to_owned()
        } else if chips.is_empty() {
            "not known from the code".to_owned()
        } else {
            chips.join(", ")
        };
        format!("{file} at {} ({why})", one.address)
    }
}

impl ScannedLoop {
    /// Do its hints last until a moment that the program computes?
    #[must_use]
    pub fn has_deadline(&self) -> bool {
        self.gap_from.as_deref() == Some("deadline")
    }

    /// Is its blind gap unknown on every chip?
    fn is_unknown(&self) -> bool {
        self.longest_gap_ns().is_none()
    }

    fn list_gaps(&self) -> Vec<(f64, &str)> {
        let gaps = self.gaps.iter();
        gaps.filter_map(|gap| Some((gap.ns?, gap.chip.as_str())))
            .collect()
    }

    fn longest_gap_ns(&self) -> Option<f64> {
        let gaps = self.gaps.iter().filter_map(|gap| gap.ns);
        gaps.max_by(f64::total_cmp)
    }

    /// Its function, else its address.
    fn name(&self) -> String {
        let Some(function) = &self.function else {
            return format!("the one at {}", self.address);
        };
        match function.char_indices().nth(MAX_NAME) {
            Some((end, _)) => format!("{}…", &function[..end]),
            None => function.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{GapOnChip, SpinScan, read};

    /// A record of one loop that checks this often, ns, on each chip.
    fn scan_with(gaps: &[(&str, f64)]) -> SpinScan {
        let text = include_str!("../../../../../tests/data/records/spin-scan.json");
        let mut record: SpinScan = read(text).unwrap();
        record.assumed_as = None;
        let gaps = gaps.iter().map(|&(chip, ns)| GapOnChip {
            chip: chip.to_owned(),
            ns: Some(ns),
            exceeds: false,
        });
        record.loops[0].gaps = gaps.collect();
        record
    }

    #[track_caller]
    fn check(record: &mut SpinScan, expected: &str) {
        record.conclude();
        assert_eq!(record.answer.sentence, expected);
    }

    #[test]
    fn the_figure_of_this_machine_is_called_so_only_if_it_was_measured() {
        let chips = [("broadwell", 3.39), ("zen-4", 18.6), ("skylake-sp", 50.1)];
        let start = "The only loop with spin-wait hints, wait_for, checks often enough: every";
        let measured = [&[("here", 24.4)], chips.as_slice()].concat();
        check(
            &mut scan_with(&measured),
            &format!("{start} 24.4 ns here; 3.39 ns to 50.1 ns on other chips."),
        );
        let mut record = scan_with(&chips);
        check(
            &mut record,
            &format!("{start} 3.39 ns on broadwell to 50.1 ns on skylake-sp."),
        );
        record.assumed_as = Some("zen-4".to_owned());
        check(
            &mut record,
            &format!(
                "{start} 18.6 ns on zen-4, this machine's model; 3.39 ns to 50.1 ns on other chips."
            ),
        );
    }

    #[test]
    fn loops_that_check_too_seldom_are_counted() {
        let mut record = scan_with(&[("here", 1001.0)]);
        check(
            &mut record,
            "The only loop with spin-wait hints checks too seldom: wait_for, every 1001 ns here.",
        );
        let mut worse = record.loops[0].clone();
        (worse.function, worse.gaps[0].ns) = (None, Some(16e6));
        record.loops.push(worse);
        check(
            &mut record,
            "2 of 2 loops with spin-wait hints check too seldom: the one at 0x1228 least often, every 16.0 ms here.",
        );
        record.loops[0].gaps[0].ns = Some(1000.0);
        check(
            &mut record,
            "1 of 2 loops with spin-wait hints checks too seldom: the one at 0x1228, every 16.0 ms here.",
        );
        record.loops[1].gaps[0].ns = Some(24.4);
        check(
            &mut record,
            "No loop with spin-wait hints checks too seldom: of 2, wait_for checks least often, every 1000 ns here.",
        );
    }

    #[test]
    fn no_loop_is_called_the_worst_while_others_are_unknown() {
        let mut record = scan_with(&[("here", 24.4)]);
        let mut unknown = record.loops[0].clone();
        "0x11ee".clone_into(&mut unknown.address);
        (unknown.function, unknown.gaps[0].ns) = (None, None);
        record.loops.push(unknown);
        check(
            &mut record,
            "No loop with spin-wait hints is known to check too seldom: of those known, wait_for checks least often, every 24.4 ns here; how often the one at 0x11ee checks is not in its code.",
        );
        record.loops.remove(0);
        check(
            &mut record,
            "How often the one at 0x11ee, the only loop with spin-wait hints, checks is not in its code.",
        );
    }

    #[test]
    fn a_verdict_with_unknown_gaps_begins_with_them() {
        let mut record = scan_with(&[("here", 24.4)]);
        let mut unknown = record.loops[0].clone();
        "0x11ee".clone_into(&mut unknown.address);
        (unknown.gap_hints, unknown.gap_from) = (None, None);
        unknown.gaps[0].ns = None;
        record.loops.push(unknown);
        (record.max_blind_gap_ns, record.passed) = (Some(1e6), Some(true));
        check(
            &mut record,
            "Unknown gaps aside, passed: no known blind gap is longer than 1.00 ms. The blind gap of 1 loop is unknown.",
        );
        record.loops[1].fails = Some(true);
        record.conclude();
        let sentence = &record.answer.sentence;
        assert!(sentence.starts_with("Unknown: 1 of 2 loops "), "{sentence}");
        let named = "0x11ee (not known from the code)";
        assert!(
            sentence.contains(named) && sentence.contains("--unknown pass"),
            "{sentence}"
        );
    }

    #[test]
    fn a_file_without_hints_is_not_called_free_of_loops_that_spin() {
        let mut record = scan_with(&[("here", 24.4)]);
        record.loops.clear();
        (record.max_blind_gap_ns, record.passed) = (Some(1000.0), Some(true));
        record.conclude();
        let sentence = &record.answer.sentence;
        let expected = "Nothing to judge: no loop has a spin-wait hint";
        assert!(sentence.starts_with(expected), "{sentence}");
        record.max_blind_gap_ns = None;
        record.conclude();
        assert!(record.answer.sentence.starts_with("No loop has"));
        "/lib/libgomp.so.1".clone_into(&mut record.binaries[0].path);
        record.conclude();
        assert!(record.answer.advice.ends_with("attach --pid PID"));
    }
}
