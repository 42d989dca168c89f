//! Finds clusters of figures: two costs of PAUSE, or the states of a floating pair.

use pinwise_record::Modes;
use pinwise_stats::describe::quantile;

/// Two modes of a cost differ by at least this factor …
pub(super) const MIN_RATIO: f64 = 1.25;
/// … and each has at least this share of the figures.
const MIN_SHARE: f64 = 0.1;

/// Splits positive figures where two neighbours in order are further apart than `factor`; returns
/// the lower bound of every cluster, ascending.
pub(super) fn cluster_bounds(values: &[f64], factor: f64) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut bounds: Vec<f64> = sorted.first().copied().into_iter().collect();
    let gaps = sorted.windows(2).filter(|w| w[1] > factor * w[0]);
    bounds.extend(gaps.map(|w| w[1]));
    bounds
}

/// The cluster of a figure: the last whose bound it reaches.
pub(super) fn find_cluster(bounds: &[f64], value: f64) -> usize {
    bounds
        .iter()
        .filter(|bound| value >= **bound)
        .count()
        .saturating_sub(1)
}

/// Finds two modes, if the figures fall into two clusters: the split with the least spread within
/// (Otsu's criterion on logarithms), accepted if the centres differ by a factor of `min_ratio` and
/// hardly any figure lies between them. The fields `_ns` have the unit of the figures.
pub(crate) fn find_two_modes(values: &[f64], min_ratio: f64) -> Option<Modes> {
    let mut logs: Vec<f64> = values
        .iter()
        .filter(|v| **v > 0.0)
        .map(|v| v.ln())
        .collect();
    logs.sort_unstable_by(f64::total_cmp);
    let n = logs.len();
    let cut = find_best_cut(&logs)?;
    let (low, high) = (quantile(&logs[..cut], 0.5), quantile(&logs[cut..], 0.5));
    let share = cut as f64 / n as f64;
    let is_between = |v: &&f64| **v > low + 0.3 * (high - low) && **v < high - 0.3 * (high - low);
    let between = logs.iter().filter(is_between).count();
    let is_split = high - low > min_ratio.ln()
        && (MIN_SHARE..=1.0 - MIN_SHARE).contains(&share)
        && between * 20 <= n;
    is_split.then(|| Modes {
        low_ns: low.exp(),
        high_ns: high.exp(),
        low_share: share,
    })
}

/// The index that splits sorted figures with the least sum of squares about the two means, from
/// running sums.
fn find_best_cut(sorted: &[f64]) -> Option<usize> {
    // Relative to the first figure: sums of large numbers would hide small spreads.
    let first = *sorted.first()?;
    let add = |(sum, squares): (f64, f64), value: &f64| {
        let value = value - first;
        (sum + value, squares + value * value)
    };
    let all = sorted.iter().fold((0.0, 0.0), add);
    let spread = |(sum, squares): (f64, f64), count: usize| squares - sum * sum / count as f64;
    let mut below = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    for cut in 1..sorted.len() {
        below = add(below, &sorted[cut - 1]);
        let above = (all.0 - below.0, all.1 - below.1);
        let within = spread(below, cut) + spread(above, sorted.len() - cut);
        if best.is_none_or(|(_, least)| within < least) {
            best = Some((cut, within));
        }
    }
    best.map(|(cut, _)| cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_around(centre: f64, count: u32) -> Vec<f64> {
        (0..count)
            .map(|i| centre * (1.0 + 0.002 * f64::from(i * 7 % 11)))
            .collect()
    }

    #[test]
    fn a_single_cost_has_no_second_mode() {
        assert_eq!(find_two_modes(&values_around(40.0, 50), MIN_RATIO), None);
        let mut stray = values_around(40.0, 50);
        stray.extend([90.0, 95.0]);
        assert_eq!(find_two_modes(&stray, MIN_RATIO), None);
        assert_eq!(find_two_modes(&[1.0], MIN_RATIO), None);
        assert_eq!(find_two_modes(&[], MIN_RATIO), None);
    }

    #[test]
    fn two_costs_are_reported() {
        let mut values = values_around(13.0, 60);
        values.extend(values_around(40.0, 20));
        let modes = find_two_modes(&values, MIN_RATIO).unwrap();
        assert!((modes.low_ns - 13.1).abs() < 0.3, "{modes:?}");
        assert!((modes.high_ns - 40.4).abs() < 0.6, "{modes:?}");
        assert!((modes.low_share - 0.75).abs() < 1e-9);
    }

    #[test]
    fn states_of_a_pair_are_clustered() {
        let values = [36.0, 31.0, 43.0, 117.0, 14.4, 100.0, 131.0];
        let bounds = cluster_bounds(&values, 1.5);
        assert_eq!(bounds, [14.4, 31.0, 100.0]);
        assert_eq!(find_cluster(&bounds, 36.0), 1);
        assert_eq!(find_cluster(&bounds, 10.0), 0);
        assert!(cluster_bounds(&[], 1.5).is_empty());
    }
}
