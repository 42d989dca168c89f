//! Loads the program and reads its events.

#![expect(unsafe_code, reason = "the rings are memory shared with the kernel")]

use std::fmt::Write as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use aya::maps::{Map, MapData, RingBuf};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};

use super::super::{Opened, Source};
use super::permission::{BpfConditions, explain_refusal};
use super::rings::{CURSOR_WORDS, Progress, Reader, Ring, SLOT_WORDS};
use crate::linux::sys;
use pinwise_sched::{Event, EventKind};

static OBJECT: &[u8] = aya::include_bytes_aligned!("sched.bpf.o");

/// Most slots of a CPU, as a power of two: enough for a third of a second with 200,000 switches and
/// as many wake-ups per second on one CPU.
const MAX_SLOTS_LOG2: u32 = 17;
/// Fewest slots of a CPU.
const MIN_SLOTS_LOG2: u32 = 12;
/// Slots of all CPUs together, as a power of two: with 16 bytes per slot this is 64 MiB. With more
/// than 1024 CPUs there are more slots.
const ALL_SLOTS_LOG2: u32 = 22;

/// Alternative programs and their tracepoint; the first that the kernel accepts is used.
const PROGRAMS: [(&[&str], &str); 5] = [
    (&["switched", "switched_before_5_18"], "sched_switch"),
    (&["woken"], "sched_wakeup"),
    (&["woken_first"], "sched_wakeup_new"),
    (&["forked"], "sched_process_fork"),
    (&["renamed"], "task_rename"),
];

/// Errors of loading the program.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("loading the maps: {0}")]
    Maps(#[from] aya::EbpfError),
    #[error("reading the kernel's types: {0}")]
    Types(#[from] aya::BtfError),
    #[error("program {0}: {1}")]
    Program(&'static str, ProgramError),
    #[error("mapping a ring: {0}")]
    Mapping(#[from] std::io::Error),
    #[error("the object lacks {0}")]
    Incomplete(&'static str),
}

/// Loads the program, attaches it everywhere, and begins to record.
pub(in super::super) fn open() -> Opened {
    if let Some(refusal) = BpfConditions::read().find_obstacle() {
        return Err(refusal);
    }
    match Live::load(MAX_SLOTS_LOG2) {
        Ok(live) => Ok(Box::new(live)),
        Err(error) => Err(explain_refusal(&error)),
    }
}

/// Reads the kernel's own description of its structures, once, since that takes longer than
/// everything else.
fn read_kernel_types() -> Result<&'static Btf, LoadError> {
    static TYPES: OnceLock<Btf> = OnceLock::new();
    if let Some(types) = TYPES.get() {
        return Ok(types);
    }
    let types = Btf::from_sys_fs()?;
    Ok(TYPES.get_or_init(|| types))
}

/// The program while it records.
struct Live {
    /// Owns programs and links; dropping it stops them. `None` after the end.
    loaded: Option<Ebpf>,
    /// The programs write here to wake the reader.
    bell: RingBuf<MapData>,
    cursors: Mapping,
    slots: Mapping,
    readers: Vec<Reader>,
    /// Events before which older ones may still arrive.
    held: Vec<Event>,
}

impl Live {
    fn load(most_slots_log2: u32) -> Result<Self, LoadError> {
        let types = read_kernel_types()?;
        let cpus = count_possible_cpus();
        let log2 = slots_log2(cpus).min(most_slots_log2);
        let slots = cpus << log2;
        let mut loaded = EbpfLoader::new()
            .btf(Some(types))
            .map_max_entries("cursors", cpus)
            .map_max_entries("slots", slots)
            .override_global("slots_log2", &log2, true)
            .load(OBJECT)?;
        let cursors = Mapping::open(&mut loaded, "cursors", cpus as usize * CURSOR_WORDS)?;
        let slots = Mapping::open(&mut loaded, "slots", slots as usize * SLOT_WORDS)?;
        let bell = loaded
            .take_map("bell")
            .ok_or(LoadError::Incomplete("bell"))?;
        let bell = RingBuf::try_from(bell).map_err(aya::EbpfError::from)?;
        for (names, tracepoint) in PROGRAMS {
            attach_one_of(&mut loaded, names, tracepoint, types)?;
        }
        Ok(Self {
            loaded: Some(loaded),
            bell,
            cursors,
            slots,
            readers: (0..cpus).map(Reader::new).collect(),
            held: Vec::new(),
        })
    }

    /// Reads every ring.
    fn read(&mut self) -> Progress {
        let now_ns = now_ns();
        let rings = split_rings(&self.cursors, &self.slots, self.readers.len());
        let mut all = Progress {
            until_ns: now_ns,
            is_unfinished: false,
        };
        for (reader, ring) in self.readers.iter_mut().zip(rings) {
            let progress = reader.read(ring, now_ns, &mut self.held);
            all.until_ns = all.until_ns.min(progress.until_ns);
            all.is_unfinished |= progress.is_unfinished;
        }
        all
    }

    /// Emits events older than `until_ns`, in time order.
    fn emit_until(&mut self, until_ns: u64, events: &mut Vec<Event>) {
        // A stable sort, which is fast because each ring's events are sorted.
        self.held.sort_by_key(|event| event.time_ns);
        let count = self.held.partition_point(|event| event.time_ns < until_ns);
        events.extend(self.held.drain(..count));
    }

    /// Counts the calls that the kernel skipped because the same program was already running on
    /// that CPU, for example a wake-up by an interrupt during another wake-up.
    fn count_missed(&self) -> u64 {
        let programs = self.loaded.iter().flat_map(Ebpf::programs);
        programs
            .filter_map(|(_, program)| program.fd().ok())
            .map(|fd| parse_misses(&read_fdinfo(fd.as_fd())))
            .sum()
    }
}

impl Source for Live {
    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.bell.as_raw_fd()]
    }

    fn drain(&mut self, events: &mut Vec<Event>) {
        while self.bell.next().is_some() {}
        let progress = self.read();
        self.emit_until(progress.until_ns, events);
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        let records = self.count_missed();
        self.loaded = None;
        // A record is finished within microseconds, unless a hypervisor stopped that CPU.
        for _ in 0..20 {
            if !self.read().is_unfinished {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let time_ns = now_ns();
        let rings = split_rings(&self.cursors, &self.slots, self.readers.len());
        for (reader, ring) in self.readers.iter_mut().zip(rings) {
            reader.close(ring, time_ns, &mut self.held);
        }
        self.emit_until(u64::MAX, events);
        if records > 0 {
            // The kernel does not say on which CPU.
            events.push(Event {
                time_ns,
                cpu: 0,
                what: EventKind::Lost { records },
            });
        }
    }
}

/// Memory of a map, shared with the kernel, as words.
struct Mapping {
    words: *const AtomicU64,
    count: usize,
}

impl Mapping {
    fn open(loaded: &mut Ebpf, name: &'static str, count: usize) -> Result<Self, LoadError> {
        let Some(Map::Array(map)) = loaded.map(name) else {
            return Err(LoadError::Incomplete(name));
        };
        Ok(Self::new(map.fd().as_fd(), count)?)
    }

    fn new(map: BorrowedFd<'_>, count: usize) -> std::io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; it is
        // checked before it is used.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * size_of::<AtomicU64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self {
            words: start.cast(),
            count,
        })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is this long, page-aligned, and lives as long as
        // `self`; whoever else writes to it does so with whole words.
        unsafe { std::slice::from_raw_parts(self.words, self.count) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and no longer borrowed.
        unsafe {
            libc::munmap(
                self.words.cast_mut().cast(),
                self.count * size_of::<AtomicU64>(),
            );
        }
    }
}

/// Splits the two maps into the rings of the CPUs.
fn split_rings<'a>(
    cursors: &'a Mapping,
    slots: &'a Mapping,
    cpus: usize,
) -> impl Iterator<Item = Ring<'a>> {
    let per_cpu = slots.count / cpus.max(1);
    let cursors = cursors.words().chunks_exact(CURSOR_WORDS);
    let slots = slots.words().chunks_exact(per_cpu.max(1));
    cursors
        .zip(slots)
        .map(|(cursor, slots)| Ring { cursor, slots })
}

