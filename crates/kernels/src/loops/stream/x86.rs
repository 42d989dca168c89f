//! Vector loops of x86-64, for CPUs that have the instructions.
//!
//! `AHEAD` is how far ahead lines are prefetched, in bytes; 0 for not at all.
//! Prefetching beyond an array's end does nothing. An array is split
//! into `WAYS` parts that are read side by side, so that the hardware prefetcher follows
//! several streams.
//!
//! No loop calls anything that takes a closure (`array::map`): such a function lacks the
//! instructions, so inlining it depends on the level of optimisation, and without that values go
//! through memory.

#![expect(
    unsafe_code,
    reason = "vector instructions on memory that the caller vouches for"
)]

use std::arch::x86_64::{
    __m256d, __m512d, _MM_HINT_NTA, _MM_HINT_T0, _mm_add_pd, _mm_load_pd, _mm_mul_pd, _mm_prefetch,
    _mm_set1_pd, _mm_setzero_pd, _mm_sfence, _mm_stream_pd, _mm256_add_pd, _mm256_load_pd,
    _mm256_mul_pd, _mm256_set1_pd, _mm256_setzero_pd, _mm256_storeu_pd, _mm256_stream_pd,
    _mm512_add_pd, _mm512_fmadd_pd, _mm512_load_pd, _mm512_set1_pd, _mm512_setzero_pd,
    _mm512_store_pd, _mm512_storeu_pd, _mm512_stream_pd,
};

use super::{Arrays, BLOCK, Instructions, SCALAR, Stream, Variant};

/// Waits until all non-temporal stores are visible to all CPUs.
fn fence() {
    #[allow(
        unused_unsafe,
        reason = "unsafe in the oldest Rust supported, safe in newer ones"
    )]
    // SAFETY: every x86-64 CPU has the instruction; it touches nothing.
    unsafe {
        _mm_sfence();
    }
}

/// The vectorised variants that this CPU supports.
pub(super) fn variants(stream: Stream) -> Vec<Variant> {
    let mut found = match stream {
        Stream::Read => Vec::new(),
        Stream::Write => vec![
            variant("rep stos", fill_rep),
            variant("sse2, streamed", fill_128),
        ],
        Stream::Copy => vec![
            variant("rep movs", copy_rep),
            variant("sse2, streamed", copy_128),
        ],
        Stream::Triad => vec![variant("sse2, streamed", triad_128)],
    };
    let needing = |instructions: Instructions, variants: Vec<Variant>| {
        variants.into_iter().map(move |variant| Variant {
            instructions,
            ..variant
        })
    };
    if std::arch::is_x86_feature_detected!("avx") {
        found.extend(needing(Instructions::Avx, list_avx(stream)));
    }
    if std::arch::is_x86_feature_detected!("avx512f") {
        found.extend(needing(Instructions::Avx512, list_avx512(stream)));
    }
    found
}

const fn variant(name: &'static str, run: unsafe fn(Arrays) -> f64) -> Variant {
    Variant {
        name,
        instructions: Instructions::Baseline,
        run,
    }
}

fn list_avx(stream: Stream) -> Vec<Variant> {
    match stream {
        Stream::Read => vec![
            variant("avx", sum_256::<1, 0>),
            variant("avx, prefetched", sum_256::<1, 1024>),
            variant("avx, prefetched far", sum_256::<1, 4096>),
            variant("avx, two ways", sum_256::<2, 0>),
            variant("avx, four ways", sum_256::<4, 0>),
        ],
        Stream::Write => vec![variant("avx, streamed", fill_256)],
        Stream::Copy => vec![
            variant("avx, streamed", copy_256::<0>),
            variant("avx, streamed, prefetched", copy_256::<1024>),
        ],
        Stream::Triad => vec![
            variant("avx, streamed", triad_256::<0>),
            variant("avx, streamed, prefetched", triad_256::<1024>),
        ],
    }
}

fn list_avx512(stream: Stream) -> Vec<Variant> {
    match stream {
        Stream::Read => vec![
            variant("avx512", sum_512::<1, 0>),
            variant("avx512, prefetched", sum_512::<1, 1024>),
            variant("avx512, prefetched far", sum_512::<1, 4096>),
            variant("avx512, two ways", sum_512::<2, 0>),
            variant("avx512, four ways", sum_512::<4, 0>),
        ],
        Stream::Write => vec![
            variant("avx512", fill_512::<false>),
            variant("avx512, streamed", fill_512::<true>),
        ],
        Stream::Copy => vec![
            variant("avx512", copy_512::<false, 0>),
            variant("avx512, streamed", copy_512::<true, 0>),
            variant("avx512, streamed, prefetched", copy_512::<true, 1024>),
            variant("avx512, streamed, prefetched far", copy_512::<true, 4096>),
        ],
        Stream::Triad => vec![
            variant("avx512", triad_512::<false, 0>),
            variant("avx512, streamed", triad_512::<true, 0>),
            variant("avx512, streamed, prefetched", triad_512::<true, 1024>),
            variant("avx512, streamed, prefetched far", triad_512::<true, 4096>),
        ],
    }
}

