//! The sentences of a search.

use super::choice::{DEFAULT, LARGE_LOSS_FACTOR, Relevance, Standing, judge_relevance};
use super::state::Engine;
use crate::compare;
use pinwise_format::{count, percent};
use pinwise_record::{
    ConfirmationRecord, Finding, MetricRecord, NotRecommended, PairsVerdict, SearchAnswer,
    SearchStep, SearchVerdict, Severity, Stopped,
};

pub(super) const CONDITION: &str = "Conditional on this boot, this binary and this load; among \
                                    placements that give every thread a CPU of its own.";

/// How a search ended.
pub(super) struct SearchOutcome {
    /// The best arm, if one can be named.
    pub(super) best: Option<usize>,
    leader: Option<usize>,
    pub(super) confirmation: Option<ConfirmationRecord>,
    stopped: Option<Stopped>,
}

impl SearchOutcome {
    pub(super) fn from_engine(engine: &Engine<'_>, stopped: Option<Stopped>) -> Self {
        let zone = engine.zone();
        let leader = engine.standing.as_ref().map(|standing| standing.leader);
        let leader = leader.filter(|&arm| engine.invalid[arm].is_none());
        let confirmation = engine
            .pairs
            .as_ref()
            .map(|pairs| pairs.to_record(&engine.arms[pairs.arm], zone));
        if let Some(pairs) = engine.find_better_than_default() {
            return Self {
                best: Some(pairs.arm),
                leader,
                confirmation: Some(pairs.to_record(&engine.arms[pairs.arm], zone)),
                stopped,
            };
        }
        let verdict = confirmation.as_ref().map(|c| &c.verdict);
        let is_named = engine.is_settled || verdict == Some(&PairsVerdict::Faster);
        let best = leader.filter(|_| is_named).map(|leader| match verdict {
            // Fresh runs override the model.
            Some(PairsVerdict::Slower | PairsVerdict::Same | PairsVerdict::NotFaster) => DEFAULT,
            Some(PairsVerdict::Undecided | PairsVerdict::NotSlower)
                if !engine.still_beats_default(leader) =>
            {
                DEFAULT
            }
            _ => leader,
        });
        Self {
            best,
            leader,
            confirmation,
            stopped,
        }
    }

    pub(super) fn to_verdict(&self, engine: &Engine<'_>) -> SearchVerdict {
        let Conclusion {
            kind,
            sentence,
            advice,
        } = match (self.best, &self.confirmation) {
            (Some(DEFAULT), _) => self.conclude_default(engine),
            (Some(best), Some(confirmation))
                if matches!(
                    confirmation.verdict,
                    PairsVerdict::Faster | PairsVerdict::NotSlower
                ) =>
            {
                self.conclude_confirmed(engine, best, confirmation)
            }
            (Some(best), _) => self.conclude_unconfirmed(engine, best),
            (None, _) => self.conclude_undecided(engine),
        };
        let difference = engine.check_cpu_differences();
        let (sentence, advice) = match (engine.faster_elsewhere(), kind, difference) {
            (Some(other), SearchAnswer::Best, Some(difference)) => (
                format!("{sentence} {}", difference.sentence),
                format!("Use {}.", engine.arms[other].name),
            ),
            _ => (sentence, advice),
        };
        // If several numbers of threads are searched, `os-default` has one of them.
        let sentence = match engine.plan.threads.len() {
            0 | 1 => sentence,
            _ => format!(
                "{sentence} os-default has {}.",
                count(engine.plan.default_threads, "thread")
            ),
        };
        let placed = engine
            .faster_elsewhere()
            .or(self.best)
            .filter(|&arm| arm != DEFAULT);
        let (not_recommended, advice) =
            match placed.and_then(|arm| withhold_recommendation(engine, arm)) {
                Some((reason, sentence)) => (Some(reason), sentence),
                None => (None, advice),
            };
        SearchVerdict {
            kind,
            sentence,
            headline: None,
            beside: Vec::new(),
            advice,
            commands: Vec::new(),
            not_recommended,
            condition: CONDITION.to_owned(),
        }
    }

    fn conclude_default(&self, engine: &Engine<'_>) -> Conclusion {
        let within = percent(engine.zone().exp_m1());
        let advice = "Leave it alone.".to_owned();
        let fresh = match &self.confirmation {
            Some(confirmation) => format!(" {}", confirmation.sentence),
            None => String::new(),
        };
        let belief = engine.belief.as_ref();
        let relevance =
            belief.map(|belief| judge_relevance(belief, &engine.open_arms(), &engine.rule()));
        // If fresh pairs are undecided, placement may matter after all.
        let is_undecided = self.confirmation.as_ref().is_some_and(|confirmation| {
            matches!(
                confirmation.verdict,
                PairsVerdict::Undecided | PairsVerdict::Other(_)
            )
        });
        match relevance {
            Some(Relevance::HardlyMatters(typical)) if !is_undecided => Conclusion::new(
                SearchAnswer::DoesNotMatter,
                format!(
                    "Placement hardly matters: nothing is expected to beat os-default by \
                     {within}, and shapes typically differ from it by no more than {}.{fresh}",
                    percent(typical.exp_m1())
                ),
                advice,
            ),
            Some(Relevance::Matters(worst)) => Conclusion::new(
                SearchAnswer::LeaveAlone,
                format!(
                    "Nothing is expected to beat os-default by {within}, and {} is slower.{fresh}",
                    engine.arms[worst].title()
                ),
                advice,
            ),
            Some(Relevance::HardlyMatters(_) | Relevance::Unknown) | None => Conclusion::new(
                SearchAnswer::LeaveAlone,
                format!("Nothing is expected to beat os-default by {within}.{fresh}"),
                advice,
            ),
        }
    }

