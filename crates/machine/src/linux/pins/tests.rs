//! Pins of threads of this process.

#![expect(unsafe_code, reason = "a thread asks for its own id")]

use std::io::Write;

use super::*;
use crate::linux::ledger::tests::ledger_without_guardian;

/// A thread that sleeps until this is dropped.
struct Sleeper {
    thread: Option<std::thread::JoinHandle<()>>,
    end: std::sync::mpsc::Sender<()>,
    tid: i32,
}

impl Sleeper {
    fn start() -> Self {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (report_tid, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: takes nothing and cannot fail.
            report_tid.send(unsafe { libc::gettid() }).unwrap();
            let _ = ended.recv();
        });
        Self {
            thread: Some(thread),
            end,
            tid: started.recv().unwrap(),
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.end.send(());
        let _ = self.thread.take().unwrap().join();
    }
}

fn new_pins() -> (Pins, tempfile::TempDir) {
    let (ledger, folder) = ledger_without_guardian();
    (Pins::new(ledger), folder)
}

#[test]
fn pins_are_undone_in_turn_and_at_the_end() {
    let sleeper = Sleeper::start();
    let tid = sleeper.tid;
    let before = sys::affinity_of(tid).unwrap();
    let (first, last) = (before.first().unwrap(), before.last().unwrap());
    {
        let (mut pins, _folder) = new_pins();
        pins.pin(tid, &CpuSet::single(first)).unwrap();
        pins.pin(tid, &CpuSet::single(last)).unwrap();
        assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(last));
        assert_eq!(pins.undo(), Some((tid, true)));
        assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(first));
        pins.pin(tid, &CpuSet::single(last)).unwrap();
        assert_eq!(pins.count(), 2);
    }
    assert_eq!(sys::affinity_of(tid).unwrap(), before);
    let (mut pins, _folder) = new_pins();
    pins.pin(tid, &CpuSet::single(first)).unwrap();
    pins.keep(true);
    drop(pins);
    assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(first));
}

#[test]
fn foreign_changes_and_ended_threads_are_left_alone() {
    let sleeper = Sleeper::start();
    let tid = sleeper.tid;
    let before = sys::affinity_of(tid).unwrap();
    if before.len() < 2 {
        // Bypasses the test harness, which captures only the macros' output.
        let line =
            "SKIPPED foreign_changes_and_ended_threads_are_left_alone: this needs two CPUs\n";
        let _ = io::stderr().write_all(line.as_bytes());
        return;
    }
    let (first, last) = (before.first().unwrap(), before.last().unwrap());
    let (mut pins, _folder) = new_pins();
    pins.pin(tid, &CpuSet::single(first)).unwrap();
    sys::set_affinity_of(tid, &CpuSet::single(last)).unwrap();
    assert_eq!(pins.undo(), Some((tid, false)));
    assert_eq!(sys::affinity_of(tid).unwrap(), CpuSet::single(last));
    assert_eq!(pins.undo(), None);
    drop(sleeper);
    assert!(matches!(
        pins.pin(tid, &CpuSet::single(first)),
        Err(LedgerError::Gone(_))
    ));
    assert!(matches!(pins.pin(-1, &before), Err(LedgerError::Gone(-1))));
}
