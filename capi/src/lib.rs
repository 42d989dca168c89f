//! The C interface: `pinwise.h`, `libpinwise.so` and `libpinwise.a`.
//!
//! A thin layer over `pinwise_affinity`. Nothing unwinds into C: a panic
//! becomes an error. Sizes and pointers are checked as far as C allows.

#![expect(
    unsafe_code,
    reason = "a C interface takes pointers; each block says why it is sound"
)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use pinwise_affinity::{Bound, Host, Places};
use pinwise_placement::Placement;
use pinwise_topology::{CpuSet, Level};

/// Number of this interface.
pub const PINWISE_INTERFACE: c_int = 0;

/// A machine, and what this process may use of it.
#[derive(Debug)]
pub struct PinwiseHost(Host);

/// CPUs that threads take in turn.
#[derive(Debug)]
pub struct PinwisePlaces(Places);

/// How many workers make sense, by what limits them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PinwiseWorkers {
    /// Workers that can run at the same time: the CPUs that this process may
    /// use, or the quota of its cgroups rounded up if that is less.
    pub parallelism: usize,
    /// The same with one worker per physical core.
    pub on_own_cores: usize,
    /// Logical CPUs that this process may use.
    pub cpus: usize,
    /// Physical cores of which this process may use a CPU.
    pub cores: usize,
    /// Last-level-cache domains of those; 0 if no cache is reported.
    pub llcs: usize,
    /// NUMA nodes of those.
    pub numa_nodes: usize,
    /// Packages of those.
    pub packages: usize,
    /// CPUs' worth of time that the quota leaves; 0 without a quota.
    pub quota: f64,
}

/// The units that a CPU belongs to, counted from 0; -1 if not reported, or if
/// the CPU is offline.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PinwiseLocation {
    /// Physical core.
    pub core: c_int,
    /// Position among the CPUs of its core: 0 for the first hyper-thread.
    pub smt_rank: c_int,
    /// Last-level cache.
    pub llc: c_int,
    /// The operating system's number of the NUMA node.
    pub numa_node: c_int,
    /// Package.
    pub package: c_int,
    /// 1 if the CPU is online.
    pub online: c_int,
    /// 1 if this process may run on it.
    pub allowed: c_int,
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
    /// The mask before this thread was first bound, and the last one set.
    static BOUND: RefCell<Option<(CpuSet, CpuSet)>> = const { RefCell::new(None) };
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn pinwise_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Why the last failed function on this thread failed; "" if none has. The text
/// stays until the next failure on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn pinwise_last_error() -> *const c_char {
    let text = LAST_ERROR.try_with(|text| text.borrow().as_ptr());
    text.unwrap_or(c"".as_ptr())
}

/// Reads the machine and what the calling thread may use of it: affinity mask,
/// cpuset, online CPUs, quotas of cgroups. NULL on failure. Discover before
/// threads are bound: a bound thread is allowed only its own CPUs.
#[unsafe(no_mangle)]
pub extern "C" fn pinwise_host_discover() -> *mut PinwiseHost {
    build_boxed(|| Ok(PinwiseHost(Host::discover().map_err(to_text)?)))
}

/// Reads a folder with a copy of /sys (and perhaps /proc), for programs that
/// test their placement on machines they do not have. NULL on failure.
///
/// # Safety
/// `root` is a string that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_host_from_folder(root: *const c_char) -> *mut PinwiseHost {
    build_boxed(|| {
        // SAFETY: as the caller promises.
        let root = unsafe { read_string(root, "root") }?;
        Ok(PinwiseHost(
            Host::from_folder(Path::new(root)).map_err(to_text)?,
        ))
    })
}

/// Frees a host; NULL is allowed. Places stay valid.
///
/// # Safety
/// `host` is NULL, or came from this library and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_host_free(host: *mut PinwiseHost) {
    if !host.is_null() {
        // SAFETY: as the caller promises, it was leaked by `build_boxed`.
        drop(unsafe { Box::from_raw(host) });
    }
}

/// Reports how many workers make sense. `size` is sizeof(PinwiseWorkers).
/// Returns 0, or -1 on failure.
///
/// # Safety
/// `host` is NULL or a valid host; `workers` is NULL or has room for `size`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_host_workers(
    host: *const PinwiseHost,
    workers: *mut PinwiseWorkers,
    size: usize,
) -> c_int {
    run_for_status(|| {
        // SAFETY: as the caller promises.
        let host = &unsafe { check_pointer(host, "host") }?.0;
        let counted = host.workers();
        let topology = host.topology();
        let answer = PinwiseWorkers {
            parallelism: counted.parallelism,
            on_own_cores: counted.on_own_cores,
            cpus: counted.cpus,
            cores: counted.cores,
            llcs: counted.cores_per_llc.len(),
            numa_nodes: topology.allowed_units(Level::Numa).len(),
            packages: topology.allowed_units(Level::Package).len(),
            quota: counted.quota.unwrap_or(0.0),
        };
        // SAFETY: as the caller promises.
        unsafe { copy_out(&answer, workers, size, "workers") }
    })
}

