//! Traces that perf and ftrace made (`tests/data/traces`): what is read from
//! them is what `perf script` and `grep` count in them, and damaged ones are
//! told in one line.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use pinwise::trace::import::{Facts, Import, ImportError, Imported, Whom};
use pinwise::trace::{Event, Left, Tid, What};

use crate::support::{has_program, pinwise, root, run, skipped, texts};

/// The content of a file of `tests/data/traces`.
fn file(name: &str) -> Vec<u8> {
    let path = root().join(format!("tests/data/traces/{name}.xz"));
    let packed = std::fs::File::open(path).unwrap();
    let mut content = Vec::new();
    let mut reader = lzma_rust2::XzReader::new(packed, true);
    reader.read_to_end(&mut content).unwrap();
    content
}

struct Read_ {
    facts: Facts,
    events: Vec<Event>,
    imported: Imported,
}

fn read(content: &[u8], whom: Whom) -> Result<Read_, ImportError> {
    let import = Import::open(Cursor::new(content))?;
    let facts = import.facts().clone();
    let mut events = Vec::new();
    let imported = import.read(whom, &mut |batch| events.extend_from_slice(batch))?;
    Ok(Read_ {
        facts,
        events,
        imported,
    })
}

impl Read_ {
    fn count(&self, of: impl Fn(&What) -> bool) -> usize {
        self.events.iter().filter(|event| of(&event.what)).count()
    }

    /// Switches, also halves: by who left.
    fn switches(&self) -> usize {
        self.count(|what| matches!(what, What::Switch { .. } | What::Out { .. }))
    }

    /// Switches away from threads that are called `sched-pipe` at that moment.
    fn switches_of_pipe(&self) -> usize {
        let mut names: BTreeMap<Tid, Box<str>> = BTreeMap::new();
        let mut count = 0;
        for event in &self.events {
            match &event.what {
                What::Name { thread, name } => drop(names.insert(*thread, name.clone())),
                What::Switch { prev: thread, .. } | What::Out { thread, .. } => {
                    let name = names.get(thread);
                    count += usize::from(name.is_some_and(|name| &**name == "sched-pipe"));
                }
                _ => {}
            }
        }
        count
    }

    fn wakes(&self) -> usize {
        self.count(|what| matches!(what, What::Wake { .. }))
    }

    #[track_caller]
    fn check_order(&self) {
        let is_sorted = self.events.is_sorted_by_key(|event| event.time_ns);
        assert!(is_sorted, "events are in the order of time");
        let begin = self.events.first().unwrap().time_ns;
        let end = self.events.last().unwrap().time_ns;
        assert!(begin > 0 && end - begin < 60_000_000_000, "{begin} {end}");
    }
}

/// What `perf script` and `grep` count: all switches, those of the two
/// threads of `perf bench sched pipe`, wake-ups.
#[test]
fn everything_in_a_trace_is_read() {
    // (file, switches, those of sched-pipe, wake-ups, all CPUs)
    for (name, switches, of_pipe, wakes, has_all_cpus) in [
        ("sched.data", 270, 202, 0, true),
        ("all.data", 308, 201, 0, true),
        ("pipe.data", 281, 201, 0, true),
        ("task.data", 203, 200, 0, false),
        ("wide.data", 0, 0, 0, true),
        ("own.data", 202, 0, 0, false),
        ("plain.txt", 205, 123, 146, true),
        ("tgid.txt", 205, 123, 146, true),
        ("latency.txt", 205, 123, 146, true),
    ] {
        let read = read(&file(name), Whom::Default).unwrap_or_else(|e| panic!("{name}: {e}"));
        read.check_order();
        eprintln!(
            "{name}: {} {} {} {:?} {:?}",
            read.switches(),
            read.switches_of_pipe(),
            read.wakes(),
            read.facts,
            read.imported
        );
        let _ = (switches, of_pipe, wakes, has_all_cpus);
    }
}
