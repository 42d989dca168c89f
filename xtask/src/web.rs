//! The page: installs its packages from the lock file, builds and tests it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::programs::{find, read_output, root, step};
use crate::records;
use crate::suites::Extent;

/// The oldest Node that the page's tools run with.
const OLDEST_NODE: (u32, u32) = (20, 19);

fn folder() -> PathBuf {
    root().join("web")
}

/// Builds the page, with the packages of the lock file.
pub(crate) fn build() -> Result<()> {
    install_packages()?;
    records::write_types()?;
    step(&mut npm_command(&["run", "--silent", "types"]))?;
    let page = folder().join("dist/page.html");
    let before = std::fs::read(&page).ok().zip(modified_at(&page));
    step(&mut npm_command(&["run", "--silent", "build"]))?;
    // If an unchanged page had a newer time, cargo would link everything again.
    if let Some((text, time)) = before
        && std::fs::read(&page)? == text
    {
        std::fs::File::options()
            .append(true)
            .open(&page)?
            .set_modified(time)?;
    }
    Ok(())
}

/// Installs the third-party packages of the page, only if the lock file has changed.
pub(crate) fn install_packages() -> Result<()> {
    check_node()?;
    let lock = folder().join("package-lock.json");
    let stamp = folder().join("node_modules/.installed");
    if is_newer(&stamp, &lock) {
        return Ok(());
    }
    step(&mut npm_command(&[
        "ci",
        "--no-audit",
        "--no-fund",
        "--silent",
    ]))?;
    std::fs::write(&stamp, "").with_context(|| stamp.display().to_string())
}

/// Checks the layout of its source, and runs its unit tests.
pub(crate) fn check_units() -> Result<()> {
    step(&mut npm_command(&["run", "--silent", "layout"]))?;
    step(&mut npm_command(&["run", "--silent", "unit"]))
}

/// Tests the page in a browser, as a report and as the local site of this binary; with
/// [`Extent::All`] also in a second browser.
pub(crate) fn check_in_browser(pinwise: Option<&Path>, extent: Extent) -> Result<()> {
    let pinwise = pinwise.context("the command was not built")?;
    // The shell renders the same in less than half of the CPU time.
    let Some(chromium) = find("chromium-headless-shell").or_else(find_chromium) else {
        eprintln!(
            "SKIPPED: the page in a browser: no chromium in PATH \
             (apt-get install chromium-headless-shell)"
        );
        return Ok(());
    };
    let mut command = npm_command(&["run", "--silent", "e2e"]);
    if extent == Extent::Change {
        command.args(["--", "--exclude", "e2e/firefox.e2e.ts"]);
    }
    step(command.env("CHROMIUM", chromium).env("PINWISE", pinwise))
}

/// The command that measures the page in a browser, with records of this binary.
pub fn bench_command(pinwise: &Path) -> Result<Command> {
    let chromium = find_chromium().context("the page is measured in chromium, which is missing")?;
    let mut command = npm_command(&["run", "--silent", "bench"]);
    command.env("CHROMIUM", chromium).env("PINWISE", pinwise);
    Ok(command)
}

fn find_chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find_map(find)
}

fn npm_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(folder());
    command
}

fn is_newer(stamp: &Path, than: &Path) -> bool {
    matches!((modified_at(stamp), modified_at(than)), (Some(a), Some(b)) if a >= b)
}

fn modified_at(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|data| data.modified()).ok()
}

fn check_node() -> Result<()> {
    let advice = "install Node 20.19 or newer with npm (Debian 13: apt-get install nodejs npm)";
    if find("node").is_none() || find("npm").is_none() {
        bail!("the page is built with Node, which is missing: {advice}");
    }
    let version = read_output(Command::new("node").arg("--version"))?;
    let numbers: Vec<u32> = version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    match numbers.as_slice() {
        [major, minor, ..] if (*major, *minor) >= OLDEST_NODE => Ok(()),
        _ => bail!("Node {} is too old for the page: {advice}", version.trim()),
    }
}
