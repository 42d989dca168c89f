//! Files of rules: parsed, or refused with a place in the text and one line of explanation; parsed
//! rules can be matched against any process.

use pinwise_workload::rules::{Process, Rules};

/// A process as described by the text.
struct Someone<'a>(&'a [u8]);

impl Process for Someone<'_> {
    fn executable(&mut self) -> Option<&[u8]> {
        Some(self.0)
    }
    fn cgroup(&mut self) -> Option<&[u8]> {
        Some(self.0)
    }
    fn user(&mut self) -> Option<u32> {
        u32::try_from(self.0.len()).ok()
    }
    fn command_line(&mut self) -> Option<&[u8]> {
        Some(self.0)
    }
}

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut rules = match Rules::parse(text) {
        Ok(rules) => rules,
        Err(error) => {
            let lines: Vec<&str> = text.split('\n').collect();
            let line = lines[error.position.line - 1];
            assert!((1..=line.chars().count() + 1).contains(&error.position.column));
            assert!(!error.reason.is_empty() && !error.to_string().contains('\n'));
            return;
        }
    };
    assert!(!rules.rules.is_empty());
    rules
        .look_up_users(|_| Some(7))
        .expect("everybody is there");
    for line in text.lines() {
        let found = rules.first_match(&mut Someone(line.as_bytes()));
        assert!(found.is_none_or(|index| index < rules.rules.len()));
    }
}
