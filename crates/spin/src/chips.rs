//! Known chips: the cost of a PAUSE on each, and how to recognise a chip.
//!
//! Published figures, most of them from `InstLatx64`'s dumps, in which an addition takes one cycle,
//! so cycles are the core's. A machine's own measurement is always better: guests, clocks and
//! microcode differ.

use std::sync::LazyLock;

use super::nearest_name;

static ROWS: LazyLock<Vec<Chip>> = LazyLock::new(|| {
    let lines = include_str!("chips/rows.txt").lines();
    lines.filter_map(Chip::from_row).collect()
});

/// The source of a clock that was not measured.
const ASSUMED: &str = "assumed, a round figure for its products";
/// The clock at which 11 and 140 cycles give 19 and 246 ms.
const THIRD_FIELD_REPORT: &str = "of the third field report, whose totals it gives";

/// A chip's identity in CPUID and `/proc/cpuinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// CPUID's vendor, such as `GenuineIntel`.
    pub vendor: &'static str,
    /// Family, including the extended one.
    pub family: u32,
    /// Models, including the extended part; empty for the whole family.
    pub models: Vec<u32>,
    /// Range of steppings. Skylake-SP and Cascade Lake-SP differ only in these.
    pub steppings: (u32, u32),
}

/// A kind of core with the cost of its PAUSE.
#[derive(Debug, Clone, PartialEq)]
pub struct Chip {
    /// Its id, such as `skylake-sp`.
    pub id: &'static str,
    /// Other accepted names.
    pub also: Vec<&'static str>,
    /// Its name.
    pub name: &'static str,
    /// Its maker.
    pub vendor: &'static str,
    /// Latency of PAUSE in core cycles: the lowest and the highest of the chip's machines.
    pub pause_cycles: (f64, f64),
    /// How it is recognised.
    pub signature: Signature,
    /// A typical clock, GHz, to convert cycles into time.
    pub ghz: f64,
    /// The source of the clock.
    pub ghz_from: &'static str,
    /// The source of the cycles.
    pub source: &'static str,
}

impl Chip {
    /// Parses a line of the table; `None` if it is not a row.
    fn from_row(line: &'static str) -> Option<Self> {
        let cells: Vec<&str> = line.split(" | ").collect();
        let &[
            id,
            also,
            name,
            vendor,
            pause,
            cpuid,
            family,
            models,
            steppings,
            ghz,
            ghz_from,
            source,
        ] = cells.as_slice()
        else {
            return None;
        };
        let model = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        Some(Self {
            id,
            also: split_words(also).collect(),
            name,
            vendor,
            pause_cycles: parse_range(pause)?,
            signature: Signature {
                vendor: cpuid,
                family: family.parse().ok()?,
                models: split_words(models).map(model).collect::<Option<_>>()?,
                steppings: parse_range(steppings)?,
            },
            ghz: ghz.parse().ok()?,
            ghz_from: match ghz_from {
                "assumed" => ASSUMED,
                "report" => THIRD_FIELD_REPORT,
                other => other,
            },
            source,
        })
    }

    /// One PAUSE at the typical clock, ns: the lowest cost of its machines.
    #[must_use]
    pub fn pause_ns(&self) -> f64 {
        self.pause_cycles.0 / self.ghz
    }
}

impl Signature {
    fn matches(&self, vendor: &str, family: u32, model: u32, stepping: Option<u32>) -> bool {
        let (from, to) = self.steppings;
        self.vendor == vendor
            && self.family == family
            && (self.models.is_empty() || self.models.contains(&model))
            && stepping.is_none_or(|stepping| (from..=to).contains(&stepping))
    }
}

/// All known chips.
pub fn chips() -> impl Iterator<Item = &'static Chip> {
    ROWS.iter()
}

/// No chip has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no chip is called '{name}'{}",
    nearest.map_or(String::new(), |id| format!("; did you mean {id}?"))
)]
pub struct UnknownChip {
    /// The requested name.
    pub name: String,
    /// The most similar id.
    pub nearest: Option<&'static str>,
}

/// Finds a chip by name; case, hyphens, underscores and blanks do not matter.
///
/// # Errors
/// [`UnknownChip`], with the most similar one, if one is similar.
pub fn chip(name: &str) -> Result<&'static Chip, UnknownChip> {
    let normalised = normalise_name(name);
    let is_called = |chip: &&Chip| {
        normalise_name(chip.id) == normalised
            || chip
                .also
                .iter()
                .any(|also| normalise_name(also) == normalised)
    };
    chips().find(is_called).ok_or_else(|| UnknownChip {
        name: name.to_owned(),
        nearest: nearest_name(&name.to_lowercase(), chips().map(|chip| chip.id)),
    })
}

/// Finds the chips with a CPU's identity: none, one, or the kinds of core of a hybrid. There are
/// also several if the stepping matters but is unknown.
#[must_use]
pub fn find_chips(
    vendor: &str,
    family: u32,
    model: u32,
    stepping: Option<u32>,
) -> Vec<&'static Chip> {
    let matches = |chip: &&Chip| chip.signature.matches(vendor, family, model, stepping);
    chips().filter(matches).collect()
}

/// The number of chips whose PAUSE takes fewer cycles.
#[must_use]
pub fn count_cheaper_chips(pause_cycles: f64) -> usize {
    let cheaper = chips().filter(|chip| chip.pause_cycles.1 < pause_cycles);
    cheaper.count()
}

fn split_words(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split(' ').filter(|word| *word != "-")
}

/// Parses `1..2`, or one number for both ends.
fn parse_range<T: std::str::FromStr>(cell: &str) -> Option<(T, T)> {
    let (low, high) = cell.split_once("..").unwrap_or((cell, cell));
    Some((low.parse().ok()?, high.parse().ok()?))
}

fn normalise_name(name: &str) -> String {
    let kept = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    kept.collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests;
