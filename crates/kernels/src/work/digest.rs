//! A digest of bytes: fast compared with copying them, and not secure against forgery.

use super::bind_digest;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A digest of bytes in order, and of the ends of pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Digest {
    /// Digests a single piece.
    pub(super) fn from_bytes(bytes: &[u8]) -> u64 {
        let mut digest = Self::default();
        digest.add(bytes);
        digest.value()
    }

    /// The digest so far.
    pub(super) const fn value(&self) -> u64 {
        self.0
    }

    /// Adds a piece, four words at a time.
    pub(super) fn add(&mut self, piece: &[u8]) {
        let mut lanes = [self.0, 1, 2, 3];
        let mut words = piece.chunks_exact(32);
        for four in &mut words {
            for (lane, word) in lanes.iter_mut().zip(four.chunks_exact(8)) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(word);
                *lane = (lane.rotate_left(29) ^ u64::from_le_bytes(bytes)).wrapping_mul(FACTOR);
            }
        }
        for (at, byte) in words.remainder().iter().enumerate() {
            let lane = &mut lanes[at % 4];
            *lane = (lane.rotate_left(29) ^ u64::from(*byte) ^ 0x100).wrapping_mul(FACTOR);
        }
        self.0 = lanes
            .into_iter()
            .fold(piece.len() as u64, |digest, lane| bind_digest(lane, digest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_every_byte_and_on_the_pieces() {
        let text: Vec<u8> = (0..100).collect();
        let whole = Digest::from_bytes(&text);
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 0x80;
            assert_ne!(Digest::from_bytes(&other), whole, "byte {at}");
        }
        assert_ne!(Digest::from_bytes(&text[..99]), whole);
        let mut pieces = Digest::default();
        pieces.add(&text[..50]);
        pieces.add(&text[50..]);
        assert_ne!(pieces.value(), whole);
        let mut swapped = text;
        swapped.swap(0, 32);
        assert_ne!(Digest::from_bytes(&swapped), whole);
    }
}
