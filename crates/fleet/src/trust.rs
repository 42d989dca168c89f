//! Whose files may contain commands to run: those of the caller and of root, if nobody else can
//! write or replace them. This is decided by the metadata of an opened file or folder, never by its
//! path, which could change its meaning between check and use.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Mode bits: the group or others may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Mode bit of a folder: only the owners of its files may rename and remove them.
const STICKY: u32 = 0o1000;

/// Users whose files are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Users(Vec<u32>);

impl Users {
    /// This user, and root.
    #[must_use]
    pub fn trusted_by(user: u32) -> Self {
        Self(vec![0, user])
    }

    /// Trusts one more user.
    #[must_use]
    pub fn with_user(mut self, user: Option<u32>) -> Self {
        self.0.extend(user);
        self
    }

    /// Why commands from a file or folder of a fleet must not be run.
    pub(super) fn reason_untrusted(&self, metadata: &Metadata) -> Option<String> {
        let (owner, mode) = (metadata.uid(), metadata.mode());
        if !self.0.contains(&owner) {
            return Some(format!(
                "it belongs to user {owner}; files of other users are not trusted"
            ));
        }
        (mode & WRITABLE_BY_OTHERS != 0).then(|| {
            let mode = mode & 0o7777;
            format!(
                "it is writable by others (mode {mode:04o}), so it is not trusted (chmod -R go-w)"
            )
        })
    }

    /// Why somebody else could replace the contents of a folder. `root`: the owner of `/`, which is
    /// root or its substitute in a user namespace.
    pub(super) fn reason_replaceable(&self, metadata: &Metadata, root: u32) -> Option<String> {
        let (owner, mode) = (metadata.uid(), metadata.mode());
        let hint = "choose a folder of your own with --dir";
        if owner != root && !self.0.contains(&owner) {
            return Some(format!(
                "it belongs to user {owner}, who could replace files in it ({hint})"
            ));
        }
        (mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0).then(|| {
            let mode = mode & 0o7777;
            format!(
                "it is writable by others (mode {mode:04o}), who could replace files in it ({hint}, or chmod go-w or +t)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_that_others_can_write_are_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let check = |mode: u32, trusts_content: bool, trusts_names: bool| {
            let mode = Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), mode).unwrap();
            let found = folder.path().metadata().unwrap();
            let own = Users::trusted_by(found.uid());
            assert_eq!(
                own.reason_untrusted(&found).is_none(),
                trusts_content,
                "{found:?}"
            );
            let above = own.reason_replaceable(&found, 0);
            assert_eq!(above.is_none(), trusts_names, "{found:?}");
            if found.uid() == 0 {
                // Root's files are trusted by everybody.
                let other = Users::trusted_by(1);
                assert_eq!(other.reason_untrusted(&found).is_none(), trusts_content);
                return;
            }
            let other = Users::trusted_by(found.uid() + 1);
            assert!(other.reason_untrusted(&found).is_some());
            assert!(other.reason_replaceable(&found, 0).is_some());
            assert!(
                other
                    .clone()
                    .with_user(Some(found.uid()))
                    .reason_untrusted(&found)
                    .is_none()
                    == trusts_content
            );
        };
        check(0o700, true, true);
        check(0o755, true, true);
        check(0o2755, true, true);
        check(0o770, false, false);
        check(0o702, false, false);
        check(0o2775, false, false);
        check(0o1777, false, true);
        check(0o3770, false, true);
    }
}
