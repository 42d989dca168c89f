//! `fleet submit`: makes a fleet's folder from study files, and submits its jobs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::found::default_folder;
use super::launch;
use super::study::{self, FOLDER_PLACEHOLDER, Studies};
use crate::cli::args::{FleetSubmitArgs, Global};
use crate::cli::opening::{open_store, store_location};
use crate::cli::surroundings::find_own_program;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, plan};
use pinwise_fleet::check_id;
use pinwise_fleet::folder::{FleetFolder, NewFleetFolder, resolve_links};
use pinwise_fleet::gather::store_fleet;
use pinwise_fleet::launcher::{Choice, Launcher, NodeRequest, Task};
use pinwise_fleet::submission::Submission;
use pinwise_format::count;
use pinwise_machine::linux::{discover, effective_user, group_id, time_of_day};
use pinwise_record::{FleetJob, FleetRecord, Header};
use pinwise_store::Location;

pub(super) fn submit(
    global: &Global,
    args: &FleetSubmitArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let studies = study::read(&args.studies)?;
    let (launcher, template) = launch::find_launcher(&args.launcher)?;
    let submission = new_submission(global, args, template)?;
    let group = args.share_with.as_deref().map(parse_group).transpose()?;
    let (new_id, started) = plan::new_id_and_start();
    let id = args.id.clone().unwrap_or(new_id);
    check_id(&id).map_err(|reason| anyhow::anyhow!("--id {reason}"))?;
    let path = args.dir.clone().unwrap_or_else(|| default_folder(&id));
    let path = resolve_new_path(&path)?;
    let request = submission.to_node_request();
    let choice = launcher.choose(&request)?;
    for left in &choice.left_out {
        terminal.warn(&format!("not asked: {left}"));
    }
    if choice.count == 0 {
        bail!("no nodes left");
    }
    let record = new_record(
        id,
        started,
        launcher.as_ref(),
        &studies,
        &choice,
        &path,
        args,
    );
    if args.dry_run {
        let task = Task {
            fleet: record.header.id,
            folder: path,
            owner: effective_user(),
        };
        terminal.print(&launcher.plan(&task, &request, &choice)?)?;
        return Ok(Exit::Done);
    }
    refuse_used_id(global, &record.id)?;
    let program = PathBuf::from(find_own_program()?);
    let new_folder = NewFleetFolder {
        record: &record,
        submission: &submission,
        program: &program,
        users: &launch::trusted_users(),
        group,
    };
    let folder = FleetFolder::create(&path, &new_folder)?;
    if let Err(error) = add_files_and_store(global, &folder, &record, &studies) {
        folder.discard();
        return Err(error);
    }
    let mut record = record;
    submit_and_record(
        global,
        &folder,
        &mut record,
        launcher.as_ref(),
        &request,
        &choice,
    )?;
    terminal.print(&describe_job(&record, &folder))?;
    Ok(Exit::Done)
}

/// The id of a group, by its name or number.
fn parse_group(name: &str) -> anyhow::Result<u32> {
    let number = group_id(name).or_else(|| name.parse().ok());
    number.with_context(|| format!("--share-with '{name}': there is no such group"))
}

/// Writes what must exist before the first job: the studies' files, and the fleet in the store.
fn add_files_and_store(
    global: &Global,
    folder: &FleetFolder,
    record: &FleetRecord,
    studies: &Studies,
) -> anyhow::Result<()> {
    for (name, content) in &studies.files {
        folder.add_file(name, content.as_bytes())?;
    }
    if let Some(mut store) = open_store(global)? {
        store_fleet(record, &mut store)?;
    }
    Ok(())
}