/// Loads and attaches the first of these programs that the kernel accepts.
fn attach_one_of(
    loaded: &mut Ebpf,
    names: &'static [&'static str],
    tracepoint: &str,
    types: &Btf,
) -> Result<(), LoadError> {
    let mut refused = LoadError::Incomplete(names[0]);
    for name in names {
        let attached = find_program(loaded, name).and_then(|program| {
            program
                .load(tracepoint, types)
                .and_then(|()| program.attach())
                .map_err(|error| LoadError::Program(name, error))
        });
        match attached {
            Ok(_) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn find_program<'a>(
    loaded: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut BtfTracePoint, LoadError> {
    let program = loaded.program_mut(name);
    program
        .and_then(|program| program.try_into().ok())
        .ok_or(LoadError::Incomplete(name))
}

/// The id of the last CPU that may ever be plugged in, plus one.
fn count_possible_cpus() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /sys")]
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next();
    let last: Option<u32> = last.and_then(|last| last.parse().ok());
    last.map_or(1, |last| last + 1)
}

/// Slots of each CPU, as a power of two.
fn slots_log2(cpus: u32) -> u32 {
    let for_one = ALL_SLOTS_LOG2.saturating_sub(cpus.next_power_of_two().ilog2());
    for_one.clamp(MIN_SLOTS_LOG2, MAX_SLOTS_LOG2)
}

fn now_ns() -> u64 {
    u64::try_from(sys::monotonic().as_nanos()).unwrap_or(u64::MAX)
}

fn read_fdinfo(descriptor: BorrowedFd<'_>) -> String {
    let mut path = "/proc/self/fdinfo/".to_owned();
    let _ = write!(path, "{}", descriptor.as_raw_fd());
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
    std::fs::read_to_string(path).unwrap_or_default()
}

fn parse_misses(fdinfo: &str) -> u64 {
    let line = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
