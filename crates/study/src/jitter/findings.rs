//! Findings on what took CPUs, given the system's isolation settings.
//!
//! Interrupts are counted by the system, which counts short ones, too; threads and the hypervisor
//! are seen in the gaps. Advice is a command to paste, or words for the kernel's command line.

use std::collections::BTreeMap;

use super::JitterPlan;
use super::noisy_cpu::{MIN_SHARE, find_noisy_cpu};
use pinwise_format::{count_of, grouped, percent, seconds};
use pinwise_record::{Finding, GapCause, JitterCpuRecord, JitterRecord, Severity};
use pinwise_topology::{CpuSet, Topology};

/// A CPU in `nohz_full` still has about one tick per second.
const MAX_TICKS_PER_S: f64 = 2.0;
/// A larger share of the time lost to threads is not jitter but another program's work.
const BUSY_SHARE: f64 = 0.05;
/// An interrupt that causes this share of a CPU's gaps is worth moving.
const MIN_GAP_SHARE: f64 = 0.05;

/// What the checks look at.
struct Examined<'a> {
    record: &'a JitterRecord,
    plan: &'a JitterPlan,
    /// CPUs that are not isolated: interrupts and threads can be moved there.
    housekeeping: CpuSet,
}

/// All findings, worst first.
pub(super) fn list_findings(
    record: &JitterRecord,
    plan: &JitterPlan,
    topology: &Topology,
) -> Vec<Finding> {
    let isolated = plan.isolation.isolated.union(&plan.isolation.nohz_full);
    let examined = Examined {
        record,
        plan,
        housekeeping: topology.online.difference(&isolated),
    };
    let mut findings = examined.find_interrupts_on_isolated();
    findings.extend(examined.find_threads_on_isolated());
    findings.extend(examined.find_ticks());
    findings.extend(examined.find_rcu_callbacks());
    findings.extend(examined.find_gaps_below_kernel());
    findings.extend(examined.find_quota());
    findings.extend(examined.find_other_load());
    findings.extend(examined.suggest_isolation(topology));
    findings.extend(examined.find_movable_interrupts());
    findings.extend(find_noisy_cpu(record, &findings));
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.weight)));
    findings
}

/// A device's interrupt as the system counts it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Irq {
    number: u32,
    name: String,
}

/// The CPUs that an interrupt disturbs.
#[derive(Debug, Default)]
struct DisturbedCpus {
    cpus: CpuSet,
    /// Gaps on these CPUs that the interrupt caused.
    gaps: u64,
    /// All gaps on these CPUs.
    all_gaps: u64,
}

