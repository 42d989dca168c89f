//! The fleet that an argument names: a folder, or an id of the store.

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

/// The newest fleet of the user's, by name.
pub(super) const LAST: &str = "last";
/// Fleets named if one must be chosen.
const MAX_NAMES: usize = 8;

/// A fleet that was found.
pub(super) struct FoundFleet {
    pub(super) folder: FleetFolder,
    pub(super) record: FleetRecord,
    /// Why nothing that the folder says may be run.
    fault: Option<String>,
}

impl FoundFleet {
    /// A folder that the user names by its path is read whoever owns it. One found by an id must be
    /// the user's own: an id does not say who made the folder.
    pub(super) fn at(path: &Path, is_named: bool) -> anyhow::Result<Self> {
        match FleetFolder::open_trusted(path, &launch::users()) {
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

    /// What it was submitted with, if that may be run.
    pub(super) fn launcher(&self) -> anyhow::Result<(Submission, Box<dyn Launcher>)> {
        if let Some(fault) = &self.fault {
            bail!("{fault}");
        }
        let submission = self.folder.submission()?;
        let launcher = launch::open_launcher(&submission)?;
        Ok((submission, launcher))
    }

    /// The scheduler's states of the fleet's jobs.
    pub(super) fn states(&self) -> anyhow::Result<Vec<JobState>> {
        let (_, launcher) = self.launcher()?;
        Ok(launcher.states(&self.task()?, &self.record.jobs)?)
    }

    /// Slurm's states of them; empty for other launchers, which are templates and run what a file
    /// says.
    pub(super) fn queue_states(&self) -> anyhow::Result<Vec<JobState>> {
        match self.launcher() {
            Ok((submission, _))
                if submission.template.is_none() && submission.launcher == launch::SLURM =>
            {
                Ok(Slurm.states(&self.task()?, &self.record.jobs)?)
            }
            // A fleet that may not be asked about has its records all the same.
            _ => Ok(Vec::new()),
        }
    }

    /// What is about to be done, with everything that identifies the fleet.
    pub(super) fn describe_action(&self, what: &str) -> String {
        let record = &self.record;
        format!(
            "Fleet {} (submitted {} from {}, in {}): {what}.\n",
            record.id,
            record.started,
            record.host,
            self.folder.path().display()
        )
    }

    /// As launchers want it.
    pub(super) fn task(&self) -> anyhow::Result<Task> {
        launch::task(&self.folder, &self.record)
    }
}

/// The fleet that an argument names: a folder, or an id of the store.
pub(super) fn find_fleet(global: &Global, name: &str) -> anyhow::Result<FoundFleet> {
    if let Some((path, is_named)) = folder_of(name) {
        return FoundFleet::at(&path, is_named);
    }
    let beside = default_folder(name);
    if name != LAST && beside.join("fleet.json").is_file() {
        return FoundFleet::at(&beside, false);
    }
    let record = load_stored(global, name)?;
    let Some(folder) = &record.folder else {
        bail!(
            "fleet {}: it has no folder (it was {}, all of it is in the store)",
            record.id,
            record.launcher
        );
    };
    let found = FoundFleet::at(Path::new(folder), false).with_context(|| {
        format!(
            "the folder of fleet {} is not here, or not yours; if it was copied, name the copy",
            record.id
        )
    })?;
    if !is_same(&found.record, &record) {
        bail!(
            "{}: another fleet is there now",
            found.folder.path().display()
        );
    }
    Ok(found)
}

/// The folder that an argument is, and whether it is a path rather than one
/// name, which may be an id.
pub(super) fn folder_of(name: &str) -> Option<(PathBuf, bool)> {
    let path = PathBuf::from(name);
    let is_path = name.contains('/');
    let is_folder = name != LAST && path.join("fleet.json").is_file();
    (is_path || is_folder).then_some((path, is_path))
}

/// Are these the same fleet?
pub(super) fn is_same(a: &FleetRecord, b: &FleetRecord) -> bool {
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
    match fleet_record(&store, name)? {
        Some(record) => Ok(record),
        None => bail!("{}", unknown(&store, name)?),
    }
}

/// A copy runs nothing: its jobs belong to the original folder.
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

/// The record of a fleet by its id or the beginning of it; `None` if there is none, which does not
/// mean that there are no nodes.
pub(super) fn fleet_record(store: &Store, name: &str) -> anyhow::Result<Option<FleetRecord>> {
    let ids = fleets(store)?;
    if name == LAST {
        return last(store, &ids).map(Some);
    }
    let fitting: Vec<&String> = match name {
        name if ids.iter().any(|id| id == name) => ids.iter().filter(|id| *id == name).collect(),
        name => ids.iter().filter(|id| id.starts_with(name)).collect(),
    };
    match fitting.as_slice() {
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

/// The user's newest fleet: others may keep theirs in the same store.
fn last(store: &Store, ids: &[String]) -> anyhow::Result<FleetRecord> {
    for id in ids {
        // An unreadable record is newer than this pinwise, or damaged; it is reported if asked for
        // by name.
        let record = store.load(id)?.decode::<FleetRecord>();
        if let Some(record) = record.ok().filter(is_own) {
            return Ok(record);
        }
    }
    let whose = if ids.is_empty() { "" } else { " of yours" };
    bail!("no fleet{whose} is in the store (pinwise fleet submit, pinwise fleet simulate)")
}

/// Does a fleet belong to the user? If it has a folder, the folder decides, not the record: anybody
/// who shares the store may have written that.
fn is_own(record: &FleetRecord) -> bool {
    if record.user.is_some_and(|user| user != effective_user()) {
        return false;
    }
    let Some(folder) = &record.folder else {
        return true;
    };
    match FleetFolder::open_trusted(Path::new(folder), &launch::users()) {
        Ok((_, there)) => is_same(&there, record),
        Err(FolderError::NoFleet { reason, .. }) => reason.kind() == io::ErrorKind::NotFound,
        Err(_) => false,
    }
}

/// Ids of the store's fleets, the newest first.
fn fleets(store: &Store) -> anyhow::Result<Vec<String>> {
    let filter = Filter {
        schema: Some(Kind::Fleet.name().to_owned()),
        ..Filter::default()
    };
    let found = store.find(&filter).context("the fleets of the store")?;
    Ok(found.lines.into_iter().map(|line| line.entry.id).collect())
}

pub(super) fn unknown(store: &Store, name: &str) -> anyhow::Result<String> {
    let ids = fleets(store)?;
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
