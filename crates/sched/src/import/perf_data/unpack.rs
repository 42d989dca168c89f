//! Unpacks compressed records (`perf record -z`): pieces of one zstd stream of kernel records.
//!
//! A few bytes of a damaged file could unpack to gigabytes, so the size of one record is limited.
//! The decoder holds bytes to which later pieces can refer (half a megabyte at level 1) until the
//! file ends, so records come later than perf's marks of rounds; these are then ignored.

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Most bytes of one unpacked record; perf fills one from a buffer of half a megabyte, or of the
/// size set by --mmap-pages.
const MAX_BYTES: usize = 64 << 20;
/// Largest accepted window of the stream, bytes: that of zstd's level 22.
const MAX_WINDOW: u64 = 1 << 27;
/// An empty last block of a stream, and space for a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Unpacks compressed records.
pub(super) struct Unpacker {
    decoder: FrameDecoder,
    is_in_stream: bool,
    has_begun: bool,
    bytes: Vec<u8>,
    /// Number of these bytes that were used.
    used: usize,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self {
            decoder,
            is_in_stream: false,
            has_begun: false,
            bytes: Vec::new(),
            used: 0,
        }
    }

    /// Has there been a compressed record?
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Unpacks the content of a compressed record.
    pub(super) fn push(&mut self, mut packed: &[u8]) -> Result<(), String> {
        let failed = |error: FrameDecoderError| format!("compressed records: {error}");
        self.has_begun = true;
        self.bytes.drain(..self.used);
        self.used = 0;
        while !packed.is_empty() {
            if !self.is_in_stream {
                self.decoder.reset(&mut packed).map_err(failed)?;
                self.is_in_stream = true;
            }
            let one = BlockDecodingStrategy::UptoBlocks(1);
            let is_over = self.decoder.decode_blocks(&mut packed, one);
            self.is_in_stream = !is_over.map_err(failed)?;
            self.bytes
                .extend(self.decoder.collect().unwrap_or_default());
            if self.bytes.len() > MAX_BYTES {
                return Err(format!(
                    "a compressed record that holds more than {} MiB",
                    MAX_BYTES >> 20
                ));
            }
        }
        Ok(())
    }

    /// Unpacks the bytes that the decoder still holds when the file ends; false if it holds none.
    pub(super) fn finish(&mut self) -> bool {
        if !std::mem::take(&mut self.is_in_stream) {
            return false;
        }
        // perf never writes a checksum, so none is verified.
        let all = BlockDecodingStrategy::All;
        let _ = self.decoder.decode_blocks(&LAST_BLOCK[..], all);
        self.bytes
            .extend(self.decoder.collect().unwrap_or_default());
        true
    }

    /// The next `length` bytes, if there are so many; they remain.
    pub(super) fn peek(&self, length: usize) -> Option<&[u8]> {
        self.bytes.get(self.used..)?.get(..length)
    }

    pub(super) fn skip(&mut self, length: usize) {
        self.used += length;
    }
}
