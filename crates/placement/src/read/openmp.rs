//! `OMP_PLACES`, by OpenMP 5.2, section 21.1.6.

use super::{MAX_PLACES, ReadError, error_at, parse_number};
use pinwise_topology::{CpuSet, Level, Topology};

/// Reads places: `{0,1}:4:2,{9}`, `!{3}` (without this one), or a name with a number, `cores(4)`,
/// for units of the machine.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_omp_places(text: &str, topology: &Topology) -> Result<Vec<CpuSet>, ReadError> {
    let text = text.trim();
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return list_abstract_places(text, topology);
    }
    let mut places: Vec<CpuSet> = Vec::new();
    for piece in split_outside_braces(text) {
        match piece.strip_prefix('!') {
            Some(out) => {
                let out = parse_place(out)?.0;
                places.retain(|known| *known != out);
            }
            None => places.extend(parse_interval(piece)?),
        }
        if places.len() > MAX_PLACES {
            return Err(error_at(text, "too many places"));
        }
    }
    Ok(places)
}

fn list_abstract_places(text: &str, topology: &Topology) -> Result<Vec<CpuSet>, ReadError> {
    let (name, count) = match text.split_once('(') {
        Some((name, count)) => {
            let count = count
                .strip_suffix(')')
                .ok_or_else(|| error_at(text, "the parenthesis is not closed"))?;
            (name, Some(parse_number(count.trim(), text)?))
        }
        None => (text, None),
    };
    let level = match name.trim().to_ascii_lowercase().as_str() {
        "threads" => Level::Cpu,
        "cores" => Level::Core,
        "ll_caches" => Level::Llc,
        "numa_domains" => Level::Numa,
        "sockets" => Level::Package,
        _ => {
            return Err(error_at(
                text,
                "threads, cores, ll_caches, numa_domains or sockets is needed",
            ));
        }
    };
    let mut units = topology.allowed_units(level);
    units.truncate(count.unwrap_or(units.len()));
    Ok(units)
}

/// Splits at commas outside braces.
fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

/// A place in braces, and the text after it.
fn parse_place(piece: &str) -> Result<(CpuSet, &str), ReadError> {
    let inner = piece.trim().strip_prefix('{');
    let (inner, rest) = inner
        .and_then(|inner| inner.split_once('}'))
        .ok_or_else(|| error_at(piece, "write a place in braces: {0,1}"))?;
    let mut set = CpuSet::new();
    for part in inner.split(',').map(str::trim) {
        if let Some(out) = part.strip_prefix('!') {
            set.remove(parse_number(out, part)?);
            continue;
        }
        let mut words = part.split(':');
        let first = parse_number(words.next().unwrap_or_default().trim(), part)?;
        for cpu in parse_progression(first, &mut words, part)? {
            set.insert(cpu);
        }
    }
    Ok((set, rest))
}

/// `{0,1}:4:2`: the place and its copies, each shifted by the stride.
fn parse_interval(piece: &str) -> Result<Vec<CpuSet>, ReadError> {
    let (first, rest) = parse_place(piece)?;
    if rest.is_empty() {
        return Ok(vec![first]);
    }
    let rest = rest
        .trim()
        .strip_prefix(':')
        .ok_or_else(|| error_at(piece, "write :COUNT or :COUNT:STRIDE after a place"))?;
    let mut words = rest.split(':');
    // A stride may be negative: it is counted from the lowest CPU of the place.
    let low = first.first().unwrap_or_default();
    let mut places = Vec::new();
    for start in parse_range(low, &mut words, piece)? {
        let shifted = first.iter().map(|cpu| start + (cpu - low));
        let shifted: Vec<usize> = shifted.collect();
        if shifted.iter().any(|&cpu| cpu > CpuSet::MAX_CPU) {
            return Err(error_at(
                piece,
                "it reaches beyond the largest CPU supported",
            ));
        }
        places.push(shifted.into_iter().collect());
    }
    Ok(places)
}

/// `first`, or this many with `:COUNT[:STRIDE]`.
fn parse_progression<'a>(
    first: usize,
    words: &mut impl Iterator<Item = &'a str>,
    piece: &str,
) -> Result<Vec<usize>, ReadError> {
    let mut words = words.peekable();
    if words.peek().is_none() {
        return Ok(vec![first]);
    }
    parse_range(first, &mut words, piece)
}

fn parse_range<'a>(
    first: usize,
    words: &mut impl Iterator<Item = &'a str>,
    piece: &str,
) -> Result<Vec<usize>, ReadError> {
    let count = parse_number(words.next().unwrap_or_default().trim(), piece)?;
    let (is_down, stride) = match words.next().map(str::trim) {
        None => (false, 1),
        Some(word) => match word.strip_prefix('-') {
            Some(word) => (true, parse_number(word, piece)?),
            None => (false, parse_number(word, piece)?),
        },
    };
    if words.next().is_some() || count == 0 || stride == 0 {
        return Err(error_at(
            piece,
            "a count of at least 1 and one stride are needed",
        ));
    }
    let step = |index: usize| {
        let distance = index.checked_mul(stride)?;
        let number = if is_down {
            first.checked_sub(distance)?
        } else {
            first.checked_add(distance)?
        };
        (number <= CpuSet::MAX_CPU).then_some(number)
    };
    let numbers: Option<Vec<usize>> = (0..count).map(step).collect();
    numbers.ok_or_else(|| error_at(piece, "it reaches beyond the CPUs supported"))
}
