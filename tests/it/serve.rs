//! `pinwise serve`: what it answers, to whom, and what it reports of records that grow. The
//! requests are written byte by byte, without an HTTP library.

mod live;
mod refused;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{decode_output, pinwise, send_signal, split_words, wait_until};

/// A page without scripts that has what the site requires of one.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; connect-src 'self'">
<script type="application/json" id="pinwise-data">{"from":"site","packed":"columns"}</script>
"#;

/// A folder with a store and a page.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("page.html"), PAGE).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("store.db")
    }

    fn pinwise(&self, arguments: &[&str]) -> Command {
        let mut command = pinwise(&self.store());
        command
            .env("PINWISE_PAGE", self.path("page.html"))
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.pinwise(arguments).output().unwrap()
    }

    /// Compares on a simulated machine; returns the id of the record.
    fn compare(&self, more: &[&str]) -> String {
        let machine = ["--machine", "sim:core:4 pu:2"];
        let options = split_words(
            "--format json compare --seed 1 --max-runs 8 --place os-default --place cpu:0",
        );
        let output = self.run(&[&machine, &options[..], more, &["--", "prog"]].concat());
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{err}");
        let record: Value = serde_json::from_str(&out).unwrap();
        record["id"].as_str().unwrap().to_owned()
    }

    fn serve(&self) -> Serving {
        Serving::start(&mut self.pinwise(&["serve"]))
    }

    /// Changes the store directly, as a damage or a newer version would.
    fn execute_sql(&self, statement: &str) {
        let store = rusqlite::Connection::open(self.store()).unwrap();
        store.execute_batch(statement).unwrap();
    }
}

/// A running site, which is killed when this is dropped.
struct Serving {
    child: Child,
    port: u16,
    /// `/SECRET/`
    home: String,
}

impl Serving {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let Some((port, home)) = parse_address(line.trim_end()) else {
            let (_, err) = decode_output(&child.wait_with_output().unwrap());
            panic!("no address: {line}{err}");
        };
        Self { child, port, home }
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        // A request that is refused early need not be read to its end.
        let _ = stream.write_all(request.as_bytes());
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let own = format!("127.0.0.1:{}", self.port);
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {own}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        Answer::read(self.send(&format!("{request}\r\n")))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", &format!("{}{path}", self.home), &[])
    }

    fn get_json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.header("content-type"), "application/json");
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Status and error message of a request that fails; it must have a hint.
    fn get_error(&self, path: &str) -> (u16, String) {
        let answer = self.get(path);
        let message: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(!message["hint"].as_str().unwrap().is_empty());
        (answer.status, message["error"].as_str().unwrap().to_owned())
    }

    /// Sends a signal and waits; returns the exit status and standard error.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        send_signal(self.child.id(), signal);
        let mut message = String::new();
        let mut err = self.child.stderr.take().unwrap();
        err.read_to_string(&mut message).unwrap();
        (self.child.wait().unwrap().code(), message)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Port and path of `http://127.0.0.1:PORT/SECRET/`.
fn parse_address(line: &str) -> Option<(u16, String)> {
    let (port, home) = line.strip_prefix("http://127.0.0.1:")?.split_once('/')?;
    Some((port.parse().ok()?, format!("/{home}")))
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(mut stream: TcpStream) -> Self {
        let mut text = Vec::new();
        // After a refusal the connection may be reset; the answer came before that.
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no answer: {text}")),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> &str {
        let prefix = format!("{name}: ");
        let mut lines = self.head.lines();
        lines
            .find_map(|line| line.strip_prefix(prefix.as_str()))
            .unwrap_or_default()
    }

    #[track_caller]
    fn check_protection(&self) {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("x-frame-options", "deny"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(self.header(name), value, "{name} in {}", self.head);
        }
        let policy = self.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
        assert!(!self.head.contains("access-control"), "{}", self.head);
    }
}

