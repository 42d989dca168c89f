//! Draws the conclusions from a search's figures, in the words of its metric: effects over the
//! candidates' range, the headline, the commands. They are stored in the record, once, when the
//! search writes it.

use super::{SearchAnswer, SearchArm, SearchRecord};
use crate::command_line::{CommandRecord, PlacedCommand};
use crate::metric::{EffectRecord, HeadlineRecord};
use pinwise_format::{count, round_percent};
use pinwise_workload::{Command, thread_variables};

/// Half-width of a 90 % interval in standard deviations.
const Z_90_PERCENT: f64 = 1.645;

impl SearchRecord {
    /// Fills in the conclusions from its figures.
    pub fn conclude(&mut self) {
        for index in 0..self.predictions.len() {
            let ratio = self.predictions[index].ratio;
            self.predictions[index].change = self.metric.effect(ratio, None, None).text;
        }
        let features = self.model.as_ref().map_or(0, |model| model.features.len());
        for index in 0..features {
            let change = self.find_feature_change(index);
            if let Some(feature) = self.model.as_mut().and_then(|m| m.features.get_mut(index)) {
                feature.is_clear = feature.effect.abs() > 2.0 * feature.sd;
                feature.change = change;
            }
        }
        let commands = |name: Option<&String>| {
            let arm = self.arms.iter().find(|arm| Some(&arm.name) == name);
            arm.filter(|_| self.stopped.is_some() && self.verdict.not_recommended.is_none())
                .map_or_else(Vec::new, |arm| self.list_apply_commands(arm))
        };
        // Without a decision, the leader is not recommended.
        let is_decided = self.verdict.kind != SearchAnswer::Undecided;
        let best_commands = commands(self.best.as_ref().filter(|_| is_decided));
        let least = self.least.as_ref().map(|least| &least.arm);
        let least_commands = commands(least.filter(|&least| Some(least) != self.best.as_ref()));
        if let Some(least) = &mut self.least {
            least.commands = least_commands;
            least.basis = match self.best.as_ref() == Some(&least.arm) {
                // The best arm itself needs no evidence.
                true => String::new(),
                false => least.describe_basis(),
            };
        }
        self.verdict.commands = best_commands;
        self.verdict.headline = self.write_headline();
        self.verdict.beside = self.write_further_sentences();
    }

    /// The effect of a feature from its smallest value among the candidates to its largest; `None`
    /// if all have the same value.
    fn find_feature_change(&self, index: usize) -> Option<EffectRecord> {
        let feature = self.model.as_ref()?.features.get(index)?;
        let values = || {
            self.arms
                .iter()
                .filter_map(|arm| arm.features.get(index).copied())
        };
        let range = values().reduce(f64::max)? - values().reduce(f64::min)?;
        let ratio = |effect: f64| (effect * range).exp();
        let low = ratio(feature.effect - Z_90_PERCENT * feature.sd);
        let high = ratio(feature.effect + Z_90_PERCENT * feature.sd);
        (range > 0.0 && range.is_finite()).then(|| {
            self.metric
                .effect(ratio(feature.effect), Some(low), Some(high))
        })
    }

    fn write_headline(&self) -> Option<HeadlineRecord> {
        let found = self.confirmation.as_ref()?;
        let effect = self.metric.effect(found.ratio, found.low, found.high);
        Some(HeadlineRecord::new(
            &effect,
            format!("{} of {} against os-default", self.metric.label, found.arm),
            format!("{} confidence", round_percent(found.confidence)),
            "no interval: too few pairs",
        ))
    }

    /// Results that the verdict's sentence leaves out.
    fn write_further_sentences(&self) -> Vec<String> {
        // The headline has the interval and the verdict the number of pairs.
        let unnamed = self.confirmation.as_ref().filter(|_| self.best.is_none());
        let mut listed: Vec<String> = unnamed
            .map(|found| found.sentence.clone())
            .into_iter()
            .collect();
        let do_cpus_differ = self
            .findings
            .iter()
            .any(|finding| finding.check == "unlike_cpus");
        if !self.other_cpus.is_empty() && !do_cpus_differ {
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

    /// A candidate's command with its number of threads filled in, and the variables added to its
    /// environment.
    #[must_use]
    pub fn command_line(&self, arm: &SearchArm) -> (Vec<String>, Vec<(String, String)>) {
        let mut environment = self.workload.environment.clone();
        let Ok(command) = Command::from_argv(self.command.clone()) else {
            return (self.command.clone(), environment);
        };
        let filled = arm
            .threads
            .map_or_else(|| command.clone(), |n| command.with_threads(n));
        // A program that takes its threads from its arguments needs no variables.
        let threads = arm.threads.filter(|_| self.plan.sets_threads);
        if let Some(threads) = threads.filter(|_| filled == command) {
            environment.extend(thread_variables(threads));
        }
        (filled.argv().to_vec(), environment)
    }

    /// Commands that run a candidate; none for `os-default`.
    fn list_apply_commands(&self, arm: &SearchArm) -> Vec<CommandRecord> {
        if self.command.is_empty() || arm.place_id.is_none() {
            return Vec::new();
        }
        self.use_placed_command(arm, |placed| placed.list_commands())
    }

    /// A candidate's program as a shell line, with environment and input; `escape` escapes each
    /// word for the tool that starts it.
    #[must_use]
    pub fn write_program(&self, arm: &SearchArm, escape: impl Fn(&str) -> String) -> String {
        self.use_placed_command(arm, |placed| placed.write_program_with(escape))
    }

    fn use_placed_command<T>(
        &self,
        arm: &SearchArm,
        work: impl FnOnce(&PlacedCommand<'_>) -> T,
    ) -> T {
        let (command, environment) = self.command_line(arm);
        work(&PlacedCommand {
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
