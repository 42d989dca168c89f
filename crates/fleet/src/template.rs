//! Launchers described by a file: shell commands that start pinwise on one node, report its state,
//! and end it.
//!
//! ```toml
//! name = "ssh"
//! [submit]
//! command = "ssh -n {node} …"   # prints the job's id
//! job = "^([0-9]+)$"            # in the first group
//! [status]
//! command = "…"
//! states = [{ pattern = "^running", stage = "running" }]
//! [cancel]
//! command = "…"
//! [limits]
//! parallel = 8
//! ```
//!
//! The built-in templates are such files. Values are quoted on insertion, so that every name of a
//! node or a folder is one word of the command.

mod fill;
mod parse;
mod run;

use std::path::Path;
use std::sync::Arc;

pub use fill::{PLACEHOLDERS, Quoting};
pub use parse::Template;

use fill::{Values, fill};

use super::files::{Folder, IfExists, Readers};
use super::folder::FolderError;
use super::hostlist;
use super::launcher::{
    Choice, JobState, LaunchError, Launcher, NodeRequest, Stage, Task, is_job_id, join_to_line,
};
use super::node_folder::NodeFolder;
use pinwise_record::FleetJob;

/// Built-in templates: name and text.
pub const BUILT_IN: [(&str, &str); 4] = [
    ("local", include_str!("template/builtin/local.toml")),
    ("ssh", include_str!("template/builtin/ssh.toml")),
    ("pbs", include_str!("template/builtin/pbs.toml")),
    (
        "kubernetes",
        include_str!("template/builtin/kubernetes.toml"),
    ),
];

/// The text of a built-in template.
#[must_use]
pub fn find_built_in(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(other, _)| *other == name);
    found.map(|(_, text)| *text)
}

/// What is submitted for one node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeJob {
    node: String,
    /// The script's file name and content, if the template has a script.
    script: Option<(String, String)>,
    /// The command; `None` if only files are written.
    command: Option<String>,
}

impl Template {
    fn values_for(&self, task: &Task, request: &NodeRequest, node: &str) -> Values {
        let text = |path: &Path| path.display().to_string();
        let program = text(&task.folder.join("pinwise"));
        let folder = text(&task.folder);
        let owner = task.owner.to_string();
        let words = [&program, "fleet", "node", &folder, "--owner", &owner];
        let mut argv: Vec<String> = words.map(str::to_owned).to_vec();
        argv.extend(["--node", node].map(str::to_owned));
        argv.extend(self.arguments.iter().cloned());
        let seconds = request.time.map(|time| time.as_secs().max(1));
        let label = format!("pinwise-{}-{node}", task.fleet);
        Values {
            node: node.to_owned(),
            fleet: task.fleet.clone(),
            name: format!("pinwise-{}", task.fleet),
            label: to_dns_label(&label),
            folder,
            program,
            argv,
            log: text(&task.folder.join("nodes").join(node).join("log")),
            script: None,
            job: None,
            time: seconds.map(format_clock_time),
            seconds: seconds.map(|seconds| seconds.to_string()),
            partition: request.partition.clone(),
            constraint: request.constraint.clone(),
            account: request.account.clone(),
        }
    }

    fn prepare_job(&self, task: &Task, request: &NodeRequest, node: &str) -> NodeJob {
        let mut values = self.values_for(task, request, node);
        let script = self.script.as_ref().map(|script| {
            let name = format!("{node}{}", self.ending);
            (name, fill(script, &values, self.quoting))
        });
        let path = |name: &str| task.folder.join("jobs").join(name).display().to_string();
        values.script = script.as_ref().map(|(name, _)| path(name));
        let command = self.submit.as_ref();
        NodeJob {
            node: node.to_owned(),
            script,
            command: command.map(|text| fill(text, &values, Quoting::Shell)),
        }
    }

    fn render_for_job(&self, text: &str, task: &Task, job: &FleetJob) -> String {
        let node = job.node.as_deref().unwrap_or_default();
        let mut values = self.values_for(task, &NodeRequest::default(), node);
        values.job = Some(job.id.clone());
        fill(text, &values, Quoting::Shell)
    }

