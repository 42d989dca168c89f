//! A comparison as text: what ran, how it compares, advice and caveats.

mod joint;
mod traced;

use super::style::{self, Palette, columns, paragraph, quantity, shorten, table_without};
use pinwise_format::{count, duration, round_percent};
use pinwise_record::{
    Answer, Arm, CommandRecord, Comparison, ContrastRecord, EffectRecord, Finding, HostRecord,
    MetricRecord, RestrictedRecord, Severity, Stopped, VerdictKind, VerdictRecord,
};
use std::time::Duration;
pub(super) use traced::format_traced_arms;

/// The most columns of an arm's name in the table.
const NAME_WIDTH: usize = 26;
/// The most columns of a list of CPUs.
const CPUS_WIDTH: usize = 9;

/// Notes on requested companions and limits: they are part of the answer, and always shown.
pub(super) const REQUESTED_CHECKS: [&str; 5] = [
    "beside",
    "cgroups",
    "cost_to_companion",
    "arm_throttled",
    "limit_not_reached",
];

/// A comparison that has just ended, for a terminal: the verdict comes last, next to the prompt; that
/// of one that failed is left to an error.
/// [`render_comparison`] also shows sentences that repeat the table, notes and the method.
#[must_use]
pub fn render_comparison_answer(record: &Comparison, palette: Palette) -> String {
    let is_note = |finding: &&Finding| {
        finding.severity == Severity::Note && !REQUESTED_CHECKS.contains(&finding.check.as_str())
    };
    let (notes, grave): (Vec<&Finding>, Vec<&Finding>) = record.findings.iter().partition(is_note);
    let mut text = format_heading(&record.title(), &record.host, Some(&record.metric), palette);
    text.push('\n');
    match &record.joint {
        Some(joint) => text.push_str(&joint::format_programs_table(joint)),
        None => text.push_str(&format_arms_table(record)),
    }
    text.push_str(&describe_limits(record));
    text.push_str(&describe_cpu_time(record));
    text.push_str(&traced::describe_traces(record, palette));
    if !grave.is_empty() {
        text.push_str(&describe_findings(grave, palette));
        text.push('\n');
    }
    text.push_str(&palette.faint(&describe_method_briefly(record, notes.len(), palette)));
    text.push('\n');
    if record.stopped != Some(Stopped::Failed) {
        text += &format!("\n{}", describe_verdict(record, palette));
    }
    text
}

/// The whole comparison for a terminal, its answer last as well.
#[must_use]
pub fn render_comparison(record: &Comparison, palette: Palette) -> String {
    let mut text = String::new();
    text.push_str(&format_heading(
        &record.title(),
        &record.host,
        Some(&record.metric),
        palette,
    ));
    text.push('\n');
    if let Some(joint) = &record.joint {
        text.push_str(&joint::format_programs_table(joint));
        text.push('\n');
    }
    text.push_str(&format_arms_table(record));
    text.push_str(&describe_threads(record));
    if !record.contrasts.is_empty() {
        text.push('\n');
        text.push_str(&describe_contrasts(record));
    }
    text.push_str(&traced::describe_traces(record, palette));
    text.push_str(&describe_findings(&record.findings, palette));
    text.push('\n');
    text.push_str(&palette.faint(&describe_method(record, palette)));
    text.push_str("\n\n");
    let VerdictRecord {
        advice, commands, ..
    } = &record.verdict;
    if !commands.is_empty() && !advice.is_empty() {
        text.push_str(&format!("{}\n", paragraph("", "", advice)));
    }
    text.push_str(&describe_verdict(record, palette));
    text
}

/// A line with the title of an experiment, and one with its machine and metric.
pub(super) fn format_heading(
    title: &str,
    host: &HostRecord,
    metric: Option<&MetricRecord>,
    palette: Palette,
) -> String {
    let title = palette.strong(&shorten(title, columns()));
    let metric = metric.map_or_else(String::new, |metric| {
        format!(" · metric: {}", metric.short_name())
    });
    let place = format!("{}{metric}", describe_host(host));
    format!("{title}\n{}\n", shorten(&place, columns()))
}

