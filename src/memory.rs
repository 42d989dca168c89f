//! Memory that the system does not give ends pinwise like any other error: one line and
//! status 2. The standard library would abort it, with a core dump.

use std::alloc::{GlobalAlloc, Layout, System};

#[global_allocator]
static ALLOCATOR: OrExit = OrExit;

const LINE: &[u8] = b"error: out of memory (raise its limit, or give a smaller input)\n";

/// The system's allocator; if it has no memory left, the process ends.
struct OrExit;

// SAFETY: all is left to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "allocators are unsafe by their interface")]
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same function.
        require(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same function.
        require(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same function.
        require(unsafe { System.realloc(old, layout, bytes) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Nothing is allocated on the way out.
#[expect(unsafe_code, reason = "std would allocate, or run what does")]
fn require(given: *mut u8) -> *mut u8 {
    if given.is_null() {
        // SAFETY: the line has the length passed, and _exit touches no memory.
        unsafe {
            libc::write(libc::STDERR_FILENO, LINE.as_ptr().cast(), LINE.len());
            libc::_exit(2);
        }
    }
    given
}
