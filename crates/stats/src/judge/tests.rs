//! Judges by hand, and on shapes that differ.

use super::*;
use crate::inversion::{closed_p_value, estimate, interval_around, p_value};
use proptest::prelude::*;

fn responses(rows: &[(f64, f64)]) -> Responses {
    let mut data = Responses::new(2);
    for &(arm, baseline) in rows {
        data.push(&[arm.ln(), baseline.ln()]);
    }
    data
}

#[test]
fn judges_are_read_and_printed() {
    for (text, judge) in [
        ("typical", Judge::Typical),
        ("mean", Judge::Mean),
        ("p90", Judge::Percentile(90)),
        ("p99", Judge::Percentile(99)),
    ] {
        assert_eq!(text.parse(), Ok(judge));
        assert_eq!(judge.to_string(), text);
    }
    for wrong in ["", "p50", "p100", "median", "p-1"] {
        assert!(wrong.parse::<Judge>().is_err(), "{wrong}");
    }
}

#[test]
fn the_mean_counts_what_the_typical_run_does_not() {
    // One run in five is twice as slow.
    let rows: Vec<(f64, f64)> = (0..40u32)
        .map(|i| {
            let wiggle = 1.0 + 0.001 * f64::from(i * 7 % 5);
            (if i % 5 == 0 { 2.0 } else { 1.0 } * wiggle, wiggle)
        })
        .collect();
    let means = Means::new(&responses(&rows), 0, 1);
    let ratio = estimate(&means).exp();
    assert!((ratio - 1.2).abs() < 0.01, "{ratio}");
    assert!(p_value(&means, 0.0) < 0.02);
    let tail = Exceedances::new(&responses(&rows), 0, 1, 90);
    let ratio = estimate(&tail).exp();
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
    assert!(p_value(&tail, 0.0) < 0.02);
}

#[test]
fn few_blocks_decide_nothing_about_a_percentile() {
    let rows: Vec<(f64, f64)> = (0..20u32).map(|i| (3.0 + f64::from(i), 1.0)).collect();
    let tail = Exceedances::new(&responses(&rows), 0, 1, 90);
    assert!(
        interval_around(&tail, estimate(&tail), 0.05)
            .low
            .is_infinite()
    );
}

#[test]
fn without_blocks_there_is_no_estimate() {
    let none = Responses::new(2);
    for family in [
        Box::new(Means::new(&none, 0, 1)) as Box<dyn Family>,
        Box::new(Exceedances::new(&none, 0, 1, 90)),
    ] {
        assert!(estimate(family.as_ref()).is_nan());
        assert!((p_value(family.as_ref(), 0.0) - 1.0).abs() < 1e-12);
    }
}

proptest! {
    #[test]
    fn a_factor_moves_estimates_by_its_logarithm(
        rows in proptest::collection::vec((0.5f64..2.0, 0.5f64..2.0), 8..40),
        factor in 0.2f64..5.0,
    ) {
        let moved: Vec<(f64, f64)> = rows.iter().map(|(a, b)| (a * factor, *b)).collect();
        let (plain, moved) = (responses(&rows), responses(&moved));
        let mean = |data: &Responses| estimate(&Means::new(data, 0, 1));
        prop_assert!((mean(&moved) - mean(&plain) - factor.ln()).abs() < 1e-6);
        let tail = |data: &Responses| estimate(&Exceedances::new(data, 0, 1, 90));
        prop_assert!((tail(&moved) - tail(&plain) - factor.ln()).abs() < 1e-6);
    }

    #[test]
    fn intervals_hold_their_estimates_and_exclude_what_is_rejected(
        rows in proptest::collection::vec((0.5f64..3.0, 0.5f64..2.0), 8..40),
    ) {
        let data = responses(&rows);
        for family in [
            Box::new(Means::new(&data, 0, 1)) as Box<dyn Family>,
            Box::new(Exceedances::new(&data, 0, 1, 80)),
        ] {
            let middle = estimate(family.as_ref());
            let interval = interval_around(family.as_ref(), middle, 0.05);
            prop_assert!(interval.low <= middle + 1e-9 && middle <= interval.high + 1e-9);
            if interval.low > 1e-8 || interval.high < -1e-8 {
                prop_assert!(closed_p_value(family.as_ref(), 0.0) <= 0.05);
            }
        }
    }
}
