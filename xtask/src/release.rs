//! `release VERSION`: sets the version in every manifest, adds its heading to the changelog, commits
//! and tags. The owner of the keys publishes.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::programs::{cargo, read_output, root, step};

/// The heading of unreleased changes.
const UNRELEASED: &str = "## [Unreleased]\n";
/// Its own lock file contains the same packages.
const LIBFUZZER: &str = "fuzz/libfuzzer/Cargo.toml";

/// Makes a release of the working tree, which must have no changes.
pub(crate) fn release(version: &str) -> Result<()> {
    let is_number = |part: &str| part.parse::<u32>().is_ok_and(|n| n.to_string() == part);
    if version.split('.').count() != 3 || !version.split('.').all(is_number) {
        bail!("VERSION is three whole numbers, such as 0.2.0");
    }
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(words).current_dir(root());
        command
    };
    if !read_output(&mut git(&["status", "--porcelain"]))?.is_empty() {
        bail!("there are changes that are not committed");
    }
    let today = read_output(Command::new("date").arg("+%F"))?;
    rewrite("CHANGELOG.md", |text| {
        release_changelog(text, version, today.trim())
    })?;
    rewrite("Cargo.toml", |text| set_version(text, version))?;
    // Resolving writes the packages' new versions to the lock files.
    for manifest in ["Cargo.toml", LIBFUZZER] {
        let mut resolve = cargo(&["metadata", "--offline", "--quiet", "--format-version", "1"]);
        step(
            resolve
                .args(["--manifest-path", manifest])
                .stdout(Stdio::null()),
        )?;
    }
    step(&mut git(&[
        "commit",
        "--quiet",
        "--all",
        "--message",
        &format!("Release {version}"),
    ]))?;
    step(&mut git(&[
        "tag",
        "--annotate",
        "--message",
        &format!("pinwise {version}"),
        &format!("v{version}"),
    ]))?;
    eprintln!(
        "xtask: v{version} is committed and tagged; next: cargo xtask check, cargo xtask package, \
         git push --follow-tags, and `cargo publish --workspace`"
    );
    Ok(())
}

fn rewrite(file: &str, change: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    let path = root().join(file);
    let text = std::fs::read_to_string(&path).with_context(|| file.to_owned())?;
    let text = change(&text).with_context(|| file.to_owned())?;
    std::fs::write(&path, text).with_context(|| file.to_owned())
}

/// The changelog with unreleased changes below the version's own heading.
fn release_changelog(text: &str, version: &str, today: &str) -> Result<String> {
    let (before, after) = text
        .split_once(UNRELEASED)
        .context("there is no heading [Unreleased]")?;
    let own = after.split("\n## [").next().unwrap_or_default();
    if !own.lines().any(|line| line.starts_with("- ")) {
        bail!("nothing is listed as unreleased");
    }
    Ok(format!(
        "{before}{UNRELEASED}\n## [{version}] - {today}\n{after}"
    ))
}

/// The workspace's manifest with a new version, also of its own crates among the dependencies.
fn set_version(text: &str, version: &str) -> Result<String> {
    let old = text
        .lines()
        .find_map(|line| line.strip_prefix("version = "))
        .context("there is no version")?;
    let new = format!("\"{version}\"");
    if old == new {
        bail!("the version is {version} already");
    }
    let is_own = |line: &str| line.starts_with("version = ") || line.contains("{ path = \"crates/");
    let lines = text.lines().map(|line| match is_own(line) {
        true => line.replace(old, &new),
        false => line.to_owned(),
    });
    Ok(lines.map(|line| line + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreleased_changes_get_a_heading() {
        let log = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A door.\n\n## [0.1.0] - 2026-01-01\n\n- All.\n";
        let new = release_changelog(log, "0.2.0", "2026-11-26").unwrap();
        assert!(
            new.contains("## [Unreleased]\n\n## [0.2.0] - 2026-11-26\n\n### Added\n\n- A door.")
        );
        assert!(new.ends_with("## [0.1.0] - 2026-01-01\n\n- All.\n"));
        let again = release_changelog(&new, "0.3.0", "2026-11-27").unwrap_err();
        assert_eq!(again.to_string(), "nothing is listed as unreleased");
    }

    #[test]
    fn only_our_own_versions_change() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\n[workspace.dependencies]\nother = \"0.1.0\"\npinwise-stats = { path = \"crates/stats\", version = \"0.1.0\" }\n";
        let new = set_version(manifest, "0.2.0").unwrap();
        assert_eq!(new.matches("0.2.0").count(), 2);
        assert!(new.contains("other = \"0.1.0\""));
        assert!(set_version(&new, "0.2.0").is_err());
    }
}
