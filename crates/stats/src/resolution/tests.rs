use super::*;

#[track_caller]
fn check_columns(columns: &[Vec<f64>], step: Option<f64>) {
    let found = find_step(columns, Figure::Measured).map(|resolution| resolution.step);
    match (found, step) {
        (Some(found), Some(step)) => {
            assert!(
                (found / step - 1.0).abs() < 1e-4,
                "{found} instead of {step}"
            );
        }
        (found, step) => assert_eq!(found, step),
    }
}

#[track_caller]
fn check(values: &[f64], step: Option<f64>) {
    check_columns(&[values.to_vec()], step);
}

#[test]
fn steps_are_found() {
    check(&[0.10, 0.11, 0.13, 0.10], Some(0.01));
    check(&[0.3, 0.1, 0.7], Some(0.2));
    check(&[0.3, 0.1, 0.6], Some(0.1));
    check(&[0.104, 0.112, 0.1, 0.12], Some(0.004));
    check(&[5.0, 6.0, 5.0], Some(1.0));
    check(&[5.0, 7.3], Some(0.1));
    check(&[0.12], Some(0.01));
    check(&[1_000_000.0], None);
    check(&[], None);
}

#[test]
fn ticks_that_are_not_decimal_are_found() {
    let ticks = |step: f64, offset: f64, digits: i32| -> Vec<f64> {
        let unit = 10f64.powi(digits);
        [7.0, 8.0, 8.0, 9.0, 7.0, 12.0]
            .map(|ticks| ((ticks * step + offset) * unit).round() / unit)
            .to_vec()
    };
    check(&ticks(1.0 / 60.0, 0.0, 17), Some(1.0 / 60.0));
    check(&ticks(1.0 / 60.0, 0.0, 6), Some(1.0 / 60.0));
    check(&ticks(1000.0 / 64.0, 0.0, 3), Some(1000.0 / 64.0));
    check(&ticks(0.01, 0.0037, 17), Some(0.01));
    check(&ticks(0.01, 0.0037, 6), Some(0.01));
    let twice: Vec<f64> = (1..40).map(|i| f64::from(i * i % 83 + 70) / 60.0).collect();
    check(&twice, Some(1.0 / 60.0));
}

#[test]
fn values_that_recur_have_no_values_between_them() {
    let steady = |value: f64| vec![value; 9];
    check_columns(&[steady(7.0 / 60.0), steady(8.0 / 60.0)], Some(1.0 / 60.0));
    check_columns(&[steady(0.1137), steady(0.1237)], Some(0.01));
    // Not known, but no shorter than what would have been seen.
    check_columns(&[steady(0.1137), steady(0.1137)], Some(0.1137));
    // One arm's figures are finer than the other's seem.
    check_columns(&[steady(0.1), vec![0.100_013, 0.100_029, 0.1]], None);
}

#[test]
fn counts_are_exact() {
    let columns = [vec![5.0; 9], vec![6.0; 9]];
    assert_eq!(find_step(&columns, Figure::Counted), None);
    assert_eq!(find_step(&columns, Figure::Unknown), None);
    assert!(find_step(&columns, Figure::Measured).is_some());
    let columns = [vec![0.5; 9], vec![0.6; 9]];
    assert!(find_step(&columns, Figure::Unknown).is_some());
}

#[test]
fn a_fine_clock_has_no_step_that_matters() {
    let values: Vec<f64> = (0..40u32)
        .map(|i| f64::from(66_000_000 + i * 2_718_281 % 4_000_003) * 1e-9)
        .collect();
    check(&values, None);
    for few in 3..12 {
        check(&values[..few], None);
    }
    let whole: Vec<f64> = values.iter().map(|value| (value * 1e9).round()).collect();
    check(&whole, None);
}

#[test]
fn values_are_spread_over_their_step_and_no_farther() {
    let mut data = Responses::new(2);
    let slots = vec![vec![0, 1]; 50];
    for _ in 0..50 {
        data.push(&[0.1f64.ln(), 0.11f64.ln()]);
    }
    let resolution = find_step(&[vec![0.1; 9], vec![0.11; 9]], Figure::Measured).unwrap();
    let spread = resolution.spread(&data, &slots, false);
    for row in spread.rows() {
        assert!((row[0].exp() - 0.1).abs() <= 0.005 + 1e-12);
        assert!((row[1].exp() - 0.11).abs() <= 0.005 + 1e-12);
    }
    let mean = spread.column(0).iter().map(|y| y.exp()).sum::<f64>() / 50.0;
    assert!((mean - 0.1).abs() < 0.002, "{mean}");
    let rates = resolution.spread(&data, &slots, true);
    for row in rates.rows() {
        let value = (-row[0]).exp();
        assert!((value - 10.0).abs() <= 0.005 + 1e-9, "{value}");
    }
}

/// Steps of 1 around 100.
const STEPS: Resolution = Resolution {
    step: 1.0,
    relative: 0.01,
};

#[test]
fn an_arm_that_does_not_leave_its_step_may_be_anywhere_in_it() {
    let half = -(-0.005f64).ln_1p();
    for judge in [Judge::Typical, Judge::Mean] {
        assert!((STEPS.max_bias(&[100.0; 20], judge) - half).abs() < 1e-9);
        // If others only delay it, it may be as steady.
        let mut delayed = vec![100.0; 20];
        delayed.extend([101.0, 103.0, 107.0, 140.0, 150.0]);
        assert!((STEPS.max_bias(&delayed, judge) - half).abs() < 1e-9);
    }
    assert!(STEPS.max_bias(&[100.0; 20], Judge::Percentile(90)) > 1.5 * half);
}

#[test]
fn noise_of_some_steps_leaves_no_bias() {
    let wide: Vec<f64> = (0..60).map(|i| f64::from(97 + i % 7)).collect();
    assert!(STEPS.max_bias(&wide, Judge::Typical) < 1e-7);
    assert!(STEPS.max_bias(&wide, Judge::Percentile(90)) < 1e-3);
    // Between two ticks, with a few runs on either side.
    let between: Vec<f64> = (0..60)
        .map(|i| {
            [99.0, 102.0]
                .get(i % 20)
                .copied()
                .unwrap_or(100.0 + (i % 2) as f64)
        })
        .collect();
    assert!(STEPS.max_bias(&between, Judge::Typical) < 1e-3);
}
