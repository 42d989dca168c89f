//! Reads the store for requests, one at a time, on threads that may wait for a disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;

use super::problem::Problem;
use pinwise_store::{FileIdentity, Location, Spool, Store, StoreError};

/// How long a request waits for another process's lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(1000);

/// A store for reading only.
pub(super) struct StoreReader {
    location: Location,
    spool: Spool,
    open: Mutex<OpenStore>,
    /// The last warning, which is not repeated.
    last_warning: Mutex<Option<String>>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

/// An open store and the identity of its file.
struct OpenStore {
    store: Store,
    file: FileIdentity,
}

impl OpenStore {
    fn open(location: &Location, spool: &Spool) -> Result<Self, StoreError> {
        let nothing = || StoreError::Id("there is no store".to_owned());
        let store = Store::open_to_read(location, spool)?.ok_or_else(nothing)?;
        store.read_only(LOCK_TIMEOUT)?;
        let file = store.file()?;
        Ok(Self { store, file })
    }
}

impl StoreReader {
    pub(super) fn open(
        location: Location,
        spool: Spool,
        warn: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            open: Mutex::new(OpenStore::open(&location, &spool)?),
            last_warning: Mutex::new(None),
            location,
            spool,
            warn,
        })
    }

    /// Runs `read` without blocking other requests.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let reader = Arc::clone(self);
        let found = tokio::task::spawn_blocking(move || reader.read_now(read)).await;
        let found = found.unwrap_or_else(|_| {
            Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The record could not be read.",
                "pinwise record show prints it as text.",
            ))
        });
        self.warn_once(found.as_ref().err());
        found
    }

    fn read_now<T>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<T, Problem> {
        // A thread that panicked while reading has changed nothing, so its lock can be used.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The file may have been replaced, for example by a restored one.
        if open.store.file()? != open.file {
            *open = OpenStore::open(&self.location, &self.spool)?;
        }
        Ok(read(&open.store)?)
    }

    /// Warns once that the store does not answer.
    fn warn_once(&self, problem: Option<&Problem>) {
        let now = problem.filter(|p| p.concerns_store()).map(|p| &p.error);
        let mut last = self
            .last_warning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = now
            && last.as_ref() != Some(error)
        {
            (self.warn)(error);
        }
        *last = now.cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Runs `read` on an empty store, and returns the warnings.
    fn warnings_of(read: impl AsyncFnOnce(Arc<StoreReader>, PathBuf)) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&warnings);
        let warn = Arc::new(move |line: &str| collected.lock().unwrap().push(line.to_owned()));
        let spool = Spool {
            folder: PathBuf::new(),
            warn: Arc::new(|_| ()),
        };
        let location = Location::Sqlite(path.clone());
        // The store must exist already: opening it for reading does not create it.
        drop(Store::open_at(&location, &spool).unwrap());
        let reader = Arc::new(StoreReader::open(location, spool, warn).unwrap());
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(read(reader, path));
        warnings.lock().unwrap().clone()
    }

    #[test]
    fn a_store_that_is_gone_is_reported_once_and_read_again_when_back() {
        let warnings = warnings_of(async |reader, path| {
            assert_eq!(reader.read(|store| store.list(9)).await.unwrap().len(), 0);
            let away = path.with_extension("away");
            std::fs::rename(&path, &away).unwrap();
            for _ in 0..3 {
                let problem = reader.read(|store| store.list(9)).await.unwrap_err();
                assert_eq!(problem.status, 503);
            }
            std::fs::rename(&away, &path).unwrap();
            assert!(reader.read(|store| store.list(9)).await.is_ok());
        });
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[test]
    fn a_failed_request_affects_no_other() {
        let warnings = warnings_of(async |reader, _| {
            let problem = reader.read(|store| store.load("none")).await.unwrap_err();
            assert_eq!(problem.status, 404);
            let failed = reader
                .read(|_| -> Result<(), _> { panic!("on purpose") })
                .await;
            assert_eq!(failed.unwrap_err().status, 500);
            assert!(reader.read(|store| store.list(9)).await.is_ok());
        });
        assert_eq!(warnings, Vec::<String>::new());
    }
}
