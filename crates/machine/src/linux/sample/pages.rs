//! Reads code around sampled addresses: from the process while it lives, from the file afterwards.
//!
//! Code that a program makes at run time is only in its memory, so pages are read soon after they
//! were first seen. Their number is limited.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;

use super::super::stack::files::open_program;
use super::super::stack::maps::Mapping;
use super::super::sys;
use pinwise_code::{Arch, Code};

/// Bytes read at once.
const PAGE: u64 = 4096;
/// Limits the pages that are requested.
const MAX_PAGES: usize = 8192;

/// Where a page can be read when its process is gone.
#[derive(Debug, Clone)]
struct Origin {
    path: String,
    offset: u64,
}

/// Pages of code by process and address.
#[derive(Debug, Default)]
pub(super) struct Pages {
    read: BTreeMap<(i32, u64), Vec<u8>>,
    /// Pages to be read.
    wanted: BTreeMap<(i32, u64), Origin>,
    /// Pages that contain a sampled address.
    seen: BTreeSet<(i32, u64)>,
}

impl Pages {
    /// Requests the page of an address and the pages next to it.
    pub(super) fn request(&mut self, pid: i32, address: u64, mapping: &Mapping, path: &str) {
        let page = address & !(PAGE - 1);
        if self.seen.len() >= MAX_PAGES || !self.seen.insert((pid, page)) {
            return;
        }
        for page in [page.wrapping_sub(PAGE), page, page.saturating_add(PAGE)] {
            if page < mapping.start || page >= mapping.end {
                continue;
            }
            if self.read.contains_key(&(pid, page)) {
                continue;
            }
            let origin = Origin {
                path: path.to_owned(),
                offset: page - mapping.start + mapping.offset,
            };
            self.wanted.insert((pid, page), origin);
        }
    }

    /// Reads the wanted pages from processes that still live.
    pub(super) fn read_memory(&mut self) {
        let mut buffer = vec![0; usize::try_from(PAGE).unwrap_or(0)];
        let read = &mut self.read;
        self.wanted.retain(|&(pid, page), _| {
            let Some(length) = sys::read_memory(pid, page, &mut buffer) else {
                return true;
            };
            read.insert((pid, page), buffer[..length].to_vec());
            false
        });
    }

    /// Reads the remaining pages from files, and joins adjacent pages of a process.
    pub(super) fn finish(mut self) -> Vec<(i32, Code)> {
        for ((pid, page), origin) in std::mem::take(&mut self.wanted) {
            if let Some(bytes) = read_file_page(pid, &origin) {
                self.read.insert((pid, page), bytes);
            }
        }
        let Some(arch) = Arch::here() else {
            return Vec::new();
        };
        let mut joined: Vec<(i32, Code)> = Vec::new();
        for ((pid, start), bytes) in self.read {
            match joined.last_mut() {
                Some((last_pid, code)) if *last_pid == pid && code.end() == start => {
                    code.bytes.extend(bytes);
                }
                _ => joined.push((pid, Code { arch, start, bytes })),
            }
        }
        joined
    }
}

fn read_file_page(pid: i32, origin: &Origin) -> Option<Vec<u8>> {
    let file = open_program(pid, &origin.path)?;
    let mut bytes = vec![0; usize::try_from(PAGE).ok()?];
    let length = file.read_at(&mut bytes, origin.offset).ok()?;
    bytes.truncate(length);
    Some(bytes)
}
