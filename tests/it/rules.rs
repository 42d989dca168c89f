//! Rules for real processes, which are placed when they start, left alone if somebody else placed
//! them, and restored however pinwise ends.
//!
//! The rules of each test match its own copy of `sleep`, and no other process.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pinwise_machine::linux::LinuxProcesses;
use pinwise_machine::processes::Processes;

use crate::support::{
    Running, copy_program, decode_output, has_program, pinwise, read_allowed_cpus, read_stat_field,
    read_status_line, report_skip, root, run, run_for_json, send_signal,
};

/// A folder, the processes that a test started, and `apply rules` that places them.
struct Stage {
    folder: tempfile::TempDir,
    children: Vec<Running>,
    rules: Option<Running>,
}

impl Stage {
    /// `None`, with the reason, if there is only one CPU, or if this test is confined already.
    fn new() -> Option<Self> {
        let own = i32::try_from(std::process::id()).unwrap();
        let default = LinuxProcesses::open().default_mask(own).unwrap();
        if default.len() < 2 || !default.contains(0) || read_own_cpus() != default.to_string() {
            report_skip("this needs CPU 0, another one, and no affinity mask");
            return None;
        }
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            children: Vec::new(),
            rules: None,
        };
        stage.add_program("napper");
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn add_program(&self, name: &str) {
        let mut paths = ["/usr/bin/sleep", "/bin/sleep"].map(Path::new).into_iter();
        copy_program(paths.find(|path| path.exists()).unwrap(), &self.path(name));
    }

    /// Writes a rule for the program.
    fn write_rule(&self, actions: &str) {
        let path = self.path("napper").display().to_string();
        let rule = format!("[[rule]]\nname = \"naps\"\nexecutable = '{path}'\n{actions}\n");
        std::fs::write(self.path("rules.toml"), rule).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pinwise(&self.path("store.db"));
        command.current_dir(self.folder.path());
        command.args(["apply", "rules", "run", "rules.toml", "--state", "state"]);
        command.args(["--log", "log"]).args(arguments);
        command
    }

    /// Starts the rules and waits until they are in force.
    fn start(&mut self, arguments: &[&str]) {
        let file = |name: &str| std::fs::File::create(self.path(name)).unwrap();
        let mut command = self.command(arguments);
        command.stdout(file("out")).stderr(file("err"));
        self.rules = Some(Running(command.spawn().unwrap()));
        self.wait_until("in force", |stage| stage.read("err").contains("in force"));
    }

    /// Sends a signal to `apply rules`.
    fn signal(&self, signal: &str) {
        send_signal(self.rules.as_ref().unwrap().0.id(), signal);
    }

    /// Sends a signal that ends `apply rules`; returns how it ended.
    fn end(&mut self, signal: &str) -> std::process::ExitStatus {
        self.signal(signal);
        self.rules.take().unwrap().0.wait().unwrap()
    }

    /// Starts the program; returns its pid.
    fn start_napper(&mut self) -> u32 {
        let child = Command::new(self.path("napper")).arg("600").spawn();
        self.keep(child.unwrap())
    }

    /// Starts the program and the rules that place it on CPU 0; returns its pid once it is there.
    #[track_caller]
    fn start_placed(&mut self) -> u32 {
        self.write_rule("place = \"cpu:0\"");
        let process = self.start_napper();
        self.start(&[]);
        self.wait_until_on(process, "0");
        process
    }

    /// Keeps a process until the end of the test; returns its pid.
    fn keep(&mut self, child: Child) -> u32 {
        let process = child.id();
        self.children.push(Running(child));
        process
    }

    /// Waits until a condition holds; panics with the output of `apply rules` if it never does.
    #[track_caller]
    fn wait_until(&self, event: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..2000 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("not {event}: {} {}", self.read("out"), self.read("err"));
    }

    /// Waits until a process may use exactly these CPUs.
    #[track_caller]
    fn wait_until_on(&self, process: u32, cpus: &str) {
        self.wait_until(&format!("{process} on {cpus}"), |_| {
            read_allowed_cpus(process) == cpus
        });
    }

