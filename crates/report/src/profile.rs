//! A profile as text: summary, functions, hot instructions, threads.

use super::comparison::render_answer;
use super::style::{
    Palette, columns, name_cpus, paragraph, shorten, table, visible, width as width_of,
};
use pinwise_format::{count_of, percent, seconds, trimmed};
use pinwise_record::{
    AmountRecord, FunctionKind, FunctionRecord, LineRecord, ProfileRecord, SampleEvent, SpotRecord,
    StackMethod, TraceSource,
};

/// The most columns of a function's name.
const NAME_WIDTH: usize = 28;
/// A function without samples of its own is listed if its callees took at least this share of all
/// time.
const MIN_CALLEE_SHARE: f64 = 0.05;

/// How much of a profile is shown; the record has more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileShown {
    /// The most functions.
    pub functions: usize,
    /// The most hot instructions.
    pub instructions: usize,
    /// The most threads.
    pub threads: usize,
}

impl ProfileShown {
    /// Threads shown by default.
    pub const THREADS: usize = 8;
}

impl Default for ProfileShown {
    fn default() -> Self {
        Self {
            functions: 12,
            instructions: 2,
            threads: Self::THREADS,
        }
    }
}

/// A profile for a terminal.
#[must_use]
pub fn render_profile(record: &ProfileRecord, shown: &ProfileShown, palette: Palette) -> String {
    let mut out = format!(
        "{}\n",
        palette.strong(&paragraph("", "  ", &format_title(record)))
    );
    out += &format!("{}\n", paragraph("", "  ", &describe_origin(record)));
    if let Some(line) = describe_stacks(record) {
        out += &format!("{}\n", paragraph("", "  ", &line));
    }
    out += &format_functions_table(record, shown.functions);
    out += &list_instructions(record, shown.instructions, palette);
    out += &format_threads_table(record, shown.threads);
    if !record.notes.is_empty() {
        out += "\n";
    }
    for note in &record.notes {
        out += &format!("{}\n", paragraph("  · ", "    ", note));
    }
    out += &palette.faint(&format!("\n{}\n", palette.record(&record.id)));
    out + &render_answer(&record.answer, palette)
}

fn format_title(record: &ProfileRecord) -> String {
    let took = seconds(record.wall_s);
    match &record.source {
        TraceSource::Command {
            command,
            placement,
            cpus,
        } => {
            let command = shorten(&command.join(" "), 200);
            let runs = match record.runs.len() {
                1 => "1 run".to_owned(),
                many => format!("{many} runs"),
            };
            format!(
                "{command} under {placement} ({}), {runs}, {took}",
                name_cpus(cpus)
            )
        }
        TraceSource::Process { pid, name } => format!("{} ({pid}), {took}", visible(name)),
        TraceSource::Machine | TraceSource::Import { .. } => {
            format!("{}, {took}", visible(&record.title()))
        }
    }
}

fn describe_origin(record: &ProfileRecord) -> String {
    let total = &record.figures.total;
    let work = &record.work;
    let per_unit = match total.cpu_s_per_unit {
        Some(each) if work.unit != "run" || record.runs.len() > 1 => format!(
            ", {} per {} ({} of them)",
            seconds(each),
            work.unit,
            trimmed(work.count)
        ),
        _ => String::new(),
    };
    let pause = record.pause.as_ref().map_or_else(String::new, |pause| {
        format!(
            " A PAUSE takes {:.1} ns here (CPU {}).",
            pause.ns, pause.cpu
        )
    });
    if record.event == SampleEvent::Proc {
        return format!(
            "CPU times of threads by /proc: at least {}{per_unit}.",
            seconds(total.cpu_s)
        );
    }
    let lost = match record.lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} LOST"),
    };
    let of_counted = record
        .check_sampled_time()
        .map_or_else(String::new, |counted_s| {
            format!("of {} ", seconds(counted_s))
        });
    format!(
        "{} {of_counted}of CPU time{per_unit}; {} by {} at {} Hz, {lost}.{pause}",
        seconds(total.cpu_s),
        count_of(total.samples, "sample", "samples"),
        record.event,
        record.hz
    )
}

