//! The loops with spin-wait hints in binaries, as a record.

mod answer;

use serde::{Deserialize, Serialize};

use super::attach::{MatchStrength, SpinKind};
use crate::named::open_enum;
use crate::{Answer, Entry, Header, StoredRecord};
use pinwise_code::Arch;

open_enum! {
    /// How the answer treats loops whose gap the code does not show.
    UnknownGaps {
        /// They pass.
        Pass = "pass",
        /// They fail.
        Fail = "fail",
    }
}

open_enum! {
    /// An architecture of code.
    CodeArch from Arch {
        /// x86-64.
        X86_64 = "x86_64",
        /// arm64.
        Aarch64 = "aarch64",
    }
}

/// Loops with spin-wait hints, and their gaps between two looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.spin-scan/1")]
pub struct SpinScan {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The files.
    pub binaries: Vec<ScannedBinary>,
    /// Files that could not be read.
    pub skipped: Vec<SkippedFile>,
    /// The chips that gaps are reported for.
    pub chips: Vec<ScanChip>,
    /// CPUs that programs were assumed to count, if an algorithm uses that number.
    pub cpus: u64,
    /// The longest blind gap that passes, ns; `null` if no limit was requested.
    pub max_blind_gap_ns: Option<f64>,
    /// How the answer treats loops whose gap the code does not show.
    pub unknown: UnknownGaps,
    /// Whether all loops passed; `null` if no limit was requested.
    pub passed: Option<bool>,
    /// The loops, by file and address.
    pub loops: Vec<ScannedLoop>,
    /// The id of the chip that this machine is by its model; `null` if its PAUSE is known by a
    /// measurement (the chip `here`), if the model is unknown, and if chips or a limit were given.
    #[serde(default)]
    pub assumed_as: Option<String>,
    /// Do loops check too seldom, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

impl StoredRecord for SpinScan {
    fn entry(&self) -> Entry {
        let files: Vec<&str> = self.binaries.iter().map(|one| one.path.as_str()).collect();
        let title = format!("spin scan {}", files.join(" "));
        self.header
            .to_entry::<Self>(String::new(), title, self.answer.sentence.clone())
    }
}

/// A file that was scanned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScannedBinary {
    /// Its path as given.
    pub path: String,
    /// Its architecture.
    pub arch: CodeArch,
    /// Its build id.
    pub build_id: Option<String>,
    /// Bytes of code.
    pub code_bytes: u64,
    /// Spin-wait hints in it.
    pub hints: u64,
    /// Functions that only hint and return.
    pub hint_functions: u64,
    /// Hints in neither a loop nor such a function.
    pub hints_outside_loops: u64,
}

/// A file that was not scanned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedFile {
    /// Its path as given.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// A chip, or this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScanChip {
    /// Its id, or `here`.
    pub id: String,
    /// Binaries of this architecture run on it.
    pub arch: CodeArch,
    /// One hint, ns.
    pub pause_ns: f64,
    /// Its source.
    pub source: String,
}

/// A loop with hints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScannedLoop {
    /// The file, as an index into `binaries`.
    pub binary: usize,
    /// Address of its first instruction in the file, in hexadecimal digits.
    pub address: String,
    /// The function that contains it; `null` if the file does not name it.
    pub function: Option<String>,
    /// Bytes from the function's beginning.
    pub offset: Option<u64>,
    /// What it does.
    pub kind: SpinKind,
    /// Hints of one turn.
    pub hints_per_turn: u32,
    /// Reads of memory that others may write, in one turn.
    pub looks_per_turn: u32,
    /// For a blind delay, the loop around it that looks.
    pub outer: Option<OuterLoop>,
    /// Hints between two looks; `null` if that depends on more than the code shows.
    pub gap_hints: Option<u64>,
    /// The source of its blind time: `code`, `deadline` (its hints last until a moment that the
    /// program computes: the gap is unknown), or the id of a known algorithm; `null` if there is
    /// none.
    pub gap_from: Option<String>,
    /// `gap_hints` as time on each chip that its binary runs on; empty for a loop with a deadline.
    pub gaps: Vec<GapOnChip>,
    /// Algorithms that it may be, surest first.
    pub algorithms: Vec<MatchedAlgorithm>,
    /// Whether it exceeds the limit; `null` if no limit was requested.
    pub fails: Option<bool>,
}

/// A loop around a blind delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OuterLoop {
    /// Address of its first instruction, in hexadecimal digits.
    pub address: String,
    /// What it does.
    pub kind: SpinKind,
    /// Its looks in one turn.
    pub looks_per_turn: u32,
}

/// A blind gap on a chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GapOnChip {
    /// The chip's id.
    pub chip: String,
    /// ns; `null` if the code does not show the number of hints.
    pub ns: Option<f64>,
    /// Is that above the limit?
    pub exceeds: bool,
}

/// An algorithm of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatchedAlgorithm {
    /// Its id.
    pub id: String,
    /// How sure that is.
    pub strength: MatchStrength,
    /// The reason, as a sentence.
    pub reason: String,
}
