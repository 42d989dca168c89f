//! A PostgreSQL server of the tests' own, started when the first test asks for
//! it and ended with the process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{report_skip, root};

static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
static DATABASES: AtomicUsize = AtomicUsize::new(0);

struct Shared {
    server: PathBuf,
    /// Ends the server when this process is gone, however it goes.
    _keeper: Child,
}

/// A server that is ended with this value.
pub(crate) struct Server {
    folder: PathBuf,
    settings: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = script("down.sh", &self.folder).status();
    }
}

impl Server {
    /// A test's own server, to be stopped and started; `None`, with a message, if there is none.
    pub(crate) fn own() -> Option<Self> {
        Self::prepared(|_| Vec::new())
    }

    /// The same with files in its folder, and with settings.
    pub(crate) fn prepared(prepare: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap().keep();
        let settings = prepare(&folder);
        match start_server(&folder, &settings) {
            Ok(()) => Some(Self { folder, settings }),
            Err(reason) => {
                report_skip(&reason);
                None
            }
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// At once, as if the machine were switched off.
    pub(crate) fn stop(&self) {
        let status = script("down.sh", &self.folder).arg("--keep").status();
        assert!(status.unwrap().success());
    }

    pub(crate) fn start(&self) {
        start_server(&self.folder, &self.settings).unwrap();
    }

    /// The URL of a new database.
    pub(crate) fn database(&self) -> String {
        create(&self.folder)
    }
}

/// The URL of a new database on the server that tests share; `None`, with a message, if there is no
/// server.
pub(crate) fn database() -> Option<String> {
    match SHARED.get_or_init(start_shared) {
        Ok(shared) => Some(create(&shared.server)),
        Err(reason) => {
            report_skip(&format!("on PostgreSQL: {reason}"));
            None
        }
    }
}

fn start_shared() -> Result<Shared, String> {
    let folder = tempfile::tempdir().unwrap().keep();
    start_server(&folder, &[])?;
    // Its standard input ends when this process does.
    let down = root().join("tests/env/postgres/down.sh");
    let keeper = Command::new("setsid")
        .args(["sh", "-c", "cat >/dev/null; exec \"$0\" \"$1\""])
        .arg(down)
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("setsid: {error}"))?;
    Ok(Shared {
        server: folder,
        _keeper: keeper,
    })
}

fn script(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(root().join("tests/env/postgres").join(name));
    command.arg(folder).stdin(Stdio::null());
    command
}

fn start_server(folder: &Path, settings: &[String]) -> Result<(), String> {
    let output = script("up.sh", folder).args(settings).output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    // 69: nothing is installed. Any other status is a fault of the tests.
    assert_eq!(output.status.code(), Some(69), "{message}");
    Err(message)
}

fn create(folder: &Path) -> String {
    let number = DATABASES.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_{}_{number}", std::process::id());
    let url = |name: &str| format!("postgres://postgres@/{name}?host={}", folder.display());
    execute(
        &url("postgres"),
        &format!("CREATE DATABASE {name} TEMPLATE template0"),
    );
    url(&name)
}

/// Statements past the store.
pub(crate) fn execute(url: &str, sql: &str) {
    try_execute(url, sql).unwrap();
}

/// The same for SQL that may fail.
pub(crate) fn try_execute(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        let driven = tokio::spawn(connection);
        let done = client.batch_execute(sql).await;
        drop(client);
        let _ = driven.await;
        done
    })
}

/// The first column of what a statement finds, as text.
pub(crate) fn select(url: &str, sql: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        let rows = client.simple_query(sql).await.unwrap();
        let rows = rows.iter().filter_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    })
}
