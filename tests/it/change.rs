//! The results of `pinwise record diff` on two experiments whose truth is known. Each is simulated
//! with its own seed, as if they ran on different days.

use pinwise_record::{ArmShift, ChangeVerdict, Comparison, ContrastVerdict};

use crate::replay::read_series;
use crate::sessions::{diff, run_experiment, tally_pairs};
use crate::support::replay_count;

/// Two noises that vary within an experiment, and one of a real machine, which changes its state
/// between experiments of a few seconds.
fn list_noises() -> [String; 3] {
    [
        "sd = 0.02".to_owned(),
        "sd = 0.01\nwander = { correlation = 0.6, sd = 0.05 }".to_owned(),
        read_series("light_cpu.csv.xz"),
    ]
}

/// A shift of a whole session is no change of an arm. If no arm changed, at most one diff in twenty
/// may report a change.
#[test]
fn unchanged_arms_are_rarely_reported_as_changed() {
    let pairs = replay_count(100) as u64;
    // The 5 % that are allowed, and three standard errors.
    let bound = 0.05 + 3.0 * (0.05 * 0.95 / pairs as f64).sqrt();
    for noise in list_noises() {
        for arms in [2, 6] {
            let found = tally_pairs(&noise, 1.0, arms, 0..pairs);
            let share = f64::from(found.claims) / pairs as f64;
            println!("{noise}, {arms} arms: {share}");
            assert!(
                share <= bound,
                "{noise}, {arms} arms: {share} above {bound}"
            );
        }
    }
}

#[test]
fn a_change_of_a_tenth_is_found_in_the_right_direction() {
    let pairs = replay_count(40);
    let enough = u32::try_from(pairs * 4 / 5).unwrap();
    for noise in &list_noises()[..2] {
        let found = tally_pairs(noise, 1.1, 2, 0..pairs as u64);
        assert!(found.higher >= enough, "{noise}: {found:?}");
        assert_eq!((found.lower, found.same), (0, 0), "{noise}");
        let found = tally_pairs(noise, 1.0 / 1.1, 2, 0..pairs as u64);
        assert!(found.lower >= enough, "{noise}: {found:?}");
        assert_eq!((found.higher, found.same), (0, 0), "{noise}");
    }
}

#[test]
fn unchanged_arms_with_little_spread_are_the_same() {
    let found = tally_pairs("sd = 0.002", 1.0, 2, 0..20);
    assert!(found.same >= 18, "{found:?}");
}

#[test]
fn records_that_answer_different_questions_are_refused() {
    let a = run_experiment("sd = 0.01", 0.066, 1.0, 3, 1);
    let refusal_after = |change: fn(&mut Comparison)| {
        let mut b = a.clone();
        change(&mut b);
        diff(&a, &b).unwrap_err().to_string()
    };
    let message = refusal_after(|b| b.plan.judge = "mean".to_owned());
    assert!(
        message.contains("what is judged is 'typical' in A, 'mean' in B"),
        "{message}"
    );
    let message = refusal_after(|b| b.baseline = "cpu:0".to_owned());
    assert!(
        message.contains("the baseline is 'os-default' in A, 'cpu:0' in B"),
        "{message}"
    );
    let message = refusal_after(|b| b.arms[1].command.push("--more".to_owned()));
    assert!(
        message.contains("the command of cpu:0 is 'prog' in A, 'prog --more' in B"),
        "{message}"
    );
}

/// Makes the record say that other programs used this many CPUs during every run.
fn set_foreign_cpus(record: &mut Comparison, cpus: f64) {
    for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
        run.foreign_cpu_s = Some(cpus * run.wall_s);
    }
}

#[test]
fn a_change_is_withheld_if_other_programs_used_more_cpu_time() {
    let mut a = run_experiment("sd = 0.002", 0.066, 1.0, 2, 1);
    let mut b = run_experiment("sd = 0.002", 0.066, 1.1, 2, 2);
    set_foreign_cpus(&mut a, 0.0);
    set_foreign_cpus(&mut b, 0.0);
    assert_eq!(
        diff(&a, &b).unwrap().figures[0].verdict,
        ChangeVerdict::Higher
    );
    set_foreign_cpus(&mut b, 0.9);
    let found = diff(&a, &b).unwrap();
    assert_eq!(found.figures[0].verdict, ChangeVerdict::CannotTell);
    assert!(
        found
            .sentence
            .contains("other programs used 0.0 CPUs in A and 0.9 in B"),
        "{}",
        found.sentence
    );
}

/// The arm and the baseline have their own figures, and the advantage is what is said first.
#[test]
fn an_advantage_that_is_lost_or_gained_is_said_first() {
    let ahead = run_experiment("sd = 0.002", 0.066, 0.85, 2, 1);
    let equal = run_experiment("sd = 0.002", 0.066, 1.0, 2, 2);
    let lost = diff(&ahead, &equal).unwrap();
    let arm = &lost.figures[0];
    assert_eq!(arm.shift, Some(ArmShift::AdvantageLost));
    let [in_a, in_b] = [&arm.arm_a, &arm.arm_b].map(|side| side.as_ref().unwrap());
    assert_eq!(in_a.verdict, Some(ContrastVerdict::Faster));
    assert!((in_a.estimate.unwrap().value - 0.85 * 0.066).abs() < 0.001);
    assert!((in_b.estimate.unwrap().value - 0.066).abs() < 0.001);
    assert!(in_a.effect.as_ref().unwrap().value < -14.0);
    assert!(
        lost.sentence
            .starts_with("Pinning no longer pays: os-default went from 66"),
        "{}",
        lost.sentence
    );
    let baseline = lost.figures.last().unwrap();
    assert!(baseline.arm_a.is_some() && baseline.shift.is_none());
    let gained = diff(&equal, &ahead).unwrap();
    assert_eq!(gained.figures[0].shift, Some(ArmShift::AdvantageGained));
    assert!(gained.sentence.starts_with("Pinning now pays: "));
    let further = run_experiment("sd = 0.002", 0.066, 0.7, 2, 3);
    let shifts = [(&ahead, &further), (&further, &ahead)]
        .map(|(a, b)| diff(a, b).unwrap().figures[0].shift.clone().unwrap());
    assert_eq!(shifts, [ArmShift::FurtherAhead, ArmShift::LessAhead]);
    let behind = run_experiment("sd = 0.002", 0.066, 1.1, 2, 4);
    let shifts = [(&equal, &behind), (&behind, &equal)]
        .map(|(a, b)| diff(a, b).unwrap().figures[0].shift.clone().unwrap());
    assert_eq!(shifts, [ArmShift::FellBehind, ArmShift::CaughtUp]);
}
