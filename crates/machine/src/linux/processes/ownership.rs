//! Who, apart from its owner, could replace a file.
//!
//! Access control lists are not checked.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::sys;

/// Who may write to a file, or change what its path leads to, apart from root, this user and
/// `owner`: a clause, or `None` if nobody may. If the path does not exist, its existing part
/// counts.
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
        // With the sticky bit others may add files, but change none.
        let protects = found.mode() & libc::S_ISVTX != 0 && !(depth == 0 && may_be_new);
        if is_open(&found) && !protects {
            return Some(format!("{} may be written to by others", part.display()));
        }
    }
    None
}

/// May anyone except the owner and root's group write to it?
fn is_open(found: &Metadata) -> bool {
    let group = if found.gid() == 0 { 0 } else { 0o020 };
    found.mode() & (0o002 | group) != 0
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn everyone_who_can_replace_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (inside, file) = (root.join("bin"), root.join("bin/db"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        #[track_caller]
        fn check(path: &Path, open: Option<&Path>) {
            let found = writable_by_others(path, None);
            let expected =
                open.map(|path| format!("{} may be written to by others", path.display()));
            assert_eq!(found, expected);
        }
        mode(&inside, 0o755);
        mode(&file, 0o755);
        check(&file, None);
        mode(&file, 0o757);
        check(&file, Some(&file));
        mode(&file, 0o755);
        mode(&inside, 0o777);
        check(&file, Some(&inside));
        // Others may add files there, but change none.
        mode(&inside, 0o1777);
        check(&file, None);
        check(&inside.join("none"), Some(&inside));
        check(&inside, Some(&inside));
        // A link counts as its target.
        let link = root.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        mode(&file, 0o757);
        check(&link, Some(&file));
    }
}
