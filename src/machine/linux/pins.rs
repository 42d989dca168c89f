//! Threads of others, pinned for as long as pinwise watches them.
//!
//! What is pinned is undone in the end, however pinwise ends: a guardian
//! process hears of every pin before it is made and undoes what is left when
//! its pipe closes. A thread is only touched if it still is the one that was
//! pinned (its number may have come again) and still has the mask that it was
//! given: who changed it since then meant it. Nothing is pinned while the
//! guardian is not there.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::capture::read_file;
use super::sys;
use crate::topology::CpuSet;

/// Why a thread could not be pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It ended.
    #[error("thread {0} is no longer there")]
    Gone(i32),
    /// It belongs to someone else.
    #[error(
        "thread {0} belongs to another user: nothing is changed (CAP_SYS_NICE would permit it)"
    )]
    Foreign(i32),
    /// The kernel does not allow it: a thread of its own, or no CPU of the
    /// mask is in the thread's cpuset.
    #[error("the kernel forbids CPUs {1} to thread {0} (its cpuset, or a thread of the kernel's)")]
    Forbidden(i32, CpuSet),
    /// Nobody would undo it.
    #[error("the guardian that undoes pins is gone ({0}): nothing is changed")]
    Unguarded(io::Error),
    /// Something else.
    #[error("thread {0}: {1}")]
    System(i32, io::Error),
}

/// A pin that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pin {
    thread: i32,
    /// When the thread was started, ticks since boot.
    start: u64,
    before: CpuSet,
    asked: CpuSet,
    /// What the kernel made of it: less where a cpuset forbids CPUs.
    granted: CpuSet,
}

/// Pins that were made, oldest first. They are undone when it is dropped.
#[derive(Debug)]
pub struct Pins {
    lifeline: File,
    made: Vec<Pin>,
    are_kept: bool,
}

impl Pins {
    /// Starts the guardian. Call while this process has a single thread, and
    /// before it becomes the parent of orphans.
    ///
    /// # Errors
    /// Where the system has no pipe or process for it.
    pub fn start() -> io::Result<Self> {
        let (read, write) = sys::pipe(0)?;
        // SAFETY: this process has a single thread, so the child may run
        // ordinary code; both children leave by _exit.
        unsafe {
            let middle = sys::check(libc::fork())?;
            if middle == 0 {
                if libc::fork() == 0 {
                    drop(write);
                    guard(&read);
                }
                libc::_exit(0);
            }
            let mut status = 0;
            libc::waitpid(middle, &raw mut status, 0);
        }
        Ok(Self {
            lifeline: File::from(write),
            made: Vec::new(),
            are_kept: false,
        })
    }

    /// How many pins are in force.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.made.len()
    }

    /// Pins a thread; returns the CPUs that it was granted.
    ///
    /// # Errors
    /// [`PinError`]; then the thread is as it was.
    pub fn pin(&mut self, thread: i32, cpus: &CpuSet) -> Result<CpuSet, PinError> {
        let start = start_of(thread).ok_or(PinError::Gone(thread))?;
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::ESRCH) => PinError::Gone(thread),
            Some(libc::EPERM) => PinError::Foreign(thread),
            Some(libc::EINVAL) => PinError::Forbidden(thread, cpus.clone()),
            _ => PinError::System(thread, error),
        };
        let before = sys::affinity_of(thread).map_err(failed)?;
        let pin = Pin {
            thread,
            start,
            before,
            asked: cpus.clone(),
            granted: cpus.clone(),
        };
        self.tell(&Word::Made(pin.clone()))?;
        if let Err(error) = sys::set_affinity_of(thread, cpus) {
            self.tell(&Word::Undone)?;
            return Err(failed(error));
        }
        let granted = sys::affinity_of(thread).unwrap_or_else(|_| cpus.clone());
        self.made.push(Pin {
            granted: granted.clone(),
            ..pin
        });
        self.tell(&Word::Granted(granted.clone()))?;
        Ok(granted)
    }

    /// Undoes the last pin; returns its thread and whether the thread has its
    /// old mask again, which it has not where it ended or where someone else
    /// changed the mask since. `None`: there is none.
    pub fn undo(&mut self) -> Option<(i32, bool)> {
        let pin = self.made.pop()?;
        let is_undone = pin.undo();
        // A guardian that is gone has nothing to forget.
        let _ = self.tell(&Word::Undone);
        Some((pin.thread, is_undone))
    }

    /// Do pins stay when pinwise leaves?
    #[must_use]
    pub const fn are_kept(&self) -> bool {
        self.are_kept
    }

    /// Shall pins stay when pinwise leaves?
    pub fn keep(&mut self, are_kept: bool) {
        self.are_kept = are_kept;
        let _ = self.tell(&Word::Kept(are_kept));
    }

    fn tell(&mut self, word: &Word) -> Result<(), PinError> {
        let line = format!("{}\n", word.to_line());
        self.lifeline
            .write_all(line.as_bytes())
            .map_err(PinError::Unguarded)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if self.are_kept {
            return;
        }
        while self.undo().is_some() {}
    }
}

