//! `--bisect`: tells the user how to go on if skipped commits keep `git bisect` from finding one
//! bad commit. git itself only lists the commits that are left.

use std::collections::BTreeSet;
use std::time::Duration;

use super::builds::{SHORT_COMMIT, run_git};
use crate::cli::Exit;
use crate::cli::args::GateArgs;
use pinwise_format::{count, shell};
use pinwise_record::remove_options;

/// The marks that `git bisect` has set so far.
#[derive(Debug, Default)]
struct Marks {
    bad: String,
    good: Vec<String>,
    skipped: BTreeSet<String>,
}

impl Marks {
    /// Parses lines with a commit and the name of the ref that marks it.
    fn parse(refs: &str) -> Self {
        let mut marks = Self::default();
        for (commit, name) in refs.lines().filter_map(|line| line.split_once(' ')) {
            let name = name.trim_start_matches("refs/bisect/");
            match name.split('-').next() {
                Some("bad") => commit.clone_into(&mut marks.bad),
                Some("good") => marks.good.push(commit.to_owned()),
                Some("skip") => marks.skipped.extend([commit.to_owned()]),
                _ => {}
            }
        }
        marks
    }

    /// Adds the mark that the gate's exit gives to `commit`.
    fn mark(&mut self, commit: &str, exit: Exit) {
        match exit {
            Exit::Done => self.good.push(commit.to_owned()),
            Exit::GateFailed => commit.clone_into(&mut self.bad),
            Exit::Skip => self.skipped.extend([commit.to_owned()]),
            _ => {}
        }
    }

    /// The skipped commits among `candidates` (commits that may be the first bad one, newest
    /// first); empty while another candidate can be tried.
    fn find_undecided(&self, candidates: &[String]) -> Vec<String> {
        let others = || candidates.iter().filter(|commit| **commit != self.bad);
        if others().all(|commit| self.skipped.contains(commit)) {
            others().cloned().collect()
        } else {
            Vec::new()
        }
    }
}

/// Describes the end of the bisection in this folder, if this exit ends it before one commit is
/// found.
pub(super) fn describe_end(
    argv: &[String],
    args: &GateArgs,
    budget: Duration,
    exit: Exit,
) -> Option<String> {
    let format = "--format=%(objectname) %(refname)";
    let refs = run_git(None, &["for-each-ref", format, "refs/bisect/"]).ok()?;
    let mut marks = Marks::parse(&refs);
    marks.mark(&run_git(None, &["rev-parse", "HEAD"]).ok()?, exit);
    if marks.bad.is_empty() || marks.good.is_empty() {
        return None;
    }
    let mut words = vec!["rev-list", &marks.bad, "--not"];
    words.extend(marks.good.iter().map(String::as_str));
    let candidates = run_git(None, &words).ok()?;
    let candidates: Vec<String> = candidates.lines().map(str::to_owned).collect();
    let open = marks.find_undecided(&candidates);
    let middle = open.get(open.len() / 2)?;
    let command = make_deciding_command(argv, args, middle, budget)?;
    Some(describe(&marks.bad, &open, &command))
}

fn describe(bad: &str, open: &[String], command: &str) -> String {
    let short = |commit: &String| commit.get(..SHORT_COMMIT).unwrap_or(commit).to_owned();
    let names: Vec<String> = open.iter().map(short).collect();
    format!(
        "The bisection ends between {}: {} is bad, and {} before it could not be built or judged. To see why, with more time: {command}",
        count(open.len() + 1, "commit"),
        short(&bad.to_owned()),
        names.join(", ")
    )
}

/// The command that repeats this gate for a skipped commit with twice the time.
fn make_deciding_command(
    argv: &[String],
    args: &GateArgs,
    commit: &str,
    budget: Duration,
) -> Option<String> {
    let mut words = remove_options(argv, &["--budget"]);
    words.retain(|word| word != "--bisect");
    let gate = words.iter().position(|word| word == "gate")?;
    let find_from = |start: usize, argument: &String| {
        let offset = words.iter().skip(start).position(|word| word == argument)?;
        Some(start + offset)
    };
    let head = find_from(find_from(gate + 1, &args.base)? + 1, &args.head)?;
    commit.get(..SHORT_COMMIT)?.clone_into(&mut words[head]);
    let minutes = (2.0 * budget.as_secs_f64() / 60.0).ceil();
    words.extend(["--budget".to_owned(), format!("{minutes:.0}m")]);
    Some(shell::line(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The undecided commits of a history `a` to `e`, of which `e` is bad, `a` good and `c`
    /// skipped, after more exits.
    fn find_undecided_after(more: &[(&str, Exit)]) -> Vec<String> {
        let mut marks =
            Marks::parse("e refs/bisect/bad\na refs/bisect/good-a\nc refs/bisect/skip-c\n");
        for (commit, exit) in more {
            marks.mark(commit, *exit);
        }
        let newest_first = ["e", "d", "c", "b", "a"].map(str::to_owned);
        let from = newest_first.iter().position(|c| *c == marks.bad).unwrap();
        let good = |commit: &String| marks.good.contains(commit);
        let to = newest_first.iter().position(good).unwrap();
        marks.find_undecided(&newest_first[from..to])
    }

    #[test]
    fn a_bisection_ends_where_only_skipped_commits_are_left() {
        assert_eq!(find_undecided_after(&[]), [""; 0]);
        assert_eq!(find_undecided_after(&[("d", Exit::Skip)]), [""; 0]);
        assert_eq!(
            find_undecided_after(&[("d", Exit::Skip), ("b", Exit::Done)]),
            ["d", "c"]
        );
        assert_eq!(
            find_undecided_after(&[("d", Exit::GateFailed), ("b", Exit::Done)]),
            ["c"]
        );
        // One commit was found.
        assert_eq!(find_undecided_after(&[("d", Exit::Done)]), [""; 0]);
    }

    #[test]
    fn the_end_of_a_bisection_names_the_command_that_decides() {
        let open = ["0123456789abcdef".to_owned()];
        assert_eq!(
            describe("fedcba9876543210", &open, "pinwise gate a b"),
            "The bisection ends between 2 commits: fedcba987654 is bad, and 0123456789ab before it \
             could not be built or judged. To see why, with more time: pinwise gate a b"
        );
    }
}
