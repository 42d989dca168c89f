//! Sorts records by time.
//!
//! perf writes one CPU's buffer after the other and marks the end of each round: records after such
//! a mark are younger than all records before the previous mark. That bounds the records held here
//! (see `tools/perf/util/ordered-events.c`).

use crate::import::raw_event::RawEvent;

/// Limits the waiting records; a file with longer rounds is read slightly out of order, to bound
/// memory.
const MAX_WAITING: usize = 1 << 20;

/// Records that wait for earlier ones.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    waiting: Vec<RawEvent>,
    /// The latest moment seen.
    latest_ns: u64,
    /// Records up to this time can be emitted at the next mark.
    safe_ns: u64,
    /// Time of the last emitted record.
    handed_ns: u64,
    late: u64,
    is_begun: bool,
}

impl Rounds {
    pub(super) fn push(&mut self, raw: RawEvent, hand_on: &mut dyn FnMut(&RawEvent)) {
        self.latest_ns = self.latest_ns.max(raw.time_ns);
        self.waiting.push(raw);
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.sort_by_key(|raw| raw.time_ns);
            let middle = self.waiting[MAX_WAITING / 2].time_ns;
            self.hand_on_until(middle, hand_on);
        }
    }

    /// A mark.
    pub(super) fn end_round(&mut self, hand_on: &mut dyn FnMut(&RawEvent)) {
        self.hand_on_until(self.safe_ns, hand_on);
        self.safe_ns = self.latest_ns;
    }

    pub(super) fn finish(&mut self, hand_on: &mut dyn FnMut(&RawEvent)) {
        self.hand_on_until(u64::MAX, hand_on);
    }

    pub(super) fn notes(&self) -> Option<String> {
        (self.late > 0).then(|| {
            format!(
                "{} records are too late in the file to be sorted.",
                self.late
            )
        })
    }

    fn hand_on_until(&mut self, until_ns: u64, hand_on: &mut dyn FnMut(&RawEvent)) {
        if until_ns == 0 {
            return;
        }
        // Stable: records of one moment keep their order.
        self.waiting.sort_by_key(|raw| raw.time_ns);
        if !self.is_begun {
            // Records of existing threads have no time; they count from the first moment that has
            // one.
            let Some(first) = self.waiting.iter().find(|raw| raw.time_ns > 0) else {
                return;
            };
            self.handed_ns = first.time_ns;
            self.is_begun = true;
        }
        let end = self.waiting.partition_point(|raw| raw.time_ns <= until_ns);
        for mut raw in self.waiting.drain(..end) {
            if raw.time_ns == 0 {
                raw.time_ns = self.handed_ns;
            }
            self.late += u64::from(raw.time_ns < self.handed_ns);
            self.handed_ns = self.handed_ns.max(raw.time_ns);
            hand_on(&raw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::raw_event::RawKind;

    #[test]
    fn two_rounds_make_one_order() {
        let mut seen = Vec::new();
        let mut rounds = Rounds::default();
        let mut take = |raw: &RawEvent| seen.push((raw.time_ns, raw.cpu));
        let raw = |time_ns, cpu| RawEvent {
            time_ns,
            cpu,
            current: None,
            what: RawKind::Nothing,
        };
        for round in [
            &[(0, 9), (10, 0), (30, 0), (20, 1)][..],
            &[(40, 0), (25, 1), (30, 1)],
            &[(50, 0), (5, 1)],
        ] {
            for &(time, cpu) in round {
                rounds.push(raw(time, cpu), &mut take);
            }
            rounds.end_round(&mut take);
        }
        rounds.finish(&mut take);
        let late = rounds.notes().unwrap();
        assert!(late.starts_with("1 records"), "{late}");
        let order = [
            (10, 9),
            (10, 0),
            (20, 1),
            (25, 1),
            (30, 0),
            (30, 1),
            (5, 1),
            (40, 0),
            (50, 0),
        ];
        assert_eq!(seen, order);
    }
}
