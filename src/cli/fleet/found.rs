//! Finds the fleet that an argument names: a folder, or an id of the store.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::launch;
use crate::cli::args::Global;
use crate::cli::opening::open_store;
use pinwise_fleet::folder::{FleetFolder, FolderError};
use pinwise_fleet::launcher::{JobState, Launcher, Task};
use pinwise_fleet::slurm::Slurm;
use pinwise_fleet::submission::Submission;
use pinwise_machine::linux::effective_user;
use pinwise_record::{FleetRecord, Kind};
use pinwise_store::{Filter, Store};

/// The argument for the user's newest fleet.
pub(super) const LAST: &str = "last";
/// The most fleets that an error lists.
const MAX_NAMES: usize = 8;

/// A fleet's folder and record.
pub(super) struct FoundFleet {
    pub(super) folder: FleetFolder,
    pub(super) record: FleetRecord,
    /// Why no command of the folder may be run; `None` if it may.
    fault: Option<String>,
}

impl FoundFleet {
    /// Opens a fleet's folder. One that the user named by its path is read whoever owns it. One
    /// found by an id must be the user's own: an id does not say who made the folder.
    pub(super) fn open(path: &Path, is_named: bool) -> anyhow::Result<Self> {
        match FleetFolder::open_trusted(path, &launch::trusted_users()) {
            Ok((folder, record)) => Ok(Self {
                fault: find_copy_fault(&folder, &record),
                folder,
                record,
            }),
            Err(error @ FolderError::Untrusted { .. }) if is_named => {
                let (folder, record) = FleetFolder::open(path)?;
                Ok(Self {
                    folder,
                    record,
                    fault: Some(error.to_string()),
                })
            }
            Err(error @ FolderError::Untrusted { .. }) => Err(error).context(
                "the fleet's folder is not followed (to read what is in it, name its path)",
            ),
            Err(error) => Err(error.into()),
        }
    }

    /// The launcher that submitted the fleet; an error if it may not be run.
    pub(super) fn open_launcher(&self) -> anyhow::Result<(Submission, Box<dyn Launcher>)> {
        if let Some(fault) = &self.fault {
            bail!("{fault}");
        }
        let submission = self.folder.submission()?;
        let launcher = launch::open_launcher(&submission)?;
        Ok((submission, launcher))
    }

    /// Queries the scheduler for the states of the fleet's jobs.
    pub(super) fn query_jobs(&self) -> anyhow::Result<Vec<JobState>> {
        let (_, launcher) = self.open_launcher()?;
        Ok(launcher.query_states(&self.task()?, &self.record.jobs)?)
    }

    /// Queries Slurm for the states of the jobs; empty for other launchers, which are templates: a
    /// query would run commands of a file.
    pub(super) fn query_slurm(&self) -> anyhow::Result<Vec<JobState>> {
        match self.open_launcher() {
            Ok((submission, _))
                if submission.template.is_none() && submission.launcher == launch::SLURM =>
            {
                Ok(Slurm.query_states(&self.task()?, &self.record.jobs)?)
            }
            // The records of a fleet can be collected even if its launcher may not be run.
            _ => Ok(Vec::new()),
        }
    }

    /// Describes what is about to be done, with everything that identifies the fleet.
    pub(super) fn describe_action(&self, action: &str) -> String {
        let record = &self.record;
        format!(
            "Fleet {} (submitted {} from {}, in {}): {action}.\n",
            record.id,
            record.started,
            record.host,
            self.folder.path().display()
        )
    }

    /// The fleet as launchers take it.
    pub(super) fn task(&self) -> anyhow::Result<Task> {
        launch::to_task(&self.folder, &self.record)
    }
}

/// Finds the fleet that an argument names: a folder, or an id of the store.
pub(super) fn find_fleet(global: &Global, name: &str) -> anyhow::Result<FoundFleet> {
    if let Some((path, is_named)) = parse_folder(name) {
        return FoundFleet::open(&path, is_named);
    }
    let beside = default_folder(name);
    if name != LAST && beside.join("fleet.json").is_file() {
        return FoundFleet::open(&beside, false);
    }
    let record = load_stored(global, name)?;
    let Some(folder) = &record.folder else {
        bail!(
            "fleet {}: it has no folder (it was {}, all of it is in the store)",
            record.id,
            record.launcher
        );
    };
    let found = FoundFleet::open(Path::new(folder), false).with_context(|| {
        format!(
            "the folder of fleet {} is not here, or not yours; if it was copied, name the copy",
            record.id
        )
    })?;
    if !is_same_fleet(&found.record, &record) {
        bail!(
            "{}: another fleet is there now",
            found.folder.path().display()
        );
    }
    Ok(found)
}

