//! Phrases that reports of fleets share.

/// `2.1 times`, or `12 %` for a `ratio` from 1 to 2.
fn format_factor(ratio: f64) -> String {
    if ratio >= 10.0 {
        format!("{ratio:.0} times")
    } else if ratio >= 2.0 {
        format!("{ratio:.1} times")
    } else {
        format!("{} %", format_percent_digits(100.0 * (ratio - 1.0)))
    }
}

fn format_percent_digits(percent: f64) -> String {
    if percent >= 9.95 {
        format!("{percent:.0}")
    } else {
        format!("{percent:.1}")
    }
}

/// `12 % below what is usual`, `2.1 times what is usual`: a figure against its peers'.
pub(crate) fn describe_ratio(ratio: f64) -> String {
    if ratio >= 2.0 {
        format!("{} what is usual", format_factor(ratio))
    } else if ratio >= 1.0 {
        format!("{} above what is usual", format_factor(ratio))
    } else {
        format!(
            "{} % below what is usual",
            format_percent_digits(100.0 * (1.0 - ratio))
        )
    }
}

/// `14 times longer`, `12 % less`: a figure of B against A's. `more` and `less` are the words for
/// either direction.
pub(crate) fn describe_change(ratio: f64, more: &str, less: &str) -> String {
    if ratio >= 1.0 {
        format!("{} {more}", format_factor(ratio))
    } else if ratio > 0.0 && ratio <= 0.5 {
        format!("{} {less}", format_factor(1.0 / ratio))
    } else {
        format!("{} % {less}", format_percent_digits(100.0 * (1.0 - ratio)))
    }
}

/// The first `limit` names, and how many more there are.
pub(crate) fn join_names<S: AsRef<str>>(names: &[S], limit: usize) -> String {
    let shown: Vec<&str> = names.iter().take(limit).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(limit);
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
    fn ratios_and_lists_are_put_in_words() {
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
        assert_eq!(join_names(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
