//! Verdicts in words.

use super::super::caveats::{Caveats, Centres, LoadLevel, LoadLevels, Split};
use super::super::paired::Interval;
use super::*;
use crate::judge::Judge;
use crate::resolution::Resolution;

fn contrast(arm: usize, low: f64, high: f64, decision: Decision) -> Contrast {
    Contrast {
        arm,
        baseline: 0,
        estimate: 0.5 * (low + high),
        interval: Interval { low, high },
        confidence: 0.95,
        p_adjusted: 0.5,
        nominal_level: 0.05,
        decision,
        caveats: Caveats::default(),
    }
}

fn setting(names: &[String]) -> Setting<'_> {
    Setting {
        names,
        baseline: 0,
        delta: 0.00995,
        words: Words::SPEED,
        is_rate: false,
        judge: Judge::Typical,
        figure: None,
        resolution: None,
        least: 6,
        spent: Duration::from_secs(60),
    }
}

fn look(blocks: usize, contrast: Contrast) -> Look {
    Look {
        blocks,
        winner: usize::from(contrast.estimate < 0.0),
        behind: vec![0.0, -0.004],
        is_settled: false,
        resolution: None,
        contrasts: vec![contrast],
    }
}

fn two_arms() -> [String; 2] {
    ["os-default".to_owned(), "cpu:0".to_owned()]
}

#[track_caller]
fn check(contrast: Contrast, sentence: &str, overall: &str) {
    let names = two_arms();
    let setting = setting(&names);
    let basis = Basis {
        blocks: 40,
        is_dropped: false,
    };
    assert_eq!(describe_contrast(&contrast, basis, &setting), sentence);
    let look = look(40, contrast);
    let outcome = judge_outcome(&look, setting.delta, true);
    assert_eq!(describe_outcome(outcome, &look, &setting, true), overall);
}

#[test]
fn a_difference_that_goes_with_the_load_is_given_by_level() {
    let level = |load, difference| LoadLevel { load, difference };
    let mut slower = contrast(1, 0.03, 0.07, Decision::Slower);
    slower.caveats.by_load = Some(LoadLevels {
        light: level(0.1, 0.002),
        medium: Some(level(0.8, 0.1)),
        heavy: level(1.6, 0.12),
    });
    let names = two_arms();
    let basis = Basis {
        blocks: 40,
        is_dropped: false,
    };
    let sentence = |of: &Contrast| describe_contrast(of, basis, &setting(&names));
    let steady = "cpu:0 is slower than os-default by 3.0–7.3 % in the typical run (40 blocks).";
    assert_eq!(sentence(&slower), steady);
    slower.caveats.load = Some(Split {
        first: 0.002,
        second: 0.12,
        contradicts: true,
    });
    assert_eq!(
        sentence(&slower),
        "cpu:0 is slower than os-default by 3.0–7.3 % in the typical run, +0.2 % while others \
         used 0.1 CPUs, +10.5 % at 0.8, +12.7 % at 1.6 (40 blocks)."
    );
}

#[test]
fn a_verdict_that_medians_contradict_gives_median_and_mean() {
    let mut withheld = contrast(1, 0.076, 0.084, Decision::Undecided);
    withheld.caveats.centres = Some(Centres {
        median: -0.01,
        mean: 0.05,
    });
    check(
        withheld,
        "cpu:0 against os-default is undecided: between +7.9 % and +8.8 % in the typical run, but \
         −1.0 % in the median block, +5.1 % by the means (40 blocks).",
        "Undecided: cpu:0 against os-default is between +7.9 % and +8.8 % in the typical run, but \
         −1.0 % in the median block, +5.1 % by the means.",
    );
}

#[test]
fn sentences_give_the_decision_with_its_interval() {
    check(
        contrast(1, -0.05, -0.02, Decision::Faster),
        "cpu:0 is faster than os-default by 2.0–4.9 % in the typical run (40 blocks).",
        "cpu:0 is best: faster than os-default by 2.0–4.9 % in the typical run.",
    );
    check(
        contrast(1, 0.69, 0.70, Decision::Slower),
        "cpu:0 is slower than os-default by 99.4–101 % in the typical run (40 blocks).",
        "Leave it alone: cpu:0 is slower than os-default by 99.4–101 % in the typical run.",
    );
    check(
        contrast(1, -0.004, 0.006, Decision::Same),
        "cpu:0 is the same as os-default within ±1.0 % in the typical run: between −0.4 % and +0.6 % (40 blocks).",
        "All arms are the same within ±1.0 % in the typical run: os-default will do.",
    );
    check(
        contrast(1, -0.02, 0.03, Decision::Undecided),
        "cpu:0 against os-default is undecided: between −2.0 % and +3.0 % in the typical run (40 blocks); ±1.0 % takes about 8 min more.",
        "Undecided: cpu:0 may be faster than os-default by up to 2.0 % or slower by up to 3.0 %.",
    );
    // Certainly faster, but not by as much as anybody asked for.
    check(
        contrast(1, -0.008, -0.002, Decision::Faster),
        "cpu:0 is faster than os-default by 0.2–0.8 % in the typical run (40 blocks).",
        "Leave it alone: cpu:0 is faster than os-default by 0.2–0.8 % in the typical run, less than the 1.0 % that count.",
    );
    // As narrow as ±δ, but neither excluding 0 nor within ±δ.
    check(
        contrast(1, -0.002, 0.014, Decision::Undecided),
        "cpu:0 against os-default is undecided: between −0.2 % and +1.4 % in the typical run (40 blocks); ±0.6 % takes about 89 s more.",
        "Leave it alone: cpu:0 may be faster than os-default by up to 0.2 % or slower by up to 1.4 % in the typical run.",
    );
    check(
        contrast(1, f64::NEG_INFINITY, f64::INFINITY, Decision::Undecided),
        "cpu:0 against os-default is undecided: too few usable pairs in 40 blocks.",
        "Undecided: too few usable pairs in 40 blocks.",
    );
}

