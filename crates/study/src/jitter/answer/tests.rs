//! Answers of made-up watches.

use super::*;
use pinwise_record::{Header, HostRecord, IsolationRecord, JitterCpuRecord, Severity};
use pinwise_topology::Topology;

fn cause(kind: GapCause, name: &str, lost_ms: f64, longest_us: f64) -> JitterCauseRecord {
    JitterCauseRecord {
        kind,
        name: name.to_owned(),
        lost_ms,
        longest_us,
        ..JitterCauseRecord::default()
    }
}

/// One CPU, watched for ten seconds, that lost time to these causes.
fn watch(causes: Vec<JitterCauseRecord>) -> JitterRecord {
    let lost_ms: f64 = causes.iter().map(|cause| cause.lost_ms).sum();
    let longest_us = causes.iter().map(|cause| cause.longest_us);
    let topology = Topology::from_synthetic("core:4 pu:1").unwrap();
    JitterRecord {
        header: Header::default(),
        host: HostRecord::new("local".to_owned(), false, &topology),
        threshold_us: 5.0,
        asked_s: 10.0,
        interrupted: false,
        gaps: 1200,
        named_share: None,
        cpus: vec![JitterCpuRecord {
            cpu: 3,
            watched_s: 10.0,
            longest_us: longest_us.reduce(f64::max),
            lost_share: lost_ms * 1e-4,
            ..JitterCpuRecord::default()
        }],
        causes,
        longest: Vec::new(),
        answer: Answer::default(),
        causes_unavailable: None,
        isolation: IsolationRecord::default(),
    }
}

fn finding(check: &str, advice: &str) -> Finding {
    Finding::new(check, Severity::Warning, "", advice)
}

#[test]
fn the_cause_of_most_lost_time_and_that_of_the_longest_gap_are_named() {
    let mut record = watch(vec![
        cause(GapCause::CpuInterrupt, "local_timer", 20.0, 30.0),
        cause(GapCause::Thread, "kworker/3:1", 8.0, 90.0),
        cause(GapCause::Hypervisor, "", 1.0, 4000.0),
    ]);
    let found = |record: &JitterRecord| answer(record).sentence;
    assert_eq!(
        found(&record),
        "CPU 3 lost 0.3 % of the time in 1,200 gaps, 0.2 % to the timer and 0.08 % to thread \
         kworker/3:1; the longest, 4.00 ms, to the hypervisor."
    );
    record.causes_unavailable = Some("tracefs is not mounted".to_owned());
    assert!(found(&record).ends_with("the longest 4.00 ms; the causes are unknown."));
    assert_eq!(
        found(&watch(Vec::new())),
        "CPU 3 lost no time: no gap above 5.00 µs in 10.0 s."
    );
}

#[test]
fn advice_is_about_the_cause_of_most_lost_time() {
    let timer = || cause(GapCause::CpuInterrupt, "local_timer", 20.0, 30.0);
    let mut record = watch(vec![timer()]);
    assert!(
        answer(&record)
            .advice
            .ends_with("pinwise trace -- PROGRAM.")
    );
    record.findings = vec![
        finding("hypervisor_gaps", "Ask the host."),
        finding("not_isolated", "Isolate."),
    ];
    assert_eq!(answer(&record).advice, "Isolate.");
    record.findings.pop();
    assert_eq!(answer(&record).advice, "Ask the host.");
}

#[test]
fn a_cpu_that_stands_out_is_the_answer() {
    let mut record = watch(vec![cause(
        GapCause::CpuInterrupt,
        "local_timer",
        20.0,
        30.0,
    )]);
    record.findings = vec![finding("not_isolated", "Isolate."), {
        let mut noisy = finding(noisy_cpu::CHECK, "Move IRQ 38.");
        noisy.sentence = "CPU 3 lost most.".to_owned();
        noisy
    }];
    let answer = answer(&record);
    assert_eq!(answer.sentence, "CPU 3 lost most.");
    assert_eq!(answer.advice, "Move IRQ 38.");
}
