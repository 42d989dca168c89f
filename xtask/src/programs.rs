//! Starting programs, and finding or installing those that are missing.

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
    // Cargo sets them for xtask; the build script of ring watches them, and would have everything
    // above it recompiled beside a plain `cargo build`.
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

/// What a step took of the machine.
#[derive(Default)]
pub(crate) struct Used {
    /// CPU time of the programs that were started, and of theirs.
    pub(crate) cpu: Duration,
    /// How many crates were compiled, the same one for another purpose again.
    pub(crate) crates: usize,
    /// What each test took.
    pub(crate) tests: Seconds,
    /// Tests that failed beside others and passed alone.
    pub(crate) unstable: Vec<String>,
}

impl Used {
    /// Adds what happened beside it.
    pub(crate) fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.crates += other.crates;
        self.tests.extend(other.tests);
        self.unstable.extend(other.unstable);
    }
}

thread_local! {
    /// What the programs used that this thread has waited for.
    static USED: RefCell<Used> = RefCell::default();
}

/// Runs something, and says what the programs used that it waited for.
pub(crate) fn used_by<T>(run: impl FnOnce() -> T) -> (T, Used) {
    let before = USED.take();
    let value = run();
    (value, USED.replace(before))
}

/// Notes what was used on behalf of this thread.
pub(crate) fn note(used: Used) {
    USED.with_borrow_mut(|sum| sum.add(used));
}

/// Waits for a program, and notes what it used.
pub(crate) fn wait(child: &Child) -> Result<ExitStatus> {
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all zeros is a value of it, which the call below replaces.
    #[expect(unsafe_code, reason = "std does not say what a child used")]
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values of this function.
        #[expect(unsafe_code, reason = "std does not say what a child used")]
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited == pid {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("waiting for a program");
        }
    }
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
        seconds + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    note(Used {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        ..Used::default()
    });
    Ok(ExitStatus::from_raw(status))
}

/// Says what is run.
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

/// Builds the release binary and returns its path.
pub fn release_binary() -> Result<PathBuf> {
    step(&mut cargo(&["build", "--release", "--locked"]))?;
    Ok(target().join("release/pinwise"))
}

/// Is a program in `PATH`, or is its whole path a file?
pub fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Finds a program, or installs its Debian packages if that is permitted; otherwise says what to
/// install.
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
