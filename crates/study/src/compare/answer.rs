//! The answer of a comparison: of the arms that compete with each other which is best, and what
//! companions change for them.

use super::contrast;
use super::plan::{ArmPlan, ComparePlan};
use super::rivals::{self, is_twin};
use pinwise_record::{CompanionEffectRecord, MetricRecord};
use pinwise_stats::confirm::{Contrast, Look};
use pinwise_stats::neighbour;
use pinwise_stats::verdict::{self, ComparisonOutcome, Setting};

/// Arms, and companions, that the answer names.
pub(super) const NAMED: usize = 2;

/// Arms that compete with each other.
pub(super) struct Choice<'a> {
    /// The companion of all of them.
    companion: Option<String>,
    /// Their contrasts.
    pub(super) look: Look,
    /// The words for these, with their baseline.
    pub(super) setting: Setting<'a>,
    pub(super) outcome: ComparisonOutcome,
}

/// What a companion changes for an arm.
struct Change {
    companion: String,
    /// Column of the arm beside it.
    beside: usize,
    /// Name of the arm without it.
    arm: String,
    /// The arm beside it against the arm without.
    contrast: Contrast,
}

/// A comparison's answer.
pub(super) struct Answer<'a> {
    /// What there is to choose from; those that were asked about first.
    choices: Vec<Choice<'a>>,
    changes: Vec<Change>,
    /// Do the choices beside several companions differ?
    pub(super) is_split: bool,
}

impl<'a> Answer<'a> {
    /// Reads it off a look without the placebo.
    pub(super) fn new(
        plan: &ComparePlan,
        look: &Look,
        setting: &Setting<'a>,
        columns: &[usize],
    ) -> Self {
        let arms: Vec<&ArmPlan> = columns.iter().map(|&arm| &plan.arms[arm]).collect();
        let mut changes = list_changes(&arms, look);
        let mut choices = list_choices(plan, look, setting, columns, &arms);
        let is_named = |column: usize| {
            let named = |c: &Choice<'_>| [c.setting.baseline, c.look.winner].contains(&column);
            choices.iter().any(named)
        };
        changes.sort_by_key(|change| !is_named(change.beside));
        if choices.iter().all(|choice| choice.companion.is_none()) && !changes.is_empty() {
            choices = vec![choose_companion(plan, look, setting, &arms)];
        }
        if choices.is_empty() {
            choices.push(choose(plan, look.clone(), *setting, &arms));
        }
        let mut asked = choices.iter().filter(|choice| choice.companion.is_some());
        let first = asked.next();
        let is_split = first.is_some_and(|first| asked.any(|other| !agree(first, other, &arms)));
        Self {
            choices,
            changes,
            is_split,
        }
    }

    /// The choice that was asked about; of several that differ, one that is open.
    pub(super) fn asked(&self) -> &Choice<'a> {
        let is_open = |choice: &&Choice<'_>| {
            choice.companion.is_some() && choice.outcome == ComparisonOutcome::Undecided
        };
        let open = self.choices.iter().find(is_open);
        open.filter(|_| self.is_split).unwrap_or(&self.choices[0])
    }

    pub(super) fn outcome(&self) -> ComparisonOutcome {
        match self.is_split {
            true => ComparisonOutcome::Undecided,
            false => self.asked().outcome,
        }
    }

    /// In words.
    pub(super) fn describe(&self, is_recommended: bool) -> String {
        let sentence = |choice: &Choice<'_>, is_recommended: bool| {
            verdict::describe_outcome(
                choice.outcome,
                &choice.look,
                &choice.setting,
                is_recommended,
            )
        };
        let mut sentences = Vec::new();
        let mut companions: Vec<&str> = Vec::new();
        for change in &self.changes {
            if !companions.contains(&change.companion.as_str()) {
                companions.push(&change.companion);
            }
        }
        for companion in companions.iter().take(NAMED) {
            let changes = self.changes.iter().filter(|c| c.companion == *companion);
            let all: Vec<_> = changes
                .map(|change| (change.arm.as_str(), &change.contrast))
                .collect();
            let (named, more) = all.split_at(all.len().min(NAMED));
            let setting = &self.choices[0].setting;
            let cost = neighbour::describe_beside(companion, named, more.len(), setting);
            let mut choices = self.choices.iter();
            let choice = choices.find(|choice| choice.companion.as_deref() == Some(*companion));
            let is_best = choice.is_some_and(|c| matches!(c.outcome, ComparisonOutcome::Best(_)));
            let choice = choice.map(|choice| sentence(choice, is_recommended));
            // Where one is best, that is the answer.
            let said = match is_best && sentences.is_empty() {
                true => [choice, cost],
                false => [cost, choice],
            };
            sentences.extend(said.into_iter().flatten());
        }
        let alone = self.choices.iter().find(|c| c.companion.is_none());
        match alone {
            Some(alone) if companions.is_empty() => sentences.push(sentence(alone, is_recommended)),
            Some(alone) if matches!(alone.outcome, ComparisonOutcome::Best(_)) => {
                let is_of_companion = self.choices.len() == 1;
                let without = match is_of_companion {
                    true => String::new(),
                    false => format!("Without {}: ", companions.join(" or ")),
                };
                let is_recommended = is_recommended && is_of_companion;
                sentences.push(format!("{without}{}", sentence(alone, is_recommended)));
            }
            _ => {}
        }
        if sentences.is_empty() {
            sentences.push(sentence(self.asked(), is_recommended));
        }
        sentences.join(" ")
    }

    /// What companions change, as a record.
    pub(super) fn record_changes(&self, metric: &MetricRecord) -> Vec<CompanionEffectRecord> {
        let records = self.changes.iter().map(|change| {
            let Change { contrast, .. } = change;
            let ratio = contrast.estimate.exp();
            let low = contrast::exp_if_finite(contrast.interval.low);
            let high = contrast::exp_if_finite(contrast.interval.high);
            CompanionEffectRecord {
                companion: change.companion.clone(),
                arm: change.arm.clone(),
                ratio,
                low,
                high,
                confidence: contrast.confidence,
                verdict: contrast::verdict_of(contrast.decision),
                effect: metric.effect(ratio, low, high),
            }
        });
        records.collect()
    }
}

