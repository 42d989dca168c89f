//! Traces on the real host: what each tier tells is held against what the
//! kernel itself counts, and bad subjects are refused in words.

mod inner;

use serde_json::{Value, json};

use crate::support::{has_program, skipped};
use inner::Order;

#[test]
fn switches_are_those_that_the_kernel_counts() {
    for tier in ["switch", "cpu-wide", "tracepoint", "bpf"] {
        let seen = Order(
            json!({"tier": tier, "command": ["perf", "bench", "sched", "pipe", "-l", "20000"]}),
        )
        .make();
        println!("{seen:#}");
    }
}
