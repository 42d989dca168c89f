//! Machines from a description in hwloc's synthetic syntax:
//! `package:2 l3:2(size=32MB) core:4 pu:2`.
//!
//! Each word is a level and its number of units in every unit of the level before; `[numa]` puts a
//! NUMA node on every unit of the level before it. Attributes: `size` of caches, `memory` of NUMA
//! nodes, `indexes` of `pu` (a list of operating-system numbers in the order of the tree). hwloc's
//! other attributes and unnamed levels are refused rather than guessed.

use std::collections::BTreeMap;

use super::build::{CpuFacts, Facts, MAX_NODES, NodeFacts};
use super::{Cache, CacheType, CpuSet, Identity};

/// Why a synthetic description was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntheticError {
    /// There is no level at all, or the last is not `pu`.
    #[error("a description must end with the CPUs of each core or cache, such as pu:2")]
    NoPu,
    /// A word is not `level:count`.
    #[error("'{0}' is not a level with a count, such as core:4")]
    NotALevel(String),
    /// A level's name is unknown.
    #[error("'{0}' is not a level (known: package, die, numa, group, l1 to l5, core, pu)")]
    UnknownLevel(String),
    /// A count is zero or not a number.
    #[error("'{0}' needs a count of at least 1")]
    BadCount(String),
    /// A level comes after `pu`, or twice.
    #[error("'{0}' is given twice or below pu")]
    Misplaced(String),
    /// An attribute is unknown or cannot be read.
    #[error(
        "the attribute '{0}' is not understood (known: size=32MB, memory=16GB, indexes=0,2,1,3)"
    )]
    BadAttribute(String),
    /// Parentheses or brackets do not match.
    #[error("'{0}' has an unmatched parenthesis or bracket")]
    Unbalanced(String),
    /// More CPUs than can be described.
    #[error("the description has more than {max} CPUs", max = CpuSet::MAX_CPU)]
    TooLarge,
    /// More NUMA nodes than any system has.
    #[error("the description has more than {MAX_NODES} NUMA nodes")]
    TooManyNodes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Machine, die, group: multiplies the units inside, but is no level of a topology.
    Other,
    Package,
    Numa,
    Cache(u8, CacheType),
    Core,
    Pu,
}

#[derive(Debug)]
struct LevelSpec {
    kind: Kind,
    /// Units of this level in the whole machine.
    units: usize,
    bytes: Option<u64>,
}

impl Facts {
    /// Parses a synthetic description into facts that can still be changed.
    ///
    /// # Errors
    /// [`SyntheticError`] names the invalid word.
    pub fn from_synthetic(description: &str) -> Result<Self, SyntheticError> {
        parse(description)
    }
}

pub(super) fn parse(description: &str) -> Result<Facts, SyntheticError> {
    let mut levels: Vec<LevelSpec> = Vec::new();
    let mut units = 1usize;
    let mut indexes = None;
    for word in split_words(description)? {
        if levels.last().is_some_and(|level| level.kind == Kind::Pu) {
            return Err(SyntheticError::Misplaced(word));
        }
        if let Some(memory) = word.strip_prefix('[') {
            levels.push(parse_attached_memory(memory.trim_end_matches(']'), units)?);
            continue;
        }
        let (name, count, attributes) = split_level(&word)?;
        let kind = parse_kind(name)?;
        let is_repeat = kind != Kind::Other && levels.iter().any(|level| level.kind == kind);
        if is_repeat {
            return Err(SyntheticError::Misplaced(word.clone()));
        }
        units = units
            .checked_mul(count)
            .filter(|&units| units <= CpuSet::MAX_CPU)
            .ok_or(SyntheticError::TooLarge)?;
        let parsed = parse_attributes(attributes, kind)?;
        indexes = parsed.indexes.or(indexes);
        levels.push(LevelSpec {
            kind,
            units,
            bytes: parsed.bytes,
        });
    }
    if levels.last().is_none_or(|level| level.kind != Kind::Pu) {
        return Err(SyntheticError::NoPu);
    }
    let nodes = levels.iter().filter(|level| level.kind == Kind::Numa);
    if nodes.map(|level| level.units).sum::<usize>() > MAX_NODES {
        return Err(SyntheticError::TooManyNodes);
    }
    let numbers = check_cpu_numbers(indexes, units)?;
    Ok(build_facts(description, &levels, &numbers))
}

