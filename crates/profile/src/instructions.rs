//! The hottest instructions, each with the code around it.
//!
//! Addresses are those of the files, the same in every process and run, so that samples of several
//! runs add up. Code made at run time has no file: its addresses are the process's own.

use std::collections::{BTreeMap, BTreeSet};

use super::waits::hint_before;
use super::{Amount, Frame, Function, Samples};
use pinwise_code::{Code, Flow, Instruction, disassemble};

/// Instructions shown before the hottest one and after it.
const LINES_BEFORE: usize = 7;
const LINES_AFTER: usize = 5;
/// Bytes before and after the hottest instruction that are decoded: the longest x86 instruction has
/// 15.
const BYTES_BEFORE: u64 = 15 * (LINES_BEFORE as u64 + 4);
const BYTES_AFTER: u64 = 15 * (LINES_AFTER as u64 + 1);

/// A sampled instruction, with the code around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Its function.
    pub function: Function,
    /// Bytes from the function's beginning, if there is a symbol.
    pub offset: Option<u64>,
    /// `file:line`, if debug information has it.
    pub source: Option<String>,
    /// Its address in the file.
    pub address: u64,
    /// Time seen at it.
    pub own: Amount,
    /// Time seen at any line.
    pub shown: Amount,
    /// The code around it in order; empty if its bytes could not be read.
    pub lines: Vec<Line>,
}

/// An instruction with the time that was seen at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its address in the file.
    pub address: u64,
    /// Disassembled.
    pub text: String,
    /// Time seen at it.
    pub own: Amount,
    /// Is it a spin hint?
    pub is_hint: bool,
    /// Does it follow a spin hint? Its time was then spent in the hint.
    pub waits: bool,
}

/// Identifies an instruction in any process or run: its module, and the process if there is no
/// file.
type Place = (String, Option<i32>, u64);

/// An instruction while samples are counted.
#[derive(Debug)]
struct SampledInstruction {
    own: Amount,
    /// The first frame at it: run and index.
    frame: (usize, usize),
}

/// Instructions of all runs.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    seen: BTreeMap<Place, SampledInstruction>,
}

impl Instructions {
    /// Counts a sample's innermost frame.
    pub(super) fn add(&mut self, samples: &Samples, run: usize, frame: usize, amount: Amount) {
        let Some(at) = samples.frames.get(frame) else {
            return;
        };
        let seen = self
            .seen
            .entry(place_of(samples, at))
            .or_insert(SampledInstruction {
                own: Amount::default(),
                frame: (run, frame),
            });
        seen.own += amount;
    }

    /// Finds the hottest instructions, without those in the lines of a hotter one. Also returns the
    /// amount of the instructions that no spot shows.
    pub(super) fn find_hottest(&self, runs: &[Samples], max_spots: usize) -> (Vec<Spot>, Amount) {
        let mut by_time: Vec<(&Place, &SampledInstruction)> = self.seen.iter().collect();
        by_time.sort_by(|a, b| b.1.own.cpu_ns.cmp(&a.1.own.cpu_ns).then(a.0.cmp(b.0)));
        let mut shown: BTreeSet<Place> = BTreeSet::new();
        let mut spots = Vec::new();
        for (place, seen) in by_time {
            if spots.len() == max_spots || shown.contains(place) {
                continue;
            }
            let Some(spot) = self.describe_spot(runs, place, seen, &shown) else {
                continue;
            };
            let (module, process, _) = place;
            shown.extend(spot.lines.iter().map(|line| {
                let address = line.address;
                (module.clone(), *process, address)
            }));
            shown.insert(place.clone());
            spots.push(spot);
        }
        let hidden = self.seen.iter().filter(|(place, _)| !shown.contains(place));
        let hidden = hidden.map(|(_, seen)| seen.own).sum();
        (spots, hidden)
    }

