//! Starts programs, and finds or installs them.

use std::cell::RefCell;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::timing::Seconds;

/// The root of the project.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The folder of built files.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, in the project's root.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Cargo sets these for xtask. The build script of ring watches them and would be rerun, with
    // everything that depends on it, in turn with a plain `cargo build`.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Prints a command, runs it, and fails if it fails.
pub fn step(command: &mut Command) -> Result<()> {
    let shown = announce(command);
    let child = command
        .spawn()
        .with_context(|| format!("{shown} cannot be started"))?;
    let status = wait(&child)?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// The resources that a step used, and its tests.
#[derive(Default)]
pub(crate) struct Usage {
    /// CPU time of all started programs and their children.
    pub(crate) cpu: Duration,
    /// The number of compiled crates, with the same crate for another purpose.
    pub(crate) crates: usize,
    /// The time of each test.
    pub(crate) tests: Seconds,
    /// Tests that failed beside others and passed alone.
    pub(crate) unstable: Vec<String>,
}

impl Usage {
    /// Adds the usage of another step.
    pub(crate) fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.crates += other.crates;
        self.tests.extend(other.tests);
        self.unstable.extend(other.unstable);
    }
}

thread_local! {
    /// The usage of the programs that this thread has waited for.
    static USAGE: RefCell<Usage> = RefCell::default();
}

/// Runs something, and returns the usage of the programs that it waited for.
pub(crate) fn measure_usage<T>(run: impl FnOnce() -> T) -> (T, Usage) {
    let before = USAGE.take();
    let value = run();
    (value, USAGE.replace(before))
}

/// Adds to the usage of this thread.
pub(crate) fn add_usage(used: Usage) {
    USAGE.with_borrow_mut(|sum| sum.add(used));
}

/// Waits for a program, and adds its usage.
pub(crate) fn wait(child: &Child) -> Result<ExitStatus> {
    let (status, cpu, _) = wait_with_usage(child)?;
    add_usage(Usage {
        cpu,
        ..Usage::default()
    });
    Ok(status)
}

/// Waits for a program; also returns its CPU time and its peak memory, bytes.
pub fn wait_with_usage(child: &Child) -> Result<(ExitStatus, Duration, u64)> {
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: rusage is plain integers, for which zeros are valid.
    #[expect(unsafe_code, reason = "std does not report the usage of a child")]
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are valid for the call.
        #[expect(unsafe_code, reason = "std does not report the usage of a child")]
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited == pid {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("waiting for a program");
        }
    }
    let to_duration = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
        seconds + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    Ok((
        ExitStatus::from_raw(status),
        to_duration(usage.ru_utime) + to_duration(usage.ru_stime),
        usage.ru_maxrss.unsigned_abs() * 1024,
    ))
}

/// Prints a command and returns its text.
pub(crate) fn announce(command: &Command) -> String {
    let shown: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shown = shown.join(" ");
    let shown = shown.rsplit_once("/cargo ").map_or(shown.as_str(), |s| s.1);
    eprintln!("xtask: {shown}");
    shown.to_owned()
}

/// Standard output of a command that must succeed.
pub fn read_output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    if !output.status.success() {
        bail!(
            "{} failed ({})",
            command.get_program().display(),
            output.status
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A field that all packages of the workspace share, such as `version`.
pub(crate) fn read_workspace_field(name: &str) -> Result<String> {
    let path = root().join("Cargo.toml");
    let manifest = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (_, shared) = manifest
        .split_once("[workspace.package]")
        .context("Cargo.toml has no [workspace.package]")?;
    let prefix = format!("{name} = ");
    let value = shared.lines().find_map(|line| line.strip_prefix(&prefix));
    let value = value.with_context(|| format!("Cargo.toml has no {name}"))?;
    Ok(value.trim_matches('"').to_owned())
}

/// Builds the release binary and returns its path.
pub fn release_binary() -> Result<PathBuf> {
    step(&mut cargo(&["build", "--release", "--locked"]))?;
    Ok(target().join("release/pinwise"))
}

/// Finds a program in `PATH`, or by its whole path.
pub fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Finds a program, or installs its Debian packages if permitted; the error names the packages.
pub fn find_or_install(program: &str, package: &str) -> Result<PathBuf> {
    if let Some(path) = find(program) {
        return Ok(path);
    }
    let advice =
        format!("{program} is missing: install it with `apt-get install {package}` as root");
    // SAFETY: geteuid has no preconditions.
    #[expect(unsafe_code, reason = "one system call that cannot fail")]
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root || find("apt-get").is_none() {
        bail!(advice);
    }
    eprintln!("xtask: installing {package}");
    let apt = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()
    };
    apt(&["-qq", "update"])?;
    let mut install = vec!["-qq", "install", "-y", "--no-install-recommends"];
    install.extend(package.split(' '));
    apt(&install)?;
    find(program).context(advice)
}
