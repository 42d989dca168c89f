//! The progress line: the time so far, what runs, the intervals so far, the
//! time left.
//!
//! Its text changes between runs only. While a command is measured, the clock
//! on it moves once a second: a thread that wakes for some microseconds.

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
use pinwise_study::search::Progress as Searching;

/// Steps of the bar.
const STEPS: u32 = 1000;
/// Drawings per second at most.
const RATE: u8 = 8;
/// How often the clock moves.
const TICK: Duration = Duration::from_secs(1);
/// Arms whose intervals are on the line.
const SHOWN: usize = 3;

/// One line on standard error.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: ProgressBar,
    terminal: Terminal,
}

impl ProgressLine {
    pub(super) fn new(terminal: &Terminal) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(RATE);
        let bar = ProgressBar::with_draw_target(Some(u64::from(STEPS)), target);
        let template = terminal.on_stderr("{bar:20} {elapsed} · {wide_msg}");
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
        self.bar.set_position(steps(progress.fraction));
        self.set_message(&message(progress));
    }

    /// A step of measuring the machine itself.
    pub(super) fn show_step(&mut self, step: &Step) {
        self.bar.set_position(steps(step.fraction));
        self.set_message(&format!(
            "measuring {} · at most {} left",
            step.part,
            duration(step.left)
        ));
    }

    /// A search, and its leader.
    pub(super) fn show_search(&mut self, progress: &Searching<'_>) {
        let most = progress.most_runs.unwrap_or_default();
        let done = match most {
            0 => 0.0,
            most => progress.runs as f64 / most as f64,
        };
        self.bar.set_position(steps(done));
        self.set_message(&describe_search(progress));
    }

    /// A gate, and what it has found.
    pub(super) fn show_gate(&mut self, progress: &GateProgress<'_>) {
        self.bar.set_position(steps(progress.fraction));
        self.set_message(&describe_gate(progress));
    }

    /// A part of an experiment that is not a comparison.
    pub(super) fn show_part(&mut self, what: &str, done: usize, all: usize) {
        self.bar
            .set_position(steps(done as f64 / all.max(1) as f64));
        self.set_message(&format!("{what} {} of {all}", done + 1));
    }

    fn set_message(&self, text: &str) {
        self.bar.set_message(self.terminal.on_stderr(text));
    }

    /// Prints something above the line.
    pub(super) fn print_above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn steps(fraction: f64) -> u64 {
    whole((fraction.clamp(0.0, 1.0) * f64::from(STEPS)).floor())
}

fn message(progress: &Progress<'_>) -> String {
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
    // Last, since a narrow terminal cuts the end.
    for interval in intervals(progress) {
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

fn describe_search(progress: &Searching<'_>) -> String {
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

/// The intervals so far, those farthest from an answer first.
fn intervals(progress: &Progress<'_>) -> Vec<String> {
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
    texts.take(SHOWN).collect()
}
