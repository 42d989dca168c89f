//! The three tiers that read perf's buffers: switch records of a program's own threads, of whole
//! CPUs, and the scheduler's tracepoints.
//!
//! One buffer per CPU: several events of a CPU share it, which keeps their records in order.
//! Records younger than the start of a round are held back until the next, since a CPU that was
//! read first may have older events by then.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use super::super::ring::{self, Ring};
use super::super::sys;
use super::events::{self, Recorded, Wish};
use super::lane::{Lane, Points, Writing};
use super::permission::{self, Attempt};
use super::tracefs::{self, Tracepoints};
use super::{Source, Target, nanoseconds, threads};
use pinwise_sched::perf::{Layout, Record, Records};
use pinwise_sched::{Event, IDLE, Merger, Refusal};
use pinwise_topology::CpuSet;

/// Buffer of a CPU if memory is not limited, bytes: 200,000 switches a second with wake-ups fill a
/// quarter of it in 15 to 20 ms, and the rest gives pinwise three times that to get a CPU.
pub(super) const WANTED_BYTES: usize = 2 << 20;
/// Smallest useful buffer, bytes.
const FEWEST_BYTES: usize = 32 << 10;
/// Limits all buffers together, bytes: on large machines each is smaller.
const MAX_BYTES: usize = 512 << 20;
/// An event may be written a little after its time.
const SETTLING: Duration = Duration::from_micros(200);

/// How much to open.
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

    /// The smallest buffer, to test for permission.
    pub(super) fn least() -> Self {
        let first = threads::online_cpus().first().unwrap_or(0);
        Self {
            cpus: CpuSet::single(first),
            bytes: 0,
        }
    }
}

