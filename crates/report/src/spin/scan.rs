//! The loops with spin-wait hints in binaries as text.

use std::collections::HashMap;

use crate::comparison::next_step;
use crate::style::{Palette, paragraph, shorten, visible};
use pinwise_format::{bytes, capitalise, count, count_of, grouped, nanoseconds, shell};
use pinwise_record::{GapOnChip, ScannedLoop, SpinKind, SpinScan};

/// The most functions that are listed for equal loops.
const MAX_FUNCTIONS: usize = 6;

/// The id of this machine among the chips.
const HERE: &str = "here";
/// The most failing loops that the verdict lists.
const MAX_FAILING_LOOPS: usize = 4;

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
    if !record.loops.iter().all(has_deadline) {
        text += &paragraph("", "  ", &describe_hint_costs(record));
        text += "\n";
    }
    text += &palette.record_line(&record.id);
    text += "\n";
    let answer = match describe_verdict(record) {
        _ if record.loops.is_empty() => {
            let gate = record.max_blind_gap_ns.map_or("", |_| "Nothing to judge: ");
            let sentence = capitalise(&format!("{gate}{NO_HINTS}"));
            palette.warn(&paragraph("", "", &sentence))
        }
        Some(verdict) => {
            let verdict = paragraph("", "  ", &verdict);
            match record.passed {
                Some(true) => palette.good(&verdict),
                _ => palette.bad(&verdict),
            }
        }
        None => palette.strong(&paragraph("", "", &describe_longest_gap(record))),
    };
    // A library runs in a program.
    let mut files = record.binaries.iter().map(|file| &file.path);
    let target = match files.find(|path| !path.contains(".so")) {
        Some(program) => format!("-- {}", shell::word(program)),
        None => "--pid PID".to_owned(),
    };
    let advice = format!("Whether it spins, and for how long: pinwise spin attach {target}");
    text + &answer + "\n" + &next_step(&advice, &[])
}

const NO_HINTS: &str =
    "no loop has a spin-wait hint (PAUSE, YIELD). Loops that spin without one are not looked for.";

/// The loop that looks least often, as far as that is known: an unknown gap may be longer.
fn describe_longest_gap(record: &SpinScan) -> String {
    let longest = |one: &&ScannedLoop| {
        let gaps = one.gaps.iter().filter_map(|gap| gap.ns);
        gaps.fold(0.0, f64::max)
    };
    let known = record.loops.iter().filter(|one| longest(one) > 0.0);
    let most = known.max_by(|a, b| longest(a).total_cmp(&longest(b)));
    let range = most.and_then(|one| Some((one, describe_gaps(&one.gaps)?)));
    let loops = count(record.loops.len(), "loop");
    let Some((one, range)) = range else {
        return format!("{loops} with spin-wait hints; how often they look is not in the code.");
    };
    let mut unknown = record.loops.iter().filter(is_unknown);
    let others = match (unknown.next(), unknown.count()) {
        (None, _) => String::new(),
        (Some(only), 0) => format!(
            "how long the one at {} goes without a look is unknown; of the others, ",
            only.address
        ),
        (Some(_), more) => format!(
            "how long {} of them go without a look is unknown; of the others, ",
            grouped(more as u64 + 1)
        ),
    };
    format!(
        "{loops} with spin-wait hints; {others}the one at {} looks least often: every {range}.",
        one.address
    )
}

