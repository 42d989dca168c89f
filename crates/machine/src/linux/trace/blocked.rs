//! What a blocked thread waits for, from `/proc/PID/task/TID/syscall`: its current system call and
//! arguments. The kernel shows this file only to processes that may trace the thread.

use std::cell::Cell;
use std::path::Path;

use super::super::capture::read_file;
use super::super::peers::{SocketPeers, parse_inode};
use super::super::stack::wait_places::{BlockedCall, WaitPlaces};
use super::threads::ExistingThread;
use super::watched::{WatchCall, read_descriptor_target};
use pinwise_sched::{BlockedIn, DATABASE_LOCK};

/// Stack pointers below this are those of 32-bit programs, which have other numbers of system
/// calls.
const END_OF_32_BITS: u64 = 1 << 32;

/// Does this state in `/proc/PID/stat` mean that the thread is blocked, or stopped?
pub(super) const fn is_blocked(state: char) -> bool {
    matches!(state, 'S' | 'D') || is_stopped(state)
}

/// Stopped by a signal, or by a debugger.
const fn is_stopped(state: char) -> bool {
    matches!(state, 'T' | 't')
}

/// Tells from a thread's file `syscall` what it waits for; `None` if it is no longer blocked, and
/// unknown for what it was.
pub(super) fn classify_wait(
    found: ExistingThread,
    state: char,
    text: Option<&str>,
) -> Option<BlockedIn> {
    if is_stopped(state) {
        return Some(BlockedIn::Stopped);
    }
    let Some(text) = text else {
        return Some(BlockedIn::Unknown);
    };
    if text.starts_with("running") {
        // What it waited for cannot be interrupted, and is over.
        return (state == 'D').then_some(BlockedIn::Disk);
    }
    let mut fields = text.split_ascii_whitespace();
    let number: Option<i64> = fields.next().and_then(|number| number.parse().ok());
    let mut rest = fields.map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok());
    let arguments = [
        rest.next().flatten(),
        rest.next().flatten(),
        rest.next().flatten(),
    ];
    let stack = rest.rev().nth(1).flatten();
    let (Some(number), Some(stack)) = (number, stack) else {
        return Some(if state == 'D' {
            BlockedIn::PageFault
        } else {
            BlockedIn::OtherCall
        });
    };
    if stack < END_OF_32_BITS {
        return Some(BlockedIn::Unknown);
    }
    let [first, operation, value] = arguments;
    let what = classify_call(number, || {
        let descriptor = first?;
        match is_fifo(found, descriptor) {
            true => Some("pipe:".to_owned()),
            false => read_descriptor_target(found, descriptor),
        }
    });
    let what = match (number, operation, value) {
        (libc::SYS_fcntl, Some(operation), _) if WAIT_FOR_LOCK.contains(&operation) => {
            BlockedIn::FileLock
        }
        (libc::SYS_futex, Some(operation), Some(value)) => {
            match is_thread_join(operation, value, |thread| is_thread_of(found, thread)) {
                true => BlockedIn::Thread,
                false => classify_futex(operation, value, || uses_glibc(found.process)),
            }
        }
        _ => what,
    };
    Some(match (what, state) {
        // The state 'D' does not mean a disk here: a parent that waits for its child to execute
        // cannot be interrupted either.
        (BlockedIn::Child, _) => BlockedIn::Child,
        (_, 'D') => BlockedIn::Disk,
        _ => what,
    })
}

/// Is it a pipe, which may have a name?
fn is_fifo(found: ExistingThread, descriptor: u64) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let path = format!("/proc/{}/fd/{descriptor}", found.process);
    let kind = std::fs::metadata(Path::new(&path)).map(|file| file.file_type());
    kind.is_ok_and(|kind| kind.is_fifo())
}

/// What finds the places where threads wait.
pub(super) struct PlaceFinder {
    functions: WaitPlaces,
    sockets: SocketPeers,
}

impl PlaceFinder {
    pub(super) fn new() -> Self {
        Self {
            functions: WaitPlaces::new(),
            sockets: SocketPeers::default(),
        }
    }
}

