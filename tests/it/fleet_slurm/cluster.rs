//! A Slurm of four nodes on this host, whose nodes can be killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{self, PATIENCE, decode_output, has_program, report_skip, root};

/// Which processes of a node are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kill {
    /// All: the node is lost.
    Node,
    /// Those of Slurm: the processes that they started go on.
    Daemons,
    /// pinwise: the node stays.
    Task,
}

/// A cluster, which ends when it is dropped, or with the process that started it.
pub(super) struct Cluster {
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts a cluster of four nodes with these further lines of `slurm.conf`; `None`, with the
    /// reason, if there is no Slurm.
    pub(super) fn start(extra: &str) -> Option<Self> {
        Self::start_with(&[("SLURM_EXTRA", extra)])
    }

    /// Starts one with settings of `up.sh`.
    pub(super) fn start_with(settings: &[(&str, &str)]) -> Option<Self> {
        for program in ["munged", "slurmctld", "slurmd", "sbatch", "unshare"] {
            let found = has_program(program) || Path::new("/usr/sbin").join(program).exists();
            if !found {
                report_skip(&format!(
                    "{program} is not installed (apt: slurm-wlm, munge)"
                ));
                return None;
            }
        }
        let cluster = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let up = cluster
            .script_command("up.sh")
            .envs(settings.iter().copied())
            .env("SLURM_OWNER", std::process::id().to_string())
            .output()
            .unwrap();
        assert!(up.status.success(), "{:?}", decode_output(&up));
        if read_uts_namespace(&cluster.read_daemon_pid("n1")) == read_uts_namespace("self") {
            report_skip("there are no namespaces here, so nodes cannot be distinguished");
            return None;
        }
        Some(cluster)
    }

    fn slurm_folder(&self) -> PathBuf {
        self.folder.path().join("slurm")
    }

    /// A folder that the nodes and this host share.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script_command(&self, name: &str) -> Command {
        let mut command = Command::new(root().join("tests/env/slurm").join(name));
        command
            .arg(self.slurm_folder())
            .current_dir(root())
            .env("PATH", path_with_sbin());
        command
    }

    /// pinwise, whose Slurm commands use this cluster.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = support::pinwise(&self.path("store.db"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("SLURM_CONF", self.slurm_folder().join("slurm.conf"));
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a command that succeeds.
    #[track_caller]
    pub(super) fn run_for_text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out
    }

    /// Checks that a command exits with status 2; returns its standard error.
    #[track_caller]
    pub(super) fn check_refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        err
    }

    #[track_caller]
    pub(super) fn read_status(&self, fleet: &str) -> Value {
        let out = self.run_for_text(&["fleet", "status", fleet, "--format", "json"]);
        serde_json::from_str(&out).unwrap()
    }

    /// Standard output of one of Slurm's commands, which must succeed.
    #[track_caller]
    pub(super) fn run_slurm(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.try_slurm(program, arguments);
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{program} {arguments:?}: {err}");
        out
    }

    /// Runs one of Slurm's commands, which may fail.
    pub(super) fn try_slurm(&self, program: &str, arguments: &[&str]) -> Output {
        Command::new(program)
            .args(arguments)
            .env("PATH", path_with_sbin())
            .env("SLURM_CONF", self.slurm_folder().join("slurm.conf"))
            .output()
            .unwrap()
    }

    /// The state of a node, as sinfo prints it.
    pub(super) fn read_node_state(&self, node: &str) -> String {
        let out = self.run_slurm("sinfo", &["-h", "-n", node, "-p", "all", "-o", "%T"]);
        out.trim().to_owned()
    }

    pub(super) fn set_node(&self, node: &str, state: &str, reason: &str) {
        let (node, state) = (format!("NodeName={node}"), format!("State={state}"));
        self.run_slurm(
            "scontrol",
            &["update", &node, &state, &format!("Reason={reason}")],
        );
    }

    /// Ids of jobs and tasks of a fleet that wait or run.
    pub(super) fn list_queue(&self, fleet: &str) -> Vec<String> {
        let name = format!("--name=pinwise-{fleet}");
        let out = self.run_slurm("squeue", &["-h", "-r", &name, "-o", "%i"]);
        out.split_whitespace().map(str::to_owned).collect()
    }

    /// Whether no job was ever submitted.
    pub(super) fn has_no_job(&self) -> bool {
        self.run_slurm("squeue", &["-h", "-t", "all"])
            .trim()
            .is_empty()
    }

    /// Waits until a condition holds; panics with the state of the cluster if it never does.
    #[track_caller]
    pub(super) fn wait_until(&self, event: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            if start.elapsed() > PATIENCE {
                let queue = self.run_slurm("squeue", &["-r", "-t", "all"]);
                let nodes = self.run_slurm("sinfo", &["-N", "-o", "%N %T %E"]);
                panic!("still not: {event}\n{queue}\n{nodes}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn read_daemon_pid(&self, node: &str) -> String {
        let file = self.slurm_folder().join(format!("{node}.pid"));
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Kills processes of a node with SIGKILL.
    pub(super) fn kill(&self, node: &str, kill: Kill) {
        // slurmd writes its pid a moment after its start.
        let mut namespace = None;
        self.wait_until("the node's slurmd runs", || {
            namespace = read_uts_namespace(&self.read_daemon_pid(node));
            namespace.is_some()
        });
        let namespace = namespace.unwrap();
        // Processes that start meanwhile are killed in the next round.
        for _ in 0..3 {
            let pids: Vec<String> = list_processes_in(&namespace)
                .into_iter()
                .filter(|(_, name)| match kill {
                    Kill::Node => true,
                    Kill::Daemons => name.starts_with("slurm"),
                    Kill::Task => name == "pinwise",
                })
                .map(|(pid, _)| pid)
                .collect();
            if !pids.is_empty() {
                let _ = Command::new("kill").arg("-9").args(&pids).output().unwrap();
            }
        }
    }

    /// Starts a node whose slurmd was killed.
    pub(super) fn start_node(&self, node: &str) {
        let started = self.script_command("up.sh").arg(node).output().unwrap();
        assert!(started.status.success(), "{:?}", decode_output(&started));
    }

    /// Ends the controller.
    pub(super) fn stop_controller(&self) {
        let file = self.slurm_folder().join("slurmctld.pid");
        let pid = std::fs::read_to_string(file).unwrap();
        let stopped = Command::new("kill").args(["-9", pid.trim()]).output();
        assert!(stopped.unwrap().status.success());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let down = self.script_command("down.sh").output();
        if std::thread::panicking() {
            eprintln!("{:?}", down.map(|output| decode_output(&output)));
        }
    }
}

/// `PATH` with the folders in which Debian has daemons.
fn path_with_sbin() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

/// The namespace of host names of a process, which each node has for itself.
fn read_uts_namespace(pid: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/uts")).ok()
}

/// Pids and names of the processes in a namespace.
fn list_processes_in(namespace: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let is_pid = pid.bytes().all(|b| b.is_ascii_digit());
        if is_pid && read_uts_namespace(&pid).as_deref() == Some(namespace) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_owned()));
        }
    }
    found
}
