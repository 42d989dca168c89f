//! Tests: built once, with the lints, and run side by side.
//!
//! `cargo clippy` compiles without generating code, and `cargo test` compiles everything again.
//! Clippy's driver is the whole compiler, however: as the compiler of the workspace it lints and
//! builds the tests. `cargo test` would run one program after the other and report no times, so the
//! programs are started here.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::programs::{Usage, add_usage, announce, cargo, read_output, step, wait};
use crate::timing;

/// The extent of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The checks that every change must pass.
    Change,
    /// Long ones, too.
    All,
}

/// Builds of a check are used once: without incremental compilation and debug information their
/// folder has 4 GB instead of 10.
const LEAN: [(&str, &str); 2] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "false"),
];

/// The arguments that `cargo clippy -- -D warnings` passes to the driver.
const DENIED: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The tests of the command, in one program.
const WHOLE: &str = "it";

/// Modules of it that start emulated machines or a cluster, which takes minutes of mostly waiting.
/// Recordings of the machines are always tested.
const APART: [&str; 7] = [
    "devices_vm::",
    "fleet_slurm::",
    "limits_vm::",
    "memory_vm::",
    "restore_vm::",
    "sched_ext_vm::",
    "trace_vm::",
];

/// A module that samples programs until it has enough samples, which takes minutes beside others.
/// Started first, in a program of its own, it ends before the rest.
const LONG: &str = "spin_attach::";

/// Tests of the command at once per CPU: half of the time they wait for what they started.
const AT_ONCE: usize = 3;

/// Up to this many failed tests of a program are run once more, one by one. More of them fail
/// together only by a mistake in the code.
const RETRIED: usize = 2;

/// Longer tests are left to the whole check, s.
const QUICK_S: f64 = 1.0;

/// With the settings of a build that is used once.
pub(crate) fn without_debug_info(mut command: Command) -> Command {
    command.envs(LEAN);
    command
}

/// The same, with the linting compiler.
fn prepare_linter(command: Command) -> Result<Command> {
    let sysroot = read_output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    if !driver.exists() {
        bail!(
            "there is no {}: rustup component add clippy",
            driver.display()
        );
    }
    let mut command = without_debug_info(command);
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    command.env("CLIPPY_ARGS", DENIED);
    Ok(command)
}

/// Test programs, and the command that they test.
#[derive(Debug, Default)]
pub(crate) struct Tests {
    programs: Vec<Program>,
    command: Option<PathBuf>,
}

/// A test program.
#[derive(Debug, Clone)]
struct Program {
    package: String,
    name: String,
    /// The package's folder, in which it is started.
    folder: PathBuf,
    path: PathBuf,
}

impl Tests {
    /// Lints and compiles everything: for fewer packages cargo would unify other features, and compile
    /// shared packages again.
    pub(crate) fn build() -> Result<Self> {
        let mut tests = Self::default();
        let mut command = build_command()?;
        let shown = announce(&command);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut crates = 0;
        if let Some(lines) = child.stdout.take() {
            for line in BufReader::new(lines).lines() {
                let message: Value = serde_json::from_str(&line?)?;
                crates += usize::from(is_compiled(&message));
                tests.take(&message);
            }
        }
        add_usage(Usage {
            crates,
            ..Usage::default()
        });
        let status = wait(&child)?;
        if !status.success() {
            bail!("{shown} failed ({status})");
        }
        Ok(tests)
    }

    /// Adds the program of a message of cargo.
    fn take(&mut self, message: &Value) -> Option<()> {
        let path = PathBuf::from(message["executable"].as_str()?);
        let target = &message["target"];
        let kind = target["kind"][0].as_str()?;
        let name = target["name"].as_str()?;
        let is_test = message["profile"]["test"].as_bool()?;
        if is_test && matches!(kind, "lib" | "bin" | "test") {
            let manifest = Path::new(message["manifest_path"].as_str()?);
            let package = message["package_id"].as_str()?;
            self.programs.push(Program {
                package: package_name(package).to_owned(),
                name: name.to_owned(),
                folder: manifest.parent()?.to_owned(),
                path,
            });
        } else if name == "pinwise" && kind == "bin" {
            self.command = Some(path);
        }
        Some(())
    }

    /// Selects the programs of some packages.
    pub(crate) fn select_packages(&self, packages: &BTreeSet<String>) -> Self {
        let programs = self.programs.iter();
        let programs = programs.filter(|program| packages.contains(&program.package));
        Self {
            programs: programs.cloned().collect(),
            command: self.command.clone(),
        }
    }

