//! Runs a template's commands, several at a time.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::launcher::{LaunchError, join_to_line};

/// The output of a command and how it ended.
#[derive(Debug)]
pub(super) struct ShellOutput(Output);

impl ShellOutput {
    /// Standard output, then standard error.
    pub(super) fn combined_output(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&self.0.stdout) + &text(&self.0.stderr)
    }

    /// Standard output, or an error if the command failed.
    pub(super) fn require_success(&self, launcher: &str) -> Result<String, LaunchError> {
        if self.0.status.success() {
            return Ok(String::from_utf8_lossy(&self.0.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&self.0.stderr);
        let message = match stderr.trim() {
            "" => format!("its command failed: {}", self.0.status),
            text => join_to_line(text.lines()),
        };
        Err(LaunchError::Refused {
            program: launcher.to_owned(),
            message,
        })
    }
}

/// Runs a command line in its own process group, so that the user's terminal does not end processes
/// that it leaves running.
pub(super) fn run_in_shell(launcher: &str, line: &str) -> Result<ShellOutput, LaunchError> {
    #[expect(clippy::disallowed_methods, reason = "a launcher starts jobs")]
    let mut command = Command::new("sh");
    let output = command
        .args(["-c", line])
        .stdin(Stdio::null())
        .process_group(0)
        .output();
    output
        .map(ShellOutput)
        .map_err(|reason| LaunchError::System {
            what: format!("the shell for {launcher}"),
            reason,
        })
}

/// Processes items, `parallel` at a time, and passes each result to `on_result` as it comes. After
/// an error, no further item is started, and the first error is returned.
pub(super) fn for_each_parallel<T: Sync, R: Send>(
    items: &[T],
    parallel: usize,
    work: impl Fn(&T) -> Result<R, LaunchError> + Sync,
    mut on_result: impl FnMut(&T, R),
) -> Result<(), LaunchError> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let (sender, results) = mpsc::channel();
    let mut first_error = None;
    std::thread::scope(|scope| {
        for _ in 0..parallel.clamp(1, items.len().max(1)) {
            let sender = sender.clone();
            let (next, has_failed, work) = (&next, &has_failed, &work);
            scope.spawn(move || {
                while !has_failed.load(Ordering::SeqCst) {
                    let Some(item) = items.get(next.fetch_add(1, Ordering::SeqCst)) else {
                        return;
                    };
                    let result = work(item);
                    if result.is_err() {
                        has_failed.store(true, Ordering::SeqCst);
                    }
                    if sender.send((item, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (item, result) in results {
            match result {
                Ok(value) => on_result(item, value),
                Err(error) => first_error = first_error.take().or(Some(error)),
            }
        }
    });
    first_error.map_or(Ok(()), Err)
}
