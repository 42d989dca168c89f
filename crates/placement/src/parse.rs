//! Parses placement names.
//!
//! It checks syntax, not machines: `one-llc:9` is a valid name that may match nothing on this
//! machine.

use std::str::FromStr;

use super::{Branches, Kind, Locality, MemoryWish, Placement, Shape, Wish};
use pinwise_topology::{CpuSet, CpuSetError, Level};

/// A placement whose name takes no argument.
pub(super) struct PlainName {
    pub(super) name: &'static str,
    wish: Wish,
    /// Its meaning, in words.
    pub(super) meaning: &'static str,
}

impl PlainName {
    const fn new(name: &'static str, wish: Wish, meaning: &'static str) -> Self {
        Self {
            name,
            wish,
            meaning,
        }
    }

    /// The entry of a wish; `None` if its name takes an argument.
    pub(super) fn from_wish(wish: &Wish) -> Option<&'static Self> {
        PLAIN_NAMES.iter().find(|plain| plain.wish == *wish)
    }
}

static PLAIN_NAMES: [PlainName; 12] = [
    PlainName::new(
        "os-default",
        Wish::OsDefault,
        "All allowed CPUs, left to the scheduler",
    ),
    PlainName::new(
        "compact",
        Wish::Compact,
        "Adjacent CPUs: the siblings of a core first",
    ),
    PlainName::new("one-per-core", Wish::OnePerCore, "One CPU of each core"),
    PlainName::new(
        "one-per-llc",
        Wish::OnePerLlc,
        "One CPU of each last-level cache",
    ),
    PlainName::new(
        "one-per-numa",
        Wish::OnePerNuma,
        "One CPU of each NUMA node",
    ),
    PlainName::new("spread", Wish::Spread, "CPUs as far apart as possible"),
    PlainName::new(
        "balanced",
        Wish::Balanced,
        "Neighbouring cores, each used once before any second sibling",
    ),
    PlainName::new(
        "p-cores",
        Wish::PCores,
        "All CPUs of the fastest kind of core",
    ),
    PlainName::new(
        "e-cores",
        Wish::ECores,
        "All CPUs of the slowest kind of core",
    ),
    PlainName::new(
        "isolated",
        Wish::Isolated,
        "The isolated CPUs (of isolcpus or of a cpuset partition)",
    ),
    PlainName::new(
        "largest-llc",
        Wish::LargestLlc,
        "All CPUs of the largest last-level cache",
    ),
    PlainName::new(
        "best-core",
        Wish::BestCore,
        "One CPU of each core, those first that the firmware calls fastest",
    ),
];

/// Names that may be followed by the index of a unit.
const INDEXED_NAMES: [(&str, Level); 4] = [
    ("one-core", Level::Core),
    ("one-llc", Level::Llc),
    ("one-numa", Level::Numa),
    ("one-package", Level::Package),
];

/// Names that other tools use, with ours.
const OTHER_NAMES: [(&[&str], &str); 6] = [
    (&["core"], "one-core"),
    (&["llc", "l3", "l3cache", "cache", "one-l3"], "one-llc"),
    (&["numa", "node", "numanode", "one-node"], "one-numa"),
    (&["package", "socket", "one-socket"], "one-package"),
    (&["one-per-l3"], "one-per-llc"),
    (&["one-per-node"], "one-per-numa"),
];

/// Why a placement could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is empty.
    #[error("a placement is empty; write one such as os-default or cpu:0")]
    Empty,
    /// No placement has this name.
    #[error("'{name}' is not a placement{}", suggest(nearest))]
    Unknown {
        /// The given name.
        name: String,
        /// A similar known name.
        nearest: Option<String>,
    },
    /// A placement takes no argument, or another one.
    #[error("'{text}': {reason}")]
    Argument {
        /// The whole placement.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The CPU list or mask cannot be read.
    #[error("'{text}': {reason}")]
    Cpus {
        /// The whole placement.
        text: String,
        /// Why.
        reason: CpuSetError,
    },
}

fn suggest(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!("; did you mean '{name}'?"),
        None => format!("; known are {}", known_names().join(", ")),
    }
}

/// The names of placements, with the form of their arguments.
#[must_use]
pub fn known_names() -> Vec<&'static str> {
    let plain = PLAIN_NAMES.iter().map(|plain| plain.name);
    let one = INDEXED_NAMES.iter().map(|(name, _)| *name);
    plain
        .chain(one)
        .chain([
            "cpu:LIST",
            "mask:HEX",
            "near:DEVICE",
            "far:DEVICE",
            "shape:LEVEL=N,…",
            "tree:…",
        ])
        .collect()
}