/// A line on how stacks were unwound, and how many are broken.
pub(super) fn describe_stacks(record: &ProfileRecord) -> Option<String> {
    let stacks = record.figures.stacks.as_ref()?;
    let total = &record.figures.total;
    if total.samples == 0 {
        return None;
    }
    let (by, least) = match &stacks.by {
        StackMethod::FramePointers => ("frame pointers", "at least "),
        StackMethod::Dwarf => ("unwind tables", ""),
        other => (other.as_str(), ""),
    };
    let hint = match stacks.by {
        StackMethod::FramePointers if stacks.broken.samples > 0 => {
            "; --stacks dwarf finds more callers"
        }
        _ => "",
    };
    Some(format!(
        "Stacks by {by}: {:.1} frames on average, {least}{} broken{hint}.",
        stacks.mean_frames,
        format_share(&stacks.broken, total)
    ))
}

/// Formats a part of all CPU time in per cent.
fn format_share(part: &AmountRecord, total: &AmountRecord) -> String {
    percent(part.cpu_s / total.cpu_s)
}

/// The width of the shortest module's name that says something, with its brackets.
const MIN_TAIL: usize = 9;

/// Formats a function's name, with its module unless that is the program, such as `spin
/// [libc.so.6]`.
pub(super) fn format_function_name(
    name: &str,
    module: Option<&str>,
    kind: &FunctionKind,
    program: &str,
    width: usize,
) -> String {
    let file = |path: &str| match path.starts_with("//") {
        true => path.to_owned(),
        false => path.rsplit('/').next().unwrap_or(path).to_owned(),
    };
    let is_bare = name.starts_with("0x");
    let tail = match (kind, module) {
        (FunctionKind::Kernel, _) if name == "[kernel]" => String::new(),
        (FunctionKind::Kernel, _) => " [kernel]".to_owned(),
        (_, Some("[vdso]")) => " [vdso]".to_owned(),
        (_, Some(module)) if is_bare || file(module) != file(program) => {
            format!(" [{}]", shorten(&file(module), 14))
        }
        _ => String::new(),
    };
    // The function says more than its file.
    let beside = width.saturating_sub(width_of(name));
    let tail = match module {
        Some(module) if !is_bare && *kind != FunctionKind::Kernel && width_of(&tail) > beside => {
            match beside {
                MIN_TAIL.. => format!(" [{}]", shorten(&file(module), beside - 3)),
                _ => String::new(),
            }
        }
        _ => tail,
    };
    let room = width.saturating_sub(width_of(&tail)).max(8);
    format!("{}{tail}", shorten(name, room))
}

fn format_functions_table(record: &ProfileRecord, max: usize) -> String {
    let figures = &record.figures;
    let has_units = record.work.unit != "run" || record.runs.len() > 1;
    let row = |function: &FunctionRecord| {
        let mut row = vec![
            format_function_name(
                &function.name,
                function.module.as_deref(),
                &function.kind,
                record.program(),
                NAME_WIDTH,
            ),
            seconds(function.own.cpu_s),
            format_share(&function.own, &figures.total),
            seconds(function.total.cpu_s),
        ];
        if has_units {
            let each = function.own.cpu_s_per_unit;
            row.push(each.map_or_else(|| "–".to_owned(), seconds));
        }
        row.push(function.own.samples.to_string());
        row
    };
    let (listed, rest) = choose_functions(record, max);
    let rows: Vec<Vec<String>> = listed.into_iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let per_unit = format!("self/{}", shorten(&record.work.unit, 8));
    let mut header = vec!["Function", "self", "", "total"];
    if has_units {
        header.push(&per_unit);
    }
    header.push("samples");
    let mut out = format!("\n{}", table(&header, rows));
    let left_out = &figures.functions_left_out;
    let own_s: f64 = rest.iter().map(|f| f.own.cpu_s).sum::<f64>() + left_out.own.cpu_s;
    let samples = rest.iter().map(|function| function.own.samples);
    let samples = samples.fold(left_out.own.samples, u64::saturating_add);
    let more = left_out.count.saturating_add(rest.len() as u64);
    if more > 0 {
        let samples = count_of(samples, "sample", "samples");
        out += &format!("  and {more} more: {}, {samples}\n", seconds(own_s));
    }
    out
}

