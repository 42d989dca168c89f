//! Takes over the terminal (raw mode, alternate screen), and restores it however pinwise ends.

use std::io::{self, Stdout, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::force_color_output;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use pinwise_report::top::{Row, Size, draw};

/// The terminal on standard output.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    is_colored: bool,
    /// Shared with the hook that restores the terminal before a panic is reported: on the alternate
    /// screen the message would be lost.
    is_taken: Arc<AtomicBool>,
}

impl Screen {
    pub(super) fn open(is_colored: bool) -> io::Result<Self> {
        // Use our decision on colour: the library considers NO_COLOR only.
        force_color_output(is_colored);
        let is_taken = Arc::new(AtomicBool::new(true));
        let hooked = Arc::clone(&is_taken);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore_terminal(&hooked);
            before(info);
        }));
        let opened = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self {
                terminal,
                is_colored,
                is_taken,
            }),
            Err(error) => {
                restore_terminal(&is_taken);
                Err(error)
            }
        }
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> io::Result<Size> {
        let size = self.terminal.size()?;
        Ok(Size {
            width: size.width.into(),
            height: size.height.into(),
        })
    }

    /// Draws the rows that `rows` makes for the present size.
    pub(super) fn show(&mut self, rows: impl FnOnce(Size) -> Vec<Row>) -> io::Result<()> {
        let is_colored = self.is_colored;
        self.terminal.draw(|frame| {
            let size = Size {
                width: frame.area().width.into(),
                height: frame.area().height.into(),
            };
            draw(&rows(size), is_colored, frame.buffer_mut());
        })?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal(&self.is_taken);
    }
}

/// Restores the terminal, if that was not done before.
fn restore_terminal(is_taken: &AtomicBool) {
    if !is_taken.swap(false, Ordering::SeqCst) {
        return;
    }
    // Nothing can be done if this fails.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}
