//! What was recorded (`perf_event_attr`), and where a record's general fields
//! are: time, thread, CPU, raw data.

use std::collections::HashMap;

use crate::trace::Tid;
use crate::trace::import::bytes::Bytes;

/// `perf_event_attr.type` of tracepoints.
const TRACEPOINT: u32 = 2;

/// Bits of `perf_event_attr.flags`.
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const CONTEXT_SWITCH: u64 = 1 << 26;

/// Bits of `perf_event_attr.sample_type`.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// Bits of `perf_event_attr.read_format`.
const ENABLED: u64 = 1;
const RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// Least bytes of a `perf_event_attr`: its first version.
pub(super) const LEAST_ATTRIBUTE: usize = 64;

/// One event that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attribute {
    kind: u32,
    config: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    all: Vec<Attribute>,
    by_id: HashMap<u64, usize>,
}

/// What records say of themselves. What is not recorded is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct General {
    pub(super) process: Option<Tid>,
    pub(super) thread: Option<Tid>,
    pub(super) time_ns: Option<u64>,
    pub(super) cpu: Option<u32>,
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

    /// Takes an attribute; `None` where it is too short.
    pub(super) fn add(&mut self, mut bytes: Bytes<'_>, is_big_endian: bool) -> Option<()> {
        let kind = bytes.u32()?;
        bytes.skip(4)?;
        let config = bytes.u64()?;
        bytes.skip(8)?;
        let sample_type = bytes.u64()?;
        let read_format = bytes.u64()?;
        let flags = bytes.u64()?;
        // Bit fields begin at the other end there.
        let flags = match is_big_endian {
            true => flags.reverse_bits(),
            false => flags,
        };
        self.all.push(Attribute {
            kind,
            config,
            sample_type,
            read_format,
            flags,
        });
        Some(())
    }

    /// An id that records of the attribute taken last may carry.
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
    pub(super) fn start_command(&self) -> bool {
        self.any(ENABLE_ON_EXEC)
    }

    pub(super) fn has_tracepoint(&self, id: u64) -> bool {
        let is_it = |a: &Attribute| a.kind == TRACEPOINT && a.config == id;
        self.all.iter().any(is_it)
    }

    fn any(&self, flag: u64) -> bool {
        self.all.iter().any(|a| a.flags & flag != 0)
    }

    fn of(&self, id: Option<u64>) -> Option<&Attribute> {
        let index = id.and_then(|id| self.by_id.get(&id)).copied();
        // perf takes the first one, too, where a record has no id.
        self.all.get(index.unwrap_or(0))
    }

    fn all_have(&self, bit: u64) -> bool {
        self.all.iter().all(|a| a.sample_type & bit != 0)
    }

    /// The general fields of a sample, and its raw data where it has some.
    /// `None`: it is shorter than it should be.
    pub(super) fn sample<'a>(&self, body: Bytes<'a>) -> Option<(General, Option<&'a [u8]>)> {
        let id = self
            .all_have(IDENTIFIER)
            .then(|| body.clone().u64())
            .flatten();
        let attribute = self.of(id)?;
        let has = |bit: u64| attribute.sample_type & bit != 0;
        let mut body = body;
        let skip = |body: &mut Bytes<'a>, bit: u64| match has(bit) {
            true => body.skip(8),
            false => Some(()),
        };
        skip(&mut body, IDENTIFIER)?;
        skip(&mut body, IP)?;
        let mut general = General::default();
        if has(TID) {
            general.process = Some(body.i32()?);
            general.thread = Some(body.i32()?);
        }
        if has(TIME) {
            general.time_ns = Some(body.u64()?);
        }
        for bit in [ADDR, ID, STREAM_ID] {
            skip(&mut body, bit)?;
        }
        if has(CPU) {
            general.cpu = Some(body.u32()?);
            body.skip(4)?;
        }
        skip(&mut body, PERIOD)?;
        if has(READ) {
            skip_read(&mut body, attribute.read_format)?;
        }
        if has(CALLCHAIN) {
            let count = usize::try_from(body.u64()?).ok()?;
            body.skip(count.checked_mul(8)?)?;
        }
        let raw = match has(RAW) {
            true => {
                let size = usize::try_from(body.u32()?).ok()?;
                Some(body.take(size)?)
            }
            false => None,
        };
        Some((general, raw))
    }

    /// The general fields at the end of any other record; all are `None` where
    /// they were not recorded.
    pub(super) fn trailer(&self, body: Bytes<'_>) -> General {
        self.read_trailer(body).unwrap_or_default()
    }

    fn read_trailer(&self, body: Bytes<'_>) -> Option<General> {
        let length = body.rest().len();
        let mut end = body;
        end.skip(length.checked_sub(8)?)?;
        let id = match self.all_have(IDENTIFIER) {
            true => end.u64(),
            false => None,
        };
        let attribute = self.of(id)?;
        if attribute.flags & SAMPLE_ID_ALL == 0 {
            return None;
        }
        let has = |bit: u64| attribute.sample_type & bit != 0;
        let fields = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        let size = fields.iter().filter(|bit| has(**bit)).count() * 8;
        let mut trailer = body;
        trailer.skip(length.checked_sub(size)?)?;
        let mut general = General::default();
        if has(TID) {
            general.process = Some(trailer.i32()?);
            general.thread = Some(trailer.i32()?);
        }
        if has(TIME) {
            general.time_ns = Some(trailer.u64()?);
        }
        for bit in [ID, STREAM_ID] {
            if has(bit) {
                trailer.skip(8)?;
            }
        }
        if has(CPU) {
            general.cpu = Some(trailer.u32()?);
        }
        Some(general)
    }
}

/// `struct read_format`, of one counter or of a group.
fn skip_read(body: &mut Bytes<'_>, format: u64) -> Option<()> {
    let words = |bits: [u64; 2]| bits.iter().filter(|bit| format & **bit != 0).count();
    let times = words([ENABLED, RUNNING]);
    let each = 1 + words([READ_ID, READ_LOST]);
    let count = match format & GROUP {
        0 => 1,
        _ => usize::try_from(body.u64()?).ok()?,
    };
    let all = count.checked_mul(each)?.checked_add(times)?;
    body.skip(all.checked_mul(8)?)
}
