//! The three tiers that read perf's buffers: switch records of a program's own threads, of whole
//! CPUs, and the scheduler's tracepoints.
//!
//! All events of a CPU share one buffer, which keeps their records in order. Records younger than
//! the start of a read are held back until the next: when the last CPU is read, a CPU that was read
//! before may have new records that are older than those.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use super::super::ring::{self, Ring};
use super::super::sys;
use super::events::{self, EventRequest, Recorded};
use super::lane::{Lane, SwitchFormat, TracepointOffsets};
use super::permission::{self, Attempt};
use super::tracefs::{self, Tracepoints};
use super::{Source, Target, nanoseconds, threads};
use pinwise_sched::perf::{Layout, Record, Records};
use pinwise_sched::{Event, IDLE, Merger, Refusal};
use pinwise_topology::CpuSet;

/// Buffer of a CPU if memory is not limited, bytes. 200,000 switches per second with their wake-ups
/// fill a quarter of it in 15 to 20 ms, at which pinwise is woken; the rest gives pinwise three
/// times as long to get a CPU.
pub(super) const WANTED_BYTES: usize = 2 << 20;
/// Smallest useful buffer, bytes.
const MIN_BYTES: usize = 32 << 10;
/// Most bytes of all buffers together: on large machines each is smaller.
const MAX_BYTES: usize = 512 << 20;
/// The kernel may write a record this long after its time stamp.
const RECORD_DELAY: Duration = Duration::from_micros(200);

/// On which CPUs to open events, and how large their buffers should be.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    /// The CPUs.
    pub(super) cpus: CpuSet,
    /// Buffer of each CPU, bytes.
    pub(super) bytes: usize,
}

impl Extent {
    /// All online CPUs.
    pub(super) fn all() -> Self {
        let cpus = threads::online_cpus();
        let each = MAX_BYTES / cpus.len().max(1);
        Self {
            cpus,
            bytes: WANTED_BYTES.min(each),
        }
    }

    /// The smallest buffer on one CPU, to test for permission.
    pub(super) fn smallest() -> Self {
        let first = threads::online_cpus().first().unwrap_or(0);
        Self {
            cpus: CpuSet::single(first),
            bytes: 0,
        }
    }
}

/// A source that reads one buffer on each CPU.
#[derive(Debug)]
pub(super) struct PerfSource {
    rings: Vec<Ring>,
    lanes: Vec<Lane>,
    layout: Layout,
    /// Events that write into the buffers of other events.
    guests: Vec<OwnedFd>,
    merger: Merger,
    bytes: Vec<u8>,
    fresh: Vec<Event>,
    notes: Vec<String>,
}

impl PerfSource {
    /// Opens switch records of a program's own threads. For a running process, the events of its
    /// threads must still be attached.
    pub(super) fn open_own_threads(target: Target, extent: &Extent) -> Result<Self, Refusal> {
        let is_child = target == Target::Child;
        let recorded = if is_child {
            Recorded::Switches
        } else {
            Recorded::Nothing
        };
        let request = EventRequest {
            is_inherited: is_child,
            on_exec: is_child,
            ..EventRequest::new(recorded, 0, 0)
        };
        if target == Target::Everything {
            return Err(Refusal {
                reason: "it sees the threads of one program only".to_owned(),
                remedy: None,
            });
        }
        Self::open(&request, extent, &SwitchFormat::OwnThreads)
            .map_err(|error| permission::explain_refusal(Attempt::Own(target), &error))
    }

    /// Opens switch records of whole CPUs.
    pub(super) fn open_cpu_wide(extent: &Extent) -> Result<Self, Refusal> {
        permission::check_initial_pid_namespace()?;
        let request = EventRequest::new(Recorded::Switches, -1, 0);
        let source = Self::open(&request, extent, &SwitchFormat::CpuWide)
            .map_err(|error| permission::explain_refusal(Attempt::Wide, &error))?;
        source.set_enabled(true);
        Ok(source)
    }

    /// Opens the scheduler's tracepoints.
    pub(super) fn open_tracepoints(extent: &Extent) -> Result<Self, Refusal> {
        permission::check_initial_pid_namespace()?;
        let formats = tracefs::read_tracepoints()?;
        let offsets =
            TracepointOffsets::new(&formats.switch, [&formats.wakeup, &formats.wakeup_new])
                .map_err(|error| tracefs::explain_unknown_format(&error))?;
        let switches = Recorded::Tracepoint {
            id: formats.switch.id,
            with_lives: true,
        };
        let request = EventRequest::new(switches, -1, 0);
        let refused = |error: io::Error| permission::explain_refusal(Attempt::Points, &error);
        let format = SwitchFormat::Tracepoints(Box::new(offsets));
        let mut source = Self::open(&request, extent, &format).map_err(refused)?;
        source.open_wakeups(&formats, extent).map_err(refused)?;
        source.set_enabled(true);
        Ok(source)
    }

