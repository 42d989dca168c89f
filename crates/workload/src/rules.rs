//! Rules: which processes belong where.
//!
//! A rule has patterns and what is done with processes that match all of them; the first rule that
//! matches decides. Text in, values out: properties of a process come through [`Process`], piece by
//! piece, so that its implementation reads only what the rules ask for. What a placement means is
//! decided elsewhere.

mod glob;
mod parse;
mod warnings;

pub use glob::Glob;

use regex_lite::Regex;

use crate::toml_error::{Position, TomlError};

/// A value with its place in the file.
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
    /// Reads a file of rules.
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

    /// Does any rule ask for the user? Then it matters when a process changes
    /// its own.
    #[must_use]
    pub fn ask_for_users(&self) -> bool {
        self.rules.iter().any(|rule| rule.user.is_some())
    }

    /// Gives users their numbers; `find` looks a name up.
    ///
    /// # Errors
    /// The first name without a user: such a rule would never match.
    pub fn look_users_up(
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
    /// Cheap checks first: a path is one system call, a command line must be searched.
    fn matches(&self, process: &mut impl Process) -> bool {
        if let Some(wanted) = &self.executable {
            let is_this = process.executable().is_some_and(|path| match wanted {
                Executable::Path(glob) => glob.matches(path),
                Executable::Name(glob) => glob.matches(file_name(path)),
            });
            if !is_this {
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

/// The last part of a path. The kernel's suffix for an executable that was replaced meanwhile, as
/// updates do, is not part of its name.
fn file_name(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let slash = path.iter().rposition(|&byte| byte == b'/');
    slash.map_or(path, |at| &path[at + 1..])
}

#[cfg(test)]
mod tests;
