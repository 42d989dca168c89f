//! Finds programs: in folders that a pattern names, or on the search path.

use std::path::Path;

use super::{search_path, spawn};

/// Finds the first of these programs that exists: in `folders`, then on the search path. A `*` in a
/// folder matches any name; the last match in natural order wins, which is the newest version.
#[must_use]
pub fn find_program(names: &[String], folders: &[String]) -> Option<String> {
    let search = search_path();
    let special: Vec<String> = folders
        .iter()
        .flat_map(|folder| list_matching(folder))
        .collect();
    let found = names.iter().find_map(|name| {
        let paths = special.iter().map(|folder| format!("{folder}/{name}"));
        let mut candidates = paths.chain([name.clone()]);
        candidates.find_map(|path| spawn::find_program(&path, &search).ok())
    })?;
    found.into_string().ok()
}

/// Lists folders that match a pattern such as `/usr/lib/postgresql/*/bin`, the last in natural
/// order first.
fn list_matching(pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![pattern.to_owned()];
    };
    let mut names = super::capture::list_names(Path::new(before));
    names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(0), name.clone()));
    names
        .iter()
        .rev()
        .map(|name| format!("{before}{name}{after}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_the_first_existing_name() {
        let owned =
            |list: &[&str]| -> Vec<String> { list.iter().map(|name| (*name).to_owned()).collect() };
        let sh = find_program(&owned(&["no-such-program-here", "sh"]), &[]).unwrap();
        assert!(sh.ends_with("/sh"), "{sh}");
        assert_eq!(find_program(&owned(&["no-such-program-here"]), &[]), None);
        let folder = tempfile::tempdir().unwrap();
        for version in ["9", "15"] {
            let bin = folder.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
        }
        let pattern = format!("{}/*/bin", folder.path().display());
        let found = find_program(&owned(&["sh"]), &[pattern]).unwrap();
        assert!(found.ends_with("/15/bin/sh"), "{found}");
    }
}
