//! Descriptions and records as Linux 6.18 writes them.

use proptest::prelude::*;

use super::*;
use crate::IDLE;

fn parse_format(name: &str, id: u64, fields: &str) -> TracepointFormat {
    let text = format!(
        "name: {name}\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n{fields}"
    );
    TracepointFormat::parse(&text).unwrap()
}

const NUMBER: &str = "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n";
const NAME: &str = "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";
const SWITCH: &str = "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";
const LENGTH: &str = "\tfield:s64 delta_ns;\toffset:16;\tsize:8;\tsigned:1;\n";

fn make_decoder() -> ReportDecoder {
    let mut decoder = ReportDecoder::default();
    let with_name = format!("{NUMBER}{NAME}");
    let added = [
        ("sched", parse_format("sched_switch", 1, SWITCH)),
        ("irq", parse_format("irq_handler_entry", 2, &with_name)),
        ("irq", parse_format("irq_handler_exit", 3, NUMBER)),
        ("irq", parse_format("softirq_entry", 4, NUMBER)),
        ("irq", parse_format("softirq_exit", 5, NUMBER)),
        ("irq_vectors", parse_format("local_timer_entry", 6, "")),
        ("irq_vectors", parse_format("local_timer_exit", 7, "")),
        ("nmi", parse_format("nmi_handler", 8, LENGTH)),
    ];
    for (system, format) in added {
        assert!(decoder.add(system, &format).unwrap(), "{system}");
    }
    decoder
}

/// A record's raw bytes: its id, and others from byte 8 on.
fn encode(id: u16, rest: &[u8]) -> Vec<u8> {
    let mut raw = id.to_ne_bytes().to_vec();
    raw.resize(8, 0);
    raw.extend(rest);
    raw
}

#[track_caller]
fn check(id: u16, rest: &[u8], expected: Option<ReportKind>) {
    assert_eq!(make_decoder().decode(&encode(id, rest)), expected);
}

#[test]
fn records_become_reports() {
    let timer = || Cause::Vector("local_timer".into());
    let net = || Cause::Softirq("NET_RX".into());
    check(6, &[], Some(ReportKind::Enter(timer())));
    check(7, &[], Some(ReportKind::Leave(timer())));
    check(4, &[3, 0, 0, 0], Some(ReportKind::Enter(net())));
    check(5, &[3, 0, 0, 0], Some(ReportKind::Leave(net())));
    let later = Cause::Softirq("12".into());
    check(4, &[12, 0, 0, 0], Some(ReportKind::Enter(later)));
    let mut entry = vec![38, 0, 0, 0, 16, 0, 5, 0];
    entry.extend(b"eth0\0");
    let number = 38;
    let name = |name: &str| name.into();
    check(
        2,
        &entry,
        Some(ReportKind::Enter(Cause::Interrupt {
            number,
            name: name("eth0"),
        })),
    );
    check(
        3,
        &[38, 0, 0, 0],
        Some(ReportKind::Leave(Cause::Interrupt {
            number,
            name: name(""),
        })),
    );
    let mut nmi = vec![0; 8];
    nmi.extend(1234i64.to_ne_bytes());
    check(8, &nmi, Some(ReportKind::Was(Cause::Nmi, 1234)));
    let mut switch = vec![0; 32];
    switch.extend(b"swapper/1\0\0\0\0\0\0\0");
    switch.extend(0i32.to_ne_bytes());
    let thread = IDLE;
    check(
        1,
        &switch,
        Some(ReportKind::Run {
            thread,
            name: name("swapper/1"),
        }),
    );
}

#[test]
fn other_tracepoints_and_short_records_are_skipped() {
    check(99, &[0; 64], None);
    check(1, &[0; 32], None);
    check(2, &[38, 0, 0], None);
    assert_eq!(make_decoder().decode(&[]), None);
    assert_eq!(ReportDecoder::default().decode(&[0; 64]), None);
    let mut points = ReportDecoder::default();
    let other = parse_format("vector_alloc", 9, "");
    assert!(!points.add("irq_vectors", &other).unwrap());
    assert!(
        !points
            .add("block", &parse_format("block_rq_entry", 9, ""))
            .unwrap()
    );
    assert!(
        points
            .add("irq", &parse_format("softirq_entry", 9, ""))
            .is_err()
    );
}

#[test]
fn records_name_the_thread_that_had_the_cpu() {
    let mut record = encode(4, &[3, 0, 0, 0]);
    record[4..8].copy_from_slice(&4711i32.to_ne_bytes());
    assert_eq!(make_decoder().thread(&record), Some(4711));
    assert_eq!(make_decoder().thread(&record[..6]), None);
    assert_eq!(ReportDecoder::default().thread(&record), None);
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), id in 0u16..10) {
        let _ = make_decoder().decode(&bytes);
        let _ = make_decoder().decode(&encode(id, &bytes));
    }
}
