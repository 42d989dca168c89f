//! The place where a stack spins: the loop around its innermost address, or around the call of a
//! function that only hints.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::pace::{self, Pace};
use pinwise_code::{Code, disassemble, operation_at};
use pinwise_profile::{Frame, Samples, Stack};
use pinwise_spin::loops::{LoopKind, SpinLoop, loop_at};

/// Innermost frames that are searched for a loop.
const SEARCHED_FRAMES: usize = 2;
/// Kernel functions that indicate `sched_yield`.
const YIELD: &str = "sched_yield";
/// Functions that only yield: it is their callers that wait.
const YIELDING: [&str; 6] = [
    YIELD,
    "osyield",
    "pthread_yield",
    "thrd_yield",
    "thread::yield_now",
    "naked_yield",
];
/// Functions in which a goroutine yields. The last is on the goroutine's own stack, followed by its
/// caller; the others are on the scheduler's.
const GO_YIELDS: [&str; 3] = [
    "runtime.gosched_m",
    "runtime.goschedImpl",
    "runtime.Gosched",
];

/// A place that spins.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// A frame in it.
    pub(super) frame: usize,
    /// The loop; `None` for yielding without a loop in sight.
    pub(super) spin_loop: Option<SpinLoop>,
    /// Bytes from the start of the place to the frame's address, if there is no loop.
    from_start: u64,
    key: SiteKey,
}

/// What samples of one place have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SiteKey {
    /// Path of the file with the code; without one the process ID.
    file: String,
    /// Address of the loop or function, in its file if there is one.
    address: u64,
    kind: LoopKind,
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
        Self::with_offset(samples, frame, kind, spin_loop, 0)
    }

    fn with_offset(
        samples: &Samples,
        frame: usize,
        kind: LoopKind,
        spin_loop: Option<SpinLoop>,
        from_start: u64,
    ) -> Self {
        let in_frame = &samples.frames[frame];
        let file = match (in_frame.file_address, in_frame.module) {
            (Some(_), Some(module)) => samples.modules[module].path.clone(),
            _ => in_frame.pid.to_string(),
        };
        let address = 0;
        let mut site = Self {
            frame,
            spin_loop,
            from_start,
            key: SiteKey {
                file,
                address,
                kind,
            },
        };
        site.key.address = site.address(in_frame);
        site
    }

    /// A function that waits, although no loop was found in it.
    pub(super) fn from_function(samples: &Samples, frame: usize, kind: LoopKind) -> Self {
        let symbol = samples.frames[frame].symbol.as_ref();
        let offset = symbol.map_or(0, |symbol| symbol.offset);
        Self::with_offset(samples, frame, kind, None, offset)
    }

    /// Hints in one iteration.
    pub(super) fn hints(&self) -> u32 {
        self.spin_loop.as_ref().map_or(0, |found| found.hints)
    }

    /// Does one of its hints wait until a time that the program sets?
    pub(super) fn has_deadline(&self) -> bool {
        let found = self.spin_loop.as_ref();
        found.is_some_and(|found| found.has_deadline)
    }

    pub(super) const fn kind(&self) -> LoopKind {
        self.key.kind
    }

    /// Address of the loop or function, in its file if it has one.
    pub(super) fn address(&self, frame: &Frame) -> u64 {
        let first = frame.address.wrapping_sub(self.from_start);
        let start = self.spin_loop.as_ref().map_or(first, |l| l.start);
        match frame.file_address {
            Some(in_file) => in_file.wrapping_sub(frame.address.wrapping_sub(start)),
            None => start,
        }
    }

    /// Measures the cost of a hint in the loop, if a register counts its iterations.
    pub(super) fn measure_pace(&self, samples: &Samples, pause_ns: Option<f64>) -> Option<Pace> {
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
    /// Addresses at which a loop waits, by process and the loop's start.
    anchors: BTreeMap<(i32, u64), Anchors>,
}

