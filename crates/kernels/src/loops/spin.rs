//! Loops that only compute: the cost of a spin-wait hint, the length of a cycle, and work that
//! fills one kind of a core's ports.
//!
//! They touch no memory, so only the core is measured.

#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(
        unsafe_code,
        reason = "exactly these instructions are measured; none touches memory"
    )
)]

/// Hints in one call of [`pause`].
pub const PAUSES: u32 = 256;

/// Additions in one call of [`run_chain`]: that many core cycles, on every CPU of
/// the x86-64 rows of `InstLatx64` and on arm64's cores.
pub const CHAIN: u32 = 16_384;

/// Instructions with a register `rounds`, which counts down.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! rounds {
    ($rounds:expr; $($instruction:expr),+ $(; $($operands:tt)+)?) => {
        // SAFETY: only the named registers and the flags change.
        unsafe {
            std::arch::asm!(
                $($instruction,)+
                $($($operands)+)?
                rounds = inout(reg) $rounds => _,
                options(nomem, nostack)
            );
        }
    };
}

/// Goes back to `2` while rounds are left.
#[cfg(target_arch = "x86_64")]
macro_rules! next_round {
    () => {
        "dec {rounds:e}\njnz 2b"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! next_round {
    () => {
        "subs {rounds:w}, {rounds:w}, #1\nb.ne 2b"
    };
}

/// Adds a register to another.
#[cfg(target_arch = "x86_64")]
macro_rules! add {
    ($sum:literal, $term:literal) => {
        concat!("add {", $sum, "}, {", $term, "}")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! add {
    ($sum:literal, $term:literal) => {
        concat!("add {", $sum, "}, {", $sum, "}, {", $term, "}")
    };
}

/// Multiplications of twelve registers with a thirteenth. All start at zero: no
/// denormal, no exception.
#[cfg(target_arch = "x86_64")]
macro_rules! multiply {
    ($zero:literal, $multiply:literal, $after:literal) => {
        rounds!(
            384u32; ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12", $zero, ".endr", ".p2align 5", "2:",
            ".rept 2", ".irp r,0,1,2,3,4,5,6,7,8,9,10,11", $multiply, ".endr", ".endr",
            next_round!(), $after;
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _,
        )
    };
}

/// Executes [`PAUSES`] spin-wait hints: PAUSE on x86, ISB on arm64 (what Rust,
/// browsers and databases use there: YIELD is a no-operation on most of its cores).
#[inline(always)]
pub fn pause() {
    #[cfg(target_arch = "x86_64")]
    rounds!(PAUSES / 64; "2:", ".rept 64", "pause", ".endr", next_round!());
    #[cfg(target_arch = "aarch64")]
    rounds!(PAUSES / 64; "2:", ".rept 64", "isb", ".endr", next_round!());
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..PAUSES {
        std::hint::spin_loop();
    }
}

/// Whether YIELD differs from the hint of [`pause`].
pub const HAS_YIELD: bool = cfg!(target_arch = "aarch64");

/// Executes [`PAUSES`] YIELDs on arm64, and nothing elsewhere.
pub fn yield_hint() {
    #[cfg(target_arch = "aarch64")]
    rounds!(PAUSES / 64; "2:", ".rept 64", "yield", ".endr", next_round!());
}

/// Whether the CPU has TPAUSE and UMWAIT (leaf 7, ECX bit 5: WAITPKG).
#[must_use]
pub fn has_user_waits() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        const FEATURES: u32 = 7;
        #[allow(
            unused_unsafe,
            reason = "unsafe in the oldest Rust supported, safe in newer ones"
        )]
        // SAFETY: every x86-64 CPU has the instruction; the leaf is read only if it exists.
        unsafe {
            __cpuid(0).eax >= FEATURES && __cpuid_count(FEATURES, 0).ecx & (1 << 5) != 0
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Executes [`PAUSES`] TPAUSEs until a moment that has passed, in the lighter state: their minimum
/// cost. Requires [`has_user_waits`]; does nothing on other architectures than x86-64.
pub fn run_timed_pauses() {
    #[cfg(target_arch = "x86_64")]
    for _ in 0..PAUSES {
        // SAFETY: the CPU has the instruction, as the caller made sure; without,
        // it is a signal and no undefined behaviour. Only the flags change.
        unsafe {
            std::arch::asm!(
                "tpause ecx",
                in("ecx") 1u32,
                in("eax") 0u32,
                in("edx") 0u32,
                options(nomem, nostack)
            );
        }
    }
}

/// Likewise UMONITOR and UMWAIT on a line of the stack.
pub fn run_monitored_waits() {
    #[cfg(target_arch = "x86_64")]
    {
        let line = 0u64;
        for _ in 0..PAUSES {
            // SAFETY: as above; the monitored address is that of a variable that
            // lives, and is only read.
            unsafe {
                std::arch::asm!(
                    "umonitor {line}",
                    "umwait ecx",
                    line = in(reg) &raw const line,
                    in("ecx") 1u32,
                    in("eax") 0u32,
                    in("edx") 0u32,
                    options(nostack)
                );
            }
        }
    }
}

/// [`CHAIN`] additions, each of the one before. Register to register: some
/// cores add small constants at renaming, in no time.
#[inline(always)]
pub fn run_chain() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    rounds!(
        CHAIN / 64; "2:", ".rept 64", add!("sum", "term"), ".endr", next_round!();
        sum = inout(reg) 1u64 => _, term = in(reg) 3u64,
    );
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let mut sum = 1u64;
        for _ in 0..CHAIN {
            sum = std::hint::black_box(sum.wrapping_add(3));
        }
    }
}

/// A counting loop like that of a spinning thread: two instructions and a taken branch a round.
/// Siblings share the one taken branch a cycle.
#[inline(always)]
pub fn count() {
    const ROUNDS: u32 = 8192;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    rounds!(ROUNDS; ".p2align 5", "2:", next_round!());
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for round in 0..ROUNDS {
        std::hint::black_box(round);
    }
}

/// Integer additions of eight independent chains: more than any core has ports for.
#[inline(always)]
pub fn run_integer_chains() {
    const ROUNDS: u32 = 512;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    rounds!(
        ROUNDS; ".p2align 5", "2:", ".rept 8", add!("a", "t"), add!("b", "t"), add!("c", "t"),
        add!("d", "t"), add!("e", "t"), add!("f", "t"), add!("g", "t"), add!("h", "t"), ".endr",
        next_round!();
        a = inout(reg) 1u64 => _, b = inout(reg) 2u64 => _,
        c = inout(reg) 3u64 => _, d = inout(reg) 4u64 => _,
        e = inout(reg) 5u64 => _, f = inout(reg) 6u64 => _,
        g = inout(reg) 7u64 => _, h = inout(reg) 8u64 => _,
        t = in(reg) 9u64,
    );
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let mut sums = [1u64, 2, 3, 4, 5, 6, 7, 8];
        for _ in 0..8 * ROUNDS {
            sums = std::hint::black_box(sums.map(|sum| sum.wrapping_add(9)));
        }
    }
}

