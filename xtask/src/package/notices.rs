//! Notices of third parties: the third-party packages in a binary, their licences, and the notices
//! that must be repeated.
//!
//! Names and terms come from Cargo's metadata and the page's lock file, texts from the files of the
//! packages. A package without a text, under terms that are not known here, is an error, which a
//! person has to decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::programs::{cargo, read_output, root};

/// The third-party packages that a binary of ours contains.
#[derive(Debug)]
pub(super) struct Notices {
    packages: Vec<Package>,
}

/// A third-party package.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    /// An SPDX expression.
    terms: String,
    authors: String,
    folder: PathBuf,
}

/// First words of the names of files with terms.
const FILES: [&str; 6] = [
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];

/// The parts of a binary that no list of packages has.
const UNLISTED: &str = "\
Also in the binaries: the standard library of Rust (MIT OR Apache-2.0; see
COPYRIGHT-rust-library.html.gz beside this file); in static ones musl, © 2005-2025 Rich Felker and others (MIT). SQLite, which libsqlite3-sys holds, is
in the public domain.
";

impl Notices {
    /// The packages that a package of this workspace is linked with on a target.
    pub(super) fn collect(package: &str, triple: &str) -> Result<Self> {
        let text = read_output(&mut cargo(&[
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            triple,
        ]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
        let mut packages = find_linked(&metadata, package)?;
        packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(Self { packages })
    }

    /// With the packages that are bundled into the page.
    pub(super) fn add_page_packages(mut self) -> Result<Self> {
        let folder = root().join("web");
        let path = folder.join("package-lock.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lock: Value = serde_json::from_str(&text).context("package-lock.json")?;
        let packages = lock["packages"].as_object().context("no packages")?;
        for (key, package) in packages {
            let name = key.strip_prefix("node_modules/");
            if let Some(name) = name.filter(|_| package["dev"] != true) {
                self.packages.push(Package {
                    name: format!("{name} (in the page)"),
                    version: to_text(&package["version"]),
                    terms: to_text(&package["license"]),
                    authors: String::new(),
                    folder: folder.join(key),
                });
            }
        }
        Ok(self)
    }

    /// The list, then every text once, with its packages.
    pub(super) fn format(&self, holder: &str, triple: &str) -> Result<String> {
        let mut text = format!("Third-party software in {holder} for {triple}\n\n{UNLISTED}\n");
        let mut texts: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
        for package in &self.packages {
            let title = format!("{} {}", package.name, package.version);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {title}: {}", package.terms);
            for licence in package.read_licence_texts()? {
                let key = licence.split_whitespace().collect::<Vec<_>>().join(" ");
                let (_, packages) = texts.entry(key).or_insert((licence, BTreeSet::new()));
                packages.insert(title.clone());
            }
        }
        let mut texts: Vec<(String, BTreeSet<String>)> = texts.into_values().collect();
        texts.sort_by(|a, b| a.1.cmp(&b.1));
        for (licence, packages) in texts {
            let packages: Vec<String> = packages.into_iter().collect();
            let _ = write!(
                text,
                "\n{}\n{}\n\n{}\n",
                "=".repeat(72),
                packages.join(", "),
                licence.trim_end()
            );
        }
        Ok(text)
    }
}

/// Follows linked dependencies: neither build tools nor macros, whose output alone is in the binary,
/// nor dependencies of tests.
fn find_linked(metadata: &Value, package: &str) -> Result<Vec<Package>> {
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .map(|one| (to_text(&one["id"]), one.clone()))
            .collect()
    };
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let first = packages
        .iter()
        .find(|(_, one)| one["name"] == package && one["source"].is_null())
        .with_context(|| format!("the workspace has no package {package}"))?;
    let mut waiting = vec![first.0.clone()];
    let mut seen = BTreeSet::new();
    let mut linked = Vec::new();
    while let Some(id) = waiting.pop() {
        let one = packages
            .get(&id)
            .with_context(|| format!("no package {id}"))?;
        if is_macro(one) || !seen.insert(id.clone()) {
            continue;
        }
        if !one["source"].is_null() {
            linked.push(Package::from_crate(one)?);
        }
        let uses = nodes.get(&id).map(|node| &node["deps"]);
        for used in uses.and_then(Value::as_array).into_iter().flatten() {
            let kinds = used["dep_kinds"].as_array();
            if kinds
                .into_iter()
                .flatten()
                .any(|kind| kind["kind"].is_null())
            {
                waiting.push(to_text(&used["pkg"]));
            }
        }
    }
    Ok(linked)
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array();
    let mut kinds = targets
        .into_iter()
        .flatten()
        .filter_map(|one| one["kind"].as_array());
    kinds.any(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
}

impl Package {
    fn from_crate(package: &Value) -> Result<Self> {
        let manifest = to_text(&package["manifest_path"]);
        let folder = Path::new(&manifest)
            .parent()
            .context("a manifest in no folder")?;
        let authors = package["authors"].as_array();
        let authors: Vec<String> = authors.into_iter().flatten().map(to_text).collect();
        Ok(Self {
            name: to_text(&package["name"]),
            version: to_text(&package["version"]),
            terms: to_text(&package["license"]),
            authors: authors.join(", "),
            folder: folder.to_owned(),
        })
    }

    /// The texts that must be repeated.
    fn read_licence_texts(&self) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        for folder in [self.folder.clone(), self.folder.join("licenses")] {
            if folder.is_dir() {
                paths.extend(list_licence_files(&folder)?);
            } else if folder == self.folder {
                bail!(
                    "{} is not there: is {} installed?",
                    folder.display(),
                    self.name
                );
            }
        }
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_ascii_lowercase());
        let says = |path: &PathBuf, word: &str| {
            name(path).is_some_and(|name| name.to_string_lossy().contains(word))
        };
        // Of a choice of terms the shorter ones apply.
        let has_mit = paths.iter().any(|path| says(path, "mit"));
        if has_mit && !self.terms.contains(" AND ") {
            paths.retain(|path| !says(path, "apache"));
        }
        if paths.is_empty() {
            return self.format_standard_terms();
        }
        let read = |path: &PathBuf| -> Result<String> {
            let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        paths.iter().map(read).collect()
    }

    /// The terms of a package without a file of them.
    fn format_standard_terms(&self) -> Result<Vec<String>> {
        let by = if self.authors.is_empty() {
            format!("the authors of {}", self.name)
        } else {
            self.authors.clone()
        };
        let choices: Vec<&str> = self.terms.split([' ', '/', '(', ')']).collect();
        let unknown = || anyhow!("{} has no file with its terms, {}", self.name, self.terms);
        if self.terms.contains(" AND ") {
            return Err(unknown());
        }
        if choices.contains(&"0BSD") {
            return Ok(Vec::new());
        }
        if !choices.contains(&"MIT") {
            return Err(unknown());
        }
        let path = root().join("LICENSE-MIT");
        let ours = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (_, terms) = ours
            .split_once("\n\nPermission")
            .context("LICENSE-MIT does not say 'Permission'")?;
        Ok(vec![format!(
            "Copyright {by}, licensed under MIT (the package has no licence file):\n\nPermission{terms}"
        )])
    }
}

fn list_licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_licences = folder.ends_with("licenses");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let is_meant = is_licences || FILES.iter().any(|begin| name.starts_with(begin));
        let is_code = name.ends_with(".rs") || name.ends_with(".html");
        if is_meant && !is_code && entry.file_type()?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(terms: &str, folder: &Path) -> Package {
        Package {
            name: "gears".to_owned(),
            version: "1.0.0".to_owned(),
            terms: terms.to_owned(),
            authors: "Ada <ada@example.org>".to_owned(),
            folder: folder.to_owned(),
        }
    }

    #[test]
    fn a_choice_takes_mit_and_a_conjunction_takes_all() {
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("LICENSE-MIT", "mit"),
            ("LICENSE-APACHE", "apache"),
            ("NOTICE", "notice"),
            ("license.rs", "fn main() {}"),
        ] {
            std::fs::write(folder.path().join(file), text).expect("a file");
        }
        let licence_texts = |terms: &str| {
            package(terms, folder.path())
                .read_licence_texts()
                .expect("terms")
        };
        assert_eq!(licence_texts("MIT OR Apache-2.0"), ["mit", "notice"]);
        assert_eq!(
            licence_texts("MIT AND Apache-2.0"),
            ["apache", "mit", "notice"]
        );
    }

