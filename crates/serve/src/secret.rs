//! The secret in the site's address.

use std::fmt;
use std::hint::black_box;

/// Bytes of a secret: 192 bits.
pub(super) const BYTES: usize = 24;

/// An unguessable word; only the address contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret from random bytes.
    #[must_use]
    pub fn new(bytes: &[u8; BYTES]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The word, for an address.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.0
    }

    /// Is this the word? The time of the answer does not depend on how much of it is right.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), word.as_bytes());
        let difference = own
            .iter()
            .zip(other)
            .fold(0, |found, (a, b)| black_box(found | (a ^ b)));
        own.len() == other.len() && difference == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        assert_eq!(format!("{:?}", Secret::new(&[7; BYTES])), "Secret(…)");
    }

    proptest! {
        #[test]
        fn only_the_whole_word_is_it(bytes in any::<[u8; BYTES]>(), other in any::<[u8; BYTES]>(), cut in 0..2 * BYTES) {
            let secret = Secret::new(&bytes);
            prop_assert!(secret.is(secret.word()));
            prop_assert_eq!(secret.word().len(), 2 * BYTES);
            prop_assert!(secret.word().bytes().all(|b| b.is_ascii_hexdigit()));
            prop_assert_eq!(secret.is(Secret::new(&other).word()), bytes == other);
            prop_assert!(!secret.is(&secret.word()[..cut]));
            let longer = format!("{}0", secret.word());
            prop_assert!(!secret.is(&longer));
        }
    }
}
