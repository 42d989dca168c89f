//! Recognition of formats by their content.

use std::io::Cursor;

use super::{Import, Whom};

#[track_caller]
fn refused(content: &[u8], part: &str) {
    let error = Import::open(Cursor::new(content))
        .and_then(|import| import.read(Whom::Default, &mut |_| {}))
        .unwrap_err()
        .to_string();
    assert!(error.contains(part), "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
}

/// Every switch has two threads that appear only once.
#[test]
fn threads_without_end_are_refused_before_they_fill_the_memory() {
    let mut content = b"# tracer: nop\n".to_vec();
    for switch in 0..200_000 {
        let (prev, next) = (2 * switch + 1, 2 * switch + 2);
        let line = format!(
            "  a-{prev} [000] d..2. 1.000000: sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state=S ==> next_comm=a next_pid={next} next_prio=120\n"
        );
        content.extend(line.into_bytes());
    }
    refused(&content, "more than 262144 threads that do not end");
}

#[test]
fn other_files_are_named() {
    refused(b"", "it is empty");
    refused(
        b"\x89PNG\r\n\x1a\n\0\0",
        "begins with \"\\x89PNG\\r\\n\\x1a\\n",
    );
    refused(
        b"\x17\x08\x44tracing6\0",
        "trace-cmd report FILE > trace.txt",
    );
    refused(b"#!/bin/sh\necho\n", "neither perf.data nor text");
    refused(b"PERFFILE", "neither");
    refused(b"PERFILE2", "byte 8: the file ends here");
    refused(b"2ELIFREP\0\0\0\0\0\0\0\x68", "byte 16: the file ends here");
    refused(b"# tracer: nop\n#\n", "record them: perf sched record");
    refused(
        b"# tracer: nop\n            bash-1       [000] ..... 12: e: f\n",
        "take a clock",
    );
}
