//! The loops with spin-wait hints in binaries, as text.

use std::collections::HashMap;

use crate::style::{Palette, paragraph, shorten, visible};
use pinwise_format::{bytes, count, count_of, grouped, nanoseconds};
use pinwise_record::{GapOnChip, ScannedLoop, SpinKind, SpinScan};

/// Functions of equal loops that are named.
const MAX_FUNCTIONS: usize = 6;

/// Failing loops that the verdict names.
const MAX_FAILING_LOOPS: usize = 4;

/// The loops file by file, then the verdict on the limit.
#[must_use]
pub fn spin_scan(record: &SpinScan, palette: Palette) -> String {
    let mut text = String::new();
    for (index, binary) in record.binaries.iter().enumerate() {
        let loops: Vec<&ScannedLoop> = list_loops_of_file(record, index);
        text += &palette.strong(&paragraph("", "  ", &visible(&binary.path)));
        text += "\n";
        text += &paragraph("  ", "  ", &summary(record, index, loops.len()));
        text += "\n\n";
        for equal in group_equal(&loops, record.cpus) {
            text += &show_loops(&equal, record.cpus, palette);
            text += "\n";
        }
    }
    if record.loops.is_empty() || !record.loops.iter().all(has_deadline) {
        text += &paragraph("", "  ", &costs(record));
        text += "\n";
    }
    if let Some(verdict) = verdict(record) {
        let verdict = paragraph("", "  ", &verdict);
        text += &match record.passed {
            Some(true) => palette.good(&verdict),
            _ => palette.bad(&verdict),
        };
        text += "\n";
    }
    text + &palette.record_line(&record.id)
}

/// A file's loops: those that fail first, then by how long they are blind.
fn list_loops_of_file(record: &SpinScan, index: usize) -> Vec<&ScannedLoop> {
    let of_file = record.loops.iter().filter(|one| one.binary == index);
    let mut loops: Vec<&ScannedLoop> = of_file.collect();
    loops.sort_by_key(|one| {
        let gap = one.gap_hints.unwrap_or(0);
        (one.fails != Some(true), std::cmp::Reverse(gap))
    });
    loops
}

fn summary(record: &SpinScan, index: usize, loops: usize) -> String {
    let binary = &record.binaries[index];
    let mut text = format!(
        "{}, {} of code: {} and {} that {}",
        binary.arch,
        bytes(binary.code_bytes as f64),
        count_of(binary.hints, "spin-wait hint", "spin-wait hints"),
        count(loops, "loop"),
        if loops == 1 { "waits" } else { "wait" },
    );
    if binary.hint_functions > 0 {
        let functions = count_of(binary.hint_functions, "function", "functions");
        text += &format!("; {functions} of hints only");
    }
    if binary.hints_outside_loops > 0 {
        text += &format!("; {} in no loop", binary.hints_outside_loops);
    }
    text + "."
}

