//! What all records of perf's buffers have in common: a header, then numbers in
//! the machine's own byte order. Nothing of the bytes is believed that was not
//! looked at.

/// Bytes of the header that every record begins with.
pub(super) const HEADER: usize = 8;

/// Type, flags and body of the next record, which is taken off; `None` where it
/// makes no sense.
fn cut<'a>(rest: &mut &'a [u8]) -> Option<(u32, u16, &'a [u8])> {
    let mut header = Reader(rest);
    let kind = header.u32()?;
    let flags = header.u16()?;
    let size = usize::from(header.u16()?);
    let body = rest.get(HEADER..size)?;
    *rest = &rest[size..];
    Some((kind, flags, body))
}

/// The next record that matters and its time; where one makes no sense,
/// `damaged` with the time of the one before, and nothing follows. `read` says
/// what a record holds; its outer `None`: it makes no sense, the inner one: it
/// does not matter.
pub(super) fn next<'a, T>(
    rest: &mut &'a [u8],
    last_ns: &mut u64,
    damaged: T,
    read: impl Fn(u32, u16, &'a [u8]) -> Option<Option<(u64, T)>>,
) -> Option<(u64, T)> {
    while !rest.is_empty() {
        match cut(rest).and_then(|(kind, flags, body)| read(kind, flags, body)) {
            Some(Some((time_ns, record))) => {
                *last_ns = time_ns;
                return Some((time_ns, record));
            }
            Some(None) => {}
            None => {
                *rest = &[];
                return Some((*last_ns, damaged));
            }
        }
    }
    None
}

/// Numbers one after the other.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
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