/// Reports which units a CPU belongs to. `size` is sizeof(PinwiseLocation).
/// Returns 0, or -1 on failure or if there is no such CPU.
///
/// # Safety
/// `host` is NULL or a valid host; `location` is NULL or has room for `size`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_host_locate(
    host: *const PinwiseHost,
    cpu: c_int,
    location: *mut PinwiseLocation,
    size: usize,
) -> c_int {
    run_for_status(|| {
        // SAFETY: as the caller promises.
        let host = &unsafe { check_pointer(host, "host") }?.0;
        let found = usize::try_from(cpu).ok().and_then(|cpu| host.locate(cpu));
        let found = found.ok_or_else(|| format!("there is no CPU {cpu} on this machine"))?;
        let answer = PinwiseLocation {
            core: to_c_int(found.core),
            smt_rank: to_c_int(Some(found.smt_rank)),
            llc: to_c_int(found.llc),
            numa_node: to_c_int(found.numa_node),
            package: to_c_int(found.package),
            online: c_int::from(found.online),
            allowed: c_int::from(found.allowed),
        };
        // SAFETY: as the caller promises.
        unsafe { copy_out(&answer, location, size, "location") }
    })
}

/// Chooses a CPU for each of this many threads; 0: as many as make sense. Cores
/// come before second hyper-threads, one last-level cache before several. NULL
/// on failure.
///
/// # Safety
/// `host` is NULL or a valid host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_place(
    host: *const PinwiseHost,
    threads: usize,
) -> *mut PinwisePlaces {
    build_boxed(|| {
        // SAFETY: as the caller promises.
        let host = &unsafe { check_pointer(host, "host") }?.0;
        Ok(PinwisePlaces(host.place(threads)))
    })
}

/// Chooses CPUs by a placement's name, such as "one-per-core", "one-llc:1" or
/// "cpu:0,2-4": what `pinwise compare` found best. NULL if the machine lacks
/// what is requested, or forbids it.
///
/// # Safety
/// `host` is NULL or a valid host, `placement` NULL or a string that ends with
/// NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_place_as(
    host: *const PinwiseHost,
    placement: *const c_char,
    threads: usize,
) -> *mut PinwisePlaces {
    build_boxed(|| {
        // SAFETY: as the caller promises.
        let (host, name) = unsafe {
            (
                &check_pointer(host, "host")?.0,
                read_string(placement, "placement")?,
            )
        };
        let placement: Placement = name.parse().map_err(to_text)?;
        let places = host.place_as(&placement, threads).map_err(to_text)?;
        Ok(PinwisePlaces(places))
    })
}

/// Frees places; NULL is allowed. Threads stay bound.
///
/// # Safety
/// `places` is NULL, or came from this library and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_places_free(places: *mut PinwisePlaces) {
    if !places.is_null() {
        // SAFETY: as the caller promises, they were leaked by `build_boxed`.
        drop(unsafe { Box::from_raw(places) });
    }
}

/// The number of threads that places were chosen for; 0 if `places` is NULL.
///
/// # Safety
/// `places` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_places_threads(places: *const PinwisePlaces) -> usize {
    catch_failure(0, || {
        // SAFETY: as the caller promises.
        Ok(unsafe { check_pointer(places, "places") }?.0.threads())
    })
}

/// The CPU of a thread, counted from 0; threads beyond the CPUs start again
/// with the first. -1 on failure.
///
/// # Safety
/// `places` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_places_cpu(places: *const PinwisePlaces, thread: usize) -> c_int {
    catch_failure(-1, || {
        // SAFETY: as the caller promises.
        let places = &unsafe { check_pointer(places, "places") }?.0;
        Ok(to_c_int(Some(places.cpu(thread))))
    })
}

/// Writes all used CPUs, ascending, as many as `capacity` has room for, and
/// returns their number; 0 on failure. `cpus` may be NULL if `capacity` is 0.
///
/// # Safety
/// `places` is NULL or valid; `cpus` has room for `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_places_cpus(
    places: *const PinwisePlaces,
    cpus: *mut c_int,
    capacity: usize,
) -> usize {
    catch_failure(0, || {
        // SAFETY: as the caller promises.
        let places = &unsafe { check_pointer(places, "places") }?.0;
        if cpus.is_null() && capacity > 0 {
            return Err("cpus is NULL".to_owned());
        }
        for (index, cpu) in places.cpus().iter().take(capacity).enumerate() {
            // SAFETY: index is below the capacity that the caller promises.
            unsafe { cpus.add(index).write(to_c_int(Some(cpu))) };
        }
        Ok(places.cpus().len())
    })
}

