//! Numbers for people: gives them digits, units, signs and plurals. Callers pass them unrounded.
//!
//! The page has the same functions (`web/src/format.ts`); both are tested on
//! `tests/data/formats.json`.
//!
//! ```
//! assert_eq!(pinwise_format::count(12_000, "block"), "12,000 blocks");
//! ```

pub mod shell;

use std::time::Duration;

/// Shown for NaN and infinity.
const NONE: &str = "–";

/// Larger numbers have too many digits to be readable.
const TOO_LONG: f64 = 1e15;

/// The nearest whole number; 0 if negative or not a number.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
pub const fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The nearest whole number as a `usize`; 0 if negative or not a number.
#[must_use]
pub fn whole_usize(value: f64) -> usize {
    usize::try_from(whole(value)).unwrap_or(usize::MAX)
}

/// A value with three significant digits: `1.23`, `12.3`, `123`, `1234`,
/// `1.23e-5`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.to_owned()
    } else if size >= TOO_LONG {
        format!("{value:.2e}")
    } else if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.9995 {
        format!("{value:.2}")
    } else if size >= 0.099_95 {
        format!("{value:.3}")
    } else if size >= 0.009_995 {
        format!("{value:.4}")
    } else if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.2e}")
    }
}

/// A ratio; close to 1 with a digit more: `1.81`, `0.982`, `1.023`.
#[must_use]
pub fn ratio(value: f64) -> String {
    match (value - 1.0).abs() < 0.05 {
        true => format!("{value:.3}"),
        false => three_digits(value),
    }
}

/// A value with up to two decimals and no trailing zeros: `2`, `2.5`.
#[must_use]
pub fn trimmed(value: f64) -> String {
    strip_zeros(&format!("{value:.2}")).to_owned()
}

/// A limit on CPU time: `1 CPU`, `1.5 CPUs`, `0.001 CPUs`.
#[must_use]
pub fn cpu_limit(cpus: f64) -> String {
    // With two decimals the smallest limits would be 0.
    let number = match cpus < 0.01 {
        true => strip_zeros(&format!("{cpus:.4}")).to_owned(),
        false => trimmed(cpus),
    };
    match number.as_str() {
        "1" => "1 CPU".to_owned(),
        _ => format!("{number} CPUs"),
    }
}

fn strip_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// A time with three significant digits: `1.23 s`, `66.4 ms`, `850 µs`,
/// `12.0 ns`.
#[must_use]
pub fn seconds(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = if !value.is_finite() {
        return NONE.to_owned();
    } else if size >= 0.9995 || size == 0.0 {
        (value, "s")
    } else if size >= 0.9995e-3 {
        (value * 1e3, "ms")
    } else if size >= 0.9995e-6 {
        (value * 1e6, "µs")
    } else {
        (value * 1e9, "ns")
    };
    format!("{} {unit}", three_digits(scaled))
}

/// A time with its sign: `+1.20 ms`, `−40.0 µs`, `±0 s`.
#[must_use]
pub fn signed_seconds(value: f64) -> String {
    let sign = match value {
        value if !value.is_finite() => return NONE.to_owned(),
        0.0 => '±',
        value if value < 0.0 => '−',
        _ => '+',
    };
    format!("{sign}{}", seconds(value.abs()))
}

/// A short time of the hardware, in nanoseconds up to four digits: `14.2 ns`, `1793 ns`, `25.3 µs`.
#[must_use]
pub fn nanoseconds(value: f64) -> String {
    if value.abs() < 1e4 {
        format!("{} ns", three_digits(value))
    } else {
        seconds(value * 1e-9)
    }
}

/// A time in words: `40 s`, `3 min`, `2.5 h`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", (seconds * 1e3).ceil())
    } else if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 90.0 * 60.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds < 72.0 * 3600.0 {
        format!("{:.1} h", seconds / 3600.0)
    } else {
        format!("{:.0} days", seconds / 86_400.0)
    }
}

/// A size in binary units: `1.50 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    let (number, unit) = binary(value);
    format!("{number} {unit}")
}

/// The size of a cache or memory, without trailing zeros: `1.5 MiB`.
#[must_use]
pub fn round_bytes(value: u64) -> String {
    let (number, unit) = binary(value as f64);
    format!("{} {unit}", strip_zeros(&number))
}

