//! A CPU that loses far more time than the others of its watch.
//!
//! The sum over all CPUs hides it: one CPU that takes the interrupts of a network card loses five
//! times what the others lose, and a thread that runs there is late. It does not judge how much is
//! too much.

use pinwise_format::{join_words, percent};
use pinwise_record::{Finding, JitterCauseRecord, JitterCpuRecord, JitterRecord, Severity};
use pinwise_topology::CpuSet;

/// The name of the check.
pub(super) const CHECK: &str = "noisy_cpu";

/// A smaller share of the time is not worth a finding.
pub(super) const MIN_SHARE: f64 = 1e-4;
/// A CPU that lost this many times the median of all stands out.
const MIN_RATIO: f64 = 2.0;

/// The causes that the sentence names.
const MAX_CAUSES: usize = 2;

/// The CPU that lost most, if it stands out. `findings`: the others, which know what can be moved.
pub(super) fn find_noisy_cpu(record: &JitterRecord, findings: &[Finding]) -> Option<Finding> {
    let mut ranked: Vec<&JitterCpuRecord> = record.cpus.iter().collect();
    ranked.sort_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
    // Of two CPUs none is usual.
    let [noisy, _, _, ..] = ranked.as_slice() else {
        return None;
    };
    let median = ranked[ranked.len() / 2].lost_share;
    if noisy.lost_share < MIN_SHARE.max(MIN_RATIO * median) {
        return None;
    }
    let ratio = noisy.lost_share / median;
    let compared = match median > 0.0 {
        true => format!("{ratio:.1} times the median CPU"),
        false => "most others none".to_owned(),
    };
    let causes = noisy.causes.iter().take(MAX_CAUSES);
    let causes: Vec<String> = causes.map(JitterCauseRecord::label).collect();
    let mostly = match causes.is_empty() {
        true => String::new(),
        false => format!(", mostly to {}", join_words(&causes)),
    };
    let sentence = format!(
        "CPU {} lost {} of its time, {compared}{mostly}.",
        noisy.cpu,
        percent(noisy.lost_share)
    );
    let finding = Finding::new(
        CHECK,
        Severity::Warning,
        sentence,
        advise(noisy, record, findings),
    );
    let finding = finding.with_weight(9).with_evidence("cpu", noisy.cpu);
    Some(finding.with_evidence("share", noisy.lost_share))
}

/// To move the interrupt that takes its time, or else to use the other CPUs.
fn advise(noisy: &JitterCpuRecord, record: &JitterRecord, findings: &[Finding]) -> String {
    let irqs = noisy.causes.iter().take(MAX_CAUSES);
    let irqs: Vec<u32> = irqs.filter_map(|cause| cause.irq).collect();
    let moves_it = |finding: &&Finding| {
        let irq = finding.evidence.get("irq").and_then(|irq| irq.as_u64());
        let cpus = finding.evidence.get("cpus").and_then(|cpus| cpus.as_str());
        let cpus = cpus.and_then(|cpus| CpuSet::parse_list(cpus).ok());
        cpus.is_some_and(|cpus| cpus.contains(noisy.cpu))
            && irq.is_some_and(|irq| irqs.iter().any(|own| u64::from(*own) == irq))
    };
    if let Some(finding) = findings.iter().find(moves_it) {
        return finding.advice.clone();
    }
    let others = record.cpus.iter().map(|cpu| cpu.cpu);
    let others: CpuSet = others.filter(|cpu| *cpu != noisy.cpu).collect();
    format!("Keep a program off it: taskset -c {others} PROGRAM")
}

#[cfg(test)]
mod tests;