    fn refuse_unsupported(&self, request: &NodeRequest) -> Result<(), LaunchError> {
        let refused = [
            ("--partition", "partition", request.partition.is_some()),
            ("--constraint", "constraint", request.constraint.is_some()),
            ("--account", "account", request.account.is_some()),
            ("--time", "time", request.time.is_some()),
        ];
        for (option, placeholder, is_given) in refused {
            if is_given && !self.uses(placeholder) {
                return Err(LaunchError::Impossible(format!(
                    "{option}: the launcher {} does not use it (its template lacks {{{placeholder}}})",
                    self.name
                )));
            }
        }
        if request.is_array {
            return Err(LaunchError::Impossible(format!(
                "--array: the launcher {} starts one job per node; omit it",
                self.name
            )));
        }
        Ok(())
    }
}

impl Launcher for Template {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, request: &NodeRequest) -> Result<Choice, LaunchError> {
        self.refuse_unsupported(request)?;
        let nodes = match (&request.list, request.count, &self.prefix) {
            (Some(list), _, _) => {
                let nodes = hostlist::expand(list);
                nodes.map_err(|error| LaunchError::Impossible(format!("--nodelist {error}")))?
            }
            (None, Some(count), Some(prefix)) if count <= hostlist::MAX_NODES => {
                (1..=count).map(|n| format!("{prefix}{n}")).collect()
            }
            (None, count, _) => {
                let option = if count.is_some() { "--nodes: " } else { "" };
                return Err(LaunchError::Impossible(format!(
                    "{option}launcher {} cannot list nodes; pass --nodelist",
                    self.name
                )));
            }
        };
        Ok(Choice {
            count: nodes.len(),
            nodes,
            left_out: Vec::new(),
        })
    }

    fn plan(
        &self,
        task: &Task,
        request: &NodeRequest,
        choice: &Choice,
    ) -> Result<String, LaunchError> {
        let mut text = String::new();
        for node in &choice.nodes {
            let node_job = self.prepare_job(task, request, node);
            if let Some((name, script)) = &node_job.script {
                let path = task.folder.join("jobs").join(name);
                text.push_str(&format!("# {}\n{}\n", path.display(), script.trim_end()));
            }
            if let Some(command) = &node_job.command {
                text.push_str(command.trim_end());
                text.push('\n');
            }
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
        require_host_names(choice.nodes.iter())?;
        let node_jobs: Vec<NodeJob> = choice
            .nodes
            .iter()
            .map(|node| self.prepare_job(task, request, node))
            .collect();
        let jobs = make_folders(task, &node_jobs)?;
        run::for_each_parallel(
            &node_jobs,
            self.parallel,
            |node_job| self.submit_job(&jobs, node_job),
            |node_job, id| {
                on_job(FleetJob {
                    id,
                    node: Some(node_job.node.clone()),
                    submitted: submitted.to_owned(),
                });
            },
        )
    }

    fn query_states(&self, task: &Task, jobs: &[FleetJob]) -> Result<Vec<JobState>, LaunchError> {
        let mut states = Vec::new();
        let Some(status) = &self.status else {
            return Ok(states);
        };
        require_host_names(jobs.iter().filter_map(|job| job.node.as_ref()))?;
        run::for_each_parallel(
            jobs,
            self.parallel,
            |job| {
                let done = run::run_in_shell(&self.name, &self.render_for_job(status, task, job))?;
                let (stage, description) = self.find_stage(&done.combined_output());
                Ok(JobState {
                    job: job.id.clone(),
                    node: job.node.clone(),
                    stage,
                    description,
                    restarts: 0,
                })
            },
            |_, state| states.push(state),
        )?;
        // Answers come in any order, but the newest job of a node must come last.
        let place = |state: &JobState| jobs.iter().position(|job| job.id == state.job);
        states.sort_by_key(place);
        Ok(states)
    }

    fn cancel(&self, task: &Task, jobs: &[FleetJob]) -> Result<(), LaunchError> {
        let Some(cancel) = &self.cancel else {
            return Err(LaunchError::Impossible(format!(
                "the template {} does not say how a job is cancelled ([cancel] command)",
                self.name
            )));
        };
        require_host_names(jobs.iter().filter_map(|job| job.node.as_ref()))?;
        let states = self.query_states(task, jobs)?;
        let has_ended = |job: &FleetJob| {
            let state = states.iter().find(|state| state.job == job.id);
            state.is_some_and(|s| matches!(s.stage, Stage::Ended | Stage::Failed))
        };
        let may_run = jobs.iter().filter(|job| !has_ended(job));
        let may_run: Vec<FleetJob> = may_run.cloned().collect();
        run::for_each_parallel(
            &may_run,
            self.parallel,
            |job| {
                let done = run::run_in_shell(&self.name, &self.render_for_job(cancel, task, job))?;
                done.require_success(&self.name).map(|_| ())
            },
            |_, ()| {},
        )
    }
}

