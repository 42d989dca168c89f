//! Built-in workloads allocate only before their first unit, and at most what they state.
//!
//! The allocator of the test binary counts the allocations of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pinwise_kernels::work::{Isa, KERNELS, Kernel, Setup, find};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, with counts for each thread.
struct CountingAllocator;

fn count(bytes: i64) {
    // A thread may allocate after its variables are destroyed: then it is not counted.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let _ = LIVE_BYTES.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

#[expect(unsafe_code, reason = "an allocator that counts")]
// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Kernels whose documentation says that they allocate between units.
const MAY_ALLOCATE: [&str; 7] = [
    "tree",
    "tiff-rotate90",
    "tiff-rotate",
    "tiff-blur",
    "png-rotate90",
    "png-rotate",
    "png-blur",
];

fn build_setup(size: u64, isa: Isa) -> Setup {
    Setup {
        size,
        threads: 1,
        isa,
        folder: std::env::temp_dir(),
    }
}

/// The number of allocations during the first two units.
fn count_allocations_of_units(kernel: &Kernel, isa: Isa) -> u64 {
    let size = kernel.size.map_or(0, |size| size.least);
    let job = (kernel.prepare)(&build_setup(size, isa)).unwrap();
    let mut worker = job.worker(0).unwrap();
    let before = CALLS.get();
    for unit in 0..2 {
        worker.run_unit(unit).unwrap();
    }
    CALLS.get() - before
}

#[test]
fn nothing_is_allocated_between_the_first_unit_and_the_last() {
    let before = CALLS.get();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(CALLS.get() - before, 2, "the counter does not count");
    for kernel in KERNELS {
        if MAY_ALLOCATE.contains(&kernel.name) {
            continue;
        }
        let levels = Isa::list_supported();
        for isa in levels.into_iter().filter(|_| kernel.has_versions) {
            assert_eq!(
                count_allocations_of_units(kernel, isa),
                0,
                "{} {isa}",
                kernel.name
            );
        }
        assert_eq!(
            count_allocations_of_units(kernel, Isa::V1),
            0,
            "{}",
            kernel.name
        );
    }
}

/// The most bytes that a kernel holds at the same time, with a worker for each of this many threads.
fn measure_peak_bytes(kernel: &Kernel, size: u64, threads: usize, isa: Isa) -> u64 {
    let before = LIVE_BYTES.get();
    PEAK_BYTES.set(before);
    let job = (kernel.prepare)(&build_setup(size, isa)).unwrap();
    let workers: Vec<_> = (0..threads).map(|i| job.worker(i).unwrap()).collect();
    drop(workers);
    (PEAK_BYTES.get() - before).try_into().unwrap()
}

/// Of kernels that compute numbers, at sizes small enough for any machine.
#[test]
fn stated_footprints_match_the_allocations() {
    // Memory that does not grow with the size.
    const SMALL: u64 = 64 << 10;
    let sizes = [
        ("integer", 0),
        ("napierian", 20_000),
        ("eratosthenes", 4_000_000),
        ("quicksort", 1_000_000),
        ("mean-sd", 1_000_000),
        ("whetstone", 0),
        ("fft", 1 << 17),
        ("fft", 100_003),
        ("mandelbrot", 5000),
        ("pi", 10_000),
        ("pi", 300_000),
    ];
    for (name, size) in sizes {
        let kernel = find(name).unwrap();
        for (threads, isa) in [
            (1, Isa::V1),
            (4, Isa::V1),
            (1, Isa::Native),
            (4, Isa::Native),
        ] {
            let stated = (kernel.footprint_bytes)(size, threads);
            let found = measure_peak_bytes(kernel, size, threads, isa);
            let case = format!("{name} {size} {threads} {isa}: stated {stated}, found {found}");
            assert!(found <= stated + SMALL, "{case}");
            // The bound is for the worst length, and loose for others.
            assert!(stated <= 3 * found + (1 << 20) + SMALL, "{case}");
        }
    }
}
