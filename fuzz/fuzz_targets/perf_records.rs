//! Records of perf's buffers, and the formats of tracepoints. The first byte
//! says what: `f` a format, `t` records with a thread in each, anything else
//! records without.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise::machine::linux::{PerfRecord, PerfRecords, RecordLayout, TracepointFormat};

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    if kind == b'f' {
        if let Err(error) = TracepointFormat::parse(&String::from_utf8_lossy(rest)) {
            assert!(!error.to_string().is_empty());
        }
        return;
    }
    let layout = RecordLayout {
        has_thread: kind == b't',
    };
    let mut records = PerfRecords::new(rest, layout);
    let mut read = 0;
    while let Some((_, record)) = records.next() {
        read += 1;
        if record == PerfRecord::Damaged {
            assert!(
                records.next().is_none(),
                "nothing follows what is no record"
            );
        }
    }
    assert!(read <= rest.len() / 8 + 1, "a record has a header at least");
});
