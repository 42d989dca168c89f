//! Every event of a trace for other programs: Perfetto's format, and CSV.
//!
//! Both are written as events come and keep memory for threads and CPUs only.
//! Nothing is judged here; figures and findings are in the record.

mod csv;
mod perfetto;
mod proto;

use std::collections::HashMap;

use pinwise_sched::{Event, EventKind, IDLE, Tid};

pub use self::csv::TraceCsv;
pub(super) use self::csv::harmless;
pub use perfetto::TracePerfetto;

/// Maximum number of names remembered at a time; forgotten threads are shown without.
const MAX_NAMES: usize = 1 << 20;

/// Names of threads, as events name them.
#[derive(Debug, Default)]
struct Names {
    of: HashMap<Tid, Box<str>>,
}

impl Names {
    /// Takes the names in an event.
    fn take(&mut self, event: &Event) {
        if self.of.len() > MAX_NAMES {
            self.of.clear();
        }
        match &event.what {
            EventKind::Name { thread, name } => {
                self.of.insert(*thread, name.clone());
            }
            EventKind::Fork { parent, child, .. } => {
                let name = self.of.get(parent).cloned().unwrap_or_default();
                self.of.insert(*child, name);
            }
            _ => {}
        }
    }

    fn name(&self, thread: Tid) -> &str {
        match thread {
            IDLE => "swapper",
            _ => self.of.get(&thread).map_or("", |name| name),
        }
    }
}

#[cfg(test)]
mod tests;
