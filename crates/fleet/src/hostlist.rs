//! Lists of nodes as schedulers write them: `a,b,n[1-4,7]`, `rack[1-2]n[01-16]`.
//!
//! The syntax is Slurm's (see `show hostnames` in scontrol(1)): a number keeps its leading zeros,
//! several brackets give all combinations, and duplicates count once.

use std::collections::BTreeSet;

/// Maximum number of nodes of a list.
pub const MAX_NODES: usize = 100_000;
/// Maximum length of a node's name, bytes.
const MAX_NAME_BYTES: usize = 200;
/// Maximum number of digits of a node's number.
const MAX_DIGITS: usize = 9;

/// An invalid list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{list}': {reason} (write a,b,n[1-4,7])")]
pub struct HostlistError {
    /// The list.
    pub list: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Is this the name of a node: letters, digits, `-`, `_` and `.`, and not reserved for folders or a
/// fleet's records?
#[must_use]
pub fn is_node_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // A fleet's report has the id that a node with this name would have.
    let is_reserved = matches!(name, "." | ".." | "report");
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && !is_reserved
}

/// Expands a list to its nodes, in its order, each once.
///
/// # Errors
/// [`HostlistError`] if it is not a list, is empty, has more than [`MAX_NODES`], or has a name that
/// no node can have.
pub fn expand(list: &str) -> Result<Vec<String>, HostlistError> {
    let bad = |reason: String| HostlistError {
        list: list.to_owned(),
        reason,
    };
    let mut seen = BTreeSet::new();
    let mut nodes = Vec::new();
    for part in split_at_commas(list).map_err(bad)? {
        for name in expand_part(part).map_err(bad)? {
            if !is_node_name(&name) {
                let reason =
                    "names of nodes have letters, digits, -, _ and . only; 'report' is reserved";
                return Err(bad(reason.to_owned()));
            }
            if seen.insert(name.clone()) {
                nodes.push(name);
            }
            if nodes.len() > MAX_NODES {
                return Err(bad(format!("more than {MAX_NODES} nodes")));
            }
        }
    }
    Ok(nodes)
}

/// Writes nodes as a list, with consecutive numbers in brackets.
#[must_use]
pub fn compress(nodes: &[String]) -> String {
    let mut parts: Vec<Run> = Vec::new();
    for node in nodes {
        let split = node.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (stem, digits) = node.split_at(split);
        let number = digits.parse::<u64>().ok();
        let number = number.filter(|_| digits.len() <= MAX_DIGITS);
        let (stem, number) = match number {
            Some(number) => (stem, Some(number)),
            None => (node.as_str(), None),
        };
        let fits = parts.last_mut().filter(|run| run.stem == stem);
        match (fits, number) {
            (Some(run), Some(number)) if run.is_numbered => run.add(number, digits.len()),
            _ => parts.push(Run::new(stem, number, digits.len())),
        }
    }
    let words: Vec<String> = parts.iter().map(Run::to_text).collect();
    words.join(",")
}

/// Nodes that differ only in their last number.
struct Run {
    stem: String,
    is_numbered: bool,
    ranges: Vec<NumberRange>,
}

/// Consecutive numbers, written with this many digits.
struct NumberRange {
    first: u64,
    last: u64,
    digits: usize,
}

impl Run {
    fn new(stem: &str, number: Option<u64>, digits: usize) -> Self {
        Self {
            stem: stem.to_owned(),
            is_numbered: number.is_some(),
            ranges: number
                .map(|number| NumberRange::new(number, digits))
                .into_iter()
                .collect(),
        }
    }

    fn add(&mut self, number: u64, digits: usize) {
        match self.ranges.last_mut() {
            Some(range) if range.last + 1 == number && range.digits == digits => {
                range.last = number;
            }
            _ => self.ranges.push(NumberRange::new(number, digits)),
        }
    }

    fn to_text(&self) -> String {
        let stem = &self.stem;
        match self.ranges.as_slice() {
            [] => stem.clone(),
            [range] if range.first == range.last => format!("{stem}{}", range.to_text()),
            several => {
                let words: Vec<String> = several.iter().map(NumberRange::to_text).collect();
                format!("{stem}[{}]", words.join(","))
            }
        }
    }
}

impl NumberRange {
    const fn new(number: u64, digits: usize) -> Self {
        Self {
            first: number,
            last: number,
            digits,
        }
    }

