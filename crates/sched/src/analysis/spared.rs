//! Collects when and on which core sharing could have been avoided.

use super::super::summary::{SharingCause, SharingSpan, SharingSpans};
use super::longest::{Longest, Span};

/// Limits the spans that are kept.
const MAX_SPANS: usize = 100_000;
/// The order of the three numbers of threads per core.
const SHARING_CAUSES: [SharingCause; 3] = [
    SharingCause::Scheduler,
    SharingCause::Mask,
    SharingCause::Others,
];

/// Threads of a core that now share it needlessly, and since when, by cause.
#[derive(Debug, Clone, Copy, Default)]
struct OpenSpans {
    threads: [u32; 3],
    since_ns: [u64; 3],
    /// The last round in which the core was set.
    round: u64,
    is_listed: bool,
}

#[derive(Debug)]
pub(super) struct SharingSpanBuilder {
    cores: Vec<OpenSpans>,
    /// Cores with open spans.
    listed: Vec<usize>,
    round: u64,
    spans: Longest<SharingSpan>,
}

impl Span for SharingSpan {
    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn weight_ns(&self) -> u64 {
        self.length_ns() * u64::from(self.threads)
    }
}

impl SharingSpanBuilder {
    pub(super) fn new(cores: usize) -> Self {
        Self {
            cores: vec![OpenSpans::default(); cores],
            listed: Vec::new(),
            round: 0,
            spans: Longest::new(MAX_SPANS, 1),
        }
    }

    /// Forgets everything before this time.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.spans = Longest::new(MAX_SPANS, 1);
        for &core in &self.listed {
            self.cores[core].since_ns = [time_ns; 3];
        }
    }

    /// Starts a round of calls of [`Self::set_core`] for all shared cores; [`Self::end_round`] ends
    /// it.
    pub(super) const fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Sets how many threads of the core share it needlessly from now on, by cause.
    pub(super) fn set_core(&mut self, core: usize, threads: [u32; 3], time_ns: u64) {
        let open = &mut self.cores[core];
        if threads == [0; 3] && !open.is_listed {
            return;
        }
        open.round = self.round;
        if open.threads != threads {
            self.change(core, threads, time_ns);
        }
        let open = &mut self.cores[core];
        if !open.is_listed {
            open.is_listed = true;
            self.listed.push(core);
        }
    }

    /// Ends the spans of cores that were not set in this round.
    pub(super) fn end_round(&mut self, time_ns: u64) {
        let mut at = 0;
        while at < self.listed.len() {
            let core = self.listed[at];
            let open = &self.cores[core];
            if open.round == self.round && open.threads != [0; 3] {
                at += 1;
                continue;
            }
            self.change(core, [0; 3], time_ns);
            self.cores[core].is_listed = false;
            self.listed.swap_remove(at);
        }
    }

    fn change(&mut self, core: usize, threads: [u32; 3], time_ns: u64) {
        let open = &mut self.cores[core];
        for at in 0..SHARING_CAUSES.len() {
            if open.threads[at] == threads[at] {
                continue;
            }
            let before = std::mem::replace(&mut open.threads[at], threads[at]);
            let start_ns = std::mem::replace(&mut open.since_ns[at], time_ns);
            if before > 0 && start_ns < time_ns {
                self.spans.push(SharingSpan {
                    core,
                    start_ns,
                    end_ns: time_ns,
                    threads: before,
                    cause: SHARING_CAUSES[at],
                });
            }
        }
    }

    /// Removes the time between these moments from all spans, because it turned out to be unknown.
    pub(super) fn remove(&mut self, from_ns: u64, to_ns: u64) {
        for &core in &self.listed {
            let open = self.cores[core];
            for (at, cause) in SHARING_CAUSES.into_iter().enumerate() {
                if open.threads[at] > 0 && open.since_ns[at] < from_ns {
                    self.spans.push(SharingSpan {
                        core,
                        start_ns: open.since_ns[at],
                        end_ns: from_ns,
                        threads: open.threads[at],
                        cause,
                    });
                }
            }
            self.cores[core].since_ns = [to_ns; 3];
        }
        self.spans.shorten(|span| {
            span.end_ns = span.end_ns.min(from_ns);
            span.start_ns < span.end_ns
        });
    }

    /// All spans in time order, adjacent ones joined.
    pub(super) fn finish(mut self, time_ns: u64) -> SharingSpans {
        self.begin_round();
        self.end_round(time_ns);
        let (mut spans, left_out) = self.spans.finish();
        spans.sort_by_key(|span| (span.core, span.cause, span.start_ns));
        spans.dedup_by(|next, span| {
            let is_continued = (span.core, span.cause, span.threads, span.end_ns)
                == (next.core, next.cause, next.threads, next.start_ns);
            if is_continued {
                span.end_ns = next.end_ns;
            }
            is_continued
        });
        spans.sort_by_key(|span| (span.start_ns, span.core, span.cause));
        SharingSpans { spans, left_out }
    }
}
