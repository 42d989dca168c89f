//! Built-in workloads: whetstone to file copies, each a command
//! (`pinwise bench kernel NAME`) that does a fixed amount of work and proves it.
//!
//! ```text
//! Kernel ──prepare──► Job ──worker──► Worker, one per thread
//!                                       │ unit 0, 1, 2 … (a share of them)
//!                                       ▼
//!                                     digests, whose sum is the checksum
//! ```
//!
//! Work comes in *units* of about 10 ms on one core of 2026. A unit's digest depends on its number
//! alone, and digests are added in any order: the checksum is the same for every number of threads,
//! split, instruction set and placement. A worker allocates everything when it is made; between the
//! first unit and the last nothing is allocated or locked, unless a kernel's documentation says
//! otherwise.
//!
//! Nothing here judges a rate or places a thread unasked.

mod catalogue;
mod digest;
mod files;
mod images;
pub mod isa;
mod memory;
mod numbers;
mod run;
mod sharing;

pub use catalogue::{KERNELS, find};
pub use isa::Isa;
pub use run::{Amount, KernelOutcome, Order, Split, run};

/// A workload's group, which gets a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Whole numbers and branches.
    Integer,
    /// Floating point.
    Float,
    /// Bandwidth and latency of memory.
    Memory,
    /// Bandwidth of caches.
    Cache,
    /// Threads that share data.
    Sharing,
    /// Files in the page cache.
    Files,
    /// Pictures.
    Images,
}

impl Group {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Memory => "memory",
            Self::Cache => "cache",
            Self::Sharing => "sharing",
            Self::Files => "files",
            Self::Images => "images",
        }
    }
}

/// The meaning of `--size` for a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Such as `digits`, or `bytes of all arrays together`.
    pub of: &'static str,
    /// The value without `--size`.
    pub default: u64,
    /// The smallest sensible value.
    pub least: u64,
    /// The largest value with a correct result.
    pub most: u64,
}

/// A built-in workload.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its group.
    pub group: Group,
    /// Its description, in one line.
    pub about: &'static str,
    /// The source of its definition.
    pub source: &'static str,
    /// The counted operation, such as `calls`.
    pub operation: &'static str,
    /// The meaning of `--size`; `None` if it has none.
    pub size: Option<Size>,
    /// Whether its hot loop is compiled for each instruction-set level.
    pub has_versions: bool,
    /// Bytes that it will allocate, for this size and number of threads.
    pub footprint_bytes: fn(size: u64, threads: usize) -> u64,
    /// Makes the state shared by all threads.
    pub prepare: fn(&Setup) -> Result<Box<dyn Job>, KernelError>,
}

impl Kernel {
    /// The size to use for the requested one.
    ///
    /// # Errors
    /// [`KernelError::Size`] if it is outside the kernel's limits, or the kernel has no size.
    pub fn size_or_default(&self, asked: Option<u64>) -> Result<u64, KernelError> {
        let name = self.name;
        match (self.size, asked) {
            (None, None) => Ok(0),
            (None, Some(size)) => Err(KernelError::Size(format!(
                "--size {size}: {name} has no size; omit it"
            ))),
            (Some(limits), None) => Ok(limits.default),
            (Some(limits), Some(size)) if (limits.least..=limits.most).contains(&size) => Ok(size),
            (Some(limits), Some(size)) => Err(KernelError::Size(format!(
                "--size {size}: for {name} it is {}, from {} to {}",
                limits.of, limits.least, limits.most
            ))),
        }
    }
}

/// Parameters of a kernel's preparation.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Value of `--size`, or the kernel's default; 0 if it has none.
    pub size: u64,
    /// The number of threads.
    pub threads: usize,
    /// The instruction set of its hot loop.
    pub isa: Isa,
    /// A folder for files.
    pub folder: std::path::PathBuf,
}

/// State shared by all threads of a workload.
pub trait Job: Sync {
    /// Operations of any unit.
    fn operations_per_unit(&self) -> u64;

    /// Bytes that one unit moves as counted by STREAM, if that is what is measured.
    fn bytes_per_unit(&self) -> Option<u64> {
        None
    }

