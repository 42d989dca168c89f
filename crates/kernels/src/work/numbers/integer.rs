//! A mix of typical systems programming: linked records, string comparison, small arrays, branches
//! on enumerations, integer arithmetic.
//!
//! The kinds of statement and their balance follow Weicker's survey of 1984, the basis of
//! Dhrystone; the statements are our own, so a rate here is not a Dhrystone rate. The final values
//! of the variables are known in closed form, as in his program. No pass can be left out: the state
//! is hidden from the compiler between passes.

use std::hint::black_box;

use super::fold_digest;
use crate::work::isa::{Version, versions};
use crate::work::{Group, Job, Kernel, KernelError, Random, Setup, Worker, Wrong};

pub(in crate::work) const INTEGER: Kernel = Kernel {
    name: "integer",
    group: Group::Integer,
    about: "records, texts, arrays and branches, as in systems programs",
    source: "after Weicker 1984, Dhrystone, Communications of the ACM 27(10); own statements",
    operation: "passes",
    size: None,
    has_versions: true,
    footprint_bytes: |_, threads| threads as u64 * size_of::<State>() as u64,
    prepare: |setup: &Setup| Ok(Box::new(Integer(setup.isa.version()))),
};

/// Passes of a unit: about 10 ms.
const PASSES: u32 = 450_000;

struct Integer(Version);

impl Job for Integer {
    fn operations_per_unit(&self) -> u64 {
        u64::from(PASSES)
    }

    fn working_set_bytes(&self) -> u64 {
        size_of::<State>() as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Mix {
            version: self.0,
            state: Box::new(State::new(0)),
        }))
    }
}

struct Mix {
    version: Version,
    state: Box<State>,
}

impl Worker for Mix {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let seed = (Random::for_unit(unit).next() >> 33) as u32;
        *self.state = State::new(seed);
        run_passes(self.version, &mut self.state, PASSES);
        self.state.check(seed, PASSES)?;
        Ok(self.state.digest())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Idle,
    Ready,
    Running,
    Waiting,
    Done,
}

/// Bytes of a text.
const TEXT: usize = 30;

#[derive(Debug, Clone)]
struct Record {
    /// Place of the next one.
    next: usize,
    kind: Kind,
    number: u32,
    text: [u8; TEXT],
}

/// Numbers of a row.
const ROW: usize = 50;

/// All variables of the program.
#[derive(Debug, Clone)]
struct State {
    records: [Record; 2],
    row: [u32; ROW],
    table: [[u32; ROW]; ROW],
    /// Passes in which texts were as expected.
    ordered: u32,
    /// Turns of the inner loop.
    turns: u32,
    /// Depends on the order of all passes.
    chain: u32,
    /// Depends on all turns.
    distances: u32,
    quotients: u64,
    letter: u8,
    kinds: [u32; 5],
}

const FIRST_TEXT: [u8; TEXT] = *b"THREADS OF THE FIRST KIND HERE";
const SECOND_TEXT: [u8; TEXT] = *b"THREADS OF THE FIRST SORT HERE";

impl State {
    const fn new(seed: u32) -> Self {
        let record = Record {
            next: 1,
            kind: Kind::Idle,
            number: 0,
            text: FIRST_TEXT,
        };
        Self {
            records: [
                record,
                Record {
                    next: 0,
                    kind: Kind::Idle,
                    number: 0,
                    text: SECOND_TEXT,
                },
            ],
            row: [0; ROW],
            table: [[0; ROW]; ROW],
            ordered: 0,
            turns: 0,
            chain: seed,
            distances: 0,
            quotients: 0,
            letter: b'A',
            kinds: [0; 5],
        }
    }

