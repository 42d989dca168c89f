//! Finds where a program waits: the innermost function on the stack of a blocked thread that
//! belongs to the program, not to the C library or a language's runtime.
//!
//! The kernel shows a blocked thread's stack pointer and instruction, and no other register. This
//! suffices to unwind the C library, whose tables need no frame pointer; elsewhere the frame
//! pointer is computed from the first instructions of the function. Names come from symbol tables
//! only: reading debug information takes long and would disturb the measured program.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::super::sys;
use super::VDSO;
use super::callers::{MappedProcess, Unwinder};
use super::files::{REMOVED, find_trusted_path, open_program};
use super::maps::{self, Mapping, Maps};
use pinwise_code::unwind::{self, Caller};
use pinwise_code::{Arch, demangle};
use pinwise_profile::Module;
use pinwise_sched::{BlockedIn, GO_SCHEDULER};

/// Bytes copied of a stack: a lock is only a few calls away from the program.
const STACK_BYTES: usize = 4096;
/// Callers that are examined: a few of a library, and one of the program.
const MAX_CALLERS: usize = 16;
/// Bytes read at the start of a function.
const PROLOGUE_BYTES: usize = 64;
/// Limits the processes and addresses whose names are kept; further ones stay without a name.
const MAX_PROCESSES: usize = 64;
const MAX_ADDRESSES: usize = 512;
/// Between a file and the offset of a function that has no name.
const UNNAMED: &str = "+0x";
/// The mark of a Go program, near the start of its data (package debug/buildinfo of Go).
const GO_MARK: &[u8] = b"\xff Go buildinf:";
const MARK_WITHIN: usize = 64 << 10;
/// Limits how often the mappings of a process are read: some map new code all the time.
const MAX_READS: u32 = 8;

/// Libraries whose functions wait on behalf of a program, by the start of their file names.
const LIBRARIES: [&str; 7] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "libstdc++",
    "libc++",
];
/// Functions that wait on behalf of a program and can be linked into it, by the start of their
/// names.
const RUNTIME: [&str; 16] = [
    "std::",
    "<std::",
    "core::",
    "parking_lot",
    "lock_api",
    "pthread_",
    "__pthread_",
    "__gthread",
    "__lll_",
    "__futex",
    "__timedwait",
    "futex",
    "syscall",
    "runtime.",
    "sync.",
    // Of Java: its caller says whether a monitor is entered or waited for.
    "os::PlatformEvent::park",
];

/// The system call in which a thread is blocked, as `/proc/PID/syscall` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) struct BlockedCall {
    /// The first argument: the address of a futex, or a file descriptor.
    pub(in crate::linux) first: u64,
    pub(in crate::linux) stack_pointer: u64,
    pub(in crate::linux) instruction: u64,
}

/// The function that a return address on the stack of a blocked thread belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Function {
    /// A function of the program itself, by name.
    Own(Box<str>),
    /// A function that waits on behalf of the program, and for what, if its name says so.
    Runtime(Option<BlockedIn>),
}

/// Finds the functions that wait, and keeps what it found.
pub(in crate::linux) struct WaitPlaces {
    unwinder: Unwinder,
    symbolizer: Symbolizer,
    programs: BTreeMap<i32, Program>,
    /// By process, generation and return address.
    functions: BTreeMap<(i32, u32, u64), Function>,
    words: BTreeMap<(i32, u64), Option<Box<str>>>,
    /// Bytes from the stack pointer to the frame pointer, by process, generation and address.
    frames: BTreeMap<(i32, u32, u64), Option<u64>>,
}

/// What a process has mapped.
#[derive(Debug, Default)]
struct Program {
    /// How often the mappings were read.
    generation: u32,
    maps: Maps,
    modules: Vec<Module>,
    /// The program's own file.
    path: String,
    is_go: bool,
}

impl WaitPlaces {
    pub(in crate::linux) fn new() -> Self {
        Self {
            unwinder: Unwinder::new(),
            symbolizer: Symbolizer::builder().enable_demangling(false).build(),
            programs: BTreeMap::new(),
            functions: BTreeMap::new(),
            words: BTreeMap::new(),
            frames: BTreeMap::new(),
        }
    }

