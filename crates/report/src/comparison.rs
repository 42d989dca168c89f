//! A comparison as text: what ran, how it compares, advice and caveats.

mod joint;
mod traced;

use super::style::{self, Palette, columns, paragraph, quantity, shorten, table_without};
use pinwise_format::{count, duration, round_percent};
use pinwise_record::{
    Arm, CommandRecord, Comparison, ContrastRecord, Finding, HostRecord, MetricRecord, Severity,
    Stopped, VerdictKind, VerdictRecord,
};
use std::time::Duration;
pub(super) use traced::markdown as traced_markdown;

/// Longest name in the table.
const NAME_WIDTH: usize = 26;
/// Longest list of CPUs.
const CPUS_WIDTH: usize = 9;

/// Notes that answer what was asked, by companions and limits as arms.
pub(super) const ASKED: [&str; 5] = [
    "beside",
    "cgroups",
    "cost_to_companion",
    "arm_throttled",
    "limit_not_reached",
];

/// A comparison that has just ended, for a terminal: the answer comes last, next to the prompt.
/// [`comparison`] has the rest: what repeats the table, notes and the method.
#[must_use]
pub fn comparison_answer(record: &Comparison, palette: Palette) -> String {
    let is_note = |finding: &&Finding| {
        finding.severity == Severity::Note && !ASKED.contains(&finding.check.as_str())
    };
    let (notes, grave): (Vec<&Finding>, Vec<&Finding>) = record.findings.iter().partition(is_note);
    let mut text = heading(&record.title(), &record.host, Some(&record.metric), palette);
    text.push('\n');
    match &record.joint {
        Some(joint) => text.push_str(&joint::programs(joint)),
        None => text.push_str(&arms_table(record)),
    }
    text.push_str(&limits(record));
    text.push_str(&traced::describe_traces(record, palette));
    if !grave.is_empty() {
        text.push_str(&findings(grave, palette));
        text.push('\n');
    }
    text.push_str(&palette.faint(&brief_method(record, notes.len(), palette)));
    text.push_str("\n\n");
    text.push_str(&verdict(record, palette));
    text
}

/// The whole comparison for a terminal.
#[must_use]
pub fn comparison(record: &Comparison, palette: Palette) -> String {
    let mut text = String::new();
    text.push_str(&heading(
        &record.title(),
        &record.host,
        Some(&record.metric),
        palette,
    ));
    text.push('\n');
    if let Some(joint) = &record.joint {
        text.push_str(&joint::programs(joint));
        text.push('\n');
    }
    text.push_str(&arms_table(record));
    text.push_str(&threads(record));
    text.push('\n');
    text.push_str(&verdict(record, palette));
    let VerdictRecord {
        advice, commands, ..
    } = &record.verdict;
    if !commands.is_empty() && !advice.is_empty() {
        text.push_str(&format!("{}\n", paragraph("  ", "  ", advice)));
    }
    if !record.contrasts.is_empty() {
        text.push('\n');
        text.push_str(&contrasts(record));
    }
    text.push_str(&traced::describe_traces(record, palette));
    text.push_str(&findings(&record.findings, palette));
    text.push('\n');
    text.push_str(&palette.faint(&method(record, palette)));
    text.push('\n');
    text
}

/// The title of an experiment and its machine, each in a line.
pub(super) fn heading(
    title: &str,
    host: &HostRecord,
    metric: Option<&MetricRecord>,
    palette: Palette,
) -> String {
    let title = palette.strong(&shorten(title, columns()));
    let metric = metric.map_or_else(String::new, |metric| {
        format!(" · metric: {}", metric.short_name())
    });
    let place = format!("{}{metric}", place(host));
    format!("{title}\n{}\n", shorten(&place, columns()))
}

/// The machine of an experiment: name, CPU, counts.
pub(super) fn place(host: &HostRecord) -> String {
    let model = host.machine.cpu_model.as_deref();
    let model = model.filter(|_| !host.simulated);
    format!(
        "{}{} · {}, {}",
        host.name(),
        model.map_or_else(String::new, |model| format!(" · {model}")),
        count(host.counts.cpus, "CPU"),
        count(host.counts.cores, "core"),
    )
}

