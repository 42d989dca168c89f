//! The records of `perf.data`, one after the other, and those that perf itself
//! wrote between the kernel's.

use std::io::{self, BufRead, ErrorKind, Read};

use super::attributes::LEAST_ATTRIBUTE;
use super::decode::Decoder;
use super::header::Header;
use crate::import::raw_event::RawEvent;
use crate::import::{FirstTime, ImportError};
use crate::perf::Bytes;

/// Records from this number on are perf's own.
const FIRST_OWN: u32 = 64;
const HEADER_ATTR: u32 = 64;
const TRACING_DATA: u32 = 66;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const HEADER_FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// Type, flags, size.
const HEAD: u64 = 8;

/// What comes next in the file.
pub(super) enum Next {
    RawEvent(RawEvent),
    /// All CPUs' buffers were gone through once.
    RoundOver,
    /// Nothing of interest.
    Passed,
    End,
}

/// Reads records.
pub(super) struct Records<R> {
    reader: R,
    offset: u64,
    end: u64,
    is_big_endian: bool,
    body: Vec<u8>,
    is_cut: bool,
    first_time: FirstTime,
}

struct Head {
    kind: u32,
    misc: u16,
}

impl<R: BufRead> Records<R> {
    /// `reader` stands at the first record.
    pub(super) fn new(reader: R, header: &Header) -> Self {
        Self {
            reader,
            offset: header.data.start,
            end: header.data.end,
            is_big_endian: header.is_big_endian,
            body: Vec::new(),
            is_cut: false,
            first_time: FirstTime::default(),
        }
    }

    /// What a pipe says before the first event of the kernel.
    pub(super) fn read_preamble(&mut self, header: &mut Header) -> Result<(), ImportError> {
        while self.peek()?.is_some_and(|kind| kind >= FIRST_OWN) {
            let begin = self.offset;
            let Some(head) = self.read_record()? else {
                break;
            };
            match head.kind {
                HEADER_ATTR => take_attribute(header, &self.body, begin)?,
                HEADER_FEATURE => {
                    let mut bytes = Bytes::new(&self.body, self.is_big_endian);
                    let feature = bytes.u64().and_then(|f| usize::try_from(f).ok());
                    if let Some(feature) = feature {
                        header.take_feature(feature, bytes.rest(), begin)?;
                    }
                }
                TRACING_DATA => {
                    let size = self.payload()?;
                    let mut section = Vec::new();
                    self.reader.by_ref().take(size).read_to_end(&mut section)?;
                    header.take_tracing_data(&section, self.offset)?;
                    self.offset = self.offset.saturating_add(size);
                }
                AUXTRACE => self.skip_payload()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The next record.
    pub(super) fn next(&mut self, decoder: &mut Decoder) -> Result<Next, ImportError> {
        let begin = self.offset;
        let Some(head) = self.read_record()? else {
            return Ok(Next::End);
        };
        match head.kind {
            FINISHED_ROUND => return Ok(Next::RoundOver),
            COMPRESSED | COMPRESSED2 => {
                let what = "compressed records (perf record -z): record without -z";
                return Err(ImportError::damaged(begin, what));
            }
            TRACING_DATA | AUXTRACE => self.skip_payload()?,
            FIRST_OWN.. => {}
            kind => {
                let body = Bytes::new(&self.body, self.is_big_endian);
                let reported = decoder.decode(kind, head.misc, body);
                let reported = reported.and_then(|reported| {
                    // What perf says of threads that were there has no time.
                    let timed = reported.as_ref().filter(|reported| reported.time_ns > 0);
                    let checked = timed.map(|reported| self.first_time.check(reported.time_ns));
                    checked.transpose().map(|_| reported)
                });
                let reported = reported.map_err(|what| ImportError::damaged(begin, what))?;
                return Ok(reported.map_or(Next::Passed, Next::RawEvent));
            }
        }
        Ok(Next::Passed)
    }

    /// What was cut off.
    pub(super) fn notes(&self) -> Option<String> {
        let what = "The file ends in the middle of a record, at byte";
        self.is_cut.then(|| format!("{what} {}.", self.offset))
    }

    /// Reads a record into `body`; `None` at the end.
    fn read_record(&mut self) -> Result<Option<Head>, ImportError> {
        if self.offset >= self.end {
            return Ok(None);
        }
        let mut head = [0; 8];
        if !fill(&mut self.reader, &mut head)? {
            self.is_cut = true;
            return Ok(None);
        }
        let mut bytes = Bytes::new(&head, self.is_big_endian);
        let fields = (bytes.u32(), bytes.u16(), bytes.u16());
        let (Some(kind), Some(misc), Some(size)) = fields else {
            return Ok(None);
        };
        let Some(size) = u64::from(size).checked_sub(HEAD) else {
            let what = format!("a record of type {kind} with {size} bytes");
            return Err(ImportError::damaged(self.offset, what));
        };
        self.body.resize(usize::try_from(size).unwrap_or(0), 0);
        if !fill(&mut self.reader, &mut self.body)? {
            self.is_cut = true;
            return Ok(None);
        }
        self.offset += HEAD + size;
        Ok(Some(Head { kind, misc }))
    }

    /// The type of the next record.
    fn peek(&mut self) -> Result<Option<u32>, ImportError> {
        let bytes = self.reader.fill_buf()?;
        Ok(Bytes::new(bytes, self.is_big_endian).u32())
    }

    /// Bytes that follow the record just read without being part of it.
    fn payload(&self) -> Result<u64, ImportError> {
        // Of tracing data they are counted in four bytes, of AUX in eight.
        let mut bytes = Bytes::new(&self.body, self.is_big_endian);
        let size = match self.body.len() {
            0..12 => bytes.u32().map(u64::from),
            _ => bytes.u64(),
        };
        size.ok_or_else(|| ImportError::damaged(self.offset, "a record without its length"))
    }

    fn skip_payload(&mut self) -> Result<(), ImportError> {
        let size = self.payload()?;
        let skipped = io::copy(&mut self.reader.by_ref().take(size), &mut io::sink())?;
        self.is_cut |= skipped < size;
        self.offset = self.offset.saturating_add(size);
        Ok(())
    }
}

/// An attribute in a pipe, its ids behind it.
fn take_attribute(header: &mut Header, body: &[u8], begin: u64) -> Result<(), ImportError> {
    let is_big_endian = header.is_big_endian;
    let mut bytes = Bytes::new(body, is_big_endian);
    let mut size = bytes;
    let size = size.skip(4).and_then(|()| size.u32());
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size >= LEAST_ATTRIBUTE);
    let raw = size.and_then(|size| bytes.take(size));
    let is_bounded = header.attributes.len() < 1 << 14;
    let taken = raw.filter(|_| is_bounded).and_then(|raw| {
        let raw = Bytes::new(raw, is_big_endian);
        header.attributes.add(raw, is_big_endian)
    });
    taken.ok_or_else(|| ImportError::damaged(begin, "the description of an event is cut off"))?;
    header.take_ids(bytes.rest());
    Ok(())
}

/// Fills a buffer; `false` where the file ends before.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