/// Binds the calling thread to the CPU of thread number `thread`. The mask is
/// read back. Returns 0, or -1 if the kernel refuses; then the mask is
/// unchanged.
///
/// # Safety
/// `places` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_bind(places: *const PinwisePlaces, thread: usize) -> c_int {
    run_for_status(|| {
        // SAFETY: as the caller promises.
        let places = &unsafe { check_pointer(places, "places") }?.0;
        keep_bound(places.bind(thread).map_err(to_text)?)
    })
}

/// Confines the calling thread to all of the CPUs, and leaves it to the
/// scheduler within them. Returns 0, or -1 as `pinwise_bind`.
///
/// # Safety
/// `places` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinwise_confine(places: *const PinwisePlaces) -> c_int {
    run_for_status(|| {
        // SAFETY: as the caller promises.
        let places = &unsafe { check_pointer(places, "places") }?.0;
        keep_bound(places.confine().map_err(to_text)?)
    })
}

/// Restores the mask that the calling thread had before this library first
/// bound it, unless someone else has set another since; an unbound thread stays
/// as it is. Returns 0, or -1 if the kernel refuses.
#[unsafe(no_mangle)]
pub extern "C" fn pinwise_unbind() -> c_int {
    run_for_status(|| {
        let bound = BOUND.try_with(|bound| bound.borrow_mut().take());
        let Some((before, now)) = bound.map_err(to_text)? else {
            return Ok(());
        };
        if pinwise_affinity::current_mask().map_err(to_text)? == now {
            pinwise_affinity::bind(&before).map_err(to_text)?.keep();
        }
        Ok(())
    })
}

/// The CPU that the calling thread is on; -1 if the kernel does not report it.
#[unsafe(no_mangle)]
pub extern "C" fn pinwise_current_cpu() -> c_int {
    to_c_int(pinwise_affinity::current_cpu())
}

/// Leaves a thread bound, and remembers its first mask for [`pinwise_unbind`].
fn keep_bound(bound: Bound) -> Result<(), String> {
    let (before, now) = (bound.before().clone(), bound.cpus().clone());
    BOUND
        .try_with(|slot| {
            let mut slot = slot.borrow_mut();
            // If someone else set a mask meanwhile, that one is restored later.
            let first = match slot.take() {
                Some((first, last)) if last == before => first,
                _ => before,
            };
            *slot = Some((first, now));
        })
        .map_err(to_text)?;
    bound.keep();
    Ok(())
}

fn to_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A number that does not fit counts as unknown.
fn to_c_int(value: Option<usize>) -> c_int {
    value
        .and_then(|value| c_int::try_from(value).ok())
        .unwrap_or(-1)
}

fn build_boxed<T>(work: impl FnOnce() -> Result<T, String>) -> *mut T {
    catch_failure(std::ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(work()?)))
    })
}

fn run_for_status(work: impl FnOnce() -> Result<(), String>) -> c_int {
    catch_failure(-1, || work().map(|()| 0))
}

/// Keeps errors for [`pinwise_last_error`], and panics from C.
fn catch_failure<T>(failure: T, work: impl FnOnce() -> Result<T, String>) -> T {
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("pinwise failed by a mistake of its own".to_owned()));
    result.unwrap_or_else(|error| {
        let error = CString::new(error.replace('\0', " ")).unwrap_or_default();
        // A thread that is ending needs no error message.
        let _ = LAST_ERROR.try_with(|slot| *slot.borrow_mut() = error);
        failure
    })
}

/// # Safety
/// The pointer is NULL or valid for as long as the reference is used.
unsafe fn check_pointer<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, String> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| format!("{name} is NULL"))
}

/// # Safety
/// The pointer is NULL or a string that ends with NUL, valid for the lifetime.
unsafe fn read_string<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, String> {
    if pointer.is_null() {
        return Err(format!("{name} is NULL"));
    }
    // SAFETY: as the caller promises.
    let string = unsafe { CStr::from_ptr(pointer) };
    string.to_str().map_err(|_| format!("{name} is not UTF-8"))
}

/// Writes as much of a structure as the caller knows.
///
/// # Safety
/// `to` is NULL or has room for `size` bytes.
unsafe fn copy_out<T: Copy>(answer: &T, to: *mut T, size: usize, name: &str) -> Result<(), String> {
    if to.is_null() {
        return Err(format!("{name} is NULL"));
    }
    if size == 0 {
        return Err(format!("the size of {name} is 0; pass sizeof(*{name})"));
    }
    let from: *const T = answer;
    // SAFETY: only bytes that both have are copied; the caller's further bytes
    // are left unchanged.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), size.min(size_of::<T>()))
    };
    Ok(())
}
