//! The fields of the scheduler's events, as printed by the kernel and by `trace-cmd report`.
//!
//! Names are unquoted and may contain text that looks like fields. Since a name has at most 15
//! bytes, the last place in reach where the next field can begin is the right one.

use std::path::Path;

use super::columns::number;
use crate::import::raw_event::{Comm, NamedThread, RawKind};
use crate::{LeaveReason, States, Tid};

/// Longest name of a thread.
const LONGEST_NAME: usize = 15;

/// `CLONE_THREAD` of `clone(2)`.
const CLONE_THREAD: u64 = 0x10000;

/// Parses an event. The error is a clause that names the field.
pub(super) fn read(event: &[u8], arguments: &[u8]) -> Result<RawKind, String> {
    let mut rest = Rest(arguments);
    let what = match event {
        b"sched_switch" if !arguments.starts_with(b"prev_comm=") => rest.short_switch()?,
        b"sched_switch" => rest.switch()?,
        b"sched_wakeup" | b"sched_wakeup_new" => {
            let (who, target) = rest.wakeup()?;
            let is_new = event == b"sched_wakeup_new";
            RawKind::Wakeup {
                who,
                target,
                is_new,
            }
        }
        b"sched_waking" => {
            let (who, target) = rest.wakeup()?;
            RawKind::Waking { who, target }
        }
        b"sched_migrate_task" => rest.read_move()?,
        b"sched_process_fork" => RawKind::Fork {
            parent: rest.person("comm=", " pid=")?.thread,
            child: rest.person("child_comm=", " child_pid=")?,
            process: None,
        },
        b"sched_process_exec" => rest.exec()?,
        b"sched_process_exit" => RawKind::Exit {
            thread: rest.person("comm=", " pid=")?.thread,
        },
        b"task_newtask" => rest.new_task()?,
        b"task_rename" => rest.rename()?,
        _ => RawKind::Nothing,
    };
    Ok(what)
}

