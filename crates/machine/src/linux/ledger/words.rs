//! Formats and parses numbers, CPUs and paths as words of a journal's line.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pinwise_topology::CpuSet;

/// Parses the id of a process or thread.
pub(super) fn parse_id(text: &str) -> Option<i32> {
    text.parse().ok().filter(|&id| id > 0)
}

/// Parses a nice value.
pub(super) fn parse_nice(text: &str) -> Option<i32> {
    text.parse().ok().filter(|nice| (-20..=19).contains(nice))
}

/// Formats a set of CPUs, which may be empty.
pub(super) fn format_cpus(cpus: &CpuSet) -> String {
    match cpus.is_empty() {
        true => "-".to_owned(),
        false => cpus.to_string(),
    }
}

/// Parses what [`format_cpus`] writes.
pub(super) fn parse_cpus(text: &str) -> Option<CpuSet> {
    match text {
        "-" => Some(CpuSet::new()),
        _ => parse_some_cpus(text),
    }
}

/// Parses a set of CPUs that must not be empty.
pub(super) fn parse_some_cpus(text: &str) -> Option<CpuSet> {
    CpuSet::parse_list(text).ok().filter(|set| !set.is_empty())
}

/// Writes a path as one printable word.
pub(super) fn escape(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'!'..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

/// Parses what [`escape`] writes; `None` unless it is an absolute path without `..`.
pub(super) fn unescape(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    let has_parent = path.components().any(|part| part.as_os_str() == "..");
    (path.is_absolute() && !has_parent).then_some(path)
}