    fn read_log(&self) -> Vec<serde_json::Value> {
        let log = self.read("log");
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn read_own_cpus() -> String {
    read_allowed_cpus(std::process::id())
}

#[test]
fn processes_are_placed_when_they_start_and_restored() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    let before = stage.start_placed();
    let after = stage.start_napper();
    stage.wait_until_on(after, "0");
    assert!(stage.read("state").contains(&format!("held {after} ")));
    assert!(stage.end("TERM").success());
    assert_eq!(
        (read_allowed_cpus(before), read_allowed_cpus(after)),
        (read_own_cpus(), read_own_cpus())
    );
    assert!(!stage.path("state").exists());
    let log = stage.read_log();
    let kinds: Vec<_> = log
        .iter()
        .map(|line| line["change"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["placed", "placed", "released", "released"]);
    assert_eq!(log[1]["process"], after);
    assert_eq!(
        (&log[1]["rule"], &log[1]["to"]),
        (&"naps".into(), &"0".into())
    );
    assert!(log[1]["time"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn killed_rules_restore_everything() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    // Without the right to lower nice values pinwise does not raise them, and it leaves processes
    // alone that have one, as all that this test starts may have.
    let own = std::process::id();
    let may_be_niced = read_status_line(own, "Uid:").starts_with('0') && read_nice(own) == "0";
    if !may_be_niced {
        report_skip("without the nice value: this needs root and nice 0");
    }
    let nice = if may_be_niced { "\nnice = 7" } else { "" };
    stage.write_rule(&format!("place = \"cpu:0\"{nice}"));
    let process = stage.start_napper();
    stage.start(&[]);
    stage.wait_until_on(process, "0");
    if may_be_niced {
        stage.wait_until("nice 7", |_| read_nice(process) == "7");
    }
    assert_eq!(stage.end("KILL").signal(), Some(9));
    stage.wait_until_on(process, &read_own_cpus());
    stage.wait_until("its nice value", |_| read_nice(process) == read_nice(own));
    stage.wait_until("the end of the journal", |stage| {
        !stage.path("state").exists()
    });
}

/// Removes the journal of `apply rules`, as the end of a session does.
fn remove_journal(stage: &Stage) {
    for name in ["state", "state.lock"] {
        std::fs::remove_file(stage.path(name)).unwrap();
    }
}

#[test]
fn killed_rules_restore_everything_without_their_journal() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    let process = stage.start_placed();
    remove_journal(&stage);
    assert_eq!(stage.end("KILL").signal(), Some(9));
    stage.wait_until_on(process, &read_own_cpus());
}

#[test]
fn a_removed_journal_of_rules_is_written_again() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    let before = stage.start_placed();
    remove_journal(&stage);
    let after = stage.start_napper();
    stage.wait_until_on(after, "0");
    let state = stage.read("state");
    for process in [before, after] {
        assert!(state.contains(&format!("held {process} ")), "{state}");
    }
    assert!(stage.end("TERM").success());
    assert_eq!(
        (read_allowed_cpus(before), read_allowed_cpus(after)),
        (read_own_cpus(), read_own_cpus())
    );
    assert!(!stage.path("state").exists());
}

fn read_nice(process: u32) -> String {
    read_stat_field(process, 19)
}

#[test]
fn a_dry_run_of_rules_changes_nothing() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    stage.write_rule("place = \"cpu:0\"");
    let process = stage.start_napper();
    let output = stage.command(&["--dry-run", "--once"]).output().unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    assert!(
        out.contains(&format!("would place napper ({process}) by 'naps'")),
        "{out}"
    );
    assert_eq!(read_allowed_cpus(process), read_own_cpus());
    assert!(!stage.path("state").exists());
    assert_eq!(stage.read_log()[0]["dry_run"], true);
}

#[test]
fn a_process_placed_by_others_stays() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    stage.write_rule("place = \"cpu:0\"");
    let last = read_own_cpus()
        .rsplit([',', '-'])
        .next()
        .unwrap()
        .to_owned();
    let mut command = pinwise(&stage.path("store.db"));
    command.args(["run", "--place", &format!("cpu:{last}"), "--"]);
    let child = command
        .arg(stage.path("napper"))
        .arg("600")
        .spawn()
        .unwrap();
    let process = stage.keep(child);
    stage.wait_until_on(process, &last);
    stage.start(&[]);
    let placed = stage.start_napper();
    stage.wait_until_on(placed, "0");
    assert_eq!(read_allowed_cpus(process), last);
    // pinwise may see the two processes in either order.
    stage.wait_until("a refusal", |stage| {
        stage.read("log").contains("\"refused\"")
    });
    assert!(stage.end("INT").success());
    let log = stage.read_log();
    let is_refusal =
        |event: &&serde_json::Value| event["change"] == "refused" && event["process"] == process;
    assert_eq!(log.iter().filter(is_refusal).count(), 1, "{log:?}");
    assert_eq!(
        (read_allowed_cpus(process), read_allowed_cpus(placed)),
        (last, read_own_cpus())
    );
}

