//! Sets of logical CPUs, and Linux's two notations for them.
//!
//! A set grows with its largest member; nothing here assumes 64, 1,024 or any other number of CPUs.
//! It refuses ids above [`CpuSet::MAX_CPU`], so that a damaged file cannot request gigabytes.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

const WORD_BITS: usize = 64;

/// A set of CPU ids as the operating system numbers them.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    /// Bit `i % 64` of word `i / 64` is CPU `i`; the last word is never zero.
    words: Vec<u64>,
}

/// Why a CPU list or mask could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// A piece of a list is neither a number nor a range `A-B`.
    #[error("'{0}' is not a CPU number or a range such as 0-3")]
    NotANumber(String),
    /// A range is reversed.
    #[error("the range '{0}' is reversed")]
    Reversed(String),
    /// A CPU id above [`CpuSet::MAX_CPU`].
    #[error("CPU {0} is beyond the largest id supported, {max}", max = CpuSet::MAX_CPU)]
    TooLarge(u64),
    /// A mask has a character that is not a hexadecimal digit.
    #[error("'{0}' is not a hexadecimal CPU mask such as 0x55")]
    NotAMask(String),
}

impl CpuSet {
    /// The largest CPU id that a set can hold (Linux itself stops at 8,191). Memory for a set per
    /// CPU grows with the square of this number: with 65,535, the description `pu:65535` took a
    /// gigabyte.
    pub const MAX_CPU: usize = 16_383;

    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// The CPUs `0..count`.
    #[must_use]
    pub fn first_n(count: usize) -> Self {
        (0..count.min(Self::MAX_CPU + 1)).collect()
    }

    /// A set with one member.
    #[must_use]
    pub fn single(cpu: usize) -> Self {
        std::iter::once(cpu).collect()
    }

    /// Adds a CPU; ids above [`CpuSet::MAX_CPU`] are ignored.
    pub fn insert(&mut self, cpu: usize) {
        if cpu > Self::MAX_CPU {
            return;
        }
        let word = cpu / WORD_BITS;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu % WORD_BITS);
    }

    /// Removes a CPU.
    pub fn remove(&mut self, cpu: usize) {
        if let Some(word) = self.words.get_mut(cpu / WORD_BITS) {
            *word &= !(1 << (cpu % WORD_BITS));
        }
        self.trim();
    }

    /// Is this CPU a member?
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.words
            .get(cpu / WORD_BITS)
            .is_some_and(|word| word & (1 << (cpu % WORD_BITS)) != 0)
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Is the set empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The lowest-numbered member.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The highest-numbered member.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        let word = self.words.last()?;
        Some((self.words.len() - 1) * WORD_BITS + (WORD_BITS - 1) - word.leading_zeros() as usize)
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let mut words = self.words.iter().enumerate();
        let (mut rest, mut base) = (0u64, 0);
        std::iter::from_fn(move || {
            while rest == 0 {
                let (index, &word) = words.next()?;
                (rest, base) = (word, index * WORD_BITS);
            }
            let member = base + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(member)
        })
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::from_words(
            self.words
                .iter()
                .zip(&other.words)
                .map(|(a, b)| a & b)
                .collect(),
        )
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut words = long.words.clone();
        for (word, more) in words.iter_mut().zip(&short.words) {
            *word |= more;
        }
        Self::from_words(words)
    }

    /// Members of any of the sets.
    #[must_use]
    pub fn union_of<S: Borrow<Self>>(sets: impl IntoIterator<Item = S>) -> Self {
        let sets = sets.into_iter();
        sets.fold(Self::new(), |all, set| all.union(set.borrow()))
    }

    /// Members of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut words = self.words.clone();
        for (word, less) in words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        Self::from_words(words)
    }

    /// Is every member also in `other`?
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Do the sets share a member?
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Parses a list in the kernel's format: `0,2-4`, also with strides as in `cpulist_parse`
    /// (`0-31:2/4`: two out of every four).
    ///
    /// # Errors
    /// [`CpuSetError`] names the invalid piece.
    pub fn parse_list(text: &str) -> Result<Self, CpuSetError> {
        let mut set = Self::new();
        if text.trim().is_empty() {
            return Ok(set);
        }
        for piece in text.split(',').map(str::trim) {
            let (range, stride) = split_stride(piece)?;
            let (low, high) = parse_range(range)?;
            for cpu in low..=high {
                if stride.is_none_or(|(used, group)| (cpu - low) % group < used) {
                    set.insert(cpu);
                }
            }
        }
        Ok(set)
    }

    /// Parses a mask: `0x55`, `ff`, or the kernel's comma-separated words of one width
    /// (`00000000,0000000f`; 32 bits, 64 on some kernels).
    ///
    /// # Errors
    /// [`CpuSetError::NotAMask`] if a character is not a hexadecimal digit.
    pub fn parse_mask(text: &str) -> Result<Self, CpuSetError> {
        let digits = text
            .trim()
            .trim_start_matches("0x")
            .trim_start_matches("0X");
        let joined: String = digits.chars().filter(|&c| c != ',').collect();
        if joined.is_empty() {
            return Err(CpuSetError::NotAMask(text.trim().to_owned()));
        }
        let mut set = Self::new();
        for (place, digit) in joined.chars().rev().enumerate() {
            let value = digit
                .to_digit(16)
                .ok_or_else(|| CpuSetError::NotAMask(text.trim().to_owned()))?;
            for bit in (0..4).filter(|bit| value & (1 << bit) != 0) {
                let cpu = place * 4 + bit;
                if cpu > Self::MAX_CPU {
                    return Err(CpuSetError::TooLarge(cpu as u64));
                }
                set.insert(cpu);
            }
        }
        Ok(set)
    }

    /// The set as one hexadecimal number, `0x55`, for `taskset`.
    #[must_use]
    pub fn to_mask(&self) -> String {
        let mut text = String::new();
        for word in self.words.iter().rev() {
            if text.is_empty() {
                text = format!("{word:x}");
            } else {
                text.push_str(&format!("{word:016x}"));
            }
        }
        if text.is_empty() {
            text.push('0');
        }
        format!("0x{text}")
    }

    /// The set as little-endian 64-bit words, for `sched_setaffinity`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// A set from little-endian 64-bit words; words beyond [`CpuSet::MAX_CPU`] are dropped.
    #[must_use]
    pub fn from_words(mut words: Vec<u64>) -> Self {
        words.truncate(Self::MAX_CPU / WORD_BITS + 1);
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

/// CPUs used in each group, and the group's length.
type Stride = (usize, usize);

fn split_stride(piece: &str) -> Result<(&str, Option<Stride>), CpuSetError> {
    let Some((range, stride)) = piece.split_once(':') else {
        return Ok((piece, None));
    };
    let invalid = || CpuSetError::NotANumber(piece.to_owned());
    let (used, group) = stride.split_once('/').ok_or_else(invalid)?;
    let used = used.parse::<usize>().map_err(|_| invalid())?;
    let group = group.parse::<usize>().map_err(|_| invalid())?;
    if used == 0 || group == 0 || used > group {
        return Err(invalid());
    }
    Ok((range, Some((used, group))))
}

fn parse_range(range: &str) -> Result<(usize, usize), CpuSetError> {
    let parse_number = |text: &str| -> Result<usize, CpuSetError> {
        let invalid = || CpuSetError::NotANumber(range.to_owned());
        let digits = text.trim();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let value = digits.parse::<u64>().map_err(|_| invalid())?;
        usize::try_from(value)
            .ok()
            .filter(|&cpu| cpu <= CpuSet::MAX_CPU)
            .ok_or(CpuSetError::TooLarge(value))
    };
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (parse_number(low)?, parse_number(high)?),
        None => (parse_number(range)?, parse_number(range)?),
    };
    if low > high {
        return Err(CpuSetError::Reversed(range.to_owned()));
    }
    Ok((low, high))
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse_list(text)
    }
}

