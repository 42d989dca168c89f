//! Where a program waits: the innermost function that is its own on the stack of a blocked thread.
//!
//! The kernel shows a blocked thread's stack pointer and instruction, and no other register. That is
//! enough to leave the C library, whose tables need no frame pointer; where one is needed, it follows
//! from the beginning of the function. Names come from symbol tables
//! alone: debug information takes long to read beside a measured program.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::super::sys;
use super::VDSO;
use super::callers::{Place, Unwinder};
use super::files::{REMOVED, program_of, sheltered_path};
use super::maps::{self, Mapping, Maps};
use pinwise_code::unwind::{self, Caller};
use pinwise_code::{Arch, demangle};
use pinwise_profile::Module;
use pinwise_sched::BlockedIn;

/// Copied of a stack, bytes: a lock is a few calls away from the program.
const STACK_BYTES: usize = 4096;
/// Callers that are looked at: a few of a library, and one of the program.
const MAX_CALLERS: usize = 16;
/// Read of a function's beginning, bytes.
const BEGINNING: usize = 64;
/// Limits the processes and places that are remembered; further ones have no name.
const MAX_PROCESSES: usize = 64;
const MAX_PLACES: usize = 512;
/// Between a file and the offset of a function that has no name.
const UNNAMED: &str = "+0x";
/// A program that maps code again and again is read this often.
const MAX_READS: u32 = 8;

/// Files whose functions wait on behalf of a program, by the beginning of their names.
const LIBRARIES: [&str; 7] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "libstdc++",
    "libc++",
];
/// The same of functions, which a program may contain.
const RUNTIME: [&str; 15] = [
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
];

/// A blocked thread, by its file `syscall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) struct BlockedCall {
    /// Address of the word that it waits for.
    pub(in crate::linux) word: u64,
    pub(in crate::linux) stack_pointer: u64,
    pub(in crate::linux) instruction: u64,
}

/// What a return address on the stack of a blocked thread belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Function {
    /// The program itself.
    Own(Box<str>),
    /// A library that waits on its behalf, and for what, if its name says so.
    Runtime(Option<BlockedIn>),
}

/// Finds and remembers places.
pub(in crate::linux) struct WaitPlaces {
    unwinder: Unwinder,
    symbolizer: Symbolizer,
    programs: BTreeMap<i32, Program>,
    /// By process, program and return address.
    functions: BTreeMap<(i32, u32, u64), Function>,
    words: BTreeMap<(i32, u64), Option<Box<str>>>,
    /// By process, program and address: from the stack pointer to the frame pointer.
    frames: BTreeMap<(i32, u32, u64), Option<u64>>,
}

/// What a process has mapped.
#[derive(Debug, Default)]
struct Program {
    /// How often it was read.
    generation: u32,
    maps: Maps,
    modules: Vec<Module>,
    /// The program's own file.
    path: String,
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

    /// The function of the program that waits; without one, the word that it waits for. And what the
    /// functions in between are for.
    pub(in crate::linux) fn find(
        &mut self,
        pid: i32,
        call: BlockedCall,
    ) -> (Option<Box<str>>, Option<BlockedIn>) {
        let (own, what) = self.find_own(pid, call);
        (own.or_else(|| self.name_word(pid, call.word)), what)
    }

    /// The function of the program that waits, if it has a name.
    pub(in crate::linux) fn find_named(&mut self, pid: i32, call: BlockedCall) -> Option<Box<str>> {
        let (own, _) = self.find_own(pid, call);
        own.filter(|name| !name.contains(UNNAMED))
    }

    fn find_own(&mut self, pid: i32, call: BlockedCall) -> (Option<Box<str>>, Option<BlockedIn>) {
        let mut what = None;
        for address in self.read_callers(pid, call).unwrap_or_default() {
            match self.identify(pid, address) {
                Some(Function::Own(name)) => return (Some(name), what),
                Some(Function::Runtime(kind)) => what = what.or(kind),
                None => break,
            }
        }
        (None, what)
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
        self.read_program(pid, call.instruction)?;
        let program = self.programs.get(&pid)?;
        let place = Place {
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
            let mut caller = self.unwinder.caller(&place, &registers, &stack);
            if caller == Caller::Unknown && registers.frame_pointer().is_none() {
                let key = (pid, program.generation, registers.address);
                if self.frames.len() >= MAX_PLACES && !self.frames.contains_key(&key) {
                    break;
                }
                let find = || program.find_frame(pid, &registers, &self.symbolizer);
                let Some(bytes) = *self.frames.entry(key).or_insert_with(find) else {
                    break;
                };
                let pointer = registers.stack_pointer()?.checked_add(bytes)?;
                let known = registers.clone().with_frame_pointer(pointer);
                caller = self.unwinder.caller(&place, &known, &stack);
            }
            match caller {
                Caller::Frame(next) if program.maps.find(next.looked_up()).is_some() => {
                    callers.push(next.address);
                    registers = next;
                }
                _ => break,
            }
        }
        Some(callers)
    }

