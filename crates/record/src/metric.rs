//! The figure that is compared, and changes of it in the direction of the figure itself (a rate
//! rises while its cost falls).

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use pinwise_format::{signed_percent, signed_range, three_digits};
use pinwise_workload::{Better, Metric};

open_enum! {
    /// Which direction of a figure is good.
    Direction {
        /// A cost: time, memory, errors.
        Lower = "lower",
        /// A rate or a score.
        Higher = "higher",
    }
}

/// The figure that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricRecord {
    /// As on the command line.
    pub name: String,
    /// Unit of values; empty if the program defines it.
    pub unit: String,
    /// Which direction is good.
    pub better: Direction,
    /// Its name in sentences.
    pub label: String,
    /// The word for a lower cost: `faster`, `smaller`, `better`.
    pub better_word: String,
    /// The word for a higher cost: `slower`, `larger`, `worse`.
    pub worse_word: String,
}

impl MetricRecord {
    /// The record of a metric; `unit` is for a metric that has none itself.
    #[must_use]
    pub fn new(metric: &Metric, unit: &str) -> Self {
        let words = metric.words();
        Self {
            name: metric.to_string(),
            unit: match (metric.unit(), unit) {
                ("", "") => metric.printed_unit().unwrap_or_default(),
                ("", given) => given.to_owned(),
                (own, _) => own.to_owned(),
            },
            better: match metric.better() {
                Better::Lower => Direction::Lower,
                Better::Higher => Direction::Higher,
            },
            label: metric.label(),
            better_word: words.better.to_owned(),
            worse_word: words.worse.to_owned(),
        }
    }

    /// Its short name: as on the command line, or the label of a metric with a pattern or path.
    #[must_use]
    pub fn short_name(&self) -> &str {
        match self.name.contains(':') {
            true => &self.label,
            false => &self.name,
        }
    }

    /// Is it wall-clock time?
    #[must_use]
    pub fn is_wall(&self) -> bool {
        self.name == "wall"
    }

    /// Is it CPU time in user and kernel mode together?
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.name == "cpu"
    }

    /// Converts a ratio of costs, with the ends of its interval, to a change of the figure.
    #[must_use]
    pub fn effect(&self, ratio: f64, low: Option<f64>, high: Option<f64>) -> EffectRecord {
        let is_rate = self.better == Direction::Higher;
        let percent = |ratio: f64| 100.0 * (if is_rate { 1.0 / ratio } else { ratio } - 1.0);
        let (value, low, high) = (percent(ratio), low.map(percent), high.map(percent));
        let (low, high) = if is_rate { (high, low) } else { (low, high) };
        EffectRecord::from_percent(value, low, high)
    }

    /// An upper bound of the ratio of costs as a change: `≤ +0.9 %`, for rates `≥ −0.9 %`.
    #[must_use]
    pub fn limit(&self, high: f64) -> String {
        let sign = match self.better {
            Direction::Higher => '≥',
            _ => '≤',
        };
        format!("{sign} {}", self.effect(high, None, None).text)
    }

    /// The word for this ratio of costs: `faster` below 1.
    #[must_use]
    pub fn word_of(&self, ratio: f64) -> &str {
        match ratio < 1.0 {
            true => &self.better_word,
            false => &self.worse_word,
        }
    }
}

/// From this change on, per cent, a factor says more: nobody reads +58003 % as 581 times.
const FACTOR_FROM: f64 = 900.0;

/// A change, per cent, as a factor.
fn factor(percent: f64) -> String {
    three_digits(1.0 + percent / 100.0)
}

impl EffectRecord {
    /// A change of `value` per cent, within these ends.
    #[must_use]
    pub fn from_percent(value: f64, low: Option<f64>, high: Option<f64>) -> Self {
        // A change and its interval are read together, so they have the same form.
        let is_factor = value.max(high.unwrap_or(value)) >= FACTOR_FROM;
        Self {
            unit: "%".to_owned(),
            value,
            low,
            high,
            text: match is_factor {
                true => format!("×{}", factor(value)),
                false => signed_percent(value / 100.0),
            },
            interval: match (low, high) {
                (Some(low), Some(high)) if is_factor => {
                    format!("×{} to ×{}", factor(low), factor(high))
                }
                (Some(low), Some(high)) => signed_range(low / 100.0, high / 100.0),
                _ => String::new(),
            },
        }
    }

    /// `+2.0 % (+1.7 to +2.3 %)`.
    #[must_use]
    pub fn describe_with_interval(&self) -> String {
        match self.interval.as_str() {
            "" => self.text.clone(),
            interval => format!("{} ({interval})", self.text),
        }
    }
}