/// Is its blind gap unknown on every chip?
fn is_unknown(one: &&ScannedLoop) -> bool {
    one.gaps.iter().all(|gap| gap.ns.is_none())
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
    if has_deadline(one) {
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

fn has_deadline(one: &ScannedLoop) -> bool {
    one.gap_from.as_deref() == Some("deadline")
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

/// Describes whether the loops pass the limit; `None` without a limit.
fn describe_verdict(record: &SpinScan) -> Option<String> {
    let limit = nanoseconds(record.max_blind_gap_ns?);
    let failing: Vec<&ScannedLoop> = record
        .loops
        .iter()
        .filter(|one| one.fails == Some(true))
        .collect();
    let unknown = record.loops.iter().filter(is_unknown).count() as u64;
    let unknown_gaps = match unknown {
        0 => String::new(),
        1 => " The blind gap of 1 loop is unknown.".to_owned(),
        many => format!(" The blind gaps of {many} loops are unknown."),
    };
    if failing.is_empty() {
        let passed = match unknown {
            0 => "Passed",
            _ => "Unknown gaps aside, passed",
        };
        return Some(format!(
            "{passed}: no known blind gap is longer than {limit}.{unknown_gaps}"
        ));
    }
    let exceeds = |one: &&ScannedLoop| one.gaps.iter().any(|gap| gap.exceeds);
    let all = count_of(record.loops.len() as u64, "loop", "loops");
    let shown = failing.iter().take(MAX_FAILING_LOOPS);
    let mut named: Vec<String> = shown.map(|one| name_loop(record, one)).collect();
    if failing.len() > MAX_FAILING_LOOPS {
        named.push(format!("and {} more", failing.len() - MAX_FAILING_LOOPS));
    }
    let (many, named) = (failing.len(), named.join("; "));
    Some(match failing.iter().any(exceeds) {
        true => {
            format!("Failed: {many} of {all} against a limit of {limit}: {named}.{unknown_gaps}")
        }
        false => format!(
            "Unknown: {many} of {all} may look less often than every {limit}: {named}. No known blind gap is longer; --unknown pass lets these pass."
        ),
    })
}

/// Names a failing loop, and its gaps on the chips on which it fails.
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
    fn a_file_without_hints_is_not_called_free_of_loops_that_spin() {
        let mut record: SpinScan = pinwise_record::read(SCANNED).unwrap();
        record.loops.clear();
        (record.max_blind_gap_ns, record.passed) = (Some(1000.0), Some(true));
        record.binaries.truncate(1);
        record.binaries[0].hints = 0;
        "./lock".clone_into(&mut record.binaries[0].path);
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

    /// Two loops of one file, of which the second has an unknown gap.
    fn record_with_unknown_gap() -> SpinScan {
        let mut record: SpinScan = pinwise_record::read(SCANNED).unwrap();
        let mut known = record.loops.iter();
        let at = known.position(|one| one.gaps.iter().any(|gap| gap.ns.is_some()));
        let mut known = record.loops[at.unwrap()].clone();
        known.fails = None;
        let mut unknown = known.clone();
        "0x11ee".clone_into(&mut unknown.address);
        (unknown.gap_hints, unknown.gap_from) = (None, None);
        for gap in &mut unknown.gaps {
            gap.ns = None;
        }
        record.loops = vec![known, unknown];
        (record.max_blind_gap_ns, record.passed) = (None, None);
        record
    }

    fn words_of(record: &SpinScan) -> String {
        let text = render_spin_scan(record, Palette::new(false));
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }

    #[test]
    fn no_loop_is_called_the_worst_while_others_are_unknown() {
        let mut record = record_with_unknown_gap();
        let said = words_of(&record);
        let expected = "2 loops with spin-wait hints; how long the one at 0x11ee goes without a look is unknown; of the others, the one at ";
        assert!(said.contains(expected), "{said}");
        record.loops.truncate(1);
        let said = words_of(&record);
        assert!(
            said.contains("1 loop with spin-wait hints; the one at "),
            "{said}"
        );
    }

    #[test]
    fn a_verdict_with_unknown_gaps_begins_with_them() {
        let mut record = record_with_unknown_gap();
        (record.max_blind_gap_ns, record.passed) = (Some(1e6), Some(true));
        let said = words_of(&record);
        let expected = "Unknown gaps aside, passed: no known blind gap is longer than 1.00 ms. The blind gap of 1 loop is unknown.";
        assert!(said.contains(expected), "{said}");
        record.passed = Some(false);
        record.loops[1].fails = Some(true);
        let said = words_of(&record);
        assert!(said.contains("Unknown: 1 of 2 loops "), "{said}");
        assert!(said.contains("0x11ee (not known from the code)"), "{said}");
        assert!(said.contains("--unknown pass"), "{said}");
    }

    #[test]
    fn the_figure_of_this_machine_comes_first() {
        let mut record = record_with_unknown_gap();
        let gap = GapOnChip {
            chip: "here".to_owned(),
            ns: Some(24.4),
            exceeds: false,
        };
        record.loops.truncate(1);
        record.loops[0].gaps.insert(0, gap);
        let said = words_of(&record);
        assert!(
            said.contains("looks least often: every 24.4 ns here; "),
            "{said}"
        );
    }
}
