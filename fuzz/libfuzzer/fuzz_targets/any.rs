//! The target named by `PINWISE_FUZZ`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pinwise_fuzz::TARGETS;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("PINWISE_FUZZ").expect("PINWISE_FUZZ names a target");
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    found.expect("a target of fuzz/src/targets").1
});

fuzz_target!(|bytes: &[u8]| (*TARGET)(bytes));
