//! Reads, sets and restores values of the system.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entry::{Change, Entry};
use super::memory::{self, MovedMemory};
use super::queue::SetQueue;
use super::{LedgerError, groups};
use crate::linux::capture::read_text;
use crate::linux::processes::LinuxProcesses;
use crate::linux::{sys, tree};
use crate::processes::{Processes, RuledProcess, restore_processes};
use pinwise_topology::{CpuSet, CpuSetError};

/// Most tries while the kernel is busy with a CPU or a cgroup.
const TRIES: usize = 10;
/// Pause between tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The host, or a folder that represents it in tests.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) root: PathBuf,
}

/// The present state of a value that pinwise changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueState {
    /// As pinwise set it.
    Ours,
    /// As it was before.
    AsBefore,
    /// The thread ended, or the group was removed.
    Ended,
    /// Somebody else changed it to this.
    Changed(String),
}

/// The outcome of undoing a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The old value was restored.
    Restored,
    /// It had the old value already, or was never changed.
    AsBefore,
    /// The thread or the group has gone.
    Ended,
    /// Somebody else changed it to this: it was left alone.
    Changed(String),
    /// The system refused; the change stays listed.
    Failed(String),
}

impl fmt::Display for UndoOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => out.write_str("restored"),
            Self::AsBefore => out.write_str("already done"),
            Self::Ended => out.write_str("has gone"),
            Self::Changed(now) => write!(out, "left alone: changed to {now} since"),
            Self::Failed(reason) => write!(out, "cannot be restored: {reason}"),
        }
    }
}

impl System {
    pub(super) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// A file in the folder of all CPUs.
    pub(super) fn cpu_file(&self, name: &str) -> PathBuf {
        self.root.join("sys/devices/system/cpu").join(name)
    }

    /// Reads a small file's text, without surrounding white space.
    pub(super) fn read(path: &Path) -> Option<String> {
        read_text(path)
    }

    /// Reads which CPUs are on.
    pub(super) fn read_online(&self) -> Option<CpuSet> {
        CpuSet::parse_list(&Self::read(&self.cpu_file("online"))?).ok()
    }

    /// Makes the entry for a change, with the value to which undoing it would return.
    pub(super) fn read_original(&self, change: &Change) -> Result<Entry, LedgerError> {
        match change {
            Change::Mask { thread, cpus } => {
                let start = read_start(*thread)?;
                let before = sys::affinity_of(*thread)
                    .map_err(|error| explain_thread_error(error, *thread, Some(cpus)))?;
                Ok(Entry::Mask {
                    thread: *thread,
                    start,
                    before,
                    asked: cpus.clone(),
                    granted: None,
                })
            }
            Change::Nice { thread, nice } => Ok(Entry::Nice {
                thread: *thread,
                start: read_start(*thread)?,
                before: sys::nice_of(*thread)
                    .map_err(|error| explain_thread_error(error, *thread, None))?,
                asked: *nice,
            }),
            Change::Online { cpu, is_on } => self.check_online(*cpu, *is_on),
            Change::SmtOff => match Self::read(&self.cpu_file("smt/control")).as_deref() {
                Some("on") => Ok(Entry::SmtOff),
                other => Err(LedgerError::Value(
                    "smt/control".to_owned(),
                    other.unwrap_or("absent").to_owned(),
                )),
            },
            Change::Interrupt { number, cpus } => Ok(Entry::Interrupt {
                number: *number,
                before: read_cpu_list(&self.interrupt_file(*number))?,
                taking: self.read_effective_cpus(*number),
                asked: cpus.clone(),
            }),
            Change::Queue { queue, cpus } => Ok(Entry::Queue(SetQueue {
                queue: queue.clone(),
                before: self.read_queue_cpus(queue)?,
                asked: cpus.clone(),
            })),
            Change::Memory { process, nodes } => Ok(Entry::Memory(MovedMemory {
                process: *process,
                start: read_start(*process)?,
                nodes: nodes.clone(),
                before: memory::find_ranges(*process, nodes)?,
            })),
            Change::Cpuset { file, cpus } => Ok(Entry::Cpuset {
                file: file.clone(),
                before: read_cpu_list(file)?,
                asked: cpus.clone(),
            }),
            Change::Folder { path } if path.exists() => Err(LedgerError::Value(
                path.display().to_string(),
                "there already".to_owned(),
            )),
            Change::Folder { path } => Ok(Entry::Folder { path: path.clone() }),
            Change::Move { task, to } => Ok(Entry::Move {
                task: *task,
                start: read_start(*task)?,
                before: groups::find_group(*task, to).ok_or(LedgerError::Gone(*task))?,
                to: to.clone(),
            }),
        }
    }