impl Pin {
    /// Gives the thread its old mask, if it is still the one and has the mask
    /// that it was given here.
    fn undo(&self) -> bool {
        if start_of(self.thread) != Some(self.start) {
            return false;
        }
        let Ok(now) = sys::affinity_of(self.thread) else {
            return false;
        };
        let is_ours = now == self.granted || now == self.asked;
        is_ours && sys::set_affinity_of(self.thread, &self.before).is_ok()
    }
}

/// What the guardian is told, a line each.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// A pin is about to be made.
    Made(Pin),
    /// The last one was granted these CPUs.
    Granted(CpuSet),
    /// The last one is no more.
    Undone,
    /// Pins stay, or do not.
    Kept(bool),
}

impl Word {
    fn to_line(&self) -> String {
        match self {
            Self::Made(pin) => {
                let Pin { thread, start, .. } = pin;
                format!("made {thread} {start} {} {}", pin.before, pin.asked)
            }
            Self::Granted(cpus) => format!("granted {cpus}"),
            Self::Undone => "undone".to_owned(),
            Self::Kept(are_kept) => format!("kept {are_kept}"),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let cpus = |text: &str| CpuSet::parse_list(text).ok().filter(|set| !set.is_empty());
        match words[..] {
            ["made", thread, start, before, asked] => Some(Self::Made(Pin {
                thread: thread.parse().ok()?,
                start: start.parse().ok()?,
                before: cpus(before)?,
                asked: cpus(asked)?,
                granted: cpus(asked)?,
            })),
            ["granted", granted] => Some(Self::Granted(cpus(granted)?)),
            ["undone"] => Some(Self::Undone),
            ["kept", are_kept] => Some(Self::Kept(are_kept.parse().ok()?)),
            _ => None,
        }
    }
}

/// What the guardian knows.
#[derive(Debug, Default)]
struct Known {
    made: Vec<Pin>,
    are_kept: bool,
}

impl Known {
    /// Reads until the other end closes. A line that was cut off by the end
    /// told of a pin that was not made yet.
    fn listen(pipe: impl io::Read) -> Self {
        let mut known = Self::default();
        let mut reader = BufReader::new(pipe);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some(whole) = line.strip_suffix('\n')
                && let Some(word) = Word::from_line(whole)
            {
                known.take(word);
            }
            line.clear();
        }
        known
    }

    fn take(&mut self, word: Word) {
        match word {
            Word::Made(pin) => self.made.push(pin),
            Word::Granted(cpus) => {
                if let Some(last) = self.made.last_mut() {
                    last.granted = cpus;
                }
            }
            Word::Undone => {
                self.made.pop();
            }
            Word::Kept(are_kept) => self.are_kept = are_kept,
        }
    }
}

