//! Opens perf's sampling events on a command or a process, and reads their buffers.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use super::super::ring::{self, Ring};
use super::super::stack::maps;
use super::super::sys;
use super::super::trace::permission::{self, Attempt};
use super::super::trace::{Target, open_dummy, threads};
use super::collect::Collector;
use super::event::{self, EventTarget, SamplingKind};
use super::records::Records;
use pinwise_profile::Stacks;
use pinwise_sched::Refusal;
use pinwise_topology::CpuSet;

/// Buffer of each CPU if memory is not limited, bytes: about 1,500 samples with stacks of 20
/// frames.
const WANTED_BYTES: usize = 2 << 20;
/// The same if stacks are copied: 250 samples.
const WANTED_WITH_STACKS: usize = 4 << 20;
/// Smallest useful buffer, bytes.
const MIN_BYTES: usize = 32 << 10;
/// Limits all buffers together, bytes.
const MAX_BYTES: usize = 256 << 20;
/// Descriptors kept for everything else.
const SPARE_DESCRIPTORS: usize = 128;
/// Passes over the threads of a process until no new one is found.
const MAX_ROUNDS: usize = 50;

/// Buffers, one per CPU.
#[derive(Debug)]
pub(super) struct Source {
    rings: Vec<Ring>,
    /// Events of a running process's threads, which write into the rings.
    thread_events: Vec<OwnedFd>,
    /// Bytes read from each ring, decoded at once.
    bytes: Vec<Vec<u8>>,
}

/// Why sampling is not available.
#[derive(Debug)]
pub(super) enum Failure {
    /// This machine does not have the event; the kernel's message.
    Missing(String),
    /// The event is not permitted, or another error occurred.
    Refused(Refusal),
}

impl Source {
    /// Opens events of a kind, and adds the existing processes and threads to the collector.
    pub(super) fn open(
        kind: SamplingKind,
        target: Target,
        collector: &mut Collector,
    ) -> Result<Self, Failure> {
        let cpus = threads::online_cpus();
        let wanted = match kind.stacks {
            Stacks::Dwarf => WANTED_WITH_STACKS,
            _ => WANTED_BYTES,
        };
        let bytes = wanted.min(MAX_BYTES / cpus.len().max(1));
        match target {
            Target::Process(pid) => Self::open_process(kind, pid, &cpus, bytes, collector),
            Target::Child | Target::Everything => {
                let rings = open_rings(&cpus, bytes, &|cpu, watermark_bytes| {
                    event::open(
                        kind,
                        &EventTarget {
                            thread: 0,
                            cpu,
                            on_exec: true,
                            watermark_bytes,
                        },
                    )
                });
                let rings = rings.map_err(|error| classify_failure(target, &error))?;
                Ok(Self::from_rings(rings))
            }
        }
    }

    fn from_rings(rings: Vec<Ring>) -> Self {
        Self {
            bytes: vec![Vec::new(); rings.len()],
            rings,
            thread_events: Vec::new(),
        }
    }

    /// Opens an event of each thread on each CPU; all events of a CPU write into one buffer.
    fn open_process(
        kind: SamplingKind,
        pid: i32,
        cpus: &CpuSet,
        bytes: usize,
        collector: &mut Collector,
    ) -> Result<Self, Failure> {
        let target = Target::Process(pid);
        let rings = open_rings(cpus, bytes, &open_dummy)
            .map_err(|error| classify_failure(target, &error))?;
        let mut source = Self::from_rings(rings);
        let max_events = sys::raise_descriptor_limit().saturating_sub(SPARE_DESCRIPTORS);
        let mut attached = std::collections::BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let found = threads::list_threads_below(pid);
            let new_threads: Vec<_> = found
                .iter()
                .filter(|thread| attached.insert(thread.tid))
                .collect();
            if new_threads.is_empty() {
                break;
            }
            let needed = attached.len() * cpus.len();
            if needed > max_events {
                let refusal =
                    permission::explain_too_many_threads(pid, attached.len(), needed, max_events);
                return Err(Failure::Refused(refusal));
            }
            for thread in new_threads {
                collector.add_process(thread.process, &maps::read_maps(thread.process));
                if let Some(name) = threads::read_name(thread.tid) {
                    collector.set_name(thread.tid, &name);
                }
                match source.open_thread(kind, thread.tid, cpus, collector) {
                    Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                        return Err(classify_failure(target, &error));
                    }
                    _ => {}
                }
            }
        }
        Ok(source)
    }

    fn open_thread(
        &mut self,
        kind: SamplingKind,
        thread: i32,
        cpus: &CpuSet,
        collector: &mut Collector,
    ) -> io::Result<()> {
        for (ring, cpu) in self.rings.iter().zip(cpus.iter()) {
            let target = EventTarget {
                thread,
                cpu,
                on_exec: false,
                watermark_bytes: 0,
            };
            let event = event::open(kind, &target)?;
            ring.attach_event(&event)?;
            collector.add_event(ring::read_id(&event)?, thread);
            ring::set_enabled(&event, true);
            self.thread_events.push(event);
        }
        Ok(())
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(Ring::descriptor).collect()
    }

    pub(super) fn stop(&self) {
        for event in self
            .rings
            .iter()
            .map(Ring::event)
            .chain(&self.thread_events)
        {
            ring::set_enabled(event, false);
        }
    }

    /// Adds new records to the collector, in time order.
    pub(super) fn drain(&mut self, collector: &mut Collector) {
        for (ring, bytes) in self.rings.iter_mut().zip(&mut self.bytes) {
            ring.read(bytes);
        }
        let mut records: Vec<_> = self
            .bytes
            .iter()
            .flat_map(|bytes| Records::new(bytes))
            .collect();
        records.sort_by_key(|(time_ns, _)| *time_ns);
        for (time_ns, record) in &records {
            collector.add_record(*time_ns, record);
        }
    }
}

/// Opens an event with a buffer on each CPU; all buffers are smaller if memory is limited. `open`
/// gets the CPU and the watermark in bytes.
fn open_rings(
    cpus: &CpuSet,
    wanted_bytes: usize,
    open: &dyn Fn(usize, usize) -> io::Result<OwnedFd>,
) -> io::Result<Vec<Ring>> {
    let mut bytes = wanted_bytes;
    'smaller: loop {
        let mut rings = Vec::new();
        for cpu in cpus.iter() {
            // The kernel wakes the reader when a quarter is full.
            match Ring::new(open(cpu, bytes / 4)?, bytes) {
                Ok(ring) => rings.push(ring),
                Err(error) if bytes <= MIN_BYTES || !ring::is_for_size(&error) => {
                    return Err(error);
                }
                Err(_) => {
                    bytes /= 2;
                    continue 'smaller;
                }
            }
        }
        return Ok(rings);
    }
}

fn classify_failure(target: Target, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => {
            Failure::Missing(permission::message_of(error))
        }
        _ => Failure::Refused(permission::explain_refusal(Attempt::Own(target), error)),
    }
}
