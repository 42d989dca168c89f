//! The parts of the Protocol Buffers encoding that a trace needs
//! (<https://protobuf.dev/programming-guides/encoding/>).

use pinwise_sched::put_varints;

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// Wire types.
const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

impl Message {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn put_number(&mut self, field: u32, value: u64) {
        self.put_key(field, VARINT);
        self.put_varint(value);
    }

    /// Writes an `int32` or `int64`; a negative number takes ten bytes.
    pub(super) fn put_signed(&mut self, field: u32, value: i64) {
        self.put_number(field, value.cast_unsigned());
    }

    pub(super) fn put_text(&mut self, field: u32, value: &str) {
        self.put_bytes(field, value.as_bytes());
    }

    pub(super) fn put_message(&mut self, field: u32, inside: &Self) {
        self.put_bytes(field, &inside.bytes);
    }

    fn put_bytes(&mut self, field: u32, value: &[u8]) {
        self.put_key(field, LENGTH_DELIMITED);
        self.put_varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    fn put_key(&mut self, field: u32, wire: u32) {
        self.put_varint(u64::from(field << 3 | wire));
    }

    fn put_varint(&mut self, value: u64) {
        put_varints(&mut self.bytes, [value]);
    }
}
