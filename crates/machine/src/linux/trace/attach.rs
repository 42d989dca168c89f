//! Attaches to a running process: each of its threads gets an event on every CPU, and threads that
//! it makes later inherit them.
//!
//! It refuses if that would take more descriptors than permitted, and never stops a thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::super::sys;
use super::events::{self, Recorded, Wish};
use super::perf::{Extent, PerfSource};
use super::permission::{self, Attempt};
use super::{Target, nanoseconds, threads};
use pinwise_sched::{EventKind, Refusal, Tid};

/// Descriptors left for everything else.
const SPARE_DESCRIPTORS: usize = 128;
/// Passes over the threads of a process until no new one is found.
const MAX_ROUNDS: usize = 50;

/// What has been attached to.
#[derive(Debug, Default)]
struct Attached {
    /// Threads that have all their events, and since when.
    since: BTreeMap<Tid, u64>,
    /// Threads that ended before they could be attached to.
    gone: BTreeSet<Tid>,
}

/// Attaches to every thread of a process and its descendants, until no new one is found. Threads
/// made meanwhile inherit their maker's events if it had all of its own by then; the others are
/// attached to, too, and the lane drops duplicate events.
pub(super) fn attach_all(
    source: &mut PerfSource,
    pid: Tid,
    extent: &Extent,
) -> Result<(), Refusal> {
    let most = sys::raise_descriptor_limit().saturating_sub(SPARE_DESCRIPTORS);
    let mut attached = Attached::default();
    for _ in 0..MAX_ROUNDS {
        let found = threads::list_threads_below(pid);
        note_inherited(source, &mut attached);
        let mut is_settled = true;
        for thread in found.iter().map(|thread| thread.tid) {
            if attached.since.contains_key(&thread) || attached.gone.contains(&thread) {
                continue;
            }
            is_settled = false;
            let needed = (found.len() + 1) * extent.cpus.len();
            if source.guests().len() + 2 * extent.cpus.len() > most || needed > most {
                return Err(permission::too_many(pid, found.len(), needed, most));
            }
            match attach(source, thread, extent) {
                Ok(()) => {
                    attached.since.insert(thread, nanoseconds(sys::monotonic()));
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    attached.gone.insert(thread);
                }
                Err(error) => {
                    let attempt = Attempt::Own(Target::Process(pid));
                    return Err(permission::refusal(attempt, &error));
                }
            }
        }
        if is_settled {
            return Ok(());
        }
    }
    source.note(format!(
        "Process {pid} made threads faster than they could be attached to: some may be missing."
    ));
    Ok(())
}

fn attach(source: &mut PerfSource, thread: Tid, extent: &Extent) -> io::Result<()> {
    for (index, cpu) in extent.cpus.iter().enumerate() {
        let event = events::open(&Wish {
            recorded: Recorded::Switches,
            thread,
            cpu,
            is_inherited: true,
            on_exec: false,
            watermark_bytes: 0,
        })?;
        source.admit(index, event)?;
    }
    Ok(())
}

/// Marks children of threads that had all their events when they made them.
fn note_inherited(source: &mut PerfSource, attached: &mut Attached) {
    let mut lives = Vec::new();
    source.read_rings(&mut |event| match event.what {
        EventKind::Fork { parent, child, .. } => lives.push((event.time_ns, parent, Some(child))),
        EventKind::Exit { thread } => lives.push((event.time_ns, thread, None)),
        _ => {}
    });
    lives.sort_unstable();
    for (time_ns, thread, child) in lives {
        let since = attached.since.get(&thread);
        match child {
            Some(child) if since.is_some_and(|&since| time_ns > since) => {
                attached.since.insert(child, time_ns);
            }
            Some(_) => {}
            // Its id may be reused by a thread that has no events yet.
            None => {
                attached.since.remove(&thread);
            }
        }
    }
}