fn arms_table(record: &Comparison) -> String {
    if let [arm] = record.arms.as_slice() {
        return timed_table(record, arm);
    }
    let header = [
        "arm", "CPUs", "typical", "change", "interval", "spread", "verdict",
    ];
    let arms = record.arms.iter().filter(|arm| !arm.eliminated);
    let rows = arms.map(|arm| row(record, arm).to_vec()).collect();
    // The answer speaks of medians that differ from the change.
    let speaks = |finding: &Finding| finding.check == "medians_differ";
    let least: &[&str] = match record.findings.iter().any(speaks) {
        true => &["spread", "CPUs", "interval"],
        false => &["spread", "CPUs", "typical", "interval"],
    };
    let mut text = table_without(least, &[], &header, rows);
    text.push_str(&other_baselines(record));
    let dropped: Vec<&str> = record
        .arms
        .iter()
        .filter(|arm| arm.eliminated)
        .map(|arm| arm.name.as_str())
        .collect();
    if !dropped.is_empty() {
        let list = format!("Eliminated in screening: {}.", dropped.join(", "));
        text.push_str(&paragraph("  ", "  ", &list));
        text.push('\n');
    }
    text
}

/// What changes are against where that is not the baseline; empty if it always is.
fn other_baselines(record: &Comparison) -> String {
    let contrasts = record.contrasts.iter();
    let others = contrasts.filter(|contrast| contrast.baseline != record.baseline);
    let others = others.map(|c| format!("that of {} against {}", c.arm, c.baseline));
    let others: Vec<String> = others.collect();
    if others.is_empty() {
        return String::new();
    }
    let line = format!(
        "Change: against {}; {}.",
        record.baseline,
        others.join(", ")
    );
    format!("{}\n", paragraph("  ", "    ", &style::visible(&line)))
}

/// The only arm, with its own interval.
fn timed_table(record: &Comparison, arm: &Arm) -> String {
    let [name, cpus, typical, .., spread, _] = row(record, arm);
    let ends = arm.estimate.and_then(|e| e.low.zip(e.high));
    let interval = ends.map_or_else(String::new, |(low, high)| {
        let [low, high] = [low, high].map(|end| quantity(end, &record.metric.unit));
        format!("{low} to {high}")
    });
    let header = ["arm", "CPUs", "typical", "interval", "spread"];
    let cells = vec![name, cpus, typical, or_dash(&interval).to_owned(), spread];
    table_without(&["spread", "CPUs"], &[], &header, vec![cells])
}

/// What the threads of each arm did, if it is known.
fn threads(record: &Comparison) -> String {
    let arms = record.arms.iter();
    let known = arms.filter_map(|arm| Some((&arm.name, arm.threads.as_ref()?)));
    let lines = known.map(|(name, threads)| {
        let line = format!("Threads of {}: {}.", style::visible(name), threads.text);
        format!("{}\n", paragraph("  ", "    ", &line))
    });
    lines.collect()
}

fn row(record: &Comparison, arm: &Arm) -> [String; 7] {
    let unit = &record.metric.unit;
    let typical = typical(arm, unit);
    let spread = arm
        .spread
        .as_ref()
        .map_or_else(|| "–".to_owned(), |s| format!("{:.1} %", 100.0 * s.cv));
    let [change, interval] = effect(record, arm);
    [
        shorten(&arm.name, NAME_WIDTH),
        shorten(&arm.cpus, CPUS_WIDTH),
        typical,
        change,
        interval,
        spread,
        or_dash(&arm.standing).to_owned(),
    ]
}

