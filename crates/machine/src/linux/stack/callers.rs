//! Callers of sampled threads, by the unwind tables of their mapped files.
//!
//! A sample brings registers and a copy of its stack, which is unwound on arrival and not kept.
//! Tables are read once per file, whichever processes have it mapped; their memory and the time
//! spent on them are limited. Without an entry for an address the frame pointer is followed, which
//! code generated at run time often keeps.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::super::sys;
use super::VDSO;
use super::files::open_program;
use super::maps::Maps;
use pinwise_code::unwind::{
    CallFrames, Caller, ParseBudget, Registers, Rule, StackCopy, find_caller,
    find_caller_by_frame_pointer,
};
use pinwise_profile::Module;

/// Limits the frames of a stack.
const MAX_FRAMES: usize = 200;
/// Callers that frame pointers may skip: functions of the C library call one another a few times.
const MAX_SKIPPED: usize = 8;
/// Limits on all files together: bytes of tables, files, rules, and mapped files.
const MAX_BYTES: usize = 256 << 20;
const MAX_FILES: usize = 4096;
const MAX_RULES: usize = 50_000;
const MAX_MAPPED_FILES: usize = 20_000;
/// Limits the table entries processed, bytes: a program of a thousand files needs a tenth.
const MAX_WORK: usize = 64 << 20;
/// Most bytes read of the vDSO, the kernel's code in every program.
const MAX_VDSO_BYTES: usize = 64 << 10;
/// The mapped code of a process when it was sampled.
#[derive(Debug, Clone, Copy)]
pub(in crate::linux) struct MappedProcess<'a> {
    pub(in crate::linux) pid: i32,
    /// Number of programs that the process ran before this one.
    pub(in crate::linux) generation: u32,
    pub(in crate::linux) maps: &'a Maps,
    pub(in crate::linux) modules: &'a [Module],
}

/// Identifies a file, whatever its name: device, inode, bytes, last change in ns.
type Identity = (u64, u64, u64, i64);

/// The innermost callers by tables, including those that frame pointers skip.
#[derive(Debug)]
pub(in crate::linux) struct SkippedCallers {
    /// Innermost first.
    pub(in crate::linux) callers: Vec<u64>,
    pub(in crate::linux) next: NextCallers,
}

/// Where the callers after some known ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum NextCallers {
    /// In the chain of frame pointers, from the frame with this index on.
    FramePointers(usize),
    /// There are none: the thread begins there.
    Outermost,
    /// The tables do not lead on.
    Unknown,
}

