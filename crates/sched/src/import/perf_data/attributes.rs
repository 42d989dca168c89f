//! The recorded events (`perf_event_attr`), and where their records have time, thread, CPU and raw
//! data.

use foldhash::HashMap;

use crate::perf::sampled::IDENTIFIER;
use crate::perf::{Bytes, CommonFields, Layout};

/// `perf_event_attr.type` of tracepoints.
const TRACEPOINT: u32 = 2;

/// Bits of `perf_event_attr.flags`.
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const CONTEXT_SWITCH: u64 = 1 << 26;

/// The size of the first version of `perf_event_attr`, bytes.
pub(super) const MIN_ATTRIBUTE_BYTES: usize = 64;

/// A recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attribute {
    kind: u32,
    config: u64,
    flags: u64,
    layout: Layout,
}

/// The attributes of all events.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    all: Vec<Attribute>,
    /// Some events have records that do not begin with an id.
    lacks_ids: bool,
    /// Indices of attributes by the ids in records.
    by_id: HashMap<u64, usize>,
}

impl Attributes {
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn ids(&self) -> usize {
        self.by_id.len()
    }

    /// Adds an attribute; `None` if it is too short.
    pub(super) fn add(&mut self, mut bytes: Bytes<'_>, is_big_endian: bool) -> Option<()> {
        let kind = bytes.u32()?;
        bytes.skip(4)?;
        let config = bytes.u64()?;
        bytes.skip(8)?;
        let sample_type = bytes.u64()?;
        let read_format = bytes.u64()?;
        let flags = bytes.u64()?;
        // On big-endian machines bit fields begin with the highest bit.
        let flags = match is_big_endian {
            true => flags.reverse_bits(),
            false => flags,
        };
        self.lacks_ids |= sample_type & IDENTIFIER == 0;
        self.all.push(Attribute {
            kind,
            config,
            flags,
            layout: Layout {
                sample_type,
                read_format,
                has_trailer: flags & SAMPLE_ID_ALL != 0,
            },
        });
        Some(())
    }

    /// Adds an id that records of the last attribute have.
    pub(super) fn add_id(&mut self, id: u64) {
        self.by_id.insert(id, self.all.len().saturating_sub(1));
    }

    /// Are there switch records?
    pub(super) fn has_switch_records(&self) -> bool {
        self.any(CONTEXT_SWITCH)
    }

    /// Are there records of forks and exits?
    pub(super) fn has_task_records(&self) -> bool {
        self.any(TASK)
    }

    /// Did recording begin with the command's `exec`?
    pub(super) fn starts_with_command(&self) -> bool {
        self.any(ENABLE_ON_EXEC)
    }

    pub(super) fn has_tracepoint(&self, id: u64) -> bool {
        let is_it = |a: &Attribute| a.kind == TRACEPOINT && a.config == id;
        self.all.iter().any(is_it)
    }

    fn any(&self, flag: u64) -> bool {
        self.all.iter().any(|a| a.flags & flag != 0)
    }

    fn find(&self, id: Option<u64>) -> Option<&Attribute> {
        let index = id.and_then(|id| self.by_id.get(&id)).copied();
        // Without an id perf, too, uses the first event.
        self.all.get(index.unwrap_or(0))
    }

    /// Parses the common fields of a sample, and its raw data if it has some; `None` if it is too
    /// short.
    pub(super) fn parse_sample<'a>(
        &self,
        body: Bytes<'a>,
    ) -> Option<(CommonFields, Option<&'a [u8]>)> {
        let mut begin = body;
        let id = (!self.lacks_ids).then(|| begin.u64()).flatten();
        self.find(id)?.layout.parse_sample(body)
    }

    /// Parses the common fields at the end of any other record; `None` if there are none.
    pub(super) fn parse_trailer(&self, body: Bytes<'_>) -> Option<CommonFields> {
        let mut end = body;
        end.skip(body.rest().len().checked_sub(8)?)?;
        let id = (!self.lacks_ids).then(|| end.u64()).flatten();
        self.find(id)?.layout.parse_trailer(body)
    }
}