impl Examined<'_> {
    fn watched_cpus<'a>(&'a self, set: &'a CpuSet) -> impl Iterator<Item = &'a JitterCpuRecord> {
        let cpus = self.record.cpus.iter();
        cpus.filter(|cpu| set.contains(cpu.cpu))
    }

    /// Device interrupts on isolated CPUs.
    fn find_interrupts_on_isolated(&self) -> Vec<Finding> {
        let mut irqs: BTreeMap<Irq, (CpuSet, u64)> = BTreeMap::new();
        for cpu in self.watched_cpus(&self.plan.isolation.isolated) {
            for counted in &cpu.interrupts {
                let Ok(number) = counted.label.parse() else {
                    continue;
                };
                let name = counted.name.clone();
                let (cpus, sum) = irqs.entry(Irq { number, name }).or_default();
                cpus.insert(cpu.cpu);
                *sum += counted.count;
            }
        }
        let finding = |(irq, (cpus, count)): (Irq, (CpuSet, u64))| {
            let times = count_of(count, "time", "times");
            let managed = match self.plan.isolation.has_managed_irq {
                true => "",
                false => {
                    "; if the kernel refuses, the interrupt is managed: boot with isolcpus=managed_irq,…"
                }
            };
            Finding::new(
                "isolated_interrupt",
                Severity::Warning,
                format!(
                    "{}, but {} (IRQ {}) interrupted {} {times}.",
                    are_isolated(&cpus),
                    irq.name,
                    irq.number,
                    it_or_them(&cpus)
                ),
                format!("As root: {}{managed}.", self.move_irq(irq.number)),
            )
            .with_weight(8)
            .with_evidence("irq", irq.number)
            .with_evidence("cpus", cpus.to_string())
            .with_evidence("interrupts", count)
        };
        irqs.into_iter().map(finding).collect()
    }

    fn move_irq(&self, number: u32) -> String {
        format!(
            "echo {} > /proc/irq/{number}/smp_affinity_list",
            self.housekeeping
        )
    }

    /// Other threads on isolated CPUs.
    fn find_threads_on_isolated(&self) -> Option<Finding> {
        let mut threads: BTreeMap<&str, f64> = BTreeMap::new();
        let mut cpus = CpuSet::new();
        for cpu in self.watched_cpus(&self.plan.isolation.isolated) {
            for cause in &cpu.causes {
                if cause.kind == GapCause::Thread {
                    *threads.entry(&cause.name).or_default() += cause.lost_ms;
                    cpus.insert(cpu.cpu);
                }
            }
        }
        let lost_ms: f64 = threads.values().sum();
        let mut ranked: Vec<(&str, f64)> = threads.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let most = ranked.first()?.0;
        let others = match ranked.len() {
            1 => String::new(),
            more => format!(
                " and {}",
                count_of(more as u64 - 1, "other thread", "other threads")
            ),
        };
        let advice = match most.starts_with("kworker/") {
            true => format!(
                "Keep unbound workqueues off them, as root: echo {} > /sys/devices/virtual/workqueue/cpumask.",
                kernel_mask(&self.housekeeping)
            ),
            false => format!(
                "Show their affinity with: taskset -apc PID; move those that are not per-CPU kernel threads with: taskset -apc {} PID.",
                self.housekeeping
            ),
        };
        let finding = Finding::new(
            "isolated_thread",
            Severity::Warning,
            format!(
                "{}, but {most}{others} ran on {} and took {lost_ms:.3} ms.",
                are_isolated(&cpus),
                it_or_them(&cpus)
            ),
            advice,
        );
        Some(
            finding
                .with_weight(7)
                .with_evidence("cpus", cpus.to_string())
                .with_evidence("lost_ms", lost_ms),
        )
    }

    /// Ticks on CPUs in `nohz_full`.
    fn find_ticks(&self) -> Option<Finding> {
        let mut cpus = CpuSet::new();
        let (mut ticks, mut most_per_s) = (0, 0.0_f64);
        for cpu in self.watched_cpus(&self.plan.isolation.nohz_full) {
            let Some(counted) = count_ticks(cpu) else {
                continue;
            };
            let per_s = counted as f64 / cpu.watched_s.max(1e-9);
            if per_s > MAX_TICKS_PER_S {
                cpus.insert(cpu.cpu);
                ticks += counted;
                most_per_s = most_per_s.max(per_s);
            }
        }
        let times = count_of(ticks, "time", "times");
        let sentence = match cpus.len() {
            0 => return None,
            1 => format!(
                "CPU {cpus} is in nohz_full, but its timer interrupted it {times} ({most_per_s:.0} a second)."
            ),
            _ => format!(
                "CPUs {cpus} are in nohz_full, but their timers interrupted them {times} (up to {most_per_s:.0} a second each)."
            ),
        };
        let finding = Finding::new(
            "nohz_full_tick",
            Severity::Warning,
            sentence,
            format!(
                "The tick stops only while a single thread is runnable and nothing else needs it. Find out what does, as root: perf record -e timer:tick_stop -C {cpus} -- sleep 5; perf script."
            ),
        );
        Some(
            finding
                .with_weight(6)
                .with_evidence("cpus", cpus.to_string())
                .with_evidence("ticks", ticks),
        )
    }

    /// RCU callbacks on isolated CPUs.
    fn find_rcu_callbacks(&self) -> Option<Finding> {
        let isolation = &self.plan.isolation;
        let free = isolation.isolated.union(&isolation.nohz_full);
        let uncovered = free.difference(&isolation.rcu_nocbs);
        let mut cpus = CpuSet::new();
        let mut count = 0;
        for cpu in self.watched_cpus(&uncovered) {
            if let Some(rcu) = cpu.softirqs.iter().find(|softirq| softirq.label == "RCU") {
                cpus.insert(cpu.cpu);
                count += rcu.count;
            }
        }
        if count == 0 {
            return None;
        }
        let finding = Finding::new(
            "isolated_rcu",
            Severity::Warning,
            format!(
                "{}, but RCU had work there {}.",
                are_isolated(&cpus),
                count_of(count, "time", "times")
            ),
            format!("Add to the kernel's command line: rcu_nocbs={free}."),
        );
        Some(
            finding
                .with_weight(5)
                .with_evidence("cpus", cpus.to_string())
                .with_evidence("softirqs", count),
        )
    }

    /// Time that the hypervisor or the firmware took, which no setting of this system can change.
    fn find_gaps_below_kernel(&self) -> Option<Finding> {
        let causes = &self.record.causes;
        let cause = causes
            .iter()
            .find(|cause| matches!(cause.kind, GapCause::Hypervisor | GapCause::Hardware))?;
        let share = cause.lost_ms * 1e-3 / self.watched_s();
        if share < MIN_SHARE {
            return None;
        }
        let (check, who, advice) = match cause.kind {
            GapCause::Hypervisor => (
                "hypervisor_gaps",
                "the hypervisor",
                "Nothing inside the virtual machine changes what the hypervisor takes: ask for dedicated CPUs, or pin its vCPUs on the host (virsh vcpupin DOMAIN VCPU CPU).",
            ),
            _ => (
                "hardware_gaps",
                "firmware or hardware (SMI)",
                "Disable firmware features that run in the background (power capping, USB emulation, error reporting), and check, as root: hwlatdetect --duration=60.",
            ),
        };
        let finding = Finding::new(
            check,
            Severity::Warning,
            format!(
                "Most likely {who} took {} away for {} of the time, at most {} at once: the kernel reports no other cause.",
                name_cpus(&cause.cpus),
                percent(share),
                seconds(cause.longest_us * 1e-6)
            ),
            advice,
        );
        Some(
            finding
                .with_weight(6)
                .with_evidence("share", share)
                .with_evidence("longest_us", cause.longest_us),
        )
    }

    fn watched_s(&self) -> f64 {
        let watched: f64 = self.record.cpus.iter().map(|cpu| cpu.watched_s).sum();
        watched.max(1e-9)
    }

    /// Gaps because of a CPU quota.
    fn find_quota(&self) -> Option<Finding> {
        let causes = &self.record.causes;
        let cause = causes.iter().find(|cause| cause.kind == GapCause::Quota)?;
        Some(
            Finding::new(
                "quota_gaps",
                Severity::Warning,
                format!(
                    "A CPU quota throttled pinwise's threads {}, for at most {:.1} ms.",
                    count_of(cause.gaps, "time", "times"),
                    cause.longest_us * 1e-3
                ),
                "Run in a cgroup without a quota, or raise cpu.max: see pinwise doctor.",
            )
            .with_weight(8)
            .with_evidence("gaps", cause.gaps),
        )
    }

    /// Load of other programs: from the gaps, or, if their causes are unknown, from how long the
    /// watching threads were queued.
    fn find_other_load(&self) -> Option<Finding> {
        let threads = || {
            let causes = self.record.causes.iter();
            causes.filter(|cause| cause.kind == GapCause::Thread)
        };
        let (lost_ms, most): (f64, String) = match self.record.causes_unavailable {
            Some(_) => {
                let queued = self.record.cpus.iter().filter_map(|cpu| cpu.queued_ms);
                (queued.sum(), String::new())
            }
            None => {
                let lost_ms = threads().map(|cause| cause.lost_ms).sum();
                let most = &threads().next()?.name;
                (lost_ms, format!(", {most} more than any other"))
            }
        };
        let share = lost_ms * 1e-3 / self.watched_s();
        (share >= BUSY_SHARE).then(|| {
            Finding::new(
                "busy",
                Severity::Warning,
                format!("Other threads took {} of the time{most}.", percent(share)),
                "This measures their load: repeat it when nothing else runs (pinwise top shows what does).",
            )
            .with_weight(4)
            .with_evidence("share", share)
        })
    }

    /// What isolation would prevent, if no CPU is isolated.
    fn suggest_isolation(&self, topology: &Topology) -> Option<Finding> {
        let isolation = &self.plan.isolation;
        let is_set = !isolation.isolated.is_empty() || !isolation.nohz_full.is_empty();
        let first = topology.online.first()?;
        let candidates = self.plan.cpus.difference(&CpuSet::single(first));
        // If there are only a few CPUs, none can be spared.
        if is_set || candidates.is_empty() || topology.online.len() < 4 {
            return None;
        }
        let avoidable = |kind: &GapCause| {
            matches!(
                kind,
                GapCause::Interrupt | GapCause::CpuInterrupt | GapCause::Softirq | GapCause::Thread
            )
        };
        let causes = self.record.causes.iter();
        let lost_ms: f64 = causes
            .filter(|cause| avoidable(&cause.kind))
            .map(|cause| cause.lost_ms)
            .sum();
        let share = lost_ms * 1e-3 / self.watched_s();
        if share < MIN_SHARE {
            return None;
        }
        let rest = topology.online.difference(&candidates);
        Some(
            Finding::new(
                "not_isolated",
                Severity::Note,
                format!(
                    "No CPU is isolated; interrupts and other threads took {} of the time.",
                    percent(share)
                ),
                format!(
                    "If that is too much, add to the kernel's command line: isolcpus=managed_irq,domain,{candidates} nohz_full={candidates} rcu_nocbs={candidates} irqaffinity={rest}."
                ),
            )
            .with_weight(2)
            .with_evidence("share", share),
        )
    }

    /// Device interrupts that cause many gaps on CPUs that are not isolated. Advice is to move them
    /// off all CPUs that they disturb, or else to one.
    fn find_movable_interrupts(&self) -> Vec<Finding> {
        let isolated = &self.plan.isolation.isolated;
        let mut irqs: BTreeMap<Irq, DisturbedCpus> = BTreeMap::new();
        for cpu in &self.record.cpus {
            let causes = cpu.causes.iter();
            let most = causes
                .filter(|cause| cause.kind == GapCause::Interrupt)
                .max_by_key(|cause| cause.gaps);
            let Some((most, number)) = most.and_then(|most| Some((most, most.irq?))) else {
                continue;
            };
            let share = most.gaps as f64 / (cpu.gaps.max(1) as f64);
            if share < MIN_GAP_SHARE || isolated.contains(cpu.cpu) {
                continue;
            }
            let name = most.name.clone();
            let disturbed = irqs.entry(Irq { number, name }).or_default();
            disturbed.cpus.insert(cpu.cpu);
            disturbed.gaps += most.gaps;
            disturbed.all_gaps += cpu.gaps;
        }
        irqs.into_iter()
            .filter_map(|(irq, disturbed)| self.advise_move(&irq, &disturbed))
            .collect()
    }

    fn advise_move(&self, irq: &Irq, disturbed: &DisturbedCpus) -> Option<Finding> {
        let Irq { number, name } = irq;
        let others = self.housekeeping.difference(&disturbed.cpus);
        let first = self.housekeeping.first()?;
        let advice = if !others.is_empty() {
            format!(
                "Move IRQ {number} to other CPUs, as root: echo {others} > /proc/irq/{number}/smp_affinity_list"
            )
        } else if self.housekeeping.len() > 1 {
            format!(
                "Keep IRQ {number} on one CPU, as root: echo {first} > /proc/irq/{number}/smp_affinity_list"
            )
        } else {
            return None;
        };
        let sentence = format!(
            "{name} (IRQ {number}) made {} of the {} gaps of {}.",
            grouped(disturbed.gaps),
            grouped(disturbed.all_gaps),
            name_cpus(&disturbed.cpus.to_string())
        );
        let finding = Finding::new("device_interrupt", Severity::Note, sentence, advice);
        Some(
            finding
                .with_weight(1)
                .with_evidence("irq", *number)
                .with_evidence("cpus", disturbed.cpus.to_string())
                .with_evidence("gaps", disturbed.gaps),
        )
    }
}