/// The levels of the intervals, as a sentence with a trailing space: they depend on how the error
/// is shared between arms and with CPU time. Empty if there is no interval.
fn interval_level(record: &Comparison) -> String {
    if record.verdict.kind == VerdictKind::Timed {
        return "The interval is that of the median, at 95 %. ".to_owned();
    }
    let with_interval = |c: &&ContrastRecord| c.low.is_some() && c.high.is_some();
    let levels = record.contrasts.iter().filter(with_interval);
    let mut levels: Vec<String> = levels.map(|c| round_percent(c.confidence)).collect();
    levels.dedup();
    match levels.is_empty() {
        true => String::new(),
        false => format!("Level of the intervals: {}. ", levels.join(", ")),
    }
}

/// An arm's median, or the time-out that none of its runs reached the end in.
pub(super) fn typical(arm: &Arm, unit: &str) -> String {
    match (arm.estimate, &arm.timed_out) {
        (Some(estimate), _) => quantity(estimate.value, unit),
        (None, Some(late)) => format!("> {}", quantity(late.limit_s, unit)),
        (None, None) => "–".to_owned(),
    }
}

/// An arm's change against the baseline and the interval of that.
pub(super) fn effect(record: &Comparison, arm: &Arm) -> [String; 2] {
    let contrast = record.contrasts.iter().find(|c| c.arm == arm.name);
    if let Some(late) = &arm.timed_out {
        return [late.change.clone(), "–".to_owned()];
    }
    match contrast.map(|c| &c.effect) {
        Some(effect) => [effect.text.clone(), or_dash(&effect.interval).to_owned()],
        None if arm.name == record.baseline => [String::new(), String::new()],
        None => ["–".to_owned(), "–".to_owned()],
    }
}

pub(super) const fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn verdict(record: &Comparison, palette: Palette) -> String {
    // Only the words of a failed command have lines of their own.
    let sentence = if record.stopped == Some(Stopped::Failed) {
        record.verdict.sentence.clone()
    } else {
        style::visible(&record.verdict.sentence)
    };
    let sentence = paragraph("", "", &sentence);
    let painted = match record.verdict.kind {
        _ if record.verdict.not_recommended.is_some() => palette.strong(&sentence),
        VerdictKind::Best | VerdictKind::LeaveAlone => palette.good(&sentence),
        VerdictKind::Same | VerdictKind::Timed => palette.strong(&sentence),
        VerdictKind::Undecided => palette.warn(&sentence),
    };
    let mut text = format!("{painted}\n");
    let further = [&record.verdict.steadiness, &record.verdict.beside];
    for sentence in further.into_iter().flatten() {
        text.push_str(&format!(
            "{}\n",
            paragraph("", "", &style::visible(sentence))
        ));
    }
    let VerdictRecord {
        advice, commands, ..
    } = &record.verdict;
    text.push_str(&what_to_do(advice, commands));
    text
}

/// The plainest command, else advice. A command stays on its line, however
/// long, so that it can be copied.
pub(super) fn what_to_do(advice: &str, commands: &[CommandRecord]) -> String {
    match commands.first() {
        Some(command) => format!("→ Run: {}\n", style::visible(&command.line)),
        None if advice.is_empty() => String::new(),
        None => format!("{}\n", paragraph("→ ", "  ", advice)),
    }
}

/// Sentences on a limit on slow-downs, which has no column.
fn limits(record: &Comparison) -> String {
    let limits = record
        .contrasts
        .iter()
        .filter_map(|contrast| contrast.limit.as_ref());
    let lines = limits.map(|limit| {
        let sentence = style::visible(&limit.sentence);
        format!("{}\n", paragraph("  ", "    ", &sentence))
    });
    lines.collect()
}

fn contrasts(record: &Comparison) -> String {
    record
        .contrasts
        .iter()
        .map(|contrast| {
            let limit = contrast.limit.iter().map(|limit| &limit.sentence);
            let more = contrast.beside.iter().chain(limit);
            let more = more.map(|more| format!(" {}", style::visible(more)));
            // Names may hold line breaks.
            let line = style::visible(&contrast.sentence) + &more.collect::<String>();
            format!("{}\n", paragraph("  ", "    ", &line))
        })
        .collect()
}

