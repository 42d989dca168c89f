//! Finds the loop around a hot address, and classifies how it waits.
//!
//! Samples of a spinning thread fall right after its PAUSE. The loop around that address is decoded
//! from its bytes, without symbols. A polling loop reads memory or the clock between hints, a blind
//! delay counts hints, a bare load reads without a hint.

mod classify;
mod count;
mod front;
mod graph;

use std::collections::BTreeSet;

use graph::{Graph, Members};
use pinwise_code::{Arch, Code, Flow, Operation, Owner, operation_at};

/// The kind of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoopKind {
    /// Hints between looks at memory or the clock, or between calls of functions that may look.
    Polling,
    /// Hints without looking; also by the clock, if a loop around it reads memory.
    BlindDelay,
    /// Only reads the same memory or the clock, without a hint.
    BareLoad,
    /// Yields the CPU between looks (`sched_yield`).
    Yielding,
    /// Repeats a system call without result; known from samples, never from code.
    Asking,
    /// Anything else.
    Work,
}

/// A loop in machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpinLoop {
    /// What it does.
    pub kind: LoopKind,
    /// Address of its first instruction.
    pub start: u64,
    /// The first address after its backward branch.
    pub end: u64,
    /// Instructions of one iteration, straight through.
    pub instructions: usize,
    /// Hints of one iteration, including those of called functions (`pause; ret`).
    pub hints: u32,
    /// Reads of shared memory, not of the stack.
    pub looks: u32,
    /// Locked instructions (x86: LOCK or XCHG; arm64: exclusives and LSE
    /// atomics).
    pub locked: u32,
    /// System calls.
    pub system_calls: u32,
    /// Address ranges of instructions that use what earlier turns left in memory or in vector
    /// registers (a sum among the locals, an atomic count), or leave a result in shared memory.
    /// General registers may not show such progress.
    pub hidden_progress: Vec<(u64, u64)>,
    /// Functions that it calls, except those that only hint, sorted.
    pub calls: Vec<u64>,
    /// Calls of functions not named in the code, such as those through a table.
    pub computed_calls: u32,
    /// Addresses of its hints, and of its calls of functions that only hint, sorted.
    pub hinting: Vec<u64>,
    /// Does one of its hints last until a deadline?
    pub has_deadline: bool,
    /// Hints executed from one look to the next if the code determines it: a polling loop's own, or
    /// the counted inner delay of a loop that looks.
    pub gap: Option<u64>,
    /// Immediate operands and factors of LEA of all loops around the address and of the code before
    /// each, sorted; the same for every loop of a nest.
    pub constants: Vec<u64>,
}

/// Limits the reported loops around an address.
const MAX_LOOPS: usize = 6;
/// Limits the instructions of a function that only hints.
const MAX_HINT_FUNCTION_INSTRUCTIONS: usize = 12;

/// Finds the innermost loop around an address. An address within a function that only hints and
/// returns (`pause; ret`) is in no loop: use its return address instead.
#[must_use]
pub fn loop_at(code: &Code, address: u64) -> Option<SpinLoop> {
    loops_at(code, address).into_iter().next()
}

/// Finds all loops around an address, innermost first. Code within 4 KiB on both sides is examined;
/// a loop through a computed jump is not found. If a hint ends at the address, the loops are those of
/// the hint: a thread in a hint is sampled after it.
#[must_use]
pub fn loops_at(code: &Code, address: u64) -> Vec<SpinLoop> {
    let Some(graph) = Graph::decode_from(code, address) else {
        return Vec::new();
    };
    let Some(around) = graph.index(address) else {
        return Vec::new();
    };
    let around = graph.hint_before(around).unwrap_or(around);
    let mut all = graph.find_loops(around);
    let bare = graph
        .loops_between_ends(around)
        .into_iter()
        .filter(|members| {
            let mut operations = members.iter().map(|&member| &graph.operations[member]);
            !operations.any(|one| one.is_hint) && is_bare_load(code.arch, &graph, members)
        });
    all.extend(bare);
    all.sort_by_key(Vec::len);
    let nest = find_nest(&all, around);
    let mut constants = Vec::new();
    for members in &nest {
        let first = graph.operations[members[0]].address;
        let inside = members.iter().map(|&member| &graph.operations[member]);
        constants.extend(inside.flat_map(|one| one.constants.clone()));
        let front = front::decode_before(code, first);
        constants.extend(front.iter().flat_map(|one| one.constants.clone()));
    }
    constants.sort_unstable();
    constants.dedup();
    let loops = nest.iter().map(|members| LoopView {
        code,
        graph: &graph,
        all: &all,
        members,
    });
    loops.map(|one| one.describe(constants.clone())).collect()
}

/// Does the loop only look, over and over? The progress of an inner loop is invisible from outside,
/// so inner loops are checked as well.
fn is_bare_load(arch: Arch, graph: &Graph, members: &Members) -> bool {
    let analyse = |members: &Members| {
        let operations = members.iter().map(|&member| &graph.operations[member]);
        classify::analyse_turn(arch, &operations.collect::<Vec<_>>())
    };
    let works = |inner: &Members| analyse(inner).works();
    analyse(members).is_bare_load(members.len()) && !graph.loops_within(members).iter().any(works)
}

