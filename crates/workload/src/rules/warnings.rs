//! Warns of rules that may give CPUs or priority to processes for which they are not meant.
//!
//! Rules are enforced by root, and every user chooses which programs to run: any user can profit
//! from a rule that matches any user's processes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::{Executable, Rule, Rules, WithPosition};
use crate::toml_error::TomlError;

impl Rules {
    /// Rules that may match processes for which they are not meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<TomlError> {
        let rules = self.rules.iter().filter(|rule| rule.changes_processes());
        let for_any_user = rules.filter(|rule| rule.user.is_none());
        for_any_user
            .flat_map(|rule| [warn_of_raised_priority(rule), warn_of_name_only(rule)])
            .flatten()
            .collect()
    }

    /// The files of executables that rules name, if they contain no pattern: a file, or the folder
    /// below which everything may match.
    #[must_use]
    pub fn executable_paths(&self) -> Vec<(&Rule, PathBuf)> {
        let rules = self.rules.iter().filter(|rule| rule.changes_processes());
        rules
            .filter_map(|rule| match rule.executable.as_ref()? {
                Executable::Path(glob) => {
                    Some((rule, OsString::from_vec(glob.fixed_path()).into()))
                }
                Executable::Name(_) => None,
            })
            .collect()
    }
}

impl Rule {
    /// Does the rule change anything about its processes?
    fn changes_processes(&self) -> bool {
        let is_placed = |place: &WithPosition<String>| place.value != "os-default";
        self.nice.is_some() || self.place.as_ref().is_some_and(is_placed)
    }
}

fn warn_of_raised_priority(rule: &Rule) -> Option<TomlError> {
    let nice = rule.nice.as_ref().filter(|nice| nice.value < 0)?;
    Some(TomlError::new(
        nice.position,
        format!(
            "nice: rule '{}' without user raises the priority of any user's matching process, including code loaded by LD_PRELOAD; add user",
            rule.name.value
        ),
    ))
}

fn warn_of_name_only(rule: &Rule) -> Option<TomlError> {
    let Some(Executable::Name(glob)) = &rule.executable else {
        return None;
    };
    let name = glob.to_string();
    (!name.trim_matches('*').is_empty()).then(|| {
        TomlError::new(
            rule.name.position,
            format!(
                "rule '{}': executable = \"{name}\" matches any file of that name, in any \
             user's folder; write its path, or add user",
                rule.name.value
            ),
        )
    })
}
