//! The loops with spin-wait hints in binaries as text.

use std::collections::HashMap;

use crate::comparison::next_step;
use crate::style::{Palette, paragraph, shorten, visible};
use pinwise_format::{bytes, count, count_of, grouped, nanoseconds};
use pinwise_record::{GapOnChip, ScannedLoop, SpinKind, SpinScan};

/// The most functions that are listed for equal loops.
const MAX_FUNCTIONS: usize = 6;

/// The id of this machine among the chips.
const HERE: &str = "here";

/// The loops file by file, then the verdict on the limit.
#[must_use]
pub fn render_spin_scan(record: &SpinScan, palette: Palette) -> String {
    let mut text = String::new();
    for (index, binary) in record.binaries.iter().enumerate() {
        let loops: Vec<&ScannedLoop> = sort_loops_of_file(record, index);
        text += &palette.strong(&paragraph("", "  ", &visible(&binary.path)));
        text += "\n";
        text += &paragraph("  ", "  ", &describe_file(record, index, loops.len()));
        text += if loops.is_empty() { "\n" } else { "\n\n" };
        for equal in group_equal(&loops, record.cpus) {
            text += &describe_equal_loops(&equal, record.cpus, palette);
            text += "\n";
        }
    }
    if !record.loops.iter().all(ScannedLoop::has_deadline) {
        text += &paragraph("", "  ", &describe_hint_costs(record));
        text += "\n";
    }
    text += &palette.record_line(&record.id);
    text += "\n";
    let answer = paragraph("", "", &visible(&record.answer.sentence));
    let answer = match record.passed {
        _ if record.loops.is_empty() => palette.warn(&answer),
        Some(true) => palette.good(&answer),
        Some(false) => palette.bad(&answer),
        None => palette.strong(&answer),
    };
    text + &answer + "\n" + &next_step(&visible(&record.answer.advice), &[])
}

/// A file's loops: failing ones first, then those with the longest blind gap.
fn sort_loops_of_file(record: &SpinScan, index: usize) -> Vec<&ScannedLoop> {
    let of_file = record.loops.iter().filter(|one| one.binary == index);
    let mut loops: Vec<&ScannedLoop> = of_file.collect();
    loops.sort_by_key(|one| {
        let gap = one.gap_hints.unwrap_or(0);
        (one.fails != Some(true), std::cmp::Reverse(gap))
    });
    loops
}