/// What companions change for the arms.
fn list_changes(arms: &[&ArmPlan], look: &Look) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for contrast in &look.contrasts {
        let [arm, other] = [contrast.arm, contrast.baseline].map(|column| arms[column]);
        if !is_twin(arm, other) {
            continue;
        }
        let (beside, alone, contrast) = match (arm.companion_name(), other.companion_name()) {
            (Some(_), None) => (arm, other, contrast.clone()),
            (None, Some(_)) => (other, arm, contrast.clone().reversed()),
            _ => continue,
        };
        changes.push(Change {
            companion: beside.companion_name().unwrap_or_default().to_owned(),
            beside: contrast.arm,
            arm: alone.name.clone(),
            contrast,
        });
    }
    changes
}

/// The groups of arms that compete with each other, and of which more than the baseline is left.
fn list_choices<'a>(
    plan: &ComparePlan,
    look: &Look,
    setting: &Setting<'a>,
    columns: &[usize],
    arms: &[&ArmPlan],
) -> Vec<Choice<'a>> {
    let groups = rivals::pair_columns(plan, columns).rivals;
    if let [_] = groups.as_slice() {
        return vec![choose(plan, look.clone(), *setting, arms)];
    }
    let choices = groups.into_iter().map(|group| {
        let setting = Setting {
            baseline: group[0],
            ..*setting
        };
        choose(plan, look.clone().among(&group), setting, arms)
    });
    let choices = choices.filter(|choice| !choice.look.contrasts.is_empty());
    choices.collect()
}

fn choose<'a>(
    plan: &ComparePlan,
    look: Look,
    setting: Setting<'a>,
    arms: &[&ArmPlan],
) -> Choice<'a> {
    let baseline = arms[setting.baseline];
    let mut all = plan.arms.iter();
    let is_default = all.any(|arm| arm.is_default && is_twin(arm, baseline));
    Choice {
        companion: baseline.companion_name().map(str::to_owned),
        outcome: verdict::judge_outcome(&look, setting.delta, is_default),
        look,
        setting,
    }
}

/// If there is one arm, with and without companions: a companion may be worth having, such as a
/// scheduler. That the arm is faster without one is no gain.
fn choose_companion<'a>(
    plan: &ComparePlan,
    look: &Look,
    setting: &Setting<'a>,
    arms: &[&ArmPlan],
) -> Choice<'a> {
    let mut changes = look.clone();
    let is_change = |c: &Contrast| {
        [c.arm, c.baseline].contains(&setting.baseline) && is_twin(arms[c.arm], arms[c.baseline])
    };
    changes.contrasts.retain(is_change);
    let choice = choose(plan, changes, *setting, arms);
    let outcome = match choice.outcome {
        ComparisonOutcome::Best(arm) if arms[arm].companion().is_none() => {
            ComparisonOutcome::LeaveAlone
        }
        other => other,
    };
    Choice {
        companion: None,
        outcome,
        ..choice
    }
}

/// Is the choice beside two companions the same?
fn agree(choice: &Choice<'_>, other: &Choice<'_>, arms: &[&ArmPlan]) -> bool {
    match (choice.outcome, other.outcome) {
        (ComparisonOutcome::Best(arm), ComparisonOutcome::Best(other)) => {
            is_twin(arms[arm], arms[other])
        }
        (outcome, other) => outcome == other,
    }
}
