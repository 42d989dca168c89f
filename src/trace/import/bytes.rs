//! Numbers out of bytes, in either byte order. It never reads beyond what it
//! was given; whoever asks for more gets `None`.

/// The part not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    is_big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub(super) const fn new(rest: &'a [u8], is_big_endian: bool) -> Self {
        Self {
            rest,
            is_big_endian,
        }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    /// A whole number of 1, 2, 4 or 8 bytes, without its sign.
    pub(super) fn number(&mut self, count: usize) -> Option<u64> {
        if !matches!(count, 1 | 2 | 4 | 8) {
            return None;
        }
        let taken = self.take(count)?;
        let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
        Some(if self.is_big_endian {
            taken.iter().fold(0, add)
        } else {
            taken.iter().rev().fold(0, add)
        })
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        u16::try_from(self.number(2)?).ok()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.number(4)?).ok()
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }
}