    /// Finds the function of the program that waits, or describes the futex if there is none; and
    /// what kind of wait the called library functions are for.
    pub(in crate::linux) fn find_waiting_function(
        &mut self,
        pid: i32,
        call: BlockedCall,
    ) -> (Option<Box<str>>, Option<BlockedIn>) {
        let (own, what) = self.find_own(pid, call);
        (own.or_else(|| self.describe_futex(pid, call.first)), what)
    }

    /// The function of the program that waits, or the library of one without a name.
    pub(in crate::linux) fn find_named(&mut self, pid: i32, call: BlockedCall) -> Option<Box<str>> {
        let (own, _) = self.find_own(pid, call);
        let own = own?;
        match own.split_once(UNNAMED) {
            None => Some(own),
            Some((file, _)) => file.contains(".so").then(|| file.into()),
        }
    }

    fn find_own(&mut self, pid: i32, call: BlockedCall) -> (Option<Box<str>>, Option<BlockedIn>) {
        let mut blocked_in = None;
        match self.read_program(pid, call.instruction) {
            None => return (None, None),
            Some(program) if program.is_go => return (Some(GO_SCHEDULER.into()), None),
            Some(_) => {}
        }
        for address in self.read_callers(pid, call).unwrap_or_default() {
            match self.identify(pid, address) {
                Some(Function::Own(name)) => {
                    let kind = blocked_in.or_else(|| classify_monitor(&name));
                    return (Some(name), kind);
                }
                Some(Function::Runtime(kind)) => blocked_in = blocked_in.or(kind),
                None => break,
            }
        }
        (None, blocked_in)
    }

    /// Return addresses, innermost first.
    fn read_callers(&mut self, pid: i32, call: BlockedCall) -> Option<Vec<u64>> {
        let arch = Arch::here()?;
        let stack_register = match arch {
            Arch::X86_64 => 7,
            Arch::Aarch64 => 31,
        };
        let mut copy = vec![0; STACK_BYTES];
        let length = sys::read_memory(pid, call.stack_pointer, &mut copy)?;
        let known = [(stack_register, call.stack_pointer)];
        let mut registers = unwind::Registers::new(arch, call.instruction, known);
        let program = self.programs.get(&pid)?;
        let process = MappedProcess {
            pid,
            generation: program.generation,
            maps: &program.maps,
            modules: &program.modules,
        };
        let stack = unwind::StackCopy {
            start: call.stack_pointer,
            bytes: copy.get(..length)?,
        };
        let mut callers = Vec::new();
        while callers.len() < MAX_CALLERS {
            let mut caller = self.unwinder.find_caller(&process, &registers, &stack);
            if caller == Caller::Unknown && registers.frame_pointer().is_none() {
                let key = (pid, program.generation, registers.address);
                if self.frames.len() >= MAX_ADDRESSES && !self.frames.contains_key(&key) {
                    break;
                }
                let compute = || program.compute_frame_bytes(pid, &registers, &self.symbolizer);
                let Some(bytes) = *self.frames.entry(key).or_insert_with(compute) else {
                    break;
                };
                let pointer = registers.stack_pointer()?.checked_add(bytes)?;
                let known = registers.clone().with_frame_pointer(pointer);
                caller = self.unwinder.find_caller(&process, &known, &stack);
            }
            match caller {
                Caller::Frame(next) if program.maps.find(next.lookup_address()).is_some() => {
                    callers.push(next.address);
                    registers = next;
                }
                _ => break,
            }
        }
        Some(callers)
    }

    /// Reads the mappings of a process, again if none of them contains the instruction.
    fn read_program(&mut self, pid: i32, instruction: u64) -> Option<&Program> {
        let is_known = self.programs.contains_key(&pid);
        if !is_known && self.programs.len() >= MAX_PROCESSES {
            return None;
        }
        let program = self.programs.entry(pid).or_default();
        if program.maps.find(instruction).is_none() && program.generation < MAX_READS {
            program.read(pid);
        }
        Some(program)
    }

