//! `check --changed`: lints and tests of the packages that a change may break.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::programs::{cargo, read_output, root, step};
use crate::suites::{Extent, Tests};
use crate::timing::Table;
use crate::web;

/// Checks the packages that differ from a commit, and those that depend on them. All are compiled, as
/// in `check`; unchanged ones have been compiled before.
pub(crate) fn check(commit: &str) -> Result<()> {
    let files = list_changed_files(commit)?;
    if files.is_empty() {
        eprintln!("xtask: nothing differs from {commit}");
        return Ok(());
    }
    let mut table = Table::begin();
    // The page's types are generated from the schema.
    if files
        .iter()
        .any(|file| file.starts_with("web/") || file.starts_with("schema/"))
    {
        table.run("page", web::build);
        table.run("tests of the page", web::check_units);
    }
    table.run("format", || step(&mut cargo(&["fmt", "--all", "--check"])));
    let packages = find_affected(&read_packages()?, &files);
    if let Some(built) = table.run("lints, and building the tests", Tests::build) {
        let of_packages = built.select_packages(&packages);
        table.run("unit tests", || of_packages.run_units(Extent::Change));
        table.run("tests of the command", || of_packages.run_quick());
    }
    table.finish()
}

/// Files that differ from a commit, with untracked ones.
fn list_changed_files(commit: &str) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let new = ["ls-files", "--others", "--exclude-standard"];
    for words in [&["diff", "--name-only", commit, "--"][..], &new] {
        let listed = read_output(Command::new("git").args(words).current_dir(root()))?;
        files.extend(listed.lines().map(ToOwned::to_owned));
    }
    Ok(files)
}

/// A package of the workspace.
struct Package {
    /// Its folder below the root; empty for the root's own.
    folder: String,
    /// The names of its dependencies.
    needs: BTreeSet<String>,
}

fn read_packages() -> Result<BTreeMap<String, Package>> {
    let words = ["metadata", "--no-deps", "--locked", "--format-version", "1"];
    let listed: Value = serde_json::from_str(&read_output(&mut cargo(&words))?)?;
    let listed = listed["packages"].as_array().context("cargo metadata")?;
    let package = |listed: &Value| {
        let manifest = Path::new(listed["manifest_path"].as_str()?);
        let folder = manifest.parent()?.strip_prefix(root()).ok()?;
        let needs = listed["dependencies"].as_array()?.iter();
        let needs = needs.filter_map(|need| Some(need["name"].as_str()?.to_owned()));
        let package = Package {
            folder: folder.to_str()?.to_owned(),
            needs: needs.collect(),
        };
        Some((listed["name"].as_str()?.to_owned(), package))
    };
    Ok(listed.iter().filter_map(package).collect())
}

/// The packages that files belong to, and all that depend on them. Files outside of any package's
/// folder (documents, recipes, the page) are read by the root's own tests; the workspace's manifest
/// and lock file concern every package.
fn find_affected(
    packages: &BTreeMap<String, Package>,
    files: &BTreeSet<String>,
) -> BTreeSet<String> {
    if files.contains("Cargo.toml") || files.contains("Cargo.lock") {
        return packages.keys().cloned().collect();
    }
    let owner = |file: &String| {
        let holds = |package: &Package| Path::new(file).starts_with(&package.folder);
        let holding = packages.iter().filter(|(_, package)| holds(package));
        let nearest = holding.max_by_key(|(_, package)| package.folder.len());
        nearest.map(|(name, _)| name.clone())
    };
    let mut found: BTreeSet<String> = files.iter().filter_map(owner).collect();
    loop {
        let depends = |package: &Package| !package.needs.is_disjoint(&found);
        let more = packages.iter().filter(|(_, package)| depends(package));
        let more: Vec<String> = more.map(|(name, _)| name.clone()).collect();
        let before = found.len();
        found.extend(more);
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> BTreeMap<String, Package> {
        let package = |folder: &str, needs: &[&str]| Package {
            folder: folder.to_owned(),
            needs: needs.iter().map(ToString::to_string).collect(),
        };
        BTreeMap::from([
            ("pinwise".to_owned(), package("", &["report", "stats"])),
            ("report".to_owned(), package("crates/report", &["stats"])),
            ("stats".to_owned(), package("crates/stats", &["rand"])),
            ("xtask".to_owned(), package("xtask", &["rand"])),
        ])
    }

    fn affected_by(files: &[&str]) -> Vec<String> {
        let files = files.iter().map(ToString::to_string).collect();
        find_affected(&workspace(), &files).into_iter().collect()
    }

    #[test]
    fn dependents_of_a_change_are_tested() {
        assert_eq!(
            affected_by(&["crates/stats/src/lib.rs"]),
            ["pinwise", "report", "stats"]
        );
        assert_eq!(
            affected_by(&["crates/report/Cargo.toml"]),
            ["pinwise", "report"]
        );
        assert_eq!(affected_by(&["docs/cli.md", "src/main.rs"]), ["pinwise"]);
        assert_eq!(affected_by(&["xtask/src/main.rs"]), ["xtask"]);
        assert_eq!(affected_by(&["xtask/src/main.rs", "Cargo.lock"]).len(), 4);
    }
}