/// The folder if an argument is one, and whether it is a path (with a slash) rather than a plain
/// name, which may also be an id.
pub(super) fn parse_folder(name: &str) -> Option<(PathBuf, bool)> {
    let path = PathBuf::from(name);
    let is_path = name.contains('/');
    let is_folder = name != LAST && path.join("fleet.json").is_file();
    (is_path || is_folder).then_some((path, is_path))
}

/// Are these the same fleet?
pub(super) fn is_same_fleet(a: &FleetRecord, b: &FleetRecord) -> bool {
    (&a.id, &a.started) == (&b.id, &b.started)
}

/// The default folder of a fleet.
pub(super) fn default_folder(id: &str) -> PathBuf {
    Path::new("pinwise-fleet").join(id)
}

fn load_stored(global: &Global, name: &str) -> anyhow::Result<FleetRecord> {
    let Some(store) = open_store(global)? else {
        bail!("fleet '{name}': --store none has no fleets; give its folder");
    };
    match find_record(&store, name)? {
        Some(record) => Ok(record),
        None => bail!("{}", describe_unknown_fleet(&store, name)?),
    }
}

/// Why a copied folder may run nothing: its jobs belong to the original. `None` for an original.
fn find_copy_fault(folder: &FleetFolder, fleet: &FleetRecord) -> Option<String> {
    let first = fleet.folder.as_deref().unwrap_or_default();
    match Path::new(first).canonicalize() {
        Ok(path) if path == folder.path() => None,
        _ => Some(format!(
            "{} is a copy of {first}; jobs can be queried there only",
            folder.path().display()
        )),
    }
}

/// Finds the record of a fleet by its id or a prefix of it. The store can have nodes of a fleet
/// without its record: then `None`.
pub(super) fn find_record(store: &Store, name: &str) -> anyhow::Result<Option<FleetRecord>> {
    let ids = list_fleet_ids(store)?;
    if name == LAST {
        return load_newest_own(store, &ids).map(Some);
    }
    let matching: Vec<&String> = match name {
        name if ids.iter().any(|id| id == name) => ids.iter().filter(|id| *id == name).collect(),
        name => ids.iter().filter(|id| id.starts_with(name)).collect(),
    };
    match matching.as_slice() {
        [] => Ok(None),
        [id] => {
            let stored = store.load(id)?;
            Ok(Some(stored.decode()?))
        }
        several => bail!(
            "fleet '{name}' is ambiguous: {} match: {}",
            several.len(),
            list_ids(several)
        ),
    }
}

/// Loads the user's newest fleet: other users may keep theirs in the same store.
fn load_newest_own(store: &Store, ids: &[String]) -> anyhow::Result<FleetRecord> {
    for id in ids {
        // An unreadable record, damaged or of a newer pinwise, is reported only if the user names
        // it.
        let record = store.load(id)?.decode::<FleetRecord>();
        if let Some(record) = record.ok().filter(is_own) {
            return Ok(record);
        }
    }
    let owner = if ids.is_empty() { "" } else { " of yours" };
    bail!("no fleet{owner} is in the store (pinwise fleet submit, pinwise fleet simulate)")
}

/// Does a fleet belong to the user? If it has a folder, the folder decides: anybody who shares the
/// store may have written the record.
fn is_own(record: &FleetRecord) -> bool {
    if record.user.is_some_and(|user| user != effective_user()) {
        return false;
    }
    let Some(folder) = &record.folder else {
        return true;
    };
    match FleetFolder::open_trusted(Path::new(folder), &launch::trusted_users()) {
        Ok((_, in_folder)) => is_same_fleet(&in_folder, record),
        Err(FolderError::NoFleet { reason, .. }) => reason.kind() == io::ErrorKind::NotFound,
        Err(_) => false,
    }
}

/// The ids of the store's fleets, newest first.
fn list_fleet_ids(store: &Store) -> anyhow::Result<Vec<String>> {
    let filter = Filter {
        schema: Some(Kind::Fleet.name().to_owned()),
        ..Filter::default()
    };
    let found = store.find(&filter).context("the fleets of the store")?;
    Ok(found.lines.into_iter().map(|line| line.entry.id).collect())
}

/// The error for a fleet that the store does not have, with the ids of those that it has.
pub(super) fn describe_unknown_fleet(store: &Store, name: &str) -> anyhow::Result<String> {
    let ids = list_fleet_ids(store)?;
    let ids: Vec<&String> = ids.iter().collect();
    Ok(if ids.is_empty() {
        format!("fleet '{name}': the store has no fleet, and there is no such folder")
    } else {
        format!(
            "fleet '{name}': the store has no such fleet; it has {}",
            list_ids(&ids)
        )
    })
}

fn list_ids(ids: &[&String]) -> String {
    let shown: Vec<&str> = ids.iter().take(MAX_NAMES).map(|id| id.as_str()).collect();
    let more = if ids.len() > MAX_NAMES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
