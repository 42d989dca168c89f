//! Finds every loop with a spin-wait hint in a file's code.
//!
//! On x86 hints are found by their bytes, and only the code around them is decoded, so a large file
//! takes no longer than reading it; on arm64 every instruction is decoded. Bytes that look like a
//! hint within another instruction are recognised by decoding from the function's beginning, or from
//! several starts if no function is known. Loops through computed jumps are not found.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::identify::{Candidate, Evidence, identify};
use super::loops::{LoopKind, SpinLoop, begins_at, is_hint_function, loops_at};
use pinwise_code::elf::Binary;
use pinwise_code::{Arch, Code, demangle, length_at, operation_at};

/// Bytes of the largest function that is decoded from its beginning.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// The result of scanning a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Spin-wait hints.
    pub hints: u64,
    /// Functions that only hint and return.
    pub hint_functions: u64,
    /// Hints outside loops and outside functions that only hint.
    pub hints_outside_loops: u64,
    /// Loops by address.
    pub loops: Vec<Site>,
}

/// A loop with a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The innermost loop around the hint.
    pub inner: SpinLoop,
    /// For a blind delay, the loop around it that looks.
    pub outer: Option<SpinLoop>,
    /// The function that contains it, demangled, and the offset from its beginning, bytes.
    pub function: Option<(String, u64)>,
    /// Hints between two looks; `None` if the code does not determine it.
    pub gap: Option<u64>,
    /// Possible algorithms of the table, surest first.
    pub candidates: Vec<Candidate>,
}

/// Finds the loops with hints; `module` is the file's name.
#[must_use]
pub fn scan(binary: &Binary, module: &str) -> Scan {
    let mut hints = 0;
    let mut functions: BTreeSet<u64> = BTreeSet::new();
    let mut outside = 0;
    let mut found: BTreeMap<(u64, u64), Site> = BTreeMap::new();
    for code in &binary.sections {
        for hint in find_hints(binary, code) {
            hints += 1;
            if let Some(site) = find_site(binary, code, hint, module) {
                found.insert((site.inner.start, site.inner.end), site);
            } else if let Some(start) = find_hint_function(binary, code, hint) {
                functions.insert(start);
            } else {
                outside += 1;
            }
        }
    }
    for code in &binary.sections {
        for call in find_calls(binary, code, &functions) {
            if let Some(site) = find_site(binary, code, call, module) {
                found.insert((site.inner.start, site.inner.end), site);
            }
        }
    }
    Scan {
        hints,
        hint_functions: functions.len() as u64,
        hints_outside_loops: outside,
        loops: found.into_values().collect(),
    }
}

/// Describes the loop around a hint, or around a call of a function that hints.
fn find_site(binary: &Binary, code: &Code, address: u64, module: &str) -> Option<Site> {
    let nest = loops_at(code, address);
    let inner = nest.first().filter(|inner| inner.hints > 0)?.clone();
    let is_blind = inner.kind == LoopKind::BlindDelay;
    let around = nest.iter().skip(1);
    let outer = around
        .filter(|_| is_blind)
        .find(|outer| matches!(outer.kind, LoopKind::Polling | LoopKind::Yielding))
        .cloned();
    let joined = outer.as_ref().and_then(|outer| outer.gap);
    let function = binary.function_at(inner.start);
    let named = function.map(|one| (demangle(&one.name), inner.start - one.start));
    let symbols: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let candidates = identify(&Evidence {
        found: Some(&inner),
        symbols: &symbols,
        module: Some(module),
        modules: &[],
    });
    Some(Site {
        gap: joined.or(inner.gap),
        outer,
        function: named,
        candidates,
        inner,
    })
}

/// Finds the addresses of hints.
fn find_hints(binary: &Binary, code: &Code) -> Vec<u64> {
    let candidates = match code.arch {
        Arch::X86_64 => find_x86_candidates(&code.bytes),
        Arch::Aarch64 => (0..code.bytes.len()).step_by(4).collect(),
    };
    let mut starts = InstructionStarts::default();
    candidates
        .into_iter()
        .map(|offset| code.start.saturating_add(offset as u64))
        .filter(|&address| operation_at(code, address).is_some_and(|one| one.is_hint))
        .filter(|&address| starts.contains(binary, code, address))
        .collect()
}

/// Finds the offsets of bytes that may be PAUSE, TPAUSE or UMWAIT.
fn find_x86_candidates(bytes: &[u8]) -> Vec<usize> {
    let is_candidate = |window: &[u8]| match window {
        [0xf3, 0x90, ..] => true,
        [0x66 | 0xf2, 0x0f, 0xae, last] => *last >= 0xf0 && *last < 0xf8,
        _ => false,
    };
    let mut found: Vec<usize> = Vec::new();
    for offset in 0..bytes.len() {
        let end = bytes.len().min(offset + 4);
        if matches!(bytes[offset], 0xf3 | 0x66 | 0xf2) && is_candidate(&bytes[offset..end]) {
            found.push(offset);
        }
    }
    found
}

/// Instruction starts in the functions decoded so far.
#[derive(Default)]
struct InstructionStarts {
    by_function: HashMap<u64, BTreeSet<u64>>,
}

impl InstructionStarts {
    fn contains(&mut self, binary: &Binary, code: &Code, address: u64) -> bool {
        let function = binary
            .function_at(address)
            .filter(|one| one.size > 0 && one.size <= MAX_FUNCTION_BYTES)
            .filter(|one| code.holds(one.start));
        let Some(function) = function else {
            return begins_at(code, address);
        };
        let (start, end) = (function.start, function.start.saturating_add(function.size));
        let known = self
            .by_function
            .entry(start)
            .or_insert_with(|| decode_starts(code, start, end));
        known.contains(&address)
    }
}

