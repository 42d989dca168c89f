//! Tests whether a few members have an attribute in common that the others lack.

use statrs::function::gamma::ln_gamma;

/// How many members of a group, and how many others, have an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Members of the group.
    pub inside: usize,
    /// Those of them with the attribute.
    pub inside_with: usize,
    /// The other members.
    pub outside: usize,
    /// Those of them with the attribute.
    pub outside_with: usize,
}

/// Probability that at least this many members of the group have the attribute, if the group was
/// drawn at random: the upper tail of the hypergeometric distribution (Fisher 1935, one-sided).
#[must_use]
pub fn upper_tail(split: Split) -> f64 {
    let all = split.inside + split.outside;
    let with = split.inside_with + split.outside_with;
    let most = split.inside.min(with);
    let whole = ln_choose(all, split.inside);
    let terms = (split.inside_with..=most).map(|k| {
        if split.inside - k > all - with {
            return 0.0;
        }
        (ln_choose(with, k) + ln_choose(all - with, split.inside - k) - whole).exp()
    });
    terms.sum::<f64>().min(1.0)
}

/// `ln` of the number of ways to draw `k` of `n`; `k` is at most `n`.
#[must_use]
pub fn ln_choose(n: usize, k: usize) -> f64 {
    let ln_factorial = |n: usize| ln_gamma(n as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inside: usize, inside_with: usize, outside: usize, outside_with: usize, p: f64) {
        let found = upper_tail(Split {
            inside,
            inside_with,
            outside,
            outside_with,
        });
        assert!((found / p - 1.0).abs() < 1e-6, "{found} instead of {p}");
    }

    #[test]
    fn tails_are_those_counted_by_hand() {
        // The lady tasting tea: 4 of 4 right, 1/70; 3 or 4, 17/70.
        check(4, 4, 4, 0, 1.0 / 70.0);
        check(4, 3, 4, 1, 17.0 / 70.0);
        // All have it, or none: nothing is separated.
        check(5, 5, 7, 7, 1.0);
        check(5, 0, 7, 0, 1.0);
        // 1/C(10, 2) and (C(2,1)*C(8,1)+1)/C(10,2)
        check(2, 2, 8, 0, 1.0 / 45.0);
        check(2, 1, 8, 1, 17.0 / 45.0);
    }

    #[test]
    fn far_tails_are_precise() {
        let found = upper_tail(Split {
            inside: 12,
            inside_with: 11,
            outside: 988,
            outside_with: 3,
        });
        assert!(found > 0.0 && found < 1e-20, "{found}");
    }
}
