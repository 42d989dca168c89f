//! Tracepoints of interrupts, and of switches if requested, through perf's buffers: the system's
//! own tracing is not touched.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use super::super::ring::{self, Ring};
use super::super::sys;
use super::events::{self, POINT_FIELDS, Recorded, Wish};
use super::permission::{self, Attempt};
use super::tracefs::{self, Folder};
use pinwise_sched::jitter::{Points, Step, StepKind};
use pinwise_sched::perf::{Layout, Record, Records};
use pinwise_sched::{IDLE, Refusal, Tid, TracepointFormat};
use pinwise_topology::CpuSet;

/// Buffer of a CPU, bytes: about 20,000 records.
const WANTED_BYTES: usize = 2 << 20;
const FEWEST_BYTES: usize = 64 << 10;
/// Limits all buffers together.
const MAX_BYTES: usize = 512 << 20;
/// Reports which thread has the CPU.
const SWITCH: (&str, &str) = ("sched", "sched_switch");
/// Those that causes require; the first one holds the buffer.
const NEEDED: [(&str, &str); 4] = [
    ("irq", "irq_handler_entry"),
    ("irq", "irq_handler_exit"),
    ("irq", "softirq_entry"),
    ("irq", "softirq_exit"),
];
/// Folders of which all existing ones are used: they depend on the architecture.
const FOLDERS: [&str; 3] = ["irq_vectors", "ipi", "nmi"];

/// What to read from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum PointChoice {
    /// Interrupts, softirqs and switches.
    Everything,
    /// Interrupts and softirqs that have a beginning and an end.
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

    /// Perf may not record the end of `irq_work`, which its own records would cause.
    fn has(self, name: &str) -> bool {
        let is_pair = name.ends_with("_entry") || name.ends_with("_exit");
        let is_half = self == Self::Interrupts && name.starts_with("irq_work");
        (is_pair && !is_half) || name == "nmi_handler"
    }
}

/// The buffers of the watched CPUs.
#[derive(Debug)]
pub(in crate::linux) struct InterruptPoints {
    points: Points,
    rings: Vec<Ring>,
    is_on: bool,
    /// Events that write into the buffers.
    guests: Vec<OwnedFd>,
    bytes: Vec<u8>,
}

impl InterruptPoints {
    /// Opens the tracepoints, disabled.
    pub(in crate::linux) fn open(cpus: &CpuSet, wanted: PointChoice) -> Result<Self, Refusal> {
        permission::check_initial_pid_namespace()?;
        let (points, ids) = read_points(wanted)?;
        let needed = cpus.len() * ids.len();
        let most = sys::raise_descriptor_limit();
        if needed + 64 > most {
            return Err(Refusal {
                reason: format!("{needed} descriptors are needed and {most} are permitted"),
                remedy: Some(format!("ulimit -n {}", needed.next_power_of_two())),
            });
        }
        let mut source = Self {
            points,
            rings: Vec::new(),
            is_on: false,
            guests: Vec::new(),
            bytes: Vec::new(),
        };
        let mut bytes = WANTED_BYTES.min(MAX_BYTES / cpus.len().max(1));
        for cpu in cpus.iter() {
            source
                .open_on(cpu, &ids, &mut bytes)
                .map_err(|error| permission::refusal(Attempt::Points, &error))?;
        }
        Ok(source)
    }

    fn open_on(&mut self, cpu: usize, ids: &[u64], bytes: &mut usize) -> io::Result<()> {
        let wish = |id, watermark_bytes| Wish {
            recorded: Recorded::Tracepoint {
                id,
                with_lives: false,
            },
            thread: -1,
            cpu,
            is_inherited: false,
            on_exec: false,
            watermark_bytes,
        };
        let ring = loop {
            let holder = events::open(&wish(ids[0], *bytes / 2))?;
            match Ring::new(holder, *bytes) {
                Ok(ring) => break ring,
                Err(error) if *bytes > FEWEST_BYTES && ring::is_for_memory(&error) => *bytes /= 2,
                Err(error) => return Err(error),
            }
        };
        for &id in &ids[1..] {
            match events::open(&wish(id, 0)) {
                Ok(guest) => {
                    ring.admit(&guest)?;
                    self.guests.push(guest);
                }
                // The end of irq_work.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
                Err(error) => return Err(error),
            }
        }
        self.rings.push(ring);
        Ok(())
    }

    pub(in crate::linux) fn switch(&mut self, on: bool) {
        self.is_on = on;
        for event in self.rings.iter().map(Ring::event).chain(&self.guests) {
            ring::switch(event, on);
        }
    }

    /// Readable when a buffer is half full.
    pub(in crate::linux) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.rings.iter().map(Ring::descriptor)
    }

    /// Takes what the kernel has written; `take` gets the CPU's index among the watched ones, and
    /// the thread that had it.
    pub(in crate::linux) fn drain(&mut self, mut take: impl FnMut(usize, Tid, Step)) {
        for (index, ring) in self.rings.iter_mut().enumerate() {
            let is_full = ring.read(&mut self.bytes);
            let mut last_ns = 0;
            let layout = Layout::from_sample_type(POINT_FIELDS);
            for read in Records::new(&self.bytes, layout) {
                let time_ns = read.time_ns;
                let (thread, what) = match read.record {
                    Record::Sample { raw } => (self.points.thread(raw), self.points.read(raw)),
                    Record::Lost { .. } | Record::Throttle | Record::Damaged => {
                        (None, Some(StepKind::Lost))
                    }
                    _ => continue,
                };
                if let Some(what) = what {
                    take(index, thread.unwrap_or(IDLE), Step { time_ns, what });
                }
                last_ns = time_ns;
            }
            // No further record will report the loss.
            if is_full && !self.is_on {
                let (time_ns, what) = (last_ns, StepKind::Lost);
                take(index, IDLE, Step { time_ns, what });
            }
        }
    }
}

/// The formats of the tracepoints, and their ids.
fn read_points(wanted: PointChoice) -> Result<(Points, Vec<u64>), Refusal> {
    let folder = Folder::find()?;
    let mut points = Points::default();
    let mut ids = Vec::new();
    let mut add = |system: &str, format: &TracepointFormat| -> Result<(), Refusal> {
        if points
            .add(system, format)
            .map_err(|error| tracefs::unusable(&error))?
        {
            ids.push(format.id);
        }
        Ok(())
    };
    let switch = (wanted == PointChoice::Everything).then_some(SWITCH);
    for (system, name) in NEEDED.into_iter().chain(switch) {
        add(system, &folder.format(system, name, wanted.command())?)?;
    }
    for system in FOLDERS {
        for name in folder.names(system) {
            if wanted.has(&name) {
                add(system, &folder.format(system, &name, wanted.command())?)?;
            }
        }
    }
    Ok((points, ids))
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
        points.switch(true);
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for _ in 0..PACKETS {
            from.send_to(&[7], to.local_addr().unwrap()).unwrap();
            to.recv(&mut [0]).unwrap();
        }
        points.switch(false);
        sys::set_affinity(&own).unwrap();
        let mut last = None;
        points.drain(|_, _, step| last = Some(step.what));
        assert_eq!(last, Some(StepKind::Lost));
    }
}
