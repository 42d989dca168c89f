//! A private folder for the input and output of an experiment, and where its
//! programs are.
//!
//! The folder is removed when its owner is dropped. What a killed pinwise left
//! behind is removed by the next one: a folder belongs to whoever holds the
//! lock on the file in it, and the kernel gives locks back. Nothing that
//! another user owns is touched, no link followed.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::ledger::{open_left, write_journal};
use super::{search_path, spawn, sys};

/// How such folders are called; a random number follows.
const STEM: &str = "pinwise-recipe-";
/// The file whose lock says that the folder is in use.
const LOCK: &str = ".lock";

/// A folder that is gone when this is.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: File,
}

impl Scratch {
    /// Makes a folder below `parent`, after removing those that killed
    /// processes of this user left there.
    ///
    /// # Errors
    /// The system's words, with the path.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let parent = parent.canonicalize().map_err(|error| at(parent, &error))?;
        sweep(&parent);
        let path = parent.join(format!("{STEM}{:016x}", sys::random_u64()));
        let mut builder = DirBuilder::new();
        builder
            .mode(0o700)
            .create(&path)
            .map_err(|error| at(&path, &error))?;
        // Locked before it has its name: a sweep takes a folder without a lock
        // file for one that is just being made.
        match write_journal(&path.join(LOCK), "") {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&path);
                Err(at(&path, &error))
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Removes the folders of this user that nobody holds any more.
fn sweep(parent: &Path) {
    for name in super::capture::names(parent) {
        if name.starts_with(STEM) {
            remove_if_left(&parent.join(name));
        }
    }
}

fn remove_if_left(folder: &Path) {
    let is_ours =
        |metadata: std::fs::Metadata| metadata.is_dir() && metadata.uid() == sys::effective_user();
    if !std::fs::symlink_metadata(folder).is_ok_and(is_ours) {
        return;
    }
    if let Ok(Some(_lock)) = open_left(&folder.join(LOCK)) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// The first of these programs that is there: in `folders`, in which a `*`
/// stands for any name (the last in order is taken: of versions the newest),
/// then where a shell looks. `None` where there is none.
#[must_use]
pub fn find_program(names: &[String], folders: &[String]) -> Option<String> {
    let search = search_path();
    let special: Vec<String> = folders.iter().flat_map(|folder| matching(folder)).collect();
    let found = names.iter().find_map(|name| {
        let paths = special.iter().map(|folder| format!("{folder}/{name}"));
        let mut wanted = paths.chain([name.clone()]);
        wanted.find_map(|path| spawn::find_program(&path, &search).ok())
    })?;
    found.into_string().ok()
}

/// Folders that a pattern such as `/usr/lib/postgresql/*/bin` stands for,
/// the last in natural order first.
fn matching(pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![pattern.to_owned()];
    };
    let mut names = super::capture::names(Path::new(before));
    names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(0), name.clone()));
    names
        .iter()
        .rev()
        .map(|name| format!("{before}{name}{after}"))
        .collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_living_stay_and_those_of_the_dead_go() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join(format!("{STEM}dead"));
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        std::fs::write(dead.join("input"), "x").unwrap();
        let unnamed = parent.path().join(format!("{STEM}being-made"));
        std::fs::create_dir(&unnamed).unwrap();
        let other = parent.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let first = Scratch::create(parent.path()).unwrap();
        let second = Scratch::create(parent.path()).unwrap();
        assert!(!dead.exists() && unnamed.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists());
        assert_eq!(first.path().metadata().unwrap().mode() & 0o777, 0o700);
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && second.path().exists());
    }

    #[test]
    fn programs_are_found_by_the_first_name_that_is_there() {
        let names =
            |list: &[&str]| -> Vec<String> { list.iter().map(|name| (*name).to_owned()).collect() };
        let sh = find_program(&names(&["no-such-program-here", "sh"]), &[]).unwrap();
        assert!(sh.ends_with("/sh"), "{sh}");
        assert_eq!(find_program(&names(&["no-such-program-here"]), &[]), None);
        let folder = tempfile::tempdir().unwrap();
        for version in ["9", "15"] {
            let bin = folder.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
        }
        let pattern = format!("{}/*/bin", folder.path().display());
        let found = find_program(&names(&["sh"]), &[pattern]).unwrap();
        assert!(found.ends_with("/15/bin/sh"), "{found}");
    }
}
