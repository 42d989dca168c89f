//! Recognition of formats by their content.

use std::io::Cursor;

use super::{Import, TraceSubject};

#[track_caller]
fn check_refusal(content: &[u8], part: &str) {
    let error = Import::open(Cursor::new(content))
        .and_then(|import| import.read(TraceSubject::Default, &mut |_| {}))
        .unwrap_err()
        .to_string();
    assert!(error.contains(part), "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
}

/// Every switch has two threads that appear only once.
#[test]
fn too_many_threads_without_end_are_refused() {
    let mut content = b"# tracer: nop\n".to_vec();
    for switch in 0..200_000 {
        let (prev, next) = (2 * switch + 1, 2 * switch + 2);
        let line = format!(
            "  a-{prev} [000] d..2. 1.000000: sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state=S ==> next_comm=a next_pid={next} next_prio=120\n"
        );
        content.extend(line.into_bytes());
    }
    check_refusal(&content, "more than 262144 threads that do not end");
}

#[test]
fn files_of_other_formats_are_refused_with_a_reason() {
    check_refusal(b"", "it is empty");
    check_refusal(
        b"\x89PNG\r\n\x1a\n\0\0",
        "begins with \"\\x89PNG\\r\\n\\x1a\\n",
    );
    check_refusal(
        b"\x17\x08\x44tracing6\0",
        "trace-cmd report FILE > trace.txt",
    );
    check_refusal(b"#!/bin/sh\necho\n", "neither perf.data nor text");
    check_refusal(b"PERFFILE", "neither");
    check_refusal(b"PERFILE2", "byte 8: the file ends here");
    check_refusal(b"2ELIFREP\0\0\0\0\0\0\0\x68", "byte 16: the file ends here");
    check_refusal(b"# tracer: nop\n#\n", "record them: perf sched record");
    check_refusal(
        b"# tracer: nop\n            bash-1       [000] ..... 12: e: f\n",
        "take a clock",
    );
}