    fn identify(&mut self, pid: i32, address: u64) -> Option<Function> {
        let program = self.programs.get(&pid)?;
        let key = (pid, program.generation, address);
        if let Some(known) = self.functions.get(&key) {
            return Some(known.clone());
        }
        if self.functions.len() >= MAX_ADDRESSES {
            return None;
        }
        let function = program.identify(pid, address, &self.symbolizer)?;
        self.functions.insert(key, function.clone());
        Some(function)
    }

    fn describe_futex(&mut self, pid: i32, word: u64) -> Option<Box<str>> {
        if let Some(known) = self.words.get(&(pid, word)) {
            return known.clone();
        }
        if self.words.len() >= MAX_ADDRESSES {
            return None;
        }
        let name = describe_word(&maps::read_maps(pid), word);
        self.words.insert((pid, word), name.clone());
        name
    }
}

impl Program {
    fn read(&mut self, pid: i32) {
        let exe = std::fs::read_link(Path::new(&format!("/proc/{pid}/exe")));
        let path = exe.map(|path| path.to_string_lossy().into_owned());
        self.path = path.unwrap_or_default();
        self.generation += 1;
        self.maps.clear();
        self.modules.clear();
        let text = maps::read_maps(pid);
        self.is_go = find_data(&text, &self.path).is_some_and(|data| has_go_mark(pid, data));
        for (module, line) in text.lines().filter_map(maps::parse_code).enumerate() {
            self.maps.insert(Mapping {
                start: line.start,
                end: line.end,
                offset: line.offset,
                module,
            });
            self.modules.push(Module { path: line.path });
        }
    }

    /// Bytes from the stack pointer up to the frame pointer, computed from the function's first
    /// instructions; `None` if they do not reveal it.
    fn compute_frame_bytes(
        &self,
        pid: i32,
        registers: &unwind::Registers,
        symbolizer: &Symbolizer,
    ) -> Option<u64> {
        if Arch::here() != Some(Arch::X86_64) {
            return None;
        }
        let address = registers.lookup_address();
        let mapping = self.maps.find(address)?;
        let path = &self.modules.get(mapping.module)?.path;
        let offset = (address - mapping.start).saturating_add(mapping.offset);
        let (_, within) = find_symbol(&open_program(pid, path)?, offset, symbolizer)?;
        let mut code = [0; PROLOGUE_BYTES];
        let wanted = usize::try_from(within).ok()?.min(PROLOGUE_BYTES);
        let code = code.get_mut(..wanted)?;
        let length = sys::read_memory(pid, address.checked_sub(within)?, code)?;
        let bytes = unwind::frame_bytes(code.get(..length)?)?;
        // At a call both pointers are aligned to 16 bytes.
        bytes.is_multiple_of(16).then_some(bytes)
    }

    /// The function that calls before this return address.
    fn identify(&self, pid: i32, address: u64, symbolizer: &Symbolizer) -> Option<Function> {
        let call = address.saturating_sub(1);
        let mapping = self.maps.find(call)?;
        let path = &self.modules.get(mapping.module)?.path;
        let file_name = path.rsplit('/').next().unwrap_or(path);
        if path == VDSO {
            return Some(Function::Runtime(None));
        }
        let offset = (call - mapping.start).saturating_add(mapping.offset);
        let symbol =
            open_program(pid, path).and_then(|file| find_symbol(&file, offset, symbolizer));
        let symbol = symbol.map(|(name, _)| name);
        let is_runtime = |symbol: &str| RUNTIME.iter().any(|name| symbol.starts_with(name));
        let is_library = LIBRARIES.iter().any(|name| file_name.starts_with(name));
        if is_library || symbol.as_deref().is_some_and(is_runtime) {
            let kind = symbol.and_then(|symbol| classify_wait(&symbol));
            return Some(Function::Runtime(kind));
        }
        let name = match symbol {
            None => format!("{file_name}{UNNAMED}{offset:x}"),
            Some(symbol) if *path == self.path => symbol,
            Some(symbol) => format!("{symbol} ({file_name})"),
        };
        Some(Function::Own(name.into()))
    }
}