impl Sites {
    /// The place that a stack spins in, and the depth of its frame; `None` for work.
    pub(super) fn locate(&mut self, samples: &Samples, stack: &Stack) -> Option<(Site, usize)> {
        let is_kernel = |&frame: &usize| samples.frames[frame].is_kernel;
        let depth = stack.frames.iter().take_while(|f| is_kernel(f)).count();
        let (kernel, user) = stack.frames.split_at(depth);
        let yields = kernel.iter().any(|&frame| is_named(samples, frame, YIELD));
        let &first = user.first()?;
        if yields || is_named(samples, first, YIELD) {
            let only_yields =
                |frame: &&usize| YIELDING.iter().any(|name| is_named(samples, **frame, name));
            let caller = user.iter().take_while(only_yields).count();
            let caller = caller.min(user.len() - 1);
            let site = Site::new(samples, user[caller], LoopKind::Yielding, None);
            return Some((site, depth + caller));
        }
        if let Some(at) = user
            .iter()
            .rposition(|&frame| GO_YIELDS.iter().any(|name| is_named(samples, frame, name)))
        {
            let is_own = is_named(samples, user[at], GO_YIELDS[2]);
            let caller = (at + usize::from(is_own)).min(user.len() - 1);
            let site = Site::from_function(samples, user[caller], LoopKind::Yielding);
            return Some((site, depth + caller));
        }
        if depth > 0 {
            // In the kernel for another reason: a system call, a page fault, an interrupt. Spinning
            // threads are interrupted as well, but only briefly.
            return None;
        }
        if is_in_vdso(samples, first) {
            // Its loops repeat only while the kernel updates the clock.
            return None;
        }
        for (level, &frame) in user.iter().enumerate().take(SEARCHED_FRAMES) {
            let Some(found) = self.find_loop_around(samples, frame) else {
                continue;
            };
            // Work in a loop stays work in whatever loop its caller is; a caller's loop counts only
            // if it has a hint.
            if found.kind == LoopKind::Work || (level > 0 && found.hints == 0) {
                return None;
            }
            let site = Site::new(samples, frame, found.kind, Some(found.clone()));
            return Some((site, level));
        }
        None
    }

    /// The position of the innermost frame in the loop of its site.
    pub(super) fn find_position(
        &mut self,
        samples: &Samples,
        innermost: usize,
        site: &Site,
    ) -> LoopPosition {
        let (Some(found), Some(code)) = (&site.spin_loop, site.code(samples)) else {
            return LoopPosition::AtAtomic;
        };
        if innermost != site.frame {
            return LoopPosition::AtHint;
        }
        let Frame { pid, address, .. } = samples.frames[innermost];
        let anchors = self
            .anchors
            .entry((pid, found.start))
            .or_insert_with(|| Anchors::new(code, found));
        if anchors.hints.contains(&address) {
            LoopPosition::AtHint
        } else if anchors.atomics.contains(&address) {
            LoopPosition::AtAtomic
        } else {
            LoopPosition::Elsewhere
        }
    }

    /// The innermost loop around a frame's address.
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
pub(super) enum LoopPosition {
    /// At a hint, right behind it, or in a function that hints for the loop.
    AtHint,
    /// At a locked instruction or right behind it, or in a function that waits without a loop.
    AtAtomic,
    Elsewhere,
}

/// Addresses at which a thread that waits in a loop is seen: its hints and locked instructions, and
/// the instruction behind each.
#[derive(Debug)]
struct Anchors {
    hints: Vec<u64>,
    atomics: Vec<u64>,
}

impl Anchors {
    fn new(code: &Code, found: &SpinLoop) -> Self {
        let with_next = |at: u64| {
            let operation = operation_at(code, at);
            operation.map_or_else(Vec::new, |one| vec![one.address, one.end()])
        };
        let all = disassemble(code, found.start, found.end);
        let all = all.iter().map(|one| one.address);
        let locked = all.filter(|&at| operation_at(code, at).is_some_and(|one| one.is_locked));
        Self {
            hints: found.hinting.iter().copied().flat_map(with_next).collect(),
            atomics: locked.flat_map(with_next).collect(),
        }
    }
}

/// Is it in the vDSO: code of the kernel, mapped into every program, that mainly reads the clock?
pub(super) fn is_in_vdso(samples: &Samples, frame: usize) -> bool {
    let module = samples.frames[frame].module;
    module.is_some_and(|module| samples.modules[module].path == "[vdso]")
}

fn is_named(samples: &Samples, frame: usize, part: &str) -> bool {
    let symbol = samples.frames[frame].symbol.as_ref();
    symbol.is_some_and(|symbol| symbol.name.contains(part))
}
