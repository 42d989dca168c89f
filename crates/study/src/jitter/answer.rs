//! The result of a watch in one sentence, and what to do next.

use super::noisy_cpu;
use pinwise_format::{count_of, join_words, percent, seconds};
use pinwise_record::{Answer, Finding, GapCause, JitterCauseRecord, JitterRecord};

/// The causes that the sentence names.
const NAMED: usize = 2;
/// A cause of a smaller part of the lost time is not named beside a larger one.
const MIN_PART: f64 = 0.05;

/// The answer of a record with all its findings: about a CPU that stands out, or about all.
pub(super) fn answer(record: &JitterRecord) -> Answer {
    let mut findings = record.findings.iter();
    if let Some(noisy) = findings.find(|finding| finding.check == noisy_cpu::CHECK) {
        return Answer {
            sentence: noisy.sentence.clone(),
            advice: noisy.advice.clone(),
        };
    }
    Answer {
        sentence: summarise(record),
        advice: advise(record),
    }
}

/// How much time was lost, to what, and what took the longest gap.
fn summarise(record: &JitterRecord) -> String {
    let cpus = record.name_cpus();
    let watched_s: f64 = record.cpus.iter().map(|cpu| cpu.watched_s).sum();
    let longest_us = record.cpus.iter().filter_map(|cpu| cpu.longest_us);
    let Some(longest_us) = longest_us.reduce(f64::max) else {
        return format!(
            "{cpus} lost no time: no gap above {} in {}.",
            seconds(record.threshold_us * 1e-6),
            seconds(watched_s / record.cpus.len().max(1) as f64)
        );
    };
    let lost_s: f64 = record.cpus.iter().map(|c| c.lost_share * c.watched_s).sum();
    let (lost, gaps) = (
        percent(lost_s / watched_s),
        count_of(record.gaps, "gap", "gaps"),
    );
    let longest = seconds(longest_us * 1e-6);
    if record.causes_unavailable.is_some() {
        return format!(
            "{cpus} lost {lost} of the time in {gaps}, the longest {longest}; the causes are unknown."
        );
    }
    let share = |cause: &JitterCauseRecord| {
        format!(
            "{} to {}",
            percent(cause.lost_ms * 1e-3 / watched_s),
            name(cause)
        )
    };
    let causes = record.causes.iter().take(NAMED);
    let causes = causes.filter(|cause| cause.lost_ms * 1e-3 >= MIN_PART * lost_s);
    let by_length =
        |a: &&JitterCauseRecord, b: &&JitterCauseRecord| a.longest_us.total_cmp(&b.longest_us);
    let by = record.causes.iter().max_by(by_length);
    let by = by.map_or_else(String::new, |cause| format!(", to {}", name(cause)));
    let lost_to = match causes.map(share).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        parts => format!(", {}", join_words(parts)),
    };
    format!("{cpus} lost {lost} of the time in {gaps}{lost_to}; the longest, {longest}{by}.")
}

/// The name of a cause within a sentence.
fn name(cause: &JitterCauseRecord) -> String {
    match cause.kind {
        GapCause::Hypervisor => "the hypervisor".to_owned(),
        GapCause::Quota => "a CPU quota".to_owned(),
        GapCause::Hardware => "firmware or hardware".to_owned(),
        GapCause::Unknown => "unknown causes".to_owned(),
        GapCause::CpuInterrupt if cause.name == "local_timer" => "the timer".to_owned(),
        _ => cause.label(),
    }
}

/// The advice of the finding on the cause that took most, or else of the gravest finding.
fn advise(record: &JitterRecord) -> String {
    let checks: &[&str] = match record.causes.first().map(|cause| &cause.kind) {
        Some(GapCause::Hypervisor) => &["hypervisor_gaps"],
        Some(GapCause::Hardware) => &["hardware_gaps"],
        Some(GapCause::Quota) => &["quota_gaps"],
        Some(GapCause::Thread) => &["isolated_thread", "busy", "not_isolated"],
        Some(GapCause::Interrupt) => &["isolated_interrupt", "device_interrupt", "not_isolated"],
        Some(_) => &["nohz_full_tick", "isolated_rcu", "not_isolated"],
        None => &[],
    };
    let on_cause = checks.iter().find_map(|check| {
        let mut findings = record.findings.iter();
        findings.find(|finding| finding.check == *check)
    });
    let advised: Option<&Finding> = on_cause.or(record.findings.first());
    match advised {
        Some(finding) => finding.advice.clone(),
        None => "See what interrupts a program of yours: pinwise trace -- PROGRAM.".to_owned(),
    }
}

#[cfg(test)]
mod tests;
