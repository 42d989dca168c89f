//! The place where a stack was seen: the loop around its innermost address, or around the call of a
//! function that only hints.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::pace::{self, Pace};
use pinwise_code::{Code, disassemble, operation_at};
use pinwise_profile::{Frame, Samples, Stack};
use pinwise_spin::loops::{LoopKind, SpinLoop, loop_at};

/// Callers in which a loop is looked for: the innermost function and one more.
const LEVELS: usize = 2;
/// Kernel functions that indicate `sched_yield`.
const YIELD: &str = "sched_yield";
/// Functions that only yield: their callers are what waits.
const YIELDING: [&str; 6] = [
    YIELD,
    "osyield",
    "pthread_yield",
    "thrd_yield",
    "thread::yield_now",
    "naked_yield",
];
/// Functions of Go's scheduler while a goroutine yields; on the goroutine's own stack its caller
/// follows.
const GO_YIELDS: [&str; 3] = [
    "runtime.gosched_m",
    "runtime.goschedImpl",
    "runtime.Gosched",
];

/// A place that spins.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// A frame of it.
    pub(super) frame: usize,
    /// The loop; `None` for yielding without a loop in sight.
    pub(super) spin_loop: Option<SpinLoop>,
    /// Bytes from the start of the place to the frame's address, if there is no loop.
    from_start: u64,
    /// Key that groups samples of one place: file or process, address, kind.
    key: (String, u64, LoopKind),
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Site {}

impl PartialOrd for Site {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Site {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl Site {
    fn new(samples: &Samples, frame: usize, kind: LoopKind, spin_loop: Option<SpinLoop>) -> Self {
        let of = &samples.frames[frame];
        let place = match (of.file_address, of.module) {
            (Some(_), Some(module)) => samples.modules[module].path.clone(),
            _ => of.pid.to_string(),
        };
        let mut site = Self {
            frame,
            spin_loop,
            from_start: 0,
            key: (place, 0, kind),
        };
        site.key.1 = site.address(of);
        site
    }

    /// A function that waits without a loop of its own in sight.
    pub(super) fn waiting_function(samples: &Samples, frame: usize, kind: LoopKind) -> Self {
        let mut site = Self::new(samples, frame, kind, None);
        let symbol = samples.frames[frame].symbol.as_ref();
        site.from_start = symbol.map_or(0, |symbol| symbol.offset);
        site.key.1 = site.address(&samples.frames[frame]);
        site
    }

    /// Hints of one iteration.
    pub(super) fn hints(&self) -> u32 {
        self.spin_loop.as_ref().map_or(0, |found| found.hints)
    }

    /// Does one of its hints last for as long as the program asks?
    pub(super) fn has_deadline(&self) -> bool {
        let found = self.spin_loop.as_ref();
        found.is_some_and(|found| found.has_deadline)
    }

    pub(super) const fn kind(&self) -> LoopKind {
        self.key.2
    }

    /// Address of the loop: in its file if it has one.
    pub(super) fn address(&self, frame: &Frame) -> u64 {
        let first = frame.address.wrapping_sub(self.from_start);
        let start = self.spin_loop.as_ref().map_or(first, |l| l.start);
        match frame.file_address {
            Some(in_file) => in_file.wrapping_sub(frame.address.wrapping_sub(start)),
            None => start,
        }
    }

    /// Cost of a hint there, if a register counts the turns.
    pub(super) fn pace(&self, samples: &Samples, pause_ns: Option<f64>) -> Option<Pace> {
        let pid = samples.frames[self.frame].pid;
        pace::measure_pace(samples, pid, self.spin_loop.as_ref()?, pause_ns)
    }

    pub(super) fn code<'a>(&self, samples: &'a Samples) -> Option<&'a Code> {
        let pid = samples.frames[self.frame].pid;
        samples.code_at(pid, self.spin_loop.as_ref()?.start)
    }
}

/// Loops by process and address, each decoded once.
#[derive(Debug, Default)]
pub(super) struct Sites {
    loops: BTreeMap<usize, Option<SpinLoop>>,
    /// Places at which a loop waits, by process and its first address.
    anchors: BTreeMap<(i32, u64), Anchors>,
}