/// Interrupts of a CPU's own timer; `None` if the system does not count them.
fn count_ticks(cpu: &JitterCpuRecord) -> Option<u64> {
    let is_timer = |label: &str, name: &str| label == "LOC" || name.contains("arch_timer");
    let interrupts = cpu.interrupts.iter();
    let ticks = interrupts.filter(|counted| is_timer(&counted.label, &counted.name));
    ticks.map(|counted| counted.count).reduce(|a, b| a + b)
}

/// A CPU mask in the kernel's syntax: groups of eight hexadecimal digits, no prefix.
fn kernel_mask(cpus: &CpuSet) -> String {
    let mask = cpus.to_mask();
    let digits = mask.trim_start_matches("0x").as_bytes();
    let groups = digits.rchunks(8).rev();
    let groups = groups.map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

fn name_cpus(list: &str) -> String {
    match list.parse::<usize>() {
        Ok(cpu) => format!("CPU {cpu}"),
        Err(_) => format!("CPUs {list}"),
    }
}

fn are_isolated(cpus: &CpuSet) -> String {
    match cpus.len() {
        1 => format!("CPU {cpus} is isolated"),
        _ => format!("CPUs {cpus} are isolated"),
    }
}

fn it_or_them(cpus: &CpuSet) -> &'static str {
    match cpus.len() {
        1 => "it",
        _ => "them",
    }
}

#[cfg(test)]
mod tests;
