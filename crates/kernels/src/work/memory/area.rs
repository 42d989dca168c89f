//! Memory of a worker: freshly mapped, so that the first thread to touch it decides its node, in
//! huge pages if available.
//!
//! Huge pages are requested, not required.

#![expect(unsafe_code, reason = "a mapping is raw memory")]

use std::ptr::NonNull;

use crate::work::KernelError;

/// Huge pages of x86-64, and of arm64 with pages of 4 KiB.
const HUGE_BYTES: usize = 2 << 20;
/// The largest excess of a mapping over its requested bytes.
pub(super) const BEYOND_BYTES: u64 = 2 * HUGE_BYTES as u64;

/// Mapped memory, zero at first, aligned to huge pages.
#[derive(Debug)]
pub(super) struct Area {
    base: NonNull<u8>,
    mapped_bytes: usize,
    start: NonNull<u8>,
}

impl Area {
    /// Maps this many bytes.
    ///
    /// # Errors
    /// [`KernelError::System`] if the system refuses.
    pub(super) fn new(bytes: usize) -> Result<Self, KernelError> {
        let refused = |reason: String| KernelError::System {
            action: format!("taking {bytes} bytes of memory"),
            reason,
        };
        let mapped_bytes = bytes
            .checked_next_multiple_of(HUGE_BYTES)
            .and_then(|rounded| rounded.checked_add(HUGE_BYTES))
            .ok_or_else(|| refused("more than can be addressed".to_owned()))?;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(refused(std::io::Error::last_os_error().to_string()));
        }
        let base = NonNull::new(address.cast::<u8>())
            .ok_or_else(|| refused("it would start at address 0".to_owned()))?;
        let skipped = base.align_offset(HUGE_BYTES);
        // SAFETY: one huge page more than needed is mapped, and less skipped.
        let start = unsafe { base.add(skipped) };
        // SAFETY: advice on a part of the mapping; a refusal does no harm.
        unsafe {
            libc::madvise(
                start.as_ptr().cast(),
                mapped_bytes - skipped,
                libc::MADV_HUGEPAGE,
            );
        }
        Ok(Self {
            base,
            mapped_bytes,
            start,
        })
    }

    /// Its start.
    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and who used it borrowed it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        for bytes in [1, 4096, HUGE_BYTES, 3 * HUGE_BYTES + 5] {
            let area = Area::new(bytes).unwrap();
            let start = area.start().as_ptr();
            assert!(start.addr().is_multiple_of(HUGE_BYTES));
            // SAFETY: within the mapping, which nothing else uses.
            let (first, last) = unsafe { (start.read(), start.add(bytes - 1).read()) };
            assert_eq!((first, last), (0, 0));
        }
    }

    #[test]
    fn impossible_requests_are_refused() {
        for bytes in [usize::MAX, 1 << 60] {
            let error = Area::new(bytes).unwrap_err().to_string();
            assert!(error.starts_with("taking "), "{error}");
        }
    }
}
