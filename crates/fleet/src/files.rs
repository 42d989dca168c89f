//! Opened folders, and the files in them. Within a folder every access starts from its descriptor
//! and uses one name, so no symbolic link is followed and nothing can be exchanged between check
//! and use. Links are followed on the way to the outermost folder and to the program that is
//! copied; pipes and other files that block are refused.
//!
//! No reader ever sees a half-written file: it is written under a temporary name, synchronised, and
//! then moved to its name by `link`, which fails if the name is taken, or by `rename`, which
//! replaces.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::FolderError;
use super::trust::Users;
use pinwise_record::RecordError;

/// Largest file that is read, bytes; the record of a trace may be long.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// Number of names tried for a temporary file.
const MAX_TEMPORARY_NAMES: usize = 10_000;
/// Mode of the parent folders that are made for a fleet.
const PARENT_MODE: Mode = Mode::from_raw_mode(0o755);
/// Mode bit: the contents of a folder inherit its group.
const SETGID: u32 = 0o2000;

/// What to do if a file exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfExists {
    /// Keep the existing file.
    Keep,
    /// Replace it.
    Replace,
}

/// Who may read new files. Only the owner ever writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// The owner.
    Owner,
    /// The owner, who may also execute the file.
    OwnerExecutes,
    /// The owner, and the group that the fleet is shared with.
    Group,
}

/// An opened folder.
#[derive(Debug)]
pub(super) struct Folder {
    file: File,
    path: PathBuf,
    /// If given, everything opened below must belong to these users.
    users: Option<Users>,
    /// May its group read it?
    is_shared: bool,
}

