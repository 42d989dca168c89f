//! Attaches to a running process: each of its threads gets an event on every CPU, and threads that
//! it creates later inherit these events.
//!
//! It refuses if this would take more descriptors than permitted, and never stops a thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::super::sys;
use super::events::{self, EventRequest, Recorded};
use super::perf::{Extent, PerfSource};
use super::permission::{self, Attempt};
use super::{Target, nanoseconds, threads};
use pinwise_sched::{EventKind, Refusal, Tid};

/// Descriptors that stay available for everything else.
const SPARE_DESCRIPTORS: usize = 128;
/// Most passes over the threads of a process while each finds new ones.
const MAX_ROUNDS: usize = 50;

/// The threads that have been handled.
#[derive(Debug, Default)]
struct Attached {
    /// Threads that have all their events, with the time since when, ns.
    since: BTreeMap<Tid, u64>,
    /// Threads that ended before they could be attached to.
    gone: BTreeSet<Tid>,
}

/// Attaches to every thread of a process and its descendants, until no new one is found. Threads
/// that are created meanwhile inherit the events of their creator if it had all of its own by then.
/// The others are attached to as well; if they have inherited some events, the lane drops the
/// duplicates.
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
                return Err(permission::explain_too_many_threads(
                    pid,
                    found.len(),
                    needed,
                    most,
                ));
            }
            match attach_thread(source, thread, extent) {
                Ok(()) => {
                    attached.since.insert(thread, nanoseconds(sys::monotonic()));
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    attached.gone.insert(thread);
                }
                Err(error) => {
                    let attempt = Attempt::Own(Target::Process(pid));
                    return Err(permission::explain_refusal(attempt, &error));
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

fn attach_thread(source: &mut PerfSource, thread: Tid, extent: &Extent) -> io::Result<()> {
    for (index, cpu) in extent.cpus.iter().enumerate() {
        let event = events::open(&EventRequest {
            is_inherited: true,
            ..EventRequest::new(Recorded::Switches, thread, cpu)
        })?;
        source.attach_event(index, event)?;
    }
    Ok(())
}

/// Marks threads as attached that inherited all events from their creator.
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
            // The thread has ended: its id may be reused by a thread that has no events yet.
            None => {
                attached.since.remove(&thread);
            }
        }
    }
}
