//! Lists such as `0,2-4:1/2` and masks such as `0x55`: a parsed set survives printing and parsing.

use pinwise_topology::CpuSet;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    for set in [CpuSet::parse_list(text), CpuSet::parse_mask(text)] {
        match set {
            Ok(set) => check(&set),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn check(set: &CpuSet) {
    assert_eq!(CpuSet::parse_list(&set.to_string()).as_ref(), Ok(set));
    assert_eq!(CpuSet::parse_mask(&set.to_mask()).as_ref(), Ok(set));
    assert_eq!(&CpuSet::from_words(set.words().to_vec()), set);
    assert_eq!(&set.iter().collect::<CpuSet>(), set);
    assert_eq!(set.iter().count(), set.len());
    assert_eq!(set.iter().last(), set.last());
    assert!(set.last().is_none_or(|last| last <= CpuSet::MAX_CPU));
}
