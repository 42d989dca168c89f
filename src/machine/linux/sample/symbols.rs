//! Names of addresses, from the files that they came from, the kernel's list,
//! and what a runtime says of the code that it made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use blazesym::{MaybeDefault, Pid};
use object::{Object, ObjectSegment, ReadCache};

use super::super::sys;
use super::pages::open;
use crate::code::demangled;
use crate::profile::{Samples, Symbol};

/// What stands for a path where the kernel brought the code.
const VDSO: &str = "[vdso]";

/// Names frames; `offsets` are those of frames in their files.
pub(super) fn name(samples: &mut Samples, offsets: &[Option<u64>]) {
    // Names that were not mangled must stay as they are: `a` is no `signed char`.
    let symbolizer = Symbolizer::builder().enable_demangling(false).build();
    let exact = executed(samples);
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (index, offset) in offsets.iter().enumerate() {
        if let Some(group) = Group::of(samples, index, *offset) {
            groups.entry(group).or_default().push(index);
        }
    }
    for (group, frames) in groups {
        let back = |frame: usize| u64::from(!exact.contains(&frame));
        let addresses: Vec<u64> = frames
            .iter()
            .map(|&frame| {
                let offset = offsets[frame].unwrap_or(0);
                let address = match group {
                    Group::File(..) => offset,
                    Group::Vdso => sys::vdso().saturating_add(offset),
                    Group::Kernel | Group::Made(_) => samples.frames[frame].address,
                };
                address.saturating_sub(back(frame))
            })
            .collect();
        let names = group.names(&symbolizer, samples, &addresses);
        for (&frame, name) in frames.iter().zip(names) {
            let back = back(frame);
            samples.frames[frame].symbol = name.map(|symbol| Symbol {
                offset: symbol.offset + back,
                ..symbol
            });
        }
        if let Group::File(module, pid) = group {
            place(samples, &frames, offsets, module, pid);
        }
    }
}

/// Frames that were executed just then; all others are return addresses, and
/// the call stands one byte before at the latest.
fn executed(samples: &Samples) -> BTreeSet<usize> {
    let mut exact = BTreeSet::new();
    for stack in &samples.stacks {
        exact.extend(stack.frames.first());
        let user = stack.frames.iter().find(|&&f| !samples.frames[f].is_kernel);
        exact.extend(user);
    }
    exact
}

/// Frames whose names come from the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// The running kernel.
    Kernel,
    /// A file, as one of the processes that have it mapped sees it.
    File(usize, i32),
    /// The kernel's code in every program, pinwise among them.
    Vdso,
    /// Code of no file, in a process.
    Made(i32),
}

impl Group {
    fn of(samples: &Samples, frame: usize, offset: Option<u64>) -> Option<Self> {
        let frame = &samples.frames[frame];
        if frame.is_kernel {
            return Some(Self::Kernel);
        }
        let module = frame.module?;
        if samples.modules[module].path == VDSO && offset.is_some() {
            return Some(Self::Vdso);
        }
        let is_file = samples.modules[module].path.starts_with('/')
            && !samples.modules[module].path.starts_with("//");
        if is_file && offset.is_some() {
            return Some(Self::File(module, frame.pid));
        }
        Some(Self::Made(frame.pid))
    }

    /// A name for each address where there is one.
    fn names(
        self,
        symbolizer: &Symbolizer,
        samples: &Samples,
        addresses: &[u64],
    ) -> Vec<Option<Symbol>> {
        let (source, input) = match self {
            Self::Kernel => {
                // Looking for an image of it takes long and adds nothing.
                let kernel = Kernel {
                    vmlinux: MaybeDefault::None,
                    ..Kernel::default()
                };
                (Source::from(kernel), Input::AbsAddr(addresses))
            }
            Self::File(module, pid) => {
                let path = seen_by(pid, &samples.modules[module].path);
                (Source::from(Elf::new(path)), Input::FileOffset(addresses))
            }
            Self::Vdso => {
                let mut process = Process::new(Pid::Slf);
                process.map_files = false;
                (Source::from(process), Input::AbsAddr(addresses))
            }
            Self::Made(pid) => {
                let Ok(number) = u32::try_from(pid) else {
                    return vec![None; addresses.len()];
                };
                let mut process = Process::new(Pid::from(number));
                process.debug_syms = false;
                process.map_files = false;
                (Source::from(process), Input::AbsAddr(addresses))
            }
        };
        match symbolizer.symbolize(&source, input) {
            Ok(found) => found.into_iter().map(symbol).collect(),
            Err(_) => vec![None; addresses.len()],
        }
    }
}

fn symbol(found: Symbolized<'_>) -> Option<Symbol> {
    let Symbolized::Sym(found) = found else {
        return None;
    };
    let source = found.code_info.as_ref().map(|info| {
        let file = info.file.to_string_lossy();
        match info.line {
            Some(line) => format!("{file}:{line}"),
            None => file.into_owned(),
        }
    });
    Some(Symbol {
        name: demangled(&found.name),
        offset: found.offset as u64,
        source,
    })
}

/// Addresses as the file's own tables have them.
fn place(
    samples: &mut Samples,
    frames: &[usize],
    offsets: &[Option<u64>],
    module: usize,
    pid: i32,
) {
    let path = seen_by(pid, &samples.modules[module].path);
    let Some(file) = open(&path) else { return };
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
    for &frame in frames {
        let Some(at) = offsets[frame] else { continue };
        let segment = segments
            .iter()
            .find(|(offset, length, _)| at.checked_sub(*offset).is_some_and(|into| into < *length));
        samples.frames[frame].file_address =
            segment.map(|(offset, _, address)| at - offset + address);
    }
}

/// A file as a process sees it, which may live in a container; as pinwise does
/// where the process is gone.
pub(super) fn seen_by(pid: i32, path: &str) -> PathBuf {
    let inside = PathBuf::from(format!("/proc/{pid}/root{path}"));
    if inside.is_file() {
        inside
    } else {
        Path::new(path).to_owned()
    }
}
