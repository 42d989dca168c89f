//! The connection to a server: opened again after it broke, with a time limit on every wait.
//!
//! There is no background thread: the connection is served only while a caller waits for an answer,
//! so that it disturbs no measurement.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{Client, Connection, Error, NoTls, Row};

use super::failure::{Failure, to_one_line};
use super::guard::GuardError;
use super::secure::Connector;
use crate::StoreError;
use crate::location::{DEFAULT_PORT, Server, innermost_reason};

/// Default time limit for an answer; the limit for a lock (`lock_timeout`) is shorter.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(30);
/// Slowest transfer that is waited for.
const BYTES_PER_S: usize = 1 << 20;

/// Limits an answer whose rows are all kept in memory.
const MAX_ANSWER_BYTES: usize = 1 << 30;

/// Settings of every session. The search path leaves out our schema until its owner is checked.
const SESSION_SETTINGS: &str = "SET search_path TO pg_catalog; SET lock_timeout = '5s';";

/// A statement's value and its type.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// Why a statement was not executed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No server answers; the connection is gone.
    Away(String),
    /// Another session holds the lock.
    Locked,
    /// Another session wrote the same row at the same moment; a retry sees it.
    Raced,
    /// The server's message.
    Refused(String),
    /// The connection lacks the requested encryption.
    Insecure(String),
    /// Already an error of the store.
    Store(StoreError),
}

