//! Handmade samples for tests.

use super::{Event, Frame, Module, Samples, Stack, Symbol, Thread};
use pinwise_code::{Arch, Code};

/// `mov eax,[rdi]; test eax,eax; je +4; pause; jmp −10; ret`: polls until a
/// word is not 0.
const POLLING: [u8; 11] = [
    0x8b, 0x07, 0x85, 0xc0, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf6, 0xc3,
];
/// Address of `POLLING` in the file.
const POLLING_FILE: u64 = 0x2000;
/// Address of the file in the process.
const LOADED: u64 = 0x5555_0000_0000;
/// The instruction after its PAUSE.
pub const AFTER_PAUSE: u64 = POLLING_FILE + 8;

/// Samples of a program of one thread, a millisecond each.
#[derive(Debug)]
pub struct Scene {
    /// The samples so far.
    pub samples: Samples,
}

impl Scene {
    /// Samples of a program at this path.
    pub fn new(program: &str) -> Self {
        let path = |path: &str| Module {
            path: path.to_owned(),
        };
        let code = Code {
            arch: Arch::X86_64,
            start: LOADED + POLLING_FILE,
            bytes: POLLING.to_vec(),
        };
        Self {
            samples: Samples {
                event: Event::CpuClock,
                hz: 1000,
                stacks_by: super::Stacks::Dwarf,
                wall_s: 1.0,
                threads: vec![Thread {
                    pid: 7,
                    tid: 7,
                    name: "prog".to_owned(),
                    cpu_s: Some(0.5),
                }],
                modules: vec![path(program), path("[kernel]")],
                frames: Vec::new(),
                stacks: Vec::new(),
                code: vec![(7, code)],
                steps: Vec::new(),
                stack_pointers: std::collections::BTreeMap::new(),
                lost: 0,
                has_kernel: true,
            },
        }
    }

    /// Adds a stack of functions, outermost first, with this many samples. The prefix `k:` marks a
    /// function of the kernel, `0x` an address of the file without a symbol.
    pub fn stack(mut self, functions: &[&str], count: u64) -> Self {
        let frames = functions.iter().rev().map(|name| self.frame(name));
        let frames: Vec<Frame> = frames.collect();
        self.push(frames, count)
    }

    /// Adds a stack whose innermost address is right after a PAUSE.
    pub fn waiting(mut self, functions: &[&str], count: u64) -> Self {
        let mut frames: Vec<Frame> = functions
            .iter()
            .rev()
            .map(|name| self.frame(name))
            .collect();
        if let Some(leaf) = frames.first_mut() {
            leaf.address = LOADED + AFTER_PAUSE;
            leaf.file_address = Some(AFTER_PAUSE);
            if let Some(symbol) = &mut leaf.symbol {
                symbol.offset = AFTER_PAUSE - POLLING_FILE;
            }
        }
        self.push(frames, count)
    }

    fn push(mut self, frames: Vec<Frame>, count: u64) -> Self {
        let first = self.samples.frames.len();
        let many = frames.len();
        self.samples.frames.extend(frames);
        self.samples.stacks.push(Stack {
            thread: 0,
            frames: (first..first + many).collect(),
            is_broken: false,
            count,
            weight_ns: 1_000_000 * count,
        });
        self
    }

    fn frame(&mut self, name: &str) -> Frame {
        let sum: u64 = name.bytes().map(u64::from).sum();
        let kernel = name.strip_prefix("k:");
        let bare = name.strip_prefix("0x");
        let bare = bare.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let file_address = bare.unwrap_or(0x10_0000 + 0x100 * sum);
        Frame {
            pid: if kernel.is_some() { -1 } else { 7 },
            address: LOADED + file_address,
            is_kernel: kernel.is_some(),
            module: Some(usize::from(kernel.is_some())),
            file_address: kernel.is_none().then_some(file_address),
            symbol: bare.is_none().then(|| Symbol {
                name: kernel.unwrap_or(name).to_owned(),
                offset: 4,
                source: None,
                inlined: Vec::new(),
            }),
        }
    }
}
