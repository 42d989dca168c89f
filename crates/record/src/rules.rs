//! Rules as they apply to a machine, and the changes that they made. These records are printed and
//! logged, never stored.

use serde::{Deserialize, Serialize};

/// A file of rules with the processes that match now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.rules/1")]
pub struct RulesRecord {
    /// The file.
    pub file: String,
    /// The rules, in its order.
    pub rules: Vec<RuleRecord>,
    /// Warnings about the file, each with line and column.
    pub warnings: Vec<String>,
}

/// A rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleRecord {
    /// Its name.
    pub name: String,
    /// Line of its name, from 1.
    pub line: usize,
    /// Its patterns, each `KEY = "PATTERN"`.
    pub patterns: Vec<String>,
    /// The placement; `null` if processes are not placed.
    pub place: Option<String>,
    /// The CPUs of the placement where no cpuset forbids any, as a list; `null` if processes are
    /// not placed.
    pub cpus: Option<String>,
    /// The nice value; `null` if it is not changed.
    pub nice: Option<i32>,
    /// Processes that match this rule and no earlier one.
    pub processes: Vec<RuleProcess>,
}

/// A process that a rule concerns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleProcess {
    /// Its process id.
    pub process: i32,
    /// Its name.
    pub name: String,
    /// CPUs of its first thread, as a list; `null` if it has ended.
    pub cpus: Option<String>,
}

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuleChangeKind {
    /// It was changed according to a rule.
    Placed,
    /// What it had before was restored.
    Released,
    /// It was not changed although a rule matches.
    Refused,
}

/// A change that rules made or refused: a line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.rule-change/1")]
pub struct RuleChange {
    /// When, RFC 3339 in UTC; empty until it is written.
    pub time: String,
    /// What happened.
    pub change: RuleChangeKind,
    /// Was nothing changed because of `--dry-run`?
    pub dry_run: bool,
    /// The rule; `null` if no rule applies any more.
    pub rule: Option<String>,
    /// The process.
    pub process: i32,
    /// The process's name; `null` if it was not read.
    pub name: Option<String>,
    /// Threads that were changed.
    pub threads: usize,
    /// Threads that were not fully changed, because another program had set their CPUs or nice
    /// value.
    pub threads_left: usize,
    /// CPUs before, as a list; `null` if they were not changed.
    pub from: Option<String>,
    /// CPUs now.
    pub to: Option<String>,
    /// The nice value now; `null` if it was not changed.
    pub nice: Option<i32>,
    /// Why it was refused or released.
    pub why: Option<String>,
}
