//! Decodes the code before an address. It sets the first values of counters, and shows whether an
//! instruction begins at the address.
//!
//! x86 code cannot be decoded backwards. Decoding from a wrong earlier start soon resynchronises with
//! the true instructions, so several starts are tried, and the instructions that most of them agree
//! on are taken. Only a few dozen bytes are examined.

use std::collections::BTreeMap;

use pinwise_code::{Arch, Code, Operation, length_at, operation_at};

/// Bytes before the address to examine.
const REACH: u64 = 96;
/// Limits the instructions.
const MAX_INSTRUCTIONS: usize = 24;

/// The instructions that end at an address, in order.
pub(super) fn decode_before(code: &Code, address: u64) -> Vec<Operation> {
    let mut starts: Vec<u64> = match code.arch {
        Arch::X86_64 => follow_most_starts(code, address),
        Arch::Aarch64 => (1..=MAX_INSTRUCTIONS as u64)
            .map_while(|words| address.checked_sub(4 * words))
            .collect(),
    };
    starts.reverse();
    let all = starts.into_iter();
    all.filter_map(|start| operation_at(code, start)).collect()
}

/// Does an instruction begin at an address of the code, according to most earlier starts? True also
/// if nothing precedes it.
pub(super) fn begins_at(code: &Code, address: u64) -> bool {
    if code.arch == Arch::Aarch64 {
        return address.is_multiple_of(4) && code.holds(address);
    }
    let (mut lands, mut passes) = (0u32, 0u32);
    for back in 1..=REACH {
        let Some(mut at) = address.checked_sub(back) else {
            break;
        };
        while at < address {
            let Some(length) = length_at(code, at) else {
                break;
            };
            at = at.saturating_add(length as u64);
        }
        lands += u32::from(at == address);
        passes += u32::from(at > address);
    }
    code.holds(address) && lands >= passes
}

/// Walks back along the instructions that most starts reached. In a tie the longer one is taken,
/// since its tail is easily taken for another instruction.
fn follow_most_starts(code: &Code, address: u64) -> Vec<u64> {
    let votes = collect_votes(code, address);
    let mut found: Vec<u64> = Vec::new();
    let mut end = address;
    while found.len() < MAX_INSTRUCTIONS {
        let before = votes.range(..end).rev();
        let ending = before.filter(|(start, vote)| start.saturating_add(vote.length) == end);
        // They come backwards; in a tie the last and longest is taken.
        let Some((start, _)) = ending.max_by_key(|(_, vote)| vote.count) else {
            break;
        };
        end = *start;
        found.push(end);
    }
    found
}

/// An instruction that some starts reached.
#[derive(Debug, Clone, Copy, Default)]
struct Vote {
    length: u64,
    count: u32,
}

/// Collects the instructions of all attempts that reach the address, by their start.
fn collect_votes(code: &Code, address: u64) -> BTreeMap<u64, Vote> {
    let mut votes: BTreeMap<u64, Vote> = BTreeMap::new();
    let mut run: Vec<(u64, u64)> = Vec::new();
    for back in 1..=REACH {
        let Some(mut at) = address.checked_sub(back) else {
            break;
        };
        run.clear();
        while at < address {
            let Some(length) = length_at(code, at) else {
                break;
            };
            run.push((at, length as u64));
            at = at.saturating_add(length as u64);
        }
        if at == address {
            for &(start, length) in &run {
                let vote = votes.entry(start).or_default();
                vote.length = length;
                vote.count += 1;
            }
        }
    }
    votes
}
