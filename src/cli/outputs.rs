//! Checks, before a command does anything, the files that it will write.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::args::Global;
use super::files::NamedFile;
use super::opening::store_location;
use pinwise_store::Location;

/// Checks that the output files can be written, before an hour of measuring. Creates none of them,
/// since there may be no result. None may be an input, the store, or another output.
pub(super) fn check_outputs(
    global: &Global,
    outputs: &[NamedFile<'_>],
    inputs: &[NamedFile<'_>],
) -> anyhow::Result<()> {
    for NamedFile { option, path } in inputs {
        check_pipe(option, path)?;
    }
    let store = list_store_files(global)?;
    let mut needed: Vec<(String, PathBuf)> = inputs
        .iter()
        .map(|file| {
            (
                format!("{} reads that file", file.option),
                file.path.to_owned(),
            )
        })
        .collect();
    needed.extend(
        store
            .into_iter()
            .map(|path| ("that is the store".to_owned(), path)),
    );
    for NamedFile { option, path } in outputs {
        if *option == "--report" {
            super::report::load_template()?;
        }
        if *path == Path::new("-") {
            bail!(
                "{option} -: name a file; for standard output: --format json, or afterwards pinwise record show last --format FORMAT"
            );
        }
        check_pipe(option, path)?;
        let same = needed.iter().find(|(_, other)| is_same_file(path, other));
        if let Some((why, _)) = same {
            bail!("{option} {}: {why}; name another", path.display());
        }
        check_writable(path).with_context(|| format!("{option} {}", path.display()))?;
        needed.push((format!("{option} writes that file"), (*path).to_owned()));
    }
    Ok(())
}

fn check_writable(path: &Path) -> std::io::Result<()> {
    let is_new = !path.exists();
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?;
    if is_new {
        #[expect(clippy::disallowed_methods, reason = "cli made it a moment ago")]
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Refuses named pipes, since opening one waits for its other end. A pipe of the shell
/// (`<(command)`) is open already, and its path cannot be canonicalized.
fn check_pipe(option: &str, path: &Path) -> anyhow::Result<()> {
    let is_pipe = path.metadata().is_ok_and(|file| file.file_type().is_fifo());
    if is_pipe && path.canonicalize().is_ok() {
        bail!(
            "{option} {}: a named pipe may never be opened at its other end; name a file",
            path.display()
        );
    }
    Ok(())
}

/// Do both paths name one regular file? A device may be named twice.
fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => canonicalize_new(a) == canonicalize_new(b),
        _ => false,
    }
}

/// The canonical path of a file that may not exist yet.
fn canonicalize_new(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let folder = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf());
    path.file_name().map_or(folder.clone(), |n| folder.join(n))
}

/// The store's files, if it has any.
fn list_store_files(global: &Global) -> anyhow::Result<Vec<PathBuf>> {
    let Location::Sqlite(store) = store_location(global)? else {
        return Ok(Vec::new());
    };
    let beside = ["", "-wal", "-shm", "-journal"].map(|ending| {
        let mut name = store.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    });
    Ok(beside.into())
}