    /// Makes the entry for switching a CPU, if it is not in that state already.
    fn check_online(&self, cpu: usize, is_on: bool) -> Result<Entry, LedgerError> {
        let file = self.cpu_file(&format!("cpu{cpu}/online"));
        match Self::read(&file).as_deref() {
            Some(now) if (now == "1") != is_on => Ok(Entry::Online { cpu, is_on }),
            Some(now) => Err(LedgerError::Value(
                format!("CPU {cpu}"),
                if now == "1" {
                    "on already"
                } else {
                    "off already"
                }
                .to_owned(),
            )),
            None if self.cpu_file(&format!("cpu{cpu}")).is_dir() => Err(LedgerError::Fixed(cpu)),
            None => Err(LedgerError::Value(
                format!("CPU {cpu}"),
                "absent".to_owned(),
            )),
        }
    }

    /// Makes the change of an entry; returns the mask that the kernel granted, if it is a mask.
    pub(super) fn apply(&self, entry: &Entry) -> Result<Option<CpuSet>, LedgerError> {
        match entry {
            Entry::Mask { thread, asked, .. } => {
                sys::set_affinity_of(*thread, asked)
                    .map_err(|error| explain_thread_error(error, *thread, Some(asked)))?;
                return Ok(sys::affinity_of(*thread).ok());
            }
            // The kernel changes the former, rules change the latter.
            Entry::Saved { .. } | Entry::Held(_) => {}
            Entry::Nice { thread, asked, .. } => sys::set_nice_of(*thread, *asked)
                .map_err(|error| explain_thread_error(error, *thread, None))?,
            Entry::Online { cpu, is_on } => self.switch_cpu(*cpu, *is_on)?,
            Entry::SmtOff => write_value(&self.cpu_file("smt/control"), "off")?,
            Entry::Interrupt { number, asked, .. } => {
                write_cpus(&self.interrupt_file(*number), asked)?;
            }
            Entry::Queue(set) => self.set_queue(&set.queue, &set.asked)?,
            Entry::Memory(moved) => moved.move_to_targets()?,
            Entry::Cpuset { file, asked, .. } => write_cpus(file, asked)?,
            Entry::Folder { path } => std::fs::create_dir(path)
                .map_err(|error| LedgerError::System(path.display().to_string(), error))?,
            Entry::Move { task, to, .. } => {
                write_value(&groups::tasks_file(to), &task.to_string())?
            }
        }
        Ok(None)
    }

    fn switch_cpu(&self, cpu: usize, is_on: bool) -> Result<(), LedgerError> {
        let file = self.cpu_file(&format!("cpu{cpu}/online"));
        let value = if is_on { "1" } else { "0" };
        let mut written = write_value(&file, value);
        for _ in 1..TRIES {
            match &written {
                Err(LedgerError::System(_, error))
                    if error.kind() == io::ErrorKind::ResourceBusy =>
                {
                    std::thread::sleep(PAUSE);
                    written = write_value(&file, value);
                }
                _ => break,
            }
        }
        written
    }