/// Buffers of CPUs and their meaning.
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
    /// Switch records of a program's own threads; a running process must still be attached to.
    pub(super) fn own(target: Target, extent: &Extent) -> Result<Self, Refusal> {
        let refused = |error: &io::Error| permission::refusal(Attempt::Own(target), error);
        let is_child = target == Target::Child;
        let wish = Wish {
            recorded: if is_child {
                Recorded::Switches
            } else {
                Recorded::Nothing
            },
            thread: 0,
            cpu: 0,
            is_inherited: is_child,
            on_exec: is_child,
            watermark_bytes: 0,
        };
        if target == Target::Everything {
            return Err(Refusal {
                reason: "it sees the threads of one program only".to_owned(),
                remedy: None,
            });
        }
        Self::open(&wish, extent, &Writing::Own).map_err(|error| refused(&error))
    }

    /// Switch records of whole CPUs.
    pub(super) fn wide(extent: &Extent) -> Result<Self, Refusal> {
        permission::check_initial_pid_namespace()?;
        let wish = Wish {
            recorded: Recorded::Switches,
            thread: -1,
            cpu: 0,
            is_inherited: false,
            on_exec: false,
            watermark_bytes: 0,
        };
        let source = Self::open(&wish, extent, &Writing::Wide)
            .map_err(|error| permission::refusal(Attempt::Wide, &error))?;
        source.switch_on();
        Ok(source)
    }

    /// The scheduler's tracepoints.
    pub(super) fn points(extent: &Extent) -> Result<Self, Refusal> {
        permission::check_initial_pid_namespace()?;
        let formats = tracefs::read_tracepoints()?;
        let points = Points::new(&formats.switch, [&formats.wakeup, &formats.wakeup_new])
            .map_err(|error| tracefs::unusable(&error))?;
        let wish = Wish {
            recorded: Recorded::Tracepoint {
                id: formats.switch.id,
                with_lives: true,
            },
            thread: -1,
            cpu: 0,
            is_inherited: false,
            on_exec: false,
            watermark_bytes: 0,
        };
        let refused = |error: io::Error| permission::refusal(Attempt::Points, &error);
        let mut source =
            Self::open(&wish, extent, &Writing::Points(Box::new(points))).map_err(refused)?;
        source
            .open_wakeups(&formats, &wish, extent)
            .map_err(refused)?;
        source.switch_on();
        Ok(source)
    }

    /// One event with a buffer on each CPU. If the kernel grants less memory, all buffers are
    /// smaller, so that each CPU has its share.
    fn open(wish: &Wish, extent: &Extent, writing: &Writing) -> io::Result<Self> {
        let mut bytes = extent.bytes;
        let rings = loop {
            match open_rings(wish, &extent.cpus, bytes)? {
                Ok(rings) => break rings,
                Err(error) if bytes <= FEWEST_BYTES || !ring::is_for_memory(&error) => {
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
            lanes: cpus.map(|cpu| Lane::new(cpu, writing.clone())).collect(),
            merger: Merger::new(rings.len()),
            rings,
            layout: Layout::from_sample_type(match writing {
                Writing::Points(_) => events::POINT_FIELDS,
                Writing::Own | Writing::Wide => events::SWITCH_FIELDS,
            }),
            guests: Vec::new(),
            bytes: Vec::new(),
            fresh: Vec::new(),
            notes: Vec::new(),
        };
        source.report_size(extent.bytes);
        Ok(source)
    }

    /// Reports buffers smaller than wanted, which may lose records.
    fn report_size(&mut self, wanted_bytes: usize) {
        let least = self.rings.iter().map(Ring::data_bytes).min();
        if let Some(least) = least.filter(|&bytes| bytes < wanted_bytes) {
            self.notes.push(format!(
                "The kernel granted buffers of {} KiB per CPU instead of {}; with more, fewer \
                 events can be lost (sysctl kernel.perf_event_mlock_kb={}).",
                least / 1024,
                wanted_bytes / 1024,
                wanted_bytes / 1024 + 4
            ));
        }
    }

    fn switch_on(&self) {
        for event in self.rings.iter().map(Ring::event).chain(&self.guests) {
            ring::switch(event, true);
        }
    }

    fn switch_off(&self) {
        for event in self.rings.iter().map(Ring::event).chain(&self.guests) {
            ring::switch(event, false);
        }
    }

    fn open_wakeups(
        &mut self,
        formats: &Tracepoints,
        wish: &Wish,
        extent: &Extent,
    ) -> io::Result<()> {
        for (ring, cpu) in self.rings.iter().zip(extent.cpus.iter()) {
            for id in [formats.wakeup.id, formats.wakeup_new.id] {
                let guest = events::open(&Wish {
                    recorded: Recorded::Tracepoint {
                        id,
                        with_lives: false,
                    },
                    cpu,
                    ..*wish
                })?;
                ring.admit(&guest)?;
                self.guests.push(guest);
            }
        }
        Ok(())
    }

    /// Lets an event write into the buffer of its CPU, and enables it.
    pub(super) fn admit(&mut self, ring: usize, event: OwnedFd) -> io::Result<()> {
        self.rings[ring].admit(&event)?;
        ring::switch(&event, true);
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

    /// Moves new records into the merger.
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
            // No further record will report how many.
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

/// Events with buffers; the outer error is from opening an event, the inner one from mapping its
/// buffer. The kernel wakes the reader when a quarter
/// of a buffer is full.
fn open_rings(
    wish: &Wish,
    cpus: &CpuSet,
    bytes: usize,
) -> io::Result<Result<Vec<Ring>, io::Error>> {
    let mut rings = Vec::new();
    for cpu in cpus.iter() {
        let event = events::open(&Wish {
            cpu,
            watermark_bytes: bytes / 4,
            ..*wish
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
        let settled = sys::monotonic().saturating_sub(SETTLING);
        self.read_rings(&mut |_| ());
        self.merger.pop_until(nanoseconds(settled), events);
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        self.switch_off();
        self.read_all(&mut |_| (), true);
        self.merger.finish(events);
    }

    fn notes(&self) -> Vec<String> {
        let late = self.merger.backwards();
        let late = (late > 0).then(|| format!("{late} events arrived too late to be sorted."));
        self.notes.iter().cloned().chain(late).collect()
    }
}
