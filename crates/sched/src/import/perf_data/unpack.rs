//! Compressed records (`perf record -z`): pieces of one zstd stream of kernel records.
//!
//! A few bytes of a damaged file unpack to gigabytes, so the size of one record is limited. The
//! decoder holds back bytes that later pieces may refer to (half a megabyte at level 1) until the
//! file ends, so records come later than perf's marks of rounds, which are then ignored.

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Limit on one unpacked record; perf fills one from a buffer of half a megabyte unless
/// --mmap-pages asks for more.
const MAX_BYTES: usize = 64 << 20;
/// The largest window, that of level 22.
const LARGEST_WINDOW: u64 = 1 << 27;
/// The last block of a stream, empty, and room for a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Unpacks compressed records.
pub(super) struct Unpacker {
    decoder: FrameDecoder,
    is_in_stream: bool,
    has_begun: bool,
    bytes: Vec<u8>,
    /// How many of these bytes were taken.
    taken: usize,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self {
            decoder,
            is_in_stream: false,
            has_begun: false,
            bytes: Vec::new(),
            taken: 0,
        }
    }

    /// Has there been a compressed record?
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes the content of a compressed record.
    pub(super) fn push(&mut self, mut packed: &[u8]) -> Result<(), String> {
        let failed = |error: FrameDecoderError| format!("compressed records: {error}");
        self.has_begun = true;
        self.bytes.drain(..self.taken);
        self.taken = 0;
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

    /// The file ended: returns the decoder's remaining bytes. False if there are none.
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

    /// The next bytes, if there are that many, without consuming them.
    pub(super) fn peek(&self, length: usize) -> Option<&[u8]> {
        self.bytes.get(self.taken..)?.get(..length)
    }

    /// Takes bytes that were peeked at.
    pub(super) fn take(&mut self, length: usize) {
        self.taken += length;
    }
}
