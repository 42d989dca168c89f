use super::*;
use pinwise_record::{Answer, CountedRecord, Header, HostRecord, JitterRecord};
use pinwise_topology::Topology;

fn new_cause(kind: GapCause, name: &str, irq: Option<u32>, gaps: u64) -> JitterCauseRecord {
    JitterCauseRecord {
        kind,
        name: name.to_owned(),
        irq,
        cpus: "2-3".to_owned(),
        gaps,
        lost_ms: gaps as f64 * 0.007,
        longest_us: 12.5,
        ..JitterCauseRecord::default()
    }
}

/// Two CPUs, one of them undisturbed.
fn sample_record() -> JitterRecord {
    let causes = vec![
        new_cause(GapCause::CpuInterrupt, "local_timer", None, 1500),
        new_cause(GapCause::Interrupt, "eth0-rx-1", Some(38), 212),
        new_cause(GapCause::Thread, "kworker/2:1\u{1b}[2J", None, 3),
        new_cause(GapCause::Hypervisor, "", None, 2),
    ];
    let busy = JitterCpuRecord {
        cpu: 2,
        watched_s: 10.0,
        gaps: 1717,
        median_us: Some(7.1),
        p99_us: Some(30.0),
        longest_us: Some(412.5),
        lost_share: 0.0021,
        causes: causes.clone(),
        queued_ms: Some(1.5),
        steal_ms: Some(10.0),
        interrupts: vec![CountedRecord {
            label: "LOC".to_owned(),
            name: "Local timer interrupts".to_owned(),
            count: 10_000,
        }],
        ..JitterCpuRecord::default()
    };
    let free = JitterCpuRecord {
        cpu: 3,
        watched_s: 10.0,
        ..JitterCpuRecord::default()
    };
    JitterRecord {
        header: Header {
            notes: vec!["A note.".to_owned()],
            ..Header::new(
                "20260101-000000-00000001",
                "2026-01-01T00:00:00Z",
                Vec::new(),
            )
        },
        host: HostRecord::new(
            "local".to_owned(),
            false,
            &Topology::from_synthetic("core:4 pu:1").unwrap(),
        ),
        threshold_us: 5.0,
        asked_s: 10.0,
        interrupted: false,
        gaps: 1717,
        named_share: Some(1.0),
        cpus: vec![busy, free],
        causes,
        longest: Vec::new(),
        answer: Answer::default(),
        causes_unavailable: None,
        isolation: IsolationRecord {
            isolated: "2-3".to_owned(),
            ..IsolationRecord::default()
        },
    }
}

#[test]
fn jitter_as_text() {
    insta::assert_snapshot!(render_jitter(&sample_record(), Palette::default()));
}

#[test]
fn jitter_without_causes_as_text() {
    let mut record = sample_record();
    record.causes = vec![new_cause(GapCause::Unknown, "", None, 1717)];
    record.cpus[0].causes = record.causes.clone();
    record.causes_unavailable = Some("tracefs is not mounted".to_owned());
    record.interrupted = true;
    insta::assert_snapshot!(render_jitter(&record, Palette::default()));
}

#[test]
fn threads_beyond_the_maximum_share_one_row() {
    let mut record = sample_record();
    for number in 0..40 {
        let name = format!("worker-{number}");
        record
            .causes
            .push(new_cause(GapCause::Thread, &name, None, 2));
    }
    let text = render_jitter(&record, Palette::default());
    let row = text.lines().find(|line| line.contains("36 more threads"));
    let row: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(row[3], "72", "{text}");
    assert!(text.contains("hypervisor"), "{text}");
}

#[test]
fn every_cause_of_a_cpu_is_a_row() {
    let rows = list_jitter_rows(&sample_record()).csv().unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 5, "{rows}");
    assert_eq!(
        lines[0],
        "cpu,watched_s,kind,name,irq,device,gaps,lost_ms,lost_share,longest_us"
    );
    assert!(lines[1].starts_with("2,10,cpu-interrupt,local_timer,,,1500,10.5,0.00105"));
    assert!(lines[2].starts_with("2,10,interrupt,eth0-rx-1,38,,212,"));
    assert!(!rows.contains('\u{1b}'), "{rows}");
}