/// Finds the loops around an instruction that are each within the next.
fn find_nest(all: &[Members], around: usize) -> Vec<&Members> {
    let mut nest: Vec<&Members> = Vec::new();
    for members in all {
        let is_around = members.binary_search(&around).is_ok();
        let holds_last = nest.last().is_none_or(|last| is_within(last, members));
        if is_around && holds_last && nest.len() < MAX_LOOPS {
            nest.push(members);
        }
    }
    nest
}

/// Is one loop a part of another?
fn is_within(inner: &Members, outer: &Members) -> bool {
    let are_in = |member: &usize| outer.binary_search(member).is_ok();
    inner.len() < outer.len() && inner.iter().all(are_in)
}

/// Does a function only hint and return, from this address on? A stop after its hint counts as
/// well.
#[must_use]
pub fn is_hint_function(code: &Code, address: u64) -> bool {
    find_hint_of_function(code, address).is_some()
}

/// Finds the hint of a function that only hints and returns.
fn find_hint_of_function(code: &Code, address: u64) -> Option<Operation> {
    let mut hint = find_hint_ending_at(code, address);
    let mut at = address;
    for _ in 0..MAX_HINT_FUNCTION_INSTRUCTIONS {
        let operation = operation_at(code, at)?;
        let touches = operation
            .access
            .is_some_and(|access| access.owner == Owner::Shared || operation.is_locked);
        match operation.flow {
            Flow::Return => return hint,
            Flow::Next if !touches => at = operation.end(),
            _ => return None,
        }
        if operation.is_hint {
            hint = Some(operation);
        }
    }
    None
}

fn find_hint_ending_at(code: &Code, address: u64) -> Option<Operation> {
    let lengths: &[u64] = match code.arch {
        // PAUSE; TPAUSE and UMWAIT, without and with a REX prefix.
        Arch::X86_64 => &[2, 4, 5],
        Arch::Aarch64 => &[4],
    };
    lengths.iter().find_map(|length| {
        let before = address.checked_sub(*length)?;
        operation_at(code, before).filter(|one| one.is_hint && one.end() == address)
    })
}

/// Does an instruction begin at an address, according to the preceding code?
#[must_use]
pub fn begins_at(code: &Code, address: u64) -> bool {
    front::begins_at(code, address)
}

/// A loop with its code and the other loops around.
struct LoopView<'a> {
    code: &'a Code,
    graph: &'a Graph,
    all: &'a [Members],
    members: &'a Members,
}

