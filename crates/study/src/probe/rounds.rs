//! Chooses which pairs are measured at the same time.

use std::collections::{BTreeSet, VecDeque};

/// How far ahead a round looks for pairs whose CPUs are free, in multiples of its width.
const WINDOW: usize = 8;

/// All pairs of `0..n` in the order of a round-robin tournament (the circle method): `n / 2` pairs in
/// a row have every number at most once.
pub(super) fn tournament(n: usize) -> Vec<(usize, usize)> {
    let slots = n + n % 2;
    let mut pairs = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for round in 0..slots.saturating_sub(1) {
        for slot in 0..slots / 2 {
            let place = |k: usize| match k {
                0 => 0,
                k => 1 + (k - 1 + round) % (slots - 1),
            };
            let (a, b) = (place(slot), place(slots - 1 - slot));
            if a < n && b < n {
                pairs.push((a.min(b), a.max(b)));
            }
        }
    }
    pairs
}

/// Splits pairs into rounds of at most `width` pairs that have no number in common, keeping their
/// order where possible.
pub(super) fn schedule_rounds(pairs: &[(usize, usize)], width: usize) -> Vec<Vec<(usize, usize)>> {
    let width = width.max(1);
    let mut waiting: VecDeque<(usize, usize)> = pairs.iter().copied().collect();
    let mut rounds = Vec::new();
    while !waiting.is_empty() {
        let mut busy = BTreeSet::new();
        let mut round = Vec::with_capacity(width);
        let mut postponed = Vec::new();
        let mut looked = 0;
        while round.len() < width && looked < WINDOW * width {
            let Some((a, b)) = waiting.pop_front() else {
                break;
            };
            looked += 1;
            if busy.contains(&a) || busy.contains(&b) {
                postponed.push((a, b));
            } else {
                busy.extend([a, b]);
                round.push((a, b));
            }
        }
        for pair in postponed.into_iter().rev() {
            waiting.push_front(pair);
        }
        rounds.push(round);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tournament_has_every_pair_once(n in 0usize..40) {
            let pairs = tournament(n);
            let distinct: BTreeSet<(usize, usize)> = pairs.iter().copied().collect();
            prop_assert_eq!(pairs.len(), n * n.saturating_sub(1) / 2);
            prop_assert_eq!(distinct.len(), pairs.len());
            prop_assert!(pairs.iter().all(|&(a, b)| a < b && b < n));
        }

        #[test]
        fn rounds_have_every_pair_once_and_no_number_twice(n in 2usize..30, width in 0usize..20) {
            let pairs = tournament(n);
            let rounds = schedule_rounds(&pairs, width);
            let mut all: Vec<(usize, usize)> = Vec::new();
            for round in &rounds {
                let numbers: BTreeSet<usize> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                prop_assert_eq!(numbers.len(), 2 * round.len());
                prop_assert!(!round.is_empty() && round.len() <= width.max(1));
                all.extend(round);
            }
            all.sort_unstable();
            let mut expected = pairs;
            expected.sort_unstable();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn full_width_takes_the_minimum_number_of_rounds() {
        assert_eq!(schedule_rounds(&tournament(16), 8).len(), 15);
    }
}
