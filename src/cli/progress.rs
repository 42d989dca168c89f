//! The progress line: elapsed time, what runs, the intervals so far, time left.
//!
//! Its text changes only between runs. While a command is measured, a thread wakes once a second
//! for some microseconds to redraw the clock.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::terminal::Terminal;
use pinwise_format::{duration, whole};
use pinwise_report::visible;
use pinwise_stats::confirm::{Contrast, Decision};
use pinwise_stats::verdict::relative_change;
use pinwise_study::compare::Progress;
use pinwise_study::gate::GateProgress;
use pinwise_study::probe::Step;
use pinwise_study::search::Progress as SearchProgress;

/// The positions of the bar.
const POSITIONS: u32 = 1000;
/// The most redraws per second.
const MAX_REDRAWS_PER_S: u8 = 8;
/// The time between redraws of the clock.
const TICK: Duration = Duration::from_secs(1);
/// The most arms whose intervals are shown.
const MAX_INTERVALS: usize = 3;

/// One line on standard error.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: ProgressBar,
    terminal: Terminal,
}

impl ProgressLine {
    pub(super) fn new(terminal: &Terminal) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(MAX_REDRAWS_PER_S);
        let bar = ProgressBar::with_draw_target(Some(u64::from(POSITIONS)), target);
        let template = terminal.for_stderr("{bar:20} {elapsed} · {wide_msg}");
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = match terminal.stderr_is_ascii() {
            true => style.progress_chars("##-"),
            false => style,
        };
        bar.set_style(style);
        bar.set_message("preparing");
        bar.enable_steady_tick(TICK);
        Self {
            bar,
            terminal: *terminal,
        }
    }

    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        self.bar.set_position(to_position(progress.fraction));
        self.set_message(&describe_comparison(progress));
    }

    /// Shows a step of measuring the machine itself.
    pub(super) fn show_step(&mut self, step: &Step) {
        self.bar.set_position(to_position(step.fraction));
        self.set_message(&format!(
            "measuring {} · at most {} left",
            step.part,
            duration(step.left)
        ));
    }

    /// Shows the progress of a search, and its leader.
    pub(super) fn show_search(&mut self, progress: &SearchProgress<'_>) {
        let max_runs = progress.most_runs.unwrap_or_default();
        let fraction = match max_runs {
            0 => 0.0,
            max_runs => progress.runs as f64 / max_runs as f64,
        };
        self.bar.set_position(to_position(fraction));
        self.set_message(&describe_search(progress));
    }

    /// Shows the progress of a gate.
    pub(super) fn show_gate(&mut self, progress: &GateProgress<'_>) {
        self.bar.set_position(to_position(progress.fraction));
        self.set_message(&describe_gate(progress));
    }

    /// Shows which of several parts of an experiment runs.
    pub(super) fn show_part(&mut self, part: &str, done: usize, total: usize) {
        self.bar
            .set_position(to_position(done as f64 / total.max(1) as f64));
        self.set_message(&format!("{part} {} of {total}", done + 1));
    }

    fn set_message(&self, text: &str) {
        self.bar.set_message(self.terminal.for_stderr(text));
    }

    /// Prints something above the line.
    pub(super) fn print_above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn to_position(fraction: f64) -> u64 {
    whole((fraction.clamp(0.0, 1.0) * f64::from(POSITIONS)).floor())
}

fn describe_comparison(progress: &Progress<'_>) -> String {
    if progress.phase == "trace" {
        return format!("tracing a run of {}", visible(progress.arm));
    }
    let block = progress.blocks + 1;
    let block = match progress.phase {
        "confirmation" => format!("block {block}"),
        phase => format!("{phase}, block {block}"),
    };
    let mut text = format!("{block}: {} runs", visible(progress.arm));
    if progress.left_s.is_finite()
        && let Ok(left) = Duration::try_from_secs_f64(progress.left_s)
    {
        text.push_str(&format!(" · at most {} left", duration(left)));
    }
    // Intervals come last: a narrow terminal cuts the end.
    for interval in describe_intervals(progress) {
        text.push_str(&format!(" · {interval}"));
    }
    text
}

fn describe_gate(progress: &GateProgress<'_>) -> String {
    let mut text = format!(
        "{} of {} decided, {} slower: {} runs",
        progress.decided,
        progress.benchmarks,
        progress.slower,
        visible(progress.benchmark)
    );
    if let Ok(left) = Duration::try_from_secs_f64(progress.left_s) {
        text.push_str(&format!(" · at most {} left", duration(left)));
    }
    text
}

fn describe_search(progress: &SearchProgress<'_>) -> String {
    let mut text = format!(
        "{} run {}: {}",
        progress.step,
        progress.runs + 1,
        visible(progress.arm)
    );
    if let Some((leader, better)) = progress.leader {
        text.push_str(&format!(
            " · {} leads, {:.0} % chance of a better one",
            visible(leader),
            100.0 * better
        ));
    }
    text
}

/// The intervals so far, undecided ones first, then the widest.
fn describe_intervals(progress: &Progress<'_>) -> Vec<String> {
    let contrasts = progress.look.map_or(&[][..], |look| &look.contrasts);
    let mut shown: Vec<_> = contrasts
        .iter()
        .filter(|contrast| contrast.interval.half_width().is_finite())
        .collect();
    shown.sort_by(|a, b| {
        let is_settled = |contrast: &Contrast| contrast.decision != Decision::Undecided;
        let widths = b.interval.half_width().total_cmp(&a.interval.half_width());
        is_settled(a).cmp(&is_settled(b)).then(widths)
    });
    let texts = shown.into_iter().filter_map(|contrast| {
        let name = progress.names.get(contrast.arm)?;
        let settled = match contrast.decision {
            Decision::Undecided => "",
            _ => ", settled",
        };
        Some(format!(
            "{} {:+.1}…{:+.1} %{settled}",
            visible(name),
            100.0 * relative_change(contrast.interval.low),
            100.0 * relative_change(contrast.interval.high)
        ))
    });
    texts.take(MAX_INTERVALS).collect()
}
