//! Parses the fields of the scheduler's events, as printed by the kernel and by `trace-cmd report`.
//!
//! Names are unquoted and may contain text that looks like fields. A name has at most 15 bytes: it
//! ends at the last position within these where the next field can begin.

use std::path::Path;

use super::columns::parse_number;
use crate::import::raw_event::{Comm, NamedThread, RawKind};
use crate::{LeaveReason, States, Tid};

/// Longest name of a thread.
const MAX_NAME_BYTES: usize = 15;

/// `CLONE_THREAD` of `clone(2)`.
const CLONE_THREAD: u64 = 0x10000;

/// Parses an event. The error is a clause that names the field.
pub(super) fn parse(event: &[u8], arguments: &[u8]) -> Result<RawKind, String> {
    let mut rest = Rest(arguments);
    let what = match event {
        b"sched_switch" if !arguments.starts_with(b"prev_comm=") => rest.parse_short_switch()?,
        b"sched_switch" => rest.parse_switch()?,
        b"sched_wakeup" | b"sched_wakeup_new" => {
            let (who, target) = rest.parse_wakeup()?;
            let is_new = event == b"sched_wakeup_new";
            RawKind::Wakeup {
                who,
                target,
                is_new,
            }
        }
        b"sched_waking" => {
            let (who, target) = rest.parse_wakeup()?;
            RawKind::Waking { who, target }
        }
        b"sched_migrate_task" => rest.parse_move()?,
        b"sched_process_fork" => RawKind::Fork {
            parent: rest.parse_thread("comm=", " pid=")?.thread,
            child: rest.parse_thread("child_comm=", " child_pid=")?,
            process: None,
        },
        b"sched_process_exec" => rest.parse_exec()?,
        b"sched_process_exit" => RawKind::Exit {
            thread: rest.parse_thread("comm=", " pid=")?.thread,
        },
        b"task_newtask" => rest.parse_new_task()?,
        b"task_rename" => rest.parse_rename()?,
        _ => RawKind::Other,
    };
    Ok(what)
}

