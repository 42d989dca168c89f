//! Lists and masks of CPUs in the dialects of the tools.

use super::{MAX_PLACES, ReadError, error_at, parse_number};
use pinwise_topology::{CpuSet, Level, Topology};

/// `3`, `0-7`, and with strides `0-30:2`.
fn parse_range(piece: &str, knows_strides: bool) -> Result<Vec<usize>, ReadError> {
    let (range, stride) = match piece.split_once(':') {
        Some((range, stride)) if knows_strides => (range, parse_number(stride, piece)?),
        Some(_) => return Err(error_at(piece, "this tool does not support strides")),
        None => (piece, 1),
    };
    if stride == 0 {
        return Err(error_at(piece, "a stride is 1 or more"));
    }
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (parse_number(low, piece)?, parse_number(high, piece)?),
        None => (parse_number(range, piece)?, parse_number(range, piece)?),
    };
    if low > high {
        return Err(error_at(piece, "the range is reversed"));
    }
    Ok((low..=high).step_by(stride).collect())
}

fn split_pieces<'a>(text: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    text.split(separators)
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
}

/// The syntax of `taskset -c`: `0,5,8-11,0-30:2`.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_taskset_list(text: &str) -> Result<CpuSet, ReadError> {
    let mut set = CpuSet::new();
    for piece in split_pieces(text, &[',']) {
        parse_range(piece, true)?
            .into_iter()
            .for_each(|cpu| set.insert(cpu));
    }
    Ok(set)
}

/// The syntax of `numactl -C`: `0-3,8`, `all`, `!0-3` (all but these). `all` is what the process
/// may use. Nodes have the same syntax.
///
/// # Errors
/// [`ReadError`] names the piece; `+0-3`, relative to a cpuset, is refused.
pub(crate) fn parse_numactl_list(text: &str, all: &CpuSet) -> Result<CpuSet, ReadError> {
    if text.contains('+') {
        return Err(error_at(
            text,
            "numbers relative to a cpuset are not supported",
        ));
    }
    let (list, is_inverted) = match text.trim().strip_prefix('!') {
        Some(list) => (list, true),
        None => (text.trim(), false),
    };
    let mut set = CpuSet::new();
    for piece in split_pieces(list, &[',']) {
        if piece == "all" {
            set = set.union(all);
            continue;
        }
        parse_range(piece, false)?
            .into_iter()
            .for_each(|cpu| set.insert(cpu));
    }
    Ok(if is_inverted {
        all.difference(&set)
    } else {
        set
    })
}

/// The syntax of systemd: numbers and ranges separated by commas or blanks. Containers use the same
/// with commas.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_systemd_list(text: &str) -> Result<CpuSet, ReadError> {
    let mut set = CpuSet::new();
    for piece in split_pieces(text, &[',', ' ', '\t']) {
        parse_range(piece, false)?
            .into_iter()
            .for_each(|cpu| set.insert(cpu));
    }
    Ok(set)
}

/// libvirt's syntax: `0-7,^3`; an exclusion applies to what precedes it.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_libvirt_cpuset(text: &str) -> Result<CpuSet, ReadError> {
    let mut set = CpuSet::new();
    for piece in split_pieces(text, &[',']) {
        if let Some(out) = piece.strip_prefix('^') {
            set.remove(parse_number(out, piece)?);
            continue;
        }
        parse_range(piece, false)?
            .into_iter()
            .for_each(|cpu| set.insert(cpu));
    }
    Ok(set)
}

/// The syntax of `GOMP_CPU_AFFINITY`: `0 3 1-2 4-15:2`, in the order of threads.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_gomp_list(text: &str) -> Result<Vec<usize>, ReadError> {
    let mut order = Vec::new();
    for piece in split_pieces(text, &[',', ' ', '\t']) {
        order.extend(parse_range(piece, true)?);
        if order.len() > MAX_PLACES {
            return Err(error_at(piece, "the list is too long"));
        }
    }
    Ok(order)
}