/// Chooses the first `max` functions that have samples of their own or whose callees took much
/// time; also returns the others.
fn choose_functions(
    record: &ProfileRecord,
    max: usize,
) -> (Vec<&FunctionRecord>, Vec<&FunctionRecord>) {
    let much_s = MIN_CALLEE_SHARE * record.figures.total.cpu_s;
    let is_worth =
        |function: &&FunctionRecord| function.own.samples > 0 || function.total.cpu_s >= much_s;
    let (mut listed, mut rest): (Vec<_>, Vec<_>) =
        record.figures.functions.iter().partition(is_worth);
    rest.extend(listed.split_off(listed.len().min(max)));
    (listed, rest)
}

fn list_instructions(record: &ProfileRecord, max: usize, palette: Palette) -> String {
    let figures = &record.figures;
    let spots = figures.instructions.iter();
    let spots = spots.filter(|spot| spot.own.samples > 0).take(max);
    let mut out = String::new();
    for spot in spots {
        let what = format!(
            "{}: {} ({}) and {} {}",
            describe_spot(spot, record.program()),
            seconds(spot.shown.cpu_s),
            format_share(&spot.shown, &figures.total),
            count_of(spot.shown.samples, "sample", "samples"),
            match spot.lines.is_empty() {
                true => "here",
                false => "in these lines",
            }
        );
        out += &format!("\n{}\n", palette.strong(&paragraph("", "  ", &what)));
        if spot.lines.is_empty() {
            out += "    code not readable\n";
        }
        for line in &spot.lines {
            out += &format!("{}\n", format_instruction_line(line, spot, palette));
        }
    }
    out
}

fn describe_spot(spot: &SpotRecord, program: &str) -> String {
    let name = format_function_name(
        &spot.function,
        spot.module.as_deref(),
        &spot.kind,
        program,
        48,
    );
    let source = spot.source.as_ref();
    let source = source.map_or_else(String::new, |source| format!(", {}", visible(source)));
    format!("{name} at {:#x}{source}", spot.address)
}

fn format_instruction_line(line: &LineRecord, spot: &SpotRecord, palette: Palette) -> String {
    let (samples, time) = match line.own.samples {
        0 => (String::new(), String::new()),
        samples => (samples.to_string(), seconds(line.own.cpu_s)),
    };
    let mark = if line.waits && line.own.samples > 0 {
        "  ← waiting in the hint"
    } else {
        ""
    };
    let place = format!("{samples:>9} {time:>8}  {:>8x}  ", line.address);
    let room = columns().saturating_sub(width_of(&place) + width_of(mark));
    let row = format!("{place}{}{mark}", shorten(&line.text, room));
    if line.address == spot.address {
        palette.warn(&row)
    } else if line.own.samples == 0 {
        palette.faint(&row)
    } else {
        row
    }
}

fn format_threads_table(record: &ProfileRecord, max: usize) -> String {
    let figures = &record.figures;
    let rows: Vec<Vec<String>> = figures
        .threads
        .iter()
        .take(max)
        .map(|thread| {
            let cpu_s = thread.cpu_s.unwrap_or(thread.sampled.cpu_s);
            vec![
                thread
                    .thread
                    .map_or_else(|| format!("×{}", thread.threads), |tid| tid.to_string()),
                shorten(&thread.name, 16),
                seconds(cpu_s),
                seconds(thread.waits.cpu_s),
                thread.sampled.samples.to_string(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["Thread", "name", "CPU time", "in spin hints", "samples"];
    let shown = rows.len() as u64;
    let mut out = format!("\n{}", table(&header, rows));
    let more = figures.threads.len() as u64 - shown;
    let more = more.saturating_add(figures.threads_left_out.count);
    if more > 0 {
        out += &format!("  and {more} more\n");
    }
    out
}

/// Folded stacks, a line `a;b;c N` for each: its functions from the outermost on, and its number of
/// samples. Semicolons within names become colons.
#[must_use]
pub fn render_folded(record: &ProfileRecord) -> String {
    let Some(tree) = record.figures.calls.to_tree() else {
        return String::new();
    };
    tree.stacks()
        .map(|(path, amount)| {
            let names = path.iter();
            let names: Vec<String> = names
                .map(|function| visible(&function.name).replace(';', ":"))
                .collect();
            format!("{} {}\n", names.join(";"), amount.samples)
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
