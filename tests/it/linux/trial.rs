//! Runs pinwise on this host in a folder of its own. A mark in the environment finds all of its
//! processes again, and no wait is without end.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{PATIENCE, has_program, pinwise, report_skip, run_for_json};

/// Environment variable that marks all processes of a trial.
const MARK: &str = "PINWISE_TRIAL";

/// A folder, whose path is also the mark.
pub(super) struct Trial {
    folder: tempfile::TempDir,
}

/// Exit status and output of pinwise.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
}

impl Trial {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A path in the trial's folder, in which pinwise also runs.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a shell in this folder and returns its output. It also makes the programs of tests: a
    /// file that this process had open to write is busy while a child of another test holds the
    /// descriptor.
    #[track_caller]
    pub(super) fn run_shell(&self, line: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Lines of a file so far; 0 if it does not exist yet.
    pub(super) fn count_lines(&self, name: &str) -> usize {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().count()
    }

    /// The folder's files without those of the store.
    pub(super) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let is_store =
            |name: &String| ["store.db", "store.db-wal", "store.db-shm"].contains(&name.as_str());
        let mut names: Vec<String> = names.filter(|name| !is_store(name)).collect();
        names.sort();
        names
    }

    /// pinwise in this folder, marked, with a store here.
    pub(super) fn pinwise(&self, arguments: &[&str]) -> Command {
        self.mark_command(pinwise(&self.path("store.db")), arguments)
    }

    /// Checks that a comparison of `true` with these options is refused in these words.
    #[track_caller]
    pub(super) fn check_refusal(&self, options: &[&str], words: &str) {
        let arguments = [&["compare", "--max-runs", "6"], options, &["--", "true"]].concat();
        let ended = self.run(&arguments);
        assert_eq!(ended.status.code(), Some(2), "{options:?}: {}", ended.err);
        assert!(ended.err.contains(words), "{options:?}: {}", ended.err);
    }

    /// pinwise confined to one CPU from its start.
    pub(super) fn pinwise_on_cpu(&self, cpu: usize, arguments: &[&str]) -> Command {
        self.pinwise_within(&["taskset", "-c", &cpu.to_string()], arguments)
    }

    /// pinwise started by another command, whose last argument it is.
    pub(super) fn pinwise_within(&self, outer: &[&str], arguments: &[&str]) -> Command {
        let inner = pinwise(&self.path("store.db"));
        let mut command = Command::new(outer[0]);
        command.args(&outer[1..]).arg(inner.get_program());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.mark_command(command, arguments)
    }

    fn mark_command(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .env(MARK, self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.pinwise(arguments).spawn().unwrap())
    }

    /// Runs pinwise as a user without rights, and returns both streams with `status N` as the last
    /// line. `None`, with the reason, if that is not possible.
    pub(super) fn run_unprivileged(&self, arguments: &str) -> Option<String> {
        if !has_program("setpriv") {
            report_skip("no setpriv");
            return None;
        }
        // This user may read and execute from the folder.
        let folder = self.run_shell("mktemp -d /tmp/pinwise-unprivileged-XXXXXX");
        let folder = folder.trim();
        let binary = env!("CARGO_BIN_EXE_pinwise");
        let out = self.run_shell(&format!(
            "cd {folder}; cp {binary} pinwise; chmod 755 .; \
             setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
             ./pinwise --store none {arguments} 2>&1; echo status $?; rm -r {folder}"
        ));
        if out.contains("setpriv:") {
            report_skip(out.trim());
            return None;
        }
        Some(out)
    }

    /// Compares a command with itself, with one run each unless the arguments say otherwise.
    pub(super) fn compare(&self, arguments: &[&str]) -> Ended {
        let once: &[&str] = if arguments.contains(&"--max-runs") {
            &[]
        } else {
            &["--max-runs", "1"]
        };
        self.run(&[&SHORT[..], once, arguments].concat())
    }

    /// The same, which must succeed; returns its record.
    #[track_caller]
    pub(super) fn compare_for_record(&self, arguments: &[&str]) -> Value {
        let ended = self.compare(&[&["--format", "json"], arguments].concat());
        ended.parse_json()
    }

    /// The newest record of the store.
    #[track_caller]
    pub(super) fn read_record(&self) -> Value {
        let ended = self.run(&["record", "show", "last", "--format", "json"]);
        ended.parse_json()
    }

