//! The folder that submitter and nodes share.
//!
//! ```text
//! FOLDER/fleet.json                       what was asked; the submitter's
//! FOLDER/submission.json                  how it was asked, for resumptions
//! FOLDER/pinwise                          the executable, carried along
//! FOLDER/nodes/NODE/begun-ATTEMPT.json    an attempt has begun
//! FOLDER/nodes/NODE/ended-ATTEMPT.json    and has ended by itself
//! FOLDER/nodes/NODE/STEP.json             the record of a step
//! FOLDER/nodes/NODE/STEP.done.json        how long it took, in which attempt
//! FOLDER/nodes/NODE/STEP.failed-ATTEMPT.json
//! FOLDER/nodes/NODE/node.json             all of that in one record
//! FOLDER/nodes/NODE/log                   what the node's pinwise printed
//! FOLDER/nodes/NODE/.own/                 what a step prints, until it ends
//! ```
//!
//! It belongs to who submitted and nobody else may look into it, but for the
//! records where it is shared with a group. What it says is run only where
//! nobody else can have written it ([`FleetFolder::own`]); to read what nodes
//! found, any folder will do ([`FleetFolder::open`]). What cannot be read is
//! reported, not believed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::error::FolderError;
use super::files::{Folder, How, Readers, json};
use super::hostlist::is_plain;
use super::launcher::is_job_id;
use super::node_folder::NodeFolder;
use super::submission::Submission;
use super::trust::Users;
use pinwise_record::{FleetRecord, RecordError};

/// A fleet's folder.
#[derive(Debug, Clone)]
pub struct FleetFolder {
    folder: Arc<Folder>,
}

/// What a new fleet's folder holds, and whose it is.
#[derive(Debug, Clone)]
pub struct Founding<'a> {
    /// The fleet's record.
    pub record: &'a FleetRecord,
    /// How it was asked for.
    pub submission: &'a Submission,
    /// The executable that its nodes run.
    pub program: &'a Path,
    /// Who makes it.
    pub users: &'a Users,
    /// The group that may read results.
    pub group: Option<u32>,
}

