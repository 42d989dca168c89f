//! How arms compare with the slow-down that was allowed, in words.

use std::time::Duration;

use super::caveats;
use super::plan::ComparePlan;
use pinwise_format::{duration, percent, signed_percent};
use pinwise_record::{
    Comparison, ContrastRecord, Direction, EffectRecord, GateOutcome, LimitRecord, MetricRecord,
};
use pinwise_stats::beside;
use pinwise_stats::confirm::{Contrast, Look};
use pinwise_stats::limit::{self, LimitStanding};
use pinwise_stats::verdict::{self, ROOM, Setting};

/// More than anybody waits for.
const LONG_S: f64 = 3600.0;

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
    let (outcome, sentence) = match limit::standing(contrast, log) {
        LimitStanding::Slower => (
            GateOutcome::Slower,
            format!(
                "{arm} is {worse} than {baseline} by more than {by}: {}.",
                effect.describe_with_interval()
            ),
        ),
        LimitStanding::Passed => (
            GateOutcome::Passed,
            format!(
                "{arm} is not {worse} than {baseline} by more than {by}: at most {}.",
                describe_worst_end(&effect, metric)
            ),
        ),
        LimitStanding::Undecided => match cpu.filter(|cpu| beside::exceeds(contrast, cpu, log)) {
            Some(cpu) => (
                GateOutcome::Slower,
                format!("{}.", beside::words_over_limit(contrast, cpu, setting, &by)),
            ),
            None => (
                GateOutcome::Undecided,
                format!(
                    "{arm} is undecided at {by}: {}.",
                    possible(contrast, &effect, limit, setting)
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

/// The end of the interval with the highest cost.
fn describe_worst_end(effect: &EffectRecord, metric: &MetricRecord) -> String {
    let end = match metric.better {
        Direction::Higher => effect.low,
        _ => effect.high,
    };
    signed_percent(end.unwrap_or(effect.value) / 100.0)
}

/// `between −0.4 % and +3.1 %; about 40 s more decide it`.
fn possible(
    contrast: &Contrast,
    effect: &EffectRecord,
    limit: f64,
    setting: &Setting<'_>,
) -> String {
    let (Some(low), Some(high)) = (effect.low, effect.high) else {
        return "too few blocks for a verdict".to_owned();
    };
    let [low, high] = [low, high].map(|end| signed_percent(end / 100.0));
    let more = match verdict::caveat(contrast, setting) {
        Some(caveat) => format!(", but {caveat}"),
        None => more(contrast, limit, setting.spent),
    };
    format!("between {low} and {high}{more}")
}

fn more(contrast: &Contrast, limit: f64, spent: Duration) -> String {
    let more = share_of_one(contrast, limit, spent).map(|share| spent.mul_f64(share));
    match more {
        Some(more) => format!("; about {} more decide it", duration(more)),
        None => "; deciding it takes more than an hour".to_owned(),
    }
}

/// What deciding a contrast takes on top of the effort so far, as a multiple of it; `None` if that
/// is more than an hour.
fn share_of_one(contrast: &Contrast, limit: f64, spent: Duration) -> Option<f64> {
    let share = (ROOM * limit::work_factor(contrast, limit.ln_1p()) - 1.0).max(0.0);
    let more_s = share * spent.as_secs_f64();
    (more_s <= LONG_S).then_some(share)
}

/// The same for all undecided contrasts.
pub(super) fn share_that_decides(look: &Look, limit: f64, spent: Duration) -> Option<f64> {
    let is_open = |c: &&Contrast| limit::standing(c, limit.ln_1p()) == LimitStanding::Undecided;
    let shares = look.contrasts.iter().filter(is_open);
    let shares: Option<Vec<f64>> = shares.map(|c| share_of_one(c, limit, spent)).collect();
    shares?.into_iter().reduce(f64::max)
}

/// The conclusion and advice of the comparison if its question was only the limit, and the best arm
/// is not known. `None` otherwise.
pub(super) fn conclusion(
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
    let with = |outcome: GateOutcome| -> Vec<&ContrastRecord> {
        let contrasts = record.contrasts.iter();
        let is_so = |c: &&ContrastRecord| c.limit.as_ref().is_some_and(|l| l.outcome == outcome);
        contrasts.filter(is_so).collect()
    };
    let open = with(GateOutcome::Undecided);
    if !open.is_empty() {
        let names: Vec<&str> = open.iter().map(|c| c.arm.as_str()).collect();
        let sentence = format!(
            "Undecided: {} may be {worse_word} than {} by more than {by}.",
            names.join(", "),
            record.baseline
        );
        let advice = match verdict::withheld(look, setting) {
            Some(_) => caveats::what_decides(record),
            None => format!(
                "Give it {}, or allow a larger slowdown (--fail-if-slower).",
                plan.more_effort(record.stopped.as_ref())
            ),
        };
        return Some((sentence, advice));
    }
    let slower: Vec<&str> = with(GateOutcome::Slower)
        .iter()
        .map(|contrast| contrast.arm.as_str())
        .collect();
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
