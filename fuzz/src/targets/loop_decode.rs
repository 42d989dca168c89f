//! Machine code: the first byte gives the architecture, two more the address to examine. Every
//! address has its instructions and loops, or none.

use pinwise_code::{Arch, Code, disassemble};
use pinwise_spin::identify::{Evidence, identify};
use pinwise_spin::loops::{begins_at, is_hint_function, loops_at};

/// Longer code is not searched for loops.
const MAX_CODE_BYTES: usize = 12_000;

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let [arch, low, high, bytes @ ..] = bytes else { return };
    let code = Code {
        arch: if arch % 2 == 0 {
            Arch::X86_64
        } else {
            Arch::Aarch64
        },
        // Some stretches lie at the end of the address space.
        start: if arch % 4 < 2 {
            0x40_0000
        } else {
            u64::MAX - 6_000
        },
        bytes: bytes[..bytes.len().min(MAX_CODE_BYTES)].to_vec(),
    };
    let address = code
        .start
        .saturating_add(u64::from(u16::from_le_bytes([*low, *high])));
    let nest = loops_at(&code, address);
    for pair in nest.windows(2) {
        assert!(pair[0].instructions < pair[1].instructions);
    }
    for found in &nest {
        assert!(found.start <= address && address < found.end);
        assert!(found.constants.is_sorted() && found.hinting.is_sorted());
        let _ = identify(&Evidence {
            found: Some(found),
            symbols: &[],
            module: None,
            modules: &["libjvm.so"],
        });
    }
    let _ = is_hint_function(&code, address);
    let _ = begins_at(&code, address);
    for one in disassemble(&code, code.start, code.end()) {
        assert!(one.length > 0 && !one.text.is_empty());
    }
}