impl LoopView<'_> {
    fn describe(&self, constants: Vec<u64>) -> SpinLoop {
        let operations = self.operations();
        let turn = classify::analyse_turn(self.code.arch, &operations);
        let hinting: Vec<u64> = operations
            .iter()
            .filter(|one| self.hints_in(one) > 0)
            .map(|one| one.address)
            .collect();
        let has_deadline = operations.iter().any(|one| self.has_deadline(one));
        let mut calls: Vec<u64> = self.call_targets().collect();
        calls.sort_unstable();
        calls.dedup();
        let computed = operations.iter().filter(|one| one.flow == Flow::Call(None));
        let computed_calls = to_u32(computed.count());
        let is_large = operations.len() > graph::MAX_LOOP_INSTRUCTIONS;
        let calls_others = computed_calls > 0 || !calls.is_empty();
        let kind = if is_large {
            LoopKind::Work
        } else if turn.yields {
            LoopKind::Yielding
        } else if !hinting.is_empty()
            && (turn.looks > 0 || calls_others || self.waits_for_deadline(&turn))
        {
            LoopKind::Polling
        } else if !hinting.is_empty() {
            LoopKind::BlindDelay
        } else if is_bare_load(self.code.arch, self.graph, self.members) {
            LoopKind::BareLoad
        } else {
            LoopKind::Work
        };
        let gap = match kind {
            _ if has_deadline => None,
            LoopKind::Polling if !calls_others => self.hints_between_looks(&operations, &turn),
            LoopKind::BlindDelay => self.count_hints(),
            _ => None,
        };
        SpinLoop {
            kind,
            start: operations[0].address,
            end: operations[operations.len() - 1].end(),
            instructions: operations.len(),
            hints: to_u32(hinting.len()),
            looks: turn.looks,
            locked: turn.locked,
            system_calls: turn.system_calls,
            hidden_progress: self.straight_runs(&turn.hiding),
            calls,
            computed_calls,
            hinting,
            has_deadline,
            gap,
            constants,
        }
    }

    /// The straight runs of instructions that contain any of these. Compilers enter loops in their
    /// middle, at the condition: a run ends there. The cost of an atomic instruction shows at the
    /// one after it.
    fn straight_runs(&self, addresses: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        let operations = &self.graph.operations;
        let front = front::decode_before(self.code, operations[self.members[0]].address);
        let entries: Vec<u64> = front
            .iter()
            .filter_map(|one| match one.flow {
                Flow::Jump(to) => to,
                Flow::Branch(to) => Some(to),
                _ => None,
            })
            .collect();
        let indices = addresses.iter().filter_map(|&at| self.graph.index(at));
        let mut runs: Vec<(u64, u64)> = indices
            .map(|index| {
                let (first, mut last) = self.graph.straight_run(index, &entries);
                if operations[index].is_locked && last == index && last + 1 < operations.len() {
                    last += 1;
                }
                (operations[first].address, operations[last].end())
            })
            .collect();
        runs.dedup();
        runs
    }

    fn operations(&self) -> Vec<&Operation> {
        let members = self.members.iter();
        members
            .map(|&member| &self.graph.operations[member])
            .collect()
    }

    /// Does the loop wait until the clock reaches a time? In a loop that also reads memory, that only
    /// delays the next look.
    fn waits_for_deadline(&self, turn: &classify::Turn) -> bool {
        let delays_look = |outer: &Members| {
            let operations = outer.iter().map(|&member| &self.graph.operations[member]);
            let turn = classify::analyse_turn(self.code.arch, &operations.collect::<Vec<_>>());
            turn.looks > 0 && !turn.works()
        };
        let mut outer = self.all.iter().filter(|all| is_within(self.members, all));
        turn.reads_clock && !outer.any(delays_look)
    }

    /// Number of hints that an instruction executes; a call of a function that only hints counts as
    /// one.
    fn hints_in(&self, operation: &Operation) -> u64 {
        u64::from(operation.is_hint || self.called_hint(operation).is_some())
    }

    fn has_deadline(&self, operation: &Operation) -> bool {
        let called = self.called_hint(operation);
        operation.has_deadline || called.is_some_and(|hint| hint.has_deadline)
    }

    fn called_hint(&self, operation: &Operation) -> Option<Operation> {
        match operation.flow {
            Flow::Call(Some(to)) => find_hint_of_function(self.code, to),
            _ => None,
        }
    }

    fn call_targets(&self) -> impl Iterator<Item = u64> {
        self.members.iter().filter_map(|&member| {
            let operation = &self.graph.operations[member];
            match operation.flow {
                Flow::Call(Some(to)) if self.hints_in(operation) == 0 => Some(to),
                _ => None,
            }
        })
    }

    /// Counts the hints that the whole loop executes, from entry to exit.
    fn count_hints(&self) -> Option<u64> {
        let first = self.graph.operations[*self.members.first()?].address;
        let front = front::decode_before(self.code, first);
        let hints = |operation: &Operation| self.hints_in(operation);
        count::count_hints(self.code.arch, self.graph, self.members, &front, &hints)
    }

    /// Counts the hints from one look to the next: consecutive ones, and those of counted inner loops.
    fn hints_between_looks(&self, operations: &[&Operation], turn: &classify::Turn) -> Option<u64> {
        let inner: Vec<LoopView<'_>> = self.inner_delays().collect();
        let counted: Option<u64> = inner.iter().map(LoopView::count_hints).sum();
        let in_inner = |operation: &Operation| {
            let index = self.graph.index(operation.address);
            let holds = |one: &LoopView<'_>| {
                index.is_some_and(|index| one.members.binary_search(&index).is_ok())
            };
            inner.iter().any(holds)
        };
        let own = operations.iter().filter(|one| !in_inner(one));
        let own: Vec<(bool, u64)> = own
            .map(|one| (turn.looking.contains(&one.address), self.hints_in(one)))
            .collect();
        Some(counted? + max_hints_between_looks(&own))
    }

    /// The largest inner loops that hint without looking.
    fn inner_delays(&self) -> impl Iterator<Item = LoopView<'_>> {
        let within = self
            .all
            .iter()
            .rev()
            .filter(|members| is_within(members, self.members));
        let mut found: Vec<LoopView<'_>> = Vec::new();
        for members in within {
            let one = LoopView { members, ..*self };
            let operations = one.operations();
            let is_known = found.iter().any(|outer| is_within(members, outer.members));
            let hints = operations
                .iter()
                .any(|operation| one.hints_in(operation) > 0);
            if hints && !is_known && classify::analyse_turn(self.code.arch, &operations).looks == 0
            {
                found.push(one);
            }
        }
        found.into_iter()
    }
}

/// The largest number of hints between two looks, across turns of the loop. `turn` has for each
/// instruction whether it is a look, and its hints.
fn max_hints_between_looks(turn: &[(bool, u64)]) -> u64 {
    let (mut longest, mut current) = (0, 0);
    for &(looks, hints) in turn.iter().chain(turn) {
        if looks {
            current = 0;
        }
        current += hints;
        longest = longest.max(current);
    }
    let all: u64 = turn.iter().map(|(_, hints)| hints).sum();
    longest.min(all)
}

fn to_u32(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod loops_tests;
