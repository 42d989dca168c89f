//! The longest of many spans of time, in bounded memory.

/// A span of time.
pub(super) trait Span {
    /// How long, ns.
    fn length_ns(&self) -> u64;
    /// Its part of the sums, ns: its length, or that of several threads.
    fn weight_ns(&self) -> u64;
}

/// Spans, and the number left out.
#[derive(Debug)]
pub(super) struct Longest<T> {
    kept: Vec<T>,
    most: usize,
    shortest_ns: u64,
    left_out: u64,
    left_out_ns: u64,
}

impl<T: Span> Longest<T> {
    /// Keeps `most` spans of at least this length.
    pub(super) const fn new(most: usize, shortest_ns: u64) -> Self {
        Self {
            kept: Vec::new(),
            most,
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
        // Pruning rarely makes it almost free per span.
        if self.kept.len() >= 2 * self.most {
            self.sort_out();
        }
    }

    /// Changes spans by `cut`, which returns whether anything is left.
    pub(super) fn cut(&mut self, cut: impl FnMut(&mut T) -> bool) {
        self.kept.retain_mut(cut);
    }

    /// The spans in order; the number left out, and their sum.
    pub(super) fn finish(mut self) -> (Vec<T>, u64, u64) {
        if self.kept.len() > self.most {
            self.sort_out();
        }
        (self.kept, self.left_out, self.left_out_ns)
    }

    fn leave_out(&mut self, span: &T) {
        self.left_out += 1;
        self.left_out_ns += span.weight_ns();
    }

    fn sort_out(&mut self) {
        let mut lengths: Vec<u64> = self.kept.iter().map(Span::length_ns).collect();
        let at = lengths.len() - self.most;
        let (_, &mut limit_ns, longer) = lengths.select_nth_unstable(at);
        let longer = longer.iter().filter(|&&ns| ns > limit_ns).count();
        let mut room = self.most - longer;
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
        fn the_longest_are_kept_and_the_others_counted(
            lengths in prop::collection::vec(0u64..40, 0..200),
            most in 1usize..20,
            shortest in 0u64..5,
        ) {
            let mut longest = Longest::new(most, shortest);
            for &length in &lengths {
                longest.push(length);
            }
            let (mut kept, left_out, left_out_ns) = longest.finish();
            prop_assert_eq!(kept.len() as u64 + left_out, lengths.len() as u64);
            let sum: u64 = lengths.iter().sum();
            prop_assert_eq!(2 * kept.iter().sum::<u64>() + left_out_ns, 2 * sum);
            let mut expected = lengths;
            expected.retain(|&length| length >= shortest);
            expected.sort_unstable();
            kept.sort_unstable();
            prop_assert_eq!(&expected[expected.len() - most.min(expected.len())..], &kept[..]);
        }
    }
}