    /// Reads what a process has mapped, again if it executes something else by now.
    fn read_program(&mut self, pid: i32, instruction: u64) -> Option<()> {
        let is_known = self.programs.contains_key(&pid);
        if !is_known && self.programs.len() >= MAX_PROCESSES {
            return None;
        }
        let program = self.programs.entry(pid).or_default();
        if program.maps.find(instruction).is_none() && program.generation < MAX_READS {
            program.read(pid);
        }
        Some(())
    }

    fn identify(&mut self, pid: i32, address: u64) -> Option<Function> {
        let program = self.programs.get(&pid)?;
        let key = (pid, program.generation, address);
        if let Some(known) = self.functions.get(&key) {
            return Some(known.clone());
        }
        if self.functions.len() >= MAX_PLACES {
            return None;
        }
        let caller = program.identify(pid, address, &self.symbolizer)?;
        self.functions.insert(key, caller.clone());
        Some(caller)
    }

    fn name_word(&mut self, pid: i32, word: u64) -> Option<Box<str>> {
        if let Some(known) = self.words.get(&(pid, word)) {
            return known.clone();
        }
        if self.words.len() >= MAX_PLACES {
            return None;
        }
        let name = describe_word(&maps::read(pid), word);
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
        let text = maps::read(pid);
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

    /// How far the frame pointer is above the stack pointer in a frame; `None` if its function does
    /// not show it.
    fn find_frame(
        &self,
        pid: i32,
        registers: &unwind::Registers,
        symbolizer: &Symbolizer,
    ) -> Option<u64> {
        if Arch::here() != Some(Arch::X86_64) {
            return None;
        }
        let address = registers.looked_up();
        let mapping = self.maps.find(address)?;
        let path = &self.modules.get(mapping.module)?.path;
        let offset = (address - mapping.start).saturating_add(mapping.offset);
        let (_, within) = find_symbol(&program_of(pid, path)?, offset, symbolizer)?;
        let mut code = [0; BEGINNING];
        let wanted = usize::try_from(within).ok()?.min(BEGINNING);
        let code = code.get_mut(..wanted)?;
        let length = sys::read_memory(pid, address.checked_sub(within)?, code)?;
        let bytes = unwind::frame_bytes(code.get(..length)?)?;
        // At a call both are aligned.
        bytes.is_multiple_of(16).then_some(bytes)
    }

    /// The function that calls before this return address.
    fn identify(&self, pid: i32, address: u64, symbolizer: &Symbolizer) -> Option<Function> {
        let call = address.saturating_sub(1);
        let mapping = self.maps.find(call)?;
        let path = &self.modules.get(mapping.module)?.path;
        let file_name = path.rsplit('/').next().unwrap_or(path);
        if path == VDSO || LIBRARIES.iter().any(|name| file_name.starts_with(name)) {
            return Some(Function::Runtime(None));
        }
        let offset = (call - mapping.start).saturating_add(mapping.offset);
        let symbol = program_of(pid, path).and_then(|file| find_symbol(&file, offset, symbolizer));
        let symbol = symbol.map(|(name, _)| name);
        let name = match symbol {
            None => format!("{file_name}{UNNAMED}{offset:x}"),
            Some(symbol) if RUNTIME.iter().any(|name| symbol.starts_with(name)) => {
                return Some(Function::Runtime(kind_of(&symbol)));
            }
            Some(symbol) if *path == self.path => symbol,
            Some(symbol) => format!("{symbol} ({file_name})"),
        };
        Some(Function::Own(name.into()))
    }
}

/// What such a function waits for. Rust's standard library is a part of each program.
fn kind_of(function: &str) -> Option<BlockedIn> {
    let has = |word| function.contains(word);
    match () {
        () if has("condvar") || has("cond_wait") => Some(BlockedIn::Condition),
        () if has("mutex") || has("rwlock") => Some(BlockedIn::Mutex),
        () => None,
    }
}

/// The name of the function at an offset of a file, and how far it is into that.
fn find_symbol(file: &File, offset: u64, symbolizer: &Symbolizer) -> Option<(String, u64)> {
    let path = sheltered_path(file);
    let path = path.unwrap_or_else(|| format!("/proc/self/fd/{}", file.as_raw_fd()).into());
    let mut elf = Elf::new(path);
    elf.debug_syms = false;
    let found = symbolizer.symbolize_single(&Source::from(elf), Input::FileOffset(offset));
    match found.ok()? {
        Symbolized::Sym(found) => Some((demangle(&found.name), found.offset as u64)),
        Symbolized::Unknown(_) => None,
    }
}

/// A word in memory, by the mapping that has it.
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
    fn a_word_is_named_by_its_mapping() {
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
