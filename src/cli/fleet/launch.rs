//! Finds launchers by name, and prepares what they take.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use pinwise_fleet::folder::FleetFolder;
use pinwise_fleet::launcher::{JobState, Launcher, Stage, Task};
use pinwise_fleet::slurm::Slurm;
use pinwise_fleet::submission::Submission;
use pinwise_fleet::template::{self, Template};
use pinwise_fleet::trust::Users;
use pinwise_machine::linux::effective_user;
use pinwise_record::FleetRecord;

/// The launcher that is not a template.
pub(super) const SLURM: &str = "slurm";
/// The most nodes or jobs that a message lists.
const MAX_NAMES: usize = 20;
/// The largest template or study file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The launcher of a name or a template file, and the text of that file.
pub(super) fn find_launcher(name: &str) -> anyhow::Result<(Box<dyn Launcher>, Option<String>)> {
    if let Some(launcher) = open_built_in(name)? {
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

fn open_built_in(name: &str) -> anyhow::Result<Option<Box<dyn Launcher>>> {
    if name == SLURM {
        return Ok(Some(Box::new(Slurm)));
    }
    let Some(text) = template::find_built_in(name) else {
        return Ok(None);
    };
    let launcher = Template::parse(text).with_context(|| format!("launcher {name}"))?;
    Ok(Some(Box::new(launcher)))
}

/// The launcher that a fleet was submitted with. No file is read for it: the
/// text of a template is part of the submission.
pub(super) fn open_launcher(submission: &Submission) -> anyhow::Result<Box<dyn Launcher>> {
    if let Some(text) = &submission.template {
        let launcher = Template::parse(text)
            .map_err(|error| anyhow::anyhow!("submission.json, template:{error}"))?;
        return Ok(Box::new(launcher));
    }
    let name = &submission.launcher;
    open_built_in(name)?.with_context(|| format!("submission.json: no such launcher: '{name}'"))
}

/// Reads a template or study file that the user names.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    use std::io::Read;
    #[expect(clippy::disallowed_methods, reason = "a file that the user names")]
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("larger than {} MiB", MAX_FILE_BYTES >> 20);
    }
    Ok(text)
}

/// The users whose folders may contain commands to run.
pub(super) fn trusted_users() -> Users {
    Users::trusted_by(effective_user())
}

/// A fleet as launchers take it.
pub(super) fn to_task(folder: &FleetFolder, fleet: &FleetRecord) -> anyhow::Result<Task> {
    Ok(Task {
        fleet: fleet.id.clone(),
        folder: folder.path().to_owned(),
        owner: folder.owner()?,
    })
}

/// Why jobs failed, as the scheduler describes it, by node.
pub(super) fn list_failure_reasons(states: &[JobState]) -> BTreeMap<String, String> {
    let failed = states.iter().filter(|state| state.stage == Stage::Failed);
    failed
        .filter_map(|state| Some((state.node.clone()?, state.description.clone())))
        .collect()
}

/// Lists the first names, and the number of the others.
pub(super) fn list_names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(String::as_str);
    let more = names.len().saturating_sub(MAX_NAMES);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
