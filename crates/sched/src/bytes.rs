//! Numbers out of bytes, in either byte order. It never reads beyond what it
//! was given; whoever asks for more gets `None`.

/// Which byte of a number comes first.
pub trait ByteOrder: Copy {
    /// The one that counts most?
    fn is_big_endian(self) -> bool;
}

/// This machine's order: code for it knows no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native;

impl ByteOrder for Native {
    fn is_big_endian(self) -> bool {
        cfg!(target_endian = "big")
    }
}

/// A file's order: is it big-endian?
impl ByteOrder for bool {
    fn is_big_endian(self) -> bool {
        self
    }
}

/// The part not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a, O = bool> {
    rest: &'a [u8],
    order: O,
}

/// Reads a number of a type.
macro_rules! number {
    ($($name:ident)*) => {$(
        /// The next number of this type.
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
    /// Reads these from the first on.
    pub const fn new(rest: &'a [u8], order: O) -> Self {
        Self { rest, order }
    }

    /// What is left.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next ones.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Passes some over.
    pub fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    number!(u8 u16 u32 i32 u64);

    /// A whole number of 1, 2, 4 or 8 bytes, without its sign.
    pub fn number(&mut self, count: usize) -> Option<u64> {
        match count {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => None,
        }
    }

    /// The bytes before the next zero byte.
    pub fn text(&self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        self.rest.get(..end)
    }
}
