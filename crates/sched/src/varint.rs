//! Encodes whole numbers in as few bytes as they need, as unsigned LEB128: seven bits a byte, the
//! lowest first; the top bit is set on all bytes but the last.

/// Bytes of the longest encoding.
const MAX_BYTES: usize = 10;

/// Appends the encodings of numbers.
pub fn put_varints<const N: usize>(bytes: &mut Vec<u8>, numbers: [u64; N]) {
    for mut number in numbers {
        let mut encoded = [0; MAX_BYTES];
        let mut at = 0;
        while number >= 0x80 {
            encoded[at] = number.to_le_bytes()[0] | 0x80;
            number >>= 7;
            at += 1;
        }
        encoded[at] = number.to_le_bytes()[0];
        bytes.extend_from_slice(&encoded[..=at]);
    }
}

/// Removes the next number from the front; `None` if it is incomplete or exceeds 64 bits.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for at in 0..MAX_BYTES {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        let shifted = part << (7 * at);
        if shifted >> (7 * at) != part {
            return None;
        }
        number |= shifted;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(numbers in prop::collection::vec(any::<u64>(), 0..40)) {
            let mut bytes = Vec::new();
            for &number in &numbers {
                put_varints(&mut bytes, [number, number >> 40]);
            }
            let mut rest = &bytes[..];
            for &number in &numbers {
                prop_assert_eq!(take_varint(&mut rest), Some(number));
                prop_assert_eq!(take_varint(&mut rest), Some(number >> 40));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let mut rest = &bytes[..];
            while let Some(number) = take_varint(&mut rest) {
                prop_assert!(number == 0 || !bytes.is_empty());
            }
            prop_assert!(rest.len() <= bytes.len());
        }
    }

    #[test]
    fn incomplete_and_too_large_numbers_are_refused() {
        assert_eq!(take_varint(&mut &[0x80u8, 0x80][..]), None);
        assert_eq!(take_varint(&mut &[0xffu8; 10][..]), None);
        let mut largest = Vec::new();
        put_varints(&mut largest, [u64::MAX]);
        assert_eq!(largest.len(), MAX_BYTES);
    }
}