fn binary(value: f64) -> (String, &'static str) {
    let mut value = value;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value.abs() < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    (three_digits(value), unit)
}

/// A value of a metric with its unit, scaled as [`seconds`], [`bytes`] or, for other units,
/// [`scaled`] does: `289G /s`.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "s" => seconds(value),
        "ns" => nanoseconds(value),
        "bytes" | "B" => bytes(value),
        "" => three_digits(value),
        other => format!("{} {other}", scaled(value)),
    }
}

/// A number, large ones with a prefix: `5.82G`.
#[must_use]
pub fn scaled(value: f64) -> String {
    for (limit, letter) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= limit * 0.9995 {
            return format!("{}{letter}", three_digits(value / limit));
        }
    }
    three_digits(value)
}

/// A share as `12.3 %`, `0.05 %`, `140 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    match share.is_finite() {
        true => format!("{} %", percent_digits(share)),
        false => NONE.to_owned(),
    }
}

/// A share that somebody chose, without trailing zeros: `95 %`, `0.5 %`.
#[must_use]
pub fn round_percent(share: f64) -> String {
    format!("{} %", strip_zeros(&percent_digits(share)))
}

/// A share with its sign, as `+1.3 %`, `−20.0 %`; `±` if it rounds to zero.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    if !share.is_finite() {
        return NONE.to_owned();
    }
    let digits = percent_digits(share.abs());
    let sign = match share {
        _ if matches!(digits.as_str(), "0" | "0.00") => '±',
        share if share < 0.0 => '−',
        _ => '+',
    };
    format!("{sign}{digits} %")
}

/// A ratio as a change: `+1.3 %`.
#[must_use]
pub fn change(ratio: f64) -> String {
    signed_percent(ratio - 1.0)
}

/// Two shares with their signs, as `−2.0 to +1.3 %`; an end at zero has no sign.
#[must_use]
pub fn signed_range(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(signed_percent);
    let end = |text: &str| text.trim_start_matches('±').to_owned();
    format!("{} to {}", end(low.trim_end_matches(" %")), end(&high))
}

/// Two shares, as `1.0–1.3 %`.
#[must_use]
pub fn percent_range(low: f64, high: f64) -> String {
    let (low, high) = (percent_digits(low), percent_digits(high));
    if low == high {
        format!("{low} %")
    } else {
        format!("{low}–{high} %")
    }
}

/// The digits of a share in per cent, behind `−` if it is negative and shows.
fn percent_digits(share: f64) -> String {
    let value = share.abs() * 100.0;
    let digits = if value == 0.0 {
        "0".to_owned()
    } else if value >= TOO_LONG {
        format!("{value:.2e}")
    } else if value >= 99.95 {
        format!("{value:.0}")
    } else if value < 0.095 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    };
    match share < 0.0 && digits != "0.00" {
        true => format!("−{digits}"),
        false => digits,
    }
}

/// `1 block`, `2 blocks`, `12,000 blocks`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    count_of(number as u64, noun, &format!("{noun}s"))
}

/// A number of things whose plural is not the noun with an `s`.
#[must_use]
pub fn count_of(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}

/// Digits in groups of three: `1,234,567`.
#[must_use]
pub fn grouped(value: u64) -> String {
    grouped_digits(&value.to_string())
}

/// The digits of a number of any size in groups of three.
#[must_use]
pub fn grouped_digits(digits: &str) -> String {
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number such as `2.8·10^17`.
#[must_use]
pub fn power_of_ten(value: f64) -> String {
    let written = format!("{value:.1e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    format!("{digits}·10^{exponent}")
}

/// Words in a row: `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn join_words<T: AsRef<str>>(words: &[T]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        text.push_str(match words.len() - at {
            _ if at == 0 => "",
            1 => " and ",
            _ => ", ",
        });
        text.push_str(word.as_ref());
    }
    text
}

/// The first words in a row, and how many others there are: `a, b and 2 more`.
#[must_use]
pub fn join_words_up_to<T: AsRef<str>>(words: &[T], most: usize) -> String {
    let shown = words.iter().take(most);
    let mut shown: Vec<String> = shown.map(|word| word.as_ref().to_owned()).collect();
    if words.len() > most {
        shown.push(format!("{} more", words.len() - most));
    }
    join_words(&shown)
}

