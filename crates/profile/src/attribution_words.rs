//! Describes a difference and its parts in words.

use super::attribution::{Account, Attribution, Basis, Part, PartKind};
use pinwise_format::three_digits;

/// Smaller shares are not in the sentence, only in the table.
const MIN_SHARE: f64 = 0.005;

impl Part {
    /// Its name: `longer spin-waits`, `waiting`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let is_less = self.time_s.is_some_and(|time| time.value < 0.0);
        match (self.kind, is_less) {
            (PartKind::HintLength, false) => "longer spin-waits",
            (PartKind::HintLength, true) => "shorter spin-waits",
            (PartKind::HintCount, false) => "more spin-waits",
            (PartKind::HintCount, true) => "fewer spin-waits",
            (PartKind::Hints, _) => "spin-waits",
            (PartKind::Memory, _) => "memory",
            (PartKind::Frequency, _) => "frequency",
            (PartKind::Waiting, _) => "waiting",
            (PartKind::Unexplained, _) => "unexplained",
        }
    }

    /// Describes the part: `83 % (78 to 88 %) of the difference is longer spin-waits (PAUSE 43.0 ns
    /// against 3.6 ns)`, where `between` is the text before the name.
    fn describe(&self, share: Account, between: &str) -> String {
        let percent = |share: f64| {
            let percent = (100.0 * share).round();
            let sign = if percent < 0.0 { "−" } else { "" };
            format!("{sign}{:.0}", percent.abs())
        };
        let detail = self.detail.as_ref();
        let detail = detail.map_or_else(String::new, |detail| format!(" ({detail})"));
        format!(
            "{} % ({} to {}){between} {}{detail}",
            percent(share.value),
            percent(share.low),
            percent(share.high),
            self.name(),
        )
    }
}

impl Attribution {
    /// After over before.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.after_s / self.before_s
    }

    /// The answer in one sentence: A is before, B after.
    #[must_use]
    pub fn sentence(&self, unit: &str) -> String {
        let times = three_digits(self.ratio());
        if !self.is_difference {
            let ends = [self.total.low, self.total.high];
            let [low, high] = ends.map(|end| three_digits(1.0 + end / self.before_s));
            let claim = match self.basis {
                Basis::Wall => "B takes as long as A",
                Basis::Cpu => "B uses as much CPU time as A",
            };
            return format!(
                "{claim} per {unit} ({times} times, {low} to {high}): no difference to explain."
            );
        }
        let claim = match self.basis {
            Basis::Wall => format!("B takes {times} times as long per {unit}"),
            Basis::Cpu => format!("B uses {times} times the CPU time per {unit}"),
        };
        let mut known: Vec<(&Part, Account)> = self
            .parts
            .iter()
            .filter_map(|part| Some((part, part.share?)))
            .filter(|(part, share)| {
                part.kind == PartKind::Unexplained || share.value.abs() >= MIN_SHARE
            })
            .collect();
        known.sort_by(|(a, of_a), (b, of_b)| {
            let is_rest = |part: &Part| part.kind == PartKind::Unexplained;
            let by_size = of_b.value.abs().total_cmp(&of_a.value.abs());
            is_rest(a).cmp(&is_rest(b)).then(by_size)
        });
        let words = known.iter().enumerate().map(|(at, (part, share))| {
            let between = if at == 0 { " of the difference is" } else { "" };
            part.describe(*share, between)
        });
        let words: Vec<String> = words.collect();
        format!("{claim}: {}.", words.join(", "))
    }
}