impl Sites {
    /// The place that a stack spins in, and the depth of its frame; `None` for
    /// work.
    pub(super) fn locate(&mut self, samples: &Samples, stack: &Stack) -> Option<(Site, usize)> {
        let is_kernel = |&frame: &usize| samples.frames[frame].is_kernel;
        let depth = stack.frames.iter().take_while(|f| is_kernel(f)).count();
        let (kernel, user) = stack.frames.split_at(depth);
        let yields = kernel.iter().any(|&frame| is_named(samples, frame, YIELD));
        let &first = user.first()?;
        if yields || is_named(samples, first, YIELD) {
            let only_yields =
                |frame: &&usize| YIELDING.iter().any(|name| is_named(samples, **frame, name));
            let into = user.iter().take_while(only_yields).count();
            let into = into.min(user.len() - 1);
            let site = Site::new(samples, user[into], LoopKind::Yielding, None);
            return Some((site, depth + into));
        }
        if let Some(at) = user
            .iter()
            .rposition(|&frame| GO_YIELDS.iter().any(|name| is_named(samples, frame, name)))
        {
            let is_own = is_named(samples, user[at], GO_YIELDS[2]);
            let into = (at + usize::from(is_own)).min(user.len() - 1);
            let site = Site::waiting_function(samples, user[into], LoopKind::Yielding);
            return Some((site, depth + into));
        }
        if depth > 0 {
            // In the kernel for another reason: a system call, a page fault, an interrupt. Spinning
            // is interrupted as well, but not for long.
            return None;
        }
        if is_in_vdso(samples, first) {
            // Readers of the clock try again only while it is being set.
            return None;
        }
        for (level, &frame) in user.iter().enumerate().take(LEVELS) {
            let Some(found) = self.find_loop_around(samples, frame) else {
                continue;
            };
            // A loop of work is work, whoever called it; a caller's loop counts only if it waits.
            if found.kind == LoopKind::Work || (level > 0 && found.hints == 0) {
                return None;
            }
            let site = Site::new(samples, frame, found.kind, Some(found.clone()));
            return Some((site, level));
        }
        None
    }

    /// The position of the innermost address in its loop.
    pub(super) fn standing(
        &mut self,
        samples: &Samples,
        innermost: usize,
        site: &Site,
    ) -> Standing {
        let (Some(found), Some(code)) = (&site.spin_loop, site.code(samples)) else {
            return Standing::AtAtomic;
        };
        if innermost != site.frame {
            return Standing::AtHint;
        }
        let Frame { pid, address, .. } = samples.frames[innermost];
        let anchors = self
            .anchors
            .entry((pid, found.start))
            .or_insert_with(|| anchors(code, found));
        if anchors.hints.contains(&address) {
            Standing::AtHint
        } else if anchors.atomics.contains(&address) {
            Standing::AtAtomic
        } else {
            Standing::Elsewhere
        }
    }

    /// The innermost loop.
    pub(super) fn find_loop_around(
        &mut self,
        samples: &Samples,
        frame: usize,
    ) -> Option<&SpinLoop> {
        let found = self.loops.entry(frame).or_insert_with(|| {
            let Frame { pid, address, .. } = samples.frames[frame];
            loop_at(samples.code_at(pid, address)?, address)
        });
        found.as_ref()
    }
}

/// The position of a sample in a waiting loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// At a hint, right behind it, or in a function that hints for the loop.
    AtHint,
    /// At a locked instruction or right behind it, or in what waits without a loop.
    AtAtomic,
    Elsewhere,
}

/// Addresses at which a thread that waits in a loop is seen: its hints and
/// locked instructions, and what follows each.
#[derive(Debug)]
struct Anchors {
    hints: Vec<u64>,
    atomics: Vec<u64>,
}

fn anchors(code: &Code, found: &SpinLoop) -> Anchors {
    let with_next = |at: u64| {
        let operation = operation_at(code, at);
        operation.map_or_else(Vec::new, |one| vec![one.address, one.end()])
    };
    let all = disassemble(code, found.start, found.end);
    let all = all.iter().map(|one| one.address);
    let locked = all.filter(|&at| operation_at(code, at).is_some_and(|one| one.is_locked));
    Anchors {
        hints: found.hinting.iter().copied().flat_map(with_next).collect(),
        atomics: locked.flat_map(with_next).collect(),
    }
}

/// Is it code that the kernel maps into every program, to read the clock by?
pub(super) fn is_in_vdso(samples: &Samples, frame: usize) -> bool {
    let module = samples.frames[frame].module;
    module.is_some_and(|module| samples.modules[module].path == "[vdso]")
}

fn is_named(samples: &Samples, frame: usize, part: &str) -> bool {
    let symbol = samples.frames[frame].symbol.as_ref();
    symbol.is_some_and(|symbol| symbol.name.contains(part))
}
