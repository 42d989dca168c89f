//! Launchers by name, and the fleet that an argument names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::nodes;
use crate::cli::args::Global;
use crate::cli::open_store;
use pinwise_fleet::folder::{FleetFolder, FolderError};
use pinwise_fleet::launcher::{JobState, Launcher, Stage, Task};
use pinwise_fleet::slurm::Slurm;
use pinwise_fleet::submission::Submission;
use pinwise_fleet::template::{self, Template};
use pinwise_fleet::trust::Users;
use pinwise_machine::linux::effective_user;
use pinwise_record::FleetRecord;

/// The newest fleet of the user's, by name.
pub(super) const LAST: &str = "last";
/// The launcher that is no template.
const SLURM: &str = "slurm";
/// Nodes or jobs that are named.
const MOST_NAMES: usize = 20;
/// Largest template, bytes.
const LARGEST: u64 = 1024 * 1024;

/// The launcher of a name or a file, and the text of that file.
pub(super) fn named(name: &str) -> anyhow::Result<(Box<dyn Launcher>, Option<String>)> {
    if let Some(launcher) = built_in(name)? {
        return Ok((launcher, None));
    }
    let path = Path::new(name);
    if !name.contains(['/', '.']) {
        let names: Vec<&str> = template::BUILT_IN.iter().map(|(name, _)| *name).collect();
        bail!(
            "--launcher '{name}': no such launcher (slurm, {}, or the file of a template)",
            names.join(", ")
        );
    }
    let text = read_text(path).with_context(|| format!("--launcher {name}"))?;
    let launcher =
        Template::parse(&text).map_err(|error| anyhow::anyhow!("--launcher {name}:{error}"))?;
    Ok((Box::new(launcher), Some(text)))
}

fn built_in(name: &str) -> anyhow::Result<Option<Box<dyn Launcher>>> {
    if name == SLURM {
        return Ok(Some(Box::new(Slurm)));
    }
    let Some(text) = template::built_in(name) else {
        return Ok(None);
    };
    let launcher = Template::parse(text).with_context(|| format!("launcher {name}"))?;
    Ok(Some(Box::new(launcher)))
}

/// The launcher that a fleet was submitted with. No file is read for it: the
/// text of a template is part of the submission.
pub(super) fn of(submission: &Submission) -> anyhow::Result<Box<dyn Launcher>> {
    if let Some(text) = &submission.template {
        let launcher = Template::parse(text)
            .map_err(|error| anyhow::anyhow!("submission.json, template:{error}"))?;
        return Ok(Box::new(launcher));
    }
    let name = &submission.launcher;
    built_in(name)?.with_context(|| format!("submission.json: no such launcher: '{name}'"))
}

/// The text of a file of the user's.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    use std::io::Read;
    #[expect(clippy::disallowed_methods, reason = "a file that the user names")]
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        bail!("larger than {} MiB", LARGEST >> 20);
    }
    Ok(text)
}

/// Whose folders may say what is run.
pub(super) fn users() -> Users {
    Users::of(effective_user())
}

/// A fleet that was found.
pub(super) struct Found {
    pub(super) folder: FleetFolder,
    pub(super) record: FleetRecord,
    /// Why nothing that the folder says may be run.
    fault: Option<String>,
}

impl Found {
    /// A folder that the user names by its path is read whoever it belongs to.
    /// One that was found by an id must be the user's own: an id says nothing
    /// of who made the folder.
    pub(super) fn at(path: &Path, is_named: bool) -> anyhow::Result<Self> {
        match FleetFolder::own(path, &users()) {
            Ok((folder, record)) => Ok(Self {
                fault: copied(&folder, &record),
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

    /// What it was submitted with, where that may be run.
    pub(super) fn launcher(&self) -> anyhow::Result<(Submission, Box<dyn Launcher>)> {
        if let Some(fault) = &self.fault {
            bail!("{fault}");
        }
        let submission = self.folder.submission()?;
        let launcher = of(&submission)?;
        Ok((submission, launcher))
    }

    /// What the scheduler says of the fleet's jobs.
    pub(super) fn states(&self) -> anyhow::Result<Vec<JobState>> {
        let (_, launcher) = self.launcher()?;
        Ok(launcher.states(&self.task()?, &self.record.jobs)?)
    }

    /// What Slurm says of them; nothing of other launchers, which are
    /// templates and run what a file says.
    pub(super) fn queue_states(&self) -> anyhow::Result<Vec<JobState>> {
        match self.launcher() {
            Ok((submission, _))
                if submission.template.is_none() && submission.launcher == SLURM =>
            {
                Ok(Slurm.states(&self.task()?, &self.record.jobs)?)
            }
            // A fleet that may not be asked about has its records all the same.
            _ => Ok(Vec::new()),
        }
    }

    /// What is about to be done, with all that identifies the fleet.
    pub(super) fn named(&self, what: &str) -> String {
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
        task(&self.folder, &self.record)
    }
}

/// The fleet that an argument names: a folder, or an id of the store.
pub(super) fn found(global: &Global, name: &str) -> anyhow::Result<Found> {
    if let Some((path, is_named)) = folder_of(name) {
        return Found::at(&path, is_named);
    }
    let beside = default_folder(name);
    if name != LAST && beside.join("fleet.json").is_file() {
        return Found::at(&beside, false);
    }
    let record = stored(global, name)?;
    let Some(folder) = &record.folder else {
        bail!(
            "fleet {}: it has no folder (it was {}, all of it is in the store)",
            record.id,
            record.launcher
        );
    };
    let found = Found::at(Path::new(folder), false).with_context(|| {
        format!(
            "the folder of fleet {} is not here, or not yours; where it was copied to, name that",
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

/// Where a fleet's folder is made unless it is said.
pub(super) fn default_folder(id: &str) -> PathBuf {
    Path::new("pinwise-fleet").join(id)
}

fn stored(global: &Global, name: &str) -> anyhow::Result<FleetRecord> {
    let Some(store) = open_store(global)? else {
        bail!("fleet '{name}': --store none knows no fleets; name its folder");
    };
    match nodes::fleet_record(&store, name)? {
        Some(record) => Ok(record),
        None => bail!("{}", nodes::unknown(&store, name)?),
    }
}

/// Of a copy nothing is run: its jobs belong to the folder that it is of.
fn copied(folder: &FleetFolder, fleet: &FleetRecord) -> Option<String> {
    let first = fleet.folder.as_deref().unwrap_or_default();
    match Path::new(first).canonicalize() {
        Ok(path) if path == folder.path() => None,
        _ => Some(format!(
            "{} is a copy of {first}, and jobs are asked about there only",
            folder.path().display()
        )),
    }
}

/// A fleet as launchers want it.
pub(super) fn task(folder: &FleetFolder, fleet: &FleetRecord) -> anyhow::Result<Task> {
    Ok(Task {
        fleet: fleet.id.clone(),
        folder: folder.path().to_owned(),
        owner: folder.owner()?,
    })
}

/// What is said of nodes whose jobs ended badly, by node.
pub(super) fn words(states: &[JobState]) -> BTreeMap<String, String> {
    let failed = states.iter().filter(|state| state.stage == Stage::Failed);
    failed
        .filter_map(|state| Some((state.node.clone()?, state.words.clone())))
        .collect()
}

/// Names, the first of many.
pub(super) fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).map(String::as_str);
    let more = names.len().saturating_sub(MOST_NAMES);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
