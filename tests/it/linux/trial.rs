//! One use of pinwise on this host: a folder of its own, a mark in the
//! environment by which every process of it is found again, and ends to all
//! waiting.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{PATIENCE, pinwise, skipped};

/// Environment variable that marks all processes of a trial.
const MARK: &str = "PINWISE_TRIAL";

/// A folder and a mark.
pub(super) struct Trial {
    folder: tempfile::TempDir,
}

/// How pinwise ended.
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

    /// What a shell in this folder prints, started by nothing but this test.
    /// Programs for tests are made this way too: an open descriptor of this
    /// process, copied by another test's fork, would make the system call them
    /// busy.
    #[track_caller]
    pub(super) fn shell(&self, line: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Lines of a file so far; empty if it does not exist yet.
    pub(super) fn lines(&self, name: &str) -> usize {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().count()
    }

    /// The folder's files but the store's own.
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

    /// A comparison of `true` with these options must be refused in these words.
    #[track_caller]
    pub(super) fn check_refusal(&self, options: &[&str], words: &str) {
        let arguments = [&["compare", "--max-runs", "6"], options, &["--", "true"]].concat();
        let ended = self.run(&arguments);
        assert_eq!(ended.status.code(), Some(2), "{options:?}: {}", ended.err);
        assert!(ended.err.contains(words), "{options:?}: {}", ended.err);
    }

    /// pinwise confined to one CPU from its start.
    pub(super) fn pinwise_on(&self, cpu: usize, arguments: &[&str]) -> Command {
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

    /// A comparison of a command with itself, once each unless the arguments
    /// say how often.
    pub(super) fn compare(&self, arguments: &[&str]) -> Ended {
        let once: &[&str] = if arguments.contains(&"--max-runs") {
            &[]
        } else {
            &["--max-runs", "1"]
        };
        self.run(&[&SHORT[..], once, arguments].concat())
    }

    /// A comparison that must go well, as its record.
    #[track_caller]
    pub(super) fn record(&self, arguments: &[&str]) -> Value {
        let ended = self.compare(&[&["--format", "json"], arguments].concat());
        ended.succeeded();
        serde_json::from_str(&ended.out).unwrap()
    }

    /// The newest record of the store.
    #[track_caller]
    pub(super) fn stored(&self) -> Value {
        let ended = self.run(&["record", "show", "last", "--format", "json"]);
        ended.succeeded();
        serde_json::from_str(&ended.out).unwrap()
    }

    /// `name (pid)` of living processes of this trial: those that carry the
    /// mark, and those that name the folder.
    fn living(&self) -> Vec<String> {
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

    /// A process with the mark exists: the test can see them.
    #[track_caller]
    pub(super) fn is_seen(&self) {
        assert!(!self.living().is_empty(), "the mark is not seen");
    }

    /// Every process of the trial is gone, or goes very soon.
    #[track_caller]
    pub(super) fn leaves_no_process(&self) {
        let start = Instant::now();
        let mut living = self.living();
        while !living.is_empty() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
            living = self.living();
        }
        assert!(living.is_empty(), "left behind: {}", living.join(", "));
    }

    /// Waits until a file has this many lines.
    #[track_caller]
    pub(super) fn wait_for_lines(&self, name: &str, lines: usize, child: &mut Child) {
        let start = Instant::now();
        while self.lines(name) < lines {
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

/// Sends a signal by its name.
pub(super) fn signal(child: &Child, name: &str) {
    crate::support::signal(child.id(), name);
}

/// Waits for pinwise and for the ends of its streams, which nothing that it
/// leaves behind may hold open.
#[track_caller]
pub(super) fn finish(mut child: Child) -> Ended {
    let start = Instant::now();
    let out = reader(child.stdout.take().unwrap());
    let err = reader(child.stderr.take().unwrap());
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

fn reader(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
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
    pub(super) fn succeeded(&self) {
        assert!(self.status.success(), "{}: {}", self.status, self.err);
    }

    /// Exit status 2, nothing on standard output, and on standard error one
    /// line, which says all these words.
    #[track_caller]
    pub(super) fn is_refused(&self, words: &[&str]) {
        self.fails_with(words);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
    }

    /// The same, but the command's own standard error may follow the line.
    #[track_caller]
    pub(super) fn fails_with(&self, words: &[&str]) {
        self.ends_with(2, words);
    }

    /// The same with another status.
    #[track_caller]
    pub(super) fn ends_with(&self, status: i32, words: &[&str]) {
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
pub(super) fn allowed_cpus() -> Vec<usize> {
    let record = crate::support::json(&["topology", "--format", "json"]);
    let allowed = record["allowed"].as_str().unwrap();
    let set: pinwise_topology::CpuSet = allowed.parse().unwrap();
    set.iter().collect()
}

/// Two of them, or a line that says that there is only one.
pub(super) fn two_cpus() -> Option<[usize; 2]> {
    match allowed_cpus()[..] {
        [first, second, ..] => Some([first, second]),
        _ => {
            skipped("only one CPU is allowed here");
            None
        }
    }
}

/// All runs of a record, those that do not count among them.
pub(super) fn runs_of(record: &Value) -> Vec<Value> {
    let arms = record["arms"].as_array().unwrap();
    let lists = arms
        .iter()
        .flat_map(|arm| [&arm["runs"], &arm["other_runs"]]);
    lists
        .flat_map(|list| list.as_array().unwrap().clone())
        .collect()
}
