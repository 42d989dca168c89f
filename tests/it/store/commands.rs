//! The command over stores on a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::server::{Server, create_database};
use crate::support::{
    PATIENCE, decode_output, pinwise, report_skip, send_signal, split_words, wait_until,
};

/// A database and a folder.
struct Stage {
    url: String,
    folder: tempfile::TempDir,
}

const SIMULATED: &str =
    "--format json compare --seed 1 --max-runs 8 --place os-default --place cpu:0 --machine";

impl Stage {
    fn new(url: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { url, folder }
    }

    fn pinwise(&self, arguments: &[&str]) -> Command {
        let mut command = pinwise(&self.folder.path().join("unused.db"));
        command
            .env("PINWISE_STORE", &self.url)
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env_remove("PGPASSWORD")
            .args(arguments)
            .current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.pinwise(arguments).output().unwrap()
    }

    #[track_caller]
    fn run_for_text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{arguments:?}: {err}");
        assert_eq!(err, "", "{arguments:?}");
        out
    }

    #[track_caller]
    fn run_for_json(&self, arguments: &[&str]) -> Value {
        let out = self.run_for_text(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&out).unwrap()
    }

    /// Compares on a simulated machine; returns the record.
    #[track_caller]
    fn compare(&self) -> Value {
        let rest = ["sim:core:4 pu:2", "--", "prog"];
        let out = self.run_for_text(&[&split_words(SIMULATED)[..], &rest].concat());
        serde_json::from_str(&out).unwrap()
    }

    /// The number of files in the spool.
    fn count_waiting(&self) -> usize {
        let spool = self.folder.path().join("state/pinwise/spool");
        let folders = std::fs::read_dir(spool).into_iter().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        files.count()
    }
}

/// Runs a command in a mount namespace in which this folder is read-only.
fn run_with_folder_read_only(folder: &std::path::Path, command: &Command) -> Output {
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || exit 69; shift; exec \"$@\"";
    let mut outer = Command::new("unshare");
    outer.args(["-rm", "sh", "-c", script, "sh"]).arg(folder);
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer.output().unwrap()
}

#[test]
fn a_store_on_read_only_media_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let stage = Stage::new(format!("sqlite:{}", store.display()));
    let id = stage.compare()["id"].as_str().unwrap().to_owned();
    let read =
        |arguments: &[&str]| run_with_folder_read_only(folder.path(), &stage.pinwise(arguments));
    let probe = run_with_folder_read_only(folder.path(), &Command::new("true"));
    if !probe.status.success() {
        let (_, err) = decode_output(&probe);
        return report_skip(&format!("no read-only mount: {}", err.trim()));
    }
    let reading: [&[&str]; 3] = [
        &["record", "history"],
        &["record", "show", "last"],
        &["record", "show", &id, "--format", "json"],
    ];
    for arguments in reading {
        let output = read(arguments);
        let (out, err) = decode_output(&output);
        assert!(
            output.status.success() && out.contains("prog"),
            "{arguments:?}: {err}"
        );
    }
    let (_, err) = decode_output(&read(&["record", "tag", &id, "--add", "x"]));
    assert!(
        err.contains("cannot be opened") && err.lines().count() == 1,
        "{err}"
    );
    // A write-ahead log, too, can be read if no file can be created.
    let writer = rusqlite::Connection::open(&store).unwrap();
    writer
        .execute_batch("UPDATE record SET verdict = verdict; UPDATE line SET title = 'changed'")
        .unwrap();
    let (out, err) = decode_output(&read(&["record", "history"]));
    assert!(out.contains("changed"), "{out}{err}");
}

#[test]
fn reading_commands_create_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("below/store.db");
    let stage = Stage::new(format!("sqlite:{}", store.display()));
    let reading: [(&[&str], i32); 8] = [
        (&["record", "history"], 0),
        (&["record", "show", "last"], 2),
        (&["record", "show", "last", "--format", "json"], 2),
        (&["record", "diff", "a", "b"], 2),
        (&["record", "tag", "last", "--add", "x"], 2),
        (&["record", "prune", "--older-than", "1h", "--yes"], 0),
        (&["profile", "diff", "last~1", "last"], 2),
        (&["apply", "last", "--as", "all"], 2),
    ];
    for (arguments, status) in reading {
        let output = stage.run(arguments);
        let (_, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {err}");
        assert!(!folder.path().join("below").exists(), "{arguments:?}");
    }
}

