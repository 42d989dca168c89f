//! Profiles of CPU time: samples of instruction pointers with their stacks, as a value.
//!
//! A machine makes [`Samples`]; everything else (functions, hot instructions, differences, flame
//! graphs, spinning) is computed from this value alone. Nothing here touches a process.
//!
//! ```
//! use pinwise_code::{Arch, Code};
//! use pinwise_profile::{Amount, waits_in_hint};
//!
//! // A wait for a lock: `mov eax,[rdi]; test eax,eax; je +4; pause; jmp -10; ret`.
//! let bytes = vec![0x8b, 0x07, 0x85, 0xc0, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf6, 0xc3];
//! let code = Code { arch: Arch::X86_64, start: 0x1000, bytes };
//! // Samples by address: most are right after the PAUSE that they wait for.
//! let (mut all, mut waits) = (Amount::default(), Amount::default());
//! for (address, samples) in [(0x1000, 2), (0x1002, 1), (0x1008, 97)] {
//!     let amount = Amount { samples, cpu_ns: samples * 1_000_000 };
//!     all += amount;
//!     if waits_in_hint(&code, address) {
//!         waits += amount;
//!     }
//! }
//! assert_eq!(waits.share_of(all), Some(0.97));
//! ```

mod accesses;
mod amount;
mod attribution;
mod attribution_words;
mod difference;
mod function;
mod instructions;
mod pausing;
mod summary;
mod tree;
mod waits;

pub use accesses::is_at_access;
pub use amount::Amount;
pub use attribution::{
    Account, Attribution, Basis, Facts, Figure, Part, PartKind, Repeat, Repeats, attribute,
};
pub use difference::{Change, Difference, FunctionChange, NodeChange, Side};
pub use function::{Function, Kind, REGION};
pub use instructions::{Line, Spot};
pub use pausing::Pausing;
pub use summary::{Bounds, FunctionTime, Profile, StackFigures, ThreadTime};
pub use tree::{Node, NodeWithoutTotal, Tree};
pub use waits::{hint_before, waits_in_hint};

use std::collections::BTreeMap;

use pinwise_code::Code;

/// The sampling event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Core cycles of the performance-monitoring unit.
    Cycles,
    /// The kernel's clock of CPU time.
    CpuClock,
    /// Polling of `/proc`: the function is unknown, only CPU time per thread.
    Proc,
}

impl Event {
    /// Its name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
            Self::Proc => "proc",
        }
    }
}

/// How callers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stacks {
    /// By frame pointers if the program keeps them, else by its unwind tables.
    Auto,
    /// By frame pointers, which the kernel follows.
    FramePointers,
    /// By unwind tables (`.eh_frame`), from a copy of each stack.
    Dwarf,
    /// Not at all.
    None,
}

/// A thread that was sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thread {
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// Its name, as last seen.
    pub name: String,
    /// CPU time while sampled, s, if the kernel reported it.
    pub cpu_s: Option<f64>,
}

/// A file that code was mapped from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its path; `[vdso]`, `[kernel]` and `//anon` (code generated at run time) are not files.
    pub path: String,
}

/// A name for an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Demangled.
    pub name: String,
    /// Bytes from its beginning.
    pub offset: u64,
    /// `file:line`, if debug information has it.
    pub source: Option<String>,
    /// Functions inlined there, each called by the one before, if debug information has it.
    pub inlined: Vec<String>,
}

/// An executed address in one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The process; −1 in the kernel.
    pub pid: i32,
    /// Address in the process.
    pub address: u64,
    /// Is the address in the kernel?
    pub is_kernel: bool,
    /// Index into [`Samples::modules`].
    pub module: Option<usize>,
    /// Address in the file's symbol table and in disassemblers.
    pub file_address: Option<u64>,
    /// Its name, if there is one.
    pub symbol: Option<Symbol>,
}

/// A stack, with the number of samples in which a thread had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Index into [`Samples::threads`].
    pub thread: usize,
    /// Indices into [`Samples::frames`], innermost first; never empty. All but
    /// the first (of user and of kernel mode) are return addresses.
    pub frames: Vec<usize>,
    /// Is the stack truncated before its outermost function? With frame pointers that is known only of
    /// stacks of a single frame.
    pub is_broken: bool,
    /// Number of samples.
    pub count: u64,
    /// CPU time that they represent, ns.
    pub weight_ns: u64,
}