/// A change of a figure, in the figure's own direction and ready to be shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EffectRecord {
    /// Unit of the numbers: `%`.
    pub unit: String,
    /// The change: −20 is a fifth less.
    pub value: f64,
    /// Lower end of its interval; `null` if there are too few runs for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// In words: `−20.0 %`.
    pub text: String,
    /// The interval in words: `−30.0 to −10.0 %`; empty without one.
    pub interval: String,
}

/// The most informative figure, for the first lines of any output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeadlineRecord {
    /// The change: `−20.0 %`; its interval if it is undecided.
    pub change: String,
    /// Its interval, or that there is none; empty if `change` is the interval.
    pub interval: String,
    /// What is compared with what.
    pub of: String,
    /// The confidence of the interval, in words; empty without one.
    pub confidence: String,
}

impl HeadlineRecord {
    /// The headline of an effect; `without` says why if there is no interval.
    #[must_use]
    pub fn new(effect: &EffectRecord, of: String, confidence: String, without: &str) -> Self {
        let has_interval = !effect.interval.is_empty();
        Self {
            change: effect.text.clone(),
            interval: match has_interval {
                true => effect.interval.clone(),
                false => without.to_owned(),
            },
            of,
            confidence: if has_interval {
                confidence
            } else {
                String::new()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_effect(metric: &str, words: [&str; 2], effect: [&str; 2]) {
        let record = MetricRecord::new(&metric.parse().unwrap(), "");
        assert_eq!([&record.better_word, &record.worse_word], words);
        let found = record.effect(0.8, Some(0.5), Some(0.9));
        assert_eq!([&found.text, &found.interval], effect);
    }

    #[test]
    fn change_has_the_direction_of_its_figure() {
        let cost = ["−20.0 %", "−50.0 to −10.0 %"];
        let rate = ["+25.0 %", "+11.1 to +100 %"];
        check_effect("wall", ["faster", "slower"], cost);
        check_effect("max-rss", ["smaller", "larger"], cost);
        check_effect("json:.run.seconds lower", ["faster", "slower"], cost);
        check_effect("regex:x lower", ["better", "worse"], cost);
        check_effect("regex:x higher", ["better", "worse"], rate);
        let large = MetricRecord::new(&"wall".parse().unwrap(), "");
        let large = large.effect(581.0, Some(8.5), Some(600.0));
        assert_eq!(large.describe_with_interval(), "×581 (×8.50 to ×600)");
        check_effect(
            "prometheus:rate(requests_total) higher",
            ["better", "worse"],
            rate,
        );
    }

    #[test]
    fn patterns_name_their_figure_and_unit() {
        for (metric, label, unit) in [
            ("regex:p99 ([0-9.]+) ms lower", "p99", "ms"),
            (r"regex:Requests/sec:\s+([\d.]+) higher", "Requests/sec", ""),
            (
                r"regex:(\d+) req/s higher",
                "the program's figure in req/s",
                "req/s",
            ),
            (r"regex:took ([\d.]+)s lower", "took", "s"),
            (r"regex:^Copy\s*=\s*([\d.]+) MB/s higher", "Copy", "MB/s"),
            (r"regex:latency_us=(\d+) lower", "latency_us", ""),
            (
                r"regex:(?:a|b) (\d+) \w+ lower",
                "the program's own figure",
                "",
            ),
            (r"regex:a|b(\d+) lower", "the program's own figure", ""),
            (r"regex:(\d+) million lower", "the program's own figure", ""),
            ("json:.run.p99_ms lower", ".run.p99_ms", ""),
        ] {
            let record = MetricRecord::new(&metric.parse().unwrap(), "");
            assert_eq!(
                (record.label.as_str(), record.unit.as_str()),
                (label, unit),
                "{metric}"
            );
            assert_eq!(record.name, metric);
        }
        // A figure with a unit of time is called faster or slower.
        let took = MetricRecord::new(&r"regex:took ([\d.]+)s lower".parse().unwrap(), "");
        assert_eq!(took.better_word, "faster");
        let given = MetricRecord::new(&"regex:p99 (.*) lower".parse().unwrap(), "ms");
        assert_eq!(given.unit, "ms");
    }

    #[test]
    fn headline_without_interval_says_so() {
        let record = MetricRecord::new(&Metric::wall(), "");
        let effect = record.effect(1.25, None, Some(2.0));
        let headline = HeadlineRecord::new(&effect, "a".to_owned(), "sure".to_owned(), "none");
        assert_eq!([headline.change, headline.interval], ["+25.0 %", "none"]);
        assert_eq!(headline.confidence, "");
    }
}