/// Submits jobs, and writes each into the fleet's record as it is created.
pub(super) fn submit_and_record(
    global: &Global,
    folder: &FleetFolder,
    record: &mut FleetRecord,
    launcher: &dyn Launcher,
    request: &NodeRequest,
    choice: &Choice,
) -> anyhow::Result<()> {
    let task = launch::to_task(folder, record)?;
    let mut write_error = None;
    let mut on_job = |job: FleetJob| {
        record.jobs.push(job);
        if let Err(error) = folder.write_record(record) {
            write_error = Some(error);
        }
    };
    let submitted = launcher.submit(&task, request, choice, &time_of_day(), &mut on_job);
    if let Some(mut store) = open_store(global)? {
        store_fleet(record, &mut store)?;
    }
    let jobs = record.jobs.len();
    submitted.with_context(|| match jobs {
        0 => "nothing was submitted".to_owned(),
        n => format!(
            "{} submitted before this (pinwise fleet resume {} continues)",
            if n == 1 {
                "1 job was".to_owned()
            } else {
                format!("{n} jobs were")
            },
            folder.path().display()
        ),
    })?;
    write_error.map_or(Ok(()), |error| Err(error.into()))
}

fn new_submission(
    global: &Global,
    args: &FleetSubmitArgs,
    template: Option<String>,
) -> anyhow::Result<Submission> {
    let current_folder = std::env::current_dir().context("this folder")?;
    let store = match store_location(global)? {
        Location::Postgres(_) => global.store.clone(),
        // Nodes cannot reach a file of this host.
        Location::Sqlite(_) | Location::Nowhere => None,
    };
    Ok(Submission {
        count: args.nodes,
        list: args.nodelist.clone(),
        partition: args.partition.clone(),
        constraint: args.constraint.clone(),
        is_array: args.array,
        time_s: args.time.map(|time| time.as_secs().max(1)),
        account: args.account.clone(),
        launcher: args.launcher.clone(),
        template,
        store,
        submitted_from: Some(current_folder),
    })
}

fn new_record(
    id: String,
    started: String,
    launcher: &dyn Launcher,
    studies: &Studies,
    choice: &Choice,
    path: &Path,
    args: &FleetSubmitArgs,
) -> FleetRecord {
    let host = discover().ok().and_then(|(t, _)| t.identity.hostname);
    let mut steps = studies.steps.clone();
    for word in steps.iter_mut().flat_map(|step| &mut step.arguments) {
        if let Some(rest) = word
            .strip_prefix("sim:")
            .or(word.strip_prefix("--machine=sim:"))
            && rest.starts_with(FOLDER_PLACEHOLDER)
        {
            *word = word.replace(FOLDER_PLACEHOLDER, &path.display().to_string());
        }
    }
    let mut tags = args.tags.clone();
    tags.push(FleetRecord::tag(&id));
    tags.sort_unstable();
    tags.dedup();
    FleetRecord {
        header: Header::new(id, started, tags),
        host: host.unwrap_or_else(|| "unknown".to_owned()),
        user: Some(effective_user()),
        launcher: launcher.name().to_owned(),
        steps,
        nodes: choice.nodes.clone(),
        asked: choice.count,
        folder: Some(path.display().to_string()),
        jobs: Vec::new(),
        left_out: choice.left_out.clone(),
        planted: Vec::new(),
    }
}

/// The absolute path of a folder that does not exist yet, so that nodes find it under the same
/// name.
fn resolve_new_path(path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path).context("--dir")?;
    let path = resolve_links(&path).with_context(|| format!("--dir {}", path.display()))?;
    let text = path.to_str().context("--dir: it is not UTF-8")?;
    if text.chars().any(char::is_control) {
        bail!("--dir contains control characters");
    }
    if path.exists() {
        bail!(
            "{text} exists already: two fleets cannot share a folder (choose another with --dir or --id)"
        );
    }
    Ok(path)
}

/// Refuses an id that the store has already.
fn refuse_used_id(global: &Global, id: &str) -> anyhow::Result<()> {
    let Some(store) = open_store(global)? else {
        return Ok(());
    };
    match store.load(id) {
        Ok(found) if found.entry.id == id => bail!(
            "--id '{id}': the store has record {id} of {} already; two fleets cannot share an id",
            found.entry.time
        ),
        _ => Ok(()),
    }
}

fn describe_job(record: &FleetRecord, folder: &FleetFolder) -> String {
    let id = &record.id;
    format!(
        "Fleet {id}: {} submitted for {}, in {}.\nThen: pinwise fleet status {id}, pinwise fleet collect {id}, pinwise fleet report {id}.\n",
        count(record.jobs.len(), "job"),
        count(record.asked, "node"),
        folder.path().display()
    )
}