/// The rest of a line.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn parse_switch(&mut self) -> Result<RawKind, String> {
        let prev = self.parse_thread("prev_comm=", " prev_pid=")?;
        self.value("prev_prio=")?;
        let left = parse_leave_reason(self.value("prev_state=")?)?;
        // `trace-cmd report -R` omits the arrow.
        self.0 = self.0.strip_prefix(b"==> ").unwrap_or(self.0);
        let next = self.parse_thread("next_comm=", " next_pid=")?;
        Ok(RawKind::Switch { prev, left, next })
    }

    /// Parses trace-cmd's `bash:317 [120] S ==> swapper/0:0 [120]`.
    fn parse_short_switch(&mut self) -> Result<RawKind, String> {
        let mut left = LeaveReason::Unreported;
        let prev = self.parse_short_thread("prev_pid", |rest| {
            let (state, rest) = split_at_word(rest, b" ==> ")?;
            left = parse_leave_reason(state).ok()?;
            Some(rest)
        })?;
        let next = self.parse_short_thread("next_pid", |rest| rest.is_empty().then_some(rest))?;

        Ok(RawKind::Switch { prev, left, next })
    }

    fn parse_wakeup(&mut self) -> Result<(NamedThread, u32), String> {
        if self.0.starts_with(b"comm=") {
            let who = self.parse_thread("comm=", " pid=")?;
            self.value("prio=")?;
            if self.0.starts_with(b"success=") {
                self.value("success=")?;
            }
            return Ok((who, self.parse_number_after("target_cpu=")?));
        }
        // Kernels since 4.1 have no field `success`, which trace-cmd may still try to print.
        const NO_SUCCESS: &[u8] = b"<CANT FIND FIELD success> ";
        let who = self.parse_short_thread("pid", |rest| {
            let rest = rest.strip_prefix(NO_SUCCESS).unwrap_or(rest);
            let has_more = rest.starts_with(b"success=") || rest.starts_with(b"CPU:");
            has_more.then_some(rest)
        })?;
        if self.0.starts_with(b"success=") {
            self.value("success=")?;
        }
        Ok((who, self.parse_number_after("CPU:")?))
    }

    fn parse_move(&mut self) -> Result<RawKind, String> {
        let who = self.parse_thread("comm=", " pid=")?;
        self.value("prio=")?;
        self.value("orig_cpu=")?;
        let target = self.parse_number_after("dest_cpu=")?;
        Ok(RawKind::Moved { who, target })
    }

    /// Parses an exec; the kernel names the thread after the executable file.
    fn parse_exec(&mut self) -> Result<RawKind, String> {
        let file = self.text("filename=", " pid=", self.0.len())?;
        let thread = self.parse_number_after(" pid=")?;
        let file = String::from_utf8_lossy(file);
        let name = Path::new(&*file).file_name().unwrap_or_default();
        let name = Comm::new(name.as_encoded_bytes());
        Ok(RawKind::Name {
            who: NamedThread { thread, name },
            process: Some(thread),
            is_exec: true,
        })
    }

    /// Parses `task_newtask`, which comes before `sched_process_fork`; only this event
    /// distinguishes threads from processes.
    fn parse_new_task(&mut self) -> Result<RawKind, String> {
        let thread = self.parse_number_after("pid=")?;
        let name = self.text("comm=", " clone_flags=", MAX_NAME_BYTES)?;
        self.0 = self.0.trim_ascii_start();
        let flags = self.value("clone_flags=")?;
        let flags = std::str::from_utf8(flags).ok();
        let flags = flags.and_then(|flags| u64::from_str_radix(flags, 16).ok());
        let flags = flags.ok_or("clone_flags is not a number")?;
        Ok(RawKind::New {
            who: NamedThread {
                thread,
                name: Comm::new(name),
            },
            is_thread: flags & CLONE_THREAD != 0,
        })
    }

    fn parse_rename(&mut self) -> Result<RawKind, String> {
        let thread = self.parse_number_after("pid=")?;
        self.text("oldcomm=", " newcomm=", MAX_NAME_BYTES)?;
        self.0 = self.0.trim_ascii_start();
        let name = self.text("newcomm=", " oom_score_adj=", MAX_NAME_BYTES)?;
        Ok(RawKind::Name {
            who: NamedThread {
                thread,
                name: Comm::new(name),
            },
            process: None,
            is_exec: false,
        })
    }

    /// Parses a name and the thread's id after it.
    fn parse_thread(&mut self, name: &str, number: &str) -> Result<NamedThread, String> {
        let name = Comm::new(self.text(name, number, MAX_NAME_BYTES)?);
        let thread = self.parse_number_after(number)?;
        Ok(NamedThread { thread, name })
    }

    /// Parses `NAME:PID [PRIORITY]`. `parse_next` parses what follows and returns the rest; without
    /// a result another end of the name is tried.
    fn parse_short_thread(
        &mut self,
        field: &str,
        mut parse_next: impl FnMut(&'a [u8]) -> Option<&'a [u8]>,
    ) -> Result<NamedThread, String> {
        let text = self.0;
        for end in (0..=MAX_NAME_BYTES.min(text.len())).rev() {
            let found = text[end..].strip_prefix(b":").and_then(parse_number);
            let parsed = found.and_then(|(thread, rest)| {
                let rest = rest.strip_prefix(b" [")?;
                let (_, rest) = split_at_word(rest, b"]")?;
                Some((thread, parse_next(rest.trim_ascii_start())?))
            });
            let Some((thread, rest)) = parsed else {
                continue;
            };
            let name = Comm::new(&text[..end]);
            let thread = Tid::try_from(thread).map_err(|_| format!("{field} is too large"))?;
            self.0 = rest;
            return Ok(NamedThread { thread, name });
        }
        Err(self.explain_missing(field))
    }

    /// The text between `key` and the last `next` that begins within `max_bytes`.
    fn text(&mut self, key: &str, next: &str, max_bytes: usize) -> Result<&'a [u8], String> {
        self.expect(key)?;
        let window = &self.0[..self.0.len().min(max_bytes.saturating_add(next.len()))];
        let mut candidates = window.windows(next.len());
        let end = candidates.rposition(|candidate| candidate == next.as_bytes());
        let end = end.ok_or_else(|| self.explain_missing(next))?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(text)
    }

    fn parse_number_after<T: std::str::FromStr>(&mut self, key: &str) -> Result<T, String> {
        let value = self.value(key)?;
        let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
        number.ok_or_else(|| explain_not_a_number(key, value))
    }

    /// The word after `key`.
    fn value(&mut self, key: &str) -> Result<&'a [u8], String> {
        self.expect(key)?;
        let end = self.0.iter().position(|byte| *byte == b' ');
        let (value, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.trim_ascii_start();
        Ok(value)
    }

    fn expect(&mut self, key: &str) -> Result<(), String> {
        let rest = self.0.strip_prefix(key.as_bytes());
        self.0 = rest.ok_or_else(|| self.explain_missing(key))?;
        Ok(())
    }

    fn explain_missing(&self, key: &str) -> String {
        let key = key.trim().trim_end_matches(['=', ':']);
        let shown = self.0[..self.0.len().min(40)].escape_ascii();
        format!("no field '{key}' where it should be, at '{shown}'")
    }
}

fn explain_not_a_number(key: &str, value: &[u8]) -> String {
    let key = key.trim().trim_end_matches(['=', ':']);
    let shown = value[..value.len().min(40)].escape_ascii();
    format!("field '{key}' is '{shown}', not a number")
}

fn split_at_word<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = text.windows(at.len()).position(|window| window == at)?;
    Some((&text[..place], &text[place + at.len()..]))
}

/// Parses the state in which a thread left its CPU: `S`, `R+`, `D|K`, `x`, or a number if fields
/// are printed raw.
fn parse_leave_reason(state: &[u8]) -> Result<LeaveReason, String> {
    let hex = state
        .strip_prefix(b"0x")
        .and_then(|hex| std::str::from_utf8(hex).ok());
    if let Some(state) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
        return Ok(States::USUAL.find_leave_reason(state));
    }
    if let Some((state, b"")) = parse_number(state) {
        return Ok(States::USUAL.find_leave_reason(state));
    }
    match state.first() {
        Some(b'R') => Ok(LeaveReason::Preempted),
        Some(b'X' | b'Z' | b'x') => Ok(LeaveReason::Ended),
        Some(b'S' | b'D' | b'T' | b't' | b'P' | b'I' | b'K' | b'W' | b'N' | b'p') => {
            Ok(LeaveReason::Blocked)
        }
        _ => {
            let shown = state[..state.len().min(40)].escape_ascii();
            Err(format!(
                "field 'prev_state' is '{shown}', not a state of a thread"
            ))
        }
    }
}