    /// Bytes that one thread's loop uses repeatedly.
    fn working_set_bytes(&self) -> u64;

    /// Threads that do a unit together; the number of threads must be a multiple of it, or 1.
    fn team(&self) -> usize {
        1
    }

    /// The loop that the workers chose, if there were several.
    fn describe_choice(&self) -> Option<String> {
        None
    }

    /// The failure outside the computation that stopped a worker, such as a full disk.
    fn failure(&self) -> Option<KernelError> {
        None
    }

    /// Makes the state of thread number `thread`, with everything allocated and touched. Called on
    /// that thread, already placed.
    ///
    /// # Errors
    /// [`KernelError`] if something was not available.
    fn worker(&self, thread: usize) -> Result<Box<dyn Worker + '_>, KernelError>;

    /// Checks the whole after the last unit.
    ///
    /// # Errors
    /// The mistake, for [`KernelError::Wrong`].
    fn check(&self, _units: u64, _checksum: u64) -> Result<(), Wrong> {
        Ok(())
    }
}

/// One thread of a workload.
pub trait Worker {
    /// Does a unit and returns a digest of its result.
    ///
    /// # Errors
    /// [`Wrong`] if the result is wrong.
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong>;

    /// Does units until none is left, and returns the sum of their [`bind_digest`] digests.
    /// Only threads that work together need their own.
    ///
    /// # Errors
    /// [`Wrong`] if a result is wrong.
    fn work(&mut self, units: &mut dyn Iterator<Item = u64>) -> Result<u64, Wrong> {
        let mut sum = 0u64;
        for unit in units {
            sum = sum.wrapping_add(bind_digest(unit, self.run_unit(unit)?));
        }
        Ok(sum)
    }
}

/// The mistake in a result, as the end of "NAME computed a wrong result: …".
pub type Wrong = &'static str;

/// Why a workload could not be run, or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// A result is wrong.
    #[error("{kernel} computed a wrong result: {what}")]
    Wrong {
        /// The kernel.
        kernel: &'static str,
        /// The mistake.
        what: Wrong,
    },
    /// It needs more memory than there is.
    #[error(
        "--size {size}: {kernel} would need {needed_mib} MiB with --threads {threads}, and {available_mib} MiB are available"
    )]
    Memory {
        /// The kernel.
        kernel: &'static str,
        /// The requested size.
        size: u64,
        /// Threads.
        threads: usize,
        /// The memory that it would allocate.
        needed_mib: u64,
        /// The available memory.
        available_mib: u64,
    },
    /// A size outside the kernel's limits, or for a kernel without one.
    #[error("{0}")]
    Size(String),
    /// An instruction set that this CPU or this kernel does not have.
    #[error("{0}")]
    Isa(String),
    /// A number of threads that cannot work.
    #[error("{0}")]
    Threads(String),
    /// The system refused.
    #[error("{action}: {reason}")]
    System {
        /// The failed action.
        action: String,
        /// The system's error.
        reason: String,
    },
}

impl KernelError {
    /// The system's error with an action.
    pub(crate) fn system(action: String, error: &std::io::Error) -> Self {
        Self::System {
            action,
            reason: error.to_string(),
        }
    }
}

/// Binds a digest to the number of its unit, so that units are not interchangeable (the finaliser
/// of `MurmurHash3`, public domain).
#[must_use]
pub const fn bind_digest(unit: u64, digest: u64) -> u64 {
    let mut hash = digest ^ unit.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Random numbers of a unit, the same wherever it runs: `SplitMix64` (Steele, Lea, Flood 2014). The
/// loops of a workload must not depend on a crate's choice of generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a unit.
    #[must_use]
    pub const fn for_unit(unit: u64) -> Self {
        // "pinwise" in ASCII, which keeps this stream apart from digests.
        Self(bind_digest(unit, 0x70_69_6e_77_69_73_65))
    }

    /// The next number.
    #[inline]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix_bits(self.0)
    }
}

/// The output function of `SplitMix64`.
#[inline(always)]
const fn mix_bits(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