/// Groups loops with the same description, in the order of the first of each: a lock that is
/// inlined everywhere is listed once.
fn group_equal<'l>(loops: &[&'l ScannedLoop], cpus: u64) -> Vec<Vec<&'l ScannedLoop>> {
    let mut groups: Vec<Vec<&ScannedLoop>> = Vec::new();
    let mut known = HashMap::new();
    for one in loops {
        let key = (one.fails, words(one, cpus, false), algorithm(one));
        let at = *known.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// "and 812 more in lock (3), unlock and 240 more functions"
fn name_more(more: &[&ScannedLoop]) -> Option<String> {
    let mut functions: Vec<(&str, usize)> = Vec::new();
    let mut places = HashMap::new();
    for one in more {
        let name = one.function.as_deref().unwrap_or("no symbol");
        let at = *places.entry(name).or_insert(functions.len());
        match functions.get_mut(at) {
            Some((_, count)) => *count += 1,
            None => functions.push((name, 1)),
        }
    }
    let shown = functions.iter().take(MAX_FUNCTIONS).map(|(name, loops)| {
        let name = shorten(name, 52);
        match loops {
            1 => name,
            many => format!("{name} ({many})"),
        }
    });
    let mut named: Vec<String> = shown.collect();
    if functions.len() > MAX_FUNCTIONS {
        let rest = functions.len() - MAX_FUNCTIONS;
        named.push(count(rest, "more function"));
    }
    let many = grouped(more.len() as u64);
    (!more.is_empty()).then(|| format!("and {many} more of the same in {}", named.join(", ")))
}

fn show_loops(equal: &[&ScannedLoop], cpus: u64, palette: Palette) -> String {
    let Some((one, more)) = equal.split_first() else {
        return String::new();
    };
    let place = match (&one.function, one.offset) {
        (Some(name), Some(offset)) => format!("{}+{offset:#x}", shorten(name, 52)),
        _ => "no symbol".to_owned(),
    };
    let head = format!("  {:<12} {place}", one.address);
    let head = if one.fails == Some(true) {
        palette.bad(&head)
    } else {
        palette.strong(&head)
    };
    let mut text = format!("{head}\n");
    let clauses = [
        Some(words(one, cpus, more.is_empty())),
        algorithm(one),
        name_more(more),
    ];
    for line in clauses.into_iter().flatten() {
        text += &paragraph("    ", "    ", &line);
        text += "\n";
    }
    text
}

/// What it is known as.
fn algorithm(one: &ScannedLoop) -> Option<String> {
    let first = one.algorithms.first()?;
    Some(format!(
        "{} ({}): {}",
        first.id, first.strength, first.reason
    ))
}

/// What it does, and how long it does not look; for one loop alone with the address of the loop
/// around it.
fn words(one: &ScannedLoop, cpus: u64, is_alone: bool) -> String {
    let does = match (&one.kind, &one.outer) {
        (SpinKind::Polling, _) => "Looks and hints".to_owned(),
        (SpinKind::BlindDelay, Some(outer)) if is_alone => {
            format!(
                "Hints blindly, inside the loop at {} that looks",
                outer.address
            )
        }
        (SpinKind::BlindDelay, Some(_)) => "Hints blindly, inside a loop that looks".to_owned(),
        (SpinKind::BlindDelay, None) => "Hints blindly; no loop around it looks".to_owned(),
        (SpinKind::Yielding, _) => "Yields the CPU, and hints".to_owned(),
        _ => "Does much else, and hints".to_owned(),
    };
    let between = match (&one.kind, &one.outer) {
        (SpinKind::BlindDelay, None) => "in a row",
        _ => "between looks",
    };
    if has_deadline(one) {
        return format!(
            "{does}. A hint lasts until a deadline that the program computes (TPAUSE, UMWAIT, WFET): the blind gap is that time, unknown here."
        );
    }
    let Some(hints) = one.gap_hints else {
        if let (Some(row), Some(range)) = (&one.gap_from, range(&one.gaps)) {
            return format!(
                "{does}; how often {between} is not in the code. As {row} with {}: {range}.",
                count_of(cpus, "CPU", "CPUs")
            );
        }
        return format!("{does}; how often {between} is not known from the code.");
    };
    let mut text = format!("{does}: {} {between}", count_of(hints, "hint", "hints"));
    if let Some(range) = range(&one.gaps) {
        text += &format!(", {range}");
    }
    text + "."
}

fn has_deadline(one: &ScannedLoop) -> bool {
    one.gap_from.as_deref() == Some("deadline")
}

/// From the shortest to the longest blind gap.
fn range(gaps: &[GapOnChip]) -> Option<String> {
    let mut known: Vec<(f64, &str)> = gaps
        .iter()
        .filter_map(|gap| Some((gap.ns?, gap.chip.as_str())))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (known.first()?, known.last()?);
    if known.len() == 1 {
        return Some(format!("{} on {}", nanoseconds(most.0), most.1));
    }
    let (low, high) = (nanoseconds(least.0), nanoseconds(most.0));
    Some(format!("{low} on {} to {high} on {}", least.1, most.1))
}

/// What one hint costs on each chip.
fn costs(record: &SpinScan) -> String {
    let costs: Vec<String> = record
        .chips
        .iter()
        .map(|chip| format!("{} {}", chip.id, nanoseconds(chip.pause_ns)))
        .collect();
    format!("One hint takes: {}.", costs.join(", "))
}

/// What the limit says.
fn verdict(record: &SpinScan) -> Option<String> {
    let limit = nanoseconds(record.max_blind_gap_ns?);
    let failing: Vec<&ScannedLoop> = record
        .loops
        .iter()
        .filter(|one| one.fails == Some(true))
        .collect();
    let is_unknown = |one: &&ScannedLoop| one.gaps.iter().all(|gap| gap.ns.is_none());
    let unknown = record.loops.iter().filter(is_unknown).count() as u64;
    let unsaid = match unknown {
        0 => String::new(),
        1 => " The blind gap of 1 loop is unknown.".to_owned(),
        many => format!(" The blind gaps of {many} loops are unknown."),
    };
    if failing.is_empty() {
        return Some(format!(
            "Passed: no known blind gap is longer than {limit}.{unsaid}"
        ));
    }
    let shown = failing.iter().take(MAX_FAILING_LOOPS);
    let mut named: Vec<String> = shown.map(|one| name_loop(record, one)).collect();
    if failing.len() > MAX_FAILING_LOOPS {
        named.push(format!("and {} more", failing.len() - MAX_FAILING_LOOPS));
    }
    let all = record.loops.len() as u64;
    Some(format!(
        "Failed: {} of {} against a limit of {limit}: {}.{unsaid}",
        failing.len(),
        count_of(all, "loop", "loops"),
        named.join("; ")
    ))
}

/// A failing loop, and on which chips.
fn name_loop(record: &SpinScan, one: &ScannedLoop) -> String {
    let file = &record.binaries[one.binary].path;
    let file = file.rsplit('/').next().unwrap_or(file);
    let chips: Vec<String> = one
        .gaps
        .iter()
        .filter(|gap| gap.exceeds)
        .filter_map(|gap| Some(format!("{} on {}", nanoseconds(gap.ns?), gap.chip)))
        .collect();
    let why = if has_deadline(one) {
        "until a deadline".to_owned()
    } else if chips.is_empty() {
        "not known from the code".to_owned()
    } else {
        chips.join(", ")
    };
    format!("{} at {} ({why})", visible(file), one.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCANNED: &str = include_str!("../../../../tests/data/records/spin-scan.json");

    #[test]
    fn equal_loops_are_shown_once() {
        let mut record: SpinScan = pinwise_record::read(SCANNED).unwrap();
        let text = |record: &SpinScan| spin_scan(record, Palette::new(false));
        let before = text(&record).lines().count();
        for at in 0..1000_usize {
            let mut one = record.loops[0].clone();
            one.address = format!("{:#x}", 0x10_0000 + at);
            one.function = Some(format!("lock{}", at % 8));
            record.loops.push(one);
        }
        let text = text(&record);
        assert!(text.lines().count() <= before + 3, "{text}");
        assert!(
            text.contains(
                "and 1,000 more of the same in lock0 (125), lock1 (125), lock2 (125), lock3\n"
            ),
            "{text}"
        );
        assert!(text.contains("lock5 (125), 2 more functions\n"), "{text}");
    }
}