#[test]
fn an_arm_that_is_not_recommended_is_not_called_best() {
    let names = two_arms();
    let setting = setting(&names);
    let sentence = |best: usize, contrast: Contrast| {
        let outcome = ComparisonOutcome::Best(best);
        describe_outcome(outcome, &look(40, contrast), &setting, false)
    };
    assert_eq!(
        sentence(1, contrast(1, -0.058, -0.0003, Decision::Faster)),
        "cpu:0 is faster than os-default by 0.03–5.6 % in the typical run."
    );
    assert_eq!(
        sentence(0, contrast(1, 0.02, 0.04, Decision::Slower)),
        "cpu:0 is slower than os-default by 2.0–4.1 % in the typical run."
    );
    let same = look(40, contrast(1, -0.001, 0.001, Decision::Undecided));
    assert_eq!(
        describe_outcome(ComparisonOutcome::Same, &same, &setting, false),
        "All arms are the same within ±1.0 % in the typical run."
    );
}

#[test]
fn arms_that_may_be_better_still_are_named_beside_the_best() {
    let names = ["t=1", "t=2", "t=4"].map(str::to_owned);
    let setting = setting(&names);
    let sentence = |behind: [f64; 3]| {
        let best = contrast(2, -0.4, -0.3, Decision::Faster);
        let look = Look {
            winner: 2,
            behind: behind.to_vec(),
            contrasts: vec![contrast(1, -0.35, -0.25, Decision::Faster), best.clone()],
            ..look(40, best)
        };
        describe_outcome(ComparisonOutcome::Best(2), &look, &setting, true)
    };
    assert_eq!(
        sentence([0.3, -0.04, 0.0]),
        "t=4 or t=2 is best, undecided between them: t=4 is faster than t=1 by 25.9–33.0 % in \
         the typical run."
    );
    assert!(sentence([0.3, 0.02, 0.0]).starts_with("t=4 is best: faster than t=1"));
    assert!(sentence([0.3, -0.004, 0.0]).starts_with("t=4 is best: faster than t=1"));
}

#[test]
fn sentences_name_the_step_of_coarse_figures() {
    let names = two_arms();
    let open = contrast(1, -0.1, 0.1, Decision::Undecided);
    let caveat_of = |relative: f64| {
        let setting = Setting {
            resolution: Some(Resolution {
                step: 0.01,
                relative,
            }),
            ..setting(&names)
        };
        describe_caveat(&open, &setting)
    };
    assert_eq!(caveat_of(0.005), None);
    assert_eq!(
        caveat_of(0.1f64.ln_1p()).unwrap(),
        "the figure comes in steps of 10.0 %"
    );
    assert_eq!(
        caveat_of(1f64.ln_1p()).unwrap(),
        "no run shows how fine the figure is: all gave the same value"
    );
}

#[test]
fn a_claim_that_waits_for_blocks_is_not_called_the_same() {
    let names = two_arms();
    let setting = setting(&names);
    let mut early = contrast(1, 0.44, 0.46, Decision::Undecided);
    early.caveats.is_early = true;
    let look = look(14, early);
    let sentence = describe_outcome(ComparisonOutcome::Undecided, &look, &setting, true);
    assert!(
        sentence.ends_with("in the typical run, but a verdict takes more blocks."),
        "{sentence}"
    );
    let more = offer_more(&look, &setting, Effort::Time).unwrap();
    assert!(more.half_width.is_none() && more.text.ends_with("for a verdict"));
}

#[test]
fn a_figure_of_the_program_is_named() {
    let names = two_arms();
    let setting = Setting {
        figure: Some("p99"),
        ..setting(&names)
    };
    let faster = contrast(1, -0.2, -0.1, Decision::Faster);
    let basis = Basis {
        blocks: 10,
        is_dropped: false,
    };
    let sentence = describe_contrast(&faster, basis, &setting);
    assert!(
        sentence.contains(" in p99 of the typical run"),
        "{sentence}"
    );
}

