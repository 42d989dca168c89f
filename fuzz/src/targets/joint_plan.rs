//! Joint plans: refused with line and column, or programs that can be run together.

use crate::invariants::check_refusal;
use pinwise_workload::joint::parse;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match parse(text) {
        Ok(programs) => {
            assert!((2..=6).contains(&programs.len()));
            assert!(programs.iter().any(|program| program.weight > 0.0));
            for program in &programs {
                assert!(!program.command.program().is_empty());
                assert!(program.limit.is_none_or(|limit| limit > 0.0));
            }
        }
        Err(error) => check_refusal(&error),
    }
}