impl FleetFolder {
    /// Makes the folder of a new fleet, with its record, how it was asked for,
    /// and the executable that its nodes run. Nobody else may enter it, or
    /// replace it, whatever the umask.
    ///
    /// # Errors
    /// [`FolderError`] where it is there already or cannot be made; what was
    /// made of it is then gone again.
    pub fn create(path: &Path, founding: &Founding<'_>) -> Result<Self, FolderError> {
        let wrong = |reason| FolderError::file(path, reason);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| wrong(io::ErrorKind::InvalidInput.into()))?;
        // All must use the same path for nodes.
        let parent = canonical(path.parent().unwrap_or(path)).map_err(wrong)?;
        let parent = Folder::above(&parent, founding.users)?;
        let made = match parent.create(name, founding.group) {
            Err(FolderError::File { reason, .. })
                if reason.kind() == io::ErrorKind::AlreadyExists =>
            {
                let path = path.display().to_string();
                return Err(FolderError::Exists { path });
            }
            made => made,
        };
        let path = parent.path().join(name);
        let filled = made.and_then(|_| {
            let folder = Self {
                folder: Arc::new(Folder::open_trusted(&path, founding.users)?),
            };
            folder.fill(founding)?;
            Ok(folder)
        });
        if filled.is_err() {
            // Only what was made here a moment ago.
            let _ = std::fs::remove_dir_all(&path);
        }
        filled
    }

    fn fill(&self, founding: &Founding<'_>) -> Result<(), FolderError> {
        self.folder.make("nodes", Readers::Group)?;
        self.folder.make("files", Readers::Owner)?;
        self.folder.copy_program("pinwise", founding.program)?;
        // It may hold the password of a store.
        let secret = json(founding.submission);
        self.folder
            .put("submission.json", &secret, How::Replace, Readers::Owner)?;
        self.write_record(founding.record)
    }

    /// Removes the folder of a fleet without submitted jobs.
    pub fn discard(self) {
        // What is left of it is seen by whoever chooses its name again.
        let _ = std::fs::remove_dir_all(self.path());
    }

    /// The fleet that a folder is of, to read what nodes found. It may have
    /// been copied from elsewhere, and may be anybody's: nothing that it says
    /// is to be run.
    ///
    /// # Errors
    /// [`FolderError`] where there is none, or its record cannot be read.
    pub fn open(path: &Path) -> Result<(Self, FleetRecord), FolderError> {
        let folder = canonicalise(path)?;
        let opened = Folder::open(&folder).map_err(|reason| no_fleet(path, reason))?;
        Self::from_folder(opened)
    }

    /// The fleet of a folder that only `users` can have written, nor can
    /// anybody else replace it, its record, the way it was asked for or the
    /// executable in it: what it says may be run.
    ///
    /// # Errors
    /// [`FolderError::Untrusted`] where others could; as [`FleetFolder::open`].
    pub fn own(path: &Path, users: &Users) -> Result<(Self, FleetRecord), FolderError> {
        let folder = canonicalise(path)?;
        let opened = match Folder::open_trusted(&folder, users) {
            Err(FolderError::File { reason, .. }) => return Err(no_fleet(path, reason)),
            opened => opened?,
        };
        let files = ["submission.json", "pinwise"].map(|name| opened.check(name));
        let folders = ["nodes", "files", "jobs", "log"].map(|name| opened.folder(name).map(|_| ()));
        for checked in files.into_iter().chain(folders) {
            match checked {
                // A copy may lack some; then nothing is run of it.
                Err(FolderError::File { .. }) => {}
                checked => checked?,
            }
        }
        Self::from_folder(opened)
    }

    fn from_folder(opened: Folder) -> Result<(Self, FleetRecord), FolderError> {
        let file = opened.path().join("fleet.json");
        let text = opened.read("fleet.json").map_err(|error| match error {
            FolderError::File { reason, .. } if reason.kind() == io::ErrorKind::NotFound => {
                no_fleet(opened.path(), reason)
            }
            other => other,
        })?;
        let record: FleetRecord = pinwise_record::read(&text)
            .map_err(|error: RecordError| FolderError::damaged(&file, error))?;
        check_record(&record).map_err(|reason| FolderError::damaged(&file, reason))?;
        let folder = Arc::new(opened);
        Ok((Self { folder }, record))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The user that it belongs to.
    ///
    /// # Errors
    /// [`FolderError`] where the system does not say.
    pub fn owner(&self) -> Result<u32, FolderError> {
        self.folder.owner()
    }

    /// Writes the fleet's record anew, at once.
    ///
    /// # Errors
    /// [`FolderError`] where it cannot be written; it then stays as it was.
    pub fn write_record(&self, record: &FleetRecord) -> Result<(), FolderError> {
        self.folder
            .put("fleet.json", &json(record), How::Replace, Readers::Group)
            .map(|_| ())
    }

    /// How it was asked for.
    ///
    /// # Errors
    /// [`FolderError`] where it cannot be read.
    pub fn submission(&self) -> Result<Submission, FolderError> {
        self.folder.read_json("submission.json")
    }

    /// Takes a file along, which nodes then read from the folder.
    ///
    /// # Errors
    /// [`FolderError`] where it cannot be written.
    pub fn carry(&self, name: &str, content: &[u8]) -> Result<PathBuf, FolderError> {
        let files = self.folder.folder("files")?;
        files.put(name, content, How::Replace, Readers::Owner)?;
        Ok(files.path().join(name))
    }

    /// Waits until no other process of this host has the fleet's turn; it is
    /// given back when the file is closed.
    ///
    /// # Errors
    /// [`FolderError`] where the folder knows no locks.
    pub fn turn(&self) -> Result<std::fs::File, FolderError> {
        let file = self.folder.touch("turn", Readers::Owner)?;
        file.lock()
            .map_err(|error| FolderError::file(&self.path().join("turn"), error))?;
        Ok(file)
    }

    /// A node's folder, made where it is missing.
    ///
    /// # Errors
    /// [`FolderError`] where the name is none of a node, or it cannot be made.
    pub fn make_node(&self, name: &str) -> Result<NodeFolder, FolderError> {
        if !is_plain(name) {
            let path = self.path().join("nodes").join(name);
            let reason = "names of nodes have letters, digits, -, _ and . only; report is taken";
            return Err(FolderError::damaged(&path, reason));
        }
        // Not the folder itself: where that is gone, nothing is made anew.
        let nodes = self.folder.folder("nodes")?;
        nodes.make(name, Readers::Group)?;
        Ok(NodeFolder::new(Arc::new(nodes), name))
    }

    /// Folders of nodes, by name, and what else lies among them.
    ///
    /// # Errors
    /// [`FolderError`] where they cannot be listed.
    pub fn nodes(&self) -> Result<(Vec<NodeFolder>, Vec<String>), FolderError> {
        let nodes = Arc::new(self.folder.folder("nodes")?);
        let (mut found, mut strange) = (Vec::new(), Vec::new());
        for name in nodes.names()? {
            let inner = nodes.path().join(&name);
            match nodes.folder(&name) {
                Ok(_) if is_plain(&name) => found.push(NodeFolder::new(nodes.clone(), &name)),
                Err(error @ FolderError::Untrusted { .. }) => strange.push(error.to_string()),
                _ => strange.push(format!("{}: not a node's folder", inner.display())),
            }
        }
        Ok((found, strange))
    }
}

fn no_fleet(path: &Path, reason: io::Error) -> FolderError {
    FolderError::NoFleet {
        path: path.display().to_string(),
        reason,
    }
}

fn canonicalise(path: &Path) -> Result<PathBuf, FolderError> {
    path.canonicalize().map_err(|reason| no_fleet(path, reason))
}

/// A path without symbolic links, which others may change later; its end may be
/// missing.
///
/// # Errors
/// The system's words.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(error);
            };
            Ok(canonical(parent)?.join(name))
        }
        found => found,
    }
}

/// What a fleet's record names goes into commands and paths.
fn check_record(record: &FleetRecord) -> Result<(), String> {
    super::check_id(&record.id)?;
    for step in &record.steps {
        pinwise_workload::study_file::check_name(&step.name)?;
    }
    let bound = record.jobs.iter().filter_map(|job| job.node.as_ref());
    if let Some(odd) = record
        .nodes
        .iter()
        .chain(bound)
        .find(|node| !is_plain(node))
    {
        return Err(format!("'{odd}' is not the name of a node"));
    }
    match record.jobs.iter().find(|job| !is_job_id(&job.id)) {
        Some(odd) => Err(format!("'{}' is not the id of a job", odd.id)),
        None => Ok(()),
    }
}
