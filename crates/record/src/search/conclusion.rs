//! The conclusions from a search's figures, in the words of its metric: effects over the range that
//! candidates span, the headline, the commands.
//!
//! Written once, when the search writes its record.

use super::{SearchAnswer, SearchArm, SearchRecord};
use crate::command_line::{CommandRecord, Placed};
use crate::metric::{EffectRecord, HeadlineRecord};
use pinwise_format::{count, round_percent};
use pinwise_workload::{Command, thread_variables};

/// Standard deviations to the end of a 90 % interval.
const TO_END: f64 = 1.645;

impl SearchRecord {
    /// Fills in the conclusions from its figures.
    pub fn conclude(&mut self) {
        for at in 0..self.predictions.len() {
            let ratio = self.predictions[at].ratio;
            self.predictions[at].change = self.metric.effect(ratio, None, None).text;
        }
        let features = self.model.as_ref().map_or(0, |model| model.features.len());
        for at in 0..features {
            let change = self.feature_change(at);
            if let Some(feature) = self.model.as_mut().and_then(|m| m.features.get_mut(at)) {
                feature.is_clear = feature.effect.abs() > 2.0 * feature.sd;
                feature.change = change;
            }
        }
        let commands = |name: Option<&String>| {
            let arm = self.arms.iter().find(|arm| Some(&arm.name) == name);
            arm.filter(|_| self.stopped.is_some() && self.verdict.not_recommended.is_none())
                .map_or_else(Vec::new, |arm| self.commands_of(arm))
        };
        // The leader is not a recommendation.
        let is_decided = self.verdict.kind != SearchAnswer::Undecided;
        let of_best = commands(self.best.as_ref().filter(|_| is_decided));
        let least = self.least.as_ref().map(|least| &least.arm);
        let of_least = commands(least.filter(|&least| Some(least) != self.best.as_ref()));
        if let Some(least) = &mut self.least {
            least.commands = of_least;
            least.basis = match self.best.as_ref() == Some(&least.arm) {
                // Nothing smaller will do.
                true => String::new(),
                false => least.basis(),
            };
        }
        self.verdict.commands = of_best;
        self.verdict.headline = self.headline();
        self.verdict.beside = self.further_sentences();
    }

    /// From the candidate with the least of a feature to the one with the most; `None` if they are
    /// all alike in it.
    fn feature_change(&self, at: usize) -> Option<EffectRecord> {
        let feature = self.model.as_ref()?.features.get(at)?;
        let values = || {
            self.arms
                .iter()
                .filter_map(|arm| arm.features.get(at).copied())
        };
        let range = values().reduce(f64::max)? - values().reduce(f64::min)?;
        let ratio = |effect: f64| (effect * range).exp();
        let low = ratio(feature.effect - TO_END * feature.sd);
        let high = ratio(feature.effect + TO_END * feature.sd);
        (range > 0.0 && range.is_finite()).then(|| {
            self.metric
                .effect(ratio(feature.effect), Some(low), Some(high))
        })
    }

    fn headline(&self) -> Option<HeadlineRecord> {
        let found = self.confirmation.as_ref()?;
        let effect = self.metric.effect(found.ratio, found.low, found.high);
        Some(HeadlineRecord::new(
            &effect,
            format!("{} of {} against os-default", self.metric.label, found.arm),
            format!("{} confidence", round_percent(found.confidence)),
            "no interval: too few pairs",
        ))
    }

    /// What the verdict's sentence does not say.
    fn further_sentences(&self) -> Vec<String> {
        let confirmation = self.confirmation.as_ref();
        let mut listed: Vec<String> = confirmation
            .map(|found| match self.best {
                None => found.sentence.clone(),
                Some(_) => format!(
                    "The interval from {} holds with {} confidence at whatever moment it is read.",
                    count(found.pairs, "fresh pair"),
                    round_percent(found.confidence)
                ),
            })
            .into_iter()
            .collect();
        let is_unlike = self
            .findings
            .iter()
            .any(|finding| finding.check == "unlike_cpus");
        if !self.other_cpus.is_empty() && !is_unlike {
            let pairs: usize = self.other_cpus.iter().map(|other| other.pairs).sum();
            let choices = match self.other_cpus.len() {
                1 => "another choice".to_owned(),
                n => format!("{n} other choices"),
            };
            listed.push(format!(
                "In the same shape {choices} of CPUs showed no difference ({}): no CPU stands out.",
                count(pairs, "pair")
            ));
        }
        listed
    }

    /// What a candidate starts, with its threads filled in, and the environment that
    /// is added to its own.
    #[must_use]
    pub fn command_line(&self, arm: &SearchArm) -> (Vec<String>, Vec<(String, String)>) {
        let mut environment = self.workload.environment.clone();
        let Ok(command) = Command::from_argv(self.command.clone()) else {
            return (self.command.clone(), environment);
        };
        let filled = arm
            .threads
            .map_or_else(|| command.clone(), |n| command.with_threads(n));
        // A program that takes them from its arguments needs no variables.
        let threads = arm.threads.filter(|_| self.plan.sets_threads);
        if let Some(threads) = threads.filter(|_| filled == command) {
            environment.extend(thread_variables(threads));
        }
        (filled.argv().to_vec(), environment)
    }

    /// Commands that run a candidate; none for `os-default`.
    fn commands_of(&self, arm: &SearchArm) -> Vec<CommandRecord> {
        if self.command.is_empty() || arm.place_id.is_none() {
            return Vec::new();
        }
        self.with_placed(arm, |placed| placed.commands())
    }

    /// A candidate's program as a shell line, with environment and input; `given` escapes each
    /// word for the tool that starts it.
    #[must_use]
    pub fn program_of(&self, arm: &SearchArm, given: impl Fn(&str) -> String) -> String {
        self.with_placed(arm, |placed| placed.program_of(given))
    }

    fn with_placed<T>(&self, arm: &SearchArm, made: impl FnOnce(&Placed<'_>) -> T) -> T {
        let (command, environment) = self.command_line(arm);
        made(&Placed {
            command: Some(&command),
            environment: &environment,
            input: self.workload.input.as_deref(),
            placement: &arm.placement,
            is_bound: false,
            cpus: &arm.cpus,
            memory: None,
        })
    }
}
