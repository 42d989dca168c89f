//! Records of perf's buffers, and the formats of tracepoints. The first byte selects: `f` a format,
//! `t` records with a thread in each, anything else records without.

use pinwise_sched::TracepointFormat;
use pinwise_sched::jitter::ReportDecoder;
use pinwise_sched::perf::{Layout, Record, Records, sampled};

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    if kind == b'f' {
        match TracepointFormat::parse(&String::from_utf8_lossy(rest)) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(format) => {
                let mut decoder = ReportDecoder::default();
                for system in ["sched", "irq", "irq_vectors", "nmi"] {
                    let _ = decoder.add(system, &format);
                }
                // Any bytes are a record.
                let _ = decoder.decode(rest);
            }
        }
        return;
    }
    let layout = Layout::from_sample_type(match kind {
        b't' => sampled::TIME | sampled::RAW | sampled::TID,
        _ => sampled::TIME | sampled::RAW,
    });
    let mut records = Records::new(rest, layout);
    let mut read = 0;
    while let Some(next) = records.next() {
        read += 1;
        if next.record == Record::Damaged {
            assert!(
                records.next().is_none(),
                "nothing follows a malformed record"
            );
        }
    }
    assert!(read <= rest.len() / 8 + 1, "a record has a header at least");
}