/// Findings with their advice, worst first.
pub(super) fn findings<'f>(
    findings: impl IntoIterator<Item = &'f Finding>,
    palette: Palette,
) -> String {
    let mut findings = findings.into_iter().peekable();
    if findings.peek().is_none() {
        return String::new();
    }
    let mut text = format!("\n{}\n", palette.strong("Findings"));
    for finding in findings {
        let (mark, painted): (&str, fn(Palette, &str) -> String) = match finding.severity {
            Severity::Problem => ("!!", Palette::bad),
            Severity::Warning => ("! ", Palette::warn),
            Severity::Note => ("· ", Palette::faint),
        };
        let mut line = finding.sentence.clone();
        if !finding.advice.is_empty() {
            line.push_str(&format!("\n→ {}", finding.advice));
        }
        let body = paragraph("     ", "     ", &line);
        let body = body.trim_start();
        text.push_str(&format!("  {} {body}\n", painted(palette, mark)));
    }
    text
}

fn brief_method(record: &Comparison, notes: usize, palette: Palette) -> String {
    if record.blocks == 0 {
        return method(record, palette);
    }
    let notes = match notes {
        0 => String::new(),
        notes => format!(" {} more (-v).", count(notes, "note")),
    };
    let runs = match record.arms.len() {
        1 => count(record.blocks, "run"),
        _ => {
            let runs = count(record.contrasts.len() + 1, "run");
            format!("{} of {runs}", count(record.blocks, "block"))
        }
    };
    let mut contrasts = record.contrasts.iter();
    let by_cpu_time = contrasts.any(|c| c.cpu_time.as_ref().is_some_and(|cpu| cpu.decides));
    // The answer already shows that it was clear.
    let ended = match (record.stopped, record.plan.precision) {
        (Some(Stopped::Precision), None) if !by_cpu_time => String::new(),
        _ => format!("; {}", record.ending()),
    };
    let line = format!(
        "{runs}, {}{ended}.{notes} {}",
        elapsed_line(record),
        palette.record(&record.id),
    );
    paragraph("", "", &line)
}

fn method(record: &Comparison, palette: Palette) -> String {
    let runs = count(record.contrasts.len() + 1, "run");
    let blocks = count(record.blocks, "block");
    let ended = record.ending();
    let (named, spent) = (palette.record(&record.id), elapsed_line(record));
    if record.blocks == 0 {
        let line = format!("No complete block, {spent}; {ended}. {named}");
        return paragraph("", "", &line);
    }
    let screening = if record.plan.screened_arms > 0 {
        format!(" after screening {} arms", record.plan.screened_arms)
    } else {
        String::new()
    };
    let has_dropped = record.contrasts.iter().any(|c| c.dropped_after.is_some());
    let up_to = if has_dropped { "up to " } else { "" };
    let line = format!(
        "{blocks} of {up_to}{runs} in random order (seed {}){screening}, {} warm-up, {spent}; {ended}. {}{}{} {named}",
        record.seed,
        record.plan.warmup_blocks,
        interval_level(record),
        record
            .verdict
            .guarantee
            .as_ref()
            .map_or_else(String::new, |text| format!("{text} ")),
        record.verdict.condition,
    );
    paragraph("", "", &line)
}

fn elapsed_line(record: &Comparison) -> String {
    duration(Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_that_the_answer_speaks_of_are_shown() {
        let text = include_str!("../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let differ = Finding::new("medians_differ", Severity::Note, "", "");
        record.header.findings.push(differ);
        let answer = comparison_answer(&record, Palette::new(false));
        let header = answer.lines().nth(3).unwrap_or_default();
        assert!(header.contains("typical"), "{header}");
        assert!(header.contains("change"), "{header}");
    }

    #[test]
    fn tables_in_files_say_why_nothing_is_recommended() {
        let text = include_str!("../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let advice = "No placement is recommended here.";
        record.verdict.advice = advice.to_owned();
        assert!(!crate::markdown(&record).contains(advice));
        record.verdict.not_recommended = Some(pinwise_record::NotRecommended::BusyMachine);
        assert!(crate::markdown(&record).contains(advice));
    }
}