impl Folder {
    /// Opens a folder for reading, whoever owns it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty())?;
        Self::from_file(File::from(opened), path.to_owned(), None)
    }

    /// Opens a folder that only `users` can write or replace, step by step from `/`, so that the
    /// path keeps leading to it.
    pub(super) fn open_trusted(path: &Path, users: &Users) -> Result<Self, FolderError> {
        let path_only = Self::descend(path, users, false)?;
        let mut folder = path_only
            .open_subfolder(".", OFlags::empty())
            .map_err(|error| FolderError::file(path, error))?;
        folder.path = path.to_owned();
        folder.fail_if(users.reason_untrusted(&folder.metadata()?))?;
        folder.users = Some(users.clone());
        Ok(folder)
    }

    /// Opens a folder in which only `users` can replace their files, making it if it is missing.
    /// Its files can be looked up and created, but not listed.
    pub(super) fn open_parent(path: &Path, users: &Users) -> Result<Self, FolderError> {
        let folder = Self::descend(path, users, true)?;
        folder.fail_if(users.reason_replaceable(&folder.metadata()?, find_owner_of_root()?))?;
        Ok(folder)
    }

    /// Opens a folder step by step from `/`, and checks every folder above the last.
    fn descend(path: &Path, users: &Users, makes_missing: bool) -> Result<Self, FolderError> {
        let owner = find_owner_of_root()?;
        let root = Self::open(Path::new("/"));
        let mut folder = root.map_err(|error| FolderError::file(path, error))?;
        for part in path.components() {
            let name = match part {
                Component::RootDir => continue,
                Component::Normal(name) => name.to_str(),
                _ => None,
            };
            let inner = folder.path.join(part);
            let name = name.ok_or_else(|| {
                FolderError::damaged(&inner, "paths with '..', or not in UTF-8, are refused")
            })?;
            folder.fail_if(users.reason_replaceable(&folder.metadata()?, owner))?;
            let next = match folder.open_subfolder(name, OFlags::PATH) {
                Err(error) if makes_missing && error.kind() == io::ErrorKind::NotFound => {
                    rustix::fs::mkdirat(&folder.file, name, PARENT_MODE)
                        .map_err(io::Error::from)
                        .and_then(|()| folder.open_subfolder(name, OFlags::PATH))
                }
                opened => opened,
            };
            folder = next.map_err(|error| FolderError::file(&inner, error))?;
        }
        Ok(folder)
    }

    fn from_file(file: File, path: PathBuf, users: Option<Users>) -> io::Result<Self> {
        let mode = file.metadata()?.mode();
        Ok(Self {
            file,
            path,
            users,
            is_shared: mode & 0o050 == 0o050,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn metadata(&self) -> Result<Metadata, FolderError> {
        let found = self.file.metadata();
        found.map_err(|error| FolderError::file(&self.path, error))
    }

    /// The user id of its owner.
    pub(super) fn owner(&self) -> Result<u32, FolderError> {
        Ok(self.metadata()?.uid())
    }

    /// An error if there is a reason not to trust this folder.
    fn fail_if(&self, untrusted: Option<String>) -> Result<(), FolderError> {
        match untrusted {
            Some(reason) => Err(FolderError::untrusted(&self.path, reason)),
            None => Ok(()),
        }
    }

    /// Opens a folder in this one.
    pub(super) fn open_folder(&self, name: &str) -> Result<Self, FolderError> {
        let path = self.path.join(name);
        let folder = self
            .open_in(name)
            .map_err(|error| FolderError::file(&path, error))?;
        if let Some(users) = &self.users {
            folder.fail_if(users.reason_untrusted(&folder.metadata()?))?;
        }
        Ok(folder)
    }

    fn open_in(&self, name: &str) -> io::Result<Self> {
        self.open_subfolder(check_name(name)?, OFlags::empty())
    }

    fn open_subfolder(&self, name: &str, more: OFlags) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        let opened = rustix::fs::openat(&self.file, name, flags, Mode::empty())?;
        let path = self.path.join(name);
        Self::from_file(File::from(opened), path, self.users.clone())
    }

    /// Makes a folder in this one, which must not exist yet; `group` may read its shared contents.
    pub(super) fn create_folder(
        &self,
        name: &str,
        group: Option<u32>,
    ) -> Result<Self, FolderError> {
        let path = self.path.join(name);
        let file_error = |error| FolderError::file(&path, error);
        let name = check_name(name).map_err(file_error)?;
        rustix::fs::mkdirat(&self.file, name, Mode::RWXU)
            .map_err(|error| file_error(error.into()))?;
        let mut folder = self.open_in(name).map_err(file_error)?;
        // Inherited ACLs go beyond the mode.
        for list in ["system.posix_acl_default", "system.posix_acl_access"] {
            let _ = rustix::fs::fremovexattr(&folder.file, list);
        }
        folder.is_shared = group.is_some();
        if let Some(group) = group {
            fchown(&folder.file, None, Some(group)).map_err(|error| {
                let reason = "it cannot be given to the group of --share-with";
                FolderError::damaged(&path, format!("{reason} ({error}; are you a member?)"))
            })?;
        }
        folder.set_mode(Readers::Group).map_err(file_error)?;
        Ok(folder)
    }

    /// Opens a folder in this one, making it if it is missing.
    pub(super) fn ensure_folder(&self, name: &str, readers: Readers) -> Result<Self, FolderError> {
        let path = self.path.join(name);
        let file_error = |error| FolderError::file(&path, error);
        let name = check_name(name).map_err(file_error)?;
        match rustix::fs::mkdirat(&self.file, name, Mode::RWXU) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => return self.open_folder(name),
            Err(error) => return Err(file_error(error.into())),
        }
        let mut folder = self.open_in(name).map_err(file_error)?;
        folder.is_shared = self.is_shared && readers == Readers::Group;
        self.give_to_owner(&folder.file).map_err(file_error)?;
        folder.set_mode(readers).map_err(file_error)?;
        Ok(folder)
    }

    /// Sets this folder's mode, whatever the umask.
    fn set_mode(&self, readers: Readers) -> io::Result<()> {
        let mode = match self.is_shared && readers == Readers::Group {
            true => 0o750 | SETGID,
            false => 0o700,
        };
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    fn file_mode(&self, readers: Readers) -> u32 {
        match readers {
            Readers::Group if self.is_shared => 0o640,
            Readers::Owner | Readers::Group => 0o600,
            Readers::OwnerExecutes => 0o700,
        }
    }

    /// Gives a new file to the folder's owner if root made it for another user, as in a container.
    fn give_to_owner(&self, new_file: &File) -> io::Result<()> {
        let (owner, maker) = (self.file.metadata()?.uid(), new_file.metadata()?.uid());
        match maker == 0 && owner != 0 {
            true => fchown(new_file, Some(owner), None),
            false => Ok(()),
        }
    }

    /// Opens a regular file in this folder for reading.
    fn open_file(&self, name: &str) -> Result<File, FolderError> {
        let path = self.path.join(name);
        // Opening a pipe would block.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = check_name(name).and_then(|name| {
            let opened = rustix::fs::openat(&self.file, name, flags, Mode::empty());
            opened.map_err(io::Error::from)
        });
        let file = opened.map(File::from).map_err(|error| {
            match error.raw_os_error() == Some(libc::ELOOP) {
                true => FolderError::damaged(&path, "it is not a regular file"),
                false => FolderError::file(&path, error),
            }
        })?;
        let found = file.metadata().map_err(|e| FolderError::file(&path, e))?;
        if !found.is_file() {
            return Err(FolderError::damaged(&path, "it is not a regular file"));
        }
        match self
            .users
            .as_ref()
            .and_then(|users| users.reason_untrusted(&found))
        {
            Some(reason) => Err(FolderError::untrusted(&path, reason)),
            None => Ok(file),
        }
    }

    /// Checks that this is a regular file, and a trusted one if [`Users`] are given.
    pub(super) fn check_file(&self, name: &str) -> Result<(), FolderError> {
        self.open_file(name).map(|_| ())
    }

    /// Reads a text file.
    pub(super) fn read(&self, name: &str) -> Result<String, FolderError> {
        let file = self.open_file(name)?;
        let path = self.path.join(name);
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| FolderError::file(&path, error))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            let reason = format!("larger than {} MiB", MAX_FILE_BYTES >> 20);
            return Err(FolderError::damaged(&path, reason));
        }
        String::from_utf8(text).map_err(|_| FolderError::damaged(&path, "it is not UTF-8"))
    }

    pub(super) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, FolderError> {
        serde_json::from_str(&self.read(name)?).map_err(|error| {
            FolderError::damaged(&self.path.join(name), RecordError::Damaged(error))
        })
    }

    /// Lists the names in this folder, sorted, except hidden ones and those not in UTF-8.
    pub(super) fn list_names(&self) -> Result<Vec<String>, FolderError> {
        let file_error = |error: rustix::io::Errno| FolderError::file(&self.path, error.into());
        let entries = Dir::read_from(&self.file).map_err(file_error)?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()))
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Writes a file atomically. False if it existed and was kept.
    pub(super) fn put(
        &self,
        name: &str,
        content: &[u8],
        if_exists: IfExists,
        readers: Readers,
    ) -> Result<bool, FolderError> {
        let file_error = |error| FolderError::file(&self.path.join(name), error);
        let temporary = self
            .write_temporary(name, content, readers)
            .map_err(file_error)?;
        let result = match if_exists {
            IfExists::Replace => self.rename(&temporary, name).map(|()| true),
            IfExists::Keep => self.link(&temporary, name),
        };
        if if_exists == IfExists::Keep || result.is_err() {
            self.remove(&temporary);
        }
        result.map_err(file_error)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    /// Links a temporary file to its name. False if the name is taken.
    fn link(&self, temporary: &str, name: &str) -> io::Result<bool> {
        let stat = |name: &str| rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW);
        let linked = rustix::fs::linkat(&self.file, temporary, &self.file, name, AtFlags::empty());
        let Err(error) = linked.map_err(io::Error::from) else {
            return Ok(true);
        };
        // NFS may lose its answer although the link was made.
        if stat(temporary).is_ok_and(|found| found.st_nlink == 2) {
            return Ok(true);
        }
        match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(false),
            // Without hard links, the first file is kept, too; of two simultaneous ones, either may
            // be.
            io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => match stat(name) {
                Ok(_) => Ok(false),
                Err(_) => self.rename(temporary, name).map(|()| true),
            },
            _ => Err(error),
        }
    }

    fn write_temporary(&self, name: &str, content: &[u8], readers: Readers) -> io::Result<String> {
        let name = check_name(name)?;
        for number in 0..MAX_TEMPORARY_NAMES {
            let temporary = format!(".{name}.{}-{number}", std::process::id());
            let mut file = match self.make_file(&temporary, readers) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let written = file.write_all(content).and_then(|()| file.sync_all());
            if let Err(error) = written {
                self.remove(&temporary);
                return Err(error);
            }
            return Ok(temporary);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Makes a new file for writing.
    fn make_file(&self, name: &str, readers: Readers) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(
            &self.file,
            check_name(name)?,
            flags,
            Mode::RUSR | Mode::WUSR,
        )?;
        let file = File::from(opened);
        self.give_to_owner(&file)?;
        file.set_permissions(Permissions::from_mode(self.file_mode(readers)))?;
        Ok(file)
    }

    /// Opens a file for writing, making it if it is missing.
    pub(super) fn touch(&self, name: &str, readers: Readers) -> Result<File, FolderError> {
        let file = match self.make_file(name, readers) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::WRONLY | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(&self.file, name, flags, Mode::empty());
                opened.map(File::from).map_err(io::Error::from)
            }
            file => file,
        };
        file.map_err(|error| FolderError::file(&self.path.join(name), error))
    }

    /// Copies an executable from elsewhere.
    pub(super) fn copy_program(&self, name: &str, from: &Path) -> Result<(), FolderError> {
        #[expect(clippy::disallowed_methods, reason = "the Edge reads its own program")]
        let source = File::open(from);
        let mut source = source.map_err(|error| FolderError::file(from, error))?;
        let copied = self
            .make_file(name, Readers::OwnerExecutes)
            .and_then(|mut file| {
                io::copy(&mut source, &mut file)?;
                file.sync_all()
            });
        copied.map_err(|error| FolderError::file(&self.path.join(name), error))
    }

    /// The time of a file's last modification, by the clock of the file server.
    pub(super) fn modified_at(&self, name: &str) -> Option<std::time::SystemTime> {
        self.open_file(name).ok()?.metadata().ok()?.modified().ok()
    }

    /// Removes a file, which may be gone already.
    pub(super) fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.file, name, AtFlags::empty());
    }
}

/// One line of JSON, of a type whose serialisation cannot fail.
pub(super) fn to_json_line(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Refuses anything but the name of a file or folder, such as a path.
fn check_name(name: &str) -> io::Result<&str> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(name)
}

fn find_owner_of_root() -> Result<u32, FolderError> {
    let root = Path::new("/");
    let found = std::fs::symlink_metadata(root).map_err(|e| FolderError::file(root, e))?;
    Ok(found.uid())
}