#[test]
fn restarted_rules_take_over_their_processes() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    stage.write_rule("place = \"cpu:0\"");
    let process = stage.start_napper();
    let output = stage.command(&["--once"]).output().unwrap();
    assert!(output.status.success(), "{}", decode_output(&output).1);
    assert_eq!(read_allowed_cpus(process), "0");
    // Without the journal this mask would look like another user's.
    let last = read_own_cpus()
        .rsplit([',', '-'])
        .next()
        .unwrap()
        .to_owned();
    stage.write_rule(&format!("place = \"cpu:{last}\""));
    stage.start(&[]);
    stage.wait_until_on(process, &last);
    // Only one process may write a journal.
    let second = stage.command(&["--once"]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(
        decode_output(&second)
            .1
            .contains("another pinwise apply rules uses it")
    );
    assert!(stage.end("TERM").success());
    assert_eq!(read_allowed_cpus(process), read_own_cpus());
}

#[test]
fn a_signal_reads_the_rules_again() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    let process = stage.start_placed();
    stage.write_rule("place = \"cpu:99999\"");
    stage.signal("HUP");
    stage.wait_until("a warning", |stage| {
        stage.read("err").contains("stay in force")
    });
    assert!(
        stage.read("err").contains("rules.toml:4:9: place:"),
        "{}",
        stage.read("err")
    );
    assert_eq!(read_allowed_cpus(process), "0");
    stage.write_rule("place = \"os-default\"");
    stage.signal("HUP");
    stage.wait_until_on(process, &read_own_cpus());
    assert!(stage.end("TERM").success());
}

#[test]
fn polling_places_new_processes_too() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    stage.write_rule("place = \"cpu:0\"");
    stage.start(&["--poll-only", "--poll", "20ms"]);
    assert!(
        stage
            .read("err")
            .contains("Polling for new processes every 20ms")
    );
    let process = stage.start_napper();
    stage.wait_until_on(process, "0");
    assert!(stage.end("TERM").success());
    assert_eq!(read_allowed_cpus(process), read_own_cpus());
}

#[test]
fn changes_for_a_program_end_if_the_process_executes_another() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    copy_program("/bin/sh", &stage.path("napper"));
    stage.write_rule("place = \"cpu:0\"");
    let mut command = Command::new(stage.path("napper"));
    command.args(["-c", "read line; exec sleep 600"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let process = stage.keep(child);
    stage.start(&[]);
    if stage
        .read("err")
        .contains("Polling for new processes every")
    {
        return report_skip("the kernel reports no new programs here");
    }
    stage.wait_until_on(process, "0");
    writeln!(input).unwrap();
    stage.wait_until_on(process, &read_own_cpus());
    assert_eq!(stage.read_log()[1]["why"], "it runs another program now");
    assert!(stage.end("TERM").success());
}

#[test]
fn rules_that_others_could_exploit_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, file) = (folder.path().join("bin"), folder.path().join("rules.toml"));
    std::fs::create_dir(&inside).unwrap();
    let text = format!(
        "[[rule]]\nname = 'a'\nexecutable = '{0}/db'\nnice = -1\n\
         [[rule]]\nname = 'b'\nexecutable = 'db'\nnice = 1\n",
        inside.display()
    );
    std::fs::write(&file, text).unwrap();
    let set_mode = |path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let shown = file.display().to_string();
    let check = || {
        let output = run(&["apply", "rules", "check", &shown]);
        assert!(output.status.success(), "{output:?}");
        decode_output(&output).1
    };
    set_mode(&inside, 0o755);
    set_mode(&file, 0o644);
    let message = check();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(
        lines[0].contains(":4:8: nice: rule 'a' without user"),
        "{message}"
    );
    assert!(
        lines[1].contains(":6:8: rule 'b': executable = \"db\""),
        "{message}"
    );
    set_mode(&inside, 0o777);
    set_mode(&file, 0o666);
    let message = check();
    assert_eq!(message.lines().count(), 4, "{message}");
    let others = "may be written to by others";
    for (place, path) in [("1:1: these rules", &file), ("2:8: rule 'a'", &inside)] {
        let line = message.lines().find(|line| line.contains(place)).unwrap();
        assert!(
            line.contains(&format!("{} {others}", path.display())),
            "{message}"
        );
    }
}

