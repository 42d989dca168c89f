//! Which pairs are measured at the same time.

use std::collections::{BTreeSet, VecDeque};

/// How far ahead a round looks for pairs whose CPUs are free, in widths.
const WINDOW: usize = 8;

/// All pairs of `0..n` in the order of a round-robin tournament (the circle
/// method): each run of `n / 2` pairs has every number at most once.
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

/// Splits a list of pairs into rounds of at most `width` that share no number, keeping their order
/// if possible.
pub(super) fn rounds(pairs: &[(usize, usize)], width: usize) -> Vec<Vec<(usize, usize)>> {
    let width = width.max(1);
    let mut waiting: VecDeque<(usize, usize)> = pairs.iter().copied().collect();
    let mut rounds = Vec::new();
    while !waiting.is_empty() {
        let mut busy = BTreeSet::new();
        let mut round = Vec::with_capacity(width);
        let mut passed = Vec::new();
        let mut looked = 0;
        while round.len() < width && looked < WINDOW * width {
            let Some((a, b)) = waiting.pop_front() else {
                break;
            };
            looked += 1;
            if busy.contains(&a) || busy.contains(&b) {
                passed.push((a, b));
            } else {
                busy.extend([a, b]);
                round.push((a, b));
            }
        }
        for pair in passed.into_iter().rev() {
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
        fn rounds_keep_all_pairs_apart(n in 2usize..30, width in 0usize..20) {
            let pairs = tournament(n);
            let rounds = rounds(&pairs, width);
            let mut all: Vec<(usize, usize)> = Vec::new();
            for round in &rounds {
                let numbers: BTreeSet<usize> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                prop_assert_eq!(numbers.len(), 2 * round.len());
                prop_assert!(!round.is_empty() && round.len() <= width.max(1));
                all.extend(round);
            }
            all.sort_unstable();
            let mut wanted = pairs;
            wanted.sort_unstable();
            prop_assert_eq!(all, wanted);
        }
    }

    #[test]
    fn full_width_takes_no_more_rounds_than_needed() {
        assert_eq!(rounds(&tournament(16), 8).len(), 15);
    }
}
