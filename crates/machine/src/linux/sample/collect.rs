//! Turns records into [`Samples`]: which thread was seen where, how often.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::stack::callers::{Lead, PassedOver, Place, Unwinder};
use super::super::stack::files::is_file;
use super::super::stack::maps::{self, Mapping, Maps};
use super::event::{DEEPEST, Kind, period_ns};
use super::made::is_dump;
use super::pages::Pages;
use super::records::{Chain, Record, Registers};
use super::steps::Steps;
use pinwise_code::{Arch, unwind};
use pinwise_profile::{Event, Frame, Module, Samples, Stack, Stacks, Thread};

/// Limits on distinct stacks and on all their frames; beyond, only the innermost frames are kept.
const MAX_STACKS: usize = 200_000;
const MAX_FRAMES: usize = 10_000_000;
/// Frames kept in that case.
const FEWEST_FRAMES: usize = 2;
/// Innermost frames whose code is needed: a function that only hints is judged by its caller.
const CODE_FRAMES: usize = 2;
/// The register with the return address of x86's SYSCALL.
const RCX: usize = 2;
/// DWARF numbers of x86's registers, in the kernel's order.
const X86_NUMBERS: [u16; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Used instead of a process for kernel frames.
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
    /// Do they end early?
    is_broken: bool,
}

/// Takes records in time order.
#[derive(Debug)]
pub(super) struct Collector {
    kind: Kind,
    processes: BTreeMap<i32, Process>,
    modules: Vec<Module>,
    module_indices: BTreeMap<String, usize>,
    threads: Vec<Thread>,
    thread_indices: BTreeMap<(i32, i32), usize>,
    names: BTreeMap<i32, String>,
    frames: Vec<Frame>,
    frame_indices: BTreeMap<(i32, u32, u64), usize>,
    /// By thread, frames, and whether they end early.
    stacks: BTreeMap<(usize, Vec<usize>, bool), u64>,
    kept_frames: usize,
    unwinder: Unwinder,
    steps: Steps,
    lost: u64,
    /// The event that first saw each thread: duplicates count once.
    families: BTreeMap<u64, i32>,
    family_of: BTreeMap<i32, i32>,
    /// Offset of a frame's address in its file.
    pub(super) file_offsets: Vec<Option<u64>>,
    pub(super) pages: Pages,
    /// Processes that run code without a file.
    makers: BTreeSet<i32>,
    /// Mapped files that contain the names of such code.
    dumps: BTreeMap<i32, String>,
}

