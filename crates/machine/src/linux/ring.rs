//! Perf events' buffers, which the kernel writes records into.
//!
//! A buffer is memory that is shared with the kernel, one for each CPU. Its first page has the
//! positions of writer and reader; the data pages, a power of two, follow. Data is copied before it
//! is parsed, so that the kernel gets the room back soon. Records are not interpreted here.

#![expect(
    unsafe_code,
    reason = "memory shared with the kernel and perf's requests have no safe form"
)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::{bindings as perf, ioctls};

use super::sys;

/// Switches an event on or off.
pub(super) fn set_enabled(event: &OwnedFd, is_enabled: bool) {
    // SAFETY: a perf descriptor and a request without argument.
    unsafe {
        if is_enabled {
            ioctls::ENABLE(event.as_raw_fd(), 0);
        } else {
            ioctls::DISABLE(event.as_raw_fd(), 0);
        }
    }
}

/// Asks for the id that the kernel gives an event in its records.
pub(super) fn read_id(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: a perf descriptor and a request that writes one 64-bit number.
    sys::check(unsafe { ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// No record of a switch, a fork, an exit or a tracepoint is larger.
const MAX_RECORD_BYTES: usize = 512;

/// A buffer and the event that owns it.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    memory: *mut libc::c_void,
    page_bytes: usize,
    data_bytes: usize,
}

impl Ring {
    /// Gives an event a buffer of this many bytes, rounded down to a power of two of pages.
    pub(super) fn new(event: OwnedFd, bytes: usize) -> io::Result<Self> {
        let page_bytes = sys::page_bytes();
        let pages = 1 << (bytes / page_bytes).max(1).ilog2();
        let data_bytes = pages * page_bytes;
        // SAFETY: a new shared mapping of a perf descriptor; the result is
        // checked.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            event,
            memory,
            page_bytes,
            data_bytes,
        })
    }

    /// Its capacity for records, bytes.
    pub(super) const fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// The event that owns it.
    pub(super) const fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Becomes readable when the buffer fills beyond its watermark.
    pub(super) fn descriptor(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Lets another event of the same CPU write into this buffer.
    pub(super) fn attach_event(&self, other: &OwnedFd) -> io::Result<()> {
        // SAFETY: two perf descriptors; the request takes one as its argument.
        sys::check(unsafe { ioctls::SET_OUTPUT(other.as_raw_fd(), self.descriptor()) }).map(|_| ())
    }

    /// Replaces the content of `bytes` by everything written so far. Returns whether the buffer was
    /// full, so that records may have been lost: the kernel reports the loss with its next record,
    /// if there is one.
    pub(super) fn read(&mut self, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        let page = self.memory.cast::<perf::perf_event_mmap_page>();
        // SAFETY: the first page of the mapping is this structure; both
        // positions are aligned 64-bit numbers that kernel and reader access
        // as atomics.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        // Acquire: makes data written before the head moved visible.
        let end = head.load(Ordering::Acquire);
        let start = tail.load(Ordering::Relaxed);
        let length = usize::try_from(end.wrapping_sub(start)).unwrap_or(0);
        let length = length.min(self.data_bytes);
        let mask = self.data_bytes as u64 - 1;
        let from = usize::try_from(start & mask).unwrap_or(0);
        let before_wrap = length.min(self.data_bytes - from);
        bytes.reserve(length);
        // SAFETY: records lie in the pages after the first; both pieces lie within them, the kernel
        // does not write there until the tail has moved, and `bytes` has room for both.
        unsafe {
            let data = self.memory.cast::<u8>().add(self.page_bytes);
            ptr::copy_nonoverlapping(data.add(from), bytes.as_mut_ptr(), before_wrap);
            let rest = bytes.as_mut_ptr().add(before_wrap);
            ptr::copy_nonoverlapping(data, rest, length - before_wrap);
            bytes.set_len(length);
        }
        // Release: the kernel may overwrite only what has been copied.
        tail.store(end, Ordering::Release);
        length + MAX_RECORD_BYTES > self.data_bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing refers to
        // it any more.
        unsafe { libc::munmap(self.memory, self.page_bytes + self.data_bytes) };
    }
}

/// Might a smaller buffer be granted after this error? `EPERM` means that it exceeds
/// `perf_event_mlock_kb`.
pub(super) fn is_for_size(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN)
    )
}
