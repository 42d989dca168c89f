//! Lets only one pinwise probe at a time: two would measure each other's load.
//!
//! The lock is a name in the abstract socket namespace. It belongs to the process that bound it
//! until that process ends, in whatever way, and leaves no file. Containers with their own network
//! namespace do not see it: there, only the rejection of disturbed batches helps.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use crate::MachineError;
use pinwise_kernels::loops::clock::system_ns;

/// The name of the socket.
const NAME: &[u8] = b"pinwise-probing";
/// Longest wait; most measurements end within this time.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Held while this process probes; `None` if such sockets are not allowed here.
#[derive(Debug)]
pub(in crate::linux) struct Lock(
    #[expect(dead_code, reason = "held, not used")] Option<UnixListener>,
);

impl Lock {
    /// Waits until no other process probes.
    ///
    /// # Errors
    /// [`MachineError`] if another one takes longer than 30 s.
    pub(in crate::linux) fn take() -> Result<Self, MachineError> {
        Self::take_named(NAME, TIMEOUT)
    }

    fn take_named(name: &[u8], timeout: Duration) -> Result<Self, MachineError> {
        let Ok(address) = SocketAddr::from_abstract_name(name) else {
            return Ok(Self(None));
        };
        let start = system_ns();
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => return Ok(Self(Some(listener))),
                Err(error) if error.kind() != ErrorKind::AddrInUse => return Ok(Self(None)),
                Err(_) => {}
            }
            if u128::from(system_ns() - start) > timeout.as_nanos() {
                return Err(MachineError::System {
                    action: "measuring this machine".to_owned(),
                    reason: format!(
                        "another pinwise has been measuring it for {} s; try again when it has \
                         ended",
                        timeout.as_secs()
                    ),
                });
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_held_until_it_is_dropped() {
        let name = format!("pinwise-test-{}", std::process::id());
        let take = || Lock::take_named(name.as_bytes(), Duration::from_millis(50));
        let first = take().unwrap();
        let refusal = take().unwrap_err().to_string();
        assert!(refusal.contains("another pinwise"), "{refusal}");
        drop(first);
        take().unwrap();
    }
}