    fn describe_spot(
        &self,
        runs: &[Samples],
        place: &Place,
        seen: &SampledInstruction,
        shown: &BTreeSet<Place>,
    ) -> Option<Spot> {
        let (run, frame) = seen.frame;
        let samples = runs.get(run)?;
        let frame = samples.frames.get(frame)?;
        let (module, process, address) = place;
        let unshown_at = |address: u64| {
            let place = (module.clone(), *process, address);
            let is_new = !shown.contains(&place);
            self.seen.get(&place).filter(|_| is_new)
        };
        let known: Vec<u64> = (address.saturating_sub(BYTES_BEFORE)
            ..address.saturating_add(BYTES_AFTER))
            .filter(|&address| unshown_at(address).is_some())
            .collect();
        let lines: Vec<Line> = samples
            .code_at(frame.pid, frame.address)
            .filter(|_| !frame.is_kernel)
            .and_then(|code| rebase(code, frame.address, *address))
            .map(|code| {
                disassemble_around(&code, *address, function_start(frame, *address), &known)
            })
            .unwrap_or_default()
            .into_iter()
            .map(|line| Line {
                own: unshown_at(line.address).map_or(Amount::default(), |seen| seen.own),
                ..line
            })
            .collect();
        let shown: Amount = lines.iter().map(|line| line.own).sum();
        Some(Spot {
            function: Function::from_frame(samples, frame),
            offset: frame.symbol.as_ref().map(|symbol| symbol.offset),
            source: frame.symbol.as_ref().and_then(|s| s.source.clone()),
            address: *address,
            own: seen.own,
            shown: if lines.is_empty() { seen.own } else { shown },
            lines,
        })
    }
}

fn place_of(samples: &Samples, frame: &Frame) -> Place {
    let module = frame.module.and_then(|index| samples.modules.get(index));
    let module = module.map(|module| module.path.clone()).unwrap_or_default();
    match frame.file_address {
        Some(address) => (module, None, address),
        None if frame.is_kernel => (module, None, frame.address),
        None => (module, Some(frame.pid), frame.address),
    }
}

/// The function's start address in the file.
fn function_start(frame: &Frame, address: u64) -> Option<u64> {
    let offset = frame.symbol.as_ref()?.offset;
    address.checked_sub(offset)
}

/// Moves code around an address of the process to its address in the file, so that the targets of
/// branches are the file's addresses as well.
fn rebase(code: &Code, address: u64, file_address: u64) -> Option<Code> {
    let from = code.start.max(address.saturating_sub(BYTES_BEFORE));
    let bytes = code.bytes_from(from);
    let max_bytes = usize::try_from(BYTES_BEFORE + BYTES_AFTER).unwrap_or(usize::MAX);
    Some(Code {
        arch: code.arch,
        start: file_address.checked_sub(address - from)?,
        bytes: bytes[..bytes.len().min(max_bytes)].to_vec(),
    })
}

/// Disassembles the instructions around an address.
fn disassemble_around(
    code: &Code,
    address: u64,
    beginning: Option<u64>,
    known: &[u64],
) -> Vec<Line> {
    let end = code.end().min(address.saturating_add(BYTES_AFTER));
    let all = disassemble_aligned(code, address, beginning, end, known);
    let Some(middle) = all.iter().position(|found| found.address == address) else {
        return Vec::new();
    };
    let from = middle.saturating_sub(LINES_BEFORE);
    let is_end = |found: &Instruction| found.flow == Flow::Return;
    let end = all
        .iter()
        .skip(middle)
        .position(is_end)
        .unwrap_or(LINES_AFTER);
    let to = all.len().min(middle + end.min(LINES_AFTER) + 1);
    all.into_iter()
        .take(to)
        .skip(from)
        .map(|found| Line {
            address: found.address,
            waits: found.is_hint || hint_before(code, found.address).is_some(),
            is_hint: found.is_hint,
            text: found.text,
            own: Amount::default(),
        })
        .collect()
}

/// Disassembles so that an instruction begins at the address: from the function's beginning if that
/// is near, else from the start with which instructions begin at most of the sampled addresses (x86
/// resynchronises within a few instructions wherever decoding begins).
fn disassemble_aligned(
    code: &Code,
    address: u64,
    beginning: Option<u64>,
    end: u64,
    known: &[u64],
) -> Vec<Instruction> {
    let starts = (code.start..=address).filter(|start| beginning.is_none_or(|at| *start >= at));
    let hits = |all: &[Instruction]| {
        let begins = |address: &u64| all.iter().any(|found| found.address == *address);
        let is_here = begins(&address);
        is_here.then(|| known.iter().filter(|known| begins(known)).count())
    };
    let mut best: Option<(usize, Vec<Instruction>)> = None;
    for start in starts {
        let all = disassemble(code, start, end);
        if beginning == Some(start) && hits(&all).is_some() {
            return all;
        }
        // The hint that the samples belong to is an instruction, too.
        let shows_hint = hint_before(code, address)
            .is_none_or(|hint| all.iter().any(|found| found.address == hint.address));
        let Some(count) = hits(&all) else { continue };
        let count = 2 * count + usize::from(shows_hint);
        if best
            .as_ref()
            .is_none_or(|(best_count, _)| count > *best_count)
        {
            best = Some((count, all));
        }
    }
    best.map(|(_, all)| all).unwrap_or_default()
}