    /// The command that was built.
    pub(crate) fn command(&self) -> Option<&Path> {
        self.command.as_deref()
    }

    /// Runs the unit tests, one program after the other.
    pub(crate) fn run_units(&self, extent: Extent) -> Result<()> {
        let units = self.programs.iter().filter(|program| program.name != WHOLE);
        run_all(units.map(|program| (program, Vec::new())), extent)
    }

    /// Runs the slow tests of the command.
    pub(crate) fn run_long(&self, extent: Extent) -> Result<()> {
        let whole = self.programs.iter().filter(|program| program.name == WHOLE);
        run_all(
            whole.map(|program| (program, vec![LONG.to_owned()])),
            extent,
        )
    }

    /// Runs the others, except for those that start machines.
    pub(crate) fn run_others(&self, extent: Extent) -> Result<()> {
        let mut arguments = test_thread_arguments();
        for module in APART.into_iter().chain([LONG]) {
            arguments.extend(["--skip".to_owned(), module.to_owned()]);
        }
        let whole = self.programs.iter().filter(|program| program.name == WHOLE);
        run_all(whole.map(|program| (program, arguments.clone())), extent)
    }

    /// Runs tests of the command that were quick in the last complete run, and new ones.
    pub(crate) fn run_quick(&self) -> Result<()> {
        let took = timing::read_tests();
        for program in self.programs.iter().filter(|program| program.name == WHOLE) {
            let list =
                read_output(Command::new(&program.path).args(["--list", "--format", "terse"]))?;
            let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
            let names = names.filter(|name| !APART.iter().any(|module| name.starts_with(module)));
            let (quick, slow): (Vec<&str>, Vec<&str>) = names.partition(|name| {
                let seconds = took.get(&format!("{WHOLE} {name}"));
                seconds.is_none_or(|&seconds| seconds <= QUICK_S)
            });
            if !slow.is_empty() {
                eprintln!(
                    "not run: {} tests of the command that take longer than {QUICK_S} s: \
                     `cargo xtask check` runs them",
                    slow.len()
                );
            }
            let mut arguments = test_thread_arguments();
            arguments.push("--exact".to_owned());
            arguments.extend(quick.into_iter().map(ToOwned::to_owned));
            run(program, &arguments, Extent::Change)?;
        }
        Ok(())
    }

    /// Runs tests of the command that start machines or a cluster.
    pub(crate) fn run_apart(&self) -> Result<()> {
        let modules: Vec<String> = APART.map(ToOwned::to_owned).to_vec();
        let whole = self.programs.iter().filter(|program| program.name == WHOLE);
        run_all(whole.map(|program| (program, modules.clone())), Extent::All)
    }
}

/// The command that compiles tests and lists the resulting programs.
fn build_command() -> Result<Command> {
    let mut command = prepare_linter(cargo(&["test", "--no-run", "--locked", "--workspace"]))?;
    command.args(["--quiet", "--message-format", "json-render-diagnostics"]);
    Ok(command)
}

/// The name of the package in cargo's identifier, `path+file:///x/stats#pinwise-stats@0.1.0`, or
/// `path+file:///x/xtask#0.0.0` if the folder has the same name.
fn package_name(id: &str) -> &str {
    let (folder, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => folder.rsplit_once('/').map_or(folder, |(_, name)| name),
    }
}

/// Whether a crate was compiled, not only found.
fn is_compiled(message: &Value) -> bool {
    message["reason"] == "compiler-artifact" && message["fresh"] == false
}

/// The arguments for the number of tests of the command at once.
fn test_thread_arguments() -> Vec<String> {
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    vec!["--test-threads".to_owned(), (AT_ONCE * lanes).to_string()]
}

