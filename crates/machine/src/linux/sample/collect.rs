//! Collects records as [`Samples`]: which thread was seen where, how often.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::stack::callers::{MappedProcess, NextCallers, SkippedCallers, Unwinder};
use super::super::stack::files::is_file;
use super::super::stack::maps::{self, Mapping, Maps};
use super::event::{MAX_STACK_DEPTH, SamplingKind, period_ns};
use super::made::is_dump;
use super::pages::Pages;
use super::records::{Chain, Record, Registers};
use super::steps::Steps;
use pinwise_code::{Arch, unwind};
use pinwise_profile::{Event, Frame, Module, Samples, Stack, Stacks, Thread};

/// Limits on distinct stacks and on all their frames; beyond them only the innermost frames are
/// kept.
const MAX_STACKS: usize = 200_000;
const MAX_FRAMES: usize = 10_000_000;
/// Frames of a stack that are kept beyond these limits.
const MIN_FRAMES: usize = 2;
/// Innermost frames whose code is read: whether a pause instruction is part of a spin loop can
/// depend on the caller.
const CODE_FRAMES: usize = 2;
/// Index of the register that holds the return address after x86's SYSCALL.
const RCX: usize = 2;
/// DWARF numbers of x86's registers, in the kernel's order.
const X86_NUMBERS: [u16; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Stands for the process in kernel frames.
const KERNEL: i32 = -1;

/// Names for code that has no file.
const KERNEL_MODULE: &str = "[kernel]";
const ANONYMOUS: &str = "//anon";

/// One program that a process ran.
#[derive(Debug, Default)]
struct Process {
    /// Number of programs that it ran before this one.
    generation: u32,
    maps: Maps,
}

/// The executed address and its callers.
struct Calls {
    /// Addresses, innermost first, and whether each is the kernel's.
    frames: Vec<(u64, bool)>,
    /// Whether the outermost callers are missing.
    is_broken: bool,
}

/// Collects samples from records, which it receives in time order.
#[derive(Debug)]
pub(super) struct Collector {
    kind: SamplingKind,
    processes: BTreeMap<i32, Process>,
    modules: Vec<Module>,
    module_indices: BTreeMap<String, usize>,
    threads: Vec<Thread>,
    thread_indices: BTreeMap<(i32, i32), usize>,
    names: BTreeMap<i32, String>,
    frames: Vec<Frame>,
    frame_indices: BTreeMap<(i32, u32, u64), usize>,
    /// Number of samples by thread, frames, and whether the outermost callers are missing.
    stacks: BTreeMap<(usize, Vec<usize>, bool), u64>,
    kept_frames: usize,
    unwinder: Unwinder,
    steps: Steps,
    lost: u64,
    /// The thread that each event was opened for; its new threads inherit the event.
    opened_for: BTreeMap<u64, i32>,
    /// By thread, the opened-for thread of the event that first saw it. A thread that starts while
    /// events are opened can have two events; only the samples of this one count.
    first_opened_for: BTreeMap<i32, i32>,
    /// Offset of a frame's address in its file.
    pub(super) file_offsets: Vec<Option<u64>>,
    pub(super) pages: Pages,
    /// Processes that run code without a file.
    makers: BTreeSet<i32>,
    /// By process, the path of a mapped file that names such code.
    dumps: BTreeMap<i32, String>,
}

impl Collector {
    pub(super) fn new(kind: SamplingKind) -> Self {
        Self {
            kind,
            processes: BTreeMap::new(),
            modules: Vec::new(),
            module_indices: BTreeMap::new(),
            threads: Vec::new(),
            thread_indices: BTreeMap::new(),
            names: BTreeMap::new(),
            frames: Vec::new(),
            frame_indices: BTreeMap::new(),
            stacks: BTreeMap::new(),
            kept_frames: 0,
            unwinder: Unwinder::new(),
            steps: Steps::default(),
            lost: 0,
            opened_for: BTreeMap::new(),
            first_opened_for: BTreeMap::new(),
            file_offsets: Vec::new(),
            pages: Pages::default(),
            makers: BTreeSet::new(),
            dumps: BTreeMap::new(),
        }
    }

    /// Processes seen in code without a file.
    pub(super) const fn makers(&self) -> &BTreeSet<i32> {
        &self.makers
    }

    /// By process, the path of a mapped file that names such code.
    pub(super) const fn dumps(&self) -> &BTreeMap<i32, String> {
        &self.dumps
    }

    /// Notes which thread an event was opened for.
    pub(super) fn add_event(&mut self, id: u64, thread: i32) {
        self.opened_for.insert(id, thread);
    }

    /// Adds a running process with the text of its `/proc/PID/maps`, unless it is known.
    pub(super) fn add_process(&mut self, pid: i32, maps: &str) {
        if self.processes.contains_key(&pid) {
            return;
        }
        for line in maps.lines().filter_map(maps::parse_code) {
            let path = if line.path.is_empty() {
                ANONYMOUS
            } else {
                &line.path
            };
            self.add_mapping(pid, path, line.start..line.end, line.offset);
        }
    }

    pub(super) fn set_name(&mut self, tid: i32, name: &str) {
        self.names.insert(tid, name.to_owned());
    }

    pub(super) fn add_record(&mut self, time_ns: u64, record: &Record<'_>) {
        match record {
            Record::Sample {
                id,
                pid,
                tid,
                chain,
                registers,
                stack,
            } => {
                let calls = self.find_calls(*pid, chain, registers, stack);
                self.add_sample(time_ns, *id, *pid, *tid, calls, registers);
            }
            Record::Mapped {
                pid,
                start,
                length,
                offset,
                path,
            } => {
                let end = start.saturating_add(*length);
                self.add_mapping(*pid, &String::from_utf8_lossy(path), *start..end, *offset);
            }
            Record::Named {
                pid,
                tid,
                is_exec,
                name,
            } => {
                self.rename(*tid, &String::from_utf8_lossy(name));
                if *is_exec {
                    let process = self.processes.entry(*pid).or_default();
                    process.generation += 1;
                    process.maps.clear();
                    self.dumps.remove(pid);
                }
            }
            Record::Fork {
                pid,
                parent,
                tid,
                parent_tid,
            } => {
                if let Some(name) = self.names.get(parent_tid).cloned() {
                    self.names.insert(*tid, name);
                }
                if pid != parent {
                    self.start_process(*pid, *parent);
                }
            }
            Record::Lost(samples) => self.lost += samples,
            Record::Damaged => self.lost += 1,
        }
    }

    fn add_mapping(&mut self, pid: i32, path: &str, addresses: Range<u64>, offset: u64) {
        if is_dump(path) {
            self.dumps.insert(pid, path.to_owned());
        }
        let module = self.module_index(path);
        let process = self.processes.entry(pid).or_default();
        process.maps.insert(Mapping {
            start: addresses.start,
            end: addresses.end,
            offset,
            module,
        });
    }

    /// A new process begins with the mappings of its parent.
    fn start_process(&mut self, pid: i32, parent: i32) {
        if let Some(dump) = self.dumps.get(&parent).cloned() {
            self.dumps.insert(pid, dump);
        }
        let parent = self.processes.get(&parent);
        let maps = parent.map(|parent| parent.maps.clone());
        let process = self.processes.entry(pid).or_default();
        process.generation += 1;
        process.maps = maps.unwrap_or_default();
    }

    fn rename(&mut self, tid: i32, name: &str) {
        self.names.insert(tid, name.to_owned());
        for thread in self.threads.iter_mut().filter(|thread| thread.tid == tid) {
            name.clone_into(&mut thread.name);
        }
    }

    fn add_sample(
        &mut self,
        time_ns: u64,
        id: u64,
        pid: i32,
        tid: i32,
        calls: Calls,
        registers: &Registers<'_>,
    ) {
        let opened_for = self.opened_for.get(&id).copied().unwrap_or(0);
        if *self.first_opened_for.entry(tid).or_insert(opened_for) != opened_for {
            return;
        }
        let thread = self.thread_index(pid, tid);
        let mut frames = Vec::new();
        let mut user_frames = 0;
        let mut innermost = None;
        for (address, is_kernel) in calls.frames {
            let frame = self.frame_index(pid, address, is_kernel);
            innermost.get_or_insert((frame, address, is_kernel));
            frames.push(frame);
            if !is_kernel && user_frames < CODE_FRAMES {
                user_frames += 1;
                self.request_code(pid, address);
            }
        }
        let Some((frame, address, is_kernel)) = innermost else {
            return;
        };
        self.steps
            .add_sample(time_ns, thread, frame, address, is_kernel, registers);
        if self.stacks.len() >= MAX_STACKS || self.kept_frames >= MAX_FRAMES {
            frames.truncate(MIN_FRAMES);
        }
        let new_frames = frames.len();
        let count = self
            .stacks
            .entry((thread, frames, calls.is_broken))
            .or_default();
        if *count == 0 {
            self.kept_frames += new_frames;
        }
        *count += 1;
    }

    /// Completes the kernel's call chain with the stack's copy and the files' unwind tables.
    fn find_calls(
        &mut self,
        pid: i32,
        chain: &Chain<'_>,
        registers: &Registers<'_>,
        stack: &[u8],
    ) -> Calls {
        let mut frames: Vec<(u64, bool)> = chain.frames().collect();
        let first = frames.iter().position(|(_, is_kernel)| !is_kernel);
        let (Some(first), Some(process)) = (first, self.processes.get(&pid)) else {
            return Calls {
                frames,
                is_broken: false,
            };
        };
        let process_maps = MappedProcess {
            pid,
            generation: process.generation,
            maps: &process.maps,
            modules: &self.modules,
        };
        // In code without frame pointers the chain can leave the program: cut it at the first
        // unmapped address.
        let is_unmapped = |(address, is_kernel): &(u64, bool)| {
            !is_kernel && process.maps.find(*address).is_none()
        };
        if let Some(unmapped) = frames.iter().skip(first + 1).position(is_unmapped) {
            frames.truncate(first + 1 + unmapped);
        }
        if self.kind.stacks == Stacks::None {
            return Calls {
                frames,
                is_broken: false,
            };
        }
        let Some(innermost) = unwind_registers(frames[first].0, registers) else {
            // In a 32-bit program only frame pointers are followed.
            let is_broken = self.kind.stacks == Stacks::Dwarf || frames.len() == first + 1;
            return Calls { frames, is_broken };
        };
        let copy = unwind::StackCopy {
            start: innermost.stack_pointer().unwrap_or(0),
            bytes: stack,
        };
        if self.kind.stacks == Stacks::Dwarf {
            let (unwound, is_broken) = self.unwinder.read_stack(&process_maps, innermost, &copy);
            // Frame pointers can lead further than the copy of the stack.
            if !is_broken || unwound.len() > frames.len() - first {
                frames.truncate(first);
                frames.extend(unwound.into_iter().map(|address| (address, false)));
            }
            return Calls { frames, is_broken };
        }
        let SkippedCallers { mut callers, next } =
            self.unwinder
                .find_skipped_callers(&process_maps, innermost, &copy);
        if callers.is_empty() && first > 0 {
            callers.extend(find_caller_of_system_call(
                &frames[first..],
                registers,
                stack,
            ));
            callers.retain(|caller| process.maps.find(*caller).is_some());
        }
        // The kernel cuts longer chains.
        let is_cut = frames.len() >= usize::from(*MAX_STACK_DEPTH);
        let chain = frames.split_off(first + 1);
        let (rest, is_broken) = match next {
            NextCallers::FramePointers(known) => (
                chain.get(known..).unwrap_or_default(),
                is_cut || chain.is_empty() && callers.is_empty(),
            ),
            NextCallers::Outermost => (&[][..], false),
            NextCallers::Unknown => (&chain[..], is_cut || chain.is_empty()),
        };
        frames.extend(callers.into_iter().map(|address| (address, false)));
        frames.extend(rest);
        Calls { frames, is_broken }
    }

    fn thread_index(&mut self, pid: i32, tid: i32) -> usize {
        if let Some(&thread) = self.thread_indices.get(&(pid, tid)) {
            return thread;
        }
        self.threads.push(Thread {
            pid,
            tid,
            name: self.names.get(&tid).cloned().unwrap_or_default(),
            cpu_s: None,
        });
        self.thread_indices
            .insert((pid, tid), self.threads.len() - 1);
        self.threads.len() - 1
    }

    fn frame_index(&mut self, pid: i32, address: u64, is_kernel: bool) -> usize {
        let process = self.processes.get(&pid).filter(|_| !is_kernel);
        let generation = process.map_or(0, |process| process.generation);
        let pid = if is_kernel { KERNEL } else { pid };
        let key = (pid, generation, address);
        if let Some(&frame) = self.frame_indices.get(&key) {
            return frame;
        }
        let mapping = process.and_then(|process| process.maps.find(address));
        let offset = mapping.map(|m| address - m.start + m.offset);
        let module = mapping.map(|m| m.module);
        let module = if is_kernel {
            Some(self.module_index(KERNEL_MODULE))
        } else {
            module
        };
        self.frames.push(Frame {
            pid,
            address,
            is_kernel,
            module,
            file_address: None,
            symbol: None,
        });
        self.file_offsets.push(offset);
        self.frame_indices.insert(key, self.frames.len() - 1);
        self.frames.len() - 1
    }

    fn module_index(&mut self, path: &str) -> usize {
        if let Some(&module) = self.module_indices.get(path) {
            return module;
        }
        self.modules.push(Module {
            path: path.to_owned(),
        });
        self.module_indices
            .insert(path.to_owned(), self.modules.len() - 1);
        self.modules.len() - 1
    }

    fn request_code(&mut self, pid: i32, address: u64) {
        let process = self.processes.get(&pid);
        let mapping = process.and_then(|process| process.maps.find(address));
        let Some(mapping) = mapping else { return };
        let path = &self.modules[mapping.module].path;
        if !is_file(path) {
            self.makers.insert(pid);
        }
        self.pages.request(pid, address, mapping, path);
    }

    /// The samples without names and code, each frame's offset in its file, and the pages of code.
    pub(super) fn finish(self, wall_s: f64) -> (Samples, Vec<Option<u64>>, Pages) {
        let weight_ns = period_ns(self.kind.hz);
        let stacks = self
            .stacks
            .into_iter()
            .map(|((thread, frames, is_broken), count)| Stack {
                thread,
                frames,
                is_broken,
                count,
                weight_ns: count * weight_ns,
            });
        let (steps, stack_pointers) = self.steps.finish();
        let samples = Samples {
            event: self.kind.event,
            hz: self.kind.hz,
            stacks_by: self.kind.stacks,
            wall_s,
            stacks: stacks.collect(),
            threads: self.threads,
            modules: self.modules,
            frames: self.frames,
            code: Vec::new(),
            steps,
            stack_pointers,
            lost: self.lost,
            has_kernel: self.kind.has_kernel && self.kind.event != Event::Proc,
        };
        (samples, self.file_offsets, self.pages)
    }
}

/// The caller of a function without a frame that only makes a system call and that no unwind table
/// covers: the word on top of the stack.
fn find_caller_of_system_call(
    frames: &[(u64, bool)],
    registers: &Registers<'_>,
    stack: &[u8],
) -> Option<u64> {
    let top = u64::from_ne_bytes(*stack.first_chunk()?);
    let is_in_call = registers.values().nth(RCX) == Some(frames.first()?.0);
    let is_new = frames.get(1) != Some(&(top, false));
    (is_in_call && is_new).then_some(top)
}

/// Registers for unwinding; `None` for a 32-bit program.
fn unwind_registers(address: u64, registers: &Registers<'_>) -> Option<unwind::Registers> {
    let arch = Arch::here().filter(|_| registers.are_wide())?;
    let numbered = registers.values().zip(0u16..);
    let numbered = numbered.map(|(value, at)| match arch {
        Arch::X86_64 => (
            X86_NUMBERS.get(usize::from(at)).copied().unwrap_or(at),
            value,
        ),
        Arch::Aarch64 => (at, value),
    });
    Some(unwind::Registers::new(arch, address, numbered))
}
