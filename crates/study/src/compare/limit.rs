//! Judges arms against the allowed slow-down (`--fail-if-slower`), in sentences.

use std::time::Duration;

use super::caveats;
use super::plan::ComparePlan;
use pinwise_format::{duration, percent, signed_percent};
use pinwise_record::{
    Comparison, ContrastRecord, Direction, EffectRecord, GateOutcome, LimitRecord, MetricRecord,
};
use pinwise_stats::beside;
use pinwise_stats::confirm::{Contrast, Look};
use pinwise_stats::judge::Judge;
use pinwise_stats::limit::{self, LimitVerdict};
use pinwise_stats::verdict::{self, ROOM, Setting};

/// Longer efforts are not advised.
const MAX_EFFORT_S: f64 = 3600.0;

/// Compares an arm with the limit; `None` if there is no limit.
pub(super) fn judge_limit(
    contrast: &Contrast,
    cpu: Option<&Contrast>,
    metric: &MetricRecord,
    plan: &ComparePlan,
    setting: &Setting<'_>,
) -> Option<LimitRecord> {
    let limit = plan.tuning.limit?;
    let [arm, baseline] = [contrast.arm, setting.baseline].map(|column| &setting.names[column]);
    let end = |end: f64| end.is_finite().then(|| end.exp());
    let (low, high) = (end(contrast.interval.low), end(contrast.interval.high));
    let effect = metric.effect(contrast.estimate.exp(), low, high);
    let (worse, by) = (&metric.worse_word, percent(limit));
    let log = limit.ln_1p();
    let (outcome, sentence) = match limit::judge(contrast, log) {
        LimitVerdict::Slower => (
            GateOutcome::Slower,
            format!(
                "{arm} is {worse} than {baseline} by more than {by}: {}.",
                effect.describe_with_interval()
            ),
        ),
        LimitVerdict::Passed => (
            GateOutcome::Passed,
            format!(
                "{arm} is not {worse} than {baseline} by more than {by}{}: at most {}.",
                match plan.tuning.judge {
                    Judge::Typical => " in the typical run",
                    _ => "",
                },
                describe_worst_end(&effect, metric)
            ),
        ),
        LimitVerdict::Undecided => match cpu.filter(|cpu| beside::exceeds(contrast, cpu, log)) {
            Some(cpu) => (
                GateOutcome::Slower,
                format!(
                    "{}.",
                    beside::describe_over_limit(contrast, cpu, setting, &by)
                ),
            ),
            None => (
                GateOutcome::Undecided,
                format!(
                    "{arm} is undecided at {by}: {}.",
                    describe_possible_range(contrast, &effect, limit, setting)
                ),
            ),
        },
    };
    Some(LimitRecord {
        limit,
        outcome,
        sentence,
    })
}

/// The end of the interval with the highest cost, as a signed percentage.
fn describe_worst_end(effect: &EffectRecord, metric: &MetricRecord) -> String {
    let end = match metric.better {
        Direction::Higher => effect.low,
        _ => effect.high,
    };
    signed_percent(end.unwrap_or(effect.value) / 100.0)
}

/// `between −0.4 % and +3.1 %; about 40 s more decide it`.
fn describe_possible_range(
    contrast: &Contrast,
    effect: &EffectRecord,
    limit: f64,
    setting: &Setting<'_>,
) -> String {
    let (Some(low), Some(high)) = (effect.low, effect.high) else {
        return "too few blocks for a verdict".to_owned();
    };
    let [low, high] = [low, high].map(|end| signed_percent(end / 100.0));
    let more = match verdict::describe_caveat(contrast, setting) {
        Some(caveat) => format!(", but {caveat}"),
        None => describe_effort(contrast, limit, setting.spent),
    };
    format!("between {low} and {high}{more}")
}

fn describe_effort(contrast: &Contrast, limit: f64, spent: Duration) -> String {
    let more = extra_effort(contrast, limit, spent).map(|share| spent.mul_f64(share));
    match more {
        Some(more) => format!("; about {} more decide it", duration(more)),
        None => "; deciding it takes more than an hour".to_owned(),
    }
}

/// Further effort that decides a contrast, as a multiple of the effort so far; `None` if that is
/// more than an hour.
fn extra_effort(contrast: &Contrast, limit: f64, spent: Duration) -> Option<f64> {
    let share = (ROOM * limit::work_factor(contrast, limit.ln_1p()) - 1.0).max(0.0);
    let more_s = share * spent.as_secs_f64();
    (more_s <= MAX_EFFORT_S).then_some(share)
}

/// Further effort that decides all undecided contrasts, as a multiple of the effort so far.
pub(super) fn extra_effort_for_all(look: &Look, limit: f64, spent: Duration) -> Option<f64> {
    let is_undecided = |c: &&Contrast| limit::judge(c, limit.ln_1p()) == LimitVerdict::Undecided;
    let shares = look.contrasts.iter().filter(is_undecided);
    let shares: Option<Vec<f64>> = shares.map(|c| extra_effort(c, limit, spent)).collect();
    shares?.into_iter().reduce(f64::max)
}

/// Sentence and advice of a comparison that asked only about the limit; `None` if it also asked for
/// the best arm.
pub(super) fn conclude_on_limit(
    record: &Comparison,
    plan: &ComparePlan,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<(String, String)> {
    let limit = plan
        .tuning
        .limit
        .filter(|_| !plan.tuning.requires_verdict)?;
    let by = percent(limit);
    let MetricRecord {
        better_word,
        worse_word,
        ..
    } = &record.metric;
    let arms_with = |outcome: GateOutcome| -> Vec<&str> {
        let has_outcome =
            |c: &&ContrastRecord| c.limit.as_ref().is_some_and(|l| l.outcome == outcome);
        let contrasts = record.contrasts.iter().filter(has_outcome);
        contrasts.map(|contrast| contrast.arm.as_str()).collect()
    };
    let undecided = arms_with(GateOutcome::Undecided);
    if !undecided.is_empty() {
        let sentence = format!(
            "Undecided: {} may be {worse_word} than {} by more than {by}.",
            undecided.join(", "),
            record.baseline
        );
        let advice = match verdict::describe_withheld(look, setting) {
            Some(_) => caveats::advise_on_undecided(record),
            None => format!(
                "Give it {}, or allow a larger slowdown (--fail-if-slower).",
                plan.more_effort(record.stopped.as_ref())
            ),
        };
        return Some((sentence, advice));
    }
    let slower = arms_with(GateOutcome::Slower);
    let sentence = match (record.contrasts.as_slice(), slower.as_slice()) {
        ([only], _) => only.limit.as_ref()?.sentence.clone(),
        (_, []) => format!(
            "No arm is {worse_word} than {} by more than {by}.",
            record.baseline
        ),
        (_, slower) => format!(
            "By more than {by} {worse_word} than {}: {}.",
            record.baseline,
            slower.join(", ")
        ),
    };
    let advice = format!("Add --require-verdict to learn which is {better_word}, too.");
    Some((sentence, advice))
}

#[cfg(test)]
mod tests;