#[test]
fn record_commands_work_on_a_server() {
    let Some(url) = create_database() else { return };
    let stage = Stage::new(url);
    let first = stage.compare();
    let id = first["id"].as_str().unwrap();
    assert_eq!(stage.run_for_json(&["record", "show", id]), first);
    let second = stage.compare();
    let listed = stage.run_for_json(&["record", "history"]);
    assert_eq!(listed["records"].as_array().unwrap().len(), 2);
    assert_eq!(listed["records"][0]["id"], second["id"]);
    assert!(
        stage
            .run_for_text(&["record", "show", "last"])
            .contains("prog")
    );
    assert_eq!(stage.run_for_json(&["record", "show", "last~1"]), first);
    let tagged = stage.run_for_json(&["record", "tag", id, "--add", "good"]);
    assert_eq!(tagged["records"][0]["tags"][0], "good");
    assert_eq!(
        stage.run_for_json(&["record", "history", "--tag", "good"])["records"][0]["id"],
        first["id"]
    );
    let diff = stage.run_for_json(&["record", "diff", id, second["id"].as_str().unwrap()]);
    assert_eq!(diff["schema"], "pinwise.diff/1");
    let csv = stage.run_for_text(&["record", "show", "last", "--format", "csv"]);
    assert!(csv.lines().count() > 2);
    let pruned = stage.run_for_json(&["record", "prune", "--untagged", "--yes"]);
    assert_eq!(pruned["records"][0], second["id"]);
    assert_eq!(pruned["freed_bytes"], 0);
    stage.compare();
    let message = stage.run_for_text(&["record", "prune", "--untagged", "--yes"]);
    assert_eq!(
        message,
        "Removed 1 record; the server gives their space back when it vacuums.\n"
    );
    assert_eq!(stage.run_for_json(&["record", "history"])["total"], 1);
    assert!(!stage.folder.path().join("unused.db").exists());
    assert_eq!(stage.count_waiting(), 0);
}

