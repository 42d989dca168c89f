//! Adds what a database's URL lacks, from the same places as libpq: the password from `PGPASSWORD`
//! or the password file, and how the connection is protected from `PGSSLMODE`, `PGSSLROOTCERT` and
//! `~/.postgresql/root.crt`.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::surroundings::find_named_folder;
use super::terminal::Terminal;
use pinwise_store::{Server, StoreError};

/// The most bytes that are read of a password file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Adds the user's password for a server, if there is one.
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
pub(super) fn add_password(server: &mut Server) {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        server.offer_password(&password);
        return;
    }
    let Some(path) = find_password_file() else {
        return;
    };
    match read_private_file(&path) {
        Ok(text) => {
            let user = std::env::var("USER").unwrap_or_default();
            server.look_up_password(&text, &user);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => Terminal::plain().warn(&format!(
            "the passwords in {} are not used: {error}",
            path.display()
        )),
    }
}

/// Chooses how the connection to a server is protected.
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
pub(super) fn choose_security(server: &mut Server) -> Result<(), StoreError> {
    let mode = std::env::var("PGSSLMODE").ok();
    let file = || {
        let file = find_named_folder("HOME")?.join(".postgresql/root.crt");
        file.is_file().then(|| file.to_string_lossy().into_owned())
    };
    let authorities = std::env::var("PGSSLROOTCERT").ok().or_else(file);
    server.offer_security(mode.as_deref(), authorities.as_deref())
}

/// `PGPASSFILE`, else `~/.pgpass`.
fn find_password_file() -> Option<PathBuf> {
    find_named_folder("PGPASSFILE")
        .or_else(|| find_named_folder("HOME").map(|home| home.join(".pgpass")))
}

/// Reads a file; an error if other users may read it, too.
fn read_private_file(path: &Path) -> io::Result<String> {
    // A pipe or device must not block this.
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("other users may read it (chmod 600)"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_private_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        std::fs::write(&path, "*:*:*:*:x").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            read_private_file(&path).map_err(|error| error.to_string())
        };
        assert_eq!(with_mode(0o600).unwrap(), "*:*:*:*:x");
        for mode in [0o640, 0o604, 0o660] {
            assert!(with_mode(mode).unwrap_err().contains("chmod 600"));
        }
        assert!(
            read_private_file(folder.path())
                .unwrap_err()
                .to_string()
                .contains("not a file")
        );
    }
}
