//! Turns sums of interrupts into records and findings.

use super::*;
use crate::trace::{TraceDetails, TraceRecorder};
use pinwise_record::{CpuTimeRecord, HostRecord, TraceTier};
use pinwise_sched::jitter::Cause;
use pinwise_sched::{InterruptTime, Tier};
use pinwise_topology::interrupts::Interrupt;
use pinwise_topology::{CpuSet, Device};

fn machine() -> Topology {
    let mut topology = Topology::from_synthetic("package:1 core:4 pu:1").unwrap();
    let mut card = Device::new("0000:01:00.0", 0x0200, None, None).unwrap();
    card.names = vec!["eth0".to_owned()];
    card.interrupts = vec![Interrupt {
        number: 38,
        cpus: CpuSet::single(2),
        count: Some(9),
        is_managed: false,
    }];
    topology.devices = vec![card].into();
    topology
}

/// A trace of one second, with half a second of the program on each of these CPUs.
fn trace_on_cpus(cpus: &[usize]) -> TraceRecord {
    let topology = machine();
    let details = TraceDetails {
        source: TraceSource::Command {
            command: vec!["/usr/sbin/nginx".to_owned()],
            placement: "os-default".to_owned(),
            cpus: "0-3".to_owned(),
        },
        tier: TraceTier::Bpf,
        host: HostRecord::new("local".to_owned(), false, &topology),
        span_ns: Some((0, 1_000_000_000)),
        throttled: None,
        notes: Vec::new(),
        tags: Vec::new(),
    };
    let mut record = TraceRecorder::new(&topology, Tier::Bpf.scope()).finish(details);
    record.figures.totals.cpu_s = 0.5 * cpus.len() as f64;
    let time = |&cpu: &usize| CpuTimeRecord {
        cpu,
        own_s: 0.5,
        foreign_s: None,
        idle_s: None,
        unknown_s: None,
        switches: None,
    };
    record.cpus = cpus.iter().map(time).collect();
    record
}

fn share(cause: Cause, cpu: usize, time_ms: u64, own_ms: u64) -> InterruptShare {
    let took = InterruptTime {
        count: 10,
        time_ns: time_ms * 1_000_000,
        own_ns: own_ms * 1_000_000,
    };
    InterruptShare { cause, cpu, took }
}

fn card() -> Cause {
    let name = "eth0-rx-1".into();
    Cause::Interrupt { number: 38, name }
}

fn add_up_interrupts(shares: Vec<InterruptShare>, gaps: u64) -> TraceRecord {
    record_of_summary(&InterruptSummary {
        shares,
        gaps,
        ..InterruptSummary::default()
    })
}

fn record_of_summary(summary: &InterruptSummary) -> TraceRecord {
    let mut trace = trace_on_cpus(&[1, 2]);
    trace.interrupts = Some(make_record(summary, &trace, &machine()));
    trace
}

#[test]
fn causes_have_their_device_and_their_share_of_each_cpu() {
    let net = || Cause::Softirq("NET_RX".into());
    let trace = add_up_interrupts(
        vec![
            share(card(), 2, 80, 60),
            share(net(), 1, 40, 0),
            share(net(), 3, 100, 0),
        ],
        0,
    );
    let interrupts = trace.interrupts.unwrap();
    assert!((interrupts.stolen_s - 0.06).abs() < 1e-9);
    assert!((interrupts.stolen_percent.unwrap() - 6.0).abs() < 1e-9);
    let [net, card] = interrupts.causes.as_slice() else {
        panic!("{interrupts:?}");
    };
    assert_eq!((net.label().as_str(), net.count), ("softirq NET_RX", 20));
    assert_eq!(net.device, None);
    assert!((net.seconds - 0.14).abs() < 1e-9);
    assert_eq!(net.cpus[0].stolen_percent, Some(0.0));
    // The program was never there.
    assert_eq!(net.cpus[1].stolen_percent, None);
    assert_eq!(card.label(), "eth0-rx-1 (IRQ 38)");
    assert_eq!(card.device.as_deref(), Some("0000:01:00.0"));
    assert!((card.cpus[0].percent - 8.0).abs() < 1e-9);
    assert!((card.cpus[0].stolen_percent.unwrap() - 12.0).abs() < 1e-9);
}

#[track_caller]
fn check_findings(shares: Vec<InterruptShare>, gaps: u64, expected: &[(&str, &str)]) {
    let trace = add_up_interrupts(shares, gaps);
    let found = list_findings(&trace, &machine());
    let words = found
        .iter()
        .map(|f| (f.sentence.as_str(), f.advice.as_str()));
    assert_eq!(words.collect::<Vec<_>>(), expected);
}

#[test]
fn a_device_that_takes_much_of_the_programs_time_is_named() {
    check_findings(
        vec![share(card(), 1, 30, 30), share(card(), 2, 80, 60)],
        0,
        &[(
            "eth0-rx-1 (IRQ 38) took 12.0 % of CPU 2, 6.0 % of CPU 1 while nginx ran there.",
            "Try other CPUs for it: pinwise compare --irq eth0=away -- …",
        )],
    );
    let legacy = Cause::Interrupt {
        number: 9,
        name: "acpi".into(),
    };
    check_findings(
        vec![share(legacy, 2, 60, 60)],
        0,
        &[(
            "acpi (IRQ 9) took 12.0 % of CPU 2 while nginx ran there.",
            "Let other CPUs take it, as root: echo CPUS > /proc/irq/9/smp_affinity_list",
        )],
    );
}

#[test]
fn short_times_and_those_of_others_are_no_finding() {
    check_findings(vec![share(card(), 2, 400, 20)], 0, &[]);
    let tick = Cause::Vector("local_timer".into());
    check_findings(vec![share(tick, 2, 60, 60)], 0, &[]);
}

#[test]
fn lost_reports_are_a_finding() {
    check_findings(
        Vec::new(),
        1,
        &[(
            "Reports of interrupts were lost 1 time: interrupt time is a lower bound.",
            "Trace for a shorter time, or on a less busy machine.",
        )],
    );
}

/// The kernel may lose reports without reporting that.
#[test]
fn fewer_reports_than_the_kernel_counted_are_a_lower_bound() {
    let counted = |by_kernel| {
        let tick = Cause::Vector("local_timer".into());
        record_of_summary(&InterruptSummary {
            shares: [1, 2].map(|cpu| share(tick.clone(), cpu, 1, 1)).into(),
            counted: [(tick, by_kernel)].into(),
            ..InterruptSummary::default()
        })
    };
    let trace = counted(572);
    let cause = &trace.interrupts.as_ref().unwrap().causes[0];
    assert_eq!((cause.count, cause.counted), (20, Some(572)));
    assert!(cause.is_lower_bound);
    let found = list_findings(&trace, &machine());
    assert_eq!(
        found[0].sentence,
        "Of local_timer, 20 were reported and the kernel counted 572: interrupt time is a lower \
         bound."
    );
    // Its counters are read a moment before and after.
    let trace = counted(40);
    assert!(!trace.interrupts.as_ref().unwrap().causes[0].is_lower_bound);
    assert_eq!(list_findings(&trace, &machine()), []);
}
