//! The code in front of an address: where counters get their first values.
//!
//! x86 code cannot be read backwards, but decoding from several earlier starts
//! soon falls in step with the true instructions; those that most starts agree
//! on are taken. It refuses to look further than a few dozen bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::code::{Arch, Code, Operation, operation_at};

/// Bytes in front that are looked at.
const REACH: u64 = 96;
/// Instructions at most.
const MOST: usize = 24;

/// The instructions that end at an address, in order.
pub(super) fn in_front_of(code: &Code, address: u64) -> Vec<Operation> {
    let mut found = match code.arch {
        Arch::X86_64 => agreed(code, address),
        Arch::Aarch64 => (1..=MOST as u64)
            .map_while(|words| operation_at(code, address.checked_sub(4 * words)?))
            .collect(),
    };
    found.reverse();
    found
}

/// Walks back along the instructions that most starts came through, the longer
/// one where they are even: its tail is easily taken for another.
fn agreed(code: &Code, address: u64) -> Vec<Operation> {
    let votes = votes(code, address);
    let mut found: Vec<Operation> = Vec::new();
    let mut end = address;
    while found.len() < MOST {
        let candidates = votes.iter().filter(|(_, (one, _))| one.end() == end);
        let Some((_, (one, _))) = candidates.max_by_key(|(at, (_, count))| (*count, Reverse(**at)))
        else {
            break;
        };
        end = one.address;
        found.push(one.clone());
    }
    found
}

/// Instructions of all runs that reach the address, and how many came through.
fn votes(code: &Code, address: u64) -> BTreeMap<u64, (Operation, u32)> {
    let mut votes: BTreeMap<u64, (Operation, u32)> = BTreeMap::new();
    for back in 1..=REACH {
        let Some(mut at) = address.checked_sub(back) else {
            break;
        };
        let mut run = Vec::new();
        while at < address {
            let Some(one) = operation_at(code, at) else {
                break;
            };
            at = one.end();
            run.push(one);
        }
        if at == address {
            for one in run {
                votes.entry(one.address).or_insert((one, 0)).1 += 1;
            }
        }
    }
    votes
}