/// A sentence within another one: its first letter in lower case, unless it is an abbreviation.
#[must_use]
pub fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next();
    let is_word = !chars.clone().next().is_some_and(char::is_uppercase);
    let first = first.map(|c| if is_word { c.to_ascii_lowercase() } else { c });
    first.into_iter().chain(chars).collect()
}

/// Begins with a capital letter.
#[must_use]
pub fn capitalise(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn words_in_a_row_end_with_and() {
        let texts = (0..4).map(|many| join_words(&["a", "b", "c"][..many]));
        assert!(texts.eq(["", "a", "a and b", "a, b and c"]));
        assert_eq!(["", "äh b"].map(capitalise), ["", "Äh b"]);
    }

    #[test]
    fn differences_of_times_have_a_sign() {
        for (value, text) in [
            (1.2e-3, "+1.20 ms"),
            (-4e-5, "−40.0 µs"),
            (0.0, "±0 s"),
            (f64::NAN, NONE),
        ] {
            assert_eq!(signed_seconds(value), text);
        }
    }

    /// `[function, value, …, text]`.
    fn format_case(case: &[Value]) -> String {
        let function = case[0].as_str().unwrap();
        let value = case[1].as_f64().unwrap();
        let word = |at: usize| case[at].as_str().unwrap();
        match function {
            "three_digits" => three_digits(value),
            "seconds" => seconds(value),
            "nanoseconds" => nanoseconds(value),
            "ratio" => ratio(value),
            "bytes" => bytes(value),
            "quantity" => quantity(value, word(2)),
            // What every `{:.1}` of the program prints.
            "fixed" => format!(
                "{value:.*}",
                usize::try_from(case[2].as_u64().unwrap()).unwrap()
            ),
            "percent" => percent(value),
            "signed_percent" => signed_percent(value),
            "change" => change(value),
            "count" => count_of(case[1].as_u64().unwrap(), word(2), word(3)),
            other => panic!("{other} is not a function of this module"),
        }
    }

    #[test]
    fn numbers_are_formatted_as_on_the_page() {
        let cases = include_str!("../../../tests/data/formats.json");
        let cases: Vec<Vec<Value>> = serde_json::from_str(cases).unwrap();
        for case in cases {
            assert_eq!(
                format_case(&case),
                case.last().unwrap().as_str().unwrap(),
                "{case:?}"
            );
        }
    }

    #[test]
    fn a_share_below_zero_has_a_minus_sign() {
        assert_eq!(percent(-0.05), "−5.0 %");
        assert_eq!(percent(-14.0), "−1400 %");
        assert_eq!(percent(-0.000_01), "0.00 %");
        assert_eq!(round_percent(-0.05), "−5 %");
        assert_eq!(percent_range(-0.05, -0.01), "−5.0–−1.0 %");
    }

    #[test]
    fn numbers_are_formatted_that_the_page_does_not_show() {
        assert_eq!(round_bytes(1_572_864), "1.5 MiB");
        assert_eq!(round_bytes(100), "100 B");
        assert_eq!(trimmed(2.50), "2.5");
        assert_eq!(trimmed(100.0), "100");
        assert_eq!(cpu_limit(1.0), "1 CPU");
        assert_eq!(cpu_limit(0.3), "0.3 CPUs");
        assert_eq!(cpu_limit(0.001), "0.001 CPUs");
        assert_eq!(round_percent(0.95), "95 %");
        assert_eq!(round_percent(0.005), "0.5 %");
        assert_eq!(signed_range(-0.02, 0.013), "−2.0 to +1.3 %");
        assert_eq!(percent_range(0.01, 0.013), "1.0–1.3 %");
        assert_eq!(percent_range(0.01, 0.010_01), "1.0 %");
        assert_eq!(scaled(289e9), "289G");
        assert_eq!(duration(Duration::from_millis(3)), "3 ms");
        assert_eq!(duration(Duration::from_secs(89)), "89 s");
        assert_eq!(duration(Duration::from_secs(180)), "3 min");
        assert_eq!(duration(Duration::from_secs(9000)), "2.5 h");
    }
}
