//! Writes every event of a trace for other programs, in Perfetto's format or as CSV.
//!
//! Events are written as they come; memory is used only for threads and CPUs. Figures and findings
//! are in the record.

mod csv;
mod perfetto;
mod proto;

use std::collections::HashMap;

use pinwise_sched::{Event, EventKind, IDLE, Tid};

pub use self::csv::TraceCsv;
pub(super) use self::csv::neutralise_name;
pub use perfetto::TracePerfetto;

/// The most names that are remembered. Beyond it all are forgotten, and threads have no name.
const MAX_NAMES: usize = 1 << 20;

/// Names of threads, as given by events.
#[derive(Debug, Default)]
struct Names {
    by_thread: HashMap<Tid, Box<str>>,
}

impl Names {
    /// Remembers the name in an event.
    fn remember(&mut self, event: &Event) {
        if self.by_thread.len() > MAX_NAMES {
            self.by_thread.clear();
        }
        match &event.what {
            EventKind::Name { thread, name } => {
                self.by_thread.insert(*thread, name.clone());
            }
            EventKind::Fork { parent, child, .. } => {
                let name = self.by_thread.get(parent).cloned().unwrap_or_default();
                self.by_thread.insert(*child, name);
            }
            _ => {}
        }
    }

    fn name(&self, thread: Tid) -> &str {
        match thread {
            IDLE => "swapper",
            _ => self.by_thread.get(&thread).map_or("", |name| name),
        }
    }
}

#[cfg(test)]
mod tests;
