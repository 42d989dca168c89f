//! What keys do: changes the view and returns the action that remains to be done.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::INTERVALS;
use pinwise_record::TopRecord;
use pinwise_report::top::{Focus, Prompt, PromptKind, View};

/// The most characters that can be typed into a prompt.
const MAX_TYPED_CHARACTERS: usize = 200;

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Only the view changed.
    Nothing,
    /// Quit.
    Quit,
    /// Describe what the pin that is being typed would do.
    PreviewPin,
    /// Pin this thread to what was typed.
    Pin {
        /// The thread.
        thread: i32,
        /// The CPUs, as typed so far.
        text: String,
    },
    /// Undo the last pin.
    Unpin,
    /// Toggle whether pins are kept on exit.
    ToggleKeep,
}

/// How far the user can scroll.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScrollLimits {
    /// Rows of a page.
    pub(super) page: usize,
    /// Rows of CPUs that can be scrolled away.
    pub(super) cpu_rows: usize,
}

/// Handles a key.
pub(super) fn press(
    view: &mut View,
    record: &TopRecord,
    key: KeyEvent,
    limits: ScrollLimits,
) -> Action {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    if is_control && matches!(key.code, KeyCode::Char('c' | 'C')) {
        return Action::Quit;
    }
    if view.prompt.is_some() {
        return edit_prompt(view, key.code, is_control);
    }
    view.message = None;
    if view.shows_help {
        view.shows_help = false;
        return Action::Nothing;
    }
    if is_control || key.modifiers.contains(KeyModifiers::ALT) {
        return Action::Nothing;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
        KeyCode::Char('u') => return Action::Unpin,
        KeyCode::Char('P') => return Action::ToggleKeep,
        KeyCode::Char('p') => return prompt_for_pin(view, record),
        KeyCode::Char('f' | '/') => {
            view.prompt = Some(Prompt {
                kind: PromptKind::Filter,
                text: view.filter.clone(),
                preview: "Enter applies it, Esc shows all".to_owned(),
            });
        }
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => view.shows_help = true,
        KeyCode::Char(' ') => view.is_paused = !view.is_paused,
        KeyCode::Char('s' | '>') => view.order = view.order.next(),
        KeyCode::Char('<') => view.order = view.order.previous(),
        KeyCode::Char('+' | '=') => view.interval = step_interval(view.interval, 2.0),
        KeyCode::Char('-') => view.interval = step_interval(view.interval, 0.5),
        KeyCode::Tab => {
            view.focus = match view.focus {
                Focus::Threads => Focus::Cpus,
                Focus::Cpus => Focus::Threads,
            };
            view.cpu_top = 0;
        }
        code => move_selection(view, record, code, limits),
    }
    Action::Nothing
}

fn step_interval(interval: Duration, by: f64) -> Duration {
    interval
        .mul_f64(by)
        .clamp(*INTERVALS.start(), *INTERVALS.end())
}

fn move_selection(view: &mut View, record: &TopRecord, code: KeyCode, limits: ScrollLimits) {
    let last = match view.focus {
        Focus::Threads => view.arrange_threads(record).len().saturating_sub(1),
        Focus::Cpus => limits.cpu_rows,
    };
    let arranged = view.arrange_threads(record);
    let row = match view.focus {
        Focus::Threads => view.find_chosen_row(&arranged),
        Focus::Cpus => view.cpu_top,
    };
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => row.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => row + 1,
        KeyCode::PageUp => row.saturating_sub(limits.page),
        KeyCode::PageDown => row + limits.page,
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => return,
    };
    let to = to.min(last);
    match view.focus {
        Focus::Threads => view.chosen = arranged.get(to).map(|thread| thread.thread),
        Focus::Cpus => view.cpu_top = to,
    }
}

fn prompt_for_pin(view: &mut View, record: &TopRecord) -> Action {
    let arranged = view.arrange_threads(record);
    let Some(thread) = arranged.get(view.find_chosen_row(&arranged)) else {
        view.message = Some("no thread to pin".to_owned());
        return Action::Nothing;
    };
    let (tid, name) = (thread.thread, thread.name.clone().unwrap_or_default());
    view.chosen = Some(tid);
    view.prompt = Some(Prompt {
        kind: PromptKind::Pin { thread: tid, name },
        text: String::new(),
        preview: String::new(),
    });
    Action::PreviewPin
}

fn edit_prompt(view: &mut View, code: KeyCode, is_control: bool) -> Action {
    let Some(prompt) = &mut view.prompt else {
        return Action::Nothing;
    };
    match code {
        KeyCode::Enter | KeyCode::Esc => return close_prompt(view, code == KeyCode::Enter),
        KeyCode::Backspace => {
            prompt.text.pop();
        }
        KeyCode::Char('u' | 'w') if is_control => prompt.text.clear(),
        KeyCode::Char(_) if is_control => return Action::Nothing,
        KeyCode::Char(c) if prompt.text.chars().count() < MAX_TYPED_CHARACTERS => {
            prompt.text.push(c)
        }
        _ => return Action::Nothing,
    }
    match prompt.kind {
        PromptKind::Filter => {
            view.filter.clone_from(&prompt.text);
            Action::Nothing
        }
        PromptKind::Pin { .. } => Action::PreviewPin,
    }
}

fn close_prompt(view: &mut View, is_confirmed: bool) -> Action {
    let Some(prompt) = view.prompt.take() else {
        return Action::Nothing;
    };
    match (prompt.kind, is_confirmed) {
        (PromptKind::Filter, true) => view.filter = prompt.text,
        (PromptKind::Filter, false) => view.filter.clear(),
        (PromptKind::Pin { thread, .. }, true) => {
            let text = prompt.text;
            return Action::Pin { thread, text };
        }
        (PromptKind::Pin { .. }, false) => {}
    }
    Action::Nothing
}

#[cfg(test)]
mod tests;