/// Describes a machine: name, CPU model, numbers of CPUs and cores.
pub(super) fn describe_host(host: &HostRecord) -> String {
    let model = host.machine.cpu_model.as_deref();
    let model = model.filter(|_| !host.simulated);
    format!(
        "{}{} · {}, {}",
        host.name(),
        model.map_or_else(String::new, |model| format!(" · {model}")),
        describe_cpu_count(host),
        count(host.counts.cores, "core"),
    )
}

/// `2 CPUs`, or `1 of 2 CPUs (cpuset)`.
fn describe_cpu_count(host: &HostRecord) -> String {
    let cpus = host.counts.cpus;
    match &host.restricted {
        Some(RestrictedRecord { online, by }) => {
            format!("{cpus} of {} ({by})", count(*online, "CPU"))
        }
        None => count(cpus, "CPU"),
    }
}

fn format_arms_table(record: &Comparison) -> String {
    if let [arm] = record.arms.as_slice() {
        return format_single_arm_table(record, arm);
    }
    let header = [
        "arm", "CPUs", "typical", "change", "interval", "spread", "verdict",
    ];
    let arms = record.arms.iter().filter(|arm| !arm.eliminated);
    let rows = arms
        .map(|arm| format_arm_row(record, arm).to_vec())
        .collect();
    // If a finding speaks of the medians, their column must not be left out.
    let is_about_medians = |finding: &Finding| finding.check == "medians_differ";
    let first_to_hide: &[&str] = match record.findings.iter().any(is_about_medians) {
        true => &["spread", "CPUs", "interval"],
        false => &["spread", "CPUs", "typical", "interval"],
    };
    let mut text = table_without(first_to_hide, &[], &header, rows);
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

/// The table of an experiment with one arm, with the interval of its median.
fn format_single_arm_table(record: &Comparison, arm: &Arm) -> String {
    let [name, cpus, typical, .., spread, _] = format_arm_row(record, arm);
    let ends = arm.estimate.and_then(|e| e.low.zip(e.high));
    let interval = ends.map_or_else(String::new, |(low, high)| {
        let [low, high] = [low, high].map(|end| quantity(end, &record.metric.unit));
        format!("{low} to {high}")
    });
    let header = ["arm", "CPUs", "typical", "interval", "spread"];
    let cells = vec![name, cpus, typical, or_dash(&interval).to_owned(), spread];
    table_without(&["spread", "CPUs"], &[], &header, vec![cells])
}

/// A line for each arm on its threads, if they are known.
fn describe_threads(record: &Comparison) -> String {
    let arms = record.arms.iter();
    let known = arms.filter_map(|arm| Some((&arm.name, arm.threads.as_ref()?)));
    let lines = known.map(|(name, threads)| {
        let line = format!("Threads of {}: {}.", style::visible(name), threads.text);
        format!("{}\n", paragraph("  ", "    ", &line))
    });
    lines.collect()
}

fn format_arm_row(record: &Comparison, arm: &Arm) -> [String; 7] {
    let unit = &record.metric.unit;
    let typical = format_typical(arm, unit);
    let spread = arm
        .spread
        .as_ref()
        .map_or_else(|| "–".to_owned(), |s| format!("{:.1} %", 100.0 * s.cv));
    let [change, interval] = format_effect(record, arm);
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

/// A sentence on the confidence levels of the intervals, with a trailing space; empty without
/// intervals. The levels depend on how the error is shared between arms and with CPU time.
fn describe_levels(record: &Comparison) -> String {
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

/// Formats an arm's median; `> LIMIT` if its runs timed out.
pub(super) fn format_typical(arm: &Arm, unit: &str) -> String {
    match (arm.estimate, &arm.timed_out) {
        (Some(estimate), _) => quantity(estimate.value, unit),
        (None, Some(late)) => format!("> {}", quantity(late.limit_s, unit)),
        (None, None) => "–".to_owned(),
    }
}

/// Formats an arm's change against the baseline, and its interval.
pub(super) fn format_effect(record: &Comparison, arm: &Arm) -> [String; 2] {
    let contrast = record.contrasts.iter().find(|c| c.arm == arm.name);
    if let Some(late) = &arm.timed_out {
        return [late.change.clone(), "–".to_owned()];
    }
    // What decides is shown.
    if let Some(cpu) = contrast.and_then(ContrastRecord::deciding_cpu_time) {
        let EffectRecord { text, interval, .. } = &cpu.effect;
        return [format!("{text} CPU"), interval.clone()];
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

fn describe_verdict(record: &Comparison, palette: Palette) -> String {
    // The output of a failed command keeps its line breaks.
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
    if record.findings.iter().any(|f| f.check == "medians_differ") {
        text.push_str(&format!("{}\n", paragraph("", "", MEDIANS_MISLEAD)));
    }
    let more = [&record.verdict.steadiness, &record.verdict.beside];
    for sentence in more.into_iter().flatten() {
        text.push_str(&format!(
            "{}\n",
            paragraph("", "", &style::visible(sentence))
        ));
    }
    let VerdictRecord {
        advice, commands, ..
    } = &record.verdict;
    text.push_str(&next_step(advice, commands));
    text
}

/// Said if the medians of the table differ visibly from the change; a finding names the arms.
const MEDIANS_MISLEAD: &str = "Believe 'change', not 'typical': it compares runs side by side.";

/// The result and what to do next, which end an output.
pub(super) fn render_answer(answer: &Answer, palette: Palette) -> String {
    let sentence = paragraph("", "", &style::visible(&answer.sentence));
    let next = next_step(&style::visible(&answer.advice), &[]);
    format!("\n{}\n{next}", palette.strong(&sentence))
}

/// The first recommended command, else advice. A command is not wrapped, so that it can be copied.
pub(super) fn next_step(advice: &str, commands: &[CommandRecord]) -> String {
    match (commands.first(), split_command(advice)) {
        (Some(command), _) => {
            let why = match command.what.strip_prefix("to ") {
                Some(purpose) => format!("To {purpose}, run"),
                None => "Run".to_owned(),
            };
            format!("→ {why}: {}\n", style::visible(&command.line))
        }
        (None, _) if advice.is_empty() => String::new(),
        (None, Some((words, command))) if style::width(advice) + 2 > columns() => {
            format!("{}\n  {command}\n", paragraph("→ ", "  ", words))
        }
        (None, _) => format!("{}\n", paragraph("→ ", "  ", advice)),
    }
}

/// Advice that ends with a command: the words, with their colon, and the command.
fn split_command(advice: &str) -> Option<(&str, &str)> {
    let starts = [": pinwise ", ": echo ", ": taskset "].map(|start| advice.rfind(start));
    let at = starts.into_iter().flatten().max()? + 1;
    let (words, command) = (&advice[..at], advice[at..].trim());
    let goes_on = command.contains(". ") || command.contains("; ");
    (!goes_on).then_some((words, command))
}

/// Sentences on the limit of `--fail-if-slower`, which has no column.
fn describe_limits(record: &Comparison) -> String {
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

/// How much narrower an interval is that tells more than that of wall-clock time.
const TELLS_MORE: f64 = 0.5;

/// CPU time of two builds on the same CPUs, if other programs hide it less than wall-clock time; of
/// the typical run, which says nothing of a mean.
fn describe_cpu_time(record: &Comparison) -> String {
    let ([a, b], [contrast]) = (record.arms.as_slice(), record.contrasts.as_slice()) else {
        return String::new();
    };
    let width = |low: Option<f64>, high: Option<f64>| Some(high? - low?);
    let cpu = contrast.cpu_time.as_ref().filter(|cpu| {
        let of_cpu = width(cpu.low, cpu.high);
        let of_wall = width(contrast.low, contrast.high);
        let widths = of_cpu.zip(of_wall);
        widths.is_some_and(|(cpu, wall)| cpu <= TELLS_MORE * wall)
    });
    // The verdict has what a companion costs.
    let is_alike = a.cpus == b.cpus && a.setting.beside == b.setting.beside;
    let is_typical_time = record.judges_typical_run() && record.metric.is_wall();
    let shown = cpu.filter(|cpu| is_alike && is_typical_time && !cpu.decides);
    shown.map_or_else(String::new, |cpu| {
        let (arm, effect) = (style::visible(&contrast.arm), &cpu.effect);
        format!("  CPU time of {arm}: {}\n", effect.describe_with_interval())
    })
}

fn describe_contrasts(record: &Comparison) -> String {
    record
        .contrasts
        .iter()
        .map(|contrast| {
            let limit = contrast.limit.iter().map(|limit| &limit.sentence);
            let more = contrast.beside.iter().chain(limit);
            let more = more.map(|more| format!(" {}", style::visible(more)));
            // Names may contain line breaks.
            let line = style::visible(&contrast.sentence) + &more.collect::<String>();
            format!("{}\n", paragraph("  ", "    ", &line))
        })
        .collect()
}

/// Findings with their advice, worst first.
pub(super) fn describe_findings<'f>(
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

/// An interval from this ratio of its ends on is wide.
const WIDE: f64 = 1.1;

/// Is it decided though the size of a difference is hardly known?
fn is_wide(record: &Comparison) -> bool {
    let mut ends = record.contrasts.iter().filter(|c| c.is_decided());
    ends.any(|c| {
        c.low
            .zip(c.high)
            .is_some_and(|(low, high)| high >= WIDE * low)
    })
}

fn describe_method_briefly(record: &Comparison, notes: usize, palette: Palette) -> String {
    if record.blocks == 0 {
        return describe_method(record, palette);
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
    let is_plain = !record.is_decided_by_cpu_time() && !is_wide(record);
    // The verdict already shows that the experiment ended since all was decided.
    let ended = match (record.stopped, record.plan.precision) {
        (Some(Stopped::Precision), None) if is_plain => String::new(),
        _ => format!("; {}", record.ending()),
    };
    let line = format!(
        "{runs}, {}{ended}.{notes} {}",
        format_elapsed(record),
        palette.record(&record.id),
    );
    paragraph("", "", &line)
}

fn describe_method(record: &Comparison, palette: Palette) -> String {
    let runs = count(record.contrasts.len() + 1, "run");
    let blocks = count(record.blocks, "block");
    let ended = record.ending();
    let (named, spent) = (palette.record(&record.id), format_elapsed(record));
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
        describe_levels(record),
        record
            .verdict
            .guarantee
            .as_ref()
            .map_or_else(String::new, |text| format!("{text} ")),
        record.verdict.condition,
    );
    paragraph("", "", &line)
}

fn format_elapsed(record: &Comparison) -> String {
    duration(Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_that_a_finding_is_about_are_shown() {
        let text = include_str!("../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let differ = Finding::new("medians_differ", Severity::Note, "", "");
        record.header.findings.push(differ);
        let answer = render_comparison_answer(&record, Palette::new(false));
        let header = answer.lines().nth(3).unwrap_or_default();
        assert!(header.contains("typical"), "{header}");
        assert!(header.contains("change"), "{header}");
    }

    #[test]
    fn cpu_time_that_tells_more_than_wall_clock_time_is_shown() {
        let text = include_str!("../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        record.arms.truncate(2);
        record.contrasts.truncate(1);
        record.arms[1].cpus = record.arms[0].cpus.clone();
        (record.contrasts[0].low, record.contrasts[0].high) = (Some(1.4), Some(1.6));
        let mut shown = |low, high| {
            let part = pinwise_record::ComponentRecord::new(1.5, Some(low), Some(high));
            record.contrasts[0].cpu_time = Some(part);
            render_comparison_answer(&record, Palette::new(false)).contains("CPU time of ")
        };
        assert!(shown(1.48, 1.53));
        assert!(!shown(1.43, 1.56));
    }

    #[test]
    fn tables_in_files_say_why_nothing_is_recommended() {
        let text = include_str!("../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        let advice = "No placement is recommended here.";
        record.verdict.advice = advice.to_owned();
        assert!(!crate::render_markdown(&record).contains(advice));
        record.verdict.not_recommended = Some(pinwise_record::NotRecommended::BusyMachine);
        assert!(crate::render_markdown(&record).contains(advice));
    }
}
