//! A PostgreSQL server for the tests, which the first test starts and which ends with the process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{report_skip, root};

static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
static DATABASES: AtomicUsize = AtomicUsize::new(0);

struct Shared {
    server: PathBuf,
    /// Stops the server when this process ends, in any way.
    _guardian: Child,
}

/// A server that is stopped when this is dropped.
pub(crate) struct Server {
    folder: PathBuf,
    settings: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = script_command("down.sh", &self.folder).status();
    }
}

impl Server {
    /// A server of one test, which may stop and start it; `None`, with a message, if there is none.
    pub(crate) fn start_own() -> Option<Self> {
        Self::start_prepared(|_| Vec::new())
    }

    /// The same with files in its folder, and with settings.
    pub(crate) fn start_prepared(prepare: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
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

    /// Stops immediately, as in a power failure.
    pub(crate) fn stop(&self) {
        let status = script_command("down.sh", &self.folder)
            .arg("--keep")
            .status();
        assert!(status.unwrap().success());
    }

    pub(crate) fn start(&self) {
        start_server(&self.folder, &self.settings).unwrap();
    }

    /// The URL of a new database.
    pub(crate) fn create_database(&self) -> String {
        create_database_in(&self.folder)
    }
}

/// The URL of a new database on the server that tests share; `None`, with a message, if there is no
/// server.
pub(crate) fn create_database() -> Option<String> {
    match SHARED.get_or_init(start_shared) {
        Ok(shared) => Some(create_database_in(&shared.server)),
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
    let guardian = Command::new("setsid")
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
        _guardian: guardian,
    })
}

fn script_command(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(root().join("tests/env/postgres").join(name));
    command.arg(folder).stdin(Stdio::null());
    command
}

fn start_server(folder: &Path, settings: &[String]) -> Result<(), String> {
    let output = script_command("up.sh", folder)
        .args(settings)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    // 69: PostgreSQL is not installed. Any other status is a mistake of the tests.
    assert_eq!(output.status.code(), Some(69), "{message}");
    Err(message)
}

fn create_database_in(folder: &Path) -> String {
    let number = DATABASES.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_{}_{number}", std::process::id());
    let url = |name: &str| format!("postgres://postgres@/{name}?host={}", folder.display());
    execute(
        &url("postgres"),
        &format!("CREATE DATABASE {name} TEMPLATE template0"),
    );
    url(&name)
}

/// Executes statements, without the store.
pub(crate) fn execute(url: &str, sql: &str) {
    try_execute(url, sql).unwrap();
}

/// The same for SQL that may fail.
pub(crate) fn try_execute(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    build_runtime().block_on(async {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        let driven = tokio::spawn(connection);
        let done = client.batch_execute(sql).await;
        drop(client);
        let _ = driven.await;
        done
    })
}

fn build_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// The first column of a statement's rows, as text.
pub(crate) fn select_column(url: &str, sql: &str) -> Vec<String> {
    build_runtime().block_on(async {
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
