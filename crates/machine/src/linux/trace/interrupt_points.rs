//! Reads tracepoints of interrupts, and of switches if requested, through perf's buffers, so that
//! the system's own tracing is not changed.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use super::super::ring::{self, Ring};
use super::super::sys;
use super::events::{self, EventRequest, POINT_FIELDS, Recorded};
use super::permission::{self, Attempt};
use super::tracefs::{self, Tracefs};
use pinwise_sched::jitter::{Report, ReportDecoder, ReportKind};
use pinwise_sched::perf::{Layout, Record, Records};
use pinwise_sched::{IDLE, Refusal, Tid, TracepointFormat};
use pinwise_topology::CpuSet;

/// Buffer of each CPU if memory is not limited, bytes: about 20,000 records.
const WANTED_BYTES: usize = 2 << 20;
/// Smallest buffer of a CPU.
const MIN_BYTES: usize = 64 << 10;
/// Most bytes of all buffers together.
const MAX_BYTES: usize = 512 << 20;
/// The tracepoint that shows which thread has the CPU.
const SWITCH: (&str, &str) = ("sched", "sched_switch");
/// Tracepoints that every kernel with tracepoints has; the first one owns the buffer.
const REQUIRED: [(&str, &str); 4] = [
    ("irq", "irq_handler_entry"),
    ("irq", "irq_handler_exit"),
    ("irq", "softirq_entry"),
    ("irq", "softirq_exit"),
];
/// Subsystems of which all existing tracepoints are used: they depend on the architecture.
const SUBSYSTEMS: [&str; 3] = ["irq_vectors", "ipi", "nmi"];

/// What to read from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum PointChoice {
    /// Interrupts, softirqs and switches.
    Everything,
    /// Interrupts and softirqs of which both entry and exit can be recorded.
    Interrupts,
}

impl PointChoice {
    /// The pinwise command that needs it.
    const fn command(self) -> &'static str {
        match self {
            Self::Everything => "bench jitter",
            Self::Interrupts => "trace --interrupts …",
        }
    }

    /// Is this tracepoint of an interrupt used? For [`Self::Interrupts`] both the entry and the
    /// exit are needed, but perf may not record the exit of `irq_work`: its own records would cause
    /// another one.
    fn includes(self, name: &str) -> bool {
        let is_entry_or_exit = name.ends_with("_entry") || name.ends_with("_exit");
        let lacks_exit = self == Self::Interrupts && name.starts_with("irq_work");
        (is_entry_or_exit && !lacks_exit) || name == "nmi_handler"
    }
}

/// The buffers of the watched CPUs.
#[derive(Debug)]
pub(in crate::linux) struct InterruptPoints {
    decoder: ReportDecoder,
    rings: Vec<Ring>,
    is_enabled: bool,
    /// Further events, which write into the same buffers.
    further_events: Vec<OwnedFd>,
    bytes: Vec<u8>,
}

impl InterruptPoints {
    /// Opens the tracepoints, disabled.
    pub(in crate::linux) fn open(cpus: &CpuSet, choice: PointChoice) -> Result<Self, Refusal> {
        permission::check_initial_pid_namespace()?;
        let (decoder, ids) = read_formats(choice)?;
        let needed = cpus.len() * ids.len();
        let permitted = sys::raise_descriptor_limit();
        if needed + 64 > permitted {
            return Err(Refusal {
                reason: format!("{needed} descriptors are needed and {permitted} are permitted"),
                remedy: Some(format!("ulimit -n {}", needed.next_power_of_two())),
            });
        }
        let mut source = Self {
            decoder,
            rings: Vec::new(),
            is_enabled: false,
            further_events: Vec::new(),
            bytes: Vec::new(),
        };
        let mut bytes = WANTED_BYTES.min(MAX_BYTES / cpus.len().max(1));
        for cpu in cpus.iter() {
            source
                .open_on(cpu, &ids, &mut bytes)
                .map_err(|error| permission::explain_refusal(Attempt::Points, &error))?;
        }
        Ok(source)
    }