/// The guardian's life.
fn guard(lifeline: &OwnedFd) -> ! {
    // SAFETY: plain integers; descriptors closed here are copies that only
    // this process holds.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"pinwise-pins".as_ptr(), 0, 0, 0);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::dup2(lifeline.as_raw_fd(), 0);
        libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
    }
    let known = Known::listen(io::stdin().lock());
    if !known.are_kept {
        for pin in known.made.iter().rev() {
            pin.undo();
        }
    }
    // SAFETY: ends the guardian.
    unsafe { libc::_exit(0) }
}

/// When a thread was started, ticks since boot.
fn start_of(thread: i32) -> Option<u64> {
    if thread <= 0 {
        return None;
    }
    let stat = read_file(Path::new(&format!("/proc/{thread}/stat")))?;
    start_in(&String::from_utf8_lossy(&stat))
}

/// Field 22 of `proc_pid_stat(5)`, counted from behind the name, which may
/// hold spaces and parentheses.
fn start_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// The CPUs that a thread may use, and the word for its scheduling policy;
/// `None` where it ended.
#[must_use]
pub fn thread_settings(thread: i32) -> Option<(CpuSet, &'static str)> {
    if thread <= 0 {
        return None;
    }
    let cpus = sys::affinity_of(thread).ok()?;
    let policy = sys::policy_of(thread).ok()?;
    // The highest bit says only that children get the normal one.
    let word = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => "other",
        libc::SCHED_FIFO => "fifo",
        libc::SCHED_RR => "rr",
        libc::SCHED_BATCH => "batch",
        libc::SCHED_IDLE => "idle",
        libc::SCHED_DEADLINE => "deadline",
        7 => "ext",
        _ => "?",
    };
    Some((cpus, word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pin(thread: i32, before: &str, asked: &str) -> Pin {
        let cpus = |list: &str| CpuSet::parse_list(list).unwrap();
        Pin {
            thread,
            start: 17,
            before: cpus(before),
            asked: cpus(asked),
            granted: cpus(asked),
        }
    }

    #[track_caller]
    fn check(told: &str, made: &[Pin], are_kept: bool) {
        let known = Known::listen(told.as_bytes());
        assert_eq!(known.made, made);
        assert_eq!(known.are_kept, are_kept);
    }

    #[test]
    fn the_guardian_knows_what_is_in_force() {
        check("", &[], false);
        check("made 5 17 0-3 1\n", &[pin(5, "0-3", "1")], false);
        check("made 5 17 0-3 1\nundone\n", &[], false);
        check(
            "made 5 17 0-3 1\nkept true\nkept false\n",
            &[pin(5, "0-3", "1")],
            false,
        );
        check("kept true\n", &[], true);
        let cut = Pin {
            granted: CpuSet::single(1),
            ..pin(5, "0-3", "1-2")
        };
        check("made 5 17 0-3 1-2\ngranted 1\n", &[cut], false);
        // What was cut off or makes no sense was not done.
        check("made 5 17 0-3 1", &[], false);
        check("made x 17 0-3 1\nmade 5 17 0-3\nundone\n", &[], false);
        check("\u{fffd}\nmade 5 17  1\n", &[], false);
    }

    #[test]
    fn the_start_of_a_thread_with_an_odd_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_in(&format!("12 (a) b ) (c) {fields}")), Some(4711));
        for bad in ["", "12 (x) S", ")", "12 (x) S x x x x"] {
            assert_eq!(start_in(bad), None, "{bad}");
        }
    }

    /// A thread that does nothing but be there, until it is dropped.
    struct Sleeper(
        Option<std::thread::JoinHandle<()>>,
        std::sync::mpsc::Sender<()>,
        i32,
    );

    impl Sleeper {
        fn start() -> Self {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                // SAFETY: takes nothing and cannot fail.
                tell.send(unsafe { libc::gettid() }).unwrap();
                let _ = ended.recv();
            });
            Self(Some(thread), end, told.recv().unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.1.send(());
            let _ = self.0.take().unwrap().join();
        }
    }

    /// Pins without a guardian: what it would hear goes to a file.
    fn unguarded() -> Pins {
        Pins {
            lifeline: tempfile::tempfile().unwrap(),
            made: Vec::new(),
            are_kept: false,
        }
    }

    #[test]
    fn pins_are_undone_in_turn_and_at_the_end() {
        let sleeper = Sleeper::start();
        let tid = sleeper.2;
        let before = sys::affinity_of(tid).unwrap();
        let (first, last) = (before.first().unwrap(), before.last().unwrap());
        {
            let mut pins = unguarded();
            pins.pin(tid, &CpuSet::single(first)).unwrap();
            pins.pin(tid, &CpuSet::single(last)).unwrap();
            assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(last));
            assert_eq!(pins.undo(), Some((tid, true)));
            assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(first));
            pins.pin(tid, &CpuSet::single(last)).unwrap();
            assert_eq!(pins.count(), 2);
        }
        assert_eq!(sys::affinity_of(tid).unwrap(), before);
        let mut pins = unguarded();
        pins.pin(tid, &CpuSet::single(first)).unwrap();
        pins.keep(true);
        drop(pins);
        assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(first));
    }

    #[test]
    fn what_someone_else_changed_and_who_ended_is_left_alone() {
        let sleeper = Sleeper::start();
        let tid = sleeper.2;
        let before = sys::affinity_of(tid).unwrap();
        if before.len() < 2 {
            // Past the test harness, which takes only what the macros print.
            let line = "SKIPPED what_someone_else_changed: this needs two CPUs\n";
            let _ = io::stderr().write_all(line.as_bytes());
            return;
        }
        let (first, last) = (before.first().unwrap(), before.last().unwrap());
        let mut pins = unguarded();
        pins.pin(tid, &CpuSet::single(first)).unwrap();
        sys::set_affinity_of(tid, &CpuSet::single(last)).unwrap();
        assert_eq!(pins.undo(), Some((tid, false)));
        assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(last));
        // The same number, another thread.
        pins.pin(tid, &CpuSet::single(first)).unwrap();
        pins.made[0].start += 1;
        assert_eq!(pins.undo(), Some((tid, false)));
        assert_eq!(pins.undo(), None);
        drop(sleeper);
        assert!(matches!(
            pins.pin(tid, &CpuSet::single(first)),
            Err(PinError::Gone(_))
        ));
        assert!(matches!(pins.pin(-1, &before), Err(PinError::Gone(-1))));
    }

    #[test]
    fn nothing_is_pinned_without_a_guardian() {
        let (read, write) = sys::pipe(0).unwrap();
        drop(read);
        let sleeper = Sleeper::start();
        let before = sys::affinity_of(sleeper.2).unwrap();
        let mut pins = Pins {
            lifeline: File::from(write),
            made: Vec::new(),
            are_kept: false,
        };
        let refused = pins.pin(sleeper.2, &CpuSet::single(before.first().unwrap()));
        assert!(matches!(refused, Err(PinError::Unguarded(_))));
        assert_eq!(sys::affinity_of(sleeper.2).unwrap(), before);
    }

    proptest! {
        #[test]
        fn words_are_told_and_any_line_is_read(thread in 1i32.., start in 0u64.., cpus in prop::collection::btree_set(0usize..300, 1..9), line in "\\PC{0,40}") {
            let cpus: CpuSet = cpus.into_iter().collect();
            let made = Word::Made(Pin { thread, start, before: cpus.clone(), asked: cpus.clone(), granted: cpus });
            prop_assert_eq!(Word::from_line(&made.to_line()), Some(made));
            let _ = (Word::from_line(&line), start_in(&line));
        }
    }
}
