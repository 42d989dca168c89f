//! `pinwise top` in a pseudo-terminal that `script` makes: it shows frames, restores the terminal,
//! and undoes its pins even if it is killed.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support::{
    PATIENCE, Running, has_program, read_allowed_cpus, report_skip, send_signal, wait_until,
};

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

    fn pid(&self) -> u32 {
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

#[track_caller]
fn wait_for_mask(process: &Running, mask: &str) {
    wait_until(mask, || read_allowed_cpus(process.0.id()) == mask);
}

/// Whether this host can make terminals.
fn has_terminals() -> bool {
    let has_terminals = has_program("script") && has_program("stty");
    if !has_terminals {
        report_skip("script and stty, which make a terminal, are not installed");
    }
    has_terminals
}

/// Leaves the alternate screen.
const RESTORE: &str = "\u{1b}[?1049l";

#[test]
fn keys_show_help_and_quit() {
    if !has_terminals() {
        return;
    }
    let mut shown = TopInTerminal::start("--tier proc");
    shown.wait_for("\u{1b}[?1049h");
    shown.wait_for("pinwise top");
    shown.wait_for("TID");
    shown.press("?");
    shown.wait_for("PgUp");
    // The first keys close the help, the last one quits.
    shown.press("  q");
    let (status, rest) = shown.end();
    assert_eq!(status, 0, "{rest}");
    assert!(rest.contains(RESTORE), "{rest:?}");
}

#[test]
fn signals_that_end_it_restore_the_terminal() {
    if !has_terminals() {
        return;
    }
    for name in ["TERM", "HUP", "INT"] {
        let mut shown = TopInTerminal::start("--tier proc");
        shown.wait_for("TID");
        send_signal(shown.pid(), name);
        let (status, rest) = shown.end();
        assert_eq!(status, 130, "{name}: {rest}");
        assert!(rest.contains(RESTORE), "{name}: {rest:?}");
    }
}

/// Regression: it looped for ever reading keys from a closed terminal.
#[test]
fn a_terminal_that_is_closed_ends_it() {
    if !has_terminals() {
        return;
    }
    for tier in ["proc", "switch"] {
        let mut shown =
            TopInTerminal::start(&format!("--tier {tier} --pid {}", std::process::id()));
        shown.wait_for("quit");
        let pid = shown.pid();
        // The program that made the terminal is killed: no key is pressed.
        shown.script.kill().unwrap();
        shown.script.wait().unwrap();
        wait_until(&format!("{tier}: the end"), || {
            !std::path::Path::new(&format!("/proc/{pid}")).exists()
        });
    }
}

/// Pins a spinning process by keys; returns it, its mask before, and pinwise.
fn pin_spinner() -> Option<(Running, String, TopInTerminal)> {
    if !has_terminals() {
        return None;
    }
    let spinner = Running::start_shell("while :; do :; done");
    let before = read_allowed_cpus(spinner.0.id());
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
    wait_for_mask(&spinner, &last);
    Some((spinner, before, shown))
}

#[test]
fn pins_are_undone_by_key() {
    let Some((spinner, before, mut shown)) = pin_spinner() else {
        return;
    };
    shown.press("u");
    wait_for_mask(&spinner, &before);
    shown.press("q");
    assert_eq!(shown.end().0, 0);
    assert_eq!(read_allowed_cpus(spinner.0.id()), before);
}

#[test]
fn pins_are_undone_at_the_end() {
    let Some((spinner, before, mut shown)) = pin_spinner() else {
        return;
    };
    shown.press("q");
    let (status, rest) = shown.end();
    assert_eq!(status, 0, "{rest}");
    assert_eq!(read_allowed_cpus(spinner.0.id()), before);
}

#[test]
fn pins_are_undone_when_pinwise_is_terminated_or_killed() {
    for name in ["TERM", "KILL"] {
        let Some((spinner, before, shown)) = pin_spinner() else {
            return;
        };
        send_signal(shown.pid(), name);
        wait_for_mask(&spinner, &before);
        shown.end();
    }
}

#[test]
fn kept_pins_stay_after_the_end() {
    let Some((spinner, before, mut shown)) = pin_spinner() else {
        return;
    };
    let pinned = read_allowed_cpus(spinner.0.id());
    assert_ne!(pinned, before);
    shown.press("P");
    shown.wait_for("stay");
    shown.press("q");
    assert_eq!(shown.end().0, 0);
    // Time for the guardian to notice that pinwise has ended.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(read_allowed_cpus(spinner.0.id()), pinned);
}
