//! The secret word in the site's address.

use std::fmt;
use std::hint::black_box;

/// Number of bytes of a secret: 192 bits.
pub(super) const BYTES: usize = 24;

/// An unguessable word, which only the address contains.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret from random bytes.
    #[must_use]
    pub fn new(bytes: &[u8; BYTES]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The word, for an address.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.0
    }

    /// Is this the word? The comparison takes the same time however many bytes are right.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
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
    fn debug_output_does_not_reveal_a_secret() {
        assert_eq!(format!("{:?}", Secret::new(&[7; BYTES])), "Secret(…)");
    }

    proptest! {
        #[test]
        fn only_the_whole_word_matches(bytes in any::<[u8; BYTES]>(), other in any::<[u8; BYTES]>(), cut in 0..2 * BYTES) {
            let secret = Secret::new(&bytes);
            prop_assert!(secret.matches(secret.word()));
            prop_assert_eq!(secret.word().len(), 2 * BYTES);
            prop_assert!(secret.word().bytes().all(|b| b.is_ascii_hexdigit()));
            prop_assert_eq!(secret.matches(Secret::new(&other).word()), bytes == other);
            prop_assert!(!secret.matches(&secret.word()[..cut]));
            let longer = format!("{}0", secret.word());
            prop_assert!(!secret.matches(&longer));
        }
    }
}
