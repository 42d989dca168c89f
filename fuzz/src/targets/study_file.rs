//! Study files of fleets: refused with line and column, or steps with unique names.

use std::collections::BTreeSet;

use crate::invariants::check_refusal;
use pinwise_workload::study_file::{MAX_STEPS, check_name, parse};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match parse(text) {
        Ok(steps) => {
            assert!(!steps.is_empty() && steps.len() <= MAX_STEPS);
            let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names.len(), steps.len());
            for step in &steps {
                assert!(check_name(&step.name).is_ok());
                assert!(step.position.line >= 1 && step.position.column >= 1);
            }
        }
        Err(error) => check_refusal(&error),
    }
}