/// Prefetches lines that are read once.
#[inline(always)]
unsafe fn fetch<const AHEAD: usize>(at: *const f64) {
    if AHEAD > 0 {
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_NTA>(at.wrapping_byte_add(AHEAD).cast()) };
    }
}

/// Prefetches lines into all caches.
#[inline(always)]
unsafe fn fetch_all<const AHEAD: usize>(at: *const f64) {
    if AHEAD > 0 {
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_byte_add(AHEAD).cast()) };
    }
}

unsafe fn fill_rep(on: Arrays) -> f64 {
    // SAFETY: as the caller promises; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep stosq",
            inout("rcx") on.bytes / 8 => _,
            inout("rdi") on.a => _,
            in("rax") SCALAR.to_bits(),
            options(nostack, preserves_flags)
        );
    }
    0.0
}

unsafe fn copy_rep(on: Arrays) -> f64 {
    // SAFETY: as the caller promises; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") on.bytes => _,
            inout("rdi") on.a => _,
            inout("rsi") on.b => _,
            options(nostack, preserves_flags)
        );
    }
    0.0
}

#[target_feature(enable = "sse2")]
unsafe fn fill_128(on: Arrays) -> f64 {
    let value = _mm_set1_pd(std::hint::black_box(SCALAR));
    for at in (0..on.bytes / 8).step_by(8) {
        for lane in [0, 2, 4, 6] {
            // SAFETY: within `a`, which is aligned.
            unsafe { _mm_stream_pd(on.a.add(at + lane), value) };
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "sse2")]
unsafe fn copy_128(on: Arrays) -> f64 {
    for at in (0..on.bytes / 8).step_by(8) {
        // SAFETY: within both arrays, which are aligned.
        unsafe {
            let mut values = [_mm_setzero_pd(); 4];
            for (lane, value) in values.iter_mut().enumerate() {
                *value = _mm_load_pd(on.b.add(at + 2 * lane));
            }
            for (lane, value) in values.into_iter().enumerate() {
                _mm_stream_pd(on.a.add(at + 2 * lane), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "sse2")]
unsafe fn triad_128(on: Arrays) -> f64 {
    let scalar = _mm_set1_pd(std::hint::black_box(SCALAR));
    for at in (0..on.bytes / 8).step_by(8) {
        // SAFETY: within all arrays, which are aligned.
        unsafe {
            let mut values = [_mm_setzero_pd(); 4];
            for (lane, value) in values.iter_mut().enumerate() {
                let at = at + 2 * lane;
                let product = _mm_mul_pd(scalar, _mm_load_pd(on.c.add(at)));
                *value = _mm_add_pd(_mm_load_pd(on.b.add(at)), product);
            }
            for (lane, value) in values.into_iter().enumerate() {
                _mm_stream_pd(on.a.add(at + 2 * lane), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "avx")]
unsafe fn sum_256<const WAYS: usize, const AHEAD: usize>(on: Arrays) -> f64 {
    const STEP: usize = 16;
    let part = on.bytes / 8 / WAYS;
    let mut sums: [[__m256d; 4]; WAYS] = [[_mm256_setzero_pd(); 4]; WAYS];
    let mut at = 0;
    while at < part {
        for (way, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `part` is a multiple of `STEP`, so this is within `b`.
            unsafe {
                let from = on.b.add(way * part + at);
                fetch_all::<AHEAD>(from);
                fetch_all::<AHEAD>(from.add(8));
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_add_pd(*sum, _mm256_load_pd(from.add(4 * lane)));
                }
            }
        }
        at += STEP;
    }
    sum_lanes::<4>(sums.as_flattened().iter().map(|&sum| {
        let mut lanes = [0.0; 4];
        // SAFETY: there is room for four numbers.
        unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), sum) };
        lanes
    }))
}

/// The sum of all lanes of vectors, once per pass.
#[inline(always)]
fn sum_lanes<const LANES: usize>(vectors: impl Iterator<Item = [f64; LANES]>) -> f64 {
    let mut sums = [0.0; LANES];
    for vector in vectors {
        for (sum, lane) in sums.iter_mut().zip(vector) {
            *sum += lane;
        }
    }
    sums.iter().sum()
}

#[target_feature(enable = "avx512f")]
unsafe fn sum_512<const WAYS: usize, const AHEAD: usize>(on: Arrays) -> f64 {
    const STEP: usize = 32;
    let part = on.bytes / 8 / WAYS;
    let mut sums: [[__m512d; 4]; WAYS] = [[_mm512_setzero_pd(); 4]; WAYS];
    let mut at = 0;
    while at < part {
        for (way, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `part` is a multiple of `STEP`, so this is within `b`.
            unsafe {
                let from = on.b.add(way * part + at);
                for (lane, sum) in sums.iter_mut().enumerate() {
                    fetch_all::<AHEAD>(from.add(8 * lane));
                    *sum = _mm512_add_pd(*sum, _mm512_load_pd(from.add(8 * lane)));
                }
            }
        }
        at += STEP;
    }
    sum_lanes::<8>(sums.as_flattened().iter().map(|&sum| {
        let mut lanes = [0.0; 8];
        // SAFETY: there is room for eight numbers.
        unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), sum) };
        lanes
    }))
}

