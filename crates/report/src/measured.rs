//! Measured topology as text: what contradicts the system's report first, then the range of
//! latencies, the levels, and other figures.

mod figures;
pub(super) mod matrix;
mod over_time;

use super::style::{Palette, paragraph, shorten, visible};
use pinwise_format::count;
use pinwise_record::{Agreement, LevelVerdict, Measured, MeasuredLevel, TopologyRecord};
use pinwise_topology::CpuSet;

/// The most groups that a level's line lists.
const MAX_LISTED_GROUPS: usize = 8;

/// Everything that was measured, as text.
pub(super) fn describe_measured(found: &Measured, palette: Palette) -> String {
    let mut text = list_verdicts(found, palette);
    text.push_str(&matrix::describe_latencies(found, palette));
    let found_levels = Levels {
        levels: &found.levels,
        flat: found.flat,
        cannot_tell: found.cannot_tell.as_deref(),
        notes: &found.notes,
    };
    text.push_str(&list_levels(&found_levels, palette));
    text.push_str(&figures::format_figures_tables(found, palette));
    text.push_str(&over_time::describe_drift(found, palette));
    text.push_str(&over_time::describe_effort(&found.effort, palette));
    text
}

fn format_heading(title: &str, palette: Palette) -> String {
    format!("\n{}\n", palette.strong(title))
}

/// A warning above the reported topology if the measurement contradicts it; else empty.
pub(super) fn format_contradiction_line(record: &TopologyRecord, palette: Palette) -> String {
    let levels: Vec<String> = record
        .contradictions
        .iter()
        .map(|contradiction| contradiction.level.noun().to_owned())
        .collect();
    if levels.is_empty() {
        return String::new();
    }
    let line = format!(
        "Measurement contradicts the reported topology: {}; see below.",
        levels.join(", ")
    );
    format!("{}\n", palette.bad(&paragraph("✗ ", "  ", &line)))
}

/// The last lines, next to the prompt: whether the report is right, and advice.
pub(super) fn format_closing_lines(record: &TopologyRecord, palette: Palette) -> String {
    let sentence = paragraph("", "", &visible(&record.summary()));
    let contradiction = record.contradictions.first();
    let agrees = |v: &LevelVerdict| v.verdict == Agreement::Agrees;
    let painted = match &record.measured {
        None => return String::new(),
        _ if contradiction.is_some() => palette.bad(&sentence),
        Some(measured) if measured.verdicts.iter().any(agrees) => palette.good(&sentence),
        _ => palette.warn(&sentence),
    };
    let measured = record.measured.as_deref();
    let may_move =
        record.machine.hypervisor.is_some() && measured.is_some_and(|m| m.drift.is_none());
    let advice = match contradiction {
        Some(contradiction) => contradiction.advice.as_str(),
        None if may_move && !measured.is_some_and(has_pair) => {
            "No pair of CPUs could be measured in time: pinwise topology --measure --budget 2m."
        }
        None if may_move => {
            "The CPUs of a virtual machine may move: pinwise topology --measure --watch 3m follows them."
        }
        None => "",
    };
    let advice = match advice {
        "" => String::new(),
        advice => format!("{}\n", paragraph("→ ", "  ", &visible(advice))),
    };
    format!("\n{painted}\n{advice}")
}

fn has_pair(measured: &Measured) -> bool {
    let mut pairs = measured.is_measured.iter().flatten();
    pairs.any(|is_measured| *is_measured)
}

/// Lists contradictions first, then levels that are confirmed in part, then the others.
fn list_verdicts(found: &Measured, palette: Palette) -> String {
    let mut text = format_heading("Reported versus measured", palette);
    let with_verdict = |agreement: Agreement| {
        found
            .verdicts
            .iter()
            .filter(move |v| v.verdict == agreement)
    };
    for verdict in with_verdict(Agreement::Contradicted) {
        text.push_str(&describe_verdict(verdict, None, palette));
    }
    // Some caches of a level may be as reported and others not: both share an entry.
    let find_same_level = |verdict: &LevelVerdict, agreement: Agreement| {
        with_verdict(agreement).find(|other| other.level == verdict.level)
    };
    for verdict in with_verdict(Agreement::CannotTell) {
        if let Some(confirmed) = find_same_level(verdict, Agreement::Agrees) {
            text.push_str(&describe_verdict(verdict, Some(confirmed), palette));
        }
    }
    for (agreement, other) in [
        (Agreement::Agrees, Agreement::CannotTell),
        (Agreement::CannotTell, Agreement::Agrees),
    ] {
        let whole =
            with_verdict(agreement).filter(|verdict| find_same_level(verdict, other).is_none());
        text.extend(whole.map(|verdict| describe_verdict(verdict, None, palette)));
    }
    if found.verdicts.is_empty() {
        text.push_str("  Nothing could be compared.\n");
    }
    text
}