    fn open_on(&mut self, cpu: usize, ids: &[u64], bytes: &mut usize) -> io::Result<()> {
        let request = |id, watermark_bytes| {
            let recorded = Recorded::Tracepoint {
                id,
                with_lives: false,
            };
            EventRequest {
                watermark_bytes,
                ..EventRequest::new(recorded, -1, cpu)
            }
        };
        let ring = loop {
            let owner = events::open(&request(ids[0], *bytes / 2))?;
            match Ring::new(owner, *bytes) {
                Ok(ring) => break ring,
                Err(error) if *bytes > MIN_BYTES && ring::is_for_size(&error) => *bytes /= 2,
                Err(error) => return Err(error),
            }
        };
        for &id in &ids[1..] {
            match events::open(&request(id, 0)) {
                Ok(event) => {
                    ring.attach_event(&event)?;
                    self.further_events.push(event);
                }
                // Perf may not record the exit of `irq_work`.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
                Err(error) => return Err(error),
            }
        }
        self.rings.push(ring);
        Ok(())
    }

    /// Switches all events on or off.
    pub(in crate::linux) fn set_enabled(&mut self, is_enabled: bool) {
        self.is_enabled = is_enabled;
        for event in self
            .rings
            .iter()
            .map(Ring::event)
            .chain(&self.further_events)
        {
            ring::set_enabled(event, is_enabled);
        }
    }

    /// Descriptors that become readable when a buffer is half full.
    pub(in crate::linux) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.rings.iter().map(Ring::descriptor)
    }

    /// Reads what the kernel has written; `receive` gets the CPU's index among the watched ones,
    /// the thread that had the CPU, and the report.
    pub(in crate::linux) fn drain(&mut self, mut receive: impl FnMut(usize, Tid, Report)) {
        for (index, ring) in self.rings.iter_mut().enumerate() {
            let is_full = ring.read(&mut self.bytes);
            let mut last_ns = 0;
            let layout = Layout::from_sample_type(POINT_FIELDS);
            for read in Records::new(&self.bytes, layout) {
                let time_ns = read.time_ns;
                let (thread, what) = match read.record {
                    Record::Sample { raw } => (self.decoder.thread(raw), self.decoder.decode(raw)),
                    Record::Lost { .. } | Record::Throttle | Record::Damaged => {
                        (None, Some(ReportKind::Lost))
                    }
                    _ => continue,
                };
                if let Some(what) = what {
                    receive(index, thread.unwrap_or(IDLE), Report { time_ns, what });
                }
                last_ns = time_ns;
            }
            // No further record will report the loss.
            if is_full && !self.is_enabled {
                let (time_ns, what) = (last_ns, ReportKind::Lost);
                receive(index, IDLE, Report { time_ns, what });
            }
        }
    }
}

/// Reads the formats of the tracepoints; returns their decoder and their ids.
fn read_formats(choice: PointChoice) -> Result<(ReportDecoder, Vec<u64>), Refusal> {
    let tracefs = Tracefs::find()?;
    let mut decoder = ReportDecoder::default();
    let mut ids = Vec::new();
    let mut add = |system: &str, format: &TracepointFormat| -> Result<(), Refusal> {
        if decoder
            .add(system, format)
            .map_err(|error| tracefs::explain_unknown_format(&error))?
        {
            ids.push(format.id);
        }
        Ok(())
    };
    let switch = (choice == PointChoice::Everything).then_some(SWITCH);
    let read = |system: &str, name: &str| tracefs.read_format(system, name, choice.command());
    for (system, name) in REQUIRED.into_iter().chain(switch) {
        add(system, &read(system, name)?)?;
    }
    for system in SUBSYSTEMS {
        for name in tracefs.list_tracepoints(system) {
            if choice.includes(&name) {
                add(system, &read(system, &name)?)?;
            }
        }
    }
    Ok((decoder, ids))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    /// Each is a softirq with a beginning and an end: more than a buffer holds.
    const PACKETS: usize = 100_000;

    /// The kernel reports a loss with the next record, which never comes here.
    #[test]
    fn losses_of_a_full_buffer_at_the_end_are_reported() {
        let own = sys::affinity().unwrap();
        let cpus = CpuSet::single(own.first().unwrap());
        let mut points = match InterruptPoints::open(&cpus, PointChoice::Interrupts) {
            Ok(points) => points,
            Err(refusal) => return eprintln!("SKIPPED: {}", refusal.reason),
        };
        sys::set_affinity(&cpus).unwrap();
        points.set_enabled(true);
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for _ in 0..PACKETS {
            from.send_to(&[7], to.local_addr().unwrap()).unwrap();
            to.recv(&mut [0]).unwrap();
        }
        points.set_enabled(false);
        sys::set_affinity(&own).unwrap();
        let mut last = None;
        points.drain(|_, _, step| last = Some(step.what));
        assert_eq!(last, Some(ReportKind::Lost));
    }
}
