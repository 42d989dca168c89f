//! The live view: draws frames, handles keys, and pins threads.

use std::io;
use std::time::Duration;

use anyhow::Context;
use ratatui::crossterm::event::{self, Event as Input, KeyEventKind};

use super::keys::{Action, ScrollLimits, press};
use super::screen::Screen;
use super::{KEY_DELAY, Watch, WatchMode, pinning, watch};
use crate::cli::Exit;
use crate::cli::terminal::Terminal;
use pinwise_machine::linux::{Pins, terminal_is_gone, thread_settings};
use pinwise_machine::{Listener, Tracer};
use pinwise_record::TopRecord;
use pinwise_report::top::{PromptKind, Size, View, count_hidden_cpu_rows, lay_out_screen};
use pinwise_sched::live::Live;
use pinwise_sched::{Event, Tier};

/// The first frame comes after this time, or after a shorter interval.
const FIRST_FRAME_DELAY: Duration = Duration::from_millis(250);

/// The state of the live view.
struct Session {
    watch: Watch,
    live: Live,
    mode: WatchMode,
    view: View,
    screen: Screen,
    pins: Option<Pins>,
    /// The last frame.
    record: Option<TopRecord>,
    /// Time of the last frame, or of the start of the trace; ns of the trace's clock.
    last_ns: Option<u64>,
    failure: Option<io::Error>,
    has_quit: bool,
    /// The terminal is gone.
    is_terminal_gone: bool,
}

/// Shows frames until the user leaves.
pub(super) fn show(
    machine: &mut dyn Tracer,
    tiers: &[Option<Tier>],
    watched: Watch,
    view: View,
    pins: Option<Pins>,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let order = watched.trace_order(None);
    let pid = watched.pid;
    let screen = Screen::open(terminal.palette().is_colored()).context("taking the terminal")?;
    let mut session = Session {
        live: watched.new_live(None),
        watch: watched,
        mode: WatchMode::default(),
        view,
        screen,
        pins,
        record: None,
        last_ns: None,
        failure: None,
        has_quit: false,
        is_terminal_gone: false,
    };
    let ended = watch(machine, tiers, order, &mut session, Session::start);
    let Session {
        screen,
        pins,
        failure,
        has_quit,
        ..
    } = session;
    drop(screen);
    undo_pins(pins, terminal);
    if let Some(error) = failure {
        return Err(error).context("the terminal");
    }
    ended?;
    match pid {
        _ if has_quit => Ok(Exit::Done),
        Some(pid) if thread_settings(pid).is_none() => {
            terminal.note(&format!("process {pid} ended"));
            Ok(Exit::Done)
        }
        _ => Ok(Exit::Interrupted),
    }
}

/// Undoes the pins, and reports the result.
fn undo_pins(pins: Option<Pins>, terminal: &Terminal) {
    let Some(mut pins) = pins.filter(|pins| pins.count() > 0) else {
        return;
    };
    let count = pins.count();
    if pins.are_kept() {
        terminal.note(&format!("{count} threads stay pinned"));
        return;
    }
    let mut undone = 0;
    while let Some((_, is_undone)) = pins.undo() {
        undone += usize::from(is_undone);
    }
    terminal.note(&match count - undone {
        0 => format!("pins undone: {undone}"),
        left => format!("pins undone: {undone}; threads that ended or were changed since: {left}"),
    });
}

impl Listener for Session {
    fn events(&mut self, events: &[Event]) {
        self.live.add_events(events);
    }

    fn round(&mut self, now_ns: u64) -> bool {
        self.live.begin(now_ns);
        let since = now_ns.saturating_sub(*self.last_ns.get_or_insert(now_ns));
        let interval = match self.record {
            None => FIRST_FRAME_DELAY.min(self.view.interval),
            Some(_) => self.view.interval,
        };
        // After the terminal was closed, reading keys would loop for ever.
        self.is_terminal_gone |= terminal_is_gone();
        if self.is_terminal_gone {
            return false;
        }
        let has_frame = since >= nanoseconds(interval) && self.take_frame(now_ns);
        match self.handle_keys() {
            Ok(has_keys) if has_frame || has_keys => self.draw(),
            Ok(_) => {}
            Err(error) => self.fail(error),
        }
        !self.has_quit && self.failure.is_none()
    }
}

impl Session {
    fn start(&mut self, mode: WatchMode) {
        self.live = self.watch.new_live(mode.tier);
        self.mode = mode;
        self.last_ns = None;
    }

