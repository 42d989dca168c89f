//! Suites of benchmarks: refused with line and column, or runnable entries.

use crate::invariants::check_refusal;
use pinwise_workload::suite::{MAX_BENCHMARKS, parse};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match parse(text) {
        Ok(suite) => {
            assert!(!suite.benchmarks.is_empty() && suite.benchmarks.len() <= MAX_BENCHMARKS);
            for entry in &suite.benchmarks {
                assert!(entry.min_effect > 0.0 && entry.min_effect < 1.0);
                assert!(!entry.command.program().is_empty());
                assert!(entry.position.line >= 1 && entry.position.column >= 1);
            }
        }
        Err(error) => check_refusal(&error),
    }
}
