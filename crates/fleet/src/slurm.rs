//! Slurm: a job for each node, one job over several nodes, or an array of jobs,
//! through its commands `sinfo`, `sbatch`, `squeue`, `sacct` and `scancel`.
//!
//! It reads text in a `--format`, which has not changed since Slurm 15.08, rather than JSON, which
//! does change. A step counts as done only by the files of its node; Slurm gives reasons why a node
//! has not finished.

mod call;
mod jobs;
mod nodes;
mod script;
#[cfg(test)]
mod slurm_tests;

use std::collections::BTreeSet;
use std::path::Path;

use self::call::run_command;
use self::jobs::ListedJob;
use super::files::{Folder, IfExists, Readers};
use super::folder::FolderError;
use super::launcher::{
    Choice, JobState, LaunchError, Launcher, NodeRequest, Stage, Task, escape_controls,
};
use pinwise_format::shell;
use pinwise_record::FleetJob;

/// Maximum number of jobs of one query: command lines have a maximum length.
const MAX_JOBS_PER_QUERY: usize = 500;
/// Maximum number of commands of [`Launcher::plan`] shown in full.
const MAX_SHOWN_COMMANDS: usize = 3;

/// Starts nodes through Slurm, whose commands are on the path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slurm;

impl Launcher for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn choose(&self, request: &NodeRequest) -> Result<Choice, LaunchError> {
        let format = format!("--format={}", nodes::SINFO_FORMAT);
        let arguments = to_strings(&["--noheader", "--Node", "--all", &format]);
        let known = run_command("sinfo", &arguments)?.require_success("sinfo")?;
        nodes::choose(request, &nodes::parse_sinfo(&known)?)
    }

    fn plan(
        &self,
        task: &Task,
        request: &NodeRequest,
        choice: &Choice,
    ) -> Result<String, LaunchError> {
        let jobs = script::plan_jobs(task, request, choice)?;
        let mut text = script::write_script(task)?;
        text.push('\n');
        for job in jobs.iter().take(MAX_SHOWN_COMMANDS) {
            text.push_str(&format!("sbatch {}\n", shell::line(&job.arguments)));
        }
        if jobs.len() > MAX_SHOWN_COMMANDS {
            let more = jobs.len() - MAX_SHOWN_COMMANDS;
            text.push_str(&format!(
                "… and {more} more like these, one for each node\n"
            ));
        }
        Ok(text)
    }

    fn submit(
        &self,
        task: &Task,
        request: &NodeRequest,
        choice: &Choice,
        submitted: &str,
        on_job: &mut dyn FnMut(FleetJob),
    ) -> Result<(), LaunchError> {
        let jobs = script::plan_jobs(task, request, choice)?;
        save_script(&task.folder, &script::write_script(task)?)?;
        for script::JobRequest { node, arguments } in jobs {
            let output = run_command("sbatch", &arguments)?.require_success("sbatch")?;
            on_job(FleetJob {
                id: parse_job_id(&output)?,
                node,
                submitted: submitted.to_owned(),
            });
        }
        Ok(())
    }

    fn query_states(&self, task: &Task, jobs: &[FleetJob]) -> Result<Vec<JobState>, LaunchError> {
        let mut states = Vec::new();
        for chunk in jobs.chunks(MAX_JOBS_PER_QUERY) {
            states.extend(query_chunk(task, chunk)?);
        }
        Ok(states)
    }

    fn cancel(&self, task: &Task, jobs: &[FleetJob]) -> Result<(), LaunchError> {
        let name = script::format_job_name(&task.fleet);
        for chunk in jobs.chunks(MAX_JOBS_PER_QUERY) {
            // scancel fails if one of the jobs is unknown, and would end a job of another name if
            // numbers were reused.
            let listed = query_queue(&name, chunk)?;
            let open = listed
                .iter()
                .filter(|one| matches!(one.stage, Stage::Queued | Stage::Running));
            let open: BTreeSet<String> = open.map(|one| one.job.clone()).collect();
            if open.is_empty() {
                continue;
            }
            let mut arguments = to_strings(&["--quiet"]);
            arguments.extend(open);
            run_command("scancel", &arguments)?.require_success("scancel")?;
        }
        Ok(())
    }
}

