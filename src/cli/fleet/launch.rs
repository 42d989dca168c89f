//! Launchers by name, and the fleet that an argument names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::nodes;
use crate::cli::args::Global;
use crate::cli::open_store;
use crate::fleet::folder::FleetFolder;
use crate::fleet::launcher::{JobState, Launcher, Stage, Task};
use crate::fleet::slurm::Slurm;
use crate::fleet::submission::Submission;
use crate::fleet::template::{self, Template};
use crate::record::FleetRecord;

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
            "--launcher '{name}': there is no such launcher (slurm, {}, or the file of a template)",
            names.join(", ")
        );
    }
    let text = read_text(path).with_context(|| format!("--launcher {name}"))?;
    let launcher =
        Template::parse(&text).map_err(|error| anyhow::anyhow!("--launcher {name}:{error}"))?;
    Ok((Box::new(launcher), Some(text)))
}

fn built_in(name: &str) -> anyhow::Result<Option<Box<dyn Launcher>>> {
    if name == "slurm" {
        return Ok(Some(Box::new(Slurm)));
    }
    let Some(text) = template::built_in(name) else {
        return Ok(None);
    };
    let launcher = Template::parse(text).with_context(|| format!("launcher {name}"))?;
    Ok(Some(Box::new(launcher)))
}

/// The launcher that a fleet was submitted with.
pub(super) fn of(submission: &Submission) -> anyhow::Result<Box<dyn Launcher>> {
    match &submission.template {
        Some(text) => {
            let launcher = Template::parse(text)
                .map_err(|error| anyhow::anyhow!("submission.json, template:{error}"))?;
            Ok(Box::new(launcher))
        }
        None => Ok(named(&submission.launcher)?.0),
    }
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

/// The fleet that an argument names: a folder, or an id of the store.
pub(super) fn found(global: &Global, name: &str) -> anyhow::Result<(FleetFolder, FleetRecord)> {
    let path = Path::new(name);
    if name.contains('/') || path.join("fleet.json").is_file() {
        return Ok(FleetFolder::open(path)?);
    }
    let beside = default_folder(name);
    if beside.join("fleet.json").is_file() {
        return Ok(FleetFolder::open(&beside)?);
    }
    let record = stored(global, name)?;
    let Some(folder) = &record.folder else {
        bail!(
            "fleet {}: it has no folder (it was {}, all of it is in the store)",
            record.id,
            record.launcher
        );
    };
    let (folder, there) = FleetFolder::open(Path::new(folder)).with_context(|| {
        format!(
            "the folder of fleet {} is not here; where it was copied to, name that",
            record.id
        )
    })?;
    if (&there.id, &there.started) != (&record.id, &record.started) {
        bail!("{}: another fleet is there by now", folder.path().display());
    }
    Ok((folder, there))
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

/// A folder that came from elsewhere says how jobs are asked about, too: what
/// it says is run for fleets only that were submitted here.
pub(super) fn refuse_copy(folder: &FleetFolder, fleet: &FleetRecord) -> anyhow::Result<()> {
    let first = fleet.folder.as_deref().unwrap_or_default();
    match Path::new(first).canonicalize() {
        Ok(path) if path == folder.path() => Ok(()),
        _ => bail!(
            "{} is a copy of {first}, and jobs are asked about there only",
            folder.path().display()
        ),
    }
}

/// What the scheduler says of a fleet's jobs; a note where it cannot be asked.
pub(super) fn states(folder: &FleetFolder, fleet: &FleetRecord) -> Result<Vec<JobState>, String> {
    let told = |error: anyhow::Error| {
        format!("The scheduler cannot be asked, so this is what the folder tells: {error:#}.")
    };
    refuse_copy(folder, fleet).map_err(told)?;
    let submission = folder.submission().map_err(|error| told(error.into()))?;
    let launcher = of(&submission).map_err(told)?;
    let states = launcher.states(&task(folder, fleet), &fleet.jobs);
    states.map_err(|error| told(error.into()))
}

/// A fleet as launchers want it.
pub(super) fn task(folder: &FleetFolder, fleet: &FleetRecord) -> Task {
    Task {
        fleet: fleet.id.clone(),
        folder: folder.path().to_owned(),
    }
}

/// What is said of nodes whose jobs ended badly, by node.
pub(super) fn words(states: &[JobState]) -> BTreeMap<String, String> {
    let failed = states.iter().filter(|state| state.stage == Stage::Failed);
    failed
        .filter_map(|state| Some((state.node.clone()?, state.words.clone())))
        .collect()
}
