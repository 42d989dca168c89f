//! Starting programs, and finding or installing those that are missing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where built files go.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, in the project's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Cargo sets them for xtask; the build script of ring watches them, and
    // would have everything above it compiled anew beside a plain `cargo build`.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Says what is run, runs it, and fails where it fails.
pub(crate) fn step(command: &mut Command) -> Result<()> {
    let shown = announce(command);
    let status = command
        .status()
        .with_context(|| format!("{shown} cannot be started"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// A step that runs Rust's tests: where it fails, the error names those that did.
pub(crate) fn tests_step(command: &mut Command) -> Result<()> {
    let shown = announce(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{shown} cannot be started"))?;
    let mut failed = String::new();
    if let Some(lines) = child.stdout.take() {
        for line in BufReader::new(lines).lines() {
            let line = line?;
            println!("{line}");
            if let Some(name) = failed_test(&line) {
                failed.push_str("\n  ");
                failed.push_str(name);
            }
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{shown} failed ({status}){failed}");
    }
    Ok(())
}

/// The name of a test whose line of libtest's says that it failed.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

fn announce(command: &Command) -> String {
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
pub(crate) fn output(command: &mut Command) -> Result<String> {
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

/// Builds the release binary and says where it is.
pub(crate) fn release_binary() -> Result<PathBuf> {
    step(&mut cargo(&["build", "--release", "--locked"]))?;
    Ok(target().join("release/pinwise"))
}

/// Is a program in `PATH`, or a file where its whole path says?
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Finds a program, or installs its Debian packages where that is permitted;
/// otherwise says what to install.
pub(crate) fn find_or_install(program: &str, package: &str) -> Result<PathBuf> {
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
