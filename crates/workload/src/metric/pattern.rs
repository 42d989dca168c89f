//! Finds the name and unit of a figure in the regular expression that reads it: the words before
//! the number, and the unit after it. They replace the expression in tables.

use regex_lite::Regex;

/// Words in the name of a figure that is a time or a rate.
const TIME_WORDS: [&str; 27] = [
    "s",
    "ms",
    "us",
    "µs",
    "ns",
    "sec",
    "secs",
    "second",
    "seconds",
    "millis",
    "milliseconds",
    "micros",
    "microseconds",
    "nanos",
    "nanoseconds",
    "min",
    "minutes",
    "time",
    "elapsed",
    "duration",
    "latency",
    "runtime",
    "rate",
    "throughput",
    "speed",
    "wall",
    "fps",
];

/// Units that programs print, besides times and rates such as `req/s`.
const UNITS: [&str; 18] = [
    "B", "KB", "kB", "MB", "GB", "KiB", "MiB", "GiB", "bytes", "%", "fps", "Hz", "kHz", "MHz",
    "GHz", "W", "J", "IOPS",
];
/// Units that programs choose by the size of a time, with their seconds.
const UNITS_OF_TIME: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];
const TIME_UNITS: [&str; 9] = ["s", "sec", "secs", "seconds", "ms", "us", "µs", "ns", "min"];

/// Is this a unit of time?
pub(super) fn is_time(unit: &str) -> bool {
    TIME_UNITS.contains(&unit)
}

/// A regular expression, split at its first group.
struct SplitPattern<'a> {
    before: &'a str,
    /// `p99` of `(?P<p99>…)`.
    group: Option<&'a str>,
    /// What the group matches, with the group's name.
    inner: &'a str,
    after: &'a str,
}

impl<'a> SplitPattern<'a> {
    /// `None` if there is no group, or an alternative (`|`) outside of groups.
    fn split(pattern: &'a str) -> Option<Self> {
        let (mut open, mut close) = (None, None);
        let (mut depth, mut is_class, mut is_escaped) = (0_usize, false, false);
        for (position, c) in pattern.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                ']' => is_class = false,
                _ if is_class => {}
                '[' => is_class = true,
                '(' => {
                    depth += 1;
                    open = open.or(Some(position));
                }
                ')' => {
                    depth = depth.checked_sub(1)?;
                    close = close.or((depth == 0).then_some(position));
                }
                '|' if depth == 0 => return None,
                _ => {}
            }
        }
        let (open, close) = open.zip(close)?;
        let inner = pattern.get(open + 1..close)?;
        let named = inner.strip_prefix("?P<").or(inner.strip_prefix("?<"));
        if inner.starts_with('?') && named.is_none() {
            return None;
        }
        Some(Self {
            before: &pattern[..open],
            group: named.and_then(|rest| rest.split('>').next()),
            inner,
            after: pattern.get(close + 1..)?,
        })
    }
}

/// The characters that a part of a regular expression matches literally; `None` for all else.
fn list_literals(part: &str) -> Vec<Option<char>> {
    let mut out: Vec<Option<char>> = Vec::new();
    let mut rest = part.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.push(match rest.next() {
                Some('s' | 't') => Some(' '),
                Some(c) if !c.is_alphanumeric() => Some(c),
                _ => None,
            }),
            '[' => {
                rest.by_ref().take_while(|&c| c != ']').for_each(drop);
                out.push(None);
            }
            '{' => rest.by_ref().take_while(|&c| c != '}').for_each(drop),
            '.' => out.push(None),
            '*' | '+' | '?' | '^' | '$' => {}
            c => out.push(Some(c)),
        }
    }
    out
}

/// Does the group of a pattern take a unit of time with its number, and never a number alone?
pub(super) fn takes_unit(pattern: &str) -> bool {
    let inner = SplitPattern::split(pattern).map_or("", |split| split.inner);
    let Ok(group) = Regex::new(&format!("^({inner})$")) else {
        return false;
    };
    let matches = |number: &str, unit: &str| group.is_match(&format!("{number}{unit}"));
    let numbers = ["1", "1.5", "12.34"];
    let has_unit = |number: &&str| UNITS_OF_TIME.iter().any(|(unit, _)| matches(number, unit));
    numbers.iter().any(has_unit) && !numbers.iter().any(|number| matches(number, ""))
}

/// The unit of time that stands right behind a number in an output; `None` if the word is another.
pub(super) fn unit_behind(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let word = &rest[..end.unwrap_or(rest.len())];
    seconds_of(word).map(|_| word)
}

/// Does a pattern itself say that this unit stands behind its number?
pub(super) fn names_unit(pattern: &str, unit: &str) -> bool {
    let Some(split) = SplitPattern::split(pattern) else {
        return false;
    };
    let behind = list_literals(split.after);
    let behind: String = behind.iter().map_while(|c| *c).collect();
    behind.starts_with(unit)
}

