//! The loops with spin-wait hints in binaries, as text.

use crate::style::{Palette, paragraph, shortened, visible};
use pinwise_format::{bytes, count, count_of, nanoseconds};
use pinwise_record::{GapOnChip, ScannedLoop, SpinKind, SpinScan};

/// The loops file by file, then what the limit says.
#[must_use]
pub fn spin_scan(record: &SpinScan, palette: Palette) -> String {
    let mut text = String::new();
    for (index, binary) in record.binaries.iter().enumerate() {
        let loops: Vec<&ScannedLoop> = in_file(record, index);
        text += &palette.strong(&paragraph("", "  ", &visible(&binary.path)));
        text += "\n";
        text += &paragraph("  ", "  ", &summary(record, index, loops.len()));
        text += "\n\n";
        for one in loops {
            text += &shown(one, record.cpus, palette);
            text += "\n";
        }
    }
    text += &paragraph("", "  ", &costs(record));
    text += "\n";
    if let Some(verdict) = verdict(record) {
        let verdict = paragraph("", "  ", &verdict);
        text += &match record.passed {
            Some(true) => palette.good(&verdict),
            _ => palette.bad(&verdict),
        };
        text += "\n";
    }
    text
}

/// A file's loops: those that fail first, then by how long they are blind.
fn in_file(record: &SpinScan, index: usize) -> Vec<&ScannedLoop> {
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

fn shown(one: &ScannedLoop, cpus: u64, palette: Palette) -> String {
    let place = match (&one.function, one.offset) {
        (Some(name), Some(offset)) => format!("{}+{offset:#x}", shortened(name, 52)),
        _ => "no symbol".to_owned(),
    };
    let head = format!("  {:<12} {place}", one.address);
    let head = if one.fails == Some(true) {
        palette.bad(&head)
    } else {
        palette.strong(&head)
    };
    let mut text = format!("{head}\n");
    text += &paragraph("    ", "    ", &words(one, cpus));
    text += "\n";
    if let Some(first) = one.algorithms.first() {
        let line = format!("{} ({}): {}", first.id, first.strength, first.reason);
        text += &paragraph("    ", "    ", &line);
        text += "\n";
    }
    text
}

/// What it does, and for how long it does not look.
fn words(one: &ScannedLoop, cpus: u64) -> String {
    let does = match (&one.kind, &one.outer) {
        (SpinKind::Polling, _) => "Looks and hints".to_owned(),
        (SpinKind::BlindDelay, Some(outer)) => {
            format!(
                "Hints blindly within the loop at {} that looks",
                outer.address
            )
        }
        (SpinKind::BlindDelay, None) => "Hints blindly; no loop around it looks".to_owned(),
        (SpinKind::Yielding, _) => "Yields the CPU, and hints".to_owned(),
        _ => "Does much else, and hints".to_owned(),
    };
    let between = match (&one.kind, &one.outer) {
        (SpinKind::BlindDelay, None) => "in a row",
        _ => "between looks",
    };
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
        1 => " The length of 1 loop is unknown.".to_owned(),
        many => format!(" The length of {many} loops is unknown."),
    };
    if failing.is_empty() {
        return Some(format!(
            "Passed: no loop is known to be blind for longer than {limit}.{unsaid}"
        ));
    }
    let named: Vec<String> = failing.iter().map(|one| named(record, one)).collect();
    let all = record.loops.len() as u64;
    Some(format!(
        "Failed: {} of {} against a limit of {limit}: {}.{unsaid}",
        failing.len(),
        count_of(all, "loop", "loops"),
        named.join("; ")
    ))
}

/// A failing loop, and on which chips.
fn named(record: &SpinScan, one: &ScannedLoop) -> String {
    let file = &record.binaries[one.binary].path;
    let file = file.rsplit('/').next().unwrap_or(file);
    let chips: Vec<String> = one
        .gaps
        .iter()
        .filter(|gap| gap.exceeds)
        .filter_map(|gap| Some(format!("{} on {}", nanoseconds(gap.ns?), gap.chip)))
        .collect();
    let why = if chips.is_empty() {
        "not known from the code".to_owned()
    } else {
        chips.join(", ")
    };
    format!("{} at {} ({why})", visible(file), one.address)
}
