//! ELF files: refused with a reason, or code no larger than the file, with loops inside it.

use pinwise_code::{demangle, elf};
use pinwise_spin::scan::scan;

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let binary = match elf::read(bytes) {
        Ok(binary) => binary,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(
        binary
            .sections
            .iter()
            .all(|code| code.bytes.len() <= bytes.len())
    );
    for function in &binary.functions {
        let _ = demangle(&function.name);
    }
    // Sections may name the same bytes many times over; a scan is then no longer small.
    let size: usize = binary.sections.iter().map(|code| code.bytes.len()).sum();
    if size > 1 << 16 {
        return;
    }
    for site in scan(&binary, "a.out").loops {
        assert!(site.inner.hints > 0 && binary.code_at(site.inner.start).is_some());
    }
}