fn to_strings(arguments: &[&str]) -> Vec<String> {
    arguments
        .iter()
        .map(|&argument| argument.to_owned())
        .collect()
}

fn query_chunk(task: &Task, jobs: &[FleetJob]) -> Result<Vec<JobState>, LaunchError> {
    let name = script::format_job_name(&task.fleet);
    let mut listed = query_queue(&name, jobs)?;
    let restarts = run_squeue(&format!("--Format={}", jobs::RESTARTS_FORMAT), jobs)?;
    let queue_ids: BTreeSet<String> = listed.iter().map(|one| one.job.clone()).collect();
    let forgotten: Vec<&FleetJob> = jobs
        .iter()
        .filter(|job| !queue_ids.contains(&job.id))
        .collect();
    listed.extend(read_accounting(&name, &forgotten)?);
    Ok(jobs::combine_states(
        jobs,
        &listed,
        &jobs::parse_restarts(&restarts),
    ))
}

/// Queries the queue's entries for jobs.
fn query_queue(name: &str, jobs: &[FleetJob]) -> Result<Vec<ListedJob>, LaunchError> {
    jobs::parse_squeue(
        &run_squeue(&format!("--format={}", jobs::SQUEUE_FORMAT), jobs)?,
        name,
    )
}

fn run_squeue(format: &str, jobs: &[FleetJob]) -> Result<String, LaunchError> {
    let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    let jobs = format!("--jobs={}", ids.join(","));
    let arguments = to_strings(&[
        "--noheader",
        "--array",
        "--all",
        "--states=all",
        &jobs,
        format,
    ]);
    let output = run_command("squeue", &arguments)?;
    // squeue fails if its only job is one that Slurm has forgotten; in a list, it skips such jobs.
    if !output.is_success && output.message.contains("Invalid job id") {
        return Ok(String::new());
    }
    output.require_success("squeue")
}

/// Accounting entries for jobs that the queue has forgotten; empty without accounting.
fn read_accounting(name: &str, jobs: &[&FleetJob]) -> Result<Vec<ListedJob>, LaunchError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    let jobs = format!("--jobs={}", ids.join(","));
    let format = format!("--format={}", jobs::SACCT_FORMAT);
    let arguments = ["--noheader", "--parsable2", "--allocations", &jobs, &format];
    match run_command("sacct", &to_strings(&arguments)) {
        Ok(output) if output.is_success => jobs::parse_sacct(&output.stdout, name),
        Ok(_) | Err(LaunchError::Absent { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Parses `sbatch --parsable`: `12` or `12;cluster`. A site's own checks may print before it.
fn parse_job_id(output: &str) -> Result<String, LaunchError> {
    let line = output.lines().map(str::trim).rfind(|line| !line.is_empty());
    let id = line
        .and_then(|line| line.split(';').next())
        .unwrap_or_default();
    if id.is_empty() || id.len() > 20 || !id.bytes().all(|b| b.is_ascii_digit()) {
        return Err(LaunchError::UnexpectedOutput {
            program: "sbatch".to_owned(),
            output: escape_controls(output.trim()),
        });
    }
    Ok(id.to_owned())
}

/// Writes `FOLDER/job.sh`, and makes the folder of logs: Slurm fails a job silently if it cannot
/// write its output.
fn save_script(path: &Path, script: &str) -> Result<(), LaunchError> {
    let folder = Folder::open(path).map_err(|error| FolderError::file(path, error))?;
    folder.ensure_folder("log", Readers::Owner)?;
    let script = script.as_bytes();
    folder.put("job.sh", script, IfExists::Replace, Readers::OwnerExecutes)?;
    Ok(())
}
