//! Finds out whether others than its owner could replace a file.
//!
//! Access control lists are not checked.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::sys;

/// Says which part of a path others than root, this user and `owner` may change, so that the path
/// leads to another file: a clause, or `None` if there is no such part. If the path does not exist,
/// its existing part is checked.
#[must_use]
pub fn writable_by_others(path: &Path, owner: Option<u32>) -> Option<String> {
    let existing = path.ancestors().find_map(|part| part.canonicalize().ok())?;
    let may_be_new = std::fs::symlink_metadata(path).is_err() || existing.is_dir();
    let trusted = [Some(0), Some(sys::effective_user()), owner];
    for (depth, part) in existing.ancestors().enumerate() {
        let found = std::fs::metadata(part).ok()?;
        if !trusted.contains(&Some(found.uid())) {
            let user = found.uid();
            return Some(format!("{} belongs to user {user}", part.display()));
        }
        // With the sticky bit others may add files, but not replace existing ones.
        let is_protected = found.mode() & libc::S_ISVTX != 0 && !(depth == 0 && may_be_new);
        if is_writable_by_others(&found) && !is_protected {
            return Some(format!("{} may be written to by others", part.display()));
        }
    }
    None
}

/// May anyone except the owner and root's group write to it?
fn is_writable_by_others(found: &Metadata) -> bool {
    let group = if found.gid() == 0 { 0 } else { 0o020 };
    found.mode() & (0o002 | group) != 0
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_and_folders_that_others_may_write_to_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (inside, file) = (root.join("bin"), root.join("bin/db"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&file, "").unwrap();
        let set_mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        #[track_caller]
        fn check(path: &Path, open: Option<&Path>) {
            let found = writable_by_others(path, None);
            let expected =
                open.map(|path| format!("{} may be written to by others", path.display()));
            assert_eq!(found, expected);
        }
        set_mode(&inside, 0o755);
        set_mode(&file, 0o755);
        check(&file, None);
        set_mode(&file, 0o757);
        check(&file, Some(&file));
        set_mode(&file, 0o755);
        set_mode(&inside, 0o777);
        check(&file, Some(&inside));
        // Others may add files there, but change none.
        set_mode(&inside, 0o1777);
        check(&file, None);
        check(&inside.join("none"), Some(&inside));
        check(&inside, Some(&inside));
        // A link counts as its target.
        let link = root.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        set_mode(&file, 0o757);
        check(&link, Some(&file));
    }
}
