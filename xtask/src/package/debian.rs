//! Debian packages, by `dpkg-deb` alone: they have no maintainer scripts, so Debian's helpers are not
//! needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{read_commit_time, tree, write};
use crate::programs::{find, step};

/// The fields of `DEBIAN/control`.
#[derive(Debug)]
pub(super) struct Package<'a> {
    pub(super) name: &'static str,
    pub(super) version: &'a str,
    pub(super) architecture: &'static str,
    pub(super) section: &'static str,
    pub(super) depends: Vec<String>,
    pub(super) synopsis: &'static str,
}

const DESCRIPTION: &str =
    " pinwise finds out how the CPUs of a machine are wired, compares placements
 of a program's threads in randomised blocks, and says which is best, by how
 much and how sure it is.
";

impl Package<'_> {
    /// Packs a staged tree; `None` if there is no `dpkg-deb`.
    pub(super) fn build(&self, staged: &Path, into: &Path) -> Result<Option<PathBuf>> {
        let file = format!("{}_{}_{}.deb", self.name, self.version, self.architecture);
        if find("dpkg-deb").is_none() {
            eprintln!("SKIPPED: {file}: no dpkg-deb in PATH");
            return Ok(None);
        }
        let control = self.format_control(count_bytes(staged)?);
        write(&staged.join("DEBIAN/control"), &control)?;
        tree::make_readable(staged)?;
        let path = into.join(file);
        step(
            Command::new("dpkg-deb")
                .args(["--root-owner-group", "-Zxz", "--build"])
                .arg(staged)
                .arg(&path)
                .env("SOURCE_DATE_EPOCH", read_commit_time()?),
        )?;
        Ok(Some(path))
    }

    fn format_control(&self, bytes: u64) -> String {
        let depends = if self.depends.is_empty() {
            String::new()
        } else {
            format!("Depends: {}\n", self.depends.join(", "))
        };
        format!(
            "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: {}\n\
             Installed-Size: {}\n{depends}Section: {}\nPriority: optional\n\
             Description: {}\n{DESCRIPTION}",
            self.name,
            self.version,
            self.architecture,
            read_maintainer(),
            bytes.div_ceil(1024),
            self.section,
            self.synopsis,
        )
    }
}

/// The maintainer of Debian's variables.
fn read_maintainer() -> String {
    let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let name = variable("DEBFULLNAME").unwrap_or_else(|| "The pinwise developers".to_owned());
    let address = variable("DEBEMAIL").unwrap_or_else(|| "pinwise@localhost".to_owned());
    format!("{name} <{address}>")
}

fn count_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let data = path.symlink_metadata()?;
        bytes += if data.is_dir() {
            count_bytes(&path)?
        } else {
            data.len()
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_binary_depends_on_nothing() {
        let mut package = Package {
            name: "pinwise",
            version: "1.2.3",
            architecture: "amd64",
            section: "utils",
            depends: Vec::new(),
            synopsis: "short",
        };
        let control = package.format_control(2049);
        assert!(!control.contains("Depends"), "{control}");
        assert!(control.contains("\nInstalled-Size: 3\n"), "{control}");
        package.depends = vec!["libc6 (>= 2.34)".to_owned(), "libgcc-s1".to_owned()];
        let control = package.format_control(2049);
        assert!(
            control.contains("\nDepends: libc6 (>= 2.34), libgcc-s1\n"),
            "{control}"
        );
    }
}