impl FromStr for Placement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let mut parts = text.split('/');
        let head = parts.next().unwrap_or_default();
        let mut kind = Kind::Confined;
        let mut memory = None;
        let (head, count) = parse_count(text, head)?;
        let mut locality = parse_locality(text, head)?;
        let is_head_locality = locality.is_some();
        for part in parts {
            let near = parse_locality(text, part)?;
            if near.is_some() && locality.is_some() {
                return Err(invalid_argument(text, "one near: or far: is enough"));
            }
            match part {
                "bound" => kind = Kind::Bound,
                _ if near.is_some() => locality = near,
                _ if memory.is_some() => return Err(invalid_argument(text, "one /mem= is enough")),
                part => memory = Some(parse_memory(text, part)?),
            }
        }
        if head.is_empty() {
            return Err(ParseError::Empty);
        }
        let wish = match is_head_locality {
            true => Wish::Compact,
            false => parse_wish(text, head)?,
        };
        // `os-default/near:gpu0` is a mask, so it is no longer the scheduler's default.
        let wish = match (&locality, wish) {
            (Some(_), Wish::OsDefault) => Wish::Compact,
            (_, wish) => wish,
        };
        if locality.is_some() && matches!(wish, Wish::Cpus(_) | Wish::Mask(_)) {
            return Err(invalid_argument(
                text,
                "near: and far: cannot be combined with named CPUs",
            ));
        }
        let has_own_count = match &wish {
            Wish::Cpus(_) | Wish::Mask(_) | Wish::OsDefault | Wish::Tree(_) => true,
            Wish::Shape(shape) => shape.cpus.is_some(),
            _ => false,
        };
        if count.is_some() && has_own_count {
            return Err(invalid_argument(
                text,
                "*N cannot be used with this placement",
            ));
        }
        Ok(Self {
            wish,
            count,
            kind,
            locality,
            memory,
        })
    }
}

/// `near:DEVICE` or `far:DEVICE`; `None` for anything else.
fn parse_locality(text: &str, part: &str) -> Result<Option<Locality>, ParseError> {
    let (word, device) = part.split_once(':').unwrap_or((part, ""));
    let is_near = match word {
        "near" => true,
        "far" => false,
        _ => return Ok(None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || ":._-@".contains(c);
    if device.is_empty() || !device.chars().all(is_name) {
        let reason = "after near: and far: comes one device as `pinwise topology` lists it \
                      (gpu0, eth0, nvme0n1, pci:0000:41:00.0), and *N before /near:";
        return Err(invalid_argument(text, reason));
    }
    Ok(Some(Locality {
        is_near,
        device: device.to_owned(),
    }))
}

fn invalid_argument(text: &str, reason: &str) -> ParseError {
    ParseError::Argument {
        text: text.to_owned(),
        reason: reason.to_owned(),
    }
}

fn parse_memory(text: &str, part: &str) -> Result<MemoryWish, ParseError> {
    let Some(wish) = part.strip_prefix("mem=") else {
        let reason = format!(
            "'/{part}' is not known; write /bound, /near:DEVICE, /far:DEVICE or /mem=POLICY"
        );
        return Err(invalid_argument(text, &reason));
    };
    wish.parse().map_err(|error| match error {
        ParseError::Argument { reason, .. } => {
            invalid_argument(text, &format!("'/{part}': {reason}"))
        }
        other => other,
    })
}

fn parse_count<'a>(text: &str, head: &'a str) -> Result<(&'a str, Option<usize>), ParseError> {
    let Some((head, count)) = head.split_once('*') else {
        return Ok((head, None));
    };
    match count.parse() {
        Ok(count) if count > 0 => Ok((head, Some(count))),
        _ => Err(invalid_argument(
            text,
            "write the number of CPUs to use after *",
        )),
    }
}

fn parse_wish(text: &str, head: &str) -> Result<Wish, ParseError> {
    let (name, value) = match head.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (head, None),
    };
    let invalid_cpus = |reason| ParseError::Cpus {
        text: text.to_owned(),
        reason,
    };
    match (name, value) {
        // As in taskset and numactl.
        (list, None) if list.starts_with(|c: char| c.is_ascii_digit()) => {
            require_cpus(text, CpuSet::parse_list(list).map_err(invalid_cpus)?).map(Wish::Cpus)
        }
        ("cpu" | "cpus", Some(list)) => {
            require_cpus(text, CpuSet::parse_list(list).map_err(invalid_cpus)?).map(Wish::Cpus)
        }
        ("mask", Some(mask)) => {
            require_cpus(text, CpuSet::parse_mask(mask).map_err(invalid_cpus)?).map(Wish::Mask)
        }
        ("cpu" | "cpus", None) => Err(invalid_argument(text, "write the CPUs after it: cpu:0,2-4")),
        ("mask", None) => Err(invalid_argument(text, "write the mask after it: mask:0x55")),
        ("tree", None | Some("")) => Err(invalid_argument(
            text,
            "write the units to use after it: tree:2l.4c.1t (2 LLCs, 4 cores in each, 1 CPU per core)",
        )),
        ("tree", Some(value)) => Branches::parse(value)
            .map(Wish::Tree)
            .map_err(|reason| invalid_argument(text, &reason)),
        ("shape", value) => parse_shape(text, value.unwrap_or_default()).map(Wish::Shape),
        _ => parse_named(text, name, value),
    }
}