#[target_feature(enable = "avx")]
unsafe fn fill_256(on: Arrays) -> f64 {
    let value = _mm256_set1_pd(std::hint::black_box(SCALAR));
    for block in 0..on.bytes / BLOCK {
        // SAFETY: within `a`, which is aligned.
        unsafe {
            let to = on.a.byte_add(block * BLOCK);
            for at in (0..BLOCK / 8).step_by(4) {
                _mm256_stream_pd(to.add(at), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "avx512f")]
unsafe fn fill_512<const STREAMED: bool>(on: Arrays) -> f64 {
    let value = _mm512_set1_pd(std::hint::black_box(SCALAR));
    for block in 0..on.bytes / BLOCK {
        // SAFETY: within `a`, which is aligned.
        unsafe {
            let to = on.a.byte_add(block * BLOCK);
            for at in (0..BLOCK / 8).step_by(8) {
                put::<STREAMED>(to.add(at), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn put<const STREAMED: bool>(to: *mut f64, value: __m512d) {
    // SAFETY: as the caller promises.
    unsafe {
        if STREAMED {
            _mm512_stream_pd(to, value);
        } else {
            _mm512_store_pd(to, value);
        }
    }
}

#[target_feature(enable = "avx")]
unsafe fn copy_256<const AHEAD: usize>(on: Arrays) -> f64 {
    for at in (0..on.bytes / 8).step_by(16) {
        // SAFETY: within both arrays, which are aligned.
        unsafe {
            let (to, from) = (on.a.add(at), on.b.add(at));
            fetch::<AHEAD>(from);
            fetch::<AHEAD>(from.add(8));
            let mut values = [_mm256_setzero_pd(); 4];
            for (lane, value) in values.iter_mut().enumerate() {
                *value = _mm256_load_pd(from.add(4 * lane));
            }
            for (lane, value) in values.into_iter().enumerate() {
                _mm256_stream_pd(to.add(4 * lane), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "avx512f")]
unsafe fn copy_512<const STREAMED: bool, const AHEAD: usize>(on: Arrays) -> f64 {
    for at in (0..on.bytes / 8).step_by(32) {
        // SAFETY: within both arrays, which are aligned.
        unsafe {
            let (to, from) = (on.a.add(at), on.b.add(at));
            let mut values = [_mm512_setzero_pd(); 4];
            for (lane, value) in values.iter_mut().enumerate() {
                let from = from.add(8 * lane);
                fetch::<AHEAD>(from);
                *value = _mm512_load_pd(from);
            }
            for (lane, value) in values.into_iter().enumerate() {
                put::<STREAMED>(to.add(8 * lane), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "avx")]
unsafe fn triad_256<const AHEAD: usize>(on: Arrays) -> f64 {
    let scalar = _mm256_set1_pd(std::hint::black_box(SCALAR));
    for at in (0..on.bytes / 8).step_by(16) {
        // SAFETY: within all arrays, which are aligned.
        unsafe {
            let (to, b, c) = (on.a.add(at), on.b.add(at), on.c.add(at));
            for line in [0, 8] {
                fetch::<AHEAD>(b.add(line));
                fetch::<AHEAD>(c.add(line));
            }
            let mut values = [_mm256_setzero_pd(); 4];
            for (lane, value) in values.iter_mut().enumerate() {
                let product = _mm256_mul_pd(scalar, _mm256_load_pd(c.add(4 * lane)));
                *value = _mm256_add_pd(_mm256_load_pd(b.add(4 * lane)), product);
            }
            for (lane, value) in values.into_iter().enumerate() {
                _mm256_stream_pd(to.add(4 * lane), value);
            }
        }
    }
    fence();
    0.0
}

#[target_feature(enable = "avx512f")]
unsafe fn triad_512<const STREAMED: bool, const AHEAD: usize>(on: Arrays) -> f64 {
    let scalar = _mm512_set1_pd(std::hint::black_box(SCALAR));
    for at in (0..on.bytes / 8).step_by(32) {
        // SAFETY: within all arrays, which are aligned.
        unsafe {
            let (to, b, c) = (on.a.add(at), on.b.add(at), on.c.add(at));
            let mut values = [_mm512_setzero_pd(); 4];
            for (lane, value) in values.iter_mut().enumerate() {
                let (b, c) = (b.add(8 * lane), c.add(8 * lane));
                fetch::<AHEAD>(b);
                fetch::<AHEAD>(c);
                *value = _mm512_fmadd_pd(scalar, _mm512_load_pd(c), _mm512_load_pd(b));
            }
            for (lane, value) in values.into_iter().enumerate() {
                put::<STREAMED>(to.add(8 * lane), value);
            }
        }
    }
    fence();
    0.0
}