#[test]
fn hostile_names_are_escaped() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    let name = "a) R 1\n\u{1b}[2J";
    stage.add_program(name);
    let rule = "[[rule]]\nname = \"odd\"\nexecutable = \"a) R 1*\"\nplace = \"cpu:0\"\n";
    std::fs::write(stage.path("rules.toml"), rule).unwrap();
    let child = Command::new(stage.path(name)).arg("600").spawn().unwrap();
    let process = stage.keep(child);
    stage.start(&[]);
    stage.wait_until_on(process, "0");
    let out = stage.read("out");
    assert!(
        out.contains("a) R 1\\n\\u{1b}[2J") && out.lines().count() == 1,
        "{out:?}"
    );
    assert_eq!(stage.read_log()[0]["name"], name);
    assert!(stage.end("TERM").success());
    assert_eq!(read_allowed_cpus(process), read_own_cpus());
}

#[test]
fn check_shows_rules_and_their_processes() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    stage.write_rule("place = \"cpu:0\"\nnice = 3");
    let process = stage.start_napper();
    let file = stage.path("rules.toml").display().to_string();
    let record = run_for_json(&["apply", "rules", "check", &file, "--format", "json"]);
    let rule = &record["rules"][0];
    assert_eq!((&rule["cpus"], &rule["nice"]), (&"0".into(), &3.into()));
    assert_eq!(rule["processes"][0]["process"], process);
    let (out, _) = decode_output(&run(&["apply", "rules", "check", &file]));
    assert!(out.contains("then  cpu:0 (CPUs 0), nice 3"), "{out}");
    assert!(
        out.contains(&format!("napper ({process}, on {})", read_own_cpus())),
        "{out}"
    );
}

#[test]
fn nothing_is_changed_if_the_journal_cannot_be_written() {
    let Some(mut stage) = Stage::new() else {
        return;
    };
    stage.write_rule("place = \"cpu:0\"");
    let process = stage.start_napper();
    std::fs::write(stage.path("state"), "some notes\n").unwrap();
    let output = stage.command(&["--once"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        decode_output(&output).1.contains("not a journal of rules"),
        "{output:?}"
    );
    assert_eq!(stage.read("state"), "some notes\n");
    assert_eq!(read_allowed_cpus(process), read_own_cpus());
}

#[test]
fn systemd_accepts_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a $b %n");
    std::fs::create_dir(&inside).unwrap();
    let file = inside.join("rules.toml");
    std::fs::write(&file, "[[rule]]\nname = 'a'\nexecutable = 'x'\nnice = 1\n").unwrap();
    let output = run(&["apply", "rules", "unit", file.to_str().unwrap()]);
    let (unit, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    let line = unit
        .lines()
        .find(|line| line.starts_with("ExecStart="))
        .unwrap();
    assert!(line.ends_with("/a $$b %%n/rules.toml\""), "{line}");
    // Its check runs as the unit runs it: systemd's escapes undone, by a shell.
    let check = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStartPre="))
        .unwrap();
    let check = check.replace("$$", "\\$").replace("%%", "%");
    let checked = Command::new("sh").args(["-c", &check]).output().unwrap();
    let (_, err) = decode_output(&checked);
    assert!(checked.status.success(), "{check}: {err}");
    assert!(unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
    // systemd removes this folder with the unit: it must not be that of other journals.
    assert!(unit.contains("\nRuntimeDirectory=pinwise-rules\n"));
    let expected = "CapabilityBoundingSet=CAP_SYS_NICE CAP_NET_ADMIN CAP_SYS_PTRACE";
    assert!(unit.contains(expected));
    if !has_program("systemd-analyze") {
        return report_skip("no systemd-analyze");
    }
    let path = folder.path().join("pinwise-rules.service");
    std::fs::write(&path, &unit).unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (_, message) = decode_output(&verified);
    assert!(!message.contains("pinwise-rules.service"), "{message}");
}

#[test]
fn the_rules_of_the_document_can_be_parsed() {
    let text = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let mut seen = 0;
    for block in text.split("\n```toml\n").skip(1) {
        let rules = block.split("\n```").next().unwrap();
        let read = pinwise_workload::rules::Rules::parse(rules);
        let read = read.unwrap_or_else(|error| panic!("{error}: {rules}"));
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        seen += 1;
    }
    assert!(seen > 0, "the examples have moved");
}
