//! Reads numbers from bytes, in either byte order. Reading beyond the end returns `None`.

/// Which byte of a number comes first.
pub trait ByteOrder: Copy {
    /// Does the most significant byte come first?
    fn is_big_endian(self) -> bool;
}

/// This machine's byte order, known to the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native;

impl ByteOrder for Native {
    fn is_big_endian(self) -> bool {
        cfg!(target_endian = "big")
    }
}

/// The byte order of a file: true if it is big-endian.
impl ByteOrder for bool {
    fn is_big_endian(self) -> bool {
        self
    }
}

/// Bytes that are read from the start.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a, O = bool> {
    rest: &'a [u8],
    order: O,
}

/// Defines methods that read a number of these types.
macro_rules! number {
    ($($name:ident)*) => {$(
        /// Reads the next number of this type.
        #[inline]
        pub fn $name(&mut self) -> Option<$name> {
            let (bytes, rest) = self.rest.split_first_chunk()?;
            self.rest = rest;
            Some(match self.order.is_big_endian() {
                true => $name::from_be_bytes(*bytes),
                false => $name::from_le_bytes(*bytes),
            })
        }
    )*};
}

impl<'a, O: ByteOrder> Bytes<'a, O> {
    /// Reads these bytes from the start.
    pub const fn new(rest: &'a [u8], order: O) -> Self {
        Self { rest, order }
    }

    /// The bytes that are not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    number!(u8 u16 u32 i32 u64);

    /// Reads an unsigned number of 1, 2, 4 or 8 bytes.
    pub fn number(&mut self, count: usize) -> Option<u64> {
        match count {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => None,
        }
    }

    /// The bytes before the next zero byte, which remain unread.
    pub fn text(&self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        self.rest.get(..end)
    }
}
