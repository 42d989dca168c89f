//! Parses the columns before an event's own fields.
//!
//! ```text
//!             bash-317     (    317) [001] d..2. 46132.168504: sched_switch: …
//!             bash-317     [001]  46132.168504: sched_switch: …
//!     bash-317       1d..2. 16444us!: sched_switch: …        (latency format)
//!             bash   317 [001] 46132.168504: sched:sched_switch: …   (perf script)
//! ```
//!
//! A thread's name can contain anything: spaces, dashes, brackets, even text that looks like the
//! columns. The kernel pads it to a fixed width, so the dash after it has a fixed position; only if
//! it is not there, the line is searched for it.

use crate::Tid;

/// Columns of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns<'a> {
    /// The thread that ran.
    pub(super) thread: Tid,
    /// Its process, if that column exists and is filled.
    pub(super) process: Option<Tid>,
    pub(super) cpu: u32,
    pub(super) time_ns: u64,
    /// The event's name without its system.
    pub(super) event: &'a [u8],
    pub(super) arguments: &'a [u8],
}

/// The padded width of names, except in the latency format.
const NAME_WIDTH: usize = 16;

/// Position of the dash in the usual format and in the latency format.
const DASHES: [usize; 2] = [NAME_WIDTH, 8];

/// Bytes searched for a dash that is not at its position.
const NAME_COLUMN: usize = 32;

impl<'a> Columns<'a> {
    /// Parses a line; `None` if it is not an event. The error is a clause about the time.
    pub(super) fn parse(line: &'a [u8]) -> Result<Option<Self>, String> {
        // This comes first because a dash in a name could be taken for the one before the thread.
        if let Some(start) = LineStart::parse_perf_script(line) {
            return start.parse_rest();
        }
        let searched = line.len().min(NAME_COLUMN);
        let dashes = DASHES.into_iter().chain(0..searched);
        for dash in dashes.filter(|dash| line.get(*dash) == Some(&b'-')) {
            if let Some(start) = LineStart::parse(&line[dash + 1..]) {
                return start.parse_rest();
            }
        }
        Ok(None)
    }
}

/// Did `perf script` print this event?
pub(super) fn is_from_perf_script(line: &[u8]) -> bool {
    LineStart::parse_perf_script(line).is_some()
}

/// The columns before the time.
struct LineStart<'a> {
    thread: Tid,
    process: Option<Tid>,
    cpu: u32,
    /// The time and what follows it, possibly after flags.
    rest: &'a [u8],
    has_flags: bool,
}

impl<'a> LineStart<'a> {
    /// `            bash   317 [001] `, or with the process `300/317`: perf pads a name to the same
    /// width, and adds a space.
    fn parse_perf_script(line: &'a [u8]) -> Option<Self> {
        let rest = line.get(NAME_WIDTH..)?.strip_prefix(b" ")?;
        let (first, rest) = parse_number(rest.trim_ascii_start())?;
        let (process, thread, rest) = match rest.strip_prefix(b"/") {
            None => (None, first, rest),
            Some(rest) => {
                let (thread, rest) = parse_number(rest)?;
                (Some(Tid::try_from(first).ok()?), thread, rest)
            }
        };
        let rest = rest.trim_ascii_start().strip_prefix(b"[")?;
        let (cpu, rest) = parse_number(rest)?;
        Some(Self {
            thread: Tid::try_from(thread).ok()?,
            process,
            cpu: u32::try_from(cpu).ok()?,
            rest: rest.strip_prefix(b"] ")?,
            has_flags: false,
        })
    }

    /// Parses the text after the dash: `317 ( 317) [001] …`, or `317 1d..2. …`.
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (thread, rest) = parse_number(text)?;
        let thread = Tid::try_from(thread).ok()?;
        let mut rest = rest.strip_prefix(b" ")?.trim_ascii_start();
        let mut process = None;
        if let Some(inside) = rest.strip_prefix(b"(") {
            let end = inside.iter().position(|byte| *byte == b')')?;
            let name = inside[..end].trim_ascii();
            process = parse_number(name).and_then(|(process, _)| Tid::try_from(process).ok());
            let is_unknown = name.iter().all(|byte| *byte == b'-');
            (process.is_some() || is_unknown).then_some(())?;
            rest = inside[end + 1..].trim_ascii_start();
        }
        let is_bracketed = rest.first() == Some(&b'[');
        let (cpu, rest) = parse_number(if is_bracketed { &rest[1..] } else { rest })?;
        let cpu = u32::try_from(cpu).ok()?;
        let rest = match is_bracketed {
            true => rest.strip_prefix(b"]")?,
            // In the latency format the flags follow at once.
            false => rest,
        };
        Some(Self {
            thread,
            process,
            cpu,
            rest,
            has_flags: !is_bracketed,
        })
    }

    fn parse_rest(self) -> Result<Option<Columns<'a>>, String> {
        let mut rest = self.rest;
        if self.has_flags {
            (_, rest) = split_word(rest);
        }
        let (mut time, mut after) = split_word(rest);
        let is_time = |time: &[u8]| time.first().is_some_and(u8::is_ascii_digit);
        if !is_time(time) && !self.has_flags {
            (time, after) = split_word(after);
        }
        if !is_time(time) {
            return Ok(None);
        }
        // The latency format separates time and colon if there is no mark between them.
        if let Some(rest) = after.strip_prefix(b" : ").filter(|_| !time.ends_with(b":")) {
            after = rest;
        }
        let time_ns = parse_time(time)?;
        let (mut name, mut arguments) = split_word(after);
        // perf script can print the period before the name.
        if !name.is_empty() && name.iter().all(u8::is_ascii_digit) {
            (name, arguments) = split_word(arguments);
        }
        let Some(name) = name.strip_suffix(b":") else {
            return Ok(None);
        };
        let event = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
        Ok(Some(Columns {
            thread: self.thread,
            process: self.process,
            cpu: self.cpu,
            time_ns,
            event,
            arguments: arguments.trim_ascii_start(),
        }))
    }
}

