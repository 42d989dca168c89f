//! Gaps of a described machine: each cause hits each of its CPUs at random, at the described rate,
//! for a time drawn from a log-normal distribution. A cause that comes during another waits for it,
//! so that both make one gap.

use std::time::Duration;

use rand::Rng;
use serde::Deserialize;

use super::checker::{Checker, DescriptionError};
use super::noise::{draw_exponential, draw_normal};
use pinwise_format::whole;
use pinwise_machine::{GapListener, JitterOrder, WatchedCpu, WatchedCpus};
use pinwise_sched::jitter::{Cause, ExplainedGap, Gap};
use pinwise_topology::{CpuSet, Topology};

/// Limit on the sum of all rates, per second, so that simulating is faster than measuring.
const MAX_PER_S: f64 = 10_000.0;
/// Gaps handed on at once.
const BATCH: usize = 4096;

with_defaults! {
    /// `[jitter]`
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(super) struct RawJitter {
        /// Time between two readings of the clock, ns.
        resolution_ns: f64 = 25.0,
        /// The causes of gaps.
        cause: Vec<RawCause> = Vec::new(),
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCause {
    kind: CauseKind,
    /// Its name; empty if the kind says all.
    #[serde(default)]
    name: String,
    /// An interrupt's number.
    irq: Option<u32>,
    /// The CPUs that it affects, as a list; without it, all.
    cpus: Option<String>,
    /// Mean number of times per second that it affects each of them.
    rate: f64,
    /// Median of its durations, µs.
    median_us: f64,
    /// Standard deviation of their logarithm.
    #[serde(default)]
    sd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CauseKind {
    Interrupt,
    CpuInterrupt,
    Nmi,
    Softirq,
    Thread,
    Quota,
    Hardware,
}

/// A checked `[jitter]`.
#[derive(Debug)]
pub(super) struct Jitter {
    resolution_ns: f64,
    causes: Vec<CheckedCause>,
}

#[derive(Debug)]
struct CheckedCause {
    cause: Cause,
    cpus: CpuSet,
    /// Mean interval, ns.
    every_ns: f64,
    median_ns: f64,
    sd: f64,
}

impl RawJitter {
    pub(super) fn check(
        self,
        topology: &Topology,
        checker: &Checker<'_>,
    ) -> Result<Jitter, DescriptionError> {
        checker.check_range("jitter.resolution_ns", self.resolution_ns, 1.0, 1e6)?;
        let total_rate: f64 = self.cause.iter().map(|cause| cause.rate).sum();
        let causes = self.cause.into_iter().enumerate();
        let causes = causes.map(|(at, raw)| raw.check(at, topology, checker));
        let causes = causes.collect::<Result<_, _>>()?;
        if total_rate > MAX_PER_S {
            let reason = format!("the sum, {total_rate} per second, must be at most {MAX_PER_S}");
            return Err(checker.value_error("jitter.cause.rate", &reason));
        }
        Ok(Jitter {
            resolution_ns: self.resolution_ns,
            causes,
        })
    }
}

impl RawCause {
    fn check(
        self,
        at: usize,
        topology: &Topology,
        checker: &Checker<'_>,
    ) -> Result<CheckedCause, DescriptionError> {
        let key = |name: &str| format!("jitter.cause[{at}].{name}");
        checker.check_positive(&key("rate"), self.rate)?;
        checker.check_range(&key("median_us"), self.median_us, 0.001, 1e6)?;
        checker.check_range(&key("sd"), self.sd, 0.0, 5.0)?;
        if self.irq.is_some() != (self.kind == CauseKind::Interrupt) {
            let reason = "required of kind 'interrupt', and of no other kind";
            return Err(checker.value_error(&key("irq"), reason));
        }
        let cpus = match &self.cpus {
            None => topology.online.clone(),
            Some(list) => CpuSet::parse_list(list)
                .map_err(|error| checker.value_error(&key("cpus"), &error.to_string()))?,
        };
        let missing = cpus.difference(&topology.online);
        if !missing.is_empty() {
            let reason = format!("no such online CPU: {missing}");
            return Err(checker.value_error(&key("cpus"), &reason));
        }
        let name = self.name.into();
        Ok(CheckedCause {
            cause: match self.kind {
                CauseKind::Interrupt => Cause::Interrupt {
                    number: self.irq.unwrap_or(0),
                    name,
                },
                CauseKind::CpuInterrupt => Cause::Vector(name),
                CauseKind::Nmi => Cause::Nmi,
                CauseKind::Softirq => Cause::Softirq(name),
                CauseKind::Thread => Cause::Thread(name),
                CauseKind::Quota => Cause::Quota,
                CauseKind::Hardware => Cause::HypervisorOrFirmware,
            },
            cpus,
            every_ns: 1e9 / self.rate,
            median_ns: self.median_us * 1e3,
            sd: self.sd,
        })
    }
}

impl Jitter {
    /// Simulates watching the CPUs of an order, from `from_ns` on.
    pub(super) fn watch(
        &self,
        order: &JitterOrder<'_>,
        from_ns: u64,
        chance: &mut impl Rng,
        listener: &mut dyn GapListener,
    ) -> WatchedCpus {
        let mut watched = WatchedCpus {
            from_ns,
            ..WatchedCpus::default()
        };
        for cpu in order.cpus.iter() {
            let lost_ns = self.watch_cpu(cpu, order, from_ns, chance, listener);
            let running_ns = order.time.as_nanos() as f64 - lost_ns;
            watched.cpus.push(WatchedCpu {
                cpu,
                time: order.time,
                readings: whole(running_ns.max(0.0) / self.resolution_ns),
                ..WatchedCpu::default()
            });
        }
        watched
    }

    /// Passes the gaps of a CPU to the listener, in order; returns their total time, ns.
    fn watch_cpu(
        &self,
        cpu: usize,
        order: &JitterOrder<'_>,
        from_ns: u64,
        chance: &mut impl Rng,
        listener: &mut dyn GapListener,
    ) -> f64 {
        let end_ns = order.time.as_nanos() as f64;
        let causes: Vec<&CheckedCause> = self
            .causes
            .iter()
            .filter(|c| c.cpus.contains(cpu))
            .collect();
        let mut next_ns: Vec<f64> = causes
            .iter()
            .map(|c| draw_exponential(c.every_ns, chance))
            .collect();
        let mut gaps = GapWriter::new(cpu, order.threshold, from_ns, listener);
        loop {
            let first = (0..causes.len()).min_by(|&a, &b| next_ns[a].total_cmp(&next_ns[b]));
            let Some(at) = first.filter(|&at| next_ns[at] < end_ns) else {
                return gaps.finish();
            };
            let cause = causes[at];
            let length_ns = cause.median_ns * (cause.sd * draw_normal(chance)).exp();
            gaps.add(next_ns[at], length_ns, &cause.cause, end_ns);
            next_ns[at] += draw_exponential(cause.every_ns, chance);
        }
    }
}

/// A gap that a further cause may still prolong; times are ns from the start.
struct OpenGap {
    from_ns: f64,
    to_ns: f64,
    parts: Vec<(Cause, u64)>,
}

/// Joins adjacent causes to gaps, and passes them to the listener.
struct GapWriter<'a> {
    cpu: usize,
    threshold_ns: f64,
    start_ns: u64,
    listener: &'a mut dyn GapListener,
    ready: Vec<ExplainedGap>,
    open: Option<OpenGap>,
    lost_ns: f64,
}

impl<'a> GapWriter<'a> {
    fn new(
        cpu: usize,
        threshold: Duration,
        start_ns: u64,
        listener: &'a mut dyn GapListener,
    ) -> Self {
        Self {
            cpu,
            threshold_ns: threshold.as_nanos() as f64,
            start_ns,
            listener,
            ready: Vec::new(),
            open: None,
            lost_ns: 0.0,
        }
    }

    fn add(&mut self, at_ns: f64, length_ns: f64, cause: &Cause, end_ns: f64) {
        let is_adjacent = self.open.as_ref().is_some_and(|gap| at_ns <= gap.to_ns);
        if !is_adjacent {
            self.close();
            self.open = Some(OpenGap {
                from_ns: at_ns,
                to_ns: at_ns,
                parts: Vec::new(),
            });
        }
        let Some(OpenGap { to_ns, parts, .. }) = &mut self.open else {
            return;
        };
        let part_ns = length_ns.min(end_ns - *to_ns).max(0.0);
        *to_ns += part_ns;
        match parts.iter_mut().find(|(known, _)| known == cause) {
            Some((_, sum)) => *sum += whole(part_ns),
            None => parts.push((cause.clone(), whole(part_ns))),
        }
    }

    fn close(&mut self) {
        let Some(OpenGap {
            from_ns,
            to_ns,
            mut parts,
        }) = self.open.take()
        else {
            return;
        };
        self.lost_ns += to_ns - from_ns;
        if to_ns - from_ns <= self.threshold_ns {
            return;
        }
        parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let from_ns = self.start_ns + whole(from_ns);
        let sum: u64 = parts.iter().map(|(_, part)| part).sum();
        let to_ns = from_ns + sum;
        let gap = Gap { from_ns, to_ns };
        self.ready.push(ExplainedGap { gap, parts });
        if self.ready.len() >= BATCH {
            self.listener.take(self.cpu, &self.ready);
            self.ready.clear();
        }
    }

    fn finish(mut self) -> f64 {
        self.close();
        self.listener.take(self.cpu, &self.ready);
        self.lost_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedMachine;
    use pinwise_machine::GapWatcher;

    const TEXT: &str = r#"
        topology = "core:4 pu:1"
        [[jitter.cause]]
        kind = "cpu-interrupt"
        name = "local_timer"
        rate = 250
        median_us = 8
        sd = 0.1
        [[jitter.cause]]
        kind = "interrupt"
        name = "eth0-rx-1"
        irq = 38
        cpus = "2"
        rate = 100
        median_us = 20
    "#;

    #[derive(Default)]
    struct SeenGaps(Vec<(usize, ExplainedGap)>);

    impl GapListener for SeenGaps {
        fn take(&mut self, cpu: usize, gaps: &[ExplainedGap]) {
            self.0.extend(gaps.iter().map(|gap| (cpu, gap.clone())));
        }
    }

    fn watch_gaps(seed: u64, threshold_us: u64) -> (SeenGaps, WatchedCpus) {
        let mut machine = SimulatedMachine::from_text("sim:test", TEXT, seed).unwrap();
        let mut seen = SeenGaps::default();
        let order = JitterOrder {
            cpus: &CpuSet::parse_list("1-2").unwrap(),
            time: Duration::from_secs(40),
            threshold: Duration::from_micros(threshold_us),
        };
        let found = machine.watch_gaps(&order, &mut seen).unwrap();
        (seen, found)
    }

    #[test]
    fn causes_come_as_often_and_take_as_long_as_the_description_says() {
        let (SeenGaps(gaps), found) = watch_gaps(7, 5);
        let gaps_of = |cpu| gaps.iter().filter(move |(on, _)| *on == cpu);
        let is_card = |cause: &Cause| matches!(cause, Cause::Interrupt { number: 38, .. });
        assert!(gaps_of(1).all(|(_, gap)| !is_card(&gap.parts[0].0)));
        // 10,000 ticks and 4,000 packets, five standard errors; few share a gap.
        let ticks = gaps_of(1).count();
        assert!((9_500..10_500).contains(&ticks), "{ticks}");
        let cards = gaps_of(2)
            .filter(|(_, gap)| is_card(&gap.parts[0].0))
            .count();
        assert!((3_650..4_350).contains(&cards), "{cards}");
        let mut lengths: Vec<u64> = gaps_of(1).map(|(_, gap)| gap.gap.length_ns()).collect();
        lengths.sort_unstable();
        let median = lengths[lengths.len() / 2];
        assert!((7_900..8_100).contains(&median), "{median}");
        for (_, explained) in &gaps {
            let sum: u64 = explained.parts.iter().map(|(_, part)| part).sum();
            assert_eq!(sum, explained.gap.length_ns());
        }
        let in_order =
            |pair: &[&(usize, ExplainedGap)]| pair[0].1.gap.to_ns <= pair[1].1.gap.from_ns;
        assert!(gaps_of(2).collect::<Vec<_>>().windows(2).all(in_order));
        assert_eq!(found.cpus.len(), 2);
        assert!(found.unreported.is_none() && !found.was_interrupted);
    }

    #[test]
    fn a_seed_decides_and_short_gaps_are_left_out() {
        let gaps = |seed, threshold_us| watch_gaps(seed, threshold_us).0.0;
        assert_eq!(gaps(7, 5), gaps(7, 5));
        assert_ne!(gaps(7, 5), gaps(8, 5));
        let long = gaps(7, 15);
        assert!(!long.is_empty() && long.len() < gaps(7, 5).len() / 2);
        assert!(long.iter().all(|(_, gap)| gap.gap.length_ns() > 15_000));
    }

    #[track_caller]
    fn check_refusal(from: &str, to: &str, expected: &str) {
        let text = TEXT.replacen(from, to, 1);
        let error = SimulatedMachine::from_text("sim:test", &text, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("sim:test: jitter.cause{expected}")
        );
    }

    #[test]
    fn invalid_descriptions_are_refused() {
        check_refusal("rate = 250", "rate = 0", "[0].rate: 0 must be above 0");
        check_refusal(
            "rate = 250",
            "rate = 9901",
            ".rate: the sum, 10001 per second, must be at most 10000",
        );
        check_refusal(
            "cpus = \"2\"",
            "cpus = \"4\"",
            "[1].cpus: no such online CPU: 4",
        );
        let number = "irq: required of kind 'interrupt', and of no other kind";
        check_refusal("irq = 38", "", &format!("[1].{number}"));
        check_refusal(
            "rate = 250",
            "rate = 250\nirq = 1",
            &format!("[0].{number}"),
        );
        check_refusal(
            "median_us = 8",
            "median_us = 0",
            "[0].median_us: 0 must be from 0.001 to 1000000",
        );
    }
}
