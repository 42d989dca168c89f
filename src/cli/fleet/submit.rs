//! `fleet submit`: from study files to jobs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::found::default_folder;
use super::launch;
use super::study::{self, FOLDER, Studies};
use crate::cli::args::{FleetSubmitArgs, Global};
use crate::cli::opening::{location, open_store};
use crate::cli::surroundings::own_program;
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
    let submission = submission(global, args, template)?;
    let group = args.share_with.as_deref().map(group).transpose()?;
    let (made, started) = plan::new_id_and_start();
    let id = args.id.clone().unwrap_or(made);
    check_id(&id).map_err(|reason| anyhow::anyhow!("--id {reason}"))?;
    let path = args.dir.clone().unwrap_or_else(|| default_folder(&id));
    let path = absolute(&path)?;
    let wanted = submission.to_node_request();
    let choice = launcher.choose(&wanted)?;
    for left in &choice.left_out {
        terminal.warn(&format!("not asked: {left}"));
    }
    if choice.count == 0 {
        bail!("no nodes left");
    }
    let record = record(
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
        terminal.print(&launcher.plan(&task, &wanted, &choice)?)?;
        return Ok(Exit::Done);
    }
    refuse_known(global, &record.id)?;
    let program = PathBuf::from(own_program()?);
    let new_folder = NewFleetFolder {
        record: &record,
        submission: &submission,
        program: &program,
        users: &launch::users(),
        group,
    };
    let folder = FleetFolder::create(&path, &new_folder)?;
    if let Err(error) = prepare(global, &folder, &record, &studies) {
        folder.discard();
        return Err(error);
    }
    let mut record = record;
    start(
        global,
        &folder,
        &mut record,
        launcher.as_ref(),
        &wanted,
        &choice,
    )?;
    terminal.print(&describe_job(&record, &folder))?;
    Ok(Exit::Done)
}

/// The number of a group, which may be given itself.
fn group(name: &str) -> anyhow::Result<u32> {
    let number = group_id(name).or_else(|| name.parse().ok());
    number.with_context(|| format!("--share-with '{name}': there is no such group"))
}

/// What must exist before the first job.
fn prepare(
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

/// Submits, and records every job as it is created.
pub(super) fn start(
    global: &Global,
    folder: &FleetFolder,
    record: &mut FleetRecord,
    launcher: &dyn Launcher,
    wanted: &NodeRequest,
    choice: &Choice,
) -> anyhow::Result<()> {
    let task = launch::task(folder, record)?;
    let mut unwritten = None;
    let mut on_job = |job: FleetJob| {
        record.jobs.push(job);
        if let Err(error) = folder.write_record(record) {
            unwritten = Some(error);
        }
    };
    let submitted = launcher.submit(&task, wanted, choice, &time_of_day(), &mut on_job);
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
    unwritten.map_or(Ok(()), |error| Err(error.into()))
}

fn submission(
    global: &Global,
    args: &FleetSubmitArgs,
    template: Option<String>,
) -> anyhow::Result<Submission> {
    let from = std::env::current_dir().context("this folder")?;
    let store = match location(global)? {
        Location::Postgres(_) => global.store.clone(),
        // Nodes do not reach a file of this host.
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
        submitted_from: Some(from),
    })
}

fn record(
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
            && rest.starts_with(FOLDER)
        {
            *word = word.replace(FOLDER, &path.display().to_string());
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

/// Nodes find it under the same name.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
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

/// Two fleets cannot share an id.
fn refuse_known(global: &Global, id: &str) -> anyhow::Result<()> {
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