    /// Compares the present value with that of an entry.
    fn value_state(&self, entry: &Entry) -> ValueState {
        match entry {
            Entry::Mask {
                thread,
                start,
                before,
                asked,
                granted,
            } => mask_state(*thread, *start, before, |now| match granted {
                Some(granted) => now == granted || now == asked,
                // pinwise was killed before it could record the granted mask.
                None => now.is_subset(asked),
            }),
            // The kernel only adds CPUs, to a thread that has none left: fewer or other CPUs were
            // set by someone else.
            Entry::Saved {
                thread,
                start,
                before,
            } => mask_state(*thread, *start, before, |now| before.is_subset(now)),
            Entry::Nice {
                thread,
                start,
                before,
                asked,
            } => match sys::nice_of(*thread) {
                Ok(_) | Err(_) if tree::read_start(*thread) != Some(*start) => ValueState::Ended,
                Err(_) => ValueState::Ended,
                Ok(now) => compare(&now, before, now == *asked),
            },
            Entry::Online { cpu, is_on } => {
                let file = self.cpu_file(&format!("cpu{cpu}/online"));
                match Self::read(&file) {
                    Some(now) if (now == "1") == *is_on => ValueState::Ours,
                    Some(_) => ValueState::AsBefore,
                    None => ValueState::Ended,
                }
            }
            Entry::SmtOff => match Self::read(&self.cpu_file("smt/control")) {
                Some(now) => compare(&now.as_str(), &"on", now == "off"),
                None => ValueState::Ended,
            },
            Entry::Interrupt {
                number,
                before,
                taking,
                asked,
            } => match read_cpu_list(&self.interrupt_file(*number)) {
                // Restoring first sets the CPUs that took it: pinwise may have been killed then.
                Ok(now) => compare(&now, before, now == *asked || now == *taking),
                Err(_) => ValueState::Ended,
            },
            Entry::Queue(set) => self.queue_state(set),
            Entry::Memory(moved) => memory_state(moved),
            Entry::Cpuset {
                file,
                before,
                asked,
            } => match read_cpu_list(file) {
                Ok(now) => compare(&now, before, now == *asked),
                Err(_) => ValueState::Ended,
            },
            Entry::Folder { path } if path.is_dir() => ValueState::Ours,
            Entry::Folder { .. } => ValueState::AsBefore,
            Entry::Move {
                task,
                start,
                before,
                to,
            } => match groups::find_group(*task, to) {
                Some(now) if tree::read_start(*task) == Some(*start) => {
                    compare(&now.display(), &before.display(), now == *to)
                }
                _ => ValueState::Ended,
            },
            Entry::Held(held) => ruled_state(held),
        }
    }

    fn queue_state(&self, set: &SetQueue) -> ValueState {
        match self.read_queue_cpus(&set.queue) {
            // The kernel drops isolated CPUs.
            Ok(now) => compare(
                &now,
                &set.before,
                !now.is_empty() && now.is_subset(&set.asked),
            ),
            Err(_) => ValueState::Ended,
        }
    }

    /// The result that [`Self::restore`] would have.
    pub(super) fn predict_restore(&self, entry: &Entry) -> UndoOutcome {
        match self.value_state(entry) {
            ValueState::Ours => UndoOutcome::Restored,
            ValueState::AsBefore => UndoOutcome::AsBefore,
            ValueState::Ended => UndoOutcome::Ended,
            ValueState::Changed(now) => UndoOutcome::Changed(now),
        }
    }

    /// Restores the old value, if it is still as pinwise left it.
    pub(super) fn restore(&self, entry: &Entry) -> UndoOutcome {
        match self.predict_restore(entry) {
            UndoOutcome::Restored => {}
            other => return other,
        }
        let outcome = match entry {
            Entry::Mask { thread, before, .. } | Entry::Saved { thread, before, .. } => {
                sys::set_affinity_of(*thread, before)
                    .map_err(|error| explain_thread_error(error, *thread, Some(before)))
            }
            Entry::Nice { thread, before, .. } => sys::set_nice_of(*thread, *before)
                .map_err(|error| explain_thread_error(error, *thread, None)),
            Entry::Online { cpu, is_on } => self.switch_cpu(*cpu, !is_on),
            Entry::SmtOff => write_value(&self.cpu_file("smt/control"), "on"),
            Entry::Interrupt {
                number,
                before,
                taking,
                ..
            } => self.restore_interrupt(*number, before, taking),
            Entry::Queue(set) => self.set_queue(&set.queue, &set.before),
            Entry::Memory(moved) => moved.move_back(),
            Entry::Cpuset { file, before, .. } => write_cpus(file, before),
            Entry::Folder { path } => remove_group(path),
            Entry::Move { task, before, .. } => {
                write_value(&groups::tasks_file(before), &task.to_string())
            }
            Entry::Held(held) => {
                restore_processes(&mut LinuxProcesses::open(), std::slice::from_ref(held));
                match ruled_state(held) {
                    ValueState::Ours => {
                        Err(LedgerError::Value(entry.to_string(), "still so".to_owned()))
                    }
                    _ => Ok(()),
                }
            }
        };
        match outcome {
            Ok(()) => UndoOutcome::Restored,
            Err(LedgerError::Gone(_)) => UndoOutcome::Ended,
            Err(error) => UndoOutcome::Failed(error.to_string()),
        }
    }
}

fn compare(now: &impl fmt::Display, before: &impl fmt::Display, is_ours: bool) -> ValueState {
    let (now, before) = (now.to_string(), before.to_string());
    if now == before {
        ValueState::AsBefore
    } else if is_ours {
        ValueState::Ours
    } else {
        ValueState::Changed(now)
    }
}

