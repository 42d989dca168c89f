//! Reads the header of `perf.data`: the recorded events, the position of the records, and the
//! sections after them about the machine and its tracepoints.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::attributes::{Attributes, MIN_ATTRIBUTE_BYTES};
use crate::TracepointFormat;
use crate::import::ImportError;
use crate::perf::Bytes;

/// Limits the bytes read of a section; the tracepoints of a whole kernel take about 10 MB.
const MAX_SECTION_BYTES: u64 = 64 << 20;

/// Limits the ids of events: there is one for each event and CPU or thread.
const MAX_IDS: usize = 1 << 20;
/// Limits the recorded events.
const MAX_ATTRIBUTES: u64 = 1 << 14;

/// Number of the header's bits, one for each possible section, and some of these bits.
const FEATURE_BITS: usize = 256;
const TRACING_DATA: usize = 1;
const HOSTNAME: usize = 3;
const NRCPUS: usize = 7;

#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) is_big_endian: bool,
    /// Written by `perf record -o -`: the attributes and features are records, too.
    pub(super) is_pipe: bool,
    /// The position of the records in the file.
    pub(super) data: Range<u64>,
    /// The file ends before it should.
    pub(super) is_cut: bool,
    pub(super) attributes: Attributes,
    pub(super) features: Features,
    pub(super) notes: Vec<String>,
}

/// Further facts in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Features {
    pub(super) host: Option<String>,
    /// Numbers of possible and online CPUs.
    pub(super) cpus: Option<(u32, u32)>,
    pub(super) formats: Vec<TracepointFormat>,
}

impl Header {
    pub(super) fn read(reader: &mut (impl Read + Seek)) -> Result<Self, ImportError> {
        let length = reader.seek(SeekFrom::End(0))?;
        let start = read_at(reader, 0..104)?;
        let is_big_endian = start.starts_with(b"2");
        let mut bytes = Bytes::new(&start, is_big_endian);
        let short = || cut_error(length, "its header is 104 bytes long");
        bytes.skip(8).ok_or_else(short)?;
        let size = bytes.u64().ok_or_else(short)?;
        let mut header = Self {
            is_big_endian,
            is_pipe: size == 16,
            data: 16..length,
            is_cut: false,
            attributes: Attributes::default(),
            features: Features::default(),
            notes: Vec::new(),
        };
        if !header.is_pipe {
            let layout = Layout::read(&mut bytes).ok_or_else(short)?;
            header.set_data(&layout, length)?;
            header.read_attributes(reader, &layout)?;
            header.read_features(reader, &layout, length)?;
        }
        Ok(header)
    }

    /// Sets the position of the records; notes if the file is cut off.
    fn set_data(&mut self, layout: &Layout, length: u64) -> Result<(), ImportError> {
        let data = &layout.data;
        if data.start < 104 || data.start > length {
            let what = format!(
                "records are said to begin at byte {}; the file has {length}",
                data.start
            );
            return Err(ImportError::damaged(40, what));
        }
        self.data = data.start..data.end.min(length);
        if data.is_empty() {
            // perf writes the length of the records when it ends.
            self.data.end = length;
            self.is_cut = true;
            self.notes.push(
                "perf record did not end properly; the file is read as far as possible.".to_owned(),
            );
        } else if data.end > length {
            self.is_cut = true;
            self.notes.push(format!(
                "The file is cut off: it has {length} of at least {} bytes.",
                data.end
            ));
        }
        Ok(())
    }

    fn read_attributes(
        &mut self,
        reader: &mut (impl Read + Seek),
        layout: &Layout,
    ) -> Result<(), ImportError> {
        let Range { start, end } = layout.attributes;
        let each = layout.attribute_size;
        let least = MIN_ATTRIBUTE_BYTES as u64 + 16;
        if !(least..=4096).contains(&each) || end < start {
            let what = format!("event descriptions of {each} bytes");
            return Err(ImportError::damaged(16, what));
        }
        let count = (end - start) / each;
        if count > MAX_ATTRIBUTES {
            return Err(ImportError::damaged(32, format!("{count} events")));
        }
        for at in (0..count).map(|index| start.saturating_add(index * each)) {
            let raw = read_at(reader, at..at.saturating_add(each))?;
            let bytes = Bytes::new(&raw, self.is_big_endian);
            let mut ids = bytes;
            let mut read_position = || {
                ids.skip(usize::try_from(each).ok()? - 16)?;
                Some((ids.u64()?, ids.u64()?))
            };
            let short = || ImportError::damaged(at, "the description of an event is cut off");
            let (ids_at, ids_size) = read_position().ok_or_else(short)?;
            let added = self.attributes.add(bytes, self.is_big_endian);
            added.ok_or_else(short)?;
            let ids_end = ids_at.saturating_add(ids_size.min((MAX_IDS * 8) as u64));
            self.add_ids(&read_at(reader, ids_at..ids_end)?);
        }
        Ok(())
    }

    /// Adds the ids of the last attribute.
    pub(super) fn add_ids(&mut self, raw: &[u8]) {
        let mut ids = Bytes::new(raw, self.is_big_endian);
        while let Some(id) = ids.u64() {
            if self.attributes.ids() < MAX_IDS {
                self.attributes.add_id(id);
            }
        }
    }