    /// Makes the next frame; returns whether to show it. Frames are made even while paused, so that
    /// sums restart and ended threads are forgotten.
    fn take_frame(&mut self, now_ns: u64) -> bool {
        self.last_ns = Some(now_ns);
        let record = self.watch.record(&mut self.live, self.mode, now_ns);
        if self.view.is_paused && self.record.is_some() {
            return false;
        }
        self.record = Some(record);
        true
    }

    /// Handles all keys that were pressed; returns whether there were any.
    fn handle_keys(&mut self) -> io::Result<bool> {
        let mut has_input = false;
        // Simulated rounds take no time: without this wait frames would come as fast as possible.
        let mut wait = match self.watch.is_local {
            true => Duration::ZERO,
            false => KEY_DELAY,
        };
        while !self.has_quit && !terminal_is_gone() && event::poll(wait)? {
            has_input = true;
            wait = Duration::ZERO;
            match event::read()? {
                Input::Key(key) if key.kind != KeyEventKind::Release => {
                    let limits = self.scroll_limits()?;
                    let empty = TopRecord::default();
                    let record = self.record.as_ref().unwrap_or(&empty);
                    let action = press(&mut self.view, record, key, limits);
                    self.act(action);
                }
                // After a change of size the frame is drawn again, below.
                _ => {}
            }
        }
        Ok(has_input)
    }

    fn scroll_limits(&self) -> io::Result<ScrollLimits> {
        let size = self.screen.size()?;
        let cpu_rows = self
            .record
            .as_ref()
            .map_or(0, |record| count_hidden_cpu_rows(record, &self.view, size));
        Ok(ScrollLimits {
            page: (size.height / 2).max(1),
            cpu_rows,
        })
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Nothing => {}
            Action::Quit => self.has_quit = true,
            Action::PreviewPin => self.preview_pin(),
            Action::Pin { thread, text } => self.pin(thread, &text),
            Action::Unpin => self.undo_last_pin(),
            Action::ToggleKeep => self.toggle_keep(),
        }
        if let Some(pins) = &self.pins {
            self.view.pins.count = pins.count();
            self.view.pins.are_kept = pins.are_kept();
        }
    }

    /// Shows what the pin that is being typed would do.
    fn preview_pin(&mut self) {
        let topology = &self.watch.topology;
        let Some(prompt) = &mut self.view.prompt else {
            return;
        };
        let PromptKind::Pin { thread, .. } = prompt.kind else {
            return;
        };
        prompt.preview = if self.pins.is_some() {
            let now = thread_settings(thread).map(|(cpus, _)| cpus.to_string());
            pinning::preview_pin(&prompt.text, topology, now.as_deref())
        } else {
            NOT_PINNED.to_owned()
        };
    }

    fn pin(&mut self, thread: i32, text: &str) {
        let Some(pins) = &mut self.pins else {
            self.view.message = Some(NOT_PINNED.to_owned());
            return;
        };
        let outcome = match pinning::parse_cpus(text, &self.watch.topology) {
            Err(reason) => format!("nothing is pinned: {reason}"),
            Ok(cpus) => match pins.pin(thread, &cpus) {
                Err(error) => error.to_string(),
                Ok(granted) if granted == cpus => {
                    format!("thread {thread} may use CPUs {granted}; u or quitting undoes it")
                }
                Ok(granted) => {
                    format!(
                        "thread {thread} was granted only CPUs {granted} of {cpus}; u undoes it"
                    )
                }
            },
        };
        self.view.message = Some(outcome);
    }

    fn undo_last_pin(&mut self) {
        let undone = self.pins.as_mut().and_then(Pins::undo);
        self.view.message = Some(match undone {
            None => "no pin to undo".to_owned(),
            Some((thread, true)) => format!("thread {thread} has its old mask again"),
            Some((thread, false)) => {
                format!("thread {thread} ended, or its mask was changed since: left as it is")
            }
        });
    }

    fn toggle_keep(&mut self) {
        let Some(pins) = &mut self.pins else { return };
        let are_kept = !pins.are_kept();
        pins.keep(are_kept);
        self.view.message = Some(match are_kept {
            true => "pins stay when pinwise quits".to_owned(),
            false => "pins are undone when pinwise quits".to_owned(),
        });
    }

    fn draw(&mut self) {
        let Some(record) = &mut self.record else {
            return;
        };
        if self.watch.is_local {
            pinning::add_settings(record, &self.view);
        }
        let (record, view) = (&*record, &self.view);
        let drawn = self
            .screen
            .show(|size: Size| lay_out_screen(record, view, size));
        if let Err(error) = drawn {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }
}

const NOT_PINNED: &str = "threads of a simulated machine cannot be pinned";

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
