//! If the system has no memory left, pinwise ends as after any other error: with one line and
//! status 2. The standard library would abort, with a core dump.

use std::alloc::{GlobalAlloc, Layout, System};

#[global_allocator]
static ALLOCATOR: ExitingAllocator = ExitingAllocator;

const OUT_OF_MEMORY: &[u8] = b"error: out of memory (raise its limit, or give a smaller input)\n";

/// The system's allocator; if it has no memory left, the process ends.
struct ExitingAllocator;

// SAFETY: every call goes to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "allocators are unsafe by their interface")]
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same function.
        exit_if_null(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same function.
        exit_if_null(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same function.
        exit_if_null(unsafe { System.realloc(old, layout, bytes) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Ends the process if an allocation failed; allocates nothing itself.
#[expect(unsafe_code, reason = "std would allocate, or run what does")]
fn exit_if_null(given: *mut u8) -> *mut u8 {
    if given.is_null() {
        // SAFETY: the line has the length passed, and _exit touches no memory.
        unsafe {
            libc::write(
                libc::STDERR_FILENO,
                OUT_OF_MEMORY.as_ptr().cast(),
                OUT_OF_MEMORY.len(),
            );
            libc::_exit(2);
        }
    }
    given
}