/// The first line that a process prints.
fn read_line(child: &mut Child) -> String {
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// An HTTP answer, with its head.
fn get(address: &str) -> String {
    let (host, path) = address
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_site_shows_records_of_a_server_and_outlives_its_stop() {
    let Some(server) = Server::start_own() else {
        return;
    };
    let stage = Stage::new(server.create_database());
    let record = stage.compare();
    let id = record["id"].as_str().unwrap();
    let mut command = stage.pinwise(&["serve", "--quiet"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut site = command.spawn().unwrap();
    let address = read_line(&mut site);
    let list = || get(&format!("{address}api/records"));
    assert!(list().contains(id), "{}", list());
    assert!(get(&format!("{address}api/records/{id}")).contains("pinwise.comparison/1"));
    server.stop();
    let away = list();
    assert!(
        away.starts_with("HTTP/1.1 503") && away.contains("cannot be reached"),
        "{away}"
    );
    server.start();
    wait_until("the record is listed", || list().contains(id));
    send_signal(site.id(), "TERM");
    assert!(site.wait().unwrap().success());
    let mut err = String::new();
    site.stderr.unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err.matches("cannot be reached").count(), 1, "{err}");
}

#[test]
fn a_measurement_outlives_the_stop_of_its_server() {
    let Some(server) = Server::start_own() else {
        return;
    };
    let stage = Stage::new(server.create_database());
    stage.compare();
    let script = "echo >> started; until [ -e go ]; do sleep 0.01; done";
    let mut command = stage.pinwise(&["compare", "--place", "os-default", "--placebo"]);
    command
        .args(["--warmup", "0", "--max-runs", "2", "--format", "json"])
        .args(["--shell=sh", "--", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let comparing = command.spawn().unwrap();
    let started = stage.folder.path().join("started");
    wait_until("the command is started", || started.exists());
    // On another host it is seen growing.
    let other = Stage::new(stage.url.clone());
    let refused = other.run(&["record", "tag", "last", "--add", "x"]);
    let (_, err) = decode_output(&refused);
    assert!(err.contains("is still being written"), "{err}");
    server.stop();
    std::fs::write(stage.folder.path().join("go"), "").unwrap();
    let output = comparing.wait_with_output().unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    let message: Vec<&str> = err.lines().filter(|l| !l.contains("--max-runs")).collect();
    assert_eq!(message.len(), 1, "{err}");
    assert!(
        message[0].starts_with("warning:") && message[0].contains("spool"),
        "{err}"
    );
    let record: Value = serde_json::from_str(&out).unwrap();
    assert!(stage.count_waiting() > 0);
    // Reading commands fail, and lose no file of the spool.
    let output = stage.run(&["record", "history"]);
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err.contains("cannot be reached") && err.lines().count() == 1,
        "{err}"
    );
    server.start();
    assert_eq!(
        stage.run_for_json(&["record", "show", record["id"].as_str().unwrap()]),
        record
    );
    assert_eq!(stage.run_for_json(&["record", "history"])["total"], 2);
    assert_eq!(stage.count_waiting(), 0);
}

#[test]
fn runs_of_a_killed_writer_are_read_on_all_hosts() {
    let Some(url) = create_database() else { return };
    let stage = Stage::new(url.clone());
    let script = "echo >> started; [ $(wc -l < started) -lt 8 ] || sleep 60";
    let mut command = stage.pinwise(&["compare", "--place", "os-default", "--placebo"]);
    command
        .args(["--warmup", "0", "--max-runs", "100", "--quiet"])
        .args(["--shell=sh", "--", script])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut comparing = command.spawn().unwrap();
    let lines = || {
        let started = std::fs::read_to_string(stage.folder.path().join("started"));
        started.unwrap_or_default().lines().count()
    };
    wait_until("eight runs are made", || lines() >= 8);
    let other = Stage::new(url);
    assert_eq!(
        other.run_for_json(&["record", "history"])["records"][0]["complete"],
        false
    );
    comparing.kill().unwrap();
    comparing.wait().unwrap();
    let runs = |stage: &Stage| {
        let record = stage.run_for_json(&["record", "show", "last"]);
        let arms = record["arms"].as_array().unwrap().clone();
        let of = |arm: &Value, key: &str| arm[key].as_array().map_or(0, Vec::len);
        let counts = arms
            .iter()
            .map(|arm| of(arm, "runs") + of(arm, "other_runs"));
        counts.sum::<usize>()
    };
    assert_eq!(runs(&stage), 7);
    assert_eq!(runs(&other), 7);
    assert_eq!(stage.count_waiting(), 0);
    // Other hosts notice that its writer is gone.
    wait_until("the record may be changed", || {
        let tagged = other.run(&["record", "tag", "last", "--add", "x"]);
        tagged.status.success()
    });
}

#[test]
fn stores_are_copied() {
    let Some(url) = create_database() else { return };
    let stage = Stage::new(url.clone());
    let records = [stage.compare(), stage.compare()];
    let file = format!("sqlite:{}", stage.folder.path().join("copy.db").display());
    let copy = |from: &str, to: &str| stage.run_for_text(&["record", "copy", from, to]);
    assert_eq!(copy(&url, &file), "Copied 2 records.\n");
    let new = "Copied 0 records; 2 of 2 already existed.\n";
    assert_eq!(copy(&url, &file), new);
    assert_eq!(copy(&file, &url), new);
    let Some(second) = create_database() else {
        return;
    };
    let message = stage.run_for_json(&["record", "copy", &file, &second]);
    assert_eq!(
        (
            message["copied"].as_u64(),
            message["already_there"].as_u64()
        ),
        (Some(2), Some(0))
    );
    let target = Stage::new(second);
    for record in &records {
        assert_eq!(
            &target.run_for_json(&["record", "show", record["id"].as_str().unwrap()]),
            record
        );
    }
    // No password is shown.
    let away = "postgres://u:secret@/x?host=/nowhere";
    let (_, err) = decode_output(&stage.run(&["record", "copy", &file, away]));
    assert!(err.contains("TO: the store postgres://u@/x"), "{err}");
}