/// Finds where in its program a thread waits for something, or what its socket is connected to, and
/// corrects what it waits for if that place shows it better.
pub(super) fn find_wait_place(
    found: ExistingThread,
    what: BlockedIn,
    text: Option<&str>,
    PlaceFinder { functions, sockets }: &mut PlaceFinder,
) -> (Option<Box<str>>, BlockedIn) {
    let has_place = waits_for_others(what)
        || matches!(
            what,
            BlockedIn::Timer
                | BlockedIn::Socket
                | BlockedIn::Pipe
                | BlockedIn::Events
                | BlockedIn::OtherCall
        );
    let Some(call) = text.filter(|_| has_place).and_then(parse_call) else {
        return (None, what);
    };
    if what == BlockedIn::Socket {
        let inode = read_descriptor_target(found, call.first).and_then(|link| parse_inode(&link));
        let peer = inode.and_then(|inode| sockets.describe(found.process, inode));
        if peer.is_some() {
            return (peer, what);
        }
    }
    if what == BlockedIn::Events {
        let lock = read_title(found.process).and_then(|title| read_database_wait(&title));
        return match lock {
            Some(lock) => (Some(lock), what),
            None => describe_events(found, text.unwrap_or_default(), sockets),
        };
    }
    if what == BlockedIn::OtherCall {
        return (text.and_then(|text| name_call(found, text)), what);
    }
    if !waits_for_others(what) {
        return (functions.find_named(found.process, call), what);
    }
    let (place, kind) = functions.find_waiting_function(found.process, call);
    // Who enters a monitor of Java waits for a condition of the operating system.
    let is_known_better = |kind: &BlockedIn| {
        what == BlockedIn::Lock || what == BlockedIn::Condition && *kind == BlockedIn::Mutex
    };
    (place, kind.filter(is_known_better).unwrap_or(what))
}

/// Whose events a thread waits for; pipes alone are those of a child, if there is one.
fn describe_events(
    found: ExistingThread,
    text: &str,
    sockets: &mut SocketPeers,
) -> (Option<Box<str>>, BlockedIn) {
    let call = WatchCall::parse(text);
    let set = sockets.look_up_set(found.process, call.map_or(0, WatchCall::key), || {
        call?.list_watched(found)
    });
    match &set.peers {
        None if set.has_pipe && has_child(found.process) => (None, BlockedIn::Child),
        peers => (peers.clone(), BlockedIn::Events),
    }
}

/// Does the first thread of a process have a child?
fn has_child(process: i32) -> bool {
    let path = format!("/proc/{process}/task/{process}/children");
    read_file(Path::new(&path)).is_some_and(|children| !children.trim_ascii().is_empty())
}

fn read_title(process: i32) -> Option<String> {
    let bytes = read_file(Path::new(&format!("/proc/{process}/cmdline")))?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a backend of PostgreSQL waits for, by the title that it gives itself: `postgres: user base
/// [local] UPDATE waiting` while it waits for a lock.
fn read_database_wait(title: &str) -> Option<Box<str>> {
    let title = title.trim_end_matches(['\0', ' ']);
    let state = title.strip_prefix("postgres: ")?;
    if state.ends_with(" waiting") {
        return Some(DATABASE_LOCK.into());
    }
    let has_client = state.ends_with(" idle") || state.ends_with(" idle in transaction");
    has_client.then(|| "clients of this backend".into())
}

const fn waits_for_others(what: BlockedIn) -> bool {
    matches!(
        what,
        BlockedIn::Lock | BlockedIn::Mutex | BlockedIn::Condition
    )
}

fn parse_call(text: &str) -> Option<BlockedCall> {
    let fields = text.split_ascii_whitespace();
    let numbers = fields.map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16));
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    // The call's number, six arguments, stack pointer and instruction.
    let &[_, first, _, _, _, _, _, stack_pointer, instruction] = numbers.as_slice() else {
        return None;
    };
    Some(BlockedCall {
        first,
        stack_pointer,
        instruction,
    })
}

/// What a system call waits for; `file` reads the target of the descriptor that is its first
/// argument.
fn classify_call(number: i64, file: impl FnOnce() -> Option<String>) -> BlockedIn {
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_poll | libc::SYS_select | libc::SYS_epoll_wait => return BlockedIn::Events,
        libc::SYS_fork | libc::SYS_vfork => return BlockedIn::Child,
        libc::SYS_pause => return BlockedIn::Signal,
        _ => {}
    }
    match number {
        libc::SYS_futex | libc::SYS_futex_waitv => BlockedIn::Lock,
        libc::SYS_ppoll
        | libc::SYS_pselect6
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_io_getevents
        | libc::SYS_io_uring_enter => BlockedIn::Events,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => BlockedIn::Timer,
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_clone | libc::SYS_clone3 => BlockedIn::Child,
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => BlockedIn::Signal,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync | libc::SYS_syncfs => {
            BlockedIn::Disk
        }
        libc::SYS_flock => BlockedIn::FileLock,
        libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect => BlockedIn::Socket,
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_splice
        | libc::SYS_sendfile => file().map_or(BlockedIn::OtherCall, |file| classify_file(&file)),
        _ => BlockedIn::OtherCall,
    }
}

