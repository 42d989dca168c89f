//! Maps memory for probes, on a given NUMA node if requested. Its pages are allocated when the
//! measuring thread first writes to them.
//!
//! It refuses to take more than a part of the available memory: a probe must not cause other
//! programs to be swapped out.

#![expect(unsafe_code, reason = "mappings are handed out as raw memory")]

use std::ptr::NonNull;

use super::calls;
use pinwise_topology::CpuSet;

/// Size of huge pages on x86-64, and on arm64 with 4 KiB pages.
const HUGE_BYTES: usize = 2 << 20;
/// Huge pages are requested from this size on: the first-level TLB (64 entries or more) covers less
/// memory with pages of 4 KiB.
const LARGE_BYTES: usize = 128 << 10;
/// A probe may take the available memory divided by this.
const AVAILABLE_DIVISOR: u64 = 2;

/// Mapped memory, which is zero at first.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    mapped_bytes: usize,
    /// Aligned to huge pages if it is large.
    start: NonNull<u8>,
}

// SAFETY: a mapping is memory without an owner thread; who shares it has to
// order accesses as with any other memory.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this much memory, on `node` if given.
    ///
    /// # Errors
    /// A full sentence says why that is refused.
    pub(super) fn new(bytes: usize, node: Option<usize>) -> Result<Self, String> {
        let is_large = bytes >= LARGE_BYTES;
        let (page, alignment) = if is_large {
            (HUGE_BYTES, HUGE_BYTES)
        } else {
            (4096, 0)
        };
        let mapped_bytes = bytes
            .checked_next_multiple_of(page)
            .and_then(|rounded| rounded.checked_add(alignment))
            .filter(|&mapped| mapped > 0)
            .ok_or_else(|| format!("{bytes} bytes are more than can be addressed."))?;
        let address = calls::map(mapped_bytes)
            .map_err(|error| format!("{bytes} bytes of memory were refused: {error}."))?;
        let base = NonNull::new(address).ok_or("Memory was refused.")?;
        let skipped = if is_large {
            address.align_offset(HUGE_BYTES)
        } else {
            0
        };
        // SAFETY: `skipped` is below the alignment that was mapped in addition.
        let start = unsafe { base.add(skipped) };
        let mapping = Self {
            base,
            mapped_bytes,
            start,
        };
        if is_large {
            calls::ask_for_huge_pages(start.as_ptr(), mapped_bytes - skipped);
        }
        if let Some(node) = node {
            let nodes = CpuSet::single(node);
            calls::bind_memory(base.as_ptr(), mapped_bytes, nodes.words())
                .map_err(|error| format!("Memory of NUMA node {node} was refused: {error}."))?;
        }
        Ok(mapping)
    }

    /// Its start.
    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and who used it borrowed or shared this
        // value.
        unsafe { calls::unmap(self.base.as_ptr(), self.mapped_bytes) };
    }
}

/// Checks that a probe may take this much memory; a full sentence says why not.
pub(super) fn check_size(bytes: u64) -> Result<(), String> {
    let Some(available) = available_memory_bytes() else {
        return Ok(());
    };
    if bytes > available / AVAILABLE_DIVISOR {
        return Err(format!(
            "{} MiB are over half of the {} MiB of memory available here.",
            bytes >> 20,
            available >> 20
        ));
    }
    Ok(())
}

/// Reads how many bytes could be used without swapping: `MemAvailable`, or less if a cgroup allows
/// less. `None` if unknown.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    let read = |path: &str| {
        let text = super::super::capture::read_file(std::path::Path::new(path))?;
        String::from_utf8(text).ok()
    };
    let host = parse_available(&read("/proc/meminfo")?)?;
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let limits = list_cgroup_folders(&own).filter_map(|folder| {
        let limit: u64 = read(&format!("{folder}/memory.max"))?.trim().parse().ok()?;
        let used: u64 = read(&format!("{folder}/memory.current"))?
            .trim()
            .parse()
            .ok()?;
        Some(limit.saturating_sub(used))
    });
    Some(limits.fold(host, u64::min))
}

/// The folders of a process's cgroup (version 2) and its ancestors.
fn list_cgroup_folders(own: &str) -> impl Iterator<Item = String> + use<> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.unwrap_or("/").trim_end_matches('/').to_owned();
    let mut next = Some(path);
    std::iter::from_fn(move || {
        let path = next.take()?;
        next = path.rsplit_once('/').map(|(above, _)| above.to_owned());
        Some(format!("/sys/fs/cgroup{path}"))
    })
}

/// Parses `MemAvailable` of `/proc/meminfo`, bytes.
fn parse_available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        for bytes in [1, 4096, LARGE_BYTES, HUGE_BYTES, 3 * HUGE_BYTES + 5] {
            let mapping = Mapping::new(bytes, None).unwrap();
            let start = mapping.start().as_ptr();
            // SAFETY: within the mapping, which nothing else uses.
            let (first, last) = unsafe { (start.read(), start.add(bytes - 1).read()) };
            assert_eq!((first, last), (0, 0));
            let alignment = if bytes < LARGE_BYTES {
                4096
            } else {
                HUGE_BYTES
            };
            assert!(start.addr().is_multiple_of(alignment));
        }
    }

    #[test]
    fn impossible_requests_are_refused_with_a_sentence() {
        for bytes in [usize::MAX, usize::MAX / 2] {
            let refusal = Mapping::new(bytes, None).unwrap_err();
            assert!(refusal.ends_with('.'), "{refusal}");
        }
        let refusal = Mapping::new(4096, Some(1000)).unwrap_err();
        assert!(refusal.contains("node 1000"), "{refusal}");
        let refusal = check_size(1 << 60).unwrap_err();
        assert!(refusal.contains("over half"), "{refusal}");
        check_size(4096).unwrap();
    }

    #[test]
    fn folders_of_a_cgroup_are_listed_up_to_the_root() {
        let folders: Vec<String> = list_cgroup_folders("1:cpu:/x\n0::/a/b\n").collect();
        let root = "/sys/fs/cgroup";
        assert_eq!(
            folders,
            [format!("{root}/a/b"), format!("{root}/a"), root.to_owned()]
        );
        assert_eq!(list_cgroup_folders("0::/\n").collect::<Vec<_>>(), [root]);
        assert_eq!(list_cgroup_folders("").collect::<Vec<_>>(), [root]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(MemAvailable: *[0-9]{1,22} kB\n|\\PC{0,20}\n){0,3}") {
            let _ = parse_available(&text);
            prop_assert!(list_cgroup_folders(&text).count() < 40);
        }
    }
}
