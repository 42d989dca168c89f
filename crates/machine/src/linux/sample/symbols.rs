//! Names addresses by the symbols of their files, the kernel's list, and the files in which
//! runtimes name the code that they made.
//!
//! Paths come from the sampled programs and can change meaning: each file is opened once, and all
//! is read from that descriptor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;

use blazesym::symbolize::source::{Elf, Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use blazesym::{MaybeDefault, Pid};
use object::{Object, ObjectSection, ObjectSegment, ReadCache};

use super::super::stack::VDSO;
use super::super::stack::files::{find_trusted_path, is_file, open_program};
use super::super::sys;
use super::made::NameFiles;
use super::stubs::Stubs;
use pinwise_code::demangle;
use pinwise_profile::{Samples, Symbol};

/// Sections that name a separate file with debug information.
const DEBUG_LINKS: [&str; 3] = [".gnu_debuglink", ".gnu_debugaltlink", ".debug_sup"];

/// Names frames; `offsets` are the frames' offsets in their files, bytes. Returns notes on what
/// could not be read.
pub(super) fn name_frames(
    samples: &mut Samples,
    offsets: &[Option<u64>],
    name_files: &NameFiles,
) -> Vec<String> {
    let mut notes = name_files.refusals();
    // Unmangled names must stay unchanged: `a` is not `signed char`.
    let symbolizer = Symbolizer::builder().enable_demangling(false).build();
    let executed = find_executed(samples);
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (index, offset) in offsets.iter().enumerate() {
        if let Some(group) = Group::from_frame(samples, index, *offset) {
            groups.entry(group).or_default().push(index);
        }
    }
    for (group, frames) in groups {
        // A call ends where its return address begins: look up the byte before.
        let shift = |frame: usize| u64::from(!executed.contains(&frame));
        let addresses: Vec<u64> = frames
            .iter()
            .map(|&frame| {
                let offset = offsets[frame].unwrap_or(0);
                let address = match group {
                    Group::File(..) => offset,
                    Group::Vdso => sys::vdso_address().saturating_add(offset),
                    Group::Kernel | Group::Made(_) => samples.frames[frame].address,
                };
                address.saturating_sub(shift(frame))
            })
            .collect();
        let file = match group {
            Group::File(module, pid) => open_program(pid, &samples.modules[module].path),
            _ => None,
        };
        let names = match (group, &file) {
            (Group::Made(pid), _) => name_files.find_names(pid, &addresses, &mut notes),
            (Group::File(..), None) => continue,
            _ => group.find_symbols(&symbolizer, file.as_ref(), &addresses),
        };
        for (&frame, name) in frames.iter().zip(names) {
            let shift = shift(frame);
            samples.frames[frame].symbol = name.map(|symbol| Symbol {
                offset: symbol.offset + shift,
                ..symbol
            });
        }
        if let Some(file) = file {
            set_file_addresses(samples, &frames, offsets, file);
        }
    }
    notes
}

/// Finds the frames that were being executed; all others are return addresses.
fn find_executed(samples: &Samples) -> BTreeSet<usize> {
    let mut executed = BTreeSet::new();
    for stack in &samples.stacks {
        executed.extend(stack.frames.first());
        let user = stack.frames.iter().find(|&&f| !samples.frames[f].is_kernel);
        executed.extend(user);
    }
    executed
}

/// Frames with the same source of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// The running kernel.
    Kernel,
    /// A file: its module, and a process that has it mapped.
    File(usize, i32),
    /// The vDSO: the kernel's code in every process, including pinwise.
    Vdso,
    /// Code without a file in this process.
    Made(i32),
}

impl Group {
    fn from_frame(samples: &Samples, frame: usize, offset: Option<u64>) -> Option<Self> {
        let frame = &samples.frames[frame];
        if frame.is_kernel {
            return Some(Self::Kernel);
        }
        let module = frame.module?;
        if samples.modules[module].path == VDSO && offset.is_some() {
            return Some(Self::Vdso);
        }
        if is_file(&samples.modules[module].path) && offset.is_some() {
            return Some(Self::File(module, frame.pid));
        }
        Some(Self::Made(frame.pid))
    }

    /// Finds the symbol of each address.
    fn find_symbols(
        self,
        symbolizer: &Symbolizer,
        file: Option<&File>,
        addresses: &[u64],
    ) -> Vec<Option<Symbol>> {
        let (source, input) = match self {
            Self::Kernel => {
                // Searching the kernel's image takes long and adds nothing to its list of symbols.
                let kernel = Kernel {
                    vmlinux: MaybeDefault::None,
                    ..Kernel::default()
                };
                (Source::from(kernel), Input::AbsAddr(addresses))
            }
            Self::Vdso => {
                let mut process = Process::new(Pid::Slf);
                process.map_files = false;
                (Source::from(process), Input::AbsAddr(addresses))
            }
            Self::File(..) | Self::Made(_) => {
                let Some(source) = file.and_then(choose_source) else {
                    return vec![None; addresses.len()];
                };
                (source, Input::FileOffset(addresses))
            }
        };
        match symbolizer.symbolize(&source, input) {
            Ok(found) => found.into_iter().map(convert_symbol).collect(),
            Err(_) => vec![None; addresses.len()],
        }
    }
}

fn convert_symbol(found: Symbolized<'_>) -> Option<Symbol> {
    let Symbolized::Sym(found) = found else {
        return None;
    };
    // The innermost inlined function is what was executed.
    let innermost = found.inlined.last().and_then(|one| one.code_info.as_ref());
    let info = innermost.or(found.code_info.as_deref());
    let source = info.map(|info| {
        let file = info.file.to_string_lossy();
        match info.line {
            Some(line) => format!("{file}:{line}"),
            None => file.into_owned(),
        }
    });
    Some(Symbol {
        name: demangle(&found.name),
        offset: found.offset as u64,
        source,
        inlined: found
            .inlined
            .iter()
            .map(|one| demangle(&one.name))
            .collect(),
    })
}

/// The path by which the symbolizer reads an open file. Debug files that the file names are used
/// only if nobody else could have written the file or its folder: they could be pipes. `None` if it
/// is not a program.
fn choose_source(file: &File) -> Option<Source<'static>> {
    let has_links = has_links(file)?;
    let elf = match find_trusted_path(file) {
        Some(path) => Elf::new(path),
        None => {
            let mut elf = Elf::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
            elf.debug_syms = !has_links;
            elf
        }
    };
    Some(Source::from(elf))
}

/// Does the file name separate debug files? `None` if it is not a program.
fn has_links(file: &File) -> Option<bool> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    let mut names = object.sections();
    Some(names.any(|section| section.name().is_ok_and(|name| DEBUG_LINKS.contains(&name))))
}

/// Sets the address of each frame in the file's own tables, and names stubs.
fn set_file_addresses(
    samples: &mut Samples,
    frames: &[usize],
    offsets: &[Option<u64>],
    file: File,
) {
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return;
    };
    let segments: Vec<(u64, u64, u64)> = object
        .segments()
        .map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        })
        .collect();
    let stubs = Stubs::from_file(&object);
    for &frame in frames {
        let Some(at) = offsets[frame] else { continue };
        let segment = segments
            .iter()
            .find(|(offset, length, _)| at.checked_sub(*offset).is_some_and(|into| into < *length));
        let address = segment.map(|(offset, _, address)| at - offset + address);
        let frame = &mut samples.frames[frame];
        frame.file_address = address;
        if let Some(stub) = address.and_then(|address| stubs.symbol_at(address)) {
            frame.symbol = Some(stub);
        }
    }
}
