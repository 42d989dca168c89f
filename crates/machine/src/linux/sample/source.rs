//! Perf's buffers with samples, opened on a command or on a process.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use super::super::ring::{self, Ring};
use super::super::stack::maps;
use super::super::sys;
use super::super::trace::permission::{self, Attempt};
use super::super::trace::{Target, open_dummy, threads};
use super::collect::Collector;
use super::event::{self, Kind, Wish};
use super::records::Records;
use pinwise_profile::Stacks;
use pinwise_sched::Refusal;
use pinwise_topology::CpuSet;

/// Buffer of a CPU if memory is not limited, bytes: about 1,500 samples with stacks of 20 frames.
const WANTED_BYTES: usize = 2 << 20;
/// The same with copies of stacks: 250 samples.
const WANTED_WITH_STACKS: usize = 4 << 20;
/// Smallest useful buffer, bytes.
const FEWEST_BYTES: usize = 32 << 10;
/// Limits all buffers together, bytes.
const MAX_BYTES: usize = 256 << 20;
/// Descriptors left for everything else.
const SPARE_DESCRIPTORS: usize = 128;
/// Passes over the threads of a process until no new one is found.
const MAX_ROUNDS: usize = 50;

/// Buffers, one per CPU.
#[derive(Debug)]
pub(super) struct Source {
    rings: Vec<Ring>,
    /// Events that write into them.
    guests: Vec<OwnedFd>,
    bytes: Vec<Vec<u8>>,
}

/// Why sampling is not available.
#[derive(Debug)]
pub(super) enum Failure {
    /// The event is unknown to this machine.
    Missing(String),
    /// It is not permitted, or another error.
    Refused(Refusal),
}

impl Source {
    /// Opens events of a kind and passes the collector the threads that exist.
    pub(super) fn open(
        kind: Kind,
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
                        &Wish {
                            thread: 0,
                            cpu,
                            on_exec: true,
                            watermark_bytes,
                        },
                    )
                });
                let rings = rings.map_err(|error| failure(target, &error))?;
                Ok(Self::with(rings))
            }
        }
    }

    fn with(rings: Vec<Ring>) -> Self {
        Self {
            bytes: vec![Vec::new(); rings.len()],
            rings,
            guests: Vec::new(),
        }
    }

    /// Every thread gets an event on every CPU, writing into one buffer each.
    fn open_process(
        kind: Kind,
        pid: i32,
        cpus: &CpuSet,
        bytes: usize,
        collector: &mut Collector,
    ) -> Result<Self, Failure> {
        let target = Target::Process(pid);
        let refused = |error: &io::Error| failure(target, error);
        let rings = open_rings(cpus, bytes, &open_dummy).map_err(|error| refused(&error))?;
        let mut source = Self::with(rings);
        let most = sys::raise_descriptor_limit().saturating_sub(SPARE_DESCRIPTORS);
        let mut attached = std::collections::BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let found = threads::list_threads_below(pid);
            let fresh: Vec<_> = found
                .iter()
                .filter(|thread| attached.insert(thread.tid))
                .collect();
            if fresh.is_empty() {
                break;
            }
            let needed = attached.len() * cpus.len();
            if needed > most {
                let refusal =
                    permission::explain_too_many_threads(pid, attached.len(), needed, most);
                return Err(Failure::Refused(refusal));
            }
            for thread in fresh {
                collector.introduce(thread.process, &maps::read(thread.process));
                if let Some(name) = threads::read_name(thread.tid) {
                    collector.name(thread.tid, &name);
                }
                match source.attach(kind, thread.tid, cpus, collector) {
                    Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                        return Err(refused(&error));
                    }
                    _ => {}
                }
            }
        }
        Ok(source)
    }

    fn attach(
        &mut self,
        kind: Kind,
        thread: i32,
        cpus: &CpuSet,
        collector: &mut Collector,
    ) -> io::Result<()> {
        for (ring, cpu) in self.rings.iter().zip(cpus.iter()) {
            let wish = Wish {
                thread,
                cpu,
                on_exec: false,
                watermark_bytes: 0,
            };
            let guest = event::open(kind, &wish)?;
            ring.attach_event(&guest)?;
            collector.register(ring::read_id(&guest)?, thread);
            ring::set_enabled(&guest, true);
            self.guests.push(guest);
        }
        Ok(())
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(Ring::descriptor).collect()
    }

    pub(super) fn stop(&self) {
        for event in self.rings.iter().map(Ring::event).chain(&self.guests) {
            ring::set_enabled(event, false);
        }
    }

    /// Passes on new records in time order.
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
            collector.take(*time_ns, record);
        }
    }
}

/// One event with a buffer on each CPU, all smaller if memory is limited.
fn open_rings(
    cpus: &CpuSet,
    wanted_bytes: usize,
    open: &dyn Fn(usize, usize) -> io::Result<OwnedFd>,
) -> io::Result<Vec<Ring>> {
    let mut bytes = wanted_bytes;
    'smaller: loop {
        let mut rings = Vec::new();
        for cpu in cpus.iter() {
            // A reader is woken at a quarter full.
            match Ring::new(open(cpu, bytes / 4)?, bytes) {
                Ok(ring) => rings.push(ring),
                Err(error) if bytes <= FEWEST_BYTES || !ring::is_for_size(&error) => {
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

fn failure(target: Target, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => {
            Failure::Missing(permission::message_of(error))
        }
        _ => Failure::Refused(permission::explain_refusal(Attempt::Own(target), error)),
    }
}
