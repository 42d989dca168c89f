//! Reads numbers of perf's samples, in the machine's own byte order. Every byte is checked before
//! it is used.

#[cfg(test)]
pub(super) use pinwise_sched::perf::HEADER;
pub(super) use pinwise_sched::perf::{Decoded, next_record};

/// Reads numbers one after the other.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.bytes().map(i32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }
}

impl<'a> Reader<'a> {
    /// Text that a zero byte ends.
    pub(super) fn text(&self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        Some(&self.0[..end])
    }
}
