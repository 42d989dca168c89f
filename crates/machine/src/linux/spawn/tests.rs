//! Children: the step that failed, and signals while they are started.

use super::*;
use std::process::Command;
use std::time::Duration;

#[test]
fn steps_are_identified_by_their_index() {
    for (place, step) in Step::ALL.into_iter().enumerate() {
        assert_eq!(step as usize, place);
    }
}

/// Signals that were taken.
static TAKEN: AtomicI32 = AtomicI32::new(0);

extern "C" fn take(_signal: libc::c_int) {
    TAKEN.fetch_add(1, Ordering::SeqCst);
}

fn is_sleeping(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, s)| s.starts_with('S'))
    })
}

fn spin_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[expect(clippy::zombie_processes, reason = "what is tested waits for it")]
fn a_child_is_reaped_although_a_signal_interrupts() {
    // SAFETY: a handler that counts; without SA_RESTART calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = take as *const () as usize;
        libc::sigaction(libc::SIGUSR2, &raw const action, ptr::null_mut());
    }
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        // SAFETY: the call has no preconditions.
        send.send(unsafe { libc::gettid() }).unwrap();
        reap_failed(pid);
    });
    let thread = receive.recv().unwrap();
    spin_until(|| is_sleeping(thread));
    let own = i32::try_from(std::process::id()).unwrap();
    // SAFETY: a signal with a handler, to a thread of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, own, thread, libc::SIGUSR2) };
    spin_until(|| TAKEN.load(Ordering::SeqCst) > 0);
    spin_until(|| is_sleeping(thread) || waiter.is_finished());
    child.kill().unwrap();
    waiter.join().unwrap();
    // SAFETY: no status is written.
    let left = unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(left, -1, "the child was left");
}
