//! Merges streams of events, each in its own time order, into one in time order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Event;

/// Merges the streams of CPUs, and holds the events that were pushed but not popped.
#[derive(Debug)]
pub struct Merger {
    streams: Vec<VecDeque<Event>>,
    /// Time of the first event of each non-empty stream. An entry is stale if an earlier event was
    /// inserted before it.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Time of the latest popped event.
    popped_ns: u64,
    backwards: u64,
}

impl Merger {
    /// Merges this number of streams.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        Self {
            streams: (0..streams).map(|_| VecDeque::new()).collect(),
            heads: BinaryHeap::new(),
            popped_ns: 0,
            backwards: 0,
        }
    }

    /// Adds an event to a stream; missing streams are created. An event that is earlier than its
    /// predecessor is inserted in order. If later events have been popped, it gets the time of the
    /// last of them, and [`backwards`](Self::backwards) counts it.
    pub fn push(&mut self, stream: usize, mut event: Event) {
        if stream >= self.streams.len() {
            self.streams.resize_with(stream + 1, VecDeque::new);
        }
        if event.time_ns < self.popped_ns {
            event.time_ns = self.popped_ns;
            self.backwards += 1;
        }
        let queue = &mut self.streams[stream];
        let time_ns = event.time_ns;
        let mut at = queue.len();
        while at > 0 && queue[at - 1].time_ns > time_ns {
            at -= 1;
        }
        if at == queue.len() {
            queue.push_back(event);
        } else {
            queue.insert(at, event);
        }
        if at == 0 {
            self.heads.push(Reverse((time_ns, stream)));
        }
    }

    /// Moves all events up to and including `time_ns` to `out`, in time order; those of the same
    /// time in the order of streams.
    pub fn pop_until(&mut self, time_ns: u64, out: &mut Vec<Event>) {
        while let Some(&Reverse((head_ns, stream))) = self.heads.peek() {
            if head_ns > time_ns {
                break;
            }
            self.heads.pop();
            let queue = &mut self.streams[stream];
            if queue.front().is_none_or(|front| front.time_ns != head_ns) {
                continue;
            }
            // Events before the next head need no check of the other streams.
            let next_ns = self.heads.peek().map_or(u64::MAX, |head| head.0.0);
            let is_due =
                |e: &Event| e.time_ns <= time_ns && (e.time_ns < next_ns || e.time_ns == head_ns);
            while queue.front().is_some_and(is_due) {
                out.extend(queue.pop_front());
            }
            if let Some(front) = queue.front() {
                self.heads.push(Reverse((front.time_ns, stream)));
            }
        }
        if let Some(last) = out.last() {
            self.popped_ns = self.popped_ns.max(last.time_ns);
        }
    }

    /// Moves the remaining events to `out`.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        self.pop_until(u64::MAX, out);
    }

    /// Number of events that came too late to be sorted.
    #[must_use]
    pub const fn backwards(&self) -> u64 {
        self.backwards
    }

    /// Number of events that are held.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.streams.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::EventKind;

    fn event(time_ns: u64, thread: i32) -> Event {
        Event {
            time_ns,
            cpu: 0,
            what: EventKind::Exit { thread },
        }
    }

    #[track_caller]
    fn check(streams: &[&[u64]], until: u64, expected: &[u64]) -> Merger {
        let mut merger = Merger::new(streams.len());
        for (stream, times) in streams.iter().enumerate() {
            for &time in *times {
                merger.push(stream, event(time, 0));
            }
        }
        let mut out = Vec::new();
        merger.pop_until(until, &mut out);
        let times: Vec<u64> = out.iter().map(|e| e.time_ns).collect();
        assert_eq!(times, expected);
        merger
    }

    #[test]
    fn streams_are_merged_by_time() {
        check(&[&[1, 4, 6], &[2, 3, 9]], 100, &[1, 2, 3, 4, 6, 9]);
        check(&[&[1, 4, 6], &[2, 3, 9]], 4, &[1, 2, 3, 4]);
        check(&[&[], &[5, 5], &[5]], 5, &[5, 5, 5]);
    }

    #[test]
    fn an_event_out_of_order_is_sorted_in() {
        let merger = check(&[&[1, 6, 4], &[5, 2]], 100, &[1, 2, 4, 5, 6]);
        assert_eq!(merger.backwards(), 0);
    }

    #[test]
    fn an_event_that_comes_too_late_is_counted() {
        let mut merger = check(&[&[1, 6]], 6, &[1, 6]);
        merger.push(0, event(3, 0));
        let mut out = Vec::new();
        merger.finish(&mut out);
        assert_eq!(out[0].time_ns, 6);
        assert_eq!(merger.backwards(), 1);
    }

    proptest! {
        #[test]
        fn all_events_come_out_in_time_order(
            pushes in prop::collection::vec((0usize..4, 0u64..50, any::<bool>()), 0..200)
        ) {
            let mut merger = Merger::new(2);
            let mut out = Vec::new();
            for (stream, time, pops) in &pushes {
                merger.push(*stream, event(*time, 0));
                if *pops {
                    merger.pop_until(*time, &mut out);
                }
            }
            merger.finish(&mut out);
            prop_assert_eq!(out.len(), pushes.len());
            prop_assert!(out.is_sorted_by_key(|e| e.time_ns));
            prop_assert_eq!(merger.held(), 0);
        }
    }
}