    fn conclude_confirmed(
        &self,
        engine: &Engine<'_>,
        best: usize,
        confirmation: &ConfirmationRecord,
    ) -> Conclusion {
        let name = &engine.arms[best].name;
        let within = percent(engine.zone().exp_m1());
        if engine.is_settled {
            let sentence = format!("{} {}", confirmation.sentence, describe_trials(engine));
            return Conclusion::new(SearchAnswer::Best, sentence, format!("Use {name}."));
        }
        let sentence = format!(
            "{} Whether another shape is better still by {within} is open (probability {}).",
            confirmation.sentence,
            format_probability(
                engine
                    .standing
                    .as_ref()
                    .map_or(1.0, Standing::probability_of_better)
            )
        );
        let advice = format!("Use {name}, or continue with {}.", more_effort(engine));
        Conclusion::new(SearchAnswer::Undecided, sentence, advice)
    }

    /// The model has a best arm, but fresh runs did not confirm it, or there were none.
    fn conclude_unconfirmed(&self, engine: &Engine<'_>, best: usize) -> Conclusion {
        let (name, title) = (&engine.arms[best].name, engine.arms[best].title());
        let expected = engine.expected_difference(best).unwrap_or(0.0);
        let gain = percent(-expected.exp_m1());
        if engine.plan.confirmation_pairs == 0 {
            let sentence = format!(
                "{title} is expected to be best, {gain} faster than os-default; not confirmed by \
                 fresh runs (--confirm 0)."
            );
            return Conclusion::new(SearchAnswer::Best, sentence, format!("Use {name}."));
        }
        let fresh = match &self.confirmation {
            Some(confirmation) => confirmation.sentence.clone(),
            None => "no fresh pair could be run.".to_owned(),
        };
        let sentence =
            format!("Undecided: {title} leads, {gain} faster than os-default as expected; {fresh}");
        let advice = format!(
            "Continue with more --confirm pairs or {}.",
            more_effort(engine)
        );
        Conclusion::new(SearchAnswer::Undecided, sentence, advice)
    }

    fn conclude_undecided(&self, engine: &Engine<'_>) -> Conclusion {
        let used = engine.runs_used();
        let runs = if used == 1 {
            "1 run"
        } else {
            &format!("{used} runs")
        };
        let open = match (&self.leader, &engine.standing) {
            (Some(leader), Some(standing)) => format!(
                "{} leads after {runs}. With a probability of {} another is better by more than {}.",
                engine.arms[*leader].title(),
                format_probability(standing.loss.exceeds[1]),
                percent(LARGE_LOSS_FACTOR * engine.zone().exp_m1()),
            ),
            _ => format!(
                "{runs} give no information about {} candidates.",
                engine.arms.len()
            ),
        };
        let why = match self.stopped {
            Some(Stopped::Interrupted) => "Undecided (interrupted): ",
            Some(Stopped::Budget) => "Undecided (the time is used up): ",
            Some(Stopped::Runs) => "Undecided (the runs are used up): ",
            _ => "Undecided: ",
        };
        let advice = format!("Needed: {}, or a larger --min-effect.", more_effort(engine));
        Conclusion::new(SearchAnswer::Undecided, format!("{why}{open}"), advice)
    }
}

/// The conclusion before caveats on other CPUs and load are added.
struct Conclusion {
    kind: SearchAnswer,
    sentence: String,
    advice: String,
}

impl Conclusion {
    const fn new(kind: SearchAnswer, sentence: String, advice: String) -> Self {
        Self {
            kind,
            sentence,
            advice,
        }
    }
}

/// Why the answer is not recommended: the reasons of comparisons.
fn withhold_recommendation(engine: &Engine<'_>, arm: usize) -> Option<(NotRecommended, String)> {
    let counted = engine
        .runs
        .iter()
        .filter(|run| run.step != SearchStep::Warmup);
    let metric = MetricRecord::new(&engine.plan.metric, &engine.plan.unit);
    let cpus = engine.topology.counts().cpus;
    let named = [engine.plan.id.as_str(), &engine.arms[arm].name];
    let runs = || counted.clone().map(|run| &run.run);
    let withheld = compare::withhold_after_runs(runs, &metric, cpus, named);
    let gains_beside_others =
        compare::foreign_cpus(runs()).is_some_and(|busy| busy >= compare::LOADED_CPUS);
    if withheld.is_some() || gains_beside_others {
        return withheld;
    }
    let cores = [DEFAULT, arm].map(|arm| engine.arms[arm].place.used.cores);
    let of_default = counted.clone().filter(|run| run.arm == DEFAULT);
    let of_default = of_default.map(|run| &run.run);
    compare::withhold_narrow(
        engine.ratio_to_default(arm)?,
        &metric,
        cores,
        of_default,
        named,
    )
}

