//! Collects gaps, in bounded memory, and turns them into the figures of a record.

use std::collections::BTreeMap;

use crate::causes::NamedCause;
use pinwise_machine::jitter::SystemCounter;
use pinwise_machine::{GapListener, WatchedCpu, WatchedCpus};
use pinwise_record::{
    CountedRecord, GapCause, GapPartRecord, GapRecord, JitterCauseRecord, JitterCpuRecord,
};
use pinwise_sched::jitter::{Amount, Cause, ExplainedGap, Tally};
use pinwise_topology::{CpuSet, Topology};

/// Number of longest gaps that a record keeps.
const MAX_GAPS: usize = 50;
/// Number of threads that a record names per CPU, and over all CPUs.
const MAX_THREADS: usize = 100;

/// The gaps so far.
#[derive(Debug)]
pub(super) struct Recorder {
    /// By CPU.
    tallies: BTreeMap<usize, Tally>,
    /// The longest gaps with their CPUs, longest first.
    longest: Vec<(usize, ExplainedGap)>,
    is_virtual: bool,
    /// Addresses of devices by the numbers of their interrupts.
    devices: BTreeMap<u32, String>,
}

impl GapListener for Recorder {
    fn take(&mut self, cpu: usize, gaps: &[ExplainedGap]) {
        let tally = self.tallies.entry(cpu).or_default();
        for gap in gaps {
            tally.add(gap);
            let length_ns = gap.gap.length_ns();
            let is_longer = |(_, other): &(usize, ExplainedGap)| other.gap.length_ns() >= length_ns;
            let index = self.longest.partition_point(is_longer);
            if index < MAX_GAPS {
                self.longest.insert(index, (cpu, gap.clone()));
                self.longest.truncate(MAX_GAPS);
            }
        }
    }
}

impl Recorder {
    pub(super) fn new(topology: &Topology) -> Self {
        let devices = topology.devices_by_interrupt();
        let devices = devices.into_iter();
        Self {
            tallies: BTreeMap::new(),
            longest: Vec::new(),
            is_virtual: topology.identity.hypervisor.is_some(),
            devices: devices
                .map(|(number, device)| (number, device.address.clone()))
                .collect(),
        }
    }

    pub(super) fn gaps(&self) -> u64 {
        self.tallies.values().map(Tally::gaps).sum()
    }

    /// Share of the gaps whose cause is known; `None` without gaps.
    pub(super) fn named_share(&self) -> Option<f64> {
        let unknown = self.tallies.values().filter_map(|tally| {
            let amount = tally.causes().get(&Cause::Unknown);
            amount.map(|amount| amount.gaps)
        });
        let (unknown, all) = (unknown.sum::<u64>(), self.gaps());
        (all > 0).then(|| 1.0 - unknown as f64 / all as f64)
    }

    /// The causes of gaps over all CPUs, the one that took most time first.
    pub(super) fn causes(&self) -> Vec<JitterCauseRecord> {
        let mut by_cause: BTreeMap<&Cause, (CpuSet, Amount)> = BTreeMap::new();
        for (&cpu, tally) in &self.tallies {
            for (cause, amount) in tally.causes() {
                let (cpus, sum) = by_cause.entry(cause).or_default();
                cpus.insert(cpu);
                *sum = sum.and(amount);
            }
        }
        self.rank_causes(
            by_cause
                .iter()
                .map(|(cause, (cpus, sum))| (*cause, cpus.clone(), *sum)),
        )
    }

    /// Sorts causes by the time they took; threads beyond [`MAX_THREADS`] are merged into one.
    fn rank_causes<'a>(
        &self,
        causes: impl Iterator<Item = (&'a Cause, CpuSet, Amount)>,
    ) -> Vec<JitterCauseRecord> {
        let mut causes: Vec<_> = causes.collect();
        causes.sort_by_key(|(_, _, amount)| std::cmp::Reverse(amount.time_ns));
        let (mut merged, mut cpus, mut sum) = (0, CpuSet::new(), Amount::default());
        let mut threads = 0;
        causes.retain(|(cause, thread_cpus, amount)| {
            threads += usize::from(matches!(cause, Cause::Thread(_)));
            let is_kept = threads <= MAX_THREADS || !matches!(cause, Cause::Thread(_));
            if !is_kept {
                merged += 1;
                cpus = cpus.union(thread_cpus);
                sum = sum.and(amount);
            }
            is_kept
        });
        let others = Cause::Thread(format!("({merged} others)").into());
        if merged > 0 {
            causes.push((&others, cpus, sum));
        }
        let record = |(cause, cpus, amount): (&Cause, CpuSet, Amount)| {
            let NamedCause { kind, name, irq } = self.name_cause(cause);
            JitterCauseRecord {
                kind,
                name,
                irq,
                device: irq.and_then(|number| self.devices.get(&number).cloned()),
                cpus: cpus.to_string(),
                gaps: amount.gaps,
                lost_ms: amount.time_ns as f64 / 1e6,
                longest_us: microseconds(amount.longest_ns),
            }
        };
        causes.into_iter().map(record).collect()
    }

