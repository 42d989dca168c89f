//! Whether the system's report of the machine is right, in a sentence.

use super::{Agreement, LevelName, LevelVerdict, Measured};
use pinwise_format::{capitalise, join_words};

/// Limits the groups that the answer names.
const MAX_NAMED: usize = 4;

impl Measured {
    /// The verdict over all levels: contradicted if one is, inconclusive if one is or none was judged.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        let has = |wanted| self.verdicts.iter().any(|v| v.verdict == wanted);
        match () {
            () if has(Agreement::Contradicted) => Agreement::Contradicted,
            () if has(Agreement::CannotTell) || !has(Agreement::Agrees) => Agreement::CannotTell,
            () => Agreement::Agrees,
        }
    }

    /// Is the system's report right? The sentence for [`Self::answer`]. The CPUs of a virtual machine
    /// may move later: unless they were watched, it says no more than was seen.
    #[must_use]
    pub fn answer_sentence(&self, is_virtual: bool) -> String {
        let with_verdict = |wanted: Agreement| {
            let verdicts = self.verdicts.iter();
            verdicts.filter(move |verdict| verdict.verdict == wanted)
        };
        // No report claims that the wiring stays.
        let is_claimed = |verdict: &&LevelVerdict| verdict.level != LevelName::Placement;
        let list_nouns = |wanted| -> Vec<&str> {
            let claimed = with_verdict(wanted).filter(is_claimed);
            let nouns = claimed.map(|verdict| verdict.level.noun());
            nouns.collect()
        };
        let mut contradicted = with_verdict(Agreement::Contradicted);
        if let Some(first) = contradicted.next() {
            let others: Vec<&str> = contradicted.map(|verdict| verdict.level.noun()).collect();
            let others = match others.is_empty() {
                true => String::new(),
                false => format!(" Contradicted, too: {}.", others.join(", ")),
            };
            let found = self.describe_found(&first.level);
            let found = found.unwrap_or_else(|| first.measured.clone());
            if first.level == LevelName::Placement {
                return format!("The kernel's picture does not hold: {found}{others}");
            }
            return format!(
                "The kernel's picture is contradicted ({}): {found}{others}",
                first.level.noun(),
            );
        }
        let (mut right, mut open) = (
            list_nouns(Agreement::Agrees),
            list_nouns(Agreement::CannotTell),
        );
        right.dedup();
        open.dedup();
        // Smaller caches may be as reported even if the largest one is not known.
        let caches = LevelName::Cache.noun();
        let doubt = with_verdict(Agreement::CannotTell).find(|v| v.level == LevelName::Cache);
        let doubt = doubt.filter(|_| right.iter().any(|noun| *noun != caches));
        if doubt.is_some() {
            right.retain(|noun| *noun != caches);
            open.retain(|noun| *noun != caches);
        }
        // What agrees in part alone confirms nothing.
        right.retain(|noun| !open.contains(noun));
        if right.is_empty() {
            let why = self.cannot_tell.as_deref();
            let why = why.or_else(|| {
                Some(
                    with_verdict(Agreement::CannotTell)
                        .find(is_claimed)?
                        .measured
                        .as_str(),
                )
            });
            let why = why.unwrap_or("nothing could be compared.");
            return format!("Whether the kernel's picture is right cannot be told here: {why}");
        }
        // Watched, but too short to say that the wiring stays.
        let is_open = with_verdict(Agreement::CannotTell).any(|v| !is_claimed(&v));
        let now = match is_virtual && (self.drift.is_none() || is_open) {
            true => " at this moment",
            false => "",
        };
        let confirmed = format!("{} are as reported{now}", join_words(&right));
        let open = match open.is_empty() {
            true => String::new(),
            false => format!("; {} could not be confirmed", join_words(&open)),
        };
        match (doubt, open.as_str(), now) {
            (Some(doubt), ..) => format!(
                "{}{open}. Not confirmed are {caches}: {}",
                capitalise(&confirmed),
                doubt.measured
            ),
            (None, "", "") => format!("The kernel's picture is right: {confirmed}."),
            (None, "", _) => format!("The kernel's picture is not contradicted: {confirmed}."),
            (None, open, _) => format!("{}{open}.", capitalise(&confirmed)),
        }
    }

    /// The groups that were found at a level, as a sentence; `None` if there are none.
    fn describe_found(&self, level: &LevelName) -> Option<String> {
        let shared = match level {
            LevelName::Smt => "core",
            LevelName::Llc => "last-level cache",
            LevelName::Package => "package",
            _ => return None,
        };
        let groups = &self
            .levels
            .iter()
            .find(|found| found.kind == *level)?
            .groups;
        let named: Vec<String> = groups
            .iter()
            .take(MAX_NAMED)
            .map(|g| format!("{{{g}}}"))
            .collect();
        let more = if groups.len() > MAX_NAMED { " …" } else { "" };
        let named = named.join(" ");
        (!groups.is_empty()).then(|| format!("CPUs {named}{more} share a {shared}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_for(verdicts: &[(LevelName, Agreement)]) -> String {
        measure(verdicts).answer_sentence(false)
    }

    fn measure(verdicts: &[(LevelName, Agreement)]) -> Measured {
        let verdicts = verdicts.iter().map(|(level, verdict)| LevelVerdict {
            level: level.clone(),
            verdict: *verdict,
            alone: None,
            claim: String::new(),
            measured: "CPUs 0 and 1 share a core.".to_owned(),
            confidence: 0.9,
            advice: String::new(),
        });
        Measured {
            verdicts: verdicts.collect(),
            ..Measured::default()
        }
    }

    #[test]
    fn one_look_at_a_virtual_machine_calls_nothing_right() {
        let mut measured = measure(&[(LevelName::Smt, Agreement::Agrees)]);
        let seen = "The kernel's picture is not contradicted: SMT siblings are as reported at this moment.";
        assert_eq!(measured.answer_sentence(true), seen);
        measured.drift = Some(super::super::DriftRecord::default());
        assert!(measured.answer_sentence(true).contains("is right"));
        // Too short a watch.
        let open = [
            (LevelName::Smt, Agreement::Agrees),
            (LevelName::Placement, Agreement::CannotTell),
        ];
        measured.verdicts = measure(&open).verdicts;
        assert_eq!(measured.answer_sentence(true), seen);
    }

    #[test]
    fn no_report_states_that_the_wiring_stays() {
        let smt = (LevelName::Smt, Agreement::Agrees);
        for stays in [Agreement::Agrees, Agreement::CannotTell] {
            let answer = answer_for(&[smt.clone(), (LevelName::Placement, stays)]);
            let expected = "The kernel's picture is right: SMT siblings are as reported.";
            assert_eq!(answer, expected);
        }
    }

    #[test]
    fn one_contradicted_level_contradicts_the_report() {
        use Agreement::{Agrees, CannotTell, Contradicted};
        let agreement = |verdicts: &[Agreement]| {
            let levels: Vec<_> = verdicts.iter().map(|v| (LevelName::Llc, *v)).collect();
            measure(&levels).agreement()
        };
        assert_eq!(agreement(&[]), CannotTell);
        assert_eq!(agreement(&[Agrees, Agrees]), Agrees);
        assert_eq!(agreement(&[Agrees, CannotTell]), CannotTell);
        assert_eq!(agreement(&[CannotTell, Contradicted, Agrees]), Contradicted);
    }

    #[test]
    fn answer_says_right_contradicted_or_inconclusive() {
        use Agreement::{Agrees, CannotTell, Contradicted};
        let (smt, llc) = (LevelName::Smt, LevelName::Llc);
        assert_eq!(
            answer_for(&[(smt.clone(), Agrees), (llc.clone(), CannotTell)]),
            "SMT siblings are as reported; last-level caches could not be confirmed."
        );
        assert_eq!(
            answer_for(&[(llc.clone(), Agrees), (smt.clone(), Contradicted)]),
            "The kernel's picture is contradicted (SMT siblings): CPUs 0 and 1 share a core."
        );
        assert_eq!(
            answer_for(&[(LevelName::Placement, Contradicted)]),
            "The kernel's picture does not hold: CPUs 0 and 1 share a core."
        );
        let caches = LevelName::Cache;
        assert_eq!(
            answer_for(&[
                (LevelName::Smt, Agrees),
                (caches.clone(), Agrees),
                (caches, CannotTell)
            ]),
            "SMT siblings are as reported. Not confirmed are cache sizes: CPUs 0 and 1 share a core."
        );
        // What is confirmed in part alone is not called as reported.
        let part = answer_for(&[
            (LevelName::Cache, Agrees),
            (LevelName::Cache, CannotTell),
            (LevelName::Smt, CannotTell),
        ]);
        assert!(part.contains("cannot be told here"), "{part}");
        let open = answer_for(&[(llc, CannotTell)]);
        assert!(open.contains("cannot be told here: CPUs 0"), "{open}");
        let none = answer_for(&[]);
        assert!(none.ends_with("nothing could be compared."), "{none}");
    }
}