impl Collector {
    pub(super) fn new(kind: Kind) -> Self {
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
            families: BTreeMap::new(),
            family_of: BTreeMap::new(),
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

    /// Paths of mapped files that contain the names of such code.
    pub(super) const fn dumps(&self) -> &BTreeMap<i32, String> {
        &self.dumps
    }

    /// Assigns this id to the events opened for a thread.
    pub(super) fn register(&mut self, id: u64, thread: i32) {
        self.families.insert(id, thread);
    }

    /// Adds a running process: its mappings and its name.
    pub(super) fn introduce(&mut self, pid: i32, text: &str) {
        if self.processes.contains_key(&pid) {
            return;
        }
        for line in text.lines().filter_map(maps::parse_code) {
            let path = if line.path.is_empty() {
                ANONYMOUS
            } else {
                &line.path
            };
            self.map(pid, path, line.start..line.end, line.offset);
        }
    }

    /// Sets a known thread's name.
    pub(super) fn name(&mut self, tid: i32, name: &str) {
        self.names.insert(tid, name.to_owned());
    }

    pub(super) fn take(&mut self, time_ns: u64, record: &Record<'_>) {
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
                self.sample(time_ns, *id, *pid, *tid, calls, registers);
            }
            Record::Mapped {
                pid,
                start,
                length,
                offset,
                path,
            } => {
                let end = start.saturating_add(*length);
                self.map(*pid, &String::from_utf8_lossy(path), *start..end, *offset);
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
                    self.begin(*pid, *parent);
                }
            }
            Record::Lost(samples) => self.lost += samples,
            Record::Damaged => self.lost += 1,
        }
    }

    fn map(&mut self, pid: i32, path: &str, addresses: Range<u64>, offset: u64) {
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

    /// A new process has its parent's mappings.
    fn begin(&mut self, pid: i32, parent: i32) {
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

    fn sample(
        &mut self,
        time_ns: u64,
        id: u64,
        pid: i32,
        tid: i32,
        calls: Calls,
        registers: &Registers<'_>,
    ) {
        let family = self.families.get(&id).copied().unwrap_or(0);
        if *self.family_of.entry(tid).or_insert(family) != family {
            return;
        }
        let thread = self.thread_index(pid, tid);
        let mut frames = Vec::new();
        let mut seen_of_user = 0;
        let mut innermost = None;
        for (address, is_kernel) in calls.frames {
            let frame = self.frame_index(pid, address, is_kernel);
            innermost.get_or_insert((frame, address, is_kernel));
            frames.push(frame);
            if !is_kernel && seen_of_user < CODE_FRAMES {
                seen_of_user += 1;
                self.want_code(pid, address);
            }
        }
        let Some(innermost) = innermost else { return };
        let (frame, address, is_kernel) = innermost;
        self.steps
            .take(time_ns, thread, frame, address, is_kernel, registers);
        if self.stacks.len() >= MAX_STACKS || self.kept_frames >= MAX_FRAMES {
            frames.truncate(FEWEST_FRAMES);
        }
        let many = frames.len();
        let count = self
            .stacks
            .entry((thread, frames, calls.is_broken))
            .or_default();
        if *count == 0 {
            self.kept_frames += many;
        }
        *count += 1;
    }

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
        let place = Place {
            pid,
            generation: process.generation,
            maps: &process.maps,
            modules: &self.modules,
        };
        // Without frame pointers the chain goes astray: it ends at the first unmapped address.
        let is_astray = |(address, is_kernel): &(u64, bool)| {
            !is_kernel && process.maps.find(*address).is_none()
        };
        if let Some(astray) = frames.iter().skip(first + 1).position(is_astray) {
            frames.truncate(first + 1 + astray);
        }
        if self.kind.stacks == Stacks::None {
            return Calls {
                frames,
                is_broken: false,
            };
        }
        let Some(innermost) = unwinding(frames[first].0, registers) else {
            // A 32-bit program has only frame pointers.
            let is_broken = self.kind.stacks == Stacks::Dwarf || frames.len() == first + 1;
            return Calls { frames, is_broken };
        };
        let copy = unwind::StackCopy {
            start: innermost.stack_pointer().unwrap_or(0),
            bytes: stack,
        };
        if self.kind.stacks == Stacks::Dwarf {
            let (called, is_broken) = self.unwinder.read_stack(&place, innermost, &copy);
            // Frame pointers may lead beyond the copy.
            if !is_broken || called.len() > frames.len() - first {
                frames.truncate(first);
                frames.extend(called.into_iter().map(|address| (address, false)));
            }
            return Calls { frames, is_broken };
        }
        let PassedOver { mut callers, end } =
            self.unwinder.find_skipped_callers(&place, innermost, &copy);
        if callers.is_empty() && first > 0 {
            callers.extend(caller_of_call(&frames[first..], registers, stack));
            callers.retain(|caller| process.maps.find(*caller).is_some());
        }
        // The kernel follows no further.
        let is_cut = frames.len() >= usize::from(*DEEPEST);
        let chain = frames.split_off(first + 1);
        let (led, is_broken) = match end {
            Lead::FramePointers(known) => (
                chain.get(known..).unwrap_or_default(),
                is_cut || chain.is_empty() && callers.is_empty(),
            ),
            Lead::Outermost => (&[][..], false),
            Lead::Nothing => (&chain[..], is_cut || chain.is_empty()),
        };
        frames.extend(callers.into_iter().map(|address| (address, false)));
        frames.extend(led);
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

    fn want_code(&mut self, pid: i32, address: u64) {
        let process = self.processes.get(&pid);
        let mapping = process.and_then(|process| process.maps.find(address));
        let Some(mapping) = mapping else { return };
        let path = &self.modules[mapping.module].path;
        if !is_file(path) {
            self.makers.insert(pid);
        }
        self.pages.want(pid, address, mapping, path);
    }

    /// Everything except names and code of frames.
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

/// The caller of a frameless function that only makes a system call, if no table covers it: the
/// word on top of the stack.
fn caller_of_call(frames: &[(u64, bool)], registers: &Registers<'_>, stack: &[u8]) -> Option<u64> {
    let top = u64::from_ne_bytes(*stack.first_chunk()?);
    let is_in_call = registers.values().nth(RCX) == Some(frames.first()?.0);
    let is_new = frames.get(1) != Some(&(top, false));
    (is_in_call && is_new).then_some(top)
}

/// Registers for unwinding; `None` for a 32-bit program.
fn unwinding(address: u64, registers: &Registers<'_>) -> Option<unwind::Registers> {
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