/// Operations of `fcntl` that wait for a lock.
const WAIT_FOR_LOCK: [u64; 2] = [unsigned(libc::F_SETLKW), unsigned(libc::F_OFD_SETLKW)];

/// The value of a mutex for which threads wait, in glibc and in Rust's standard library.
const CONTENDED: u64 = 2;

/// Tells the kind of a `futex` wait, as far as its arguments show it. In glibc only the mutex waits
/// by `FUTEX_WAIT` for a word that is 2; condition variables, semaphores and `pthread_join` wait by
/// `FUTEX_WAIT_BITSET`. Everything in Rust's standard library waits by `FUTEX_WAIT_BITSET`, the
/// mutex for a 2. In musl, condition variables also wait by `FUTEX_WAIT` for a 2.
fn classify_futex(operation: u64, value: u64, is_glibc: impl FnOnce() -> bool) -> BlockedIn {
    const WAIT: u64 = unsigned(libc::FUTEX_WAIT);
    const WAIT_BITSET: u64 = unsigned(libc::FUTEX_WAIT_BITSET);
    let flags = unsigned(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    match (operation & !flags, value) {
        (WAIT, CONTENDED) if is_glibc() => BlockedIn::Mutex,
        (WAIT_BITSET, value) if value != CONTENDED => BlockedIn::Condition,
        _ => BlockedIn::Lock,
    }
}

/// Is this `pthread_join`? The value is then the id of a thread: when the thread ends, the kernel
/// clears that word and wakes its waiters in any process, so the wait is not private to the
/// process.
fn is_thread_join(operation: u64, value: u64, is_thread: impl FnOnce(i32) -> bool) -> bool {
    let clock = unsigned(libc::FUTEX_CLOCK_REALTIME);
    let waits = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].map(unsigned);
    waits.contains(&(operation & !clock)) && i32::try_from(value).is_ok_and(is_thread)
}

fn is_thread_of(found: ExistingThread, thread: i32) -> bool {
    thread != found.tid && Path::new(&format!("/proc/{}/task/{thread}", found.process)).exists()
}

/// The calls that wait for something of their own and have no kind.
const NAMED_CALLS: [(libc::c_long, &str); 21] = [
    (libc::SYS_close, "close()"),
    (libc::SYS_copy_file_range, "copy_file_range()"),
    (libc::SYS_fallocate, "fallocate()"),
    (libc::SYS_ftruncate, "ftruncate()"),
    (libc::SYS_getrandom, "getrandom()"),
    (libc::SYS_ioctl, "ioctl()"),
    (libc::SYS_madvise, "madvise()"),
    (libc::SYS_mmap, "mmap()"),
    (libc::SYS_mq_timedreceive, "mq_timedreceive()"),
    (libc::SYS_mq_timedsend, "mq_timedsend()"),
    (libc::SYS_msgrcv, "msgrcv()"),
    (libc::SYS_msgsnd, "msgsnd()"),
    (libc::SYS_munmap, "munmap()"),
    (libc::SYS_openat, "openat()"),
    (libc::SYS_pread64, "pread64()"),
    (libc::SYS_pwrite64, "pwrite64()"),
    (libc::SYS_ptrace, "ptrace()"),
    // A wait with a time limit that a stop has interrupted.
    (libc::SYS_restart_syscall, "restart_syscall()"),
    (libc::SYS_semop, "semop()"),
    (libc::SYS_semtimedop, "semtimedop()"),
    (libc::SYS_vmsplice, "vmsplice()"),
];

/// Names a call without a kind; of one that reads or writes, also the file.
fn name_call(found: ExistingThread, text: &str) -> Option<Box<str>> {
    let number: i64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let transfer = match number {
        libc::SYS_read | libc::SYS_readv => "read()",
        libc::SYS_write | libc::SYS_writev => "write()",
        libc::SYS_splice => "splice()",
        libc::SYS_sendfile => "sendfile()",
        ..0 => return None,
        _ => {
            let mut calls = NAMED_CALLS.iter();
            let known = calls.find(|(call, _)| *call == number);
            return Some(match known {
                Some((_, name)) => (*name).into(),
                None => format!("system call {number}").into(),
            });
        }
    };
    let file = parse_call(text).and_then(|call| read_descriptor_target(found, call.first));
    Some(file.map_or_else(
        || transfer.into(),
        |file| format!("{transfer} of {file}").into(),
    ))
}