/// The list after `KMP_AFFINITY`'s `proclist=`: `[7,4-6:2,{3,2}]`; in braces a set that a thread
/// may use.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_kmp_proclist(text: &str) -> Result<Vec<CpuSet>, ReadError> {
    let inner = text.trim().strip_prefix('[');
    let mut rest = inner
        .and_then(|inner| inner.strip_suffix(']'))
        .ok_or_else(|| error_at(text, "write a list in brackets: [0,2-3,{4,5}]"))?;
    let mut places = Vec::new();
    while !rest.is_empty() {
        let end;
        if let Some(set) = rest.strip_prefix('{') {
            let (set, after) = set
                .split_once('}')
                .ok_or_else(|| error_at(rest, "the brace is not closed"))?;
            places.push(parse_taskset_list(set)?);
            end = after;
        } else {
            let (piece, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            places.extend(parse_range(piece, true)?.into_iter().map(CpuSet::single));
            end = after;
        }
        if places.len() > MAX_PLACES {
            return Err(error_at(text, "the list is too long"));
        }
        rest = match end.strip_prefix(',') {
            Some(next) if !next.is_empty() => next,
            _ if end.is_empty() => end,
            _ => return Err(error_at(end, "a comma and another place are needed")),
        };
    }
    Ok(places)
}

/// The syntax of Slurm's `--cpu-bind` and `--mem-bind`: `map_cpu:0,2`, `mask_cpu:0x3,0xc`,
/// `mask_mem:0x1`; for each task its CPUs or nodes.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_slurm_binding(text: &str) -> Result<Vec<CpuSet>, ReadError> {
    let reason = "map_cpu:LIST, mask_cpu:MASKS, map_mem:LIST or mask_mem:MASKS is needed";
    let (kind, list) = text.split_once(':').ok_or_else(|| error_at(text, reason))?;
    let read = |piece: &str| match kind {
        "map_cpu" | "map_mem" => Ok(CpuSet::single(parse_number(piece, piece)?)),
        "mask_cpu" | "mask_mem" => parse_mask(piece),
        _ => Err(error_at(text, reason)),
    };
    list.split(',').map(str::trim).map(read).collect()
}

fn parse_mask(piece: &str) -> Result<CpuSet, ReadError> {
    CpuSet::parse_mask(piece)
        .map_err(|_| error_at(piece, "a hexadecimal mask such as 0x55 is needed"))
}

/// A location in `hwloc-bind`'s syntax: a mask, or `pu:0-3`, `core:2`, `numa:0`, `l3:1`,
/// `package:0` by hwloc's numbers, which count along the machine's tree.
///
/// # Errors
/// [`ReadError`] names the piece.
pub(crate) fn parse_hwloc_location(text: &str, topology: &Topology) -> Result<CpuSet, ReadError> {
    let Some((kind, numbers)) = text.split_once(':') else {
        return parse_mask(text);
    };
    let units = match kind.to_ascii_lowercase().as_str() {
        "pu" => list_in_tree_order(topology),
        "core" => topology.units(Level::Core),
        "numa" | "numanode" | "node" => topology.units(Level::Numa),
        "l3" | "l3cache" => topology.units(Level::Llc),
        "package" | "socket" => topology.units(Level::Package),
        _ => return Err(error_at(text, "pu, core, l3, numa or package is needed")),
    };
    if numbers == "all" {
        return Ok(CpuSet::union_of(units));
    }
    let mut set = CpuSet::new();
    for index in parse_range(numbers, false)? {
        let unit = units.get(index);
        set = set.union(unit.ok_or_else(|| error_at(text, "the machine does not have that many"))?);
    }
    Ok(set)
}

fn list_in_tree_order(topology: &Topology) -> Vec<CpuSet> {
    let mut order = Vec::new();
    topology.tree().walk(&mut |node, _| {
        if node.children.is_empty() {
            order.extend(node.cpus.iter().map(CpuSet::single));
        }
    });
    order
}