    /// Compares the variables with their known values.
    fn check(&self, seed: u32, passes: u32) -> Result<(), Wrong> {
        let diagonal: u32 = (0..ROW).map(|at| self.table[at][at]).sum();
        if self.ordered != passes || diagonal != passes || self.turns != 3 * passes {
            return Err("a counter does not hold the number of passes");
        }
        if self.kinds.iter().sum::<u32>() != passes || self.kinds[0].abs_diff(passes / 5) > 1 {
            return Err("the kinds of records did not take turns");
        }
        if self.quotients != sum_quotients(passes) {
            return Err("the sum of quotients is another");
        }
        if self.chain != jump_ahead(seed, passes) {
            return Err("the chain of products ends elsewhere");
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let numbers = self.row.iter().copied().map(u64::from);
        let others = [
            u64::from(self.chain),
            self.quotients,
            u64::from(self.distances),
            u64::from(self.letter),
            u64::from(self.records[0].number),
        ];
        numbers.chain(others).fold(0, fold_digest)
    }
}

/// The sum of ⌊7i/3⌋ − 2i = ⌊i/3⌋ for i up to `passes`, not included.
fn sum_quotients(passes: u32) -> u64 {
    let passes = u64::from(passes);
    let whole = passes / 3;
    3 * (whole * whole.saturating_sub(1) / 2) + whole * (passes % 3)
}

/// A linear congruential generator (Knuth and Lewis).
const FACTOR: u32 = 1_664_525;
const SUMMAND: u32 = 1_013_904_223;

/// The value of x ← `FACTOR`·x + `SUMMAND` after this many steps, by squaring the step.
fn jump_ahead(seed: u32, mut steps: u32) -> u32 {
    let (mut factor, mut summand, mut value) = (FACTOR, SUMMAND, seed);
    while steps > 0 {
        if steps % 2 == 1 {
            value = value.wrapping_mul(factor).wrapping_add(summand);
        }
        summand = summand.wrapping_mul(factor).wrapping_add(summand);
        factor = factor.wrapping_mul(factor);
        steps /= 2;
    }
    value
}

versions! { fn run_passes(state: &mut State, count: u32) = run_passes_body; }

#[inline(always)]
fn run_passes_body(state: &mut State, count: u32) {
    for pass in 0..count {
        let state = black_box(&mut *state);
        compare_texts(state);
        run_loop(state, pass);
        fill_arrays(state, pass);
        copy_record(state, pass);
        compute_products(state, pass);
    }
}

/// Compares two texts, and finds a letter in one of them.
#[inline(always)]
fn compare_texts(state: &mut State) {
    let [first, second] = &state.records;
    let differs = (0..TEXT).find(|&at| first.text[at] != second.text[at]);
    let is_before = differs.is_some_and(|at| first.text[at] < second.text[at]);
    if is_before {
        state.ordered += 1;
        state.letter = if state.letter < b'Z' {
            state.letter + 1
        } else {
            b'A'
        };
    } else {
        state.letter = b'?';
    }
}

/// A loop that ends at a value: three turns, whatever the pass.
#[inline(always)]
fn run_loop(state: &mut State, pass: u32) {
    let (mut low, mut high) = (pass % 7, pass % 7 + 6);
    while low < high {
        let distance = (5 * low).wrapping_sub(high);
        (low, high) = (low + 1, high - 1);
        state.turns += 1;
        state.distances = state.distances.wrapping_mul(3).wrapping_add(distance);
    }
}

/// A row, and a place in a table.
#[inline(always)]
fn fill_arrays(state: &mut State, pass: u32) {
    let at = pass as usize % ROW;
    let value = state.chain >> 20;
    state.row[at] = value;
    state.row[(at + 1) % ROW] = state.row[at].wrapping_add(pass);
    state.table[at][at] += 1;
    for other in 0..2 {
        state.table[at][(at + 5 + other) % ROW] = value;
    }
}

/// Fills one record from the other, through its link.
#[inline(always)]
fn copy_record(state: &mut State, pass: u32) {
    let next = state.records[0].next;
    let mut copy = state.records[0].clone();
    copy.number = state.records[next].number.wrapping_add(5);
    copy.kind = next_kind(state.records[next].kind);
    copy.next = state.records[next].next;
    copy.text = state.records[next].text;
    state.kinds[copy.kind as usize] += 1;
    if copy.kind == Kind::Running {
        copy.number ^= pass;
    }
    state.records[next] = copy;
    state.records[0].number = state.records[next].number.rotate_left(1);
}

#[inline(always)]
const fn next_kind(kind: Kind) -> Kind {
    match kind {
        Kind::Idle => Kind::Ready,
        Kind::Ready => Kind::Running,
        Kind::Running => Kind::Waiting,
        Kind::Waiting => Kind::Done,
        Kind::Done => Kind::Idle,
    }
}

/// Dependent products, and a quotient.
#[inline(always)]
fn compute_products(state: &mut State, pass: u32) {
    state.chain = state.chain.wrapping_mul(FACTOR).wrapping_add(SUMMAND);
    let product = 7 * u64::from(pass);
    let quotient = product / u64::from(black_box(3u32));
    state.quotients += quotient - 2 * u64::from(pass);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_equal_the_results_of_passes() {
        for count in [0, 1, 2, 3, 4, 5, 99, 1000, 12_345] {
            let mut state = State::new(77);
            run_passes(Version::V1, &mut state, count);
            assert_eq!(state.check(77, count), Ok(()), "{count}");
        }
    }

    #[test]
    fn an_extra_pass_or_a_wrong_variable_is_detected() {
        let mut state = State::new(77);
        run_passes(Version::V1, &mut state, 100);
        assert!(state.check(77, 99).is_err() && state.check(78, 100).is_err());
        state.quotients += 1;
        assert!(state.check(77, 100).is_err());
    }
}
