//! A Slurm of four nodes on this host, and what befalls its nodes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{self, PATIENCE, decode_output, has_program, report_skip, root};

/// What kills a node's processes takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kill {
    /// All of them: the node is gone.
    Node,
    /// Slurm's: what they started goes on, unobserved.
    Daemons,
    /// pinwise's: the node stays.
    Task,
}

/// A cluster. It ends with this value, and with the process that made it.
pub(super) struct Cluster {
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts one of four nodes, or says why not. `extra`: more lines of
    /// `slurm.conf`.
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
            .script("up.sh")
            .envs(settings.iter().copied())
            .env("SLURM_OWNER", std::process::id().to_string())
            .output()
            .unwrap();
        assert!(up.status.success(), "{:?}", decode_output(&up));
        if space(&cluster.daemon("n1")) == space("self") {
            report_skip("there are no namespaces here, so nodes cannot be distinguished");
            return None;
        }
        Some(cluster)
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("slurm")
    }

    /// A folder that the nodes and this host share.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(root().join("tests/env/slurm").join(name));
        command
            .arg(self.dir())
            .current_dir(root())
            .env("PATH", path());
        command
    }

    /// pinwise beside this Slurm.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = support::pinwise(&self.path("store.db"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("SLURM_CONF", self.dir().join("slurm.conf"));
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a command that succeeds.
    #[track_caller]
    pub(super) fn pinwise(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out
    }

    /// Standard error of a command that must exit with status 2.
    #[track_caller]
    pub(super) fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        err
    }

    #[track_caller]
    pub(super) fn status(&self, fleet: &str) -> Value {
        let out = self.pinwise(&["fleet", "status", fleet, "--format", "json"]);
        serde_json::from_str(&out).unwrap()
    }

    /// One of Slurm's own commands.
    #[track_caller]
    pub(super) fn slurm(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .env("PATH", path())
            .env("SLURM_CONF", self.dir().join("slurm.conf"))
            .output()
            .unwrap();
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{program} {arguments:?}: {err}");
        out
    }

    /// One of Slurm's commands, which may come too late.
    pub(super) fn try_slurm(&self, program: &str, arguments: &[&str]) {
        let _ = Command::new(program)
            .args(arguments)
            .env("PATH", path())
            .env("SLURM_CONF", self.dir().join("slurm.conf"))
            .output()
            .unwrap();
    }

    /// What sinfo calls a node's state.
    pub(super) fn node_state(&self, node: &str) -> String {
        let out = self.slurm("sinfo", &["-h", "-n", node, "-p", "all", "-o", "%T"]);
        out.trim().to_owned()
    }

    pub(super) fn set_node(&self, node: &str, state: &str, reason: &str) {
        let (node, state) = (format!("NodeName={node}"), format!("State={state}"));
        self.slurm(
            "scontrol",
            &["update", &node, &state, &format!("Reason={reason}")],
        );
    }

    /// Ids of jobs and tasks of a fleet that wait or run.
    pub(super) fn queue(&self, fleet: &str) -> Vec<String> {
        let name = format!("--name=pinwise-{fleet}");
        let out = self.slurm("squeue", &["-h", "-r", &name, "-o", "%i"]);
        out.split_whitespace().map(str::to_owned).collect()
    }

    /// Was nothing ever submitted?
    pub(super) fn has_no_job(&self) -> bool {
        self.slurm("squeue", &["-h", "-t", "all"]).trim().is_empty()
    }

    /// Waits until something is so.
    #[track_caller]
    pub(super) fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            if began.elapsed() > PATIENCE {
                let queue = self.slurm("squeue", &["-r", "-t", "all"]);
                let nodes = self.slurm("sinfo", &["-N", "-o", "%N %T %E"]);
                panic!("still not: {what}\n{queue}\n{nodes}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn daemon(&self, node: &str) -> String {
        let file = self.dir().join(format!("{node}.pid"));
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Kills processes of a node with SIGKILL.
    pub(super) fn kill(&self, node: &str, what: Kill) {
        // One that was started a moment ago has not said yet which it is.
        let mut found = None;
        self.wait_until("the node's slurmd runs", || {
            found = space(&self.daemon(node));
            found.is_some()
        });
        let of = found.expect("it was waited for");
        // What they start while they are killed is killed in the next round.
        for _ in 0..3 {
            let pids: Vec<String> = processes_in(&of)
                .into_iter()
                .filter(|(_, name)| match what {
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
        let started = self.script("up.sh").arg(node).output().unwrap();
        assert!(started.status.success(), "{:?}", decode_output(&started));
    }

    /// Ends the controller.
    pub(super) fn stop_controller(&self) {
        let file = self.dir().join("slurmctld.pid");
        let pid = std::fs::read_to_string(file).unwrap();
        let stopped = Command::new("kill").args(["-9", pid.trim()]).output();
        assert!(stopped.unwrap().status.success());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let down = self.script("down.sh").output();
        if std::thread::panicking() {
            eprintln!("{:?}", down.map(|output| decode_output(&output)));
        }
    }
}

/// Debian's daemons are in folders of root's path only.
fn path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

/// The namespace of host names that a process is in; each node has its own.
fn space(pid: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/uts")).ok()
}

/// Processes in a namespace, each with its name.
fn processes_in(of: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.bytes().all(|b| b.is_ascii_digit()) && space(&pid).as_deref() == Some(of) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_owned()));
        }
    }
    found
}
