//! Installs each file at its place in a package's tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::write;
use crate::generated;
use crate::programs::{read_output, root, step};
use crate::records;

/// Generates man pages and completions, by the packaged binary if it runs here.
pub(super) fn generate_documents(binary: Option<&Path>) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for what in ["man", "completions"] {
        let into = folder.path().join(what);
        match binary {
            Some(binary) => step(Command::new(binary).args(["generate", what]).arg(into))?,
            None => generated::generate(what, &into)?,
        }
    }
    Ok(folder)
}

/// Installs the command and its documents below a prefix; `zsh` is the folder in which that shell
/// looks for completions.
pub(super) fn install_command(
    prefix: &Path,
    binary: &Path,
    documents: &Path,
    zsh: &str,
    third_parties: &str,
) -> Result<()> {
    copy(binary, &prefix.join("bin/pinwise"))?;
    let share = prefix.join("share");
    let pages = documents.join("man");
    for entry in std::fs::read_dir(&pages).with_context(|| pages.display().to_string())? {
        let name = entry?.file_name();
        let into = share.join("man/man1").join(&name);
        copy(&pages.join(&name), &into)?;
        compress(&into)?;
    }
    let completions = documents.join("completions");
    for (file, into) in [
        (
            "pinwise.bash",
            "bash-completion/completions/pinwise".to_owned(),
        ),
        ("_pinwise", format!("zsh/{zsh}/_pinwise")),
        (
            "pinwise.fish",
            "fish/vendor_completions.d/pinwise.fish".to_owned(),
        ),
        (
            "pinwise.nu",
            "nushell/vendor/autoload/pinwise.nu".to_owned(),
        ),
    ] {
        copy(&completions.join(file), &share.join(into))?;
    }
    let folder = share.join("doc/pinwise");
    let readme = root().join("README.md");
    let text = std::fs::read_to_string(&readme).with_context(|| readme.display().to_string())?;
    copy(&readme, &folder.join("README.md"))?;
    for file in linked_files(&text) {
        copy(&root().join(file), &folder.join(file))?;
    }
    write(&folder.join("record-fields.md"), &records::format_tables()?)?;
    install_legal_texts(&folder, third_parties)
}

/// The files that a document links to.
fn linked_files(markdown: &str) -> BTreeSet<&str> {
    let links = markdown.split("](").skip(1);
    let targets = links.filter_map(|rest| rest.split_once([')', '#']));
    let files = targets.map(|(target, _)| target.trim());
    files
        .filter(|file| !file.is_empty() && !file.contains(':'))
        .collect()
}

/// Installs licences, third-party notices and the changelog.
pub(super) fn install_legal_texts(folder: &Path, third_parties: &str) -> Result<()> {
    let mut copyright =
        "pinwise is licensed under MIT or Apache-2.0, at your choice. THIRD-PARTY.txt\n\
         lists the third-party code in it, with its licences.\n"
            .to_owned();
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let path = root().join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        copyright.push_str("\n----------------------------------------\n\n");
        copyright.push_str(&text);
    }
    write(&folder.join("copyright"), &copyright)?;
    write(&folder.join("THIRD-PARTY.txt"), third_parties)?;
    if let Some(path) = find_rust_notices()? {
        let into = folder.join("COPYRIGHT-rust-library.html");
        copy(&path, &into)?;
        compress(&into)?;
    }
    let changes = folder.join("changelog");
    copy(&root().join("CHANGELOG.md"), &changes)?;
    compress(&changes)
}

/// Finds the notices of Rust's standard library, if the toolchain has them.
fn find_rust_notices() -> Result<Option<PathBuf>> {
    let folder = read_output(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(root()),
    )?;
    let path = Path::new(folder.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    if !path.is_file() {
        eprintln!("SKIPPED: notices of Rust's library: no {}", path.display());
        return Ok(None);
    }
    Ok(Some(path))
}

/// Installs the shared library under its soname.
pub(super) fn install_shared_library(folder: &Path, library: &Path) -> Result<()> {
    copy(library, &folder.join("libpinwise.so.0"))
}

/// Installs header, static library, the link that the linker looks for, and the file for pkg-config,
/// which names `final_prefix`.
pub(super) fn install_development_files(
    prefix: &Path,
    final_prefix: &str,
    libraries: &str,
    built: &Path,
    version: &str,
) -> Result<()> {
    let folder = prefix.join(libraries);
    copy(
        &root().join("capi/include/pinwise.h"),
        &prefix.join("include/pinwise.h"),
    )?;
    copy(&built.join("libpinwise.a"), &folder.join("libpinwise.a"))?;
    let link = folder.join("libpinwise.so");
    std::os::unix::fs::symlink("libpinwise.so.0", &link)
        .with_context(|| link.display().to_string())?;
    let path = root().join("capi/pinwise.pc.in");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = text
        .replace("@PREFIX@", final_prefix)
        .replace("@LIBRARIES@", libraries)
        .replace("@VERSION@", version);
    write(&folder.join("pkgconfig/pinwise.pc"), &text)
}

/// Lets every user read all files and run the programs, whatever the umask here.
pub(super) fn make_readable(folder: &Path) -> Result<()> {
    step(
        Command::new("chmod")
            .args(["--recursive", "u+rwX,go+rX,go-w"])
            .arg(folder),
    )
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Compresses a file reproducibly: gzip stores neither its name nor its time.
fn compress(path: &Path) -> Result<()> {
    let mut gzip = Command::new("gzip");
    let status = gzip.args(["-9n", "--force"]).arg(path).status()?;
    anyhow::ensure!(status.success(), "gzip {} failed", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::linked_files;

    #[test]
    fn linked_files_are_listed_once_and_without_fragments() {
        let text =
            "[a](docs/a.md#x), [b](#b), ![c](docs/c.png) [d](https://d.org/), [a](docs/a.md)";
        let files: Vec<&str> = linked_files(text).into_iter().collect();
        assert_eq!(files, ["docs/a.md", "docs/c.png"]);
    }
}
