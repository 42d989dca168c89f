//! Reads the records of `perf.data`, including perf's own between the kernel's.

use std::io::{self, BufRead, ErrorKind, Read};

use super::attributes::MIN_ATTRIBUTE_BYTES;
use super::decode::Decoder;
use super::header::Header;
use super::unpack::Unpacker;
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

/// Bytes of a record's type, flags and size.
const HEAD_BYTES: usize = 8;

pub(super) enum NextRecord {
    Event(RawEvent),
    /// perf had read the buffers of all CPUs once.
    EndOfRound,
    /// A record that does not matter.
    Skipped,
    EndOfFile,
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
    unpacker: Unpacker,
}

struct Head {
    kind: u32,
    misc: u16,
    /// Bytes after the head.
    size: usize,
}

impl<R: BufRead> Records<R> {
    /// `reader` must be at the first record.
    pub(super) fn new(reader: R, header: &Header) -> Self {
        Self {
            reader,
            offset: header.data.start,
            end: header.data.end,
            is_big_endian: header.is_big_endian,
            body: Vec::new(),
            is_cut: false,
            first_time: FirstTime::default(),
            unpacker: Unpacker::new(),
        }
    }

    /// Reads perf's own records before the kernel's first one in a pipe: attributes and features.
    pub(super) fn read_preamble(&mut self, header: &mut Header) -> Result<(), ImportError> {
        while self.peek_kind()?.is_some_and(|kind| kind >= FIRST_OWN) {
            let begin = self.offset;
            let Some(head) = self.read_record()? else {
                break;
            };
            match head.kind {
                HEADER_ATTR => add_attribute(header, &self.body, begin)?,
                HEADER_FEATURE => {
                    let mut bytes = Bytes::new(&self.body, self.is_big_endian);
                    let feature = bytes.u64().and_then(|f| usize::try_from(f).ok());
                    if let Some(feature) = feature {
                        header.decode_feature(feature, bytes.rest(), begin)?;
                    }
                }
                TRACING_DATA => {
                    let size = self.payload_bytes()?;
                    let mut section = Vec::new();
                    self.reader.by_ref().take(size).read_to_end(&mut section)?;
                    header.decode_tracing_data(&section, self.offset)?;
                    self.offset = self.offset.saturating_add(size);
                }
                AUXTRACE => self.skip_payload()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the next record.
    pub(super) fn next(&mut self, decoder: &mut Decoder) -> Result<NextRecord, ImportError> {
        if let Some(head) = self.unpack_record()? {
            return self.decode(&head, self.offset, decoder);
        }
        let begin = self.offset;
        let Some(head) = self.read_record()? else {
            return Ok(match self.unpacker.finish() {
                true => NextRecord::Skipped,
                false => NextRecord::EndOfFile,
            });
        };
        match head.kind {
            FINISHED_ROUND if !self.unpacker.has_begun() => return Ok(NextRecord::EndOfRound),
            COMPRESSED | COMPRESSED2 => {
                let mut packed = Bytes::new(&self.body, self.is_big_endian);
                let packed = match head.kind {
                    COMPRESSED => Some(packed.rest()),
                    // The length comes first, since the bytes are padded.
                    _ => packed
                        .u64()
                        .and_then(|size| packed.take(usize::try_from(size).ok()?)),
                };
                let packed = packed.ok_or_else(|| "a compressed record is cut off".to_owned());
                let pushed = packed.and_then(|packed| self.unpacker.push(packed));
                pushed.map_err(|what| ImportError::damaged(begin, what))?;
            }
            TRACING_DATA | AUXTRACE => self.skip_payload()?,
            FIRST_OWN.. => {}
            _ => return self.decode(&head, begin, decoder),
        }
        Ok(NextRecord::Skipped)
    }

    /// Decodes the record in `body`.
    fn decode(
        &mut self,
        head: &Head,
        begin: u64,
        decoder: &mut Decoder,
    ) -> Result<NextRecord, ImportError> {
        let body = Bytes::new(&self.body, self.is_big_endian);
        let raw = decoder.decode(head.kind, head.misc, body);
        let raw = raw.and_then(|raw| {
            // Records of existing threads have no time.
            let timed = raw.as_ref().filter(|raw| raw.time_ns > 0);
            let checked = timed.map(|raw| self.first_time.check(raw.time_ns));
            checked.transpose().map(|_| raw)
        });
        let raw = raw.map_err(|what| ImportError::damaged(begin, what))?;
        Ok(raw.map_or(NextRecord::Skipped, NextRecord::Event))
    }

    /// Moves a record that was compressed into `body`; `None` if none is complete.
    fn unpack_record(&mut self) -> Result<Option<Head>, ImportError> {
        let Some(bytes) = self.unpacker.peek(HEAD_BYTES) else {
            return Ok(None);
        };
        let head = read_head(bytes, self.is_big_endian);
        let head = head.map_err(|what| ImportError::damaged(self.offset, what))?;
        let Some(bytes) = self.unpacker.peek(HEAD_BYTES + head.size) else {
            return Ok(None);
        };
        self.body.clear();
        self.body.extend_from_slice(&bytes[HEAD_BYTES..]);
        self.unpacker.skip(HEAD_BYTES + head.size);
        Ok(Some(head))
    }

    /// A note if the file is truncated.
    pub(super) fn notes(&self) -> Option<String> {
        self.is_cut.then(|| {
            format!(
                "The file ends in the middle of a record, at byte {}.",
                self.offset
            )
        })
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
        let head = read_head(&head, self.is_big_endian);
        let head = head.map_err(|what| ImportError::damaged(self.offset, what))?;
        self.body.resize(head.size, 0);
        if !fill(&mut self.reader, &mut self.body)? {
            self.is_cut = true;
            return Ok(None);
        }
        self.offset += (HEAD_BYTES + head.size) as u64;
        Ok(Some(head))
    }

    /// The type of the next record.
    fn peek_kind(&mut self) -> Result<Option<u32>, ImportError> {
        let bytes = self.reader.fill_buf()?;
        Ok(Bytes::new(bytes, self.is_big_endian).u32())
    }

    /// Number of bytes that follow the record just read without being part of it.
    fn payload_bytes(&self) -> Result<u64, ImportError> {
        // Tracing data has a four-byte length, AUX an eight-byte one.
        let mut bytes = Bytes::new(&self.body, self.is_big_endian);
        let size = match self.body.len() {
            0..12 => bytes.u32().map(u64::from),
            _ => bytes.u64(),
        };
        size.ok_or_else(|| ImportError::damaged(self.offset, "a record without its length"))
    }

    fn skip_payload(&mut self) -> Result<(), ImportError> {
        let size = self.payload_bytes()?;
        let skipped = io::copy(&mut self.reader.by_ref().take(size), &mut io::sink())?;
        self.is_cut |= skipped < size;
        self.offset = self.offset.saturating_add(size);
        Ok(())
    }
}

fn read_head(bytes: &[u8], is_big_endian: bool) -> Result<Head, String> {
    let mut bytes = Bytes::new(bytes, is_big_endian);
    let fields = (bytes.u32(), bytes.u16(), bytes.u16());
    let (Some(kind), Some(misc), Some(size)) = fields else {
        return Err("a record without its head".to_owned());
    };
    let rest = usize::from(size).checked_sub(HEAD_BYTES);
    let size = rest.ok_or_else(|| format!("a record of type {kind} with {size} bytes"))?;
    Ok(Head { kind, misc, size })
}

/// Adds an attribute in a pipe, which its ids follow.
fn add_attribute(header: &mut Header, body: &[u8], begin: u64) -> Result<(), ImportError> {
    let is_big_endian = header.is_big_endian;
    let mut bytes = Bytes::new(body, is_big_endian);
    let mut size = bytes;
    let size = size.skip(4).and_then(|()| size.u32());
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size >= MIN_ATTRIBUTE_BYTES);
    let raw = size.and_then(|size| bytes.take(size));
    let is_bounded = header.attributes.len() < 1 << 14;
    let added = raw.filter(|_| is_bounded).and_then(|raw| {
        let raw = Bytes::new(raw, is_big_endian);
        header.attributes.add(raw, is_big_endian)
    });
    added.ok_or_else(|| ImportError::damaged(begin, "the description of an event is cut off"))?;
    header.add_ids(bytes.rest());
    Ok(())
}

/// Fills a buffer; false if the file ends before.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
