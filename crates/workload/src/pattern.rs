//! A regular expression that a program's output must match.
//!
//! It says whether a text matches, not what that means.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

/// Compiled size of a regular expression, bytes.
const LARGEST_REGEX: usize = 256 * 1024;

/// A regular expression; `^` and `$` are the ends of lines.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Reads a regular expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        let builder = builder.size_limit(LARGEST_REGEX).multi_line(true);
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    /// Is it in this output?
    #[must_use]
    pub fn is_in(&self, output: &[u8]) -> bool {
        self.0.is_match(&String::from_utf8_lossy(output))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_ends_and_wrong_expressions_are_refused() {
        let pattern = Pattern::parse("^done$").unwrap();
        assert!(pattern.is_in(b"begun\ndone\n"));
        assert!(!pattern.is_in(b"not done\n"));
        assert!(Pattern::parse("(").is_err());
        assert!(Pattern::parse("((a{999}){999}){999}").is_err());
    }
}