/// Runs test programs in turn, also after a failed one.
fn run_all<'a>(
    programs: impl Iterator<Item = (&'a Program, Vec<String>)>,
    extent: Extent,
) -> Result<()> {
    let failed: Vec<String> = programs
        .filter_map(|(program, arguments)| run(program, &arguments, extent).err())
        .map(|error| format!("{error:#}"))
        .collect();
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

/// Runs a test program. A few failed tests are run again alone: if they pass then, they depend on
/// other programs, which is a mistake of the test and reported below the table, but no reason to
/// refuse a change.
fn run(program: &Program, arguments: &[String], extent: Extent) -> Result<()> {
    let failed = list_failed(program, arguments, extent)?;
    if failed.is_empty() {
        return Ok(());
    }
    if failed.len() <= RETRIED {
        let alone = ["--test-threads", "1", "--exact"].map(ToOwned::to_owned);
        let again = [&alone[..], &failed].concat();
        if list_failed(program, &again, extent)?.is_empty() {
            let names = failed.iter().map(|name| format!("{} {name}", program.name));
            add_usage(Usage {
                unstable: names.collect(),
                ..Usage::default()
            });
            return Ok(());
        }
    }
    bail!("{} failed:\n  {}", program.name, failed.join("\n  "));
}

/// Runs some of its tests once, and lists the failed ones.
fn list_failed(program: &Program, arguments: &[String], extent: Extent) -> Result<Vec<String>> {
    let mut command = prepare_linter(Command::new(&program.path))?;
    command
        .current_dir(&program.folder)
        .args(arguments)
        // Only an unstable option reports how long a test took.
        .args(["-Z", "unstable-options", "--report-time"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("INSTA_UPDATE", "no");
    if extent == Extent::All {
        command.env("PINWISE_REPLAYS", "all");
    }
    eprintln!("xtask: {}", program.name);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", program.path.display()))?;
    let mut usage = Usage::default();
    let mut failed = Vec::new();
    if let Some(lines) = child.stdout.take() {
        for line in BufReader::new(lines).lines() {
            let line = line?;
            match Outcome::parse(&line) {
                Some(outcome) => {
                    let name = format!("{} {}", program.name, outcome.name);
                    usage.tests.insert(name, outcome.seconds);
                    if outcome.has_failed {
                        println!("{line}");
                        failed.push(outcome.name.to_owned());
                    }
                }
                None if line.is_empty() => {}
                None => println!("{line}"),
            }
        }
    }
    add_usage(usage);
    let status = wait(&child)?;
    if !status.success() && failed.is_empty() {
        bail!("{} failed ({status})", program.name);
    }
    Ok(failed)
}

/// libtest's report on a test.
#[derive(Debug, PartialEq)]
struct Outcome<'a> {
    name: &'a str,
    seconds: f64,
    has_failed: bool,
}

impl<'a> Outcome<'a> {
    /// A line such as `test a::b ... ok <1.5s>`.
    fn parse(line: &'a str) -> Option<Self> {
        let (name, rest) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let (outcome, time) = rest.rsplit_once(" <")?;
        let seconds = time.strip_suffix("s>")?.parse().ok()?;
        Some(Self {
            name,
            seconds,
            has_failed: outcome != "ok",
        })
    }
}

/// Runs examples in the documentation of the code.
pub(crate) fn run_examples() -> Result<()> {
    let examples = cargo(&["test", "--workspace", "--doc", "--locked", "--quiet"]);
    step(&mut prepare_linter(examples)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_of_tests_are_read() {
        let outcome = |name, seconds, has_failed| {
            Some(Outcome {
                name,
                seconds,
                has_failed,
            })
        };
        assert_eq!(
            Outcome::parse("test a::b ... ok <1.5s>"),
            outcome("a::b", 1.5, false)
        );
        assert_eq!(
            Outcome::parse("test a - should panic ... FAILED <0.001s>"),
            outcome("a - should panic", 0.001, true)
        );
        assert_eq!(Outcome::parse("test a ... ignored, by others"), None);
        assert_eq!(Outcome::parse("test result: ok. 3 passed; 0 failed"), None);
        assert_eq!(Outcome::parse("running 3 tests"), None);
    }

    #[test]
    fn programs_and_the_command_are_found() {
        let message = |kind: &str, is_test: bool, fresh: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": "/p/Cargo.toml",
                "package_id": "path+file:///p#pinwise@0.1.0",
                "target": {"kind": [kind], "name": "pinwise"},
                "profile": {"test": is_test}, "executable": "/t/x", "fresh": fresh,
            })
        };
        let mut tests = Tests::default();
        for (kind, is_test) in [("lib", true), ("bench", true), ("bin", false)] {
            tests.take(&message(kind, is_test, true));
        }
        assert_eq!(tests.command(), Some(Path::new("/t/x")));
        assert_eq!(tests.programs.len(), 1);
        assert_eq!(tests.programs[0].folder, Path::new("/p"));
        assert_eq!(tests.programs[0].package, "pinwise");
        assert_eq!(package_name("path+file:///a/xtask#0.0.0"), "xtask");
        assert!(is_compiled(&message("lib", true, false)));
        assert!(!is_compiled(&message("lib", true, true)));
    }
}
