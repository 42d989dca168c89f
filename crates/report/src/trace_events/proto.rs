//! The few pieces of Protocol Buffers' encoding that a trace needs
//! (<https://protobuf.dev/programming-guides/encoding/>).

use pinwise_sched::put_varints;

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// Wire types.
const VARINT: u32 = 0;
const LENGTH: u32 = 2;

impl Message {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.put_key(field, VARINT);
        self.put_varint(value);
    }

    /// `int32` and `int64`, whose negative numbers take ten bytes.
    pub(super) fn put_signed(&mut self, field: u32, value: i64) {
        self.number(field, value.cast_unsigned());
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.block(field, value.as_bytes());
    }

    pub(super) fn put_message(&mut self, field: u32, inside: &Self) {
        self.block(field, &inside.bytes);
    }

    fn block(&mut self, field: u32, value: &[u8]) {
        self.put_key(field, LENGTH);
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