#[test]
fn page_list_and_records_are_served() {
    let place = Place::new();
    let ids = [place.compare(&[]), place.compare(&["--tag", "night"])];
    let site = place.serve();
    let page = site.get("");
    assert_eq!((page.status, page.body.as_str()), (200, PAGE));
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(
        page.header("content-security-policy")
            .contains("connect-src 'self';")
    );
    page.check_protection();
    let head = site.ask("HEAD", &site.home, &[]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));

    let listing = site.get_json("api/records");
    assert_eq!(listing["total"], 2);
    let newest = &listing["records"][0];
    assert_eq!(newest["id"], ids[1].as_str());
    assert_eq!(
        (&newest["complete"], &newest["tags"][0]),
        (&true.into(), &"night".into())
    );
    assert!(newest["figures"][0]["value"].is_number(), "{newest}");
    assert_eq!(listing["tags"][0], "night");
    let narrowed = site.get_json("api/records?tag=night&limit=9");
    assert_eq!(
        (
            &narrowed["total"],
            narrowed["records"].as_array().unwrap().len()
        ),
        (&1.into(), 1)
    );
    assert_eq!(
        site.get_json("api/records?text=nothing%20like+it")["total"],
        0
    );
    assert_eq!(
        site.get_json("api/records?limit=1&offset=1")["records"][0]["id"],
        ids[0].as_str()
    );

    let exported = place.run(&["record", "show", &ids[0], "--format", "json"]);
    let (exported, _) = decode_output(&exported);
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert!(site.get_json(&format!("api/records/{}", ids[0])) == exported);
    assert_eq!(site.get_json("api/records/last")["id"], ids[1].as_str());
    site.get("api/records").check_protection();
}

#[test]
fn two_records_are_compared_as_by_record_diff() {
    let place = Place::new();
    let ids = [place.compare(&[]), place.compare(&[])];
    let site = place.serve();
    let (printed, _) =
        decode_output(&place.run(&["--format", "json", "record", "diff", &ids[0], &ids[1]]));
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["schema"], "pinwise.diff/1");
    assert!(site.get_json(&format!("api/diff?a={}&b={}", ids[0], ids[1])) == printed);
    for (query, status, words) in [
        (format!("a={}", ids[0]), 400, "No record 'b' given"),
        (format!("a={}&b=none", ids[0]), 404, "'none'"),
        (format!("a={0}&b={0}", ids[0]), 422, "both A and B"),
    ] {
        let (found, error) = site.get_error(&format!("api/diff?{query}"));
        assert_eq!(found, status, "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn gates_are_chained_as_by_record_history() {
    let place = Place::new();
    let suite = "[[benchmark]]\nname = \"parse\"\nrun = \"parse\"\n";
    std::fs::write(place.path("suite.toml"), suite).unwrap();
    let machine = "topology = \"core:4 pu:2\"\n[noise]\nsd = 0.02\n";
    std::fs::write(place.path("noisy.toml"), machine).unwrap();
    for seed in ["1", "2"] {
        let line =
            "--machine sim:noisy.toml gate base head --suite suite.toml --max-pairs 20 --seed";
        let mut command = place.pinwise(&split_words(line));
        let ended = command.arg(seed).current_dir(place.folder.path()).output();
        let (_, err) = decode_output(&ended.unwrap());
        assert!(!err.contains("error"), "{err}");
    }
    place.execute_sql(
        "UPDATE record SET body = json_set(body, '$.base.commit', 'c' || rowid,
         '$.head.commit', 'c' || (rowid + 1),
         '$.benchmarks[0].link', json('{\"ratio\": 1.0, \"error\": 0.004, \"pairs\": 20}'),
         '$.started', '2026-01-0' || rowid || 'T00:00:00Z')",
    );
    let history = ["--format", "json", "record", "history"];
    let ended = place.run(&[&history[..], &["--trend", "parse"]].concat());
    let printed: Value = serde_json::from_str(&decode_output(&ended).0).unwrap();
    assert_eq!(printed["steps"].as_array().map(Vec::len), Some(2));
    let site = place.serve();
    let of_suite = "api/gates?benchmark=parse&subject=gate%20%C2%B7%20suite.toml";
    assert_eq!(site.get_json(of_suite), printed);
    assert!(
        site.get_json("api/gates?benchmark=parse&subject=other")
            .is_null()
    );
    let (status, error) = site.get_error("api/gates?subject=other");
    assert_eq!(status, 400, "{error}");
    assert!(error.contains("No benchmark given"), "{error}");
}