/// Describes a verdict; `confirmed` is what agrees with the report on the same level.
fn describe_verdict(
    verdict: &LevelVerdict,
    confirmed: Option<&LevelVerdict>,
    palette: Palette,
) -> String {
    let level = shorten(verdict.level.noun(), 40);
    let confidence = format!("confidence {:.2}", verdict.confidence);
    let (head, both_sides) = match verdict.verdict {
        Agreement::Contradicted => {
            let line = format!("✗ {level}: CONTRADICTED ({confidence})");
            (palette.bad(&line), true)
        }
        Agreement::CannotTell if verdict.alone.is_some() => {
            let line = format!("? {level}: unstable; trust neither");
            (palette.warn(&line), false)
        }
        Agreement::CannotTell if confirmed.is_some() => {
            let line = format!("? {level}: confirmed in part");
            (palette.warn(&line), false)
        }
        Agreement::CannotTell => (palette.warn(&format!("? {level}: inconclusive")), false),
        Agreement::Agrees => (
            palette.good(&format!("✓ {level}: agrees ({confidence})")),
            false,
        ),
    };
    let mut text = format!("  {head}\n");
    let mut line = |label: &str, sentence: &str| {
        if !sentence.is_empty() {
            let folded = paragraph("    ", "      ", &format!("{label}{sentence}"));
            text.push_str(&format!("{folded}\n"));
        }
    };
    if both_sides {
        line("Reported: ", &verdict.claim);
        line("Measured: ", &verdict.measured);
    } else {
        line("", &verdict.measured);
    }
    confirmed.inspect(|confirmed| line("Confirmed: ", &confirmed.measured));
    line("→ ", &verdict.advice);
    text
}

/// The levels that an inference found, or why it found none.
pub(super) struct Levels<'a> {
    pub(super) levels: &'a [MeasuredLevel],
    pub(super) flat: bool,
    pub(super) cannot_tell: Option<&'a str>,
    pub(super) notes: &'a [String],
}

/// Each level with its groups and the evidence for it.
pub(super) fn list_levels(found: &Levels<'_>, palette: Palette) -> String {
    let mut text = format_heading("Levels found", palette);
    let mut add_line = |sentence: &str| {
        let folded = paragraph("  ", "    ", sentence);
        text.push_str(&format!("{folded}\n"));
    };
    if let Some(reason) = found.cannot_tell {
        add_line(reason);
    }
    if found.flat {
        add_line("No groups: all CPUs are equally far apart.");
    } else if found.levels.is_empty() && found.cannot_tell.is_none() {
        add_line("No groups of CPUs are closer to each other than to the rest.");
    }
    for level in found.levels {
        add_level(level, &mut add_line);
    }
    for note in found.notes {
        text.push_str(&format!("{}\n", paragraph("  ! ", "    ", note)));
    }
    text
}

fn add_level(level: &MeasuredLevel, add_line: &mut impl FnMut(&str)) {
    let outside = level.outside_ns.map_or_else(String::new, |ns| {
        format!(
            ", {} to the nearest outside",
            pinwise_format::nanoseconds(ns)
        )
    });
    add_line(&format!(
        "{}: {}; {} within{outside}; confidence {:.2}",
        level.kind.noun(),
        format_groups(&level.groups),
        pinwise_format::nanoseconds(level.inside_ns),
        level.confidence,
    ));
    if !level.evidence.is_empty() {
        add_line(&format!("  {}", level.evidence));
    }
}

/// Formats groups as `8 groups of 2 CPUs: CPUs 0-1  2-3 …`: number, size, and the first.
fn format_groups(groups: &[String]) -> String {
    let sizes: Vec<usize> = groups
        .iter()
        .map(|list| list.parse::<CpuSet>().map_or(0, |set| set.len()))
        .collect();
    let named: Vec<&str> = groups
        .iter()
        .take(MAX_LISTED_GROUPS)
        .map(String::as_str)
        .collect();
    let more = if groups.len() > MAX_LISTED_GROUPS {
        " …"
    } else {
        ""
    };
    let have_one_size = sizes.windows(2).all(|pair| pair[0] == pair[1]);
    let size = match sizes.first() {
        Some(size) if have_one_size && groups.len() > 1 => format!(" of {}", count(*size, "CPU")),
        _ => String::new(),
    };
    let list = named.join("  ");
    format!("{}{size}: CPUs {list}{more}", count(groups.len(), "group"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::LevelName;

    #[test]
    fn caches_that_are_confirmed_in_part_are_one_line_before_what_agrees() {
        let verdict = |level: LevelName, verdict, measured: &str| LevelVerdict {
            level,
            verdict,
            alone: None,
            claim: String::new(),
            measured: measured.to_owned(),
            confidence: 0.8,
            advice: String::new(),
        };
        let found = Measured {
            verdicts: vec![
                verdict(LevelName::Smt, Agreement::Agrees, "They share no core."),
                verdict(LevelName::Cache, Agreement::Agrees, "A program sees L2."),
                verdict(LevelName::Cache, Agreement::CannotTell, "No L3 is seen."),
            ],
            ..Measured::default()
        };
        let text = list_verdicts(&found, Palette::new(false));
        let expected = "\nReported versus measured\n  ? cache sizes: confirmed in part\n    \
            No L3 is seen.\n    Confirmed: A program sees L2.\n  \
            ✓ SMT siblings: agrees (confidence 0.80)\n    They share no core.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn where_no_level_is_found_a_sentence_says_so() {
        let found = |flat, cannot_tell| Levels {
            levels: &[],
            flat,
            cannot_tell,
            notes: &[],
        };
        let text = |flat, cannot_tell| list_levels(&found(flat, cannot_tell), Palette::new(false));
        for (flat, reason) in [(true, None), (false, None), (false, Some("Too few pairs."))] {
            let text = text(flat, reason);
            let line = text.lines().nth(2).unwrap_or_default();
            assert!(line.ends_with('.') && line.contains(' '), "{text}");
            assert!(!text.contains("None"), "{text}");
        }
    }
}