    /// Opens an event with a buffer on each CPU. If the kernel grants less memory, all buffers
    /// become smaller, so that no CPU is without one.
    fn open(request: &EventRequest, extent: &Extent, format: &SwitchFormat) -> io::Result<Self> {
        let mut bytes = extent.bytes;
        let rings = loop {
            match open_rings(request, &extent.cpus, bytes)? {
                Ok(rings) => break rings,
                Err(error) if bytes <= MIN_BYTES || !ring::is_for_size(&error) => {
                    return Err(error);
                }
                Err(_) => bytes /= 2,
            }
        };
        let cpus = extent
            .cpus
            .iter()
            .map(|cpu| u32::try_from(cpu).unwrap_or(u32::MAX));
        let mut source = Self {
            lanes: cpus.map(|cpu| Lane::new(cpu, format.clone())).collect(),
            merger: Merger::new(rings.len()),
            rings,
            layout: Layout::from_sample_type(match format {
                SwitchFormat::Tracepoints(_) => events::POINT_FIELDS,
                SwitchFormat::OwnThreads | SwitchFormat::CpuWide => events::SWITCH_FIELDS,
            }),
            guests: Vec::new(),
            bytes: Vec::new(),
            fresh: Vec::new(),
            notes: Vec::new(),
        };
        source.note_small_buffers(extent.bytes);
        Ok(source)
    }

    /// Notes if buffers are smaller than wanted, so that they may lose records.
    fn note_small_buffers(&mut self, wanted_bytes: usize) {
        let smallest = self.rings.iter().map(Ring::data_bytes).min();
        if let Some(smallest) = smallest.filter(|&bytes| bytes < wanted_bytes) {
            self.notes.push(format!(
                "The kernel granted buffers of {} KiB per CPU instead of {}; with more, fewer \
                 events can be lost (sysctl kernel.perf_event_mlock_kb={}).",
                smallest / 1024,
                wanted_bytes / 1024,
                wanted_bytes / 1024 + 4
            ));
        }
    }

    fn set_enabled(&self, is_enabled: bool) {
        for event in self.rings.iter().map(Ring::event).chain(&self.guests) {
            ring::set_enabled(event, is_enabled);
        }
    }

    fn open_wakeups(&mut self, formats: &Tracepoints, extent: &Extent) -> io::Result<()> {
        for (ring, cpu) in self.rings.iter().zip(extent.cpus.iter()) {
            for id in [formats.wakeup.id, formats.wakeup_new.id] {
                let wakeups = Recorded::Tracepoint {
                    id,
                    with_lives: false,
                };
                let guest = events::open(&EventRequest::new(wakeups, -1, cpu))?;
                ring.attach_event(&guest)?;
                self.guests.push(guest);
            }
        }
        Ok(())
    }

    /// Lets an event write into the buffer of its CPU, and enables it.
    pub(super) fn attach_event(&mut self, ring: usize, event: OwnedFd) -> io::Result<()> {
        self.rings[ring].attach_event(&event)?;
        ring::set_enabled(&event, true);
        self.guests.push(event);
        Ok(())
    }

    /// Events that write into the buffers of other events.
    pub(super) fn guests(&self) -> &[OwnedFd] {
        &self.guests
    }

    pub(super) fn note(&mut self, sentence: String) {
        self.notes.push(sentence);
    }

    /// Moves new records into the merger; `watch` sees each event.
    pub(super) fn read_rings(&mut self, watch: &mut dyn FnMut(&Event)) {
        self.read_all(watch, false);
    }

    fn read_all(&mut self, watch: &mut dyn FnMut(&Event), is_last: bool) {
        for (stream, (ring, lane)) in self.rings.iter_mut().zip(&mut self.lanes).enumerate() {
            let is_full = ring.read(&mut self.bytes);
            let mut last_ns = 0;
            for read in Records::new(&self.bytes, self.layout) {
                lane.take(read.time_ns, read.thread, read.record, &mut self.fresh);
                last_ns = read.time_ns;
            }
            // No further record will report how many records were lost.
            if is_full && is_last {
                let lost = Record::Lost { records: 1 };
                lane.take(last_ns, IDLE, lost, &mut self.fresh);
            }
            for event in self.fresh.drain(..) {
                watch(&event);
                self.merger.push(stream, event);
            }
        }
    }
}

/// Opens an event with a buffer on each CPU. The outer error is from opening an event, the inner
/// one from mapping its buffer. The kernel wakes the reader when a quarter of a buffer is full.
fn open_rings(
    request: &EventRequest,
    cpus: &CpuSet,
    bytes: usize,
) -> io::Result<Result<Vec<Ring>, io::Error>> {
    let mut rings = Vec::new();
    for cpu in cpus.iter() {
        let event = events::open(&EventRequest {
            cpu,
            watermark_bytes: bytes / 4,
            ..*request
        })?;
        match Ring::new(event, bytes) {
            Ok(ring) => rings.push(ring),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(rings))
}

impl Source for PerfSource {
    fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(Ring::descriptor).collect()
    }

    fn drain(&mut self, events: &mut Vec<Event>) {
        let complete_until = sys::monotonic().saturating_sub(RECORD_DELAY);
        self.read_rings(&mut |_| ());
        self.merger.pop_until(nanoseconds(complete_until), events);
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        self.set_enabled(false);
        self.read_all(&mut |_| (), true);
        self.merger.finish(events);
    }

    fn notes(&self) -> Vec<String> {
        let late = self.merger.backwards();
        let late = (late > 0).then(|| format!("{late} events arrived too late to be sorted."));
        self.notes.iter().cloned().chain(late).collect()
    }
}
