//! Shell-like patterns of paths.
//!
//! Any user can choose the names of processes, so hostile names must not make matching slow: its
//! worst case is the pattern's length times the square of the text's.

use std::fmt;

/// Longest pattern, bytes: the kernel's longest path.
const MAX_PATTERN_BYTES: usize = 4096;

/// A pattern of paths. `*` is any run of characters without `/`, `**` any run, `?` one byte other
/// than `/`, `[a-z]` one character of a set, `[!a-z]` one that is not in the set. `\` takes the
/// next character literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Byte(u8),
    /// `?`
    Any,
    /// Ranges, and whether the set is negated.
    Set(Vec<(u8, u8)>, bool),
    /// `*`
    Run,
    /// `**`
    Deep,
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes"));
        }
        let mut parts = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                0 => return Err("it holds a NUL byte".to_owned()),
                b'*' => {
                    let stars = after.iter().take_while(|&&b| b == b'*').count();
                    rest = &after[stars..];
                    parts.push(if stars > 0 { Part::Deep } else { Part::Run });
                }
                b'?' => parts.push(Part::Any),
                b'[' => {
                    let (part, after) = parse_set(after)?;
                    parts.push(part);
                    rest = after;
                }
                b'\\' => {
                    let (&next, after) = after
                        .split_first()
                        .ok_or_else(|| "nothing follows the last \\".to_owned())?;
                    parts.push(Part::Byte(next));
                    rest = after;
                }
                byte => parts.push(Part::Byte(byte)),
            }
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// Does the whole text match?
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        // Where to resume if the parts after a star do not match: for the last `*` and the last
        // `**`, the index of the next part and the end of the text that the star took.
        let (mut part, mut at) = (0, 0);
        let mut run: Option<(usize, usize)> = None;
        let mut deep: Option<(usize, usize)> = None;
        loop {
            match self.parts.get(part) {
                Some(Part::Run) => {
                    run = Some((part + 1, at));
                    part += 1;
                    continue;
                }
                Some(Part::Deep) => {
                    deep = Some((part + 1, at));
                    run = None;
                    part += 1;
                    continue;
                }
                Some(one) if text.get(at).is_some_and(|&byte| one.accepts(byte)) => {
                    part += 1;
                    at += 1;
                    continue;
                }
                None if at == text.len() => return true,
                _ => {}
            }
            if let Some((next, taken)) = run
                && text.get(taken).is_some_and(|&byte| byte != b'/')
            {
                run = Some((next, taken + 1));
                (part, at) = (next, taken + 1);
            } else if let Some((next, taken)) = deep
                && taken < text.len()
            {
                deep = Some((next, taken + 1));
                run = None;
                (part, at) = (next, taken + 1);
            } else {
                return false;
            }
        }
    }

    /// The path up to the first component with a wildcard; the whole path if there is none.
    #[must_use]
    pub(super) fn fixed_path(&self) -> Vec<u8> {
        let byte = |part: &Part| match part {
            Part::Byte(byte) => Some(*byte),
            _ => None,
        };
        let mut fixed: Vec<u8> = self.parts.iter().map_while(byte).collect();
        if fixed.len() < self.parts.len() {
            let slash = fixed.iter().rposition(|&byte| byte == b'/');
            fixed.truncate(slash.map_or(0, |at| at.max(1)));
        }
        fixed
    }

    /// Can a path match that begins at the root?
    #[must_use]
    pub(super) fn may_begin_with_slash(&self) -> bool {
        match self.parts.first() {
            Some(Part::Byte(byte)) => *byte == b'/',
            Some(Part::Deep) => true,
            Some(Part::Set(..)) => self.parts.first().is_some_and(|part| part.accepts(b'/')),
            Some(Part::Run) => self.parts.get(1) == Some(&Part::Byte(b'/')),
            Some(Part::Any) | None => false,
        }
    }
}

impl Part {
    fn accepts(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => byte != b'/',
            Self::Set(ranges, is_negated) => {
                let is_in = ranges.iter().any(|&(from, to)| (from..=to).contains(&byte));
                byte != b'/' && is_in != *is_negated
            }
            Self::Run | Self::Deep => false,
        }
    }
}

