//! Files of threads: as printed by kernels, odd ones, and arbitrary text.

use proptest::prelude::*;

use super::*;

#[test]
fn without_the_kernels_times_there_are_none() {
    assert_eq!(
        parse_schedstat("3966868 8878788 12\n"),
        Some((3_966_868, 8_878_788))
    );
    assert_eq!(parse_schedstat("0 0 0\n"), None);
    assert_eq!(parse_schedstat("0 5 1\n"), Some((0, 5)));
    assert_eq!(parse_schedstat("17\n"), None);
}

#[test]
fn counts_are_read_from_status_or_sched() {
    let sched = "prog (1, #threads: 1)\n-----\nse.nr_migrations      :        3\n\
                 nr_switches : 9\nnr_voluntary_switches : 4\nnr_involuntary_switches  :  5\n";
    let all = Counts {
        migrations: Some(3),
        voluntary: Some(4),
        involuntary: Some(5),
    };
    assert_eq!(parse_counts(sched), all);
    let status = "Name:\tprog\nvoluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t5\n";
    let without_moves = Counts {
        migrations: None,
        ..all
    };
    assert_eq!(parse_counts(status), without_moves);
}

#[test]
fn invalid_process_ids_are_reported() {
    let reason = |pid| check_process(pid).unwrap_err();
    assert_eq!(reason(0), "no such process");
    assert_eq!(reason(-5), "no such process");
    assert_eq!(reason(Tid::MAX), "no such process");
    let own = Tid::try_from(std::process::id()).unwrap();
    assert_eq!(check_process(own), Ok(()));
    let thread = list_threads_of(own)
        .into_iter()
        .find(|&tid| tid != own)
        .unwrap();
    assert!(reason(thread).contains("a thread of process"));
}

#[test]
fn own_threads_are_found() {
    let own = Tid::try_from(std::process::id()).unwrap();
    let main = ExistingThread {
        tid: own,
        process: own,
    };
    assert!(list_threads_below(own).contains(&main));
    assert!(list_all().contains(&main));
    assert!(!online_cpus().is_empty());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in "(\\PC{0,20}\\)?( [A-Z]?-?[0-9]{0,21}){0,45}|(se.nr_migrations|nr_voluntary_switches) *:\\PC{0,22}\n){0,3}",
    ) {
        let _ = (parse_schedstat(&text), parse_counts(&text));
    }
}
