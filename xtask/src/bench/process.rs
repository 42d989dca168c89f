//! Measured processes: wall-clock time and peak memory of a command.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What a process took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) wall: Duration,
    /// User and system.
    pub(super) cpu: Duration,
    pub(super) peak_bytes: u64,
}

/// Runs a command without input or output and measures it. The exit status
/// must be 0.
pub(super) fn measure(command: &mut Command) -> Result<Taken> {
    let started = Instant::now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    let (status, usage) = wait(child.id())?;
    let wall = started.elapsed();
    if status != 0 {
        bail!("{command:?} ended with wait status {status:#x}");
    }
    let of = |time: libc::timeval| {
        let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
        whole + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    Ok(Taken {
        wall,
        cpu: of(usage.ru_utime) + of(usage.ru_stime),
        peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    })
}

/// Waits for a child and takes its usage, which `std` does not report.
#[expect(unsafe_code, reason = "std has no wait with usage")]
fn wait(pid: u32) -> Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain integers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = libc::pid_t::try_from(pid)?;
    // SAFETY: both pointers are valid for the call.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if waited != pid {
        bail!("waiting failed: {}", std::io::Error::last_os_error());
    }
    Ok((status, usage))
}

/// What keeps a CPU busy, for `sh`.
pub(super) const BUSY: &str = "while :; do :; done";

/// Starts a command in a process group of its own, so that it can be signalled
/// without us.
pub(super) fn apart(command: &mut Command) -> &mut Command {
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

/// A process with all that it starts, until it is dropped.
pub(super) struct Group(Child);

impl Group {
    /// Starts a command without input or output.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        Ok(Self(apart(command).spawn()?))
    }
}

impl Drop for Group {
    #[expect(unsafe_code, reason = "std signals no process group")]
    fn drop(&mut self) {
        if let Ok(group) = libc::pid_t::try_from(self.0.id()) {
            // SAFETY: kill reads no memory of ours.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}

/// The middle value.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    }
}

/// First and third quartile.
pub(super) fn quartiles(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| {
        values
            .get(values.len() * part / 4)
            .copied()
            .unwrap_or(f64::NAN)
    };
    (at(1), at(3))
}