/// Two consecutive, nearby samples of a thread: how far counters in registers changed in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The earlier place, an index into [`Samples::frames`].
    pub from: usize,
    /// The later place, likewise.
    pub to: usize,
    /// Time between the two, ns; includes time off the CPU.
    pub ns: u64,
    /// Change of each general register, in the order of [`REGISTERS`].
    pub changes: Vec<i64>,
    /// Does the later sample have the same registers as one of a few earlier ones at the same
    /// instruction? That happens if a loop calls a function from several places.
    pub recurs: bool,
}

/// Names of the registers of [`Step::changes`] on x86-64, as in disassembly.
pub const REGISTERS: [&str; 16] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Samples of a program or process.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The event that made them.
    pub event: Event,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// How callers were found; never [`Stacks::Auto`].
    pub stacks_by: Stacks,
    /// Duration of sampling, s.
    pub wall_s: f64,
    /// The sampled threads.
    pub threads: Vec<Thread>,
    /// The files that code was mapped from.
    pub modules: Vec<Module>,
    /// The executed addresses.
    pub frames: Vec<Frame>,
    /// The sampled stacks.
    pub stacks: Vec<Stack>,
    /// Code around sampled addresses, by process, sorted and without overlap.
    pub code: Vec<(i32, Code)>,
    /// Pairs of consecutive samples, if registers were sampled; only some of them for long runs.
    pub steps: Vec<Step>,
    /// For each innermost frame, the registers that pointed into the thread's own stack in all its
    /// samples, as bits in the order of [`REGISTERS`]. Frames without sampled registers are missing.
    pub stack_pointers: BTreeMap<usize, u16>,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Does it include the kernel?
    pub has_kernel: bool,
}

impl Samples {
    /// Number of samples.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.count).sum()
    }

    /// CPU time that they represent, s.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        let ns: u64 = self.stacks.iter().map(|stack| stack.weight_ns).sum();
        ns as f64 * 1e-9
    }

    /// Keeps the samples of threads with this name or number alone; false if there are none.
    pub fn keep_thread(&mut self, wanted: &str) -> bool {
        let mut kept = Vec::new();
        let mut indices = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            let is_wanted = thread.name == wanted || thread.tid.to_string() == wanted;
            indices.push(is_wanted.then_some(kept.len()));
            kept.extend(is_wanted.then_some(thread));
        }
        self.threads = kept;
        self.stacks.retain_mut(|stack| {
            let index = indices.get(stack.thread).copied().flatten();
            stack.thread = index.unwrap_or_default();
            index.is_some()
        });
        !self.threads.is_empty()
    }

    /// The code that holds an address of a process.
    #[must_use]
    pub fn code_at(&self, pid: i32, address: u64) -> Option<&Code> {
        let after = self
            .code
            .partition_point(|(of, code)| (*of, code.start) <= (pid, address));
        let (of, code) = self.code.get(after.checked_sub(1)?)?;
        (*of == pid && code.holds(address)).then_some(code)
    }
}

#[cfg(any(test, feature = "examples"))]
pub mod examples;

/// Samples per second of a thread's CPU time, unless others are asked for: a prime number, so that
/// they do not keep step with what programs do every millisecond.
pub const SAMPLES_PER_S: u32 = 997;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_one_thread_are_kept_by_name_or_number() {
        let scene = examples::Scene::new("/bin/prog").stack(&["main", "work"], 60);
        let mut samples = scene.stack(&["main", "serve"], 30).samples;
        let other = Thread {
            tid: 12,
            name: "server".to_owned(),
            ..samples.threads[0].clone()
        };
        samples.threads.push(other);
        samples.stacks.last_mut().unwrap().thread = 1;
        for wanted in ["server", "12"] {
            let mut kept = samples.clone();
            assert!(kept.keep_thread(wanted));
            assert_eq!((kept.total(), kept.threads.len()), (30, 1));
            assert_eq!(kept.stacks[0].thread, 0);
        }
        assert!(!samples.keep_thread("serve"));
    }
}
