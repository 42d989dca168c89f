//! Spin-wait hints and chains of additions: the building blocks of [`wait`](super::wait).
//!
//! Nothing here reads a clock or knows a hint's intended length.

#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(
        unsafe_code,
        reason = "exactly these instructions must be executed; none touches memory"
    )
)]

/// The largest number of additions in one part of a hint: the length of the code, which is entered
/// at the place from which the wanted number remains.
pub(super) const MAX_ADDITIONS: u32 = 512;

/// The processor's own hints: PAUSE, on arm64 ISB as in
/// [`spin::pause`](super::spin::pause).
#[inline(always)]
pub(super) fn run_plain(hints: u64) {
    if hints == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: only the named register and the flags change.
    unsafe {
        std::arch::asm!(
            "2:",
            "pause",
            "dec {hints}",
            "jnz 2b",
            hints = inout(reg) hints => _,
            options(nomem, nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: only the named register and the flags change.
    unsafe {
        std::arch::asm!(
            "2:",
            "isb",
            "subs {hints}, {hints}, #1",
            "b.ne 2b",
            hints = inout(reg) hints => _,
            options(nomem, nostack)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..hints {
        std::hint::spin_loop();
    }
}

/// Rounds of a hint, this many additions, and a fence if additions could otherwise overlap with the
/// next hint: without one, 64 of them vanish behind a PAUSE of Zen 4.
macro_rules! rounds {
    ($rounds:expr, $additions:expr, $hint:literal, $fence:literal) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: only the named registers and the flags change; the jump goes to one of the
        // additions, each three bytes long, or right after them.
        unsafe {
            std::arch::asm!(
                "lea {entry}, [rip + 22f]",
                "sub {entry}, {skip}",
                ".p2align 5",
                "21:",
                $hint,
                "jmp {entry}",
                ".rept 512",
                "add {sum}, {term}",
                ".endr",
                "22:",
                $fence,
                "dec {rounds}",
                "jnz 21b",
                entry = out(reg) _,
                skip = in(reg) 3 * u64::from($additions.min(MAX_ADDITIONS)),
                sum = inout(reg) 1u64 => _,
                term = in(reg) 3u64,
                rounds = inout(reg) $rounds => _,
                options(nomem, nostack)
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: only the named registers and the flags change; the jump goes to one of the
        // additions, each four bytes long, or right after them.
        unsafe {
            std::arch::asm!(
                "adr {entry}, 22f",
                "sub {entry}, {entry}, {skip}",
                "21:",
                $hint,
                "br {entry}",
                ".rept 512",
                "add {sum}, {sum}, {term}",
                ".endr",
                "22:",
                "subs {rounds}, {rounds}, #1",
                "b.ne 21b",
                entry = out(reg) _,
                skip = in(reg) 4 * u64::from($additions.min(MAX_ADDITIONS)),
                sum = inout(reg) 1u64 => _,
                term = in(reg) 3u64,
                rounds = inout(reg) $rounds => _,
                options(nomem, nostack)
            );
        }
    };
}

/// Hints with additions. An ISB is itself a fence.
#[inline(always)]
pub(super) fn run_stretched(rounds: u64, additions: u32) {
    if rounds == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    rounds!(rounds, additions, "pause", "lfence");
    #[cfg(target_arch = "aarch64")]
    rounds!(rounds, additions, "isb", "");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..rounds {
        std::hint::spin_loop();
        add(additions);
    }
}

/// Additions only.
#[inline(always)]
pub(super) fn run_chained(rounds: u64, additions: u32) {
    if rounds == 0 {
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        rounds!(rounds, additions, "", "");
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..rounds {
        add(additions);
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn add(additions: u32) {
    let mut sum = 1u64;
    for _ in 0..additions {
        sum = std::hint::black_box(sum.wrapping_add(3));
    }
}