    #[test]
    fn terms_without_a_file_are_known_or_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let licence_texts = |terms: &str| package(terms, folder.path()).read_licence_texts();
        let mit = licence_texts("Apache-2.0 OR MIT").expect("MIT is known");
        assert!(
            mit[0].starts_with("Copyright Ada <ada@example.org>"),
            "{mit:?}"
        );
        assert!(
            mit[0].contains("\n\nPermission is hereby granted"),
            "{mit:?}"
        );
        assert!(
            licence_texts("0BSD")
                .expect("0BSD wants nothing")
                .is_empty()
        );
        assert!(licence_texts("MPL-2.0").is_err());
        assert!(licence_texts("MIT AND MPL-2.0").is_err());
    }

    #[test]
    fn macros_and_tools_of_the_build_are_not_linked() {
        let one = |name: &str, source: Value, kind: &str| {
            serde_json::json!({"id": name, "name": name, "version": "1.0.0", "source": source,
                "license": "MIT", "manifest_path": "/x/Cargo.toml", "authors": [],
                "targets": [{"kind": [kind]}]})
        };
        let uses = |name: &str, kind: Value| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = serde_json::json!({
            "packages": [
                one("ours", Value::Null, "lib"), one("linked", "registry".into(), "lib"),
                one("derive", "registry".into(), "proc-macro"), one("syn", "registry".into(), "lib"),
                one("cc", "registry".into(), "lib"), one("deep", "registry".into(), "lib"),
            ],
            "resolve": {"nodes": [
                {"id": "ours", "deps": [uses("linked", Value::Null), uses("derive", Value::Null),
                    uses("cc", "build".into())]},
                {"id": "derive", "deps": [uses("syn", Value::Null)]},
                {"id": "linked", "deps": [uses("deep", Value::Null)]},
            ]},
        });
        let mut names: Vec<String> = find_linked(&metadata, "ours")
            .expect("packages")
            .into_iter()
            .map(|package| package.name)
            .collect();
        names.sort();
        assert_eq!(names, ["deep", "linked"]);
    }
}
