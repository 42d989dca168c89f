//! The control flow around an address, and the loops in it.
//!
//! Everything in a loop around an address can be reached from that address, so code is decoded along
//! its flow from there. No start has to be guessed, and loops with distant cold parts are complete.
//! Calls and computed jumps are not followed.

use std::collections::{BTreeMap, VecDeque};

use pinwise_code::{Code, Flow, Operation, Question, Registers, operation_at};

/// Bytes before and after the address to examine.
const REACH: u64 = 4096;
/// Limits the instructions that are followed.
const MAX_INSTRUCTIONS: usize = 2000;
/// Instructions of the largest loop that could still be a wait.
pub(super) const MAX_LOOP_INSTRUCTIONS: usize = 300;
/// Limits the edges tried as the one that closes a loop.
const MAX_EDGES: usize = 400;

/// Instructions and their successors, by index; ordered by address.
#[derive(Debug)]
pub(super) struct Graph {
    /// The instructions' effects.
    pub(super) operations: Vec<Operation>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

/// Instructions of a loop: indices into the graph, ascending.
pub(super) type Members = Vec<usize>;

impl Graph {
    /// Decodes the code reachable from an address.
    pub(super) fn decode_from(code: &Code, address: u64) -> Option<Self> {
        let near = address.saturating_sub(REACH)..address.saturating_add(REACH);
        let mut found: BTreeMap<u64, Operation> = BTreeMap::new();
        let mut next = VecDeque::from([address]);
        while let Some(at) = next.pop_front() {
            if found.len() >= MAX_INSTRUCTIONS || !near.contains(&at) || found.contains_key(&at) {
                continue;
            }
            let Some(operation) = operation_at(code, at) else {
                continue;
            };
            next.extend(successors(&operation));
            found.insert(at, operation);
        }
        found
            .contains_key(&address)
            .then(|| Self::link_edges(found))
    }

    fn link_edges(found: BTreeMap<u64, Operation>) -> Self {
        let indices: BTreeMap<u64, usize> = found.keys().copied().zip(0..).collect();
        let mut before = vec![Vec::new(); found.len()];
        let mut after = vec![Vec::new(); found.len()];
        for (index, operation) in found.values().enumerate() {
            let repeats = repeats_exclusive(&found, operation);
            let ahead = successors(operation).filter(|&to| !repeats || to == operation.end());
            for successor in ahead {
                if let Some(&to) = indices.get(&successor) {
                    before[to].push(index);
                    after[index].push(to);
                }
            }
        }
        Self {
            operations: found.into_values().collect(),
            before,
            after,
        }
    }

    /// The instruction at an address.
    pub(super) fn index(&self, address: u64) -> Option<usize> {
        self.operations
            .binary_search_by_key(&address, |operation| operation.address)
            .ok()
    }

    /// The predecessors of an instruction.
    pub(super) fn predecessors(&self, index: usize) -> &[usize] {
        &self.before[index]
    }

    /// The first and the last of the instructions around one that always run in sequence. An
    /// instruction in `entries` starts a new sequence.
    pub(super) fn straight_run(&self, index: usize, entries: &[u64]) -> (usize, usize) {
        let follows = |from: usize, to: usize| {
            let is_only = |edges: &[Vec<usize>], of: usize, other: usize| {
                edges.get(of).is_some_and(|one| one.as_slice() == [other])
            };
            is_only(&self.after, from, to)
                && is_only(&self.before, to, from)
                && !entries.contains(&self.operations[to].address)
        };
        let (mut first, mut last) = (index, index);
        while first > 0 && follows(first - 1, first) {
            first -= 1;
        }
        while follows(last, last + 1) {
            last += 1;
        }
        (first, last)
    }

    /// Loops within the largest one around an instruction that contain it or a hint, smallest
    /// first; the largest one comes last.
    pub(super) fn find_loops(&self, around: usize) -> Vec<Members> {
        let all: Members = (0..self.operations.len()).collect();
        let Some(whole) = self.find_cycle(around, &all, None) else {
            return Vec::new();
        };
        let mut found = self.find_natural_loops(&whole);
        self.divide_cycle(around, whole, &mut found);
        found.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        found.dedup();
        found
    }

    /// Finds the loop and the loops within it, by removing the edges back to its first instruction,
    /// and so on within the rest (Steensgaard 1993; loops that are entered in their middle are
    /// fine).
    fn divide_cycle(&self, around: usize, whole: Members, found: &mut Vec<Members>) {
        let mut next = vec![whole];
        while let Some(members) = next.pop() {
            let header = members[0];
            let hints = members.iter().copied();
            let hints = hints.filter(|&member| self.operations[member].is_hint);
            let mut parts: Vec<Members> = Vec::new();
            for of in hints.chain([around]).filter(|&of| holds(&members, of)) {
                if parts.iter().any(|part| holds(part, of)) {
                    continue;
                }
                parts.extend(self.find_cycle(of, &members, Some(header)));
            }
            next.extend(parts);
            found.push(members);
        }
    }

    /// Instructions that both lead to one and come from it, within `within` and avoiding a header;
    /// `None` if it does not lead back to itself.
    fn find_cycle(&self, of: usize, within: &Members, header: Option<usize>) -> Option<Members> {
        if Some(of) == header {
            return None;
        }
        let without = |index: usize| Some(index) != header && holds(within, index);
        let back = find_reachable(of, &self.before, without);
        let ahead = find_reachable(of, &self.after, without);
        let members: Members = back.into_iter().filter(|one| holds(&ahead, *one)).collect();
        let leads_to_itself = self.before[of].contains(&of);
        (members.len() > 1 || leads_to_itself).then_some(members)
    }

