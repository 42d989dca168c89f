//! Instruction-set levels: one loop compiled several times in one program.
//!
//! The levels of x86-64 are those of the psABI (v1 to v4). `native` is the highest level of the
//! CPU, with the extensions after v4 if it has all of them. A loop is written once,
//! `#[inline(always)]`, and [`versions!`](crate::work::isa) makes a function of it per level; Rust
//! never contracts `a * b + c` nor reorders sums, so that all levels compute the same bits.

use std::fmt;
use std::str::FromStr;

/// A level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// The oldest: SSE2 on x86-64; the baseline of other architectures.
    V1,
    /// SSE4.2, POPCNT.
    V2,
    /// AVX2, FMA, BMI2.
    V3,
    /// AVX-512 F, BW, CD, DQ, VL.
    V4,
    /// Everything that this CPU has and pinwise is compiled for.
    Native,
}

impl Isa {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [Self::V1, Self::V2, Self::V3, Self::V4, Self::Native];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
            Self::Native => "native",
        }
    }

    /// Whether this CPU supports it.
    #[must_use]
    pub fn is_supported(self) -> bool {
        match self {
            Self::V1 | Self::Native => true,
            #[cfg(target_arch = "x86_64")]
            Self::V2 => x86::has_v2(),
            #[cfg(target_arch = "x86_64")]
            Self::V3 => x86::has_v2() && x86::has_v3(),
            #[cfg(target_arch = "x86_64")]
            Self::V4 => x86::has_v2() && x86::has_v3() && x86::has_v4(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The levels that this CPU has, `native` last.
    #[must_use]
    pub fn list_supported() -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|isa| isa.is_supported())
            .collect()
    }

    /// The compiled version of this level: `native` is the newest there is. Check [`Isa::is_supported`]
    /// first: this does not.
    #[must_use]
    pub fn version(self) -> Version {
        match self {
            Self::V1 => Version::V1,
            Self::V2 => Version::V2,
            Self::V3 => Version::V3,
            Self::V4 => Version::V4,
            Self::Native => newest_version(),
        }
    }
}

/// A compiled version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The baseline.
    V1,
    /// x86-64-v2.
    V2,
    /// x86-64-v3.
    V3,
    /// x86-64-v4.
    V4,
    /// x86-64-v4 with IFMA, VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ, GFNI, VAES and VPCLMULQDQ,
    /// introduced with Ice Lake and Zen 4.
    V4Plus,
}

impl Version {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 if cfg!(target_arch = "x86_64") => "x86-64-v1",
            Self::V1 => "baseline",
            Self::V2 => "x86-64-v2",
            Self::V3 => "x86-64-v3",
            Self::V4 => "x86-64-v4",
            Self::V4Plus => "x86-64-v4 with the extensions of Ice Lake and Zen 4",
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn newest_version() -> Version {
    let levels = [Isa::V4, Isa::V3, Isa::V2];
    if Isa::V4.is_supported() && x86::has_v4_plus() {
        return Version::V4Plus;
    }
    let newest = levels.into_iter().find(|isa| isa.is_supported());
    newest.map_or(Version::V1, Isa::version)
}

#[cfg(not(target_arch = "x86_64"))]
fn newest_version() -> Version {
    Version::V1
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected as has;

    pub(super) fn has_v2() -> bool {
        has!("cmpxchg16b") && has!("popcnt") && has!("sse4.2") && has!("ssse3")
    }

    pub(super) fn has_v3() -> bool {
        has!("avx2")
            && has!("bmi1")
            && has!("bmi2")
            && has!("f16c")
            && has!("fma")
            && has!("lzcnt")
            && has!("movbe")
    }

    pub(super) fn has_v4() -> bool {
        has!("avx512f")
            && has!("avx512bw")
            && has!("avx512cd")
            && has!("avx512dq")
            && has!("avx512vl")
    }

    pub(super) fn has_v4_plus() -> bool {
        has!("avx512ifma")
            && has!("avx512vbmi")
            && has!("avx512vbmi2")
            && has!("avx512vnni")
            && has!("avx512bitalg")
            && has!("avx512vpopcntdq")
            && has!("gfni")
            && has!("vaes")
            && has!("vpclmulqdq")
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("x86-64-").unwrap_or(text);
        let found = Self::ALL.into_iter().find(|isa| isa.name() == name);
        found.ok_or_else(|| format!("'{text}' is not an instruction set (v1, v2, v3, v4, native)"))
    }
}

/// Compiles an `#[inline(always)]` function once per level, and defines a function that selects one:
/// `versions! { pub(super) fn sum(values: &[f64]) -> f64 = sum_body; }` defines `sum(version, values)`.
/// This CPU must support the version.
macro_rules! versions {
    ($(#[$meta:meta])* $visible:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:path;) => {
        $(#[$meta])*
        #[expect(unsafe_code, reason = "instructions that the caller knows the CPU has")]
        #[cfg(target_arch = "x86_64")]
        $visible fn $name(version: $crate::work::isa::Version, $($argument: $type),*) $(-> $result)? {
            use $crate::work::isa::Version;
            #[target_feature(enable = "cmpxchg16b,popcnt,sse3,ssse3,sse4.1,sse4.2")]
            fn v2($($argument: $type),*) $(-> $result)? { $body($($argument),*) }
            #[target_feature(enable = "cmpxchg16b,popcnt,sse4.2,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe")]
            fn v3($($argument: $type),*) $(-> $result)? { $body($($argument),*) }
            #[target_feature(enable = "cmpxchg16b,popcnt,sse4.2,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            fn v4($($argument: $type),*) $(-> $result)? { $body($($argument),*) }
            #[target_feature(enable = "cmpxchg16b,popcnt,sse4.2,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,gfni,vaes,vpclmulqdq")]
            fn v4_plus($($argument: $type),*) $(-> $result)? { $body($($argument),*) }
            match version {
                Version::V1 => $body($($argument),*),
                // SAFETY: a version is chosen from those that the CPU has.
                Version::V2 => unsafe { v2($($argument),*) },
                // SAFETY: as above.
                Version::V3 => unsafe { v3($($argument),*) },
                // SAFETY: as above.
                Version::V4 => unsafe { v4($($argument),*) },
                // SAFETY: as above.
                Version::V4Plus => unsafe { v4_plus($($argument),*) },
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        $visible fn $name(_version: $crate::work::isa::Version, $($argument: $type),*) $(-> $result)? {
            $body($($argument),*)
        }
    };
}
pub(super) use versions;

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(always)]
    fn sum_body(values: &[u64]) -> u64 {
        values.iter().fold(0, |sum, value| sum ^ (value * 3))
    }

    versions! { fn sum(values: &[u64]) -> u64 = sum_body; }

    #[test]
    fn every_version_that_is_here_computes_the_same() {
        let values: Vec<u64> = (0..1000).collect();
        let expected = sum_body(&values);
        for isa in Isa::list_supported() {
            assert_eq!(sum(isa.version(), &values), expected, "{isa}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for isa in Isa::ALL {
            assert_eq!(isa.name().parse(), Ok(isa));
        }
        assert_eq!("x86-64-v3".parse(), Ok(Isa::V3));
        assert!("v5".parse::<Isa>().unwrap_err().contains("v1, v2"));
        assert!(Isa::V1.is_supported() && Isa::Native.is_supported());
    }
}
