//! The folder that submitter and nodes share.
//!
//! ```text
//! FOLDER/fleet.json                       the fleet's record: nodes, steps, jobs
//! FOLDER/submission.json                  how it was submitted, so that it can be resumed
//! FOLDER/pinwise                          the executable for the nodes
//! FOLDER/nodes/NODE/begun-ATTEMPT.json    the start of an attempt
//! FOLDER/nodes/NODE/ended-ATTEMPT.json    its end, unless the node was lost
//! FOLDER/nodes/NODE/STEP.json             the record of a step
//! FOLDER/nodes/NODE/STEP.done.json        how long it took, in which attempt
//! FOLDER/nodes/NODE/STEP.failed-ATTEMPT.json
//! FOLDER/nodes/NODE/node.json             all of that in one record
//! FOLDER/nodes/NODE/log                   output of the node's pinwise
//! FOLDER/nodes/NODE/.own/                 output of a running step
//! ```
//!
//! It belongs to the submitter and nobody else may read it, except for the records if it is shared
//! with a group. Its commands are run only if nobody else can have written them
//! ([`FleetFolder::open_trusted`]); results can be read from any folder ([`FleetFolder::open`]).
//! Unreadable files are reported.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::error::FolderError;
use super::files::{Folder, IfExists, Readers, to_json_line};
use super::hostlist::is_node_name;
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

/// The content of the folder of a fleet's nodes.
#[derive(Debug)]
pub struct NodeFolders {
    /// The nodes' folders, by name.
    pub nodes: Vec<NodeFolder>,
    /// Messages on entries that are untrusted or no nodes' folders.
    pub unusable: Vec<String>,
}

/// The contents and owner of a new fleet's folder.
#[derive(Debug, Clone)]
pub struct NewFleetFolder<'a> {
    /// The fleet's record.
    pub record: &'a FleetRecord,
    /// How it was submitted.
    pub submission: &'a Submission,
    /// The executable for its nodes.
    pub program: &'a Path,
    /// The users that may own it.
    pub users: &'a Users,
    /// The group that may read results.
    pub group: Option<u32>,
}