    fn to_text(&self) -> String {
        let Self {
            first,
            last,
            digits,
        } = self;
        if first == last {
            return format!("{first:0digits$}");
        }
        format!("{first:0digits$}-{last:0digits$}")
    }
}

/// Splits a list at the commas outside brackets.
fn split_at_commas(list: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut start, mut is_open) = (0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if is_open => return Err("nested brackets".to_owned()),
            '[' => is_open = true,
            ']' if !is_open => return Err("a bracket is closed but was not opened".to_owned()),
            ']' => is_open = false,
            ',' if !is_open => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_open {
        return Err("a bracket is not closed".to_owned());
    }
    parts.push(&list[start..]);
    let parts: Vec<&str> = parts.into_iter().map(str::trim).collect();
    match parts.iter().any(|part| part.is_empty()) {
        true => Err("a name is missing".to_owned()),
        false => Ok(parts),
    }
}

/// Expands a part of a list: several brackets give all combinations.
fn expand_part(part: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, behind) = after.split_once(']').unwrap_or((after, ""));
        let numbers = expand_brackets(inside)?;
        if names.len().saturating_mul(numbers.len()) > MAX_NODES {
            return Err(format!("more than {MAX_NODES} nodes"));
        }
        let extended = names.iter().flat_map(|stem| {
            let with = |number: &String| format!("{stem}{before}{number}");
            numbers.iter().map(with).collect::<Vec<_>>()
        });
        names = extended.collect();
        rest = behind;
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

/// Expands the text in brackets, such as `1-4,07`.
fn expand_brackets(inside: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for word in inside.split(',') {
        let word = word.trim();
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (low, high) = (parse_number(first)?, parse_number(last)?);
        if low > high {
            return Err(format!("{word} is a reversed range"));
        }
        if high - low >= MAX_NODES as u64 || numbers.len() > MAX_NODES {
            return Err(format!("more than {MAX_NODES} nodes"));
        }
        let width = first.len();
        numbers.extend((low..=high).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

fn parse_number(word: &str) -> Result<u64, String> {
    let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    if !is_number || word.len() > MAX_DIGITS {
        return Err(format!("'{word}' is not the number of a node"));
    }
    word.parse()
        .map_err(|_| format!("'{word}' is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_expanded() {
        let check = |list: &str, expected: &[&str]| assert_eq!(expand(list).unwrap(), expected);
        check("a", &["a"]);
        check("a, b,a", &["a", "b"]);
        check("n[1-3,7]", &["n1", "n2", "n3", "n7"]);
        check("n[08-11].x", &["n08.x", "n09.x", "n10.x", "n11.x"]);
        check("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]);
    }

    #[test]
    fn invalid_lists_are_refused() {
        for bad in [
            "",
            ",",
            "a,",
            "n[",
            "n]",
            "n[1",
            "n[[1]]",
            "n[2-1]",
            "n[x]",
            "n[]",
            "n[1-]",
            "a b",
            "../x",
            ".",
            "..",
            "a/b",
            "-n",
            "report",
            "n[1-99999999]",
            "r[1-999]n[1-999]",
            "n\u{1b}",
            "n[1234567890]",
        ] {
            let error = expand(bad).unwrap_err().to_string();
            assert!(error.contains("(write a,b,n[1-4,7])"), "{bad}: {error}");
        }
    }

    #[test]
    fn lists_are_compressed() {
        let check = |nodes: &[&str], expected: &str| {
            let nodes: Vec<String> = nodes.iter().map(|n| (*n).to_owned()).collect();
            assert_eq!(compress(&nodes), expected);
        };
        check(&[], "");
        check(&["a"], "a");
        check(&["n1", "n2", "n3", "n5", "b"], "n[1-3,5],b");
        check(&["n08", "n09", "n10", "n011"], "n[08-10,011]");
    }

    proptest! {
        #[test]
        fn compressed_lists_expand_to_the_same_nodes(nodes in proptest::collection::vec("[ab]{1,2}[0-9]{0,4}", 1..20)) {
            let mut distinct: Vec<String> = Vec::new();
            for node in nodes {
                if !distinct.contains(&node) {
                    distinct.push(node);
                }
            }
            prop_assert_eq!(expand(&compress(&distinct)).unwrap(), distinct);
        }
    }
}
