//! Gaps on two CPUs, and the figures of the record.

use std::time::Duration;

use super::*;
use pinwise_sched::jitter::Gap;
use pinwise_topology::Topology;

fn topology() -> Topology {
    let mut topology = Topology::from_synthetic("core:2 pu:1").unwrap();
    topology.identity.hypervisor = Some("kvm".to_owned());
    topology
}

fn gap(from_ns: u64, parts: &[(Cause, u64)]) -> ExplainedGap {
    let length_ns: u64 = parts.iter().map(|(_, ns)| ns).sum();
    ExplainedGap {
        gap: Gap {
            from_ns,
            to_ns: from_ns + length_ns,
        },
        parts: parts.to_vec(),
    }
}

fn tick() -> Cause {
    Cause::Vector("local_timer".into())
}

fn network_card() -> Cause {
    Cause::Interrupt {
        number: 38,
        name: "eth0-rx".into(),
    }
}

fn record_four_gaps() -> Recorder {
    let mut recorder = Recorder::new(&topology());
    let first = [
        gap(1_000_000, &[(tick(), 8_000)]),
        gap(
            2_000_000,
            &[(Cause::HypervisorOrFirmware, 90_000), (tick(), 10_000)],
        ),
    ];
    recorder.take(0, &first);
    recorder.take(1, &[gap(3_000_000, &[(network_card(), 20_000)])]);
    recorder.take(1, &[gap(4_000_000, &[(Cause::Unknown, 6_000)])]);
    recorder
}

#[test]
fn a_gap_counts_under_its_largest_part_and_its_time_is_split() {
    let recorder = record_four_gaps();
    assert_eq!(recorder.gaps(), 4);
    assert_eq!(recorder.named_share(), Some(0.75));
    let causes = recorder.causes();
    let describe = |cause: &JitterCauseRecord| {
        format!(
            "{}: {} gaps, {:.3} ms, CPUs {}",
            cause.label(),
            cause.gaps,
            cause.lost_ms,
            cause.cpus
        )
    };
    assert_eq!(
        causes.iter().map(describe).collect::<Vec<_>>(),
        [
            "hypervisor: 1 gaps, 0.090 ms, CPUs 0",
            "eth0-rx (IRQ 38): 1 gaps, 0.020 ms, CPUs 1",
            "local_timer: 1 gaps, 0.018 ms, CPUs 0",
            "unknown: 1 gaps, 0.006 ms, CPUs 1",
        ]
    );
}

#[test]
fn figures_of_a_cpu_count_its_own_gaps_and_the_lost_ones() {
    let found = WatchedCpus {
        cpus: vec![WatchedCpu {
            cpu: 0,
            time: Duration::from_millis(10),
            readings: 100_000,
            lost_gaps: 3,
            ..WatchedCpu::default()
        }],
        ..WatchedCpus::default()
    };
    let recorder = record_four_gaps();
    let cpu = recorder.cpus(&found).remove(0);
    assert_eq!((cpu.gaps, cpu.longest_us), (2, Some(100.0)));
    assert!((cpu.lost_share - 0.0108).abs() < 1e-9, "{cpu:?}");
    assert!((cpu.resolution_ns - 98.92).abs() < 0.01, "{cpu:?}");
    assert_eq!(cpu.causes.len(), 2);
    assert!(recorder.notes(&found)[0].starts_with("The buffer of CPU 0 was full: 3 more"));
}

#[test]
fn the_longest_gaps_are_kept_longest_first() {
    let mut recorder = Recorder::new(&topology());
    for number in 0..200u64 {
        let length_ns = 5_000 + (number * 7_919) % 1_000;
        recorder.take(0, &[gap(number * 1_000_000, &[(tick(), length_ns)])]);
    }
    let longest = recorder.longest_gaps(0);
    assert_eq!(longest.len(), MAX_GAPS);
    assert!(
        longest
            .windows(2)
            .all(|two| two[0].length_us >= two[1].length_us)
    );
    assert!(longest[0].length_us > 5.98, "{}", longest[0].length_us);
    assert_eq!(longest[0].parts[0].name, "local_timer");
}

#[test]
fn without_gaps_shares_are_unknown_and_lists_empty() {
    let recorder = Recorder::new(&topology());
    assert_eq!((recorder.gaps(), recorder.named_share()), (0, None));
    assert!(recorder.causes().is_empty() && recorder.longest_gaps(0).is_empty());
}

#[test]
fn threads_beyond_max_threads_are_merged() {
    let mut recorder = Recorder::new(&topology());
    for number in 0..(MAX_THREADS as u64 + 3) {
        let thread = Cause::Thread(format!("worker-{number}").into());
        recorder.take(0, &[gap(number * 1_000_000, &[(thread, 9_000 - number)])]);
    }
    recorder.take(0, &[gap(u64::from(u32::MAX), &[(tick(), 10)])]);
    let causes = recorder.causes();
    assert_eq!(causes.len(), MAX_THREADS + 2);
    let last = causes.last().unwrap();
    assert_eq!((last.label().as_str(), last.gaps), ("thread (3 others)", 3));
    assert_eq!(
        causes.iter().map(|cause| cause.gaps).sum::<u64>(),
        recorder.gaps()
    );
}