fn mask_state(
    thread: i32,
    start: u64,
    before: &CpuSet,
    is_ours: impl Fn(&CpuSet) -> bool,
) -> ValueState {
    if tree::read_start(thread) != Some(start) {
        return ValueState::Ended;
    }
    match sys::affinity_of(thread) {
        Ok(now) => compare(&now, before, is_ours(&now)),
        Err(_) => ValueState::Ended,
    }
}

fn memory_state(moved: &MovedMemory) -> ValueState {
    match tree::read_start(moved.process) == Some(moved.start) {
        true if moved.has_moved_pages() => ValueState::Ours,
        true => ValueState::AsBefore,
        false => ValueState::Ended,
    }
}

/// Do threads of the process still have what rules gave them?
fn ruled_state(held: &RuledProcess) -> ValueState {
    let mut host = LinuxProcesses::open();
    let identity = host.identity(held.process);
    if identity.is_none_or(|identity| identity.start != held.start) {
        return ValueState::Ended;
    }
    let threads = host.threads(held.process).into_iter();
    let mut states =
        threads.filter_map(|thread| Some((thread, host.mask(thread)?, host.nice(thread))));
    match states.any(|(thread, mask, nice)| held.gave_mask_or_nice(thread, &mask, nice)) {
        true => ValueState::Ours,
        false => ValueState::AsBefore,
    }
}

fn read_start(thread: i32) -> Result<u64, LedgerError> {
    tree::read_start(thread).ok_or(LedgerError::Gone(thread))
}

fn explain_thread_error(error: io::Error, thread: i32, cpus: Option<&CpuSet>) -> LedgerError {
    match (error.raw_os_error(), cpus) {
        (Some(libc::ESRCH), _) => LedgerError::Gone(thread),
        (Some(libc::EPERM | libc::EACCES), _) => LedgerError::Foreign(thread),
        (Some(libc::EINVAL), Some(cpus)) => LedgerError::Forbidden(thread, cpus.clone()),
        _ => LedgerError::System(format!("thread {thread}"), error),
    }
}

/// Reads the CPUs listed in a file such as a cgroup's `cpuset.cpus`.
pub(super) fn read_cpu_list(file: &Path) -> Result<CpuSet, LedgerError> {
    read_cpus(file, |text| match text {
        "" => Ok(CpuSet::new()),
        list => CpuSet::parse_list(list),
    })
}

pub(super) fn read_cpus(
    file: &Path,
    parse: impl Fn(&str) -> Result<CpuSet, CpuSetError>,
) -> Result<CpuSet, LedgerError> {
    let text = System::read(file).ok_or_else(|| {
        LedgerError::System(
            file.display().to_string(),
            io::Error::from(io::ErrorKind::NotFound),
        )
    })?;
    parse(&text).map_err(|_| LedgerError::Value(file.display().to_string(), text))
}

pub(super) fn write_cpus(file: &Path, cpus: &CpuSet) -> Result<(), LedgerError> {
    write_value(file, &format!("{cpus}\n"))
}

/// Writes a value in one system call, since the kernel takes it as a whole. The file is not
/// truncated first: a folder that represents the host must keep its value when writing fails, as
/// the kernel does.
pub(super) fn write_value(path: &Path, value: &str) -> Result<(), LedgerError> {
    use std::io::Write;
    let written = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| match error.raw_os_error() {
        Some(libc::ESRCH) => LedgerError::Gone(value.trim().parse().unwrap_or(0)),
        _ => LedgerError::System(path.display().to_string(), error),
    })
}

/// Removes a cgroup that pinwise made; its remaining tasks go to its parent.
fn remove_group(path: &Path) -> Result<(), LedgerError> {
    let parent = path.parent().unwrap_or(path);
    let mut removed = std::fs::remove_dir(path);
    for _ in 1..TRIES {
        match &removed {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let inside = System::read(&groups::tasks_file(path)).unwrap_or_default();
                for task in inside.split_ascii_whitespace() {
                    // This fails for a task that has ended, which needs no group.
                    let _ = write_value(&groups::tasks_file(parent), task);
                }
                removed = std::fs::remove_dir(path);
                if removed.is_err() {
                    std::thread::sleep(PAUSE);
                }
            }
            _ => break,
        }
    }
    removed.map_err(|error| LedgerError::System(path.display().to_string(), error))
}