/// Finds callers, and keeps the tables it has read.
#[derive(Debug)]
pub(in crate::linux) struct Unwinder {
    work: ParseBudget,
    /// Bytes of all tables.
    bytes: usize,
    tables: Vec<CallFrames>,
    /// Indices into `tables`; `None` for files without tables.
    files: BTreeMap<Identity, Option<usize>>,
    /// `None` if not read yet.
    vdso: Option<Option<usize>>,
    /// Indices into `tables` by process, generation and module.
    mapped_files: BTreeMap<(i32, u32, usize), Option<usize>>,
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
            mapped_files: BTreeMap::new(),
            rules: BTreeMap::new(),
        }
    }

    /// The executed address and its callers, innermost first; and whether the outermost callers are
    /// missing.
    pub(in crate::linux) fn read_stack(
        &mut self,
        process: &MappedProcess<'_>,
        mut registers: Registers,
        stack: &StackCopy<'_>,
    ) -> (Vec<u64>, bool) {
        let mut frames = vec![registers.address];
        while frames.len() < MAX_FRAMES {
            match self.find_caller(process, &registers, stack) {
                Caller::Frame(next) if process.maps.find(next.lookup_address()).is_some() => {
                    frames.push(next.address);
                    registers = next;
                }
                Caller::None => return (frames, false),
                Caller::Frame(_) | Caller::Unknown => break,
            }
        }
        (frames, true)
    }

    /// Frame pointers skip functions that have none, or have not set it up yet. Tables find these
    /// functions; from two functions in a row that keep the frame pointer, it suffices again.
    pub(in crate::linux) fn find_skipped_callers(
        &mut self,
        process: &MappedProcess<'_>,
        mut registers: Registers,
        stack: &StackCopy<'_>,
    ) -> SkippedCallers {
        let first = registers.frame_pointer();
        let mut callers = Vec::new();
        let mut joined = None;
        let mut has_frame = false;
        loop {
            let rule = self.find_rule(process, registers.lookup_address());
            // Code without tables can have only frame pointers.
            let keeps_frame =
                rule.is_none_or(|(tables, rule)| tables.keeps_frame_pointer(rule) == Some(true));
            let had_frame = std::mem::replace(&mut has_frame, keeps_frame);
            let join =
                count_frames(first, registers.frame_pointer(), stack).filter(|_| keeps_frame);
            if let Some(frames) = join {
                joined = Some((callers.len(), frames));
            }
            let Some((tables, rule)) = rule else { break };
            if join.is_some() && had_frame {
                break;
            }
            match find_caller(tables, rule, &registers, stack) {
                Caller::Frame(next)
                    if process.maps.find(next.lookup_address()).is_some()
                        && callers.len() < MAX_SKIPPED =>
                {
                    callers.push(next.address);
                    registers = next;
                }
                Caller::None => {
                    let next = NextCallers::Outermost;
                    return SkippedCallers { callers, next };
                }
                Caller::Frame(_) | Caller::Unknown => break,
            }
        }
        let next = joined.map_or(NextCallers::Unknown, |(known_callers, frames)| {
            callers.truncate(known_callers);
            NextCallers::FramePointers(frames)
        });
        SkippedCallers { callers, next }
    }

    pub(in crate::linux) fn find_caller(
        &mut self,
        process: &MappedProcess<'_>,
        registers: &Registers,
        stack: &StackCopy<'_>,
    ) -> Caller {
        match self.find_rule(process, registers.lookup_address()) {
            Some((tables, rule)) => find_caller(tables, rule, registers, stack),
            None => find_caller_by_frame_pointer(registers, stack),
        }
    }

    /// How to find the caller of the function at an address, and the tables that say so.
    fn find_rule(
        &mut self,
        process: &MappedProcess<'_>,
        address: u64,
    ) -> Option<(&CallFrames, &Rule)> {
        let mapping = process.maps.find(address)?;
        let tables = self.load_tables(process, mapping.module)?;
        let found = self.tables.get(tables)?;
        let offset = (address - mapping.start).checked_add(mapping.offset)?;
        let address = found.address_of(offset)?;
        if self.rules.len() >= MAX_RULES && !self.rules.contains_key(&(tables, address)) {
            self.rules.clear();
        }
        let rule = self.rules.entry((tables, address));
        let rule = rule.or_insert_with(|| found.find_rule(address, &mut self.work));
        Some((found, rule.as_ref()?))
    }

    /// Index of a module's tables.
    fn load_tables(&mut self, process: &MappedProcess<'_>, module: usize) -> Option<usize> {
        let key = (process.pid, process.generation, module);
        if let Some(known) = self.mapped_files.get(&key) {
            return *known;
        }
        let path = process.modules.get(module)?.path.as_str();
        let found = if path == VDSO {
            self.load_vdso_frames()
        } else {
            open_program(process.pid, path).and_then(|file| self.load_file_frames(&file))
        };
        if self.mapped_files.len() >= MAX_MAPPED_FILES {
            self.mapped_files.clear();
        }
        self.mapped_files.insert(key, found);
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
        let found = found.and_then(|found| self.keep_tables(found));
        self.files.insert(identity, found);
        found
    }

    fn load_vdso_frames(&mut self) -> Option<usize> {
        if let Some(known) = self.vdso {
            return known;
        }
        let image = read_own_vdso();
        let read = &mut |offset: u64, length: usize| {
            let from = usize::try_from(offset).ok()?;
            Some(image.get(from..from.checked_add(length)?)?.to_vec())
        };
        let found = CallFrames::read(read, &mut self.work);
        let found = found.and_then(|found| self.keep_tables(found));
        self.vdso = Some(found);
        found
    }

    /// Index of the kept tables; `None` if all tables would be too large.
    fn keep_tables(&mut self, tables: CallFrames) -> Option<usize> {
        let bytes = self.bytes.saturating_add(tables.bytes());
        if bytes > MAX_BYTES {
            return None;
        }
        self.bytes = bytes;
        self.tables.push(tables);
        Some(self.tables.len() - 1)
    }
}

/// Counts the frames from one frame pointer to another; each points at the next one.
fn count_frames(from: Option<u64>, to: Option<u64>, stack: &StackCopy<'_>) -> Option<usize> {
    let mut at = from?;
    let to = to?;
    for frames in 0..=MAX_SKIPPED {
        if at == to {
            return Some(frames);
        }
        at = stack.read_word(at)?;
    }
    None
}

/// Reads the unwind tables of a file; `None` if it has none.
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

/// Reads the vDSO of this process, which is the same in all processes.
fn read_own_vdso() -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut image = Vec::new();
    let mut page = vec![0; PAGE];
    let own = std::process::id().cast_signed();
    while image.len() < MAX_VDSO_BYTES {
        let address = sys::vdso_address().saturating_add(image.len() as u64);
        let Some(read) = sys::read_memory(own, address, &mut page) else {
            break;
        };
        image.extend_from_slice(&page[..read]);
    }
    image
}
