//! `tree:…` describes any placement, as numbers of units nested in larger units.
//!
//! ```text
//! tree:2l.4c.1t              2 LLCs with 4 cores each, 1 CPU on each core
//! tree:1l.4c.1t+.1c.2t+1l    1 LLC with 4 cores of 1 CPU and 1 core of 2, and
//!                            a whole other LLC
//! tree:2cP.1t+3cE            2 P cores with 1 CPU each, 3 whole E cores
//! ```
//!
//! `.` goes into a unit, `+` starts the next one; each leading dot goes one level down in the units
//! written before. Levels are `p`ackage, `n`ode of memory, `l`ast-level cache, `c`ore and `t`, a
//! CPU (hardware thread). A unit with nothing inside is used in full. Capitals after a level
//! distinguish unequal units: a kind of core, or `A` for the largest, `B` and so on. Which units
//! these are depends on the machine. No character needs quoting in a shell.

use std::fmt;

use pinwise_topology::Level;

/// Several units of one level that are used alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The number of units.
    pub units: usize,
    /// Their level.
    pub level: Level,
    /// The class of that level, if there are several.
    pub class: Option<String>,
    /// What is used inside each unit; empty: all of it.
    pub below: Vec<Self>,
}

/// A placement as a tree of used units.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Branches(pub Vec<Branch>);

/// No machine's tree is deeper: NUMA nodes may nest, and Linux has at most 1,024.
const MAX_DEPTH: usize = 1030;
/// Limits the numbers of units in a text; no machine comes close.
const MAX_UNITS: usize = 1_000_000;

impl Branches {
    /// Parses the text after `tree:`.
    ///
    /// # Errors
    /// The sentence names the invalid part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut branches = Self::default();
        for path in text.split('+') {
            let inside = path.trim_start_matches('.');
            let depth = path.len() - inside.len();
            let mut open = &mut branches.0;
            for _ in 0..depth {
                open = match open.last_mut() {
                    Some(last) => &mut last.below,
                    None => {
                        return Err(format!(
                            "'{path}' begins with more dots than units are open"
                        ));
                    }
                };
            }
            if depth > 0 && open.is_empty() {
                return Err(format!("'{path}' goes into a unit that is used in full"));
            }
            for (further, word) in inside.split('.').enumerate() {
                if depth + further >= MAX_DEPTH {
                    return Err(format!("'{path}' has more levels than a machine"));
                }
                open.push(parse_branch(word)?);
                let last = open.len() - 1;
                open = &mut open[last].below;
            }
        }
        Ok(branches)
    }
}

/// Parses one word: number, level, class.
fn parse_branch(word: &str) -> Result<Branch, String> {
    let invalid = || format!("'{word}' is not a number of units such as 2l, 4c or 1t");
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = word.split_at(digits);
    let units = number.parse().ok().filter(|n| (1..=MAX_UNITS).contains(n));
    let units = units.ok_or_else(invalid)?;
    let mut letters = rest.chars();
    let level = letters
        .next()
        .and_then(level_from_letter)
        .ok_or_else(invalid)?;
    let class = letters.as_str();
    if !class
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    {
        return Err(invalid());
    }
    Ok(Branch {
        units,
        level,
        class: (!class.is_empty()).then(|| class.to_owned()),
        below: Vec::new(),
    })
}

/// The letter of a level.
#[must_use]
pub(super) const fn level_letter(level: Level) -> char {
    match level {
        Level::Package => 'p',
        Level::Numa => 'n',
        Level::Llc => 'l',
        Level::Core => 'c',
        Level::Cpu => 't',
    }
}

fn level_from_letter(wanted: char) -> Option<Level> {
    let mut levels = Level::ALL.into_iter();
    levels.find(|&level| level_letter(level) == wanted)
}

impl fmt::Display for Branches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_branches(&self.0, 0, out)
    }
}

fn write_branches(branches: &[Branch], depth: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, branch) in branches.iter().enumerate() {
        if index > 0 {
            write!(out, "+{}", ".".repeat(depth))?;
        }
        write!(out, "{}{}", branch.units, level_letter(branch.level))?;
        out.write_str(branch.class.as_deref().unwrap_or_default())?;
        if !branch.below.is_empty() {
            out.write_str(".")?;
            write_branches(&branch.below, depth + 1, out)?;
        }
    }
    Ok(())
}
