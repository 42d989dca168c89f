//! Axes: values to pixels, round numbers along them, and the frame around a
//! plot.

use super::{LETTERS, line};
use crate::svg::canvas::{Anchor, Area, Canvas, Words};

/// Above this ratio of ends an axis of costs is logarithmic.
const LINEAR_UP_TO: f64 = 4.0;
/// Numbers along an axis, about.
const STEPS: f64 = 5.0;

/// Values to pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// Costs between two values, with some room on both sides.
    pub(super) fn costs(low: f64, high: f64) -> Self {
        let is_log = high / low > LINEAR_UP_TO;
        let (low, high) = if is_log {
            let room = (high / low).powf(0.06);
            (low / room, high * room)
        } else {
            // Costs that are all alike would else fill the axis with noise.
            let room = (0.08 * (high - low)).max(0.01 * high);
            (low - room, high + room)
        };
        Self {
            low,
            high,
            is_log,
            from: 0.0,
            to: 1.0,
        }
    }

    /// From 0 to a value.
    pub(super) const fn from_zero(high: f64) -> Self {
        Self {
            low: 0.0,
            high,
            is_log: false,
            from: 0.0,
            to: 1.0,
        }
    }

    /// The same between these pixels.
    pub(super) const fn between(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }

    /// Where a value is drawn; what lies outside stands at the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() { 0.0 } else { share };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round numbers along it.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            return self.log_ticks();
        }
        let step = round_step((self.high - self.low) / STEPS);
        let first = (self.low / step).ceil();
        let ticks = (0u8..20).map(|n| (first + f64::from(n)) * step);
        ticks
            .take_while(|tick| *tick <= self.high * (1.0 + 1e-12))
            .collect()
    }

    /// 1, 2, 5, 10 …, or where that is too many only powers of ten.
    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let decades = last - first;
        let digits: &[f64] = if decades > 4.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let stride = (decades / 8.0).ceil().max(1.0);
        let mut ticks = Vec::new();
        let mut power = first;
        while power <= last && ticks.len() < 40 {
            let scale = 10f64.powf(power);
            ticks.extend(digits.iter().map(|digit| digit * scale));
            power += stride;
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let fitting = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|digit| digit * power >= least);
    fitting.unwrap_or(10.0) * power
}

/// A whole number of runs that an axis can end at.
pub(super) fn end_of_runs(runs: usize) -> f64 {
    (runs as f64).max(1.0) * 1.02
}

/// Frame, lines and numbers of the upright axis, at the left.
pub(super) fn upright(
    canvas: &mut Canvas,
    plot: Area,
    axis: Axis,
    class: &str,
    name: impl Fn(f64) -> String,
) {
    for tick in axis.ticks() {
        let y = axis.at(tick);
        line(canvas, (plot.x, y), (plot.x + plot.width, y), "grid");
        number_at(
            canvas,
            (plot.x - 7.0, y + 4.0),
            Anchor::End,
            class,
            &name(tick),
        );
    }
}

/// Numbers of a second upright axis, at the right.
pub(super) fn upright_right(
    canvas: &mut Canvas,
    plot: Area,
    axis: Axis,
    class: &str,
    name: impl Fn(f64) -> String,
) {
    for tick in axis.ticks() {
        let at = (plot.x + plot.width + 7.0, axis.at(tick) + 4.0);
        number_at(canvas, at, Anchor::Start, class, &name(tick));
    }
}

/// Lines and numbers of the level axis, below; numbers that would run into each
/// other are left out.
pub(super) fn level(canvas: &mut Canvas, plot: Area, axis: Axis, name: impl Fn(f64) -> String) {
    let bottom = plot.y + plot.height;
    let mut free_from = f64::NEG_INFINITY;
    for tick in axis.ticks() {
        let x = axis.at(tick);
        line(canvas, (x, plot.y), (x, bottom), "grid");
        let text = name(tick);
        let half = crate::svg::canvas::width(&text, LETTERS) / 2.0;
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 8.0;
        number_at(canvas, (x, bottom + 17.0), Anchor::Middle, "faint", &text);
    }
}

fn number_at(canvas: &mut Canvas, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
    let words = Words {
        class,
        size: LETTERS,
        anchor,
        text,
    };
    canvas.words(at.0, at.1, words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        let ticks = Axis::costs(0.9, 1.4).ticks();
        let shown: Vec<String> = ticks.iter().map(|tick| format!("{tick:.3}")).collect();
        assert_eq!(shown, ["1.000", "1.200", "1.400"]);
    }

    #[test]
    fn ticks_of_wide_ranges_are_logarithmic() {
        assert_eq!(Axis::costs(0.1, 1.0).ticks(), [0.1, 0.2, 0.5, 1.0]);
        let wide = Axis::costs(1e-9, 1e9).ticks();
        assert!((3..=9).contains(&wide.len()), "{wide:?}");
    }

    proptest! {
        #[test]
        fn every_value_has_its_place(low in 1e-12f64..1e12, factor in 1.0f64..1e9, share in 0.0f64..1.0) {
            let high = low * factor;
            let axis = Axis::costs(low, high).between(10.0, 110.0);
            let value = low + share * (high - low);
            let at = axis.at(value);
            prop_assert!((10.0..=110.0).contains(&at), "{at}");
            prop_assert!(axis.at(low) <= at && at <= axis.at(high));
            prop_assert!((1..=40).contains(&axis.ticks().len()), "{:?}", axis.ticks());
            prop_assert!(axis.ticks().windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn what_is_no_number_stands_at_the_edge() {
        let axis = Axis::costs(1.0, 2.0).between(0.0, 1.0);
        assert!((0.0..=1.0).contains(&axis.at(f64::NAN)));
        assert!((axis.at(f64::INFINITY) - 1.0).abs() < 1e-12);
    }
}