    /// Loops closed by one backward edge and entered only at its target; those with one target are
    /// joined, one after the other.
    fn find_natural_loops(&self, whole: &Members) -> Vec<Members> {
        let mut found: Vec<Members> = Vec::new();
        let mut edges = 0;
        for &header in whole {
            let back = self.before[header].iter().copied();
            let mut loops: Vec<Members> = back
                .filter(|&from| from >= header && holds(whole, from))
                .take(MAX_EDGES - edges)
                .filter_map(|from| self.find_leading_to(from, header))
                .filter(|members| self.is_entered_at(header, members, whole))
                .collect();
            edges = (edges + loops.len()).min(MAX_EDGES);
            loops.sort_by_key(Vec::len);
            let mut joined = Members::new();
            for members in loops {
                joined.extend(members);
                joined.sort_unstable();
                joined.dedup();
                found.push(joined.clone());
            }
        }
        found
    }

    /// Loops around an instruction that one backward edge closes and that lie between its ends,
    /// wherever they are entered. Compilers enter a loop at its condition, and the code after a
    /// success may lead back to the same place, but is not executed while the loop waits.
    pub(super) fn loops_between_ends(&self, around: usize) -> Vec<Members> {
        let mut found: Vec<Members> = Vec::new();
        for header in around.saturating_sub(MAX_LOOP_INSTRUCTIONS)..=around {
            for &from in &self.before[header] {
                if from < around
                    || from - header > MAX_LOOP_INSTRUCTIONS
                    || found.len() >= MAX_EDGES
                {
                    continue;
                }
                let is_between = |index: usize| (header..=from).contains(&index);
                let ahead = find_reachable(header, &self.after, is_between);
                let back = find_reachable(from, &self.before, is_between);
                let members: Members = back.into_iter().filter(|one| holds(&ahead, *one)).collect();
                if holds(&members, around) {
                    found.push(members);
                }
            }
        }
        found
    }

    /// The instructions between the ends of each backward edge in a loop, except edges to its first
    /// instruction.
    pub(super) fn loops_within(&self, members: &Members) -> Vec<Members> {
        let mut found: Vec<Members> = Vec::new();
        for &header in members.iter().skip(1) {
            let back = self.before[header].iter();
            for &from in back.filter(|&&from| from >= header && holds(members, from)) {
                let is_between = |member: &&usize| (header..=from).contains(*member);
                found.push(members.iter().filter(is_between).copied().collect());
            }
        }
        found
    }

    /// The hint right before an instruction, if there is one.
    pub(super) fn hint_before(&self, index: usize) -> Option<usize> {
        let before = index.checked_sub(1)?;
        let hint = &self.operations[before];
        let is_behind = hint.is_hint && hint.end() == self.operations[index].address;
        is_behind.then_some(before)
    }

    /// Do all paths from the rest of a larger loop lead to the header first?
    fn is_entered_at(&self, header: usize, members: &Members, whole: &Members) -> bool {
        let others = members.iter().filter(|&&member| member != header);
        let mut entries = others.flat_map(|&member| &self.before[member]);
        entries.all(|from| holds(members, *from) || !holds(whole, *from))
    }

    /// Instructions that lead to one without passing the header, both included; `None` if they are
    /// too many for a wait.
    fn find_leading_to(&self, to: usize, header: usize) -> Option<Members> {
        let mut is_in = vec![false; self.operations.len()];
        is_in[header] = true;
        let mut members: Members = vec![header];
        let mut next = vec![to];
        while let Some(index) = next.pop() {
            if !std::mem::replace(&mut is_in[index], true) {
                members.push(index);
                next.extend(&self.before[index]);
            }
            if members.len() > MAX_LOOP_INSTRUCTIONS {
                return None;
            }
        }
        members.sort_unstable();
        Some(members)
    }
}

/// Is the instruction among them?
fn holds(members: &Members, index: usize) -> bool {
    members.binary_search(&index).is_ok()
}

/// All instructions reachable from one, including itself.
fn find_reachable(from: usize, edges: &[Vec<usize>], may: impl Fn(usize) -> bool) -> Members {
    let mut is_in = vec![false; edges.len()];
    is_in[from] = true;
    let mut next = vec![from];
    let mut members: Members = Vec::new();
    while let Some(index) = next.pop() {
        members.push(index);
        for &to in &edges[index] {
            if !is_in[to] && may(to) {
                is_in[to] = true;
                next.push(to);
            }
        }
    }
    members.sort_unstable();
    members
}

/// Does a branch only try an exclusive store of arm64 again? LL/SC is one atomic
/// operation, not a loop.
fn repeats_exclusive(found: &BTreeMap<u64, Operation>, branch: &Operation) -> bool {
    let Some(Question::Zero(status, _)) = branch.condition.map(|asked| asked.question) else {
        return false;
    };
    let before = branch.address.checked_sub(4).and_then(|at| found.get(&at));
    before.is_some_and(|store| {
        let stores = store
            .access
            .is_some_and(|access| access.writes && !access.reads);
        store.is_locked && stores && store.length == 4 && store.written == Registers::one(status)
    })
}

/// The successors of an instruction; calls are assumed to return.
fn successors(operation: &Operation) -> impl Iterator<Item = u64> {
    let end = operation.end();
    let (first, second) = match operation.flow {
        Flow::Next | Flow::Call(_) | Flow::System => (Some(end), None),
        Flow::Jump(to) => (to, None),
        Flow::Branch(to) => (Some(end), Some(to)),
        Flow::Return | Flow::Stop => (None, None),
    };
    first.into_iter().chain(second)
}
