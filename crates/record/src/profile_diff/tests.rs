//! The sentence above a difference of profiles.

use super::*;
use crate::attribution::AccountRecord;
use crate::profile::FunctionKind;

fn build_change(before_s: f64, after_s: f64, is_noise: bool) -> ChangeRecord {
    let delta_s = after_s - before_s;
    ChangeRecord {
        before_samples: 0,
        after_samples: 0,
        before_s,
        after_s,
        delta_s,
        low_s: delta_s,
        high_s: delta_s,
        is_noise,
    }
}

#[test]
fn the_headline_names_the_function_with_the_largest_part() {
    let function = |name: &str, own: ChangeRecord| FunctionChangeRecord {
        function: CalledRecord {
            name: name.to_owned(),
            module: None,
            kind: FunctionKind::User,
        },
        seen: SeenIn::Both,
        own,
        total: own,
        waits: build_change(0.0, 0.0, true),
    };
    let line = |own: ChangeRecord| {
        let grew = function("grew", build_change(0.0, 1.2, false));
        let functions = [grew, function("shrank", own)];
        let none = build_change(0.0, 0.0, true);
        write_headline(
            &build_change(4.0, 2.0, false),
            None,
            &none,
            &functions,
            "run",
        )
    };
    let start = "2.00 s less CPU time per run (4.00 s before, 2.00 s after, ±0 s)";
    assert_eq!(
        line(build_change(1.9, 0.1, false)),
        format!("{start}, in shrank (1.80 s).")
    );
    assert_eq!(
        line(build_change(1.0, 0.4, false)),
        format!("{start}; shrank has the largest part, 600 ms.")
    );
    assert_eq!(line(build_change(1.0, 0.4, true)), format!("{start}."));
    let none = build_change(0.0, 0.0, true);
    let functions = [function("render", build_change(0.0, 1.2, false))];
    let open = write_headline(
        &build_change(4.0, 4.1, true),
        None,
        &none,
        &functions,
        "run",
    );
    assert!(
        open.starts_with("No difference in CPU time beyond chance"),
        "{open}"
    );
    assert!(open.ends_with("; render alone changed: +1.20 s."), "{open}");
}

#[test]
fn the_headline_says_whether_waiting_makes_up_the_difference() {
    let line = |waits_after: f64, is_noise: bool| {
        let waits = build_change(3.0, waits_after, false);
        write_headline(&build_change(4.0, 2.0, is_noise), None, &waits, &[], "run")
    };
    assert!(line(1.1, false).contains("less waiting in spin hints"));
    assert!(!line(2.9, false).contains("waiting"));
    // More waiting does not explain less time.
    assert!(!line(5.0, false).contains("waiting"));
    assert!(line(1.1, true).starts_with("No difference"));
}

#[test]
fn the_headline_claims_no_difference_that_runs_of_one_program_have_among_themselves() {
    let line = |is_difference: bool| {
        let by_runs = AttributionRecord {
            of: AttributedTime::Cpu,
            lanes: 1.0,
            before_s: 4.0,
            after_s: 4.2,
            delta: AccountRecord {
                value: 0.2,
                low: 0.1,
                high: 0.3,
            },
            is_difference,
            parts: Vec::new(),
            sentence: String::new(),
        };
        let none = build_change(0.0, 0.0, true);
        write_headline(
            &build_change(4.0, 4.2, false),
            Some(&by_runs),
            &none,
            &[],
            "run",
        )
    };
    assert_eq!(
        line(false),
        "No difference in CPU time beyond chance: 4.00 s per run before, 4.20 s after, ±100 ms from run to run."
    );
    assert_eq!(
        line(true),
        "200 ms more CPU time per run (4.00 s before, 4.20 s after, ±100 ms)."
    );
}
