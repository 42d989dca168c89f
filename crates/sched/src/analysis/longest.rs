//! Keeps the longest of many spans of time, in bounded memory.
use super::super::summary::LeftOut;

/// A span of time.
pub(super) trait Span {
    fn length_ns(&self) -> u64;
    /// What the span adds to the sum of left-out spans: its length, once for each thread.
    fn weight_ns(&self) -> u64;
}

/// The longest spans, and the number and sum of the others.
#[derive(Debug)]
pub(super) struct Longest<T> {
    kept: Vec<T>,
    max_kept: usize,
    /// Shorter spans are not kept.
    shortest_ns: u64,
    left_out: u64,
    left_out_ns: u64,
}

impl<T: Span> Longest<T> {
    /// Keeps at most `max_kept` spans, of at least this length.
    pub(super) const fn new(max_kept: usize, shortest_ns: u64) -> Self {
        Self {
            kept: Vec::new(),
            max_kept,
            shortest_ns,
            left_out: 0,
            left_out_ns: 0,
        }
    }

    pub(super) fn push(&mut self, span: T) {
        if span.length_ns() < self.shortest_ns {
            self.leave_out(&span);
            return;
        }
        self.kept.push(span);
        // Pruning only at twice the limit costs almost nothing per span.
        if self.kept.len() >= 2 * self.max_kept {
            self.prune();
        }
    }

    /// Shortens spans by `shorten`, which returns whether the span is to be kept.
    pub(super) fn shorten(&mut self, shorten: impl FnMut(&mut T) -> bool) {
        self.kept.retain_mut(shorten);
    }

    /// The kept spans in the order in which they were added, and the others.
    pub(super) fn finish(mut self) -> (Vec<T>, LeftOut) {
        if self.kept.len() > self.max_kept {
            self.prune();
        }
        let left_out = LeftOut {
            count: self.left_out,
            ns: self.left_out_ns,
        };
        (self.kept, left_out)
    }

    fn leave_out(&mut self, span: &T) {
        self.left_out += 1;
        self.left_out_ns += span.weight_ns();
    }

    fn prune(&mut self) {
        let mut lengths: Vec<u64> = self.kept.iter().map(Span::length_ns).collect();
        let at = lengths.len() - self.max_kept;
        let (_, &mut limit_ns, longer) = lengths.select_nth_unstable(at);
        let longer = longer.iter().filter(|&&ns| ns > limit_ns).count();
        let mut room = self.max_kept - longer;
        for span in std::mem::take(&mut self.kept) {
            let length_ns = span.length_ns();
            let is_kept = length_ns > limit_ns || (length_ns == limit_ns && room > 0);
            if is_kept {
                room -= usize::from(length_ns == limit_ns);
                self.kept.push(span);
            } else {
                self.leave_out(&span);
            }
        }
        self.shortest_ns = limit_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Span for u64 {
        fn length_ns(&self) -> u64 {
            *self
        }

        fn weight_ns(&self) -> u64 {
            2 * *self
        }
    }

    proptest! {
        #[test]
        fn the_longest_spans_are_kept_and_the_others_counted(
            lengths in prop::collection::vec(0u64..40, 0..200),
            max_kept in 1usize..20,
            shortest in 0u64..5,
        ) {
            let mut longest = Longest::new(max_kept, shortest);
            for &length in &lengths {
                longest.push(length);
            }
            let (mut kept, left_out) = longest.finish();
            prop_assert_eq!(kept.len() as u64 + left_out.count, lengths.len() as u64);
            let sum: u64 = lengths.iter().sum();
            prop_assert_eq!(2 * kept.iter().sum::<u64>() + left_out.ns, 2 * sum);
            let mut expected = lengths;
            expected.retain(|&length| length >= shortest);
            expected.sort_unstable();
            kept.sort_unstable();
            let first_kept = expected.len() - max_kept.min(expected.len());
            prop_assert_eq!(&expected[first_kept..], &kept[..]);
        }
    }
}