/// A database, connected while it answers.
#[derive(Debug)]
pub(super) struct Link {
    server: Server,
    connector: Connector,
    /// Why the guard ended the connection; the next query takes it.
    ended: Arc<Mutex<Option<String>>>,
    /// `None` only while the link is created or dropped.
    runtime: Option<Runtime>,
    client: RefCell<Option<Arc<Client>>>,
    /// Additional settings of sessions.
    settings: RefCell<String>,
    /// Number of sessions so far.
    sessions: Cell<usize>,
    is_in_transaction: Cell<bool>,
    patience: Cell<Duration>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // A store may be dropped where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Link {
    pub(super) fn new(server: &Server) -> Result<Self, StoreError> {
        let connector = Connector::new(server).map_err(|error| StoreError::Insecure {
            store: server.to_string(),
            reason: error.to_string(),
        })?;
        let mut link = Self {
            server: server.clone(),
            connector,
            ended: Arc::default(),
            runtime: None,
            client: RefCell::new(None),
            settings: RefCell::new(SESSION_SETTINGS.to_owned()),
            sessions: Cell::new(0),
            is_in_transaction: Cell::new(false),
            patience: Cell::new(DEFAULT_PATIENCE),
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let connected = match runtime {
            Ok(runtime) => {
                link.runtime = Some(runtime);
                link.connect().map(|_| ())
            }
            Err(error) => Err(Trouble::Away(error.to_string())),
        };
        match connected {
            Ok(()) => Ok(link),
            Err(trouble) => Err(link.explain(trouble)),
        }
    }

    /// The number of this session, from 1; locks do not carry over to the next.
    pub(super) fn session(&self) -> usize {
        self.sessions.get()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.borrow().is_some()
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.is_in_transaction.get()
    }

    /// Changes the time allowed for the answers in `work`.
    pub(super) fn run_with_patience<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&Self) -> T,
    ) -> T {
        let before = self.patience.replace(patience);
        let result = work(self);
        self.patience.set(before);
        result
    }

    /// Applies settings to this session and later ones.
    pub(super) fn apply_settings(&self, settings: &str) -> Result<(), Trouble> {
        self.settings.borrow_mut().push_str(&format!("{settings};"));
        self.execute(settings)
    }

    /// The rows of a statement. If the connection is broken, it is made again and the statement
    /// sent once more, except within a transaction: a lone statement must tolerate being executed
    /// twice.
    pub(super) fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Trouble> {
        self.send(0, sql, values)
    }

    /// As [`Self::query`], with more time for a statement that sends this many bytes.
    pub(super) fn send(
        &self,
        bytes: usize,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Trouble> {
        self.retry_once(|client| self.wait(bytes, collect_rows(client, sql, values)))
    }

    /// The first value of the only row.
    pub(super) fn query_value<T: FromSqlOwned>(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<T, Trouble> {
        let rows = self.query(sql, values)?;
        let row = rows
            .first()
            .ok_or_else(|| Trouble::Refused("no row came back".to_owned()))?;
        value(row, 0)
    }

    /// Statements without values.
    pub(super) fn execute(&self, sql: &str) -> Result<(), Trouble> {
        self.retry_once(|client| self.wait(0, client.batch_execute(sql)))
    }

    /// Visits rows one by one.
    pub(super) fn visit_rows(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut dyn FnMut(&Row) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let client = self.connected_client()?;
        let values = values.iter().map(|(value, kind)| (*value, kind.clone()));
        let mut rows = Box::pin(self.wait(0, client.query_typed_raw(sql, values))?);
        while let Some(row) = self.wait(0, rows.try_next())? {
            visit(&row)?;
        }
        Ok(())
    }

    /// Runs `work` in one transaction.
    pub(super) fn transaction<T>(
        &self,
        begin: &str,
        work: impl FnOnce(&Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.execute(begin)?;
        self.is_in_transaction.set(true);
        let done = work(self).and_then(|done| self.execute("COMMIT").map(|()| done));
        if done.is_err() && self.is_connected() {
            // If even the rollback fails, the session ends.
            if self.execute("ROLLBACK").is_err() {
                self.disconnect();
            }
        }
        self.is_in_transaction.set(false);
        done
    }

    /// The database's displayable name.
    pub(super) fn display_name(&self) -> String {
        self.server.to_string()
    }

    pub(super) fn explain(&self, trouble: Trouble) -> StoreError {
        let store = self.display_name();
        match trouble {
            Trouble::Away(reason) => StoreError::Unreachable { store, reason },
            Trouble::Locked | Trouble::Raced => StoreError::Locked { path: store },
            Trouble::Refused(reason) => StoreError::Refused { store, reason },
            Trouble::Insecure(reason) => StoreError::Insecure { store, reason },
            Trouble::Store(error) => error,
        }
    }

    pub(super) fn disconnect(&self) {
        self.client.replace(None);
    }

    /// Repeats a request once if an existing connection turns out to be broken.
    fn retry_once<T>(&self, ask: impl Fn(&Client) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let was_connected = self.is_connected();
        match ask(&*self.connected_client()?) {
            Err(Trouble::Away(_)) if was_connected && !self.is_in_transaction.get() => {
                ask(&*self.connected_client()?)
            }
            answer => answer,
        }
    }

    fn connected_client(&self) -> Result<Arc<Client>, Trouble> {
        let client = self.client.borrow().clone();
        match client {
            Some(client) => Ok(client),
            None if self.is_in_transaction.get() => {
                Err(Trouble::Away("the connection broke".to_owned()))
            }
            None => self.connect(),
        }
    }

    /// Opens a session. One time limit covers all of it, for servers that hang in TLS,
    /// authentication or the first settings.
    fn connect(&self) -> Result<Arc<Client>, Trouble> {
        let settings = self.settings.borrow().clone();
        let client = self.run_with_patience(self.connect_limit(), |link| {
            link.wait(0, async {
                let client = link.connect_to_host().await?;
                client.batch_execute(&settings).await?;
                Ok::<_, Trouble>(client)
            })
        })?;
        let client = Arc::new(client);
        self.client.replace(Some(Arc::clone(&client)));
        self.sessions.set(self.sessions.get() + 1);
        Ok(client)
    }

    /// Opens a connection to the first host that answers.
    async fn connect_to_host(&self) -> Result<Client, Trouble> {
        if self.server.is_socket() {
            return self.connect_to_socket().await;
        }
        let config = &self.server.config;
        let connect = async |connector| -> Result<Client, Trouble> {
            Ok(self.spawn_connection(config.connect(connector).await?))
        };
        match (
            connect(self.connector.clone()).await,
            self.connector.fallback(),
        ) {
            (Err(Trouble::Insecure(_)), Some(plain)) => connect(plain).await,
            (connected, _) => connected,
        }
    }

    /// The client library does not allow inspecting a socket that it opened itself.
    async fn connect_to_socket(&self) -> Result<Client, Trouble> {
        let config = &self.server.config;
        let ports = config.get_ports();
        let mut connected = Err(Trouble::Away("no socket is named".to_owned()));
        for (index, host) in config.get_hosts().iter().enumerate() {
            let Host::Unix(folder) = host else { continue };
            let port = ports.get(index).or(ports.first()).unwrap_or(&DEFAULT_PORT);
            let path = folder.join(format!(".s.PGSQL.{port}"));
            let connect = async {
                let stream = self.connector.guard_plain(UnixStream::connect(path).await?);
                let connection = config.connect_raw(stream, NoTls).await?;
                Ok::<_, Trouble>(self.spawn_connection(connection))
            };
            connected = connect.await;
            if connected.is_ok() {
                break;
            }
        }
        connected
    }

    /// Lets the runtime serve a connection whenever a caller waits. If the guard ends it, the
    /// reason is kept for the next query.
    fn spawn_connection<S, T>(&self, (client, connection): (Client, Connection<S, T>)) -> Client
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ended = Arc::clone(&self.ended);
        drop(tokio::spawn(async move {
            let Err(error) = connection.await else { return };
            if let (Some(reason), Ok(mut ended)) = (find_guard_error(&error), ended.lock()) {
                *ended = Some(reason);
            }
        }));
        client
    }

    /// Time allowed for connecting: the client itself limits only each host.
    fn connect_limit(&self) -> Duration {
        let config = &self.server.config;
        let hosts = config.get_hosts().len().max(1);
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
        let limit = config.get_connect_timeout().copied();
        let limit = limit.map_or(DEFAULT_PATIENCE, |limit| limit.saturating_mul(hosts));
        limit.min(self.patience.get())
    }

    /// Waits for an answer, for a limited time.
    fn wait<T, E: Into<Trouble>>(
        &self,
        bytes: usize,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Trouble> {
        let Some(runtime) = &self.runtime else {
            return Err(Trouble::Away("the connection is closed".to_owned()));
        };
        let extra = u64::try_from(bytes / BYTES_PER_S).unwrap_or(u64::MAX);
        let limit = self.patience.get() + Duration::from_secs(extra);
        let answered = runtime.block_on(async { timeout(limit, answer).await });
        let answered = answered.map_or_else(
            |_| {
                let waited = limit.as_secs_f64();
                Err(Trouble::Away(format!("no answer within {waited:.0} s")))
            },
            |answer| answer.map_err(Into::into),
        );
        if !matches!(answered, Err(Trouble::Away(_))) {
            return answered;
        }
        self.disconnect();
        let ended = self.ended.lock().ok().and_then(|mut ended| ended.take());
        ended.map_or(answered, |reason| Err(Trouble::Refused(reason)))
    }
}

/// The rows of an answer, up to a limit.
async fn collect_rows(
    client: &Client,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, Trouble> {
    let values = values.iter().map(|(value, kind)| (*value, kind.clone()));
    let mut found = pin!(client.query_typed_raw(sql, values).await?);
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.try_next().await? {
        bytes += row.raw_size_bytes() + size_of::<Row>();
        if bytes > MAX_ANSWER_BYTES {
            let gib = MAX_ANSWER_BYTES >> 30;
            return Err(Trouble::Refused(format!(
                "an answer is larger than {gib} GiB"
            )));
        }
        rows.push(row);
    }
    Ok(rows)
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Away(to_one_line(&error.to_string()))
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        classify_error(&error)
    }
}

/// Classifies an error of the client.
fn classify_error(error: &Error) -> Trouble {
    let Some(refusal) = error.as_db_error() else {
        return match error.source() {
            None => Trouble::Away(error.to_string()),
            Some(source) => classify_source(error, source),
        };
    };
    let words = to_one_line(refusal.message());
    let code = refusal.code();
    // Classes of SQLSTATE: connections, resources, intervention by the operator.
    let is_away = code.code().starts_with("08")
        || code.code().starts_with("57P")
        || *code == SqlState::TOO_MANY_CONNECTIONS;
    if is_away {
        return Trouble::Away(words);
    }
    let is_locked = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ];
    if is_locked.contains(code) {
        return Trouble::Locked;
    }
    if *code == SqlState::UNIQUE_VIOLATION {
        return Trouble::Raced;
    }
    if *code == SqlState::INSUFFICIENT_PRIVILEGE && words.contains("row-level security") {
        return Trouble::Refused(format!(
            "a record with that id belongs to another database user, who alone may change it ({words})"
        ));
    }
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return Trouble::Refused(format!(
            "{words}: this user has too few rights in that database; the owner of its schema pinwise grants them (docs/records.md)"
        ));
    }
    if *code == SqlState::INVALID_PASSWORD {
        return Trouble::Refused(format!(
            "{words} (PGPASSWORD, ~/.pgpass or the URL gives it)"
        ));
    }
    Trouble::Refused(words)
}

