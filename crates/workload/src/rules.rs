//! Rules for processes: which CPUs and which nice value they get.
//!
//! A rule has patterns, and says what is done with processes that match all of them; the first
//! matching rule decides. Properties of a process come from [`Process`] one at a time, so that its
//! implementation reads only those that the rules need. Placements are not parsed here.

mod glob;
mod parse;
mod warnings;

pub use glob::Glob;

use regex_lite::Regex;

use crate::toml_error::{Position, TomlError};

/// A value with its position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithPosition<T> {
    /// The value.
    pub value: T,
    /// Position in the file.
    pub position: Position,
}

/// A user, as a rule names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// By name, to be looked up on the system.
    Name(String),
    /// By number.
    Id(u32),
}

/// How a process's executable is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executable {
    /// By the name of the file.
    Name(Glob),
    /// By the whole path.
    Path(Glob),
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name; no two rules have the same.
    pub name: WithPosition<String>,
    pub(crate) executable: Option<Executable>,
    pub(crate) cgroup: Option<Glob>,
    pub(crate) command_line: Option<Regex>,
    /// The effective user, as written.
    pub user: Option<WithPosition<User>>,
    /// The effective user's number, once it is known.
    pub user_id: Option<u32>,
    /// The CPUs for the process's threads: a placement, not parsed yet.
    pub place: Option<WithPosition<String>>,
    /// The nice value of its threads.
    pub nice: Option<WithPosition<i32>>,
    /// The patterns as written, each `KEY = "PATTERN"`.
    pub patterns: Vec<String>,
}

/// A file of rules, in its order.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Oddities that do not keep the rules from being applied.
    pub warnings: Vec<TomlError>,
}

/// What rules ask about a process; `None` if unknown. Each property is requested only if a rule
/// needs it.
pub trait Process {
    /// The path of its executable.
    fn executable(&mut self) -> Option<&[u8]>;
    /// Its cgroup's path below the mount, from `/`.
    fn cgroup(&mut self) -> Option<&[u8]>;
    /// Its effective user.
    fn user(&mut self) -> Option<u32>;
    /// Its arguments, joined by blanks.
    fn command_line(&mut self) -> Option<&[u8]>;
}

impl Rules {
    /// Parses a file of rules.
    ///
    /// # Errors
    /// The first mistake, with its line and column; then no rule is to be
    /// applied.
    pub fn parse(text: &str) -> Result<Self, TomlError> {
        parse::parse(text)
    }

    /// The first rule that a process matches, by its index.
    pub fn first_match(&self, process: &mut impl Process) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches(process))
    }

    /// Does any rule depend on the user? If so, a process that changes its user may match another
    /// rule.
    #[must_use]
    pub fn need_users(&self) -> bool {
        self.rules.iter().any(|rule| rule.user.is_some())
    }

    /// Looks up the numbers of named users with `find`.
    ///
    /// # Errors
    /// The first name without a user: such a rule would never match.
    pub fn look_up_users(
        &mut self,
        mut find: impl FnMut(&str) -> Option<u32>,
    ) -> Result<(), TomlError> {
        for rule in &mut self.rules {
            let Some(user) = &rule.user else { continue };
            rule.user_id = match &user.value {
                User::Id(id) => Some(*id),
                User::Name(name) => Some(find(name).ok_or_else(|| {
                    let reason =
                        format!("user: no such user here: '{name}', so the rule would never match");
                    TomlError::new(user.position, reason)
                })?),
            };
        }
        Ok(())
    }
}

impl Rule {
    /// Does a process match all patterns? Cheap ones are checked first: a path takes one system
    /// call, a command line must be searched.
    fn matches(&self, process: &mut impl Process) -> bool {
        if let Some(pattern) = &self.executable {
            let is_match = process.executable().is_some_and(|path| match pattern {
                Executable::Path(glob) => glob.matches(path),
                Executable::Name(glob) => glob.matches(file_name(path)),
            });
            if !is_match {
                return false;
            }
        }
        if let Some(glob) = &self.cgroup
            && !process.cgroup().is_some_and(|path| glob.matches(path))
        {
            return false;
        }
        if self.user.is_some() && (self.user_id.is_none() || process.user() != self.user_id) {
            return false;
        }
        let Some(regex) = &self.command_line else {
            return true;
        };
        let line = process.command_line();
        line.is_some_and(|line| regex.is_match(&String::from_utf8_lossy(line)))
    }
}

/// The last part of a path, without the suffix that the kernel adds if the executable was replaced
/// (by an update, for example).
fn file_name(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let slash = path.iter().rposition(|&byte| byte == b'/');
    slash.map_or(path, |slash| &path[slash + 1..])
}

#[cfg(test)]
mod tests;
