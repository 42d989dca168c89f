//! Finds and opens the store of a command.

use std::sync::Arc;

use anyhow::Context;

use super::args::Global;
use super::password;
use super::surroundings::find_named_folder;
use super::terminal::Terminal;
use pinwise_store::{Location, Spool, Store};

/// The error if there is no store.
const NO_STORE: &str = "--store none: nothing to read";

/// Opens the store for reading; `--store none` is an error.
pub(super) fn require_store(global: &Global) -> anyhow::Result<Store> {
    open_store_to_read(global)?.with_context(|| NO_STORE)
}

/// Opens the store for listing. Warns if its file does not exist: the path may be mistyped.
pub(super) fn open_store_to_list(global: &Global) -> anyhow::Result<Store> {
    let (location, spool) = locate_store(global)?;
    let store = Store::open_to_read(&location, &spool)?.with_context(|| NO_STORE)?;
    if global.store.is_some()
        && let Location::Sqlite(path) = &location
        && !path.exists()
    {
        let missing = format!("no store at {} yet", path.display());
        Terminal::new(global).warn(&missing);
    }
    Ok(store)
}

/// Opens the store to change its contents; `--store none` is an error.
pub(super) fn open_store_to_change(global: &Global) -> anyhow::Result<Store> {
    let (location, spool) = locate_store(global)?;
    Store::open_to_change(&location, &spool)?.with_context(|| NO_STORE)
}

/// Opens the store, unless `--store none` is given.
pub(super) fn open_store(global: &Global) -> anyhow::Result<Option<Store>> {
    let (location, spool) = locate_store(global)?;
    Ok(Store::open_at(&location, &spool)?)
}

/// Refuses a file that cannot be a store before anything runs whose result it would keep. A server
/// may be unreachable: then the result is spooled.
pub(super) fn check_store(global: &Global) -> anyhow::Result<()> {
    match store_location(global)? {
        Location::Sqlite(_) => open_store(global).map(drop),
        Location::Postgres(_) | Location::Nowhere => Ok(()),
    }
}

/// Opens the store for reading, unless `--store none` is given: nothing is created.
pub(super) fn open_store_to_read(global: &Global) -> anyhow::Result<Option<Store>> {
    let (location, spool) = locate_store(global)?;
    Ok(Store::open_to_read(&location, &spool)?)
}

/// The store's location, and the spool for records that it cannot take.
fn locate_store(global: &Global) -> anyhow::Result<(Location, Spool)> {
    let location = store_location(global)?;
    log::info!("store {location}");
    let spool = make_spool(&location, Terminal::new(global))?;
    Ok((location, spool))
}

/// The spool for records that a server cannot take; a file needs none.
pub(super) fn make_spool(location: &Location, terminal: Terminal) -> anyhow::Result<Spool> {
    let folder = match location {
        Location::Postgres(_) => find_state_folder()?.join("pinwise/spool"),
        Location::Sqlite(_) | Location::Nowhere => std::path::PathBuf::new(),
    };
    Ok(Spool {
        folder,
        warn: Arc::new(move |sentence| terminal.warn(sentence)),
    })
}

/// The location of the store.
pub(super) fn store_location(global: &Global) -> anyhow::Result<Location> {
    match &global.store {
        Some(text) => parse_location(text),
        None => Ok(Location::Sqlite(default_store()?)),
    }
}

/// Parses a location, and adds the password and security settings from the environment.
pub(super) fn parse_location(text: &str) -> anyhow::Result<Location> {
    let mut location = Location::parse(text)?;
    if let Location::Postgres(server) = &mut location {
        password::choose_security(server)?;
        password::add_password(server);
    }
    Ok(location)
}

fn default_store() -> anyhow::Result<std::path::PathBuf> {
    let data = find_named_folder("XDG_DATA_HOME")
        .or_else(|| find_named_folder("HOME").map(|home| home.join(".local/share")))
        .context("neither XDG_DATA_HOME nor HOME is set: choose a store with --store")?;
    Ok(data.join("pinwise/pinwise.db"))
}

/// The folder for data that must outlast a command.
fn find_state_folder() -> anyhow::Result<std::path::PathBuf> {
    find_named_folder("XDG_STATE_HOME")
        .or_else(|| find_named_folder("HOME").map(|home| home.join(".local/state")))
        .context("neither XDG_STATE_HOME nor HOME is set: undelivered records need a folder")
}
