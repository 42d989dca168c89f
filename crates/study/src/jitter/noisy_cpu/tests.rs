//! CPUs that lose more than the others, and the cure.

use super::*;
use pinwise_record::{
    Answer, GapCause, Header, HostRecord, IsolationRecord, JitterCauseRecord, JitterCpuRecord,
};
use pinwise_topology::Topology;

/// A watch of CPUs that lost these shares of their time to interrupt 38.
fn watch(shares: &[f64]) -> JitterRecord {
    let topology = Topology::from_synthetic("core:4 pu:1").unwrap();
    let card = JitterCauseRecord {
        kind: GapCause::Interrupt,
        name: "eth0-rx-1".to_owned(),
        irq: Some(38),
        ..JitterCauseRecord::default()
    };
    let cpus = shares.iter().enumerate();
    let cpus = cpus.map(|(cpu, &lost_share)| JitterCpuRecord {
        cpu,
        lost_share,
        causes: vec![card.clone()],
        ..JitterCpuRecord::default()
    });
    JitterRecord {
        header: Header::default(),
        host: HostRecord::new("local".to_owned(), false, &topology),
        threshold_us: 5.0,
        asked_s: 10.0,
        interrupted: false,
        gaps: 0,
        named_share: None,
        cpus: cpus.collect(),
        causes: Vec::new(),
        longest: Vec::new(),
        answer: Answer::default(),
        causes_unavailable: None,
        isolation: IsolationRecord::default(),
    }
}

#[test]
fn a_cpu_that_loses_far_more_than_the_others_is_found() {
    let found = find_noisy_cpu(&watch(&[0.002, 0.002, 0.009, 0.002]), &[]).unwrap();
    assert_eq!(
        found.sentence,
        "CPU 2 lost 0.9 % of its time, 4.5 times the median CPU, mostly to eth0-rx-1 (IRQ 38)."
    );
    assert_eq!(
        found.advice,
        "Keep a program off it: taskset -c 0-1,3 PROGRAM"
    );
    let quiet = find_noisy_cpu(&watch(&[0.0, 0.0, 0.01]), &[]).unwrap();
    assert!(quiet.sentence.contains("most others none"), "{quiet:?}");
}

#[test]
fn equal_or_quiet_or_too_few_cpus_are_no_finding() {
    for shares in [
        [0.002, 0.002, 0.003].as_slice(),
        &[0.000_01, 0.000_01, 0.000_09],
        &[0.001, 0.009],
        &[],
    ] {
        assert_eq!(find_noisy_cpu(&watch(shares), &[]), None, "{shares:?}");
    }
}

#[test]
fn the_interrupt_of_the_cpu_is_moved() {
    let movable = |cpus: &str, irq: u32| {
        Finding::new("device_interrupt", Severity::Note, "", "Move it.")
            .with_evidence("irq", irq)
            .with_evidence("cpus", cpus)
    };
    let advice = |findings: &[Finding]| {
        let found = find_noisy_cpu(&watch(&[0.001, 0.001, 0.009]), findings);
        found.unwrap().advice
    };
    assert_eq!(advice(&[movable("2", 38)]), "Move it.");
    assert_ne!(advice(&[movable("1", 38)]), "Move it.");
    assert_ne!(advice(&[movable("2", 39)]), "Move it.");
}