impl Template {
    fn submit_job(&self, jobs: &Folder, node_job: &NodeJob) -> Result<String, LaunchError> {
        if let Some((name, script)) = &node_job.script {
            let script = script.as_bytes();
            jobs.put(name, script, IfExists::Replace, Readers::OwnerExecutes)?;
        }
        let Some(command) = &node_job.command else {
            return Ok(node_job.node.clone());
        };
        let done = run::run_in_shell(&self.name, command)?;
        let out = done.require_success(&self.name)?;
        let unexpected = || LaunchError::UnexpectedOutput {
            program: self.name.clone(),
            output: join_to_line(out.lines()),
        };
        let job = self.job.as_ref().ok_or_else(unexpected)?;
        let found = out.lines().find_map(|line| job.captures(line.trim_end()));
        let found = found.ok_or_else(unexpected)?;
        let id = found.get(1).map_or("", |id| id.as_str());
        if is_job_id(id) {
            Ok(id.to_owned())
        } else {
            Err(unexpected())
        }
    }

    /// Finds the stage in a scheduler's answer, and the text that describes it.
    fn find_stage(&self, answer: &str) -> (Stage, String) {
        for (pattern, stage) in &self.states {
            if let Some(found) = pattern.captures(answer) {
                let text = found.get(1).or(found.get(0));
                let text = text.map_or("", |text| text.as_str());
                return (*stage, join_to_line(text.lines()));
            }
        }
        (Stage::Unknown, join_to_line(answer.lines()))
    }
}

/// Makes each node's log, which the shell opens before pinwise starts, and the folder of scripts,
/// which is returned.
fn make_folders(task: &Task, node_jobs: &[NodeJob]) -> Result<Folder, FolderError> {
    let folder = Folder::open(&task.folder).map_err(|e| FolderError::file(&task.folder, e))?;
    let nodes = Arc::new(folder.ensure_folder("nodes", Readers::Group)?);
    for node_job in node_jobs {
        nodes.ensure_folder(&node_job.node, Readers::Group)?;
        NodeFolder::new(nodes.clone(), &node_job.node).make_log()?;
    }
    folder.ensure_folder("jobs", Readers::Owner)
}

/// Refuses anything but a host name before it becomes part of a command: ssh takes a host that
/// begins with `-` for an option.
fn require_host_names<'a>(mut nodes: impl Iterator<Item = &'a String>) -> Result<(), LaunchError> {
    match nodes.find(|node| !hostlist::is_node_name(node)) {
        Some(odd) => Err(LaunchError::Impossible(format!(
            "'{odd}' is not the name of a node"
        ))),
        None => Ok(()),
    }
}

/// Writes seconds as `HH:MM:SS`.
fn format_clock_time(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!("{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60)
}

/// Converts a name to a label of RFC 1123: lower-case letters, digits and `-`, up to 63 characters.
/// A hash is appended if the name had to be changed, so that two names never become one label.
fn to_dns_label(name: &str) -> String {
    let to_allowed = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    let label: String = name.chars().map(to_allowed).collect();
    if label == name && label.len() <= 63 && !label.ends_with('-') {
        return label;
    }
    // FNV-1a (Fowler, Noll, Vo), 32 bits.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let cut: String = label.chars().take(54).collect();
    format!("{cut}-{hash:08x}")
}

#[cfg(test)]
mod tests;