/// Converts a constant of the kernel to the form of the file's arguments.
const fn unsigned(constant: i32) -> u64 {
    constant.cast_unsigned() as u64
}

/// Has the process loaded glibc? The latest answer is kept, since most calls ask about the same
/// process again.
#[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
fn uses_glibc(process: i32) -> bool {
    thread_local! {
        static LATEST: Cell<Option<(i32, bool)>> = const { Cell::new(None) };
    }
    if let Some((_, answer)) = LATEST.get().filter(|(known, _)| *known == process) {
        return answer;
    }
    let maps = std::fs::read(Path::new(&format!("/proc/{process}/maps")));
    let name = b"/libc.so.6\n";
    let answer = maps.is_ok_and(|maps| maps.windows(name.len()).any(|part| part == name));
    LATEST.set(Some((process, answer)));
    answer
}

/// What a read or write waits for, from the descriptor's link in `/proc/PID/fd`.
fn classify_file(link: &str) -> BlockedIn {
    match link {
        _ if link.starts_with("pipe:") => BlockedIn::Pipe,
        _ if link.starts_with("socket:") => BlockedIn::Socket,
        _ if link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") => BlockedIn::Terminal,
        "/dev/console" => BlockedIn::Terminal,
        _ if link.starts_with("anon_inode:") => BlockedIn::Events,
        _ => BlockedIn::OtherCall,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    /// A lock of the C library.
    struct NativeRwLock(std::cell::UnsafeCell<libc::pthread_rwlock_t>);

    #[expect(unsafe_code, reason = "the lock of the C library")]
    // SAFETY: it is shared by its own functions alone.
    unsafe impl Sync for NativeRwLock {}

    #[expect(unsafe_code, reason = "the lock of the C library")]
    impl NativeRwLock {
        const fn new() -> Self {
            Self(std::cell::UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER))
        }

        fn read(&self) {
            // SAFETY: the lock is initialised and lives as long as `self`.
            assert_eq!(unsafe { libc::pthread_rwlock_rdlock(self.0.get()) }, 0);
        }

        fn write(&self) {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::pthread_rwlock_wrlock(self.0.get()) }, 0);
        }

        fn unlock(&self) {
            // SAFETY: as above; the calling thread holds it.
            assert_eq!(unsafe { libc::pthread_rwlock_unlock(self.0.get()) }, 0);
        }
    }

    const FOUND: ExistingThread = ExistingThread { tid: 1, process: 1 };

    #[test]
    fn a_backend_says_in_its_title_that_it_waits_for_a_lock() {
        let waits = read_database_wait("postgres: app shop [local] UPDATE waiting\0\0");
        assert_eq!(waits.as_deref(), Some(DATABASE_LOCK));
        let idle = read_database_wait("postgres: app shop 10.0.0.9(5000) idle in transaction");
        assert_eq!(idle.as_deref(), Some("clients of this backend"));
        assert_eq!(read_database_wait("postgres: checkpointer "), None);
        assert_eq!(read_database_wait("vim waiting"), None);
    }

    /// A call of this number with these last two fields.
    #[track_caller]
    fn check(number: i64, state: char, stack: u64, expected: BlockedIn) {
        let text = format!("{number} 0xfff 0x0 0x0 0x0 0x0 0x0 {stack:#x} 0x7f0000000000\n");
        assert_eq!(
            classify_wait(FOUND, state, Some(&text)),
            Some(expected),
            "{text}"
        );
    }

    #[test]
    fn a_mutex_and_a_condition_variable_are_distinguished_by_their_arguments() {
        let private = unsigned(libc::FUTEX_PRIVATE_FLAG);
        let by_clock = unsigned(libc::FUTEX_CLOCK_REALTIME);
        let bitset = unsigned(libc::FUTEX_WAIT_BITSET);
        for (operation, value, is_glibc, expected) in [
            (private, 2, true, BlockedIn::Mutex),
            (0, 2, true, BlockedIn::Mutex),
            // A condition variable of musl.
            (private, 2, false, BlockedIn::Lock),
            (private, 0, true, BlockedIn::Lock),
            (private | by_clock | bitset, 0, true, BlockedIn::Condition),
            (private | bitset, 4711, false, BlockedIn::Condition),
            // A mutex of Rust's standard library, or a condition variable signalled twice.
            (private | bitset, 2, true, BlockedIn::Lock),
        ] {
            let found = classify_futex(operation, value, || is_glibc);
            assert_eq!(found, expected, "{operation:#x} {value}");
        }
    }

    #[test]
    fn a_wait_for_the_end_of_a_thread_is_no_lock() {
        let private = unsigned(libc::FUTEX_PRIVATE_FLAG);
        let by_clock = unsigned(libc::FUTEX_CLOCK_REALTIME);
        let bitset = unsigned(libc::FUTEX_WAIT_BITSET);
        for (operation, value, expected) in [
            (by_clock | bitset, 4711, true),
            // Of older glibc.
            (0, 4711, true),
            (0, 2, false),
            (private | bitset, 4711, false),
            (unsigned(libc::FUTEX_LOCK_PI), 4711, false),
        ] {
            let found = is_thread_join(operation, value, |thread| thread == 4711);
            assert_eq!(found, expected, "{operation:#x} {value}");
        }
    }

    /// A thread of this process that is blocked in `pthread_join`, and one that waits for a mutex.
    #[test]
    fn joins_and_the_function_that_takes_a_lock_are_found() {
        let lock = &std::sync::Mutex::new(());
        let mut places = PlaceFinder::new();
        std::thread::scope(|scope| {
            let held = lock.lock().unwrap();
            let (send, waiting) = std::sync::mpsc::channel();
            let waiter = scope.spawn(move || {
                send.send(own_thread()).unwrap();
                drop(lock.lock().unwrap());
            });
            let (send, joining) = std::sync::mpsc::channel();
            scope.spawn(move || {
                send.send(own_thread()).unwrap();
                waiter.join().unwrap();
            });
            let joining = joining.recv().unwrap();
            let (what, _) = look_until_blocked(joining, libc::SYS_futex, &mut places);
            assert_eq!(what, BlockedIn::Thread);
            let waiting = waiting.recv().unwrap();
            let (what, place) = look_until_blocked(waiting, libc::SYS_futex, &mut places);
            assert_eq!(what, BlockedIn::Mutex);
            let place = place.unwrap();
            assert!(place.contains("function_that_takes_a_lock"), "{place}");
            drop(held);
        });
    }

    fn own_thread() -> i32 {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        link.file_name().unwrap().to_str().unwrap().parse().unwrap()
    }

    #[test]
    fn the_kernel_shows_where_a_thread_sleeps() {
        let (send, sleeping) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            send.send(own_thread()).unwrap();
            while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let sleeping = sleeping.recv().unwrap();
        let call = libc::SYS_clock_nanosleep;
        let (what, place) = look_until_blocked(sleeping, call, &mut PlaceFinder::new());
        assert_eq!(what, BlockedIn::Timer);
        let place = place.unwrap();
        assert!(place.contains("shows_where_a_thread_sleeps"), "{place}");
        drop(end);
    }

    fn look_until_blocked(
        tid: i32,
        call: libc::c_long,
        places: &mut PlaceFinder,
    ) -> (BlockedIn, Option<Box<str>>) {
        let process = i32::try_from(std::process::id()).unwrap();
        let found = ExistingThread { tid, process };
        let path = format!("/proc/{process}/task/{tid}/syscall");
        for _ in 0..1_000 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let text = std::fs::read_to_string(&path).unwrap();
            let what = classify_wait(found, 'S', Some(&text));
            if let Some(what) = what.filter(|_| text.starts_with(&call.to_string())) {
                let (place, what) = find_wait_place(found, what, Some(&text), places);
                return (what, place);
            }
        }
        panic!("thread {tid} was never blocked");
    }

    #[test]
    fn a_thread_that_waits_for_a_server_names_it() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let (send, reading) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(at).unwrap();
            send.send(own_thread()).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        });
        let reading = reading.recv().unwrap();
        let call = libc::SYS_recvfrom;
        let (what, place) = look_until_blocked(reading, call, &mut PlaceFinder::new());
        assert_eq!(what, BlockedIn::Socket);
        assert_eq!(place.as_deref(), Some(at.to_string().as_str()));
        drop(server.accept().unwrap());
        reader.join().unwrap();
    }

    #[test]
    fn calls_say_what_a_thread_waits_for() {
        let stack = 0x7ffd_0000_0000;
        check(libc::SYS_futex, 'S', stack, BlockedIn::Lock);
        check(libc::SYS_ppoll, 'S', stack, BlockedIn::Events);
        check(libc::SYS_clock_nanosleep, 'S', stack, BlockedIn::Timer);
        check(libc::SYS_wait4, 'S', stack, BlockedIn::Child);
        check(libc::SYS_clone, 'D', stack, BlockedIn::Child);
        check(libc::SYS_fsync, 'S', stack, BlockedIn::Disk);
        check(libc::SYS_write, 'D', stack, BlockedIn::Disk);
        check(libc::SYS_recvmsg, 'S', stack, BlockedIn::Socket);
        check(libc::SYS_flock, 'S', stack, BlockedIn::FileLock);
        check(libc::SYS_fsync, 'T', stack, BlockedIn::Stopped);
        check(libc::SYS_getpid, 'S', stack, BlockedIn::OtherCall);
        check(libc::SYS_futex, 'S', 0xffff_0000, BlockedIn::Unknown);
        let check = |state, text, expected| {
            assert_eq!(classify_wait(FOUND, state, text), expected, "{text:?}");
        };
        let lock = format!(
            "{} 0x3 {:#x} 0x0 0x0 0x0 0x0 {stack:#x} 0x7f00\n",
            libc::SYS_fcntl,
            libc::F_SETLKW
        );
        check('S', Some(&lock), Some(BlockedIn::FileLock));
        check('S', Some("running\n"), None);
        check('D', Some("running\n"), Some(BlockedIn::Disk));
        check('S', None, Some(BlockedIn::Unknown));
        check('D', Some("-1 0x7ffd 0x7f00\n"), Some(BlockedIn::PageFault));
        check('S', Some("-1 0x7ffd 0x7f00\n"), Some(BlockedIn::OtherCall));
        check('S', Some(""), Some(BlockedIn::OtherCall));
    }

    #[test]
    fn who_waits_for_a_read_write_lock_waits_for_a_lock() {
        // This one is `pthread_rwlock_t`: the standard library's is not.
        let lock = &NativeRwLock::new();
        std::thread::scope(|scope| {
            lock.write();
            let (send, waiting) = std::sync::mpsc::channel();
            scope.spawn(move || {
                send.send(own_thread()).unwrap();
                lock.read();
                lock.unlock();
            });
            let waiting = waiting.recv().unwrap();
            let (what, _) = look_until_blocked(waiting, libc::SYS_futex, &mut PlaceFinder::new());
            lock.unlock();
            assert_eq!(what, BlockedIn::Mutex);
        });
    }

    #[test]
    fn other_calls_are_named() {
        let name = |text: &str| name_call(FOUND, text).map(String::from);
        let call = |number: i64| format!("{number} 0xfff 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n");
        assert_eq!(
            name(&call(libc::SYS_semtimedop)).as_deref(),
            Some("semtimedop()")
        );
        assert_eq!(name(&call(9_999)).as_deref(), Some("system call 9999"));
        assert_eq!(name("-1 0x7ffd 0x7f00\n"), None);
    }

    #[test]
    fn a_named_pipe_is_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        // Who reads and writes it need not wait for another process to open it.
        let both = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = ExistingThread {
            tid: pid,
            process: pid,
        };
        let text = format!(
            "{} {:#x} 0x0 0x0 0x0 0x0 0x0 0x7ffd00000000 0x7f00\n",
            libc::SYS_read,
            both.as_raw_fd()
        );
        assert_eq!(
            classify_wait(found, 'S', Some(&text)),
            Some(BlockedIn::Pipe)
        );
    }

    #[test]
    fn a_descriptor_shows_what_is_read() {
        let (mut here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = ExistingThread {
            tid: pid,
            process: pid,
        };
        let descriptor = u64::try_from(here.as_raw_fd()).unwrap();
        let link = read_descriptor_target(found, descriptor).unwrap();
        assert_eq!(classify_file(&link), BlockedIn::Socket);
        drop(there);
        assert_eq!(here.read(&mut [0]).unwrap(), 0);
        for (link, expected) in [
            ("pipe:[4]", BlockedIn::Pipe),
            ("/dev/pts/3", BlockedIn::Terminal),
            ("anon_inode:[timerfd]", BlockedIn::Events),
            ("/srv/file", BlockedIn::OtherCall),
        ] {
            assert_eq!(classify_file(link), expected, "{link}");
        }
    }
}