    /// Reads the sections after the records, as far as a truncated file has them.
    fn read_features(
        &mut self,
        reader: &mut (impl Read + Seek),
        layout: &Layout,
        length: u64,
    ) -> Result<(), ImportError> {
        let mut at = layout.data.end;
        if layout.data.is_empty() {
            return Ok(());
        }
        for feature in layout.features() {
            let entry = read_at(reader, at..at.saturating_add(16))?;
            at = at.saturating_add(16);
            let mut entry = Bytes::new(&entry, self.is_big_endian);
            let (Some(start), Some(size)) = (entry.u64(), entry.u64()) else {
                self.is_cut = true;
                break;
            };
            let end = start.saturating_add(size.min(MAX_SECTION_BYTES));
            if end > length {
                self.is_cut = true;
                continue;
            }
            if WANTED.contains(&feature) {
                let section = read_at(reader, start..end)?;
                self.decode_feature(feature, &section, start)?;
            }
        }
        Ok(())
    }

    /// Decodes a section; a damaged one is skipped, except the tracepoints.
    pub(super) fn decode_feature(
        &mut self,
        feature: usize,
        section: &[u8],
        start: u64,
    ) -> Result<(), ImportError> {
        let mut bytes = Bytes::new(section, self.is_big_endian);
        match feature {
            TRACING_DATA => self.decode_tracing_data(section, start)?,
            HOSTNAME => self.features.host = read_text(&mut bytes),
            NRCPUS => {
                let both = bytes.u32().zip(bytes.u32());
                self.features.cpus = both.filter(|(possible, online)| online <= possible);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn decode_tracing_data(
        &mut self,
        section: &[u8],
        start: u64,
    ) -> Result<(), ImportError> {
        self.features.formats = decode_tracepoints(section, start)?;
        Ok(())
    }
}

const WANTED: [usize; 3] = [TRACING_DATA, HOSTNAME, NRCPUS];

/// Positions in a file, from its header.
struct Layout {
    attribute_size: u64,
    attributes: Range<u64>,
    data: Range<u64>,
    /// See [`FEATURE_BITS`].
    bits: [u64; FEATURE_BITS / 64],
}

impl Layout {
    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let attribute_size = bytes.u64()?;
        let mut section = || {
            let (start, size) = (bytes.u64()?, bytes.u64()?);
            Some(start..start.saturating_add(size))
        };
        let (attributes, data, _types) = (section()?, section()?, section()?);
        let mut bits = [0; FEATURE_BITS / 64];
        for word in &mut bits {
            *word = bytes.u64()?;
        }
        Some(Self {
            attribute_size,
            attributes,
            data,
            bits,
        })
    }

    fn features(&self) -> impl Iterator<Item = usize> {
        (0..FEATURE_BITS).filter(|bit| self.bits[bit / 64] >> (bit % 64) & 1 == 1)
    }
}

/// Folders of the tracepoints that are used.
const SYSTEMS: [&str; 1] = ["sched"];

/// Decodes the tracepoints of [`SYSTEMS`] from the section that `perf` shares with `trace-cmd`
/// (`tools/perf/util/trace-event-read.c`).
fn decode_tracepoints(section: &[u8], start: u64) -> Result<Vec<TracepointFormat>, ImportError> {
    let damaged = || ImportError::damaged(start, "the descriptions of tracepoints are damaged");
    let mut found = Vec::new();
    let mut bytes = skip_preface(section).ok_or_else(damaged)?;
    let systems = bytes.u32().ok_or_else(damaged)?;
    for _ in 0..systems {
        let system = read_string(&mut bytes).ok_or_else(damaged)?;
        let count = bytes.u32().ok_or_else(damaged)?;
        for _ in 0..count {
            let text = read_block(&mut bytes).ok_or_else(damaged)?;
            if !SYSTEMS.iter().any(|wanted| wanted.as_bytes() == system) {
                continue;
            }
            let format = TracepointFormat::parse(&String::from_utf8_lossy(text));
            found.push(format.map_err(|error| ImportError::Format {
                event: "sched".to_owned(),
                what: error.to_string(),
            })?);
        }
    }
    Ok(found)
}

/// The section from the systems on, in its byte order.
fn skip_preface(section: &[u8]) -> Option<Bytes<'_>> {
    let mut bytes = Bytes::new(section, false);
    (bytes.take(10)? == b"\x17\x08\x44tracing").then_some(())?;
    read_string(&mut bytes)?;
    let is_big_endian = bytes.number(1)? == 1;
    let mut bytes = Bytes::new(bytes.rest(), is_big_endian);
    bytes.skip(5)?;
    for name in [&b"header_page"[..], b"header_event"] {
        (read_string(&mut bytes)? == name).then_some(())?;
        read_block(&mut bytes)?;
    }
    let own = bytes.u32()?;
    for _ in 0..own {
        read_block(&mut bytes)?;
    }
    Some(bytes)
}

/// Reads a length and that many bytes.
fn read_block<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let size = usize::try_from(bytes.u64()?).ok()?;
    bytes.take(size)
}

/// Reads the bytes up to a zero byte.
fn read_string<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let end = bytes.rest().iter().position(|byte| *byte == 0)?;
    let word = bytes.take(end)?;
    bytes.skip(1)?;
    Some(word)
}

/// Reads a string of a section: its length, then bytes padded with zeros.
fn read_text(bytes: &mut Bytes<'_>) -> Option<String> {
    let size = usize::try_from(bytes.u32()?).ok()?;
    let padded = bytes.take(size)?;
    let end = padded.iter().position(|byte| *byte == 0);
    let text = &padded[..end.unwrap_or(padded.len())];
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Reads a range of the file; fewer bytes if the file ends before.
fn read_at(reader: &mut (impl Read + Seek), range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.seek(SeekFrom::Start(range.start))?;
    let size = range.end.saturating_sub(range.start);
    reader.by_ref().take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn cut_error(length: u64, what: &str) -> ImportError {
    ImportError::damaged(length, format!("the file ends here; {what}"))
}
