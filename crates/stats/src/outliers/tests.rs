use super::*;

fn column(values: Vec<f64>) -> Column {
    Column {
        values,
        ..Column::default()
    }
}

/// Values at the quantiles of a normal distribution: a sample without chance.
fn normal(count: usize) -> Vec<f64> {
    let at = |k: usize| super::super::normal::upper_quantile((k as f64 + 0.5) / count as f64);
    (0..count).map(at).collect()
}

#[test]
fn the_bulk_of_normal_values_has_their_centre_and_scale() {
    for count in [20, 64, 65, 500] {
        let found = find_bulk(&normal(count)).unwrap();
        assert!(found.centre.abs() < 1e-9, "{count}: {found:?}");
        assert!((found.scale - 1.0).abs() < 0.06, "{count}: {found:?}");
    }
}

#[test]
fn the_bulk_does_not_follow_a_third_of_the_values() {
    let mut values = normal(70);
    values.extend(std::iter::repeat_n(9.0, 30));
    let found = find_bulk(&values).unwrap();
    assert!(found.centre.abs() < 0.1 && found.scale < 1.15, "{found:?}");
}

#[test]
fn equal_values_and_few_values_are_not_judged() {
    let equal = column(vec![3.0; 30]);
    let few = column(normal(MIN_MEMBERS - 1));
    let none = column(vec![f64::NAN; 30]);
    let judged = judge(&[&equal, &few, &none], &[], Noise::Wild);
    assert!(judged.figures.iter().all(Option::is_none));
}

#[test]
fn a_far_value_has_a_small_chance_and_near_ones_have_not() {
    let mut values = normal(200);
    values.push(8.0);
    values.push(f64::NAN);
    let judged = judge(&[&column(values)], &[], Noise::Wild);
    let found = judged.figures[0].as_ref().unwrap();
    assert!(found.p[200] < 1e-8, "{}", found.p[200]);
    assert!(found.p[201].is_nan() && found.z[201].is_nan());
    assert!(found.p[..200].iter().all(|p| *p > 1e-3));
}

#[test]
fn values_as_extreme_as_those_of_other_figures_are_no_outliers() {
    // In ten figures 2 % of the values are wild, each time of other members.
    let wild = |figure: usize| {
        let mut values = normal(200);
        for k in 0..4 {
            values[(figure * 17 + k * 41) % 200] = 6.0 + k as f64;
        }
        column(values)
    };
    let mut quiet = normal(200);
    quiet[150] = 6.5;
    let mut columns: Vec<Column> = (0..10).map(wild).collect();
    columns.push(column(quiet));
    let columns: Vec<&Column> = columns.iter().collect();
    let together = judge(&columns, &[], Noise::Wild);
    let alone = judge(&columns[10..], &[], Noise::Wild);
    let p = |judgement: &Judgement, at: usize| judgement.figures[at].as_ref().unwrap().p[150];
    assert!(p(&together, 10) > 1e-3, "{}", p(&together, 10));
    assert!(p(&alone, 0) < 1e-6, "{}", p(&alone, 0));
}

#[test]
fn a_wide_interval_makes_a_value_less_surprising() {
    let mut values = normal(100);
    values.extend([6.0, 6.0]);
    let mut errors = vec![0.1; 102];
    errors[101] = 3.0;
    let judged = judge(
        &[&Column {
            values,
            errors,
            ..Column::default()
        }],
        &[],
        Noise::Wild,
    );
    let found = judged.figures[0].as_ref().unwrap();
    assert!(
        found.z[100] > 5.0 && found.z[101] < 2.5,
        "{:?}",
        &found.z[100..]
    );
}

#[test]
fn members_apart_are_judged_but_have_no_part_in_the_bulk() {
    let mut values = normal(100);
    let mut apart = vec![false; 100];
    for at in 0..40 {
        values[at] = 20.0;
        apart[at] = true;
    }
    let judged = judge(&[&column(values)], &apart, Noise::Averaged);
    let found = judged.figures[0].as_ref().unwrap();
    assert_eq!(found.bulk.members, 60);
    assert!(found.p[0] < 1e-6 && judged.is_loud[0]);
}
