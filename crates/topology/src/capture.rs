//! A machine as captured files: the contents of `/sys` and `/proc`, by path, as bytes.
//!
//! Callers fill a capture from a running system or a directory; parsing it opens no file. The text
//! form is one line per file, so that a capture can be kept, mailed, diffed and fuzzed. It contains
//! only files that pinwise reads.

use std::collections::BTreeMap;

const HEADER: &str = "pinwise-capture 1";
/// The last line: without it a capture is incomplete.
const END: &str = "end";

/// Files by path without a leading slash, such as
/// `sys/devices/system/cpu/online`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a capture's text form could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The first line is not the header.
    #[error("line 1: not a pinwise capture (its first line must be '{HEADER}')")]
    NotACapture,
    /// A line, given by number, has no tab between path and content.
    #[error("line {0}: no tab between a path and its content")]
    NoContent(usize),
    /// The last line is missing; the number is of the last line found.
    #[error("line {0}: the capture was cut off here (its last line must be '{END}')")]
    Truncated(usize),
    /// In the line of this number, a backslash is followed by an unknown escape.
    #[error("line {0}: a backslash must be followed by n, t, \\ or x and two hexadecimal digits")]
    BadEscape(usize),
}

impl Capture {
    /// An empty capture.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file; a later one of the same path replaces it.
    pub fn insert(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), content.into());
    }

    /// Content as text, without surrounding white space and NUL bytes (some kernels pad sysfs files
    /// with them); `None` if missing or not UTF-8.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        let bytes = self.files.get(path)?;
        let text = std::str::from_utf8(bytes).ok()?;
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0'))
    }

    /// Does the capture have this file?
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The distinct next path components below a folder, in order:
    /// `sys/devices/system/cpu` has `cpu0`, `cpu1`, `online` …
    pub fn children<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> + 'a {
        let prefix = format!("{folder}/");
        let start = prefix.clone();
        let mut previous: Option<&str> = None;
        self.files
            .range(start..)
            .take_while({
                let prefix = prefix.clone();
                move |(path, _)| path.starts_with(&prefix)
            })
            .filter_map(move |(path, _)| {
                let rest = &path[prefix.len()..];
                let child = rest.split('/').next().unwrap_or(rest);
                let is_new = previous != Some(child);
                previous = Some(child);
                is_new.then_some(child)
            })
    }

    /// Numbered children such as `cpu0`, `cpu12` of a folder, ascending; names that Linux would not
    /// use (`cpu07`, `cpu+7`) do not count.
    #[must_use]
    pub fn numbered_children(&self, folder: &str, stem: &str) -> Vec<usize> {
        let number = |child: &str| -> Option<usize> {
            let digits = child.strip_prefix(stem)?;
            let number = digits.parse().ok()?;
            (format!("{number}") == digits).then_some(number)
        };
        let mut numbers: Vec<usize> = self.children(folder).filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Does it have no files?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The text form: a header, then `path<TAB>content` with `\n`, `\t`, `\\`
    /// and `\xHH` escapes, then `end`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (path, content) in &self.files {
            text.push_str(&escape(path.as_bytes()));
            text.push('\t');
            text.push_str(&escape(content));
            text.push('\n');
        }
        text.push_str(END);
        text.push('\n');
        text
    }

    /// Parses the text form.
    ///
    /// # Errors
    /// [`CaptureError`] names the line.
    pub fn from_text(text: &str) -> Result<Self, CaptureError> {
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != HEADER) {
            return Err(CaptureError::NotACapture);
        }
        let mut capture = Self::new();
        let mut last = 1;
        for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
            if line == END {
                return Ok(capture);
            }
            let number = index + 1;
            last = number;
            let (path, content) = line
                .split_once('\t')
                .ok_or(CaptureError::NoContent(number))?;
            let path = unescape(path).ok_or(CaptureError::BadEscape(number))?;
            let content = unescape(content).ok_or(CaptureError::BadEscape(number))?;
            capture.insert(String::from_utf8_lossy(&path).into_owned(), content);
        }
        Err(CaptureError::Truncated(last))
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'\\' => b'\\',
            b'x' => {
                let pair = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn children_are_listed_once() {
        let mut capture = Capture::new();
        for path in [
            "a/cpu1/x",
            "a/cpu0/x",
            "a/cpu0/y",
            "a/cpu10/x",
            "a/cpu07/x",
            "a/cpu+8/x",
            "a/cpu99999999999999999999/x",
            "ab/c",
            "a/on",
        ] {
            capture.insert(path, "1");
        }
        assert_eq!(capture.numbered_children("a", "cpu"), [0, 1, 10]);
        assert_eq!(capture.children("a").count(), 7);
    }

    #[test]
    fn nul_padding_is_dropped() {
        let mut capture = Capture::new();
        capture.insert("f", b"0-3\n\0\0\0".to_vec());
        assert_eq!(capture.text("f"), Some("0-3"));
    }

    #[test]
    fn damaged_text_names_its_line() {
        let error = |text: &str| Capture::from_text(text).unwrap_err().to_string();
        assert!(error("x").starts_with("line 1:"));
        assert!(error("pinwise-capture 1\na\tb\nno tab").starts_with("line 3:"));
        assert!(error("pinwise-capture 1\na\t\\q").starts_with("line 2:"));
    }

    proptest! {
        #[test]
        fn text_form_round_trips(files in proptest::collection::btree_map("[a-z/\t\\\\]{1,12}", proptest::collection::vec(any::<u8>(), 0..30), 0..8)) {
            let mut capture = Capture::new();
            for (path, content) in files {
                capture.insert(path, content);
            }
            prop_assert_eq!(Capture::from_text(&capture.to_text()).unwrap(), capture);
        }
    }
}
