//! Perf's records of samples: whatever the bytes, reading ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise::machine::linux::{SampleRecord, SampleRecords};

fuzz_target!(|bytes: &[u8]| {
    for (_, record) in SampleRecords::new(bytes) {
        if let SampleRecord::Sample {
            chain, registers, ..
        } = record
        {
            assert!(chain.frames().count() <= bytes.len() / 8 + 1);
            assert!(registers.values().count() <= bytes.len() / 8);
        }
    }
});
