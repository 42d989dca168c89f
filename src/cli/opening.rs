//! Opens the store of a command, and finds it.

use std::sync::Arc;

use anyhow::Context;

use super::args::Global;
use super::password;
use super::surroundings::named_folder;
use super::terminal::Terminal;
use pinwise_store::{Location, Spool, Store};

/// Why there is no store to be read.
const NOTHING: &str = "--store none: nothing to read";

/// The store, which these commands cannot do without, for reading.
pub(super) fn needed_store(global: &Global) -> anyhow::Result<Store> {
    open_store_to_read(global)?.with_context(|| NOTHING)
}

/// The same for listing: a mistyped store is not an empty one.
pub(super) fn listed_store(global: &Global) -> anyhow::Result<Store> {
    let (location, spool) = place(global)?;
    let store = Store::open_to_read(&location, &spool)?.with_context(|| NOTHING)?;
    if global.store.is_some()
        && let Location::Sqlite(path) = &location
        && !path.exists()
    {
        let missing = format!("no store at {} yet", path.display());
        Terminal::new(global).warn(&missing);
    }
    Ok(store)
}

/// The same for changing its contents.
pub(super) fn changed_store(global: &Global) -> anyhow::Result<Store> {
    let (location, spool) = place(global)?;
    Store::open_to_change(&location, &spool)?.with_context(|| NOTHING)
}

/// Opens the store, unless `--store none` is given.
pub(super) fn open_store(global: &Global) -> anyhow::Result<Option<Store>> {
    let (location, spool) = place(global)?;
    Ok(Store::open_at(&location, &spool)?)
}

/// A file that cannot be a store is refused before anything runs whose result it
/// would keep. A server that is away is no reason: the result can wait.
pub(super) fn check_store(global: &Global) -> anyhow::Result<()> {
    match location(global)? {
        Location::Sqlite(_) => open_store(global).map(drop),
        Location::Postgres(_) | Location::Nowhere => Ok(()),
    }
}

/// Opens the store for reading, unless `--store none` is given: nothing is created.
pub(super) fn open_store_to_read(global: &Global) -> anyhow::Result<Option<Store>> {
    let (location, spool) = place(global)?;
    Ok(Store::open_to_read(&location, &spool)?)
}

/// The store's location, and the folder for records that it cannot take.
fn place(global: &Global) -> anyhow::Result<(Location, Spool)> {
    let location = location(global)?;
    log::info!("store {location}");
    let spool = spool(&location, Terminal::new(global))?;
    Ok((location, spool))
}

/// Spool directory for records that cannot be delivered; a file needs none.
pub(super) fn spool(location: &Location, terminal: Terminal) -> anyhow::Result<Spool> {
    let folder = match location {
        Location::Postgres(_) => state_folder()?.join("pinwise/spool"),
        Location::Sqlite(_) | Location::Nowhere => std::path::PathBuf::new(),
    };
    Ok(Spool {
        folder,
        warn: Arc::new(move |sentence| terminal.warn(sentence)),
    })
}

/// The location of the store.
pub(super) fn location(global: &Global) -> anyhow::Result<Location> {
    match &global.store {
        Some(text) => parse_location(text),
        None => Ok(Location::Sqlite(default_store()?)),
    }
}

/// A location as it is written, with the password from elsewhere.
pub(super) fn parse_location(text: &str) -> anyhow::Result<Location> {
    let mut location = Location::parse(text)?;
    if let Location::Postgres(server) = &mut location {
        password::offer_security(server)?;
        password::offer(server);
    }
    Ok(location)
}

fn default_store() -> anyhow::Result<std::path::PathBuf> {
    let data = named_folder("XDG_DATA_HOME")
        .or_else(|| named_folder("HOME").map(|home| home.join(".local/share")))
        .context("neither XDG_DATA_HOME nor HOME is set: choose a store with --store")?;
    Ok(data.join("pinwise/pinwise.db"))
}

/// The folder for data that must outlast a command but is not the user's.
fn state_folder() -> anyhow::Result<std::path::PathBuf> {
    named_folder("XDG_STATE_HOME")
        .or_else(|| named_folder("HOME").map(|home| home.join(".local/state")))
        .context("neither XDG_STATE_HOME nor HOME is set: undelivered records need a folder")
}