/// The rest of a line.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn switch(&mut self) -> Result<RawKind, String> {
        let prev = self.person("prev_comm=", " prev_pid=")?;
        self.value("prev_prio=")?;
        let left = parse_left(self.value("prev_state=")?)?;
        // `trace-cmd report -R` omits the arrow.
        self.0 = self.0.strip_prefix(b"==> ").unwrap_or(self.0);
        let next = self.person("next_comm=", " next_pid=")?;
        Ok(RawKind::Switch { prev, left, next })
    }

    /// `bash:317 [120] S ==> swapper/0:0 [120]`, from trace-cmd.
    fn short_switch(&mut self) -> Result<RawKind, String> {
        let mut left_as = LeaveReason::Unreported;
        let prev = self.short_person("prev_pid", |rest| {
            let (state, rest) = split_at_word(rest, b" ==> ")?;
            left_as = parse_left(state).ok()?;
            Some(rest)
        })?;
        let next = self.short_person("next_pid", |rest| rest.is_empty().then_some(rest))?;
        let left = left_as;
        Ok(RawKind::Switch { prev, left, next })
    }

    fn wakeup(&mut self) -> Result<(NamedThread, u32), String> {
        if self.0.starts_with(b"comm=") {
            let who = self.person("comm=", " pid=")?;
            self.value("prio=")?;
            if self.0.starts_with(b"success=") {
                self.value("success=")?;
            }
            return Ok((who, self.cpu("target_cpu=")?));
        }
        // Kernels since 4.1 have no success, which trace-cmd may still ask for.
        const NO_SUCCESS: &[u8] = b"<CANT FIND FIELD success> ";
        let who = self.short_person("pid", |rest| {
            let rest = rest.strip_prefix(NO_SUCCESS).unwrap_or(rest);
            let has_more = rest.starts_with(b"success=") || rest.starts_with(b"CPU:");
            has_more.then_some(rest)
        })?;
        if self.0.starts_with(b"success=") {
            self.value("success=")?;
        }
        Ok((who, self.cpu("CPU:")?))
    }

    fn read_move(&mut self) -> Result<RawKind, String> {
        let who = self.person("comm=", " pid=")?;
        self.value("prio=")?;
        self.value("orig_cpu=")?;
        let target = self.cpu("dest_cpu=")?;
        Ok(RawKind::Moved { who, target })
    }

    /// The kernel names a thread after its executable.
    fn exec(&mut self) -> Result<RawKind, String> {
        let file = self.text("filename=", " pid=", self.0.len())?;
        let thread = self.thread(" pid=")?;
        let file = String::from_utf8_lossy(file);
        let name = Path::new(&*file).file_name().unwrap_or_default();
        let name = Comm::new(name.as_encoded_bytes());
        Ok(RawKind::Name {
            who: NamedThread { thread, name },
            process: Some(thread),
            is_exec: true,
        })
    }

    /// Comes before `sched_process_fork`; only this event distinguishes threads from processes.
    fn new_task(&mut self) -> Result<RawKind, String> {
        let thread = self.thread("pid=")?;
        let name = self.text("comm=", " clone_flags=", LONGEST_NAME)?;
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

    fn rename(&mut self) -> Result<RawKind, String> {
        let thread = self.thread("pid=")?;
        self.text("oldcomm=", " newcomm=", LONGEST_NAME)?;
        self.0 = self.0.trim_ascii_start();
        let name = self.text("newcomm=", " oom_score_adj=", LONGEST_NAME)?;
        Ok(RawKind::Name {
            who: NamedThread {
                thread,
                name: Comm::new(name),
            },
            process: None,
            is_exec: false,
        })
    }

    /// A name and the thread's id after it.
    fn person(&mut self, name: &str, number: &str) -> Result<NamedThread, String> {
        let name = Comm::new(self.text(name, number, LONGEST_NAME)?);
        let thread = self.thread(number)?;
        Ok(NamedThread { thread, name })
    }

    /// `NAME:PID [PRIORITY]`: `check` parses what follows and returns the rest.
    fn short_person(
        &mut self,
        field: &str,
        mut check: impl FnMut(&'a [u8]) -> Option<&'a [u8]>,
    ) -> Result<NamedThread, String> {
        let text = self.0;
        for end in (0..=LONGEST_NAME.min(text.len())).rev() {
            let found = text[end..].strip_prefix(b":").and_then(number);
            let priority = found.and_then(|(thread, rest)| {
                let rest = rest.strip_prefix(b" [")?;
                let (_, rest) = split_at_word(rest, b"]")?;
                Some((thread, check(rest.trim_ascii_start())?))
            });
            let Some((thread, rest)) = priority else {
                continue;
            };
            let name = Comm::new(&text[..end]);
            let thread = Tid::try_from(thread).map_err(|_| format!("{field} is too large"))?;
            self.0 = rest;
            return Ok(NamedThread { thread, name });
        }
        Err(self.lacks(field))
    }

    /// The text between `key` and the last `next` that begins in reach.
    fn text(&mut self, key: &str, next: &str, reach: usize) -> Result<&'a [u8], String> {
        self.expect(key)?;
        let window = &self.0[..self.0.len().min(reach.saturating_add(next.len()))];
        let mut places = window.windows(next.len());
        let end = places.rposition(|place| place == next.as_bytes());
        let end = end.ok_or_else(|| self.lacks(next))?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(text)
    }

    fn thread(&mut self, key: &str) -> Result<Tid, String> {
        let value = self.value(key)?;
        let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
        number.ok_or_else(|| wrong(key, value))
    }

    fn cpu(&mut self, key: &str) -> Result<u32, String> {
        let value = self.value(key)?;
        let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
        number.ok_or_else(|| wrong(key, value))
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
        self.0 = rest.ok_or_else(|| self.lacks(key))?;
        Ok(())
    }

    fn lacks(&self, key: &str) -> String {
        let key = key.trim().trim_end_matches(['=', ':']);
        let shown = self.0[..self.0.len().min(40)].escape_ascii();
        format!("no field '{key}' where it should be, at '{shown}'")
    }
}

fn wrong(key: &str, value: &[u8]) -> String {
    let key = key.trim().trim_end_matches(['=', ':']);
    let shown = value[..value.len().min(40)].escape_ascii();
    format!("field '{key}' is '{shown}', not a number")
}

fn split_at_word<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = text.windows(at.len()).position(|window| window == at)?;
    Some((&text[..place], &text[place + at.len()..]))
}

/// `S`, `R+`, `D|K`, `x`; a number if fields are printed raw.
fn parse_left(state: &[u8]) -> Result<LeaveReason, String> {
    let hex = state
        .strip_prefix(b"0x")
        .and_then(|hex| std::str::from_utf8(hex).ok());
    if let Some(state) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
        return Ok(States::USUAL.left(state));
    }
    if let Some((state, b"")) = number(state) {
        return Ok(States::USUAL.left(state));
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