/// Decodes the instruction starts of a function.
fn decode_starts(code: &Code, from: u64, to: u64) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut at = from;
    while at < to.min(code.end()) {
        found.insert(at);
        at = at.saturating_add(length_at(code, at).unwrap_or(1) as u64);
    }
    found
}

/// Finds the beginning of a function that only hints and returns: that of the symbol, or the hint
/// itself.
fn find_hint_function(binary: &Binary, code: &Code, hint: u64) -> Option<u64> {
    let start = binary.function_at(hint).map_or(hint, |one| one.start);
    let start = if code.holds(start) { start } else { hint };
    is_hint_function(code, start).then_some(start)
}

/// Finds the addresses of direct calls of some functions.
fn find_calls(binary: &Binary, code: &Code, functions: &BTreeSet<u64>) -> Vec<u64> {
    if functions.is_empty() {
        return Vec::new();
    }
    let step = match code.arch {
        Arch::X86_64 => 1,
        Arch::Aarch64 => 4,
    };
    let mut starts = InstructionStarts::default();
    (0..code.bytes.len())
        .step_by(step)
        .filter_map(|offset| find_call(code, offset))
        .filter(|(_, target)| functions.contains(target))
        .map(|(address, _)| address)
        .filter(|&address| starts.contains(binary, code, address))
        .collect()
}

/// The address of a direct call at an offset, and its target.
fn find_call(code: &Code, offset: usize) -> Option<(u64, u64)> {
    let address = code.start.saturating_add(offset as u64);
    let bytes = code.bytes.get(offset..)?;
    match code.arch {
        Arch::X86_64 if bytes[0] == 0xe8 => {
            let distance: [u8; 4] = bytes.get(1..5)?.try_into().ok()?;
            let distance = i64::from(i32::from_le_bytes(distance));
            Some((address, address.wrapping_add_signed(5 + distance)))
        }
        Arch::X86_64 => None,
        Arch::Aarch64 => match operation_at(code, address)?.flow {
            pinwise_code::Flow::Call(Some(target)) => Some((address, target)),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_code::elf::Function;

    fn binary(bytes: &[u8], functions: &[(u64, u64, &str)]) -> Binary {
        Binary {
            arch: Arch::X86_64,
            sections: vec![Code {
                arch: Arch::X86_64,
                start: 0x1000,
                bytes: bytes.to_vec(),
            }],
            functions: functions
                .iter()
                .map(|&(start, size, name)| Function {
                    start,
                    size,
                    name: name.to_owned(),
                })
                .collect(),
            build_id: None,
        }
    }

    /// A constant that contains PAUSE's bytes, a function that hints, its caller, and a counted
    /// delay within a loop that looks.
    const BYTES: [u8; 50] = [
        0xb8, 0xf3, 0x90, 0xf3, 0x90, // 0: mov eax, 0x90f390f3
        0xc3, 0x90, 0x90, // 5: ret
        0xf3, 0x90, 0xc3, // 8: pause; ret
        0x90, 0x90, 0x90, 0x90, 0x90, // b
        0xe8, 0xf3, 0xff, 0xff, 0xff, // 10: call 8
        0x83, 0x3f, 0x00, // 15: cmp dword [rdi], 0
        0x74, 0xf6, // 18: je 10
        0xc3, 0x90, // 1a: ret
        0xb9, 0x1e, 0x00, 0x00, 0x00, // 1c: mov ecx, 30
        0xf3, 0x90, // 21: pause
        0xff, 0xc9, // 23: dec ecx
        0x75, 0xfa, // 25: jne 21
        0x83, 0x3f, 0x00, // 27: cmp dword [rdi], 0
        0x74, 0xf0, // 2a: je 1c
        0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, // 2c: ret
    ];

    #[test]
    fn hints_calls_of_hints_and_nested_delays_are_found() {
        let functions = [
            (0x1000, 6, "constant"),
            (0x1008, 3, "hint"),
            (0x1010, 11, "caller"),
            (0x101c, 17, "_ZN5delay3runEv"),
        ];
        let found = scan(&binary(&BYTES, &functions), "a.out");
        assert_eq!((found.hints, found.hint_functions), (2, 1));
        assert_eq!(found.hints_outside_loops, 0);
        let [caller, delay] = &found.loops[..] else {
            panic!("{:?}", found.loops);
        };
        assert_eq!(caller.inner.kind, LoopKind::Polling);
        assert_eq!((caller.gap, caller.inner.start), (Some(1), 0x1010));
        assert_eq!(delay.inner.kind, LoopKind::BlindDelay);
        assert_eq!(delay.gap, Some(30));
        assert!(delay.outer.as_ref().is_some_and(|outer| outer.looks == 1));
        assert_eq!(delay.function, Some(("delay::run()".to_owned(), 5)));
    }

    /// A damaged file may claim that its code ends at the last address.
    #[test]
    fn code_at_the_end_of_all_addresses_is_scanned() {
        let mut binary = binary(&BYTES, &[(u64::MAX - 20, u64::MAX, "last")]);
        binary.sections[0].start = u64::MAX - 30;
        assert!(scan(&binary, "a.out").hints <= 3);
    }

    #[test]
    fn without_symbols_the_same_loops_are_found() {
        let found = scan(&binary(&BYTES, &[]), "a.out");
        let starts: Vec<u64> = found.loops.iter().map(|one| one.inner.start).collect();
        assert_eq!(starts, [0x1010, 0x1021], "{found:?}");
        assert!(found.loops.iter().all(|one| one.function.is_none()));
    }
}
