//! Callers of sampled threads, by the unwind tables of their mapped files.
//!
//! A sample brings registers and a copy of its stack, which is unwound on arrival and not kept.
//! Tables are read once per file, whichever processes have it mapped; their memory and the work on
//! them are bounded. Without an entry for an address the frame pointer is followed, which code
//! generated at run time often keeps.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::super::sys;
use super::VDSO;
use super::files::program_of;
use super::maps::Maps;
use pinwise_code::unwind::{
    CallFrames, Caller, ParseBudget, Registers, Rule, StackCopy, caller, caller_by_frame_pointer,
};
use pinwise_profile::Module;

/// Limits the frames of a stack.
const MAX_FRAMES: usize = 200;
/// Callers that frame pointers may skip: functions of the C library call one another a few times.
const MAX_SKIPPED: usize = 8;
/// Limits on all files together: bytes of tables, files, rules, and mapped places.
const MAX_BYTES: usize = 256 << 20;
const MAX_FILES: usize = 4096;
const MAX_RULES: usize = 50_000;
const MAX_PLACES: usize = 20_000;
/// Limits the table entries processed, bytes: a program of a thousand files needs a tenth.
const MAX_WORK: usize = 64 << 20;
/// Upper limit on the kernel's code in every program, bytes.
const LARGEST_VDSO: usize = 64 << 10;

/// A process when it was sampled.
#[derive(Debug, Clone, Copy)]
pub(in crate::linux) struct Place<'a> {
    pub(in crate::linux) pid: i32,
    pub(in crate::linux) generation: u32,
    pub(in crate::linux) maps: &'a Maps,
    pub(in crate::linux) modules: &'a [Module],
}

/// Identifies a file, whatever its name: device, number, bytes, last change.
type Identity = (u64, u64, u64, i64);

/// Callers by tables, including those that frame pointers skip.
#[derive(Debug)]
pub(in crate::linux) struct PassedOver {
    /// Innermost first.
    pub(in crate::linux) callers: Vec<u64>,
    pub(in crate::linux) end: Lead,
}

/// How to continue after some callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Lead {
    /// Frame pointers, starting at this one of their frames.
    FramePointers(usize),
    /// It need not continue: a thread begins there.
    Outermost,
    Nothing,
}

/// Finds callers.
#[derive(Debug)]
pub(in crate::linux) struct Unwinder {
    work: ParseBudget,
    bytes: usize,
    tables: Vec<CallFrames>,
    /// Indices into `tables`; `None` for files without.
    files: BTreeMap<Identity, Option<usize>>,
    vdso: Option<Option<usize>>,
    /// By process, program and module.
    places: BTreeMap<(i32, u32, usize), Option<usize>>,
    /// By tables and address.
    rules: BTreeMap<(usize, u64), Option<Rule>>,
}

impl Unwinder {
    pub(in crate::linux) fn new() -> Self {
        Self {
            work: ParseBudget::new(MAX_WORK),
            bytes: 0,
            tables: Vec::new(),
            files: BTreeMap::new(),
            vdso: None,
            places: BTreeMap::new(),
            rules: BTreeMap::new(),
        }
    }

    /// The executed address and its callers, innermost first; and whether the stack ends before its
    /// outermost function.
    pub(in crate::linux) fn read_stack(
        &mut self,
        place: &Place<'_>,
        mut registers: Registers,
        stack: &StackCopy<'_>,
    ) -> (Vec<u64>, bool) {
        let mut frames = vec![registers.address];
        while frames.len() < MAX_FRAMES {
            match self.caller(place, &registers, stack) {
                Caller::Frame(next) if place.maps.find(next.looked_up()).is_some() => {
                    frames.push(next.address);
                    registers = next;
                }
                Caller::Nobody => return (frames, false),
                Caller::Frame(_) | Caller::Unknown => break,
            }
        }
        (frames, true)
    }

    /// Callers up to two functions in a row that set up a frame. Frame pointers skip functions that
    /// have none, or have not set it up yet, and lead on from there.
    pub(in crate::linux) fn find_skipped_callers(
        &mut self,
        place: &Place<'_>,
        mut registers: Registers,
        stack: &StackCopy<'_>,
    ) -> PassedOver {
        let first = registers.frame_pointer();
        let mut callers = Vec::new();
        let mut joined = None;
        let mut has_frame = false;
        loop {
            let rule = self.rule(place, registers.looked_up());
            // Code without tables has nothing but frame pointers.
            let keeps =
                rule.is_none_or(|(tables, rule)| tables.keeps_frame_pointer(rule) == Some(true));
            let had_frame = std::mem::replace(&mut has_frame, keeps);
            let join = steps(first, registers.frame_pointer(), stack).filter(|_| keeps);
            if let Some(frames) = join {
                joined = Some((callers.len(), frames));
            }
            let Some((tables, rule)) = rule else { break };
            if join.is_some() && had_frame {
                break;
            }
            match caller(tables, rule, &registers, stack) {
                Caller::Frame(next)
                    if place.maps.find(next.looked_up()).is_some()
                        && callers.len() < MAX_SKIPPED =>
                {
                    callers.push(next.address);
                    registers = next;
                }
                Caller::Nobody => {
                    let end = Lead::Outermost;
                    return PassedOver { callers, end };
                }
                Caller::Frame(_) | Caller::Unknown => break,
            }
        }
        let end = joined.map_or(Lead::Nothing, |(many, frames)| {
            callers.truncate(many);
            Lead::FramePointers(frames)
        });
        PassedOver { callers, end }
    }