/// How many candidates ran, and that no other is expected to be better. The reader must know, since
/// the model may be wrong about a placement that is unlike those that ran.
fn describe_trials(engine: &Engine<'_>) -> String {
    let runs = engine.runs_of_arms();
    // Other CPUs of the best shape are no candidates of their own.
    let is_candidate = |&arm: &usize| !engine.is_elsewhere(arm);
    let candidates: Vec<usize> = (0..engine.arms.len()).filter(is_candidate).collect();
    let all = candidates.len();
    let ran = candidates.iter().filter(|&&arm| runs[arm] > 0).count();
    let within = percent(engine.zone().exp_m1());
    if ran == all {
        return format!("All {all} candidates ran; none is expected to beat it by {within}.");
    }
    format!(
        "{ran} of {all} candidates ran, the most compact and the most spread among them; the model \
         expects no other to beat it by {within}."
    )
}

/// What to give more of.
fn more_effort(engine: &Engine<'_>) -> &'static str {
    match engine.plan.budget {
        Some(_) => "a longer --budget",
        None => "more --max-runs",
    }
}

/// The arm with the fewest resources, such as "4 cores of one LLC: 98 % of the best". Of the best
/// itself, `smaller` is an arm that may do as well but was not compared with it.
pub(super) fn describe_least(
    engine: &Engine<'_>,
    arm: usize,
    best: usize,
    smaller: Option<usize>,
    of_best: f64,
) -> String {
    let what = engine.arms[arm].place.used.describe();
    let within = percent(engine.plan.max_slowdown);
    match smaller {
        _ if arm != best => {}
        Some(smaller) => {
            let smaller = &engine.arms[smaller].name;
            return format!(
                "{what}: {smaller} may come within {within} of it, but was not compared with it."
            );
        }
        None => return format!("{what}: nothing smaller is likely to come within {within} of it."),
    }
    let is_measured = engine.runs_of_arms()[arm] > 0;
    let how = if is_measured { "" } else { ", as predicted" };
    format!(
        "{what} ({}): {:.0} % of the best{how}.",
        engine.arms[arm].name,
        100.0 * of_best
    )
}

/// Says that the best has the fewest resources, because pairs did not confirm a smaller arm.
pub(super) fn describe_unconfirmed_least(
    engine: &Engine<'_>,
    best: usize,
    smaller: usize,
    pairs: usize,
) -> String {
    format!(
        "{}: of anything smaller it is not confirmed that it is as good within {} \
         ({}, {pairs} pairs).",
        engine.arms[best].place.used.describe(),
        percent(engine.plan.max_slowdown),
        engine.arms[smaller].name
    )
}

/// Findings on failed arms, slow CPUs and numbers of threads.
pub(super) fn list_findings(engine: &Engine<'_>) -> Vec<Finding> {
    let failed = engine.invalid.iter().zip(&engine.arms);
    let failed = failed.filter_map(|(invalid, arm)| Some((arm, invalid.as_ref()?)));
    let mut findings: Vec<Finding> = failed
        .map(|(arm, why)| {
            Finding::new(
                "failed_arm",
                Severity::Warning,
                format!("{} excluded: {}", arm.name, first_line(why)),
                "Find out why the command fails there.",
            )
        })
        .collect();
    findings.extend(engine.check_cpu_differences());
    findings.extend(check_thread_counts(engine));
    findings
}

fn format_probability(probability: f64) -> String {
    format!("{:.0} %", 100.0 * probability)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Warns if an arm ran with fewer threads than planned: narrow masks make many programs start fewer.
fn check_thread_counts(engine: &Engine<'_>) -> Option<Finding> {
    let is_counted = |run: &&pinwise_record::SearchRun| run.step != SearchStep::Warmup;
    let differing = engine.runs.iter().filter(is_counted).find_map(|run| {
        let arm = &engine.arms[run.arm];
        let seen = usize::try_from(run.run.threads?).ok()?;
        (seen < arm.threads).then_some((arm, seen))
    });
    let (arm, seen) = differing?;
    Some(Finding::new(
        "threads_differ",
        Severity::Warning,
        format!(
            "{} ran at most {} instead of {}: its result mixes the effects of placement and number of threads.",
            arm.name,
            count(seen, "thread"),
            arm.threads
        ),
        "Set --threads to the number that the command starts, or use {threads} in its arguments.",
    ))
}
