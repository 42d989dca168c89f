//! The compiled command in a pseudo-terminal that `script` makes: it shows
//! frames, gives the terminal back, and gives pinned threads back, even when
//! it is killed outright.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, has_program, report_skip};

/// pinwise top in a terminal of 80 columns and 24 rows.
struct TopInTerminal {
    script: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    seen: String,
    folder: tempfile::TempDir,
}

impl TopInTerminal {
    fn start(arguments: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = env!("CARGO_BIN_EXE_pinwise");
        // The tests may have been started with SIGHUP ignored (nohup).
        let pid_file = folder.path().join("pid");
        let line = format!(
            "stty cols 80 rows 24; echo $$ > {}; exec env --default-signal=HUP {program} top --store none --interval 200ms {arguments}",
            pid_file.display()
        );
        let mut script = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keys = script.stdin.take().unwrap();
        let mut out = script.stdout.take().unwrap();
        let (message, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = out.read(&mut buffer)
                && read > 0
                && message.send(buffer[..read].to_vec()).is_ok()
            {}
        });
        Self {
            script,
            keys,
            output,
            seen: String::new(),
            folder,
        }
    }

    fn pid(&self) -> i32 {
        let text = std::fs::read_to_string(self.folder.path().join("pid")).unwrap();
        text.trim().parse().unwrap()
    }

    /// Waits until this was written to the terminal since the last wait. Only
    /// cells that change are written, so `text` must not share characters with
    /// what was on screen at its position.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{error}, no {text:?} in {:?}", self.seen),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the end; returns the exit status and all that was written.
    fn end(mut self) -> (i32, String) {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.script.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_secs(5)) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status.code().unwrap_or(-1), self.seen)
    }
}

/// A process of this test's own that burns CPU time until it is dropped.
struct Spinner(Child);

impl Spinner {
    fn start() -> Self {
        let mut spinner = Command::new("sh");
        spinner.args(["-c", "while :; do :; done"]);
        Self(spinner.stdin(Stdio::null()).spawn().unwrap())
    }

    fn mask(&self) -> String {
        let path = format!("/proc/{}/status", self.0.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    }

    #[track_caller]
    fn wait_for_mask(&self, mask: &str) {
        let end = Instant::now() + PATIENCE;
        while self.mask() != mask {
            assert!(Instant::now() < end, "{} instead of {mask}", self.mask());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What this test cannot do without.
fn can_run() -> bool {
    if !has_program("script") || !has_program("stty") {
        report_skip("script and stty, which make a terminal, are not there");
        return false;
    }
    true
}

fn signal(pid: i32, signal: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// What gives a terminal back: its first screen, and its cursor.
const GIVEN_BACK: &str = "\u{1b}[?1049l";

#[test]
fn frames_keys_and_leaving() {
    if !can_run() {
        return;
    }
    let mut shown = TopInTerminal::start("--tier proc");
    shown.wait_for("\u{1b}[?1049h");
    shown.wait_for("pinwise top");
    shown.wait_for("TID");
    shown.press("?");
    shown.wait_for("PgUp");
    // One key closes the help, another leaves.
    shown.press("  q");
    let (status, rest) = shown.end();
    assert_eq!(status, 0, "{rest}");
    assert!(rest.contains(GIVEN_BACK), "{rest:?}");
}

/// Every signal that asks it to end gives the terminal back.
#[test]
fn signals_give_the_terminal_back() {
    if !can_run() {
        return;
    }
    for name in ["TERM", "HUP", "INT"] {
        let mut shown = TopInTerminal::start("--tier proc");
        shown.wait_for("TID");
        signal(shown.pid(), name);
        let (status, rest) = shown.end();
        assert_eq!(status, 130, "{name}: {rest}");
        assert!(rest.contains(GIVEN_BACK), "{name}: {rest:?}");
    }
}

/// Regression: it looped for ever reading keys from a closed terminal.
#[test]
fn a_terminal_that_is_closed_ends_it() {
    if !can_run() {
        return;
    }
    for tier in ["proc", "switch"] {
        let mut shown =
            TopInTerminal::start(&format!("--tier {tier} --pid {}", std::process::id()));
        shown.wait_for("quit");
        let pid = shown.pid();
        // The program that made the terminal is killed outright: no key is pressed.
        shown.script.kill().unwrap();
        shown.script.wait().unwrap();
        let end = Instant::now() + PATIENCE;
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            assert!(
                Instant::now() < end,
                "{tier}: it goes on without a terminal"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Pins a spinning process by keys; returns it, its mask before, and pinwise.
fn pinned() -> Option<(Spinner, String, TopInTerminal)> {
    if !can_run() {
        return None;
    }
    let spinner = Spinner::start();
    let before = spinner.mask();
    let last = before.rsplit([',', '-']).next().unwrap().to_owned();
    if last == before {
        report_skip("this needs two CPUs");
        return None;
    }
    let mut shown = TopInTerminal::start(&format!("--tier proc --pid {}", spinner.0.id()));
    shown.wait_for("TID");
    shown.press("p");
    shown.wait_for("pin ");
    shown.press(&format!("{last}\r"));
    spinner.wait_for_mask(&last);
    Some((spinner, before, shown))
}

#[test]
fn pins_are_undone_by_key() {
    let Some((spinner, before, mut shown)) = pinned() else {
        return;
    };
    shown.press("u");
    spinner.wait_for_mask(&before);
    shown.press("q");
    assert_eq!(shown.end().0, 0);
    assert_eq!(spinner.mask(), before);
}

#[test]
fn pins_are_undone_on_leaving() {
    let Some((spinner, before, mut shown)) = pinned() else {
        return;
    };
    shown.press("q");
    let (status, rest) = shown.end();
    assert_eq!(status, 0, "{rest}");
    assert_eq!(spinner.mask(), before);
}

#[test]
fn pins_are_undone_when_pinwise_is_terminated_or_killed() {
    for name in ["TERM", "KILL"] {
        let Some((spinner, before, shown)) = pinned() else {
            return;
        };
        signal(shown.pid(), name);
        spinner.wait_for_mask(&before);
        shown.end();
    }
}

#[test]
fn pins_that_shall_be_kept_are_kept() {
    let Some((spinner, before, mut shown)) = pinned() else {
        return;
    };
    let pinned = spinner.mask();
    assert_ne!(pinned, before);
    shown.press("P");
    shown.wait_for("stay");
    shown.press("q");
    assert_eq!(shown.end().0, 0);
    // The guardian, too, has had time to see that pinwise left.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(spinner.mask(), pinned);
}