    /// The caller of a frame.
    pub(in crate::linux) fn caller(
        &mut self,
        place: &Place<'_>,
        registers: &Registers,
        stack: &StackCopy<'_>,
    ) -> Caller {
        match self.rule(place, registers.looked_up()) {
            Some((tables, rule)) => caller(tables, rule, registers, stack),
            None => caller_by_frame_pointer(registers, stack),
        }
    }

    fn rule(&mut self, place: &Place<'_>, address: u64) -> Option<(&CallFrames, &Rule)> {
        let mapping = place.maps.find(address)?;
        let tables = self.tables_of(place, mapping.module)?;
        let found = self.tables.get(tables)?;
        let offset = (address - mapping.start).checked_add(mapping.offset)?;
        let address = found.address_of(offset)?;
        if self.rules.len() >= MAX_RULES && !self.rules.contains_key(&(tables, address)) {
            self.rules.clear();
        }
        let rule = self.rules.entry((tables, address));
        let rule = rule.or_insert_with(|| found.rule(address, &mut self.work));
        Some((found, rule.as_ref()?))
    }

    fn tables_of(&mut self, place: &Place<'_>, module: usize) -> Option<usize> {
        let key = (place.pid, place.generation, module);
        if let Some(known) = self.places.get(&key) {
            return *known;
        }
        let path = place.modules.get(module)?.path.as_str();
        let found = if path == VDSO {
            self.load_vdso_frames()
        } else {
            program_of(place.pid, path).and_then(|file| self.load_file_frames(&file))
        };
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        self.places.insert(key, found);
        found
    }

    fn load_file_frames(&mut self, file: &File) -> Option<usize> {
        let about = file.metadata().ok()?;
        let changed = about.mtime().wrapping_mul(1_000_000_000);
        let changed = changed.wrapping_add(about.mtime_nsec());
        let identity = (about.dev(), about.ino(), about.len(), changed);
        if let Some(known) = self.files.get(&identity) {
            return *known;
        }
        if self.files.len() >= MAX_FILES {
            return None;
        }
        let found = read_tables(file, &mut self.work);
        let found = found.and_then(|found| self.keep(found));
        self.files.insert(identity, found);
        found
    }

    fn load_vdso_frames(&mut self) -> Option<usize> {
        if let Some(known) = self.vdso {
            return known;
        }
        let image = own_vdso();
        let read = &mut |offset: u64, length: usize| {
            let from = usize::try_from(offset).ok()?;
            Some(image.get(from..from.checked_add(length)?)?.to_vec())
        };
        let found = CallFrames::read(read, &mut self.work);
        let found = found.and_then(|found| self.keep(found));
        self.vdso = Some(found);
        found
    }

    fn keep(&mut self, tables: CallFrames) -> Option<usize> {
        let bytes = self.bytes.saturating_add(tables.bytes());
        if bytes > MAX_BYTES {
            return None;
        }
        self.bytes = bytes;
        self.tables.push(tables);
        Some(self.tables.len() - 1)
    }
}

/// Frames from one frame pointer to another, each the word that the previous one points at.
fn steps(from: Option<u64>, to: Option<u64>, stack: &StackCopy<'_>) -> Option<usize> {
    let mut at = from?;
    let to = to?;
    for steps in 0..=MAX_SKIPPED {
        if at == to {
            return Some(steps);
        }
        at = stack.word(at)?;
    }
    None
}

/// The tables of a file.
pub(in crate::linux) fn read_tables(file: &File, work: &mut ParseBudget) -> Option<CallFrames> {
    let length = file.metadata().ok()?.len();
    let read = &mut |offset: u64, bytes: usize| {
        let end = offset.checked_add(bytes as u64)?;
        if end > length {
            return None;
        }
        let mut buffer = vec![0; bytes];
        file.read_exact_at(&mut buffer, offset).ok()?;
        Some(buffer)
    };
    CallFrames::read(read, work)
}

/// The kernel's code in this process, which is the same in all processes.
fn own_vdso() -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut image = Vec::new();
    let mut page = vec![0; PAGE];
    let own = std::process::id().cast_signed();
    while image.len() < LARGEST_VDSO {
        let address = sys::vdso_address().saturating_add(image.len() as u64);
        let Some(read) = sys::read_memory(own, address, &mut page) else {
            break;
        };
        image.extend_from_slice(&page[..read]);
    }
    image
}