fn require_cpus(text: &str, set: CpuSet) -> Result<CpuSet, ParseError> {
    if set.is_empty() {
        return Err(invalid_argument(text, "it names no CPU"));
    }
    Ok(set)
}

fn parse_named(text: &str, name: &str, value: Option<&str>) -> Result<Wish, ParseError> {
    if let Some((_, level)) = INDEXED_NAMES.iter().find(|(known, _)| *known == name) {
        let index = match value {
            None => 0,
            Some(value) => value.parse().map_err(|_| {
                invalid_argument(text, "write the index of the unit after :, from 0")
            })?,
        };
        return Ok(Wish::One(*level, index));
    }
    if let Some(plain) = PLAIN_NAMES.iter().find(|plain| plain.name == name) {
        return match value {
            None => Ok(plain.wish.clone()),
            Some(_) => Err(invalid_argument(text, &format!("{name} takes no argument"))),
        };
    }
    let others = OTHER_NAMES.iter().find(|(names, _)| names.contains(&name));
    let similar = PLAIN_NAMES
        .iter()
        .map(|plain| plain.name)
        .chain(INDEXED_NAMES.iter().map(|(known, _)| *known))
        .chain(["cpu", "mask", "near", "far", "shape", "tree"])
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity > 0.75)
        .map(|(_, known)| known);
    let nearest = others.map(|(_, known)| *known).or(similar);
    let with_value = |name: &str| match value {
        Some(value) => format!("{name}:{value}"),
        None => name.to_owned(),
    };
    Err(ParseError::Unknown {
        name: with_value(name),
        nearest: nearest.map(with_value),
    })
}

fn parse_shape(text: &str, value: &str) -> Result<Shape, ParseError> {
    let mut shape = Shape::default();
    for part in value.split(',').filter(|part| !part.is_empty()) {
        let (key, number) = part.split_once('=').ok_or_else(|| {
            invalid_argument(text, &format!("'{part}' is not LEVEL=N such as core=8"))
        })?;
        let number = number
            .parse::<usize>()
            .ok()
            .filter(|&n| n > 0)
            .ok_or_else(|| {
                invalid_argument(text, &format!("'{part}' needs a number of at least 1"))
            })?;
        let field = match key {
            "pkg" | "package" => &mut shape.packages,
            "numa" => &mut shape.numa_nodes,
            "llc" => &mut shape.llcs,
            "core" => &mut shape.cores,
            "cpu" => &mut shape.cpus,
            "smt" => &mut shape.cpus_per_core,
            _ => {
                let reason =
                    format!("'{key}' is not a level of a shape (pkg, numa, llc, core, cpu, smt)");
                return Err(invalid_argument(text, &reason));
            }
        };
        if field.replace(number).is_some() {
            return Err(invalid_argument(text, &format!("'{key}' is given twice")));
        }
    }
    if shape.cpus.is_some() && shape.cpus_per_core.is_some() {
        return Err(invalid_argument(
            text,
            "cpu=N (in total) and smt=N (per core) exclude each other",
        ));
    }
    if shape == Shape::default() {
        return Err(invalid_argument(
            text,
            "write the units to use after it: shape:llc=2,core=8,smt=1",
        ));
    }
    Ok(shape)
}
