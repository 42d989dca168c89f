//! Searches made by hand, for the tests of all that reads them.

use super::examples::{any_run, build_search};
use super::*;
// By name: `record` has an `any` of its own.
use proptest::prelude::{any, *};

proptest! {
    #[test]
    fn searches_round_trip(arms in 4usize..30, is_simulated in any::<bool>(), run in any_run()) {
        let mut record = build_search(arms, is_simulated);
        record.runs.push(SearchRun { arm: 0, step: SearchStep::Refinement, run });
        let text = serde_json::to_string(&record).unwrap();
        prop_assert_eq!(read::<SearchRecord>(&text).unwrap(), record);
    }
}

#[test]
fn one_that_was_cut_off_has_no_verdict_in_the_history() {
    let mut record = build_search(5, false);
    assert!(record.entry().is_complete);
    assert!(!record.entry().verdict.is_empty());
    record.stopped = None;
    assert!(!record.entry().is_complete);
    assert_eq!(record.entry().verdict, "");
}

#[test]
fn the_leader_is_not_a_recommendation() {
    let mut record = build_search(5, false);
    record.verdict.kind = SearchAnswer::Best;
    record.conclude();
    assert!(!record.verdict.commands.is_empty());
    record.verdict.kind = SearchAnswer::Undecided;
    record.conclude();
    assert!(record.verdict.commands.is_empty());
}