#[test]
fn the_secret_is_new_at_each_start_and_the_address_is_printed_as_json() {
    let place = Place::new();
    let first = place.serve();
    let second = place.serve();
    assert_ne!(first.home, second.home);
    let secret = first.home.trim_matches('/');
    assert!(secret.len() >= 32 && secret.bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(second.ask("GET", &first.home, &[]).status, 404);

    let mut child = place
        .pinwise(&["--format", "json", "serve"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let message: Value = serde_json::from_str(&line).unwrap();
    let (port, _) = parse_address(message["address"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&message["host"], &message["port"]),
        (&"127.0.0.1".into(), &port.into())
    );
}

#[test]
fn a_signal_ends_the_site_with_status_0() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let site = place.serve();
        let _live = site.send(&format!(
            "GET {}api/live HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n\r\n",
            site.home, site.port
        ));
        assert_eq!(site.get("").status, 200);
        let (status, message) = site.end(signal);
        assert_eq!(status, Some(0), "{message}");
    }
}

#[test]
fn a_browsers_command_line_holds_no_secret() {
    let place = Place::new();
    let opener = place.path("xdg-open");
    let seen = place.path("seen");
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" > '{0}.new'\nmv '{0}.new' '{0}'\n",
        seen.display()
    );
    std::fs::write(&opener, script).unwrap();
    make_executable(&opener);
    let path = format!(
        "{}:{}",
        place.folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    let site = Serving::start(place.pinwise(&["serve", "--open"]).env("PATH", path));
    let page = PathBuf::from(wait_for("a browser", || {
        std::fs::read_to_string(&seen).ok()
    }));
    let mode = std::fs::metadata(&page).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let message = std::fs::read_to_string(&page).unwrap();
    let secret = site.home.trim_matches('/').to_owned();
    assert!(!message.contains(&secret), "{message}");
    let (_, opened) = message.split_once("url=").unwrap();
    let (port, ticket) = parse_address(opened.split('"').next().unwrap()).unwrap();
    assert_eq!(port, site.port);
    assert!(!page.to_str().unwrap().contains(ticket.trim_matches('/')));
    // A browser marks a file as cross-site.
    let from_file = [("Sec-Fetch-Site", "cross-site")];
    let first = site.ask("GET", &ticket, &from_file);
    assert_eq!(first.status, 200);
    assert!(
        first.body.contains(&format!("url={}\"", site.home)),
        "{}",
        first.body
    );
    first.check_protection();
    assert_eq!(site.ask("GET", &ticket, &[]).status, 404, "it opens once");
    assert_eq!(site.ask("GET", &site.home, &from_file).status, 403);
    let (_, message) = site.end("TERM");
    assert!(message.contains("used twice"), "{message}");
    assert!(!page.exists(), "the file is removed with the site");
}

#[test]
fn the_site_works_without_a_browser() {
    let place = Place::new();
    let site = Serving::start(
        place
            .pinwise(&["serve", "--open"])
            .env("PATH", place.folder.path()),
    );
    assert_eq!(site.get("").status, 200);
    let (status, message) = site.end("TERM");
    assert_eq!(status, Some(0));
    assert!(
        message.contains("no browser could be opened: xdg-open"),
        "{message}"
    );
}

fn make_executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Waits until a value is there.
#[track_caller]
fn wait_for<T>(event: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until(event, || {
        found = find();
        found.is_some()
    });
    found.unwrap()
}
