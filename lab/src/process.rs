//! Starts, measures and compiles programs, and reads their records.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask::programs::{find, read_output, root, step, wait_with_usage};

/// The resources that a process used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceUse {
    pub(crate) wall: Duration,
    /// User and system.
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
}

/// Runs a command without input or output and measures it. The exit status
/// must be 0.
pub(crate) fn measure(command: &mut Command) -> Result<ResourceUse> {
    let started = Instant::now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    let (status, cpu, peak_bytes) = wait_with_usage(&child)?;
    let wall = started.elapsed();
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(ResourceUse {
        wall,
        cpu,
        peak_bytes,
    })
}

/// Compiles a C program of `lab/programs`.
pub(crate) fn compile(
    folder: &Path,
    source: &str,
    name: &str,
    options: &[&str],
) -> Result<PathBuf> {
    let compiler = find("gcc").or_else(|| find("cc"));
    let compiler = compiler.context("gcc is missing: install it with `apt-get install gcc`")?;
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command.arg("-o").arg(&program);
    command.arg(root().join("lab/programs").join(source));
    step(command.args(options).arg("-lm"))?;
    Ok(program)
}

/// Copies a folder of `lab/programs`.
pub(crate) fn copy_programs(name: &str, into: &Path) -> Result<()> {
    for entry in std::fs::read_dir(root().join("lab/programs").join(name))? {
        let entry = entry?;
        std::fs::copy(entry.path(), into.join(entry.file_name()))?;
    }
    Ok(())
}

/// Runs a command and parses the JSON that it prints.
pub(crate) fn read_record(command: &mut Command) -> Result<Value> {
    let text = read_output(command)?;
    serde_json::from_str(&text).with_context(|| format!("{command:?} printed no JSON"))
}

/// A line for `sh` that keeps a CPU busy.
pub(crate) const BUSY: &str = "while :; do :; done";

/// A process with its descendants, killed when dropped.
pub(crate) struct Group(Child);

impl Group {
    /// Starts a command without input or output, in a process group of its own.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    /// Starts processes that keep CPUs busy.
    pub(crate) fn start_busy(count: usize) -> Result<Vec<Self>> {
        let start = |_| Self::start(Command::new("sh").args(["-c", BUSY]));
        (0..count).map(start).collect()
    }
}

impl Drop for Group {
    #[expect(unsafe_code, reason = "std signals no process group")]
    fn drop(&mut self) {
        if let Ok(group) = libc::pid_t::try_from(self.0.id()) {
            // SAFETY: kill reads no memory of ours.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}
