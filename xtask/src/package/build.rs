//! Release builds for each target, without paths of this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::programs::{cargo, find, find_or_install, root, step, target};

/// A platform that packages are built for.
#[derive(Debug)]
pub(super) struct Target {
    /// Rust's name for it.
    pub(super) triple: &'static str,
    /// Debian's name for its architecture.
    pub(super) debian: &'static str,
    /// The C compiler, which also links, and its Debian package.
    compiler: (&'static str, &'static str),
}

/// The command: static on x86-64. On arm64 it needs glibc, because Debian has
/// no compiler for musl there, and SQLite and ring are partly C.
pub(super) const COMMAND: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        compiler: ("musl-gcc", "musl-tools"),
    },
    ARM,
];

/// The C library is loaded into programs, so it uses their libc.
pub(super) const LIBRARY: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        compiler: ("x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu"),
    },
    ARM,
];

const ARM: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    debian: "arm64",
    compiler: (
        "aarch64-linux-gnu-gcc",
        "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    ),
};

impl Target {
    fn architecture(&self) -> &'static str {
        self.triple.split('-').next().unwrap_or_default()
    }

    /// Whether this machine runs it.
    pub(super) fn is_native(&self) -> bool {
        self.architecture() == std::env::consts::ARCH
    }

    /// Debian's folder of libraries.
    pub(super) fn multiarch(&self) -> String {
        format!("{}-linux-gnu", self.architecture())
    }

    /// The reason why it cannot be built here.
    pub(super) fn find_obstacle(&self) -> Option<String> {
        let (compiler, package) = self.compiler;
        if compiler == "musl-gcc" && !self.is_native() {
            return Some("musl-gcc compiles for its own architecture only".to_owned());
        }
        if let Err(error) = find_or_install(compiler, package) {
            return Some(error.to_string());
        }
        if find("rustup").is_some() {
            let mut rustup = std::process::Command::new("rustup");
            if let Err(error) = step(rustup.args(["--quiet", "target", "add", self.triple])) {
                return Some(error.to_string());
            }
        }
        None
    }

    /// The folder of cargo's build products.
    pub(super) fn folder(&self) -> PathBuf {
        target().join(self.triple).join("release")
    }

    /// Builds a package and returns the folder of its files.
    pub(super) fn build(&self, package: &str) -> Result<PathBuf> {
        let (compiler, _) = self.compiler;
        let name = self.triple.replace('-', "_");
        let mut command = cargo(&[
            "build",
            "--release",
            "--locked",
            "--package",
            package,
            "--target",
            self.triple,
        ]);
        command
            .env("RUSTFLAGS", remap_flags()?)
            .env(format!("CC_{name}"), compiler);
        // Rust links musl by itself, with the start files that it brings.
        if compiler != "musl-gcc" {
            let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
            command.env(linker, compiler);
        }
        step(&mut command)?;
        let folder = self.folder();
        for file in ["pinwise", "libpinwise.so", "libpinwise.a"] {
            let path = folder.join(file);
            if path.is_file() {
                check_no_home(&path)?;
            }
        }
        Ok(folder)
    }
}

/// The folder of cargo's downloaded sources.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    Ok(Path::new(&home).join(".cargo"))
}

/// Flags that remove this machine's folders from the names of files in panic messages.
fn remap_flags() -> Result<String> {
    let own = std::env::var("RUSTFLAGS").unwrap_or_default();
    let home = cargo_home()?;
    let flags = format!(
        "{own} --remap-path-prefix={}=cargo --remap-path-prefix={}=.",
        home.display(),
        root().display()
    );
    Ok(flags.trim().to_owned())
}

fn check_no_home(path: &Path) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    for folder in [cargo_home()?, root().to_owned()] {
        let folder = folder.display().to_string();
        if find_bytes(&bytes, folder.as_bytes()).is_some() {
            bail!(
                "{} names a folder of this machine: {folder}",
                path.display()
            );
        }
    }
    Ok(())
}

fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// The Debian packages that a file needs; none for a static one.
pub(super) fn libraries_needed(path: &Path) -> Result<Vec<String>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mut needed = Vec::new();
    if let Some((major, minor)) = newest_glibc(&bytes) {
        needed.push(format!("libc6 (>= {major}.{minor})"));
        if find_bytes(&bytes, b"libgcc_s.so.1").is_some() {
            needed.push("libgcc-s1".to_owned());
        }
    }
    Ok(needed)
}

/// The newest version that the symbols of a file require.
fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes
        .split(|byte| *byte == 0)
        .filter_map(|word| std::str::from_utf8(word).ok()?.strip_prefix("GLIBC_"))
        .filter_map(|version| {
            let mut numbers = version.split('.').map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_of_glibc_decides() {
        let bytes = b"\x7fELF\0GLIBC_2.9\0GLIBC_2.34\0memcpy\0GLIBC_2.2.5\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(bytes), Some((2, 34)));
        assert_eq!(newest_glibc(b"\x7fELF\0main\0"), None);
    }
}
