//! Numbers as people write them on the command line.

use std::time::Duration;

/// Reads `500ms`, `30s`, `2m`, `1h30m`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|_| "write a time with its unit, such as 500ms, 30s or 2m".to_owned())?;
    if duration.is_zero() {
        return Err("the time must be above 0".to_owned());
    }
    Ok(duration)
}

/// Reads `2%`, `0.5 %` or `0.02` as a share.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let bad = || "write a share such as 2% or 0.02".to_owned();
    let text = text.trim();
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let value: f64 = number.parse().map_err(|_| bad())?;
    if !value.is_finite() || value < 0.0 {
        return Err(bad());
    }
    if scale < 2.0 && value >= 1.0 {
        return Err(format!("write {text}% for {text} per cent"));
    }
    Ok(value / scale)
}

/// Reads `NAME=VALUE`.
pub(super) fn parse_variable(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let is_good = !name.is_empty() && !text.contains('\0');
    is_good.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn share(text: &str, expected: f64) {
        assert!(
            (parse_share(text).unwrap() - expected).abs() < 1e-12,
            "{text}"
        );
    }

    #[test]
    fn shares() {
        share("2%", 0.02);
        share("0.5 %", 0.005);
        share("0.02", 0.02);
        for bad in ["", "x", "-1%", "2", "nan", "inf%"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_share("2").unwrap_err(), "write 2% for 2 per cent");
    }

    #[test]
    fn times() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "5", "0s", "-1s", "5 parsecs"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            let _ = parse_duration(&text);
            let _ = parse_share(&text);
            let _ = parse_variable(&text);
        }
    }
}
