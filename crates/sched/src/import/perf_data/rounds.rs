//! Sorts records by time.
//!
//! perf writes one CPU's buffer after the other, round by round, and marks the end of each round:
//! all records after a mark are later than those before the previous mark. This limits the records
//! that are held here (see `tools/perf/util/ordered-events.c`).

use crate::import::raw_event::RawEvent;

/// Limits the records that are held; a file with longer rounds is read slightly out of order.
const MAX_WAITING: usize = 1 << 20;

/// Holds records until no earlier one can follow.
#[derive(Debug, Default)]
pub(super) struct RecordSorter {
    waiting: Vec<RawEvent>,
    /// Time of the latest record so far.
    latest_ns: u64,
    /// Records up to this time can be emitted at the next mark.
    safe_ns: u64,
    /// Time of the last emitted record.
    emitted_ns: u64,
    /// Records that came after a later one was emitted.
    late: u64,
    is_begun: bool,
}

impl RecordSorter {
    pub(super) fn push(&mut self, raw: RawEvent, emit: &mut dyn FnMut(&RawEvent)) {
        self.latest_ns = self.latest_ns.max(raw.time_ns);
        self.waiting.push(raw);
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.sort_by_key(|raw| raw.time_ns);
            let middle = self.waiting[MAX_WAITING / 2].time_ns;
            self.emit_until(middle, emit);
        }
    }

    /// Handles a mark.
    pub(super) fn end_round(&mut self, emit: &mut dyn FnMut(&RawEvent)) {
        self.emit_until(self.safe_ns, emit);
        self.safe_ns = self.latest_ns;
    }

    pub(super) fn finish(&mut self, emit: &mut dyn FnMut(&RawEvent)) {
        self.emit_until(u64::MAX, emit);
    }

    pub(super) fn notes(&self) -> Option<String> {
        (self.late > 0).then(|| {
            format!(
                "{} records are too late in the file to be sorted.",
                self.late
            )
        })
    }

    fn emit_until(&mut self, until_ns: u64, emit: &mut dyn FnMut(&RawEvent)) {
        if until_ns == 0 {
            return;
        }
        // The sort is stable: records of the same time keep their order.
        self.waiting.sort_by_key(|raw| raw.time_ns);
        if !self.is_begun {
            // Records of existing threads have no time: they get that of the first one with a time.
            let Some(first) = self.waiting.iter().find(|raw| raw.time_ns > 0) else {
                return;
            };
            self.emitted_ns = first.time_ns;
            self.is_begun = true;
        }
        let end = self.waiting.partition_point(|raw| raw.time_ns <= until_ns);
        for mut raw in self.waiting.drain(..end) {
            if raw.time_ns == 0 {
                raw.time_ns = self.emitted_ns;
            }
            self.late += u64::from(raw.time_ns < self.emitted_ns);
            self.emitted_ns = self.emitted_ns.max(raw.time_ns);
            emit(&raw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::raw_event::RawKind;

    #[test]
    fn records_of_several_rounds_are_sorted() {
        let mut seen = Vec::new();
        let mut rounds = RecordSorter::default();
        let mut take = |raw: &RawEvent| seen.push((raw.time_ns, raw.cpu));
        let raw = |time_ns, cpu| RawEvent {
            time_ns,
            cpu,
            current: None,
            what: RawKind::Other,
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