fn describe_file(record: &SpinScan, index: usize, loops: usize) -> String {
    let binary = &record.binaries[index];
    if binary.hints == 0 {
        let code = bytes(binary.code_bytes as f64);
        return format!("{}, {code} of code: no spin-wait hint.", binary.arch);
    }
    let mut text = format!(
        "{}, {} of code: {} and {} that {}",
        binary.arch,
        bytes(binary.code_bytes as f64),
        count_of(binary.hints, "spin-wait hint", "spin-wait hints"),
        count(loops, "loop"),
        if loops == 1 { "has one" } else { "have them" },
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

/// Groups loops with the same description, in the order of the first of each, so that a lock that
/// is inlined everywhere is listed once.
fn group_equal<'l>(loops: &[&'l ScannedLoop], cpus: u64) -> Vec<Vec<&'l ScannedLoop>> {
    let mut groups: Vec<Vec<&ScannedLoop>> = Vec::new();
    let mut known = HashMap::new();
    for one in loops {
        let key = (
            one.fails,
            describe_loop(one, cpus, false),
            describe_algorithm(one),
        );
        let at = *known.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Lists equal loops by function: "and 812 more of the same in lock (3), unlock, 240 more
/// functions".
fn list_more(more: &[&ScannedLoop]) -> Option<String> {
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

fn describe_equal_loops(equal: &[&ScannedLoop], cpus: u64, palette: Palette) -> String {
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
        Some(describe_loop(one, cpus, more.is_empty())),
        describe_algorithm(one),
        list_more(more),
    ];
    for line in clauses.into_iter().flatten() {
        text += &paragraph("    ", "    ", &line);
        text += "\n";
    }
    text
}

/// Describes the known algorithm that a loop matches best.
fn describe_algorithm(one: &ScannedLoop) -> Option<String> {
    let first = one.algorithms.first()?;
    Some(format!(
        "{} ({}): {}",
        first.id, first.strength, first.reason
    ))
}

/// Describes what a loop does, and its blind gap; if it stands for no others, with the address of
/// the loop around it.
fn describe_loop(one: &ScannedLoop, cpus: u64, is_alone: bool) -> String {
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
    if one.has_deadline() {
        return format!(
            "{does}. A hint lasts until a deadline that the program computes (TPAUSE, UMWAIT, WFET): the blind gap is that time, unknown here."
        );
    }
    let Some(hints) = one.gap_hints else {
        if let (Some(row), Some(range)) = (&one.gap_from, describe_gaps(&one.gaps)) {
            return format!(
                "{does}; how often {between} is not in the code. As {row} with {}: {range}.",
                count_of(cpus, "CPU", "CPUs")
            );
        }
        return format!("{does}; how often {between} is not known from the code.");
    };
    let mut text = format!("{does}: {} {between}", count_of(hints, "hint", "hints"));
    if let Some(range) = describe_gaps(&one.gaps) {
        text += &format!(", {range}");
    }
    text + "."
}

/// Describes the blind gap on this machine, and the shortest and the longest on known chips.
fn describe_gaps(gaps: &[GapOnChip]) -> Option<String> {
    let mut known: Vec<(f64, &str)> = gaps
        .iter()
        .filter_map(|gap| Some((gap.ns?, gap.chip.as_str())))
        .collect();
    let here = known.iter().position(|(_, chip)| *chip == HERE);
    let here = here.map(|at| format!("{} here", nanoseconds(known.remove(at).0)));
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let elsewhere = match (known.first(), known.last()) {
        (Some(least), Some(most)) if known.len() > 1 => Some(format!(
            "{} on {} to {} on {}",
            nanoseconds(least.0),
            least.1,
            nanoseconds(most.0),
            most.1
        )),
        (Some(only), _) => Some(format!("{} on {}", nanoseconds(only.0), only.1)),
        _ => None,
    };
    match (here, elsewhere) {
        (Some(here), Some(elsewhere)) => Some(format!("{here}; {elsewhere}")),
        (here, elsewhere) => here.or(elsewhere),
    }
}

/// Describes what one hint costs on each chip.
fn describe_hint_costs(record: &SpinScan) -> String {
    let costs: Vec<String> = record
        .chips
        .iter()
        .map(|chip| format!("{} {}", chip.id, nanoseconds(chip.pause_ns)))
        .collect();
    format!("One hint takes: {}.", costs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCANNED: &str = include_str!("../../../../tests/data/records/spin-scan.json");

    #[test]
    fn a_file_without_hints_is_not_called_free_of_loops_that_spin() {
        let mut record: SpinScan = pinwise_record::read(SCANNED).unwrap();
        record.loops.clear();
        (record.max_blind_gap_ns, record.passed) = (Some(1000.0), Some(true));
        record.binaries.truncate(1);
        record.binaries[0].hints = 0;
        "./lock".clone_into(&mut record.binaries[0].path);
        record.conclude();
        let text = render_spin_scan(&record, Palette::new(false));
        assert!(text.contains("of code: no spin-wait hint.\n"), "{text}");
        assert!(
            text.contains("\nNothing to judge: no loop has a spin-wait hint"),
            "{text}"
        );
        assert!(!text.contains("Passed"), "{text}");
        assert!(text.ends_with("pinwise spin attach -- ./lock\n"), "{text}");
    }

    #[test]
    fn equal_loops_share_an_entry() {
        let mut record: SpinScan = pinwise_record::read(SCANNED).unwrap();
        let text = |record: &SpinScan| render_spin_scan(record, Palette::new(false));
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