impl fmt::Display for CpuSet {
    /// Prints `0,2-4`; the empty set prints nothing.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut members = self.iter().peekable();
        while let Some(low) = members.next() {
            let mut high = low;
            while members.peek() == Some(&(high + 1)) {
                high += 1;
                members.next();
            }
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&low.to_string());
            if high > low {
                text.push_str(&format!("-{high}"));
            }
        }
        out.pad(&text)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_set(list: &str, members: &[usize], printed: &str, mask: &str) {
        let set = CpuSet::parse_list(list).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), members);
        assert_eq!(set.to_string(), printed);
        assert_eq!(set.to_mask(), mask);
        assert_eq!(CpuSet::parse_mask(mask).unwrap(), set);
        assert_eq!(set.len(), members.len());
        assert_eq!(set.last(), members.last().copied());
    }

    #[test]
    fn lists_and_masks_are_parsed() {
        check_set("0,2-4", &[0, 2, 3, 4], "0,2-4", "0x1d");
        check_set(" 3 , 1 ", &[1, 3], "1,3", "0xa");
        check_set("", &[], "", "0x0");
        check_set("0-7:2/4", &[0, 1, 4, 5], "0-1,4-5", "0x33");
        check_set("64", &[64], "64", "0x10000000000000000");
    }

    #[test]
    fn kernel_mask_words_are_parsed() {
        let set = CpuSet::parse_mask("00000001,00000000,0000000f").unwrap();
        assert_eq!(set.to_string(), "0-3,64");
    }

    #[test]
    fn damaged_text_is_refused() {
        for invalid in ["1-", "-1", "a", "0-4294967296", "5-3", "0:1", "1.5", "+1"] {
            assert!(CpuSet::parse_list(invalid).is_err(), "{invalid}");
        }
        for invalid in ["", "0x", "0xg", "zz"] {
            assert!(CpuSet::parse_mask(invalid).is_err(), "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(cpus in proptest::collection::btree_set(0usize..3000, 0..40)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert_eq!(&CpuSet::parse_list(&set.to_string()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse_mask(&set.to_mask()).unwrap(), &set);
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), cpus.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn set_algebra_holds(a in proptest::collection::vec(0usize..200, 0..30), b in proptest::collection::vec(0usize..200, 0..30)) {
            let (a, b): (CpuSet, CpuSet) = (a.into_iter().collect(), b.into_iter().collect());
            let both = a.intersection(&b);
            prop_assert_eq!(a.len() + b.len(), a.union(&b).len() + both.len());
            prop_assert_eq!(a.difference(&b).union(&both), a.clone());
            prop_assert_eq!(a.intersects(&b), !both.is_empty());
            prop_assert!(both.is_subset(&a) && both.is_subset(&b));
        }
    }
}