/// Classifies an error that does not come from the server.
fn classify_source(error: &Error, source: &(dyn std::error::Error + 'static)) -> Trouble {
    if let Some(reason) = find_guard_error(error) {
        return Trouble::Refused(reason);
    }
    let words = || to_one_line(&innermost_reason(error));
    match source.downcast_ref() {
        Some(Failure::Insecure(insecure)) => Trouble::Insecure(to_one_line(&insecure.to_string())),
        Some(Failure::Io(error)) => Trouble::Away(to_one_line(&error.to_string())),
        None => match source.downcast_ref::<io::Error>().map(io::Error::kind) {
            // How the client library reports that the server breaks the protocol, does not know the
            // password itself, or requests too many rounds of hashing.
            Some(ErrorKind::InvalidInput | ErrorKind::InvalidData) => {
                Trouble::Refused(format!("{} (is it the right server?)", words()))
            }
            Some(_) => Trouble::Away(words()),
            None => Trouble::Refused(words()),
        },
    }
}

/// Why the guard ended a connection, if it did.
fn find_guard_error(error: &Error) -> Option<String> {
    let error = error.source()?.downcast_ref::<io::Error>()?;
    let ended = error.get_ref()?.downcast_ref::<GuardError>()?;
    Some(ended.to_string())
}

/// Reads a value of a row.
pub(super) fn value<T: FromSqlOwned>(row: &Row, column: usize) -> Result<T, Trouble> {
    row.try_get(column)
        .map_err(|error| Trouble::Refused(to_one_line(&innermost_reason(&error))))
}

/// Replaces U+0000, which PostgreSQL does not allow in texts, by U+FFFD in lines and filters.
/// Bodies are JSON and have it escaped.
pub(super) fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