/// Parses a set after its `[`; returns it with the rest of the pattern.
fn parse_set(mut rest: &[u8]) -> Result<(Part, &[u8]), String> {
    let unclosed = || "a [ has no ]".to_owned();
    let mut ranges = Vec::new();
    let is_negated = matches!(rest.first(), Some(b'!' | b'^'));
    if is_negated {
        rest = &rest[1..];
    }
    loop {
        let (&from, after) = rest.split_first().ok_or_else(unclosed)?;
        if from == b']' && !ranges.is_empty() {
            return Ok((Part::Set(ranges, is_negated), after));
        }
        if !from.is_ascii() {
            return Err("sets hold ASCII characters only".to_owned());
        }
        match after {
            [b'-', to, further @ ..] if *to != b']' => {
                if *to < from || !to.is_ascii() {
                    return Err("a range in [ ] is reversed".to_owned());
                }
                ranges.push((from, *to));
                rest = further;
            }
            _ => {
                ranges.push((from, from));
                rest = after;
            }
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_matches(pattern: &str, matching: &[&str], others: &[&str]) {
        let glob = Glob::parse(pattern).unwrap();
        assert_eq!(glob.to_string(), pattern);
        for text in matching {
            assert!(glob.matches(text.as_bytes()), "{pattern} and {text}");
        }
        for text in others {
            assert!(!glob.matches(text.as_bytes()), "{pattern} and {text}");
        }
    }

    #[test]
    fn wildcards_match_as_in_shells() {
        check_matches(
            "redis-server",
            &["redis-server"],
            &["redis", "redis-server2"],
        );
        check_matches("*", &["", "a", "a b"], &["/", "a/b"]);
        check_matches("**", &["", "a/b/c"], &[]);
        check_matches("/usr/*/x", &["/usr/bin/x"], &["/usr/x", "/usr/a/b/x"]);
        check_matches("/usr/**/x", &["/usr/bin/x", "/usr/a/b/x"], &["/usr/x"]);
        check_matches("/usr/**x", &["/usr/x", "/usr/a/bx"], &["/usr/a/b"]);
        check_matches("a*b*c", &["abc", "axbxbc"], &["abcd", "ab/c"]);
        check_matches("**/a*b/c", &["/x/ab/c", "/ab/axb/c"], &["/ab/c/d"]);
        check_matches("py?", &["py3"], &["py", "py/", "py33"]);
        check_matches("[a-c]x[!0-9]", &["axx", "cx-"], &["dxx", "ax1", "ax/"]);
        check_matches("[]a]", &["]", "a"], &["b"]);
        check_matches(r"\*\[", &["*["], &["x["]);
        check_matches("", &[""], &["a"]);
    }

    #[test]
    fn fixed_path_ends_before_the_first_wildcard() {
        for (pattern, path) in [
            ("/usr/bin/db", "/usr/bin/db"),
            ("/usr/bin/db*", "/usr/bin"),
            ("/usr/*/db", "/usr"),
            ("/usr/", "/usr/"),
            ("/*", "/"),
            ("**/db", ""),
            (r"/a\*b/c?", "/a*b"),
        ] {
            let fixed = Glob::parse(pattern).unwrap().fixed_path();
            assert_eq!(String::from_utf8(fixed).unwrap(), path, "{pattern}");
        }
    }

    #[test]
    fn damaged_patterns_are_refused() {
        for (bad, why) in [
            ("a\0b", "NUL"),
            ("[abc", "no ]"),
            ("[", "no ]"),
            ("[z-a]", "reversed"),
            ("[ä]", "ASCII"),
            ("a\\", "last \\"),
            (&"x".repeat(5000), "4096"),
        ] {
            let error = Glob::parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    /// These may take exponential time elsewhere.
    #[test]
    fn hostile_texts_take_no_time() {
        let glob = Glob::parse(&"**a*".repeat(500)).unwrap();
        assert!(!glob.matches(&b"a/".repeat(400)));
    }

    /// Matches by definition, slowly.
    fn matches_by_definition(parts: &[Part], text: &[u8]) -> bool {
        let Some((part, rest)) = parts.split_first() else {
            return text.is_empty();
        };
        let (is_run, is_deep) = (*part == Part::Run, *part == Part::Deep);
        if is_run || is_deep {
            let longest = text.iter().take_while(|&&b| is_deep || b != b'/').count();
            return (0..=longest).any(|taken| matches_by_definition(rest, &text[taken..]));
        }
        text.split_first()
            .is_some_and(|(&byte, text)| part.accepts(byte) && matches_by_definition(rest, text))
    }

    proptest! {
        #[test]
        fn matching_is_as_defined(pattern in "[ab/*?]{0,9}", text in "[ab/]{0,9}") {
            let glob = Glob::parse(&pattern).unwrap();
            prop_assert_eq!(glob.matches(text.as_bytes()), matches_by_definition(&glob.parts, text.as_bytes()), "{} {}", pattern, text);
            if glob.matches(text.as_bytes()) && text.starts_with('/') {
                prop_assert!(glob.may_begin_with_slash());
            }
        }

        #[test]
        fn any_pattern_is_parsed_or_refused(pattern in "\\PC{0,30}", text in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(glob) = Glob::parse(&pattern) {
                prop_assert_eq!(glob.matches(&text), matches_by_definition(&glob.parts, &text));
            }
        }

        #[test]
        fn text_without_wildcards_matches_itself(text in "[a-zA-Z0-9/._ -]{0,40}") {
            prop_assert!(Glob::parse(&text).unwrap().matches(text.as_bytes()));
        }
    }
}
