//! The input of `sbatch`: one script, and the options of each job.
//!
//! A node runs its task under `srun --cpu-bind=none`, even in a job with one node: Slurm binds the
//! batch shell itself to the CPUs that it counts, and pinwise would see only a part of the machine.

use std::path::Path;

use crate::hostlist::compress;
use crate::launcher::{Choice, LaunchError, NodeRequest, Task};
use pinwise_format::shell;

/// Variables that would affect `srun` if a fleet is submitted from a shell inside another job:
/// sbatch passes on the submitter's environment. See srun(1), INPUT ENVIRONMENT VARIABLES.
const UNSET_VARIABLES: &str = "\
unset SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE
unset SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_TYPE SLURM_MEM_BIND_VERBOSE
unset SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_SORT SLURM_HINT SLURM_DISTRIBUTION
unset SLURM_THREADS_PER_CORE SLURM_CPUS_PER_TASK SLURM_NTASKS_PER_CORE SLURM_EXACT
unset SLURM_CORE_SPEC SLURM_THREAD_SPEC SLURM_EXPORT_ENV SLURM_OVERCOMMIT
unset SLURM_KILL_BAD_EXIT SLURM_WAIT SLURM_MPI_TYPE";

/// The name of a fleet's jobs.
pub(super) fn format_job_name(fleet: &str) -> String {
    format!("pinwise-{fleet}")
}

/// The script that every job of a fleet runs.
pub(super) fn write_script(task: &Task) -> Result<String, LaunchError> {
    let folder = shell::word(check_folder(&task.folder)?);
    let fleet = &task.fleet;
    Ok(format!(
        r#"#!/bin/sh
# Fleet {fleet}, written by pinwise: one task on each node of the job. A node
# that has done a step leaves it as it is.
set -eu

{UNSET_VARIABLES}
folder={folder}
job=$SLURM_JOB_ID
if [ -n "${{SLURM_ARRAY_JOB_ID:-}}" ]; then
  job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
fi
nodes=$SLURM_JOB_NUM_NODES

# Each task gets its own node's name from the slurmd that starts it.
exec srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 \
  --cpu-bind=none --mem-bind=none --mpi=none --kill-on-bad-exit=0 --no-kill \
  --wait=0 --input=none \
  /bin/sh -c 'exec "$1/pinwise" fleet node "$1" --node "$SLURMD_NODENAME" --job "$2"' \
  sh "$folder" "$job"
"#
    ))
}

/// A job to submit.
pub(super) struct JobRequest {
    /// The node that it is bound to; `None` leaves that to Slurm.
    pub(super) node: Option<String>,
    /// The arguments of `sbatch`.
    pub(super) arguments: Vec<String>,
}

/// Plans the jobs of a fleet.
pub(super) fn plan_jobs(
    task: &Task,
    request: &NodeRequest,
    choice: &Choice,
) -> Result<Vec<JobRequest>, LaunchError> {
    let folder = check_folder(&task.folder)?;
    let common = list_common_arguments(task, request, folder);
    let make_job = |node: Option<&String>, size: &[String]| {
        let mut arguments = common.clone();
        arguments.extend_from_slice(size);
        arguments.extend(node.map(|node| format!("--nodelist={node}")));
        arguments.push(format!("{folder}/job.sh"));
        JobRequest {
            node: node.cloned(),
            arguments,
        }
    };
    let size = |count: usize| [format!("--nodes={count}"), format!("--ntasks={count}")];
    if !choice.nodes.is_empty() {
        let one = size(1);
        return Ok(choice
            .nodes
            .iter()
            .map(|node| make_job(Some(node), &one))
            .collect());
    }
    let count = choice.count;
    if request.is_array {
        let [nodes, tasks] = size(1);
        return Ok(vec![make_job(
            None,
            &[nodes, tasks, format!("--array=1-{count}")],
        )]);
    }
    let [nodes, tasks] = size(count);
    let all = [
        nodes,
        tasks,
        "--ntasks-per-node=1".to_owned(),
        "--no-kill".to_owned(),
    ];
    Ok(vec![make_job(None, &all)])
}

/// Options of all jobs. `--exclusive` gives all CPUs of a node but only the requested memory, hence
/// `--mem=0`: sbatch(1).
fn list_common_arguments(task: &Task, request: &NodeRequest, folder: &str) -> Vec<String> {
    let log = if request.is_array { "%A_%a" } else { "%j" };
    let mut arguments = vec![
        "--parsable".to_owned(),
        format!("--job-name={}", format_job_name(&task.fleet)),
        format!("--output={}/log/{log}.txt", folder.replace('%', "%%")),
        "--open-mode=append".to_owned(),
        "--exclusive".to_owned(),
        "--mem=0".to_owned(),
        "--requeue".to_owned(),
        "--export=ALL".to_owned(),
    ];
    let option =
        |name: &str, value: &Option<String>| value.as_ref().map(|v| format!("--{name}={v}"));
    arguments.extend(option("partition", &request.partition));
    if !request.exclude.is_empty() {
        arguments.push(format!("--exclude={}", compress(&request.exclude)));
    }
    arguments.extend(option("constraint", &request.constraint));
    arguments.extend(option("account", &request.account));
    arguments.extend(
        request
            .time
            .map(|time| format!("--time={}", format_time(time.as_secs()))),
    );
    arguments
}

/// `H:MM:SS`, which Slurm rounds up to minutes.
fn format_time(seconds: u64) -> String {
    let seconds = seconds.max(1);
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Checks that a folder's path can be used in a script and in Slurm's file name patterns, where `\`
/// turns patterns off.
fn check_folder(folder: &Path) -> Result<&str, LaunchError> {
    let path = folder.to_str().filter(|path| {
        let is_odd = |c: char| c.is_control() || c == '\\';
        path.starts_with('/') && !path.contains(is_odd)
    });
    path.ok_or_else(|| {
        LaunchError::Impossible(format!(
            "{}: Slurm needs an absolute path without \\ or control characters (choose another \
             folder with --dir)",
            folder.display().to_string().escape_default()
        ))
    })
}