#[test]
fn times_are_rounded_for_people() {
    let text = |seconds: f64| duration(Duration::from_secs_f64(seconds));
    assert_eq!(text(0.02), "20 ms");
    assert_eq!(text(45.0), "45 s");
    assert_eq!(text(300.0), "5 min");
    assert_eq!(text(9000.0), "2.5 h");
    assert_eq!(text(1e6), "12 days");
}

#[test]
fn more_effort_is_offered_in_the_unit_of_the_limit() {
    let names = two_arms();
    let setting = setting(&names);
    let offer = |blocks: usize, half_width: f64, effort: Effort| {
        let open = contrast(1, -half_width, half_width, Decision::Undecided);
        offer_more(&look(blocks, open), &setting, effort).map(|prices| prices.text)
    };
    let offers = |effort| offer(40, 0.03, effort).unwrap();
    assert_eq!(
        offers(Effort::Time),
        "about 2 min more for ±2.0 %, 12 min for ±1.0 %"
    );
    assert_eq!(
        offers(Effort::Runs),
        "--max-runs 129 (2 min more) for ±2.0 %, --max-runs 510 (12 min more) for ±1.0 %"
    );
    let first = |effort| offer(2, f64::INFINITY, effort).unwrap();
    assert_eq!(first(Effort::Time), "about 2 min more for a first verdict");
    assert_eq!(
        first(Effort::Runs),
        "--max-runs 6 (2 min more) for a first verdict"
    );
}

#[test]
fn cpu_time_decides_only_what_wall_clock_time_leaves_open() {
    let cpu = contrast(1, 0.05, 0.07, Decision::Slower);
    let decides = |low, high| {
        let wall = contrast(1, low, high, Decision::Undecided);
        crate::beside::decides(&wall, &cpu)
    };
    assert!(decides(-0.02, 0.1));
    assert!(!decides(-0.1, 0.02), "as large a change is excluded");
    assert!(!decides(0.01, 0.1), "its claim waits");
}

/// Quantiles 2.576 and 1.960.
#[test]
fn a_level_of_1_percent_takes_three_quarters_more_runs_than_one_of_5() {
    let mut strict = contrast(1, 0.01, 0.03, Decision::Slower);
    strict.nominal_level = 0.01;
    let text = describe_guarantee(&look(12, strict), 0.05);
    assert!(
        text.contains("at most 5 %") && text.contains("1.7 times the runs"),
        "{text}"
    );
}

#[test]
fn cpu_time_over_a_limit_is_described_as_a_clause() {
    let names = ["old", "new"].map(str::to_owned);
    let wall = contrast(1, -0.02, 0.08, Decision::Undecided);
    let cpu = contrast(1, 0.027, 0.034, Decision::Slower);
    let said = crate::beside::describe_over_limit(&wall, &cpu, &setting(&names), "2.0 %");
    let start = "new needs 2.7–3.5 % more CPU time than old, over the limit of 2.0 %; its ";
    assert!(said.starts_with(start), "{said}");
}

#[test]
fn large_changes_are_given_as_factors() {
    let names = two_arms();
    let basis = Basis {
        blocks: 40,
        is_dropped: false,
    };
    let sentence = |low: f64, high: f64| {
        let slower = contrast(1, low.ln(), high.ln(), Decision::Slower);
        describe_contrast(&slower, basis, &setting(&names))
    };
    let said = sentence(16.4, 18.0);
    let expected = "cpu:0 is slower than os-default by a factor of 16.4–18.0 in the typical run";
    assert!(said.starts_with(expected), "{said}");
    let said = sentence(2.0, 3.5);
    assert!(said.contains("by a factor of 2.00–3.50 in"), "{said}");
    let said = sentence(1.5, 2.9);
    assert!(said.contains("by 50.0–190 % in"), "{said}");
}

#[test]
fn certainly_worse_arms_are_named_first() {
    let names = ["os-default", "limit=0.5", "limit=1", "limit=1.5"].map(str::to_owned);
    let setting = setting(&names);
    let worse =
        |arm, factor: f64| contrast(arm, factor.ln(), (1.1 * factor).ln(), Decision::Slower);
    let mut look = look(40, contrast(3, -0.03, 0.02, Decision::Undecided));
    let said = |look: &Look| describe_outcome(ComparisonOutcome::Undecided, look, &setting, true);
    look.contrasts.insert(0, worse(1, 17.0));
    assert_eq!(
        said(&look),
        "limit=0.5 is slower by a factor of 17.0–18.7. Undecided: limit=1.5 may be faster than \
         os-default by up to 3.0 % or slower by up to 2.0 %."
    );
    look.contrasts.push(worse(2, 3.2));
    assert_eq!(
        said(&look),
        "limit=0.5 is slower by a factor of 17.0–18.7 and limit=1 by a factor of 3.20–3.52. \
         Undecided: limit=1.5 may be faster than os-default by up to 3.0 % or slower by up to 2.0 %."
    );
}