impl FleetFolder {
    /// Makes the folder of a new fleet, with its record, its submission, and the executable for its
    /// nodes. Nobody else may enter it, or replace it, whatever the umask.
    ///
    /// # Errors
    /// [`FolderError`] if it exists already or cannot be made; a half-made folder is removed.
    pub fn create(path: &Path, new_folder: &NewFleetFolder<'_>) -> Result<Self, FolderError> {
        let file_error = |reason| FolderError::file(path, reason);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| file_error(io::ErrorKind::InvalidInput.into()))?;
        // Submitter and nodes must use the same path.
        let parent = resolve_links(path.parent().unwrap_or(path)).map_err(file_error)?;
        let parent = Folder::open_parent(&parent, new_folder.users)?;
        let created = match parent.create_folder(name, new_folder.group) {
            Err(FolderError::File { reason, .. })
                if reason.kind() == io::ErrorKind::AlreadyExists =>
            {
                let path = path.display().to_string();
                return Err(FolderError::Exists { path });
            }
            created => created,
        };
        let path = parent.path().join(name);
        let folder = created.and_then(|_| {
            let folder = Self {
                folder: Arc::new(Folder::open_trusted(&path, new_folder.users)?),
            };
            folder.fill(new_folder)?;
            Ok(folder)
        });
        if folder.is_err() {
            // The folder was made by this call, so nothing else can be lost.
            let _ = std::fs::remove_dir_all(&path);
        }
        folder
    }

    fn fill(&self, new_folder: &NewFleetFolder<'_>) -> Result<(), FolderError> {
        self.folder.ensure_folder("nodes", Readers::Group)?;
        self.folder.ensure_folder("files", Readers::Owner)?;
        self.folder.copy_program("pinwise", new_folder.program)?;
        // Private, because the address of a store may contain a password.
        let submission = to_json_line(new_folder.submission);
        self.folder.put(
            "submission.json",
            &submission,
            IfExists::Replace,
            Readers::Owner,
        )?;
        self.write_record(new_folder.record)
    }

    /// Removes the folder of a fleet without submitted jobs.
    pub fn discard(self) {
        // If files remain, they only block another fleet with this name.
        let _ = std::fs::remove_dir_all(self.path());
    }

    /// Opens a fleet's folder to read results. It may be a copy or belong to anybody, so nothing in
    /// it may be run.
    ///
    /// # Errors
    /// [`FolderError`] if it does not exist, or its record cannot be read.
    pub fn open(path: &Path) -> Result<(Self, FleetRecord), FolderError> {
        let folder = resolve_existing(path)?;
        let opened = Folder::open(&folder).map_err(|reason| no_fleet(path, reason))?;
        Self::from_folder(opened)
    }

    /// Opens a fleet's folder whose commands may be run: only `users` can have written or can
    /// replace the folder, its record, the submission and the executable.
    ///
    /// # Errors
    /// [`FolderError::Untrusted`] if others could; as [`FleetFolder::open`].
    pub fn open_trusted(path: &Path, users: &Users) -> Result<(Self, FleetRecord), FolderError> {
        let folder = resolve_existing(path)?;
        let opened = match Folder::open_trusted(&folder, users) {
            Err(FolderError::File { reason, .. }) => return Err(no_fleet(path, reason)),
            opened => opened?,
        };
        let files = ["submission.json", "pinwise"].map(|name| opened.check_file(name));
        let folders = ["nodes", "files", "jobs", "log"];
        let folders = folders.map(|name| opened.open_folder(name).map(|_| ()));
        for checked in files.into_iter().chain(folders) {
            match checked {
                // A copy may lack some of them; nothing in it is run then.
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

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The user that owns it.
    ///
    /// # Errors
    /// [`FolderError`] if the system does not say.
    pub fn owner(&self) -> Result<u32, FolderError> {
        self.folder.owner()
    }

    /// Rewrites the fleet's record atomically.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written; it then stays as it was.
    pub fn write_record(&self, record: &FleetRecord) -> Result<(), FolderError> {
        self.folder
            .put(
                "fleet.json",
                &to_json_line(record),
                IfExists::Replace,
                Readers::Group,
            )
            .map(|_| ())
    }

    /// How the fleet was submitted.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be read.
    pub fn submission(&self) -> Result<Submission, FolderError> {
        self.folder.read_json("submission.json")
    }

    /// Adds a file for the nodes to read.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written.
    pub fn add_file(&self, name: &str, content: &[u8]) -> Result<PathBuf, FolderError> {
        let files = self.folder.open_folder("files")?;
        files.put(name, content, IfExists::Replace, Readers::Owner)?;
        Ok(files.path().join(name))
    }

    /// Waits for the fleet's lock among the processes of this host; closing the file releases it.
    ///
    /// # Errors
    /// [`FolderError`] if the file system has no locks.
    pub fn lock(&self) -> Result<std::fs::File, FolderError> {
        let file = self.folder.touch("turn", Readers::Owner)?;
        file.lock()
            .map_err(|error| FolderError::file(&self.path().join("turn"), error))?;
        Ok(file)
    }

    /// Opens a node's folder, making it if it is missing.
    ///
    /// # Errors
    /// [`FolderError`] if the name is not a node's, or the folder cannot be made.
    pub fn ensure_node(&self, name: &str) -> Result<NodeFolder, FolderError> {
        if !is_node_name(name) {
            let path = self.path().join("nodes").join(name);
            let reason =
                "names of nodes have letters, digits, -, _ and . only, and 'report' is reserved";
            return Err(FolderError::damaged(&path, reason));
        }
        // The folder `nodes` is not made again: the fleet may have been removed.
        let nodes = self.folder.open_folder("nodes")?;
        nodes.ensure_folder(name, Readers::Group)?;
        Ok(NodeFolder::new(Arc::new(nodes), name))
    }

    /// Lists the folders of nodes.
    ///
    /// # Errors
    /// [`FolderError`] if they cannot be listed.
    pub fn list_nodes(&self) -> Result<NodeFolders, FolderError> {
        let parent = Arc::new(self.folder.open_folder("nodes")?);
        let (mut nodes, mut unusable) = (Vec::new(), Vec::new());
        for name in parent.list_names()? {
            let path = parent.path().join(&name);
            match parent.open_folder(&name) {
                Ok(_) if is_node_name(&name) => nodes.push(NodeFolder::new(parent.clone(), &name)),
                Err(error @ FolderError::Untrusted { .. }) => unusable.push(error.to_string()),
                _ => unusable.push(format!("{}: not a node's folder", path.display())),
            }
        }
        Ok(NodeFolders { nodes, unusable })
    }
}

fn no_fleet(path: &Path, reason: io::Error) -> FolderError {
    FolderError::NoFleet {
        path: path.display().to_string(),
        reason,
    }
}

fn resolve_existing(path: &Path) -> Result<PathBuf, FolderError> {
    path.canonicalize().map_err(|reason| no_fleet(path, reason))
}

/// Resolves symbolic links, which others could change later; the end of the path may be missing.
///
/// # Errors
/// The system's error.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(error);
            };
            Ok(resolve_links(parent)?.join(name))
        }
        found => found,
    }
}

/// Checks the names in a fleet's record, which become parts of commands and paths.
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
        .find(|node| !is_node_name(node))
    {
        return Err(format!("'{odd}' is not the name of a node"));
    }
    match record.jobs.iter().find(|job| !is_job_id(&job.id)) {
        Some(odd) => Err(format!("'{}' is not the id of a job", odd.id)),
        None => Ok(()),
    }
}
