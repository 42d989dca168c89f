//! A regular expression that a program's output must match.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

/// Limits the compiled size of a regular expression, bytes.
const MAX_REGEX_BYTES: usize = 256 * 1024;

/// A regular expression; `^` and `$` are the ends of lines.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    /// The text says what is wrong with the expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        let builder = builder.size_limit(MAX_REGEX_BYTES).multi_line(true);
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    /// Does the output match?
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
    fn anchors_match_at_lines_and_bad_expressions_are_refused() {
        let pattern = Pattern::parse("^done$").unwrap();
        assert!(pattern.is_in(b"begun\ndone\n"));
        assert!(!pattern.is_in(b"not done\n"));
        assert!(Pattern::parse("(").is_err());
        assert!(Pattern::parse("((a{999}){999}){999}").is_err());
    }
}