/// Splits a text at the first space after its first word.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ');
    text.split_at(end.unwrap_or(text.len()))
}

/// Parses a whole number at the start of a text; also returns the rest.
pub(super) fn parse_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let digits = std::str::from_utf8(digits).ok()?;
    Some((digits.parse().ok()?, rest))
}

/// Parses `46132.168504:`, with up to nine decimals, or `16444us!:` in the latency format, to ns.
fn parse_time(text: &[u8]) -> Result<u64, String> {
    let refused = || {
        let shown = text[..text.len().min(40)].escape_ascii();
        format!(
            "time '{shown}' is not in seconds; take a clock that has them: echo mono > trace_clock"
        )
    };
    let (whole, rest) = parse_number(text).ok_or_else(refused)?;
    if rest.starts_with(b"us") {
        return whole.checked_mul(1000).ok_or_else(refused);
    }
    let decimals = rest.strip_prefix(b".").ok_or_else(refused)?;
    let (part, end) = parse_number(decimals).ok_or_else(refused)?;
    let digits = u32::try_from(decimals.len() - end.len()).unwrap_or(u32::MAX);
    let scale = 9_u32.checked_sub(digits).map(|zeros| 10_u64.pow(zeros));
    let nanoseconds = whole.checked_mul(1_000_000_000);
    let sum = nanoseconds.zip(scale).and_then(|(whole, scale)| {
        let part = part.checked_mul(scale)?;
        whole.checked_add(part)
    });
    sum.filter(|_| end == b":").ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(Tid, Option<Tid>, u32, u64)>) {
        let columns = Columns::parse(line.as_bytes()).unwrap();
        if let Some(columns) = columns {
            assert_eq!(columns.event, b"e", "{line}");
            assert_eq!(columns.arguments, b"a=1 b", "{line}");
        }
        let found = columns.map(|c| (c.thread, c.process, c.cpu, c.time_ns));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn all_layouts_are_parsed() {
        let expected = |process| Some((317, process, 1, 46_132_168_504_000));
        for (line, process) in [
            (
                "            bash-317     [001] d..2. 46132.168504: e: a=1 b",
                None,
            ),
            (
                "            bash-317     [001]  46132.168504: e: a=1 b",
                None,
            ),
            (
                "            bash-317     [001] 46132.168504000: s:e:      a=1 b",
                None,
            ),
            (
                "            bash-317     (    300) [001] d..2. 46132.168504: e: a=1 b",
                Some(300),
            ),
            (
                "            bash-317     (-------) [001] ..... 46132.168504: e: a=1 b",
                None,
            ),
            ("bash-317 [001] 46132.168504: e: a=1 b", None),
            (
                "            bash-317     1d..2. 46132.168504: e: a=1 b",
                None,
            ),
        ] {
            check(line, expected(process));
        }
        check(
            "            bash   317 [001] 46132.168504:    s:e: a=1 b",
            expected(None),
        );
        check(
            "             a-1   317 [001] 46132.168504:    s:e: a=1 b",
            expected(None),
        );
        let with_process = "            bash   300/317   [001] 46132.168504: s:e: a=1 b";
        check(with_process, expected(Some(300)));
        let latency = Some((317, None, 1, 16_444_000));
        check("    bash-317       1d..2. 16444us!: e: a=1 b", latency);
        check("    bash-317       1d..2. 16444us : e: a=1 b", latency);
        check("no event at all", None);
        check("", None);
        check("            bash-317     [001] d..2.", None);
    }

    #[test]
    fn names_that_look_like_columns_are_skipped() {
        let expected = Some((317, None, 1, 1_000_000_000));
        check(
            "  -1 [0] 1.0: e:-317     [001] d..2. 1.000000: e: a=1 b",
            expected,
        );
        check(
            "-------------  --317     [001] d..2. 1.000000: e: a=1 b",
            expected,
        );
    }

    #[test]
    fn errors_quote_invalid_times() {
        for time in [
            "123456:",
            "1.0000000000:",
            "1.:",
            "99999999999999.0:",
            "1.5",
        ] {
            let line = format!("            bash-317     [001] d..2. {time} e: a");
            let error = Columns::parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(&format!("'{time}'")), "{error}");
        }
    }
}