    fn name_cause(&self, cause: &Cause) -> NamedCause {
        let mut named = NamedCause::new(cause);
        if self.is_virtual && *cause == Cause::HypervisorOrFirmware {
            named.kind = GapCause::Hypervisor;
        }
        named
    }

    pub(super) fn cpus(&self, found: &WatchedCpus) -> Vec<JitterCpuRecord> {
        let none = Tally::default();
        let cpus = found.cpus.iter().map(|cpu| {
            let tally = self.tallies.get(&cpu.cpu).unwrap_or(&none);
            self.to_cpu_record(cpu, tally)
        });
        cpus.collect()
    }

    fn to_cpu_record(&self, watched: &WatchedCpu, tally: &Tally) -> JitterCpuRecord {
        let watched_s = watched.time.as_secs_f64();
        let lost_s = tally.time_ns() as f64 * 1e-9;
        let running_s = (watched_s - lost_s).max(0.0);
        let quantile = |share| tally.quantile_ns(share).map(microseconds);
        let cpu = CpuSet::single(watched.cpu);
        let causes = tally.causes().iter();
        let causes = causes.map(|(cause, amount)| (cause, cpu.clone(), *amount));
        JitterCpuRecord {
            cpu: watched.cpu,
            watched_s,
            resolution_ns: running_s * 1e9 / (watched.readings.max(1) as f64),
            entry_us: watched.entry.map(|time| time.as_secs_f64() * 1e6),
            gaps: tally.gaps(),
            median_us: quantile(0.5),
            p99_us: quantile(0.99),
            longest_us: (tally.gaps() > 0).then(|| microseconds(tally.longest_ns())),
            lost_share: if watched_s > 0.0 {
                lost_s / watched_s
            } else {
                0.0
            },
            unwritten: watched.lost_gaps,
            causes: self.rank_causes(causes),
            queued_ms: watched.queued.map(|time| time.as_secs_f64() * 1e3),
            steal_ms: watched.steal.map(|time| time.as_secs_f64() * 1e3),
            interrupts: to_count_records(&watched.interrupts),
            softirqs: to_count_records(&watched.softirqs),
        }
    }

    pub(super) fn longest_gaps(&self, start_ns: u64) -> Vec<GapRecord> {
        let gaps = self.longest.iter().map(|(cpu, found)| GapRecord {
            cpu: *cpu,
            at_s: found.gap.from_ns.saturating_sub(start_ns) as f64 * 1e-9,
            length_us: microseconds(found.gap.length_ns()),
            parts: found
                .parts
                .iter()
                .map(|part| self.to_part_record(part))
                .collect(),
        });
        gaps.collect()
    }

    fn to_part_record(&self, (cause, ns): &(Cause, u64)) -> GapPartRecord {
        let NamedCause { kind, name, irq } = self.name_cause(cause);
        GapPartRecord {
            kind,
            name,
            irq,
            us: microseconds(*ns),
        }
    }

    pub(super) fn notes(&self, found: &WatchedCpus) -> Vec<String> {
        let mut notes = found.notes.clone();
        for cpu in &found.cpus {
            if cpu.lost_gaps > 0 {
                notes.push(format!(
                    "The buffer of CPU {1} was full: {0} more gaps are not counted; use a larger --threshold.",
                    cpu.lost_gaps, cpu.cpu
                ));
            }
        }
        notes
    }
}

/// The system's counters, largest first.
fn to_count_records(counters: &[SystemCounter]) -> Vec<CountedRecord> {
    let mut records: Vec<CountedRecord> = counters
        .iter()
        .map(|counted| CountedRecord {
            label: counted.label.clone(),
            name: counted.name.clone(),
            count: counted.count,
        })
        .collect();
    records.sort_by_key(|counted| std::cmp::Reverse(counted.count));
    records
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests;