    /// `name (/proc/PID)` of living processes of this trial: those that carry the mark, and those
    /// whose arguments name the folder.
    fn list_living(&self) -> Vec<String> {
        let path = self.folder.path().display().to_string();
        let mark = format!("{MARK}={path}");
        let mut living = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap() {
            let folder = entry.unwrap().path();
            let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
            let mut entries = environment.split(|byte| *byte == 0);
            let arguments = std::fs::read(folder.join("cmdline")).unwrap_or_default();
            let names_folder = String::from_utf8_lossy(&arguments).contains(&path);
            if names_folder || entries.any(|entry| entry == mark.as_bytes()) {
                let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
                living.push(format!("{} ({})", name.trim(), folder.display()));
            }
        }
        living
    }

    /// Checks that the test can see a process with the mark.
    #[track_caller]
    pub(super) fn check_mark_visible(&self) {
        assert!(!self.list_living().is_empty(), "the mark is not seen");
    }

    /// Checks that every process of the trial is gone, or goes soon.
    #[track_caller]
    pub(super) fn check_no_process_left(&self) {
        let start = Instant::now();
        let mut living = self.list_living();
        while !living.is_empty() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
            living = self.list_living();
        }
        assert!(living.is_empty(), "left behind: {}", living.join(", "));
    }

    /// Waits until a file has this many lines.
    #[track_caller]
    pub(super) fn wait_for_lines(&self, name: &str, lines: usize, child: &mut Child) {
        let start = Instant::now();
        while self.count_lines(name) < lines {
            assert!(start.elapsed() < PATIENCE, "{name} never has {lines} lines");
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "ended before {name} had {lines} lines");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Two arms that are the same, without warm-up.
pub(super) const SHORT: [&str; 7] = [
    "compare",
    "--quiet",
    "--place",
    "os-default",
    "--placebo",
    "--warmup",
    "0",
];

/// Waits for pinwise and for the ends of its streams: no process that it leaves behind may hold
/// them open.
#[track_caller]
pub(super) fn finish(mut child: Child) -> Ended {
    let start = Instant::now();
    let out = read_in_background(child.stdout.take().unwrap());
    let err = read_in_background(child.stderr.take().unwrap());
    let mut status = child.try_wait().unwrap();
    while status.is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("pinwise does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
        status = child.try_wait().unwrap();
    }
    let text = |stream: Receiver<Vec<u8>>| {
        let bytes = stream.recv_timeout(PATIENCE);
        String::from_utf8(bytes.expect("a stream that ends")).unwrap()
    };
    Ended {
        status: status.unwrap(),
        out: text(out),
        err: text(err),
    }
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        // Nobody listens if the test has failed.
        let _ = sender.send(bytes);
    });
    receiver
}

impl Ended {
    #[track_caller]
    pub(super) fn check_success(&self) {
        assert!(self.status.success(), "{}: {}", self.status, self.err);
    }

    /// Standard output as JSON, of a run that must succeed.
    #[track_caller]
    pub(super) fn parse_json(&self) -> Value {
        self.check_success();
        serde_json::from_str(&self.out).unwrap()
    }

    /// Checks for exit status 2, nothing on standard output, and one line on standard error that
    /// contains all these words.
    #[track_caller]
    pub(super) fn check_refused(&self, words: &[&str]) {
        self.check_failure(words);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
    }

    /// The same, but the command's own standard error may follow the line.
    #[track_caller]
    pub(super) fn check_failure(&self, words: &[&str]) {
        self.check_exit(2, words);
    }

    /// The same with another status.
    #[track_caller]
    pub(super) fn check_exit(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(status), "{}", self.err);
        assert!(self.err.starts_with("error: "), "{}", self.err);
        assert_eq!(self.err.matches("error: ").count(), 1, "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "'{word}' is not in: {}", self.err);
        }
        assert_eq!(self.out, "", "{}", self.err);
    }
}

/// CPUs that this test may run on.
pub(super) fn list_allowed_cpus() -> Vec<usize> {
    let record = run_for_json(&["topology", "--format", "json"]);
    let allowed = record["allowed"].as_str().unwrap();
    let set: pinwise_topology::CpuSet = allowed.parse().unwrap();
    set.iter().collect()
}

/// Two of them; `None`, with the reason, if there is only one.
pub(super) fn find_two_cpus() -> Option<[usize; 2]> {
    match list_allowed_cpus()[..] {
        [first, second, ..] => Some([first, second]),
        _ => {
            report_skip("only one CPU is allowed here");
            None
        }
    }
}

/// All runs of a record, with those that do not count.
pub(super) fn list_runs(record: &Value) -> Vec<Value> {
    let arms = record["arms"].as_array().unwrap();
    let lists = arms
        .iter()
        .flat_map(|arm| [&arm["runs"], &arm["other_runs"]]);
    lists
        .flat_map(|list| list.as_array().unwrap().clone())
        .collect()
}