/// Splits at white space outside parentheses and brackets.
fn split_words(description: &str) -> Result<Vec<String>, SyntheticError> {
    let mut words = vec![String::new()];
    let mut open: Vec<char> = Vec::new();
    let unbalanced = || SyntheticError::Unbalanced(description.trim().to_owned());
    for c in description.chars() {
        match c {
            '(' | '[' => open.push(c),
            ')' if open.pop() != Some('(') => return Err(unbalanced()),
            ']' if open.pop() != Some('[') => return Err(unbalanced()),
            _ => {}
        }
        if c.is_whitespace() && open.is_empty() {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    if !open.is_empty() {
        return Err(unbalanced());
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

fn split_level(word: &str) -> Result<(&str, usize, &str), SyntheticError> {
    let (head, attributes) = match word.split_once('(') {
        Some((head, rest)) => (head, rest.trim_end_matches(')')),
        None => (word, ""),
    };
    let (name, count) = head
        .split_once(':')
        .ok_or_else(|| SyntheticError::NotALevel(word.to_owned()))?;
    let count = count
        .parse::<usize>()
        .ok()
        .filter(|&count| count > 0)
        .ok_or_else(|| SyntheticError::BadCount(word.to_owned()))?;
    Ok((name, count, attributes))
}

fn parse_kind(name: &str) -> Result<Kind, SyntheticError> {
    let lower = name.to_ascii_lowercase();
    Ok(match lower.as_str() {
        "machine" | "system" | "die" | "group" | "cluster" => Kind::Other,
        "package" | "pack" | "pkg" | "socket" => Kind::Package,
        "numa" | "numanode" | "node" => Kind::Numa,
        "core" => Kind::Core,
        "pu" => Kind::Pu,
        _ => {
            let unknown = || SyntheticError::UnknownLevel(name.to_owned());
            let rest = lower.strip_prefix('l').ok_or_else(unknown)?;
            let (digit, suffix) = rest.split_at_checked(1).ok_or_else(unknown)?;
            let level = digit
                .parse::<u8>()
                .ok()
                .filter(|level| (1..=5).contains(level))
                .ok_or_else(unknown)?;
            let content = match suffix {
                "" | "cache" if level == 1 => CacheType::Data,
                "" | "cache" | "u" | "ucache" => CacheType::Unified,
                "d" | "dcache" => CacheType::Data,
                "i" | "icache" => CacheType::Instruction,
                _ => return Err(unknown()),
            };
            Kind::Cache(level, content)
        }
    })
}

fn parse_attached_memory(text: &str, units: usize) -> Result<LevelSpec, SyntheticError> {
    let (name, attributes) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')')),
        None => (text, ""),
    };
    if parse_kind(name)? != Kind::Numa {
        return Err(SyntheticError::UnknownLevel(format!("[{text}]")));
    }
    Ok(LevelSpec {
        kind: Kind::Numa,
        units,
        bytes: parse_attributes(attributes, Kind::Numa)?.bytes,
    })
}

#[derive(Default)]
struct Attributes {
    bytes: Option<u64>,
    indexes: Option<Vec<usize>>,
}

fn parse_attributes(text: &str, kind: Kind) -> Result<Attributes, SyntheticError> {
    let mut parsed = Attributes::default();
    for attribute in text.split_whitespace() {
        let invalid = || SyntheticError::BadAttribute(attribute.to_owned());
        let (key, value) = attribute.split_once('=').ok_or_else(invalid)?;
        match (key, kind) {
            ("size", Kind::Cache(..)) | ("memory", Kind::Numa) => {
                parsed.bytes = Some(parse_bytes(value).ok_or_else(invalid)?);
            }
            ("indexes", Kind::Pu) => {
                let numbers = value.split(',').map(|n| n.trim().parse::<usize>());
                parsed.indexes = Some(numbers.collect::<Result<_, _>>().map_err(|_| invalid())?);
            }
            _ => return Err(invalid()),
        }
    }
    Ok(parsed)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn check_cpu_numbers(
    indexes: Option<Vec<usize>>,
    cpus: usize,
) -> Result<Vec<usize>, SyntheticError> {
    let Some(numbers) = indexes else {
        return Ok((0..cpus).collect());
    };
    let distinct: CpuSet = numbers.iter().copied().collect();
    if numbers.len() != cpus || distinct.len() != cpus {
        return Err(SyntheticError::BadAttribute(format!(
            "indexes= (it must name {cpus} different CPUs)"
        )));
    }
    Ok(numbers)
}

fn build_facts(description: &str, levels: &[LevelSpec], numbers: &[usize]) -> Facts {
    let split_into = |units: usize| -> Vec<CpuSet> {
        numbers
            .chunks(numbers.len() / units)
            .map(|chunk| chunk.iter().copied().collect())
            .collect()
    };
    let mut facts = Facts {
        identity: Identity {
            hostname: Some("simulated".to_owned()),
            cpu_model: Some(format!("simulated '{}'", description.trim())),
            ..Identity::default()
        },
        cpus: numbers.iter().map(|&id| (id, new_online_cpu(id))).collect(),
        ..Facts::default()
    };
    let is_ignored = |level: &LevelSpec| matches!(level.kind, Kind::Other | Kind::Pu);
    for level in levels.iter().filter(|level| !is_ignored(level)) {
        let sets = split_into(level.units);
        match level.kind {
            Kind::Other | Kind::Pu => {}
            Kind::Package => set_units(&mut facts.cpus, sets, |cpu, set| cpu.package = Some(set)),
            Kind::Core => set_units(&mut facts.cpus, sets, |cpu, set| cpu.core = Some(set)),
            Kind::Cache(number, kind) => {
                facts.caches.extend(sets.into_iter().map(|cpus| Cache {
                    level: number,
                    kind,
                    size_bytes: level.bytes,
                    cpus,
                }));
            }
            Kind::Numa => {
                let nodes = sets.into_iter().enumerate();
                facts.nodes.extend(nodes.map(|(node, cpus)| NodeFacts {
                    node,
                    cpus,
                    memory_bytes: level.bytes,
                    ..NodeFacts::default()
                }));
            }
        }
    }
    facts
}

fn new_online_cpu(id: usize) -> CpuFacts {
    CpuFacts {
        online: true,
        core: Some(CpuSet::single(id)),
        ..CpuFacts::default()
    }
}

fn set_units(
    cpus: &mut BTreeMap<usize, CpuFacts>,
    sets: Vec<CpuSet>,
    set_field: impl Fn(&mut CpuFacts, CpuSet),
) {
    for set in sets {
        for id in set.iter() {
            if let Some(cpu) = cpus.get_mut(&id) {
                set_field(cpu, set.clone());
            }
        }
    }
}
