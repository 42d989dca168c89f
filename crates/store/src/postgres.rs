//! The store in a PostgreSQL database.
//!
//! The tables are those of the file, in a schema `pinwise`. The writer of a growing record holds an
//! advisory lock in its session, which shows any host whether it lives. Runs are written to a
//! journal on the writer's own host first and sent in batches; undeliverable data waits in the
//! spool and fails no measurement.

mod delivery;
mod failure;
mod growing;
mod guard;
mod link;
mod ownership;
mod reading;
mod schema;
mod secure;
mod tls;
mod upkeep;
mod writing;

use std::cell::Cell;
use std::time::Duration;

use tokio_postgres::types::Type;

use super::location::Server;
use super::spool::{Spool, StoreSpool};
use super::{FileIdentity, Generation, Growth, StoreError};
use growing::Growing;
use link::{Link, Trouble, replace_nul};
use pinwise_topology::fnv1a;

/// An open database.
#[derive(Debug)]
pub(super) struct Postgres {
    link: Link,
    spool: StoreSpool,
    /// How to report that data waits in the spool.
    spool_settings: Spool,
    /// The record whose writer this is.
    growing: Option<Growing>,
    /// Was it reported that data waits in the spool?
    has_reported: Cell<bool>,
    /// Does data that this process spooled still wait?
    has_waiting: bool,
    is_read_only: Cell<bool>,
}

impl Postgres {
    /// Connects, updates the tables, and delivers this database's spooled data.
    pub(super) fn open(server: &Server, spool: &Spool) -> Result<Self, StoreError> {
        let link = Link::new(server)?;
        let mut store = Self {
            link,
            spool: StoreSpool::new(spool, &server.file_name()),
            spool_settings: spool.clone(),
            growing: None,
            has_reported: Cell::new(false),
            has_waiting: false,
            is_read_only: Cell::new(false),
        };
        schema::create_tables(&store.link)?;
        store.deliver();
        Ok(store)
    }

    fn explain(&self, trouble: Trouble) -> StoreError {
        self.link.explain(trouble)
    }

    pub(super) fn read_only(&self, patience: Duration) -> Result<(), StoreError> {
        self.is_read_only.set(true);
        let settings = format!(
            "SET default_transaction_read_only = on; SET lock_timeout = {}",
            patience.as_millis().max(1)
        );
        self.link
            .apply_settings(&settings)
            .map_err(|trouble| self.explain(trouble))
    }

    /// A database has no file: its identity never changes.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the same signature as for a file, which may be replaced"
    )]
    pub(super) fn file(&self) -> Result<FileIdentity, StoreError> {
        Ok(FileIdentity::default())
    }

    /// The snapshot changes with any transaction on the server, also in other databases: watchers
    /// then reload once too often.
    pub(super) fn generation(&self) -> Result<Generation, StoreError> {
        let snapshot: String = self
            .link
            .query_value("SELECT pg_current_snapshot()::text", &[])
            .map_err(|trouble| self.explain(trouble))?;
        Ok(Generation {
            file: self.file()?,
            version: fnv1a(snapshot.bytes()),
        })
    }

    pub(super) fn growth(&self, id: &str) -> Growth {
        let sql = format!(
            "SELECT complete, {},
                (SELECT count(*) FROM run WHERE record = id)
             FROM line WHERE id = $1",
            schema::is_held("id")
        );
        let Ok(rows) = self.link.query(&sql, &[(&replace_nul(id), Type::TEXT)]) else {
            return Growth::Unknown;
        };
        let Some(row) = rows.first() else {
            return Growth::Unknown;
        };
        let (is_complete, is_held): (bool, bool) = (row.get(0), row.get(1));
        let runs: i64 = row.get(2);
        match (is_complete, is_held) {
            (_, true) => Growth::Growing(runs.unsigned_abs()),
            (false, false) => Growth::CutOff,
            (true, false) => Growth::Unknown,
        }
    }
}
