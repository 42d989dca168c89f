//! How reports of fleets say things.

/// `2.1 times`, or `12 %` if that reads better: `ratio` is above 1.
fn factor(ratio: f64) -> String {
    if ratio >= 10.0 {
        format!("{ratio:.0} times")
    } else if ratio >= 2.0 {
        format!("{ratio:.1} times")
    } else {
        format!("{} %", digits(100.0 * (ratio - 1.0)))
    }
}

fn digits(percent: f64) -> String {
    if percent >= 9.95 {
        format!("{percent:.0}")
    } else {
        format!("{percent:.1}")
    }
}

/// `12 % below`, `2.1 times` the other: how a figure compares with its peers'.
pub(crate) fn describe_ratio(ratio: f64) -> String {
    if ratio >= 2.0 {
        format!("{} what is usual", factor(ratio))
    } else if ratio >= 1.0 {
        format!("{} above what is usual", factor(ratio))
    } else {
        format!("{} % below what is usual", digits(100.0 * (1.0 - ratio)))
    }
}

/// `14 times longer`, `12 % less`: how a figure of B compares with A's.
pub(crate) fn describe_change(ratio: f64, more: &str, less: &str) -> String {
    if ratio >= 1.0 {
        format!("{} {more}", factor(ratio))
    } else if ratio > 0.0 && ratio <= 0.5 {
        format!("{} {less}", factor(1.0 / ratio))
    } else {
        format!("{} % {less}", digits(100.0 * (1.0 - ratio)))
    }
}

/// Names, of many the first and how many more.
pub(crate) fn names<S: AsRef<str>>(all: &[S], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    let more = all.len().saturating_sub(most);
    let shown = shown.join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_in_words() {
        assert_eq!(describe_ratio(0.871), "13 % below what is usual");
        assert_eq!(describe_ratio(1.034), "3.4 % above what is usual");
        assert_eq!(describe_ratio(14.2), "14 times what is usual");
        assert_eq!(
            describe_change(2.14, "longer", "shorter"),
            "2.1 times longer"
        );
        assert_eq!(
            describe_change(0.25, "longer", "shorter"),
            "4.0 times shorter"
        );
        assert_eq!(describe_change(0.9, "longer", "shorter"), "10 % shorter");
        assert_eq!(names(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