/// The pattern whose group takes the unit of time with the number.
pub(super) fn with_unit_in_group(pattern: &str) -> String {
    let split = SplitPattern::split(pattern).filter(|split| split.after.is_empty());
    match split {
        Some(SplitPattern { before, inner, .. }) => format!("{before}({inner}[a-zµ]+)"),
        None => r"([0-9.]+[a-zµ]+)".to_owned(),
    }
}

/// A time with its units, such as `1.21ms` or `1m2.5s`, in seconds.
pub(super) fn parse_time(text: &str) -> Option<f64> {
    let is_of_number = |c: char| c.is_ascii_digit() || ".,_".contains(c);
    let mut seconds = None;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c| !is_of_number(c))?);
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_alphabetic());
        let (unit, next) = behind.split_at(end.unwrap_or(behind.len()));
        let part = super::parse_number(number)? * seconds_of(unit)?;
        seconds = Some(seconds.unwrap_or(0.0) + part);
        rest = next.trim_start();
    }
    seconds
}

fn seconds_of(unit: &str) -> Option<f64> {
    let mut units = UNITS_OF_TIME.iter();
    units.find(|(name, _)| *name == unit).map(|(_, s)| *s)
}

/// The name of a pattern's figure: the last words before the number, or a percentile such as
/// `99%`.
pub(super) fn find_name(pattern: &str) -> Option<String> {
    let split = SplitPattern::split(pattern)?;
    if let Some(name) = split.group {
        return Some(name.to_owned());
    }
    let before = list_literals(split.before);
    let is_punctuation = |c: char| " :=\"'([{,<>-".contains(c);
    let is_name = |text: &String| text.chars().any(|c| c.is_alphabetic() || c == '%');
    let texts = before.rsplit(Option::is_none);
    let mut texts = texts.map(|text| text.iter().flatten().collect::<String>());
    let name = texts.find(is_name)?;
    let words = name.trim_matches(is_punctuation).split_whitespace();
    Some(words.collect::<Vec<_>>().join(" "))
}

/// The unit after the number of a pattern.
pub(super) fn find_unit(pattern: &str) -> Option<String> {
    let after = list_literals(SplitPattern::split(pattern)?.after);
    let is_space = |c: &&Option<char>| **c == Some(' ');
    let unit = after.iter().skip_while(is_space);
    let unit: Option<String> = unit
        .take_while(|c| !is_space(c))
        .copied()
        .collect::<Option<String>>();
    let unit = unit?;
    let unit = unit.trim_end_matches(|c: char| ",;.)".contains(c));
    let is_rate = |unit: &str| {
        let counted = unit.strip_suffix("/s").or(unit.strip_suffix("/sec"));
        counted.is_some_and(|counted| {
            !counted.is_empty() && counted.chars().all(char::is_alphanumeric)
        })
    };
    (is_time(unit) || UNITS.contains(&unit) || is_rate(unit)).then(|| unit.to_owned())
}

/// Does a word of the text mean time, or a quantity per time, as in `took_ms` and `req/s`?
pub(super) fn has_time_word(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphabetic());
    words.any(|word| TIME_WORDS.contains(&word.to_lowercase().as_str()))
}

/// A pattern without its escapes: the `s` of `\s` does not mean seconds.
pub(super) fn strip_escapes(pattern: &str) -> String {
    let mut is_escaped = false;
    let mut rest = String::new();
    for c in pattern.chars() {
        let is_backslash = c == '\\' && !is_escaped;
        rest.push(if is_backslash || is_escaped { ' ' } else { c });
        is_escaped = is_backslash;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_names_are_found_in_regular_expressions() {
        let find_both = |pattern: &str| (find_name(pattern), find_unit(pattern));
        let pair = |name: Option<&str>, unit: Option<&str>| {
            (name.map(str::to_owned), unit.map(str::to_owned))
        };
        for (pattern, name, unit) in [
            (r"(?P<p99>\d+)us", Some("p99"), Some("us")),
            (r"p99[:=] *(\d+)", Some("p99"), None),
            (r"99%\s+([\d.]+)ms", Some("99%"), Some("ms")),
            (r"took.*: (\d+)", Some("took"), None),
            (
                r"\d+ ops, lat \(ms\): ([\d.]+)",
                Some("ops, lat (ms)"),
                None,
            ),
            (r"total \((\d+)\)", Some("total"), None),
            (r"x(\d+) requests/s, more", Some("x"), Some("requests/s")),
            (r"(?i)p99 (\d+)", None, None),
            (r"no group at all", None, None),
            (r"a(b", None, None),
            (r"a)b(c)", None, None),
            ("", None, None),
        ] {
            assert_eq!(find_both(pattern), pair(name, unit), "{pattern}");
        }
    }
}
