//! The header of `perf.data`: what was recorded, where the records are, and the sections after them
//! about the machine and its tracepoints.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::attributes::{Attributes, MIN_ATTRIBUTE};
use crate::TracepointFormat;
use crate::import::ImportError;
use crate::perf::Bytes;

/// Limits the bytes read of a section; the tracepoints of a whole kernel take about 10 MB.
const LONGEST_SECTION: u64 = 64 << 20;

/// Limits the ids: one for each event and CPU or thread.
const MAX_IDS: usize = 1 << 20;
const MAX_ATTRIBUTES: u64 = 1 << 14;

/// Bits of the header for existing sections.
const FEATURE_BITS: usize = 256;
const TRACING_DATA: usize = 1;
const HOSTNAME: usize = 3;
const NRCPUS: usize = 7;

/// The header.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) is_big_endian: bool,
    /// `perf record -o -`: everything is a record.
    pub(super) is_pipe: bool,
    /// The place of the records in the file.
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
    /// Possible CPUs, online CPUs.
    pub(super) cpus: Option<(u32, u32)>,
    pub(super) formats: Vec<TracepointFormat>,
}

impl Header {
    pub(super) fn read(reader: &mut (impl Read + Seek)) -> Result<Self, ImportError> {
        let length = reader.seek(SeekFrom::End(0))?;
        let start = read_at(reader, 0..104)?;
        let is_big_endian = start.starts_with(b"2");
        let mut bytes = Bytes::new(&start, is_big_endian);
        let short = || report_cut(length, "its header is 104 bytes long");
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
            header.take_layout(&layout, length)?;
            header.read_attributes(reader, &layout)?;
            header.read_features(reader, &layout, length)?;
        }
        Ok(header)
    }

    fn take_layout(&mut self, layout: &Layout, length: u64) -> Result<(), ImportError> {
        let data = &layout.data;
        if data.start < 104 || data.start > length {
            let what = format!(
                "records are said to begin at byte {}; the file has {length}",
                data.start
            );
            return Err(ImportError::damaged_error(40, what));
        }
        self.data = data.start..data.end.min(length);
        if data.is_empty() {
            // perf writes the length at its end.
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
        let least = MIN_ATTRIBUTE as u64 + 16;
        if !(least..=4096).contains(&each) || end < start {
            let what = format!("event descriptions of {each} bytes");
            return Err(ImportError::damaged_error(16, what));
        }
        let count = (end - start) / each;
        if count > MAX_ATTRIBUTES {
            return Err(ImportError::damaged_error(32, format!("{count} events")));
        }
        for at in (0..count).map(|index| start.saturating_add(index * each)) {
            let raw = read_at(reader, at..at.saturating_add(each))?;
            let bytes = Bytes::new(&raw, self.is_big_endian);
            let mut ids = bytes;
            let mut place = || {
                ids.skip(usize::try_from(each).ok()? - 16)?;
                Some((ids.u64()?, ids.u64()?))
            };
            let short = || ImportError::damaged_error(at, "the description of an event is cut off");
            let (ids_at, ids_size) = place().ok_or_else(short)?;
            let taken = self.attributes.add(bytes, self.is_big_endian);
            taken.ok_or_else(short)?;
            let ids_end = ids_at.saturating_add(ids_size.min((MAX_IDS * 8) as u64));
            self.take_ids(&read_at(reader, ids_at..ids_end)?);
        }
        Ok(())
    }

    /// Takes the ids of the last attribute.
    pub(super) fn take_ids(&mut self, raw: &[u8]) {
        let mut ids = Bytes::new(raw, self.is_big_endian);
        while let Some(id) = ids.u64() {
            if self.attributes.ids() < MAX_IDS {
                self.attributes.add_id(id);
            }
        }
    }

    /// Sections after the records; a truncated file has lost them.
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
            let end = start.saturating_add(size.min(LONGEST_SECTION));
            if end > length {
                self.is_cut = true;
                continue;
            }
            if WANTED.contains(&feature) {
                let section = read_at(reader, start..end)?;
                self.take_feature(feature, &section, start)?;
            }
        }
        Ok(())
    }

    /// Reads a section; a damaged one that is not needed is skipped.
    pub(super) fn take_feature(
        &mut self,
        feature: usize,
        section: &[u8],
        start: u64,
    ) -> Result<(), ImportError> {
        let mut bytes = Bytes::new(section, self.is_big_endian);
        match feature {
            TRACING_DATA => self.take_tracing_data(section, start)?,
            HOSTNAME => self.features.host = text(&mut bytes),
            NRCPUS => {
                let both = bytes.u32().zip(bytes.u32());
                self.features.cpus = both.filter(|(could, online)| online <= could);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn take_tracing_data(
        &mut self,
        section: &[u8],
        start: u64,
    ) -> Result<(), ImportError> {
        self.features.formats = tracepoints(section, start)?;
        Ok(())
    }
}

const WANTED: [usize; 3] = [TRACING_DATA, HOSTNAME, NRCPUS];

/// Places in a file, from its header.
struct Layout {
    attribute_size: u64,
    attributes: Range<u64>,
    data: Range<u64>,
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

/// Systems with relevant tracepoints.
const SYSTEMS: [&str; 1] = ["sched"];

/// Tracepoints of those, from the section that `perf` shares with `trace-cmd`
/// (`tools/perf/util/trace-event-read.c`).
fn tracepoints(section: &[u8], start: u64) -> Result<Vec<TracepointFormat>, ImportError> {
    let damaged =
        || ImportError::damaged_error(start, "the descriptions of tracepoints are damaged");
    let mut found = Vec::new();
    let is_big_endian = read_preface(section).ok_or_else(damaged)?;
    let mut bytes = Bytes::new(section, is_big_endian.1);
    bytes.skip(is_big_endian.0).ok_or_else(damaged)?;
    let systems = bytes.u32().ok_or_else(damaged)?;
    for _ in 0..systems {
        let system = word(&mut bytes).ok_or_else(damaged)?;
        let count = bytes.u32().ok_or_else(damaged)?;
        for _ in 0..count {
            let text = block(&mut bytes).ok_or_else(damaged)?;
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

/// Everything before the systems: its length, and the byte order.
fn read_preface(section: &[u8]) -> Option<(usize, bool)> {
    let mut bytes = Bytes::new(section, false);
    (bytes.take(10)? == b"\x17\x08\x44tracing").then_some(())?;
    word(&mut bytes)?;
    let is_big_endian = bytes.number(1)? == 1;
    let mut bytes = Bytes::new(bytes.rest(), is_big_endian);
    bytes.skip(5)?;
    for name in [&b"header_page"[..], b"header_event"] {
        (word(&mut bytes)? == name).then_some(())?;
        block(&mut bytes)?;
    }
    let own = bytes.u32()?;
    for _ in 0..own {
        block(&mut bytes)?;
    }
    Some((section.len() - bytes.rest().len(), is_big_endian))
}

/// Bytes with their length before them.
fn block<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let size = usize::try_from(bytes.u64()?).ok()?;
    bytes.take(size)
}

/// Bytes up to a 0.
fn word<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let end = bytes.rest().iter().position(|byte| *byte == 0)?;
    let word = bytes.take(end)?;
    bytes.skip(1)?;
    Some(word)
}

/// A string of the header: its length, then bytes padded with 0.
fn text(bytes: &mut Bytes<'_>) -> Option<String> {
    let size = usize::try_from(bytes.u32()?).ok()?;
    let padded = bytes.take(size)?;
    let end = padded.iter().position(|byte| *byte == 0);
    let text = &padded[..end.unwrap_or(padded.len())];
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The bytes at a place in the file, fewer if it ends before.
fn read_at(reader: &mut (impl Read + Seek), place: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.seek(SeekFrom::Start(place.start))?;
    let size = place.end.saturating_sub(place.start);
    reader.by_ref().take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn report_cut(length: u64, what: &str) -> ImportError {
    ImportError::damaged_error(length, format!("the file ends here; {what}"))
}
