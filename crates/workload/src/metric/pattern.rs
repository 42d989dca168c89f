//! What a pattern says of the figure that it finds: the words in front of the number name it, and a
//! unit may stand behind. Nobody wants to read the pattern itself in a table.

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

/// Units that programs print, beside times, and rates such as `req/s`.
const UNITS: [&str; 18] = [
    "B", "KB", "kB", "MB", "GB", "KiB", "MiB", "GiB", "bytes", "%", "fps", "Hz", "kHz", "MHz",
    "GHz", "W", "J", "IOPS",
];
const TIMES: [&str; 9] = ["s", "sec", "secs", "seconds", "ms", "us", "µs", "ns", "min"];

/// Is this a unit of time?
pub(super) fn is_time(unit: &str) -> bool {
    TIMES.contains(&unit)
}

/// A pattern around its first group; `None` if more than one text may stand there.
struct Around<'a> {
    before: &'a str,
    /// `p99` of `(?P<p99>…)`.
    group: Option<&'a str>,
    behind: &'a str,
}

impl<'a> Around<'a> {
    fn read(pattern: &'a str) -> Option<Self> {
        let (mut open, mut close) = (None, None);
        let (mut depth, mut is_class, mut is_escaped) = (0_usize, false, false);
        for (at, c) in pattern.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                ']' => is_class = false,
                _ if is_class => {}
                '[' => is_class = true,
                '(' => {
                    depth += 1;
                    open = open.or(Some(at));
                }
                ')' => {
                    depth = depth.checked_sub(1)?;
                    close = close.or((depth == 0).then_some(at));
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
            behind: pattern.get(close + 1..)?,
        })
    }
}

/// The text that a part of a pattern stands for, character by character; `None` is anything else.
fn literals(part: &str) -> Vec<Option<char>> {
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

/// What the figure of a pattern is called: the words in front of the number.
pub(super) fn find_name(pattern: &str) -> Option<String> {
    let around = Around::read(pattern)?;
    if let Some(name) = around.group {
        return Some(name.to_owned());
    }
    let before = literals(around.before);
    let last = before.rsplit(Option::is_none).next()?;
    let text: String = last.iter().flatten().collect();
    let is_mark = |c: char| " :=\"'([{,<>-".contains(c);
    let name = text.trim_matches(is_mark);
    let is_word = name.chars().any(char::is_alphabetic);
    is_word.then(|| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The unit behind the number of a pattern.
pub(super) fn find_unit(pattern: &str) -> Option<String> {
    let behind = literals(Around::read(pattern)?.behind);
    let is_space = |c: &&Option<char>| **c == Some(' ');
    let unit = behind.iter().skip_while(is_space);
    let unit: Option<String> = unit
        .take_while(|c| !is_space(c))
        .copied()
        .collect::<Option<String>>();
    let unit = unit?;
    let unit = unit.trim_end_matches(|c: char| ",;.)".contains(c));
    let is_rate = |unit: &str| {
        let of = unit.strip_suffix("/s").or(unit.strip_suffix("/sec"));
        of.is_some_and(|of| !of.is_empty() && of.chars().all(char::is_alphanumeric))
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
    fn units_and_names_are_found_in_what_people_write() {
        let found = |pattern: &str| (find_name(pattern), find_unit(pattern));
        let pair = |name: Option<&str>, unit: Option<&str>| {
            (name.map(str::to_owned), unit.map(str::to_owned))
        };
        for (pattern, name, unit) in [
            (r"(?P<p99>\d+)us", Some("p99"), Some("us")),
            (r"p99[:=] *(\d+)", None, None),
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
            assert_eq!(found(pattern), pair(name, unit), "{pattern}");
        }
    }
}