/// Floating-point work of twelve independent chains, so that latency (4 or 5 cycles, two a cycle)
/// does not idle the ports: multiply-adds of four numbers if the CPU has them, else multiplications
/// of two.
#[inline(always)]
pub fn run_float_chains() {
    // FMA includes AVX and its registers in use by the system.
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        multiply!(
            "vpxor xmm\\r, xmm\\r, xmm\\r",
            "vfmadd231pd ymm\\r, ymm12, ymm12",
            "vzeroupper"
        );
    } else {
        multiply!("xorps xmm\\r, xmm\\r", "mulpd xmm\\r, xmm12", "");
    }
    // v8 to v15 are the caller's.
    #[cfg(target_arch = "aarch64")]
    rounds!(
        384u32; ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20", "movi v\\r\\().2d, #0", ".endr",
        ".p2align 5", "2:", ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,0,1,2,3,4,5,6,7,16,17,18,19",
        "fmla v\\r\\().2d, v20.2d, v20.2d", ".endr", next_round!();
        out("v0") _, out("v1") _, out("v2") _, out("v3") _,
        out("v4") _, out("v5") _, out("v6") _, out("v7") _,
        out("v16") _, out("v17") _, out("v18") _, out("v19") _,
        out("v20") _,
    );
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let mut products = [1.0f64, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7];
        for _ in 0..2048 {
            products = std::hint::black_box(products.map(|product| product * 1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::clock::Clock;

    /// The fastest of many: the time without disturbance.
    fn measure_fastest_ns(clock: &Clock, work: impl Fn()) -> f64 {
        let times = (0..2000).map(|_| {
            let from = clock.ticks();
            work();
            clock.ticks().wrapping_sub(from)
        });
        clock.ns(times.min().unwrap())
    }

    #[test]
    fn a_chain_takes_one_cycle_per_addition() {
        let clock = Clock::calibrate();
        let cycle = measure_fastest_ns(&clock, run_chain) / f64::from(CHAIN);
        // From 0.2 to 8 GHz.
        assert!((0.125..5.0).contains(&cycle), "{cycle} ns");
    }

    #[test]
    fn ports_are_fuller_than_a_chain_leaves_them() {
        let clock = Clock::calibrate();
        let cycle = measure_fastest_ns(&clock, run_chain) / f64::from(CHAIN);
        let additions = 512.0 * 64.0;
        let each = measure_fastest_ns(&clock, run_integer_chains) / additions;
        assert!(each < cycle, "{each} against {cycle}");
        for work in [count, run_float_chains, pause] {
            assert!(measure_fastest_ns(&clock, work) > 0.0);
        }
    }
}