/// Where the data of a program's file starts.
fn find_data(maps: &str, path: &str) -> Option<u64> {
    let lines = maps.lines().filter(|line| line.contains(" rw-p "));
    let mut lines = lines.filter_map(maps::parse_line);
    lines.find(|line| line.path == path).map(|line| line.start)
}

fn has_go_mark(pid: i32, data: u64) -> bool {
    let mut start = vec![0; MARK_WITHIN];
    // The data may end earlier.
    let length = sys::read_memory(pid, data, &mut start).unwrap_or(0);
    start.truncate(length);
    start.windows(GO_MARK.len()).any(|part| part == GO_MARK)
}

/// What a runtime function waits for, by its name.
fn classify_wait(function: &str) -> Option<BlockedIn> {
    let has = |word| function.contains(word);
    match () {
        () if has("condvar") || has("cond_wait") => Some(BlockedIn::Condition),
        () if has("mutex") || has("rwlock") => Some(BlockedIn::Mutex),
        () => None,
    }
}

/// What a function of Java's virtual machine waits for, by its name.
fn classify_monitor(function: &str) -> Option<BlockedIn> {
    let action = function.strip_prefix("ObjectMonitor::")?;
    let enters = ["enter", "Enter", "ReenterI"];
    match enters.iter().any(|start| action.starts_with(start)) {
        true => Some(BlockedIn::Mutex),
        false => Some(BlockedIn::Condition),
    }
}

/// The name of the function at an offset of a file, and the bytes from its start to the offset.
fn find_symbol(file: &File, offset: u64, symbolizer: &Symbolizer) -> Option<(String, u64)> {
    let path = find_trusted_path(file);
    let path = path.unwrap_or_else(|| format!("/proc/self/fd/{}", file.as_raw_fd()).into());
    let mut elf = Elf::new(path);
    elf.debug_syms = false;
    let found = symbolizer.symbolize_single(&Source::from(elf), Input::FileOffset(offset));
    match found.ok()? {
        Symbolized::Sym(found) => Some((demangle(&found.name), found.offset as u64)),
        Symbolized::Unknown(_) => None,
    }
}

/// Describes a futex by the mapping that contains it.
fn describe_word(maps: &str, word: u64) -> Option<Box<str>> {
    let mut lines = maps.lines().filter_map(maps::parse_line);
    let line = lines.find(|line| (line.start..line.end).contains(&word))?;
    let path = line.path.strip_suffix(REMOVED).unwrap_or(&line.path);
    let name = match path.rsplit('/').next() {
        Some("") | None => "anonymous memory",
        Some(name) => name,
    };
    Some(format!("futex {word:#x} in {name}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entering_a_monitor_of_java_is_a_lock_and_waiting_for_it_is_not() {
        let enter = classify_monitor("ObjectMonitor::EnterI(JavaThread*)");
        assert_eq!(enter, Some(BlockedIn::Mutex));
        let wait = classify_monitor("ObjectMonitor::wait(long, bool, JavaThread*)");
        assert_eq!(wait, Some(BlockedIn::Condition));
        assert_eq!(classify_monitor("JavaThread::sleep(long)"), None);
    }

    #[test]
    fn a_futex_is_described_by_its_mapping() {
        let maps = "7f10-7f20 r-xp 00000400 fe:00 1234       /usr/lib/a.so\n\
                    8000-9000 rw-p 00000000 00:00 0          [heap]\n\
                    9000-a000 rw-p 00000000 00:00 0\n";
        let check = |word, expected: Option<&str>| {
            assert_eq!(describe_word(maps, word).as_deref(), expected, "{word:#x}");
        };
        check(0x8010, Some("futex 0x8010 in [heap]"));
        check(0x7f10, Some("futex 0x7f10 in a.so"));
        check(0x9008, Some("futex 0x9008 in anonymous memory"));
        check(0xa000, None);
    }
}
