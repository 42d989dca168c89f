//! A bench as text: the gain from the second CPU of a core, speed-ups by threads and placement, the
//! gain from builds, and a summary.

use super::comparison::{describe_findings, format_heading, next_step};
use super::style::{Palette, paragraph, quantity, shorten, table, visible};
use super::table::{Cell, Table};
use pinwise_format::{count, duration, round_bytes, signed_percent, three_digits};
use pinwise_record::{Bench, BenchCell, BenchKernel, Estimate, NOT_ENDED, Question, Stopped};
use std::time::Duration;

/// The most placements in one table.
const MAX_PLACEMENTS: usize = 4;
/// Longest name of a placement in a heading.
const NAME_WIDTH: usize = 14;

/// The whole bench for a terminal.
#[must_use]
pub fn render_bench(record: &Bench, palette: Palette) -> String {
    let mut text = format_heading(&record.title(), &record.host, None, palette);
    let kernels_for = |question: Question| -> Vec<&BenchKernel> {
        let kernels = record.kernels.iter();
        kernels
            .filter(|kernel| kernel.question == question)
            .collect()
    };
    text.push_str(&format_smt_table(record, palette));
    for kernel in kernels_for(Question::Scaling) {
        text.push_str(&format_scaling_table(kernel, palette));
    }
    text.push_str(&format_builds_table(
        &kernels_for(Question::Builds),
        palette,
    ));
    for kernel in kernels_for(Question::Sizes) {
        text.push_str(&format_sizes_table(kernel, palette));
    }
    text.push_str(&format_scores_table(record, palette));
    text.push_str(&describe_findings(&record.findings, palette));
    text.push('\n');
    text.push_str(&palette.faint(&describe_method(record, palette)));
    text.push('\n');
    text.push_str(&list_conclusions(record, palette));
    text
}

/// Formats a gain and its interval, such as `+18.2 % (+16.9 … +19.6)`.
fn format_gain(share: Option<Estimate>) -> String {
    match share {
        None => "–".to_owned(),
        Some(Estimate {
            value,
            low: Some(low),
            high: Some(high),
        }) => {
            let end = |share: f64| signed_percent(share).trim_end_matches(" %").to_owned();
            format!("{} ({} … {})", signed_percent(value), end(low), end(high))
        }
        Some(share) => format!("{} (no interval)", signed_percent(share.value)),
    }
}

fn format_smt_table(record: &Bench, palette: Palette) -> String {
    let find = |name: &str, question: Question| {
        let mut kernels = record.kernels.iter();
        kernels.find(|k| k.kernel == name && k.question == question)
    };
    let mut names: Vec<&str> = record
        .kernels
        .iter()
        .filter(|k| matches!(k.question, Question::SmtCore | Question::SmtMachine))
        .map(|kernel| kernel.kernel.as_str())
        .collect();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let thread_range = |question: Question| {
        let kernel = record.kernels.iter().find(|k| k.question == question);
        kernel.map(|kernel| {
            let threads: Vec<usize> = kernel.cells.iter().map(|cell| cell.threads).collect();
            format!("{} → {} threads", threads[0], threads.last().unwrap_or(&0))
        })
    };
    let format_yield = |name: &str, question: Question| {
        format_gain(find(name, question).and_then(|kernel| kernel.smt_yield))
    };
    let core = thread_range(Question::SmtCore);
    let machine = thread_range(Question::SmtMachine);
    let mut header = vec!["kernel".to_owned()];
    header.extend(
        core.as_ref()
            .map(|thread_range| format!("one core, {thread_range}")),
    );
    header.extend(
        machine
            .as_ref()
            .map(|thread_range| format!("all cores, {thread_range}")),
    );
    let rows = names
        .iter()
        .map(|name| {
            let mut row = vec![(*name).to_owned()];
            row.extend(core.as_ref().map(|_| format_yield(name, Question::SmtCore)));
            row.extend(
                machine
                    .as_ref()
                    .map(|_| format_yield(name, Question::SmtMachine)),
            );
            row
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let title = palette.strong("SMT yield: gain from the other CPUs of a core");
    let shown = paragraph("", "", &record.smt.sentence);
    format!("\n{title}\n{shown}\n{}", table(&header, rows))
}

/// A cell's rate in the kernel's unit, or its time.
fn format_rate(kernel: &BenchKernel, cell: &BenchCell) -> String {
    match (cell.bytes_per_s, cell.rate, cell.seconds) {
        (Some(bytes), ..) => format!("{:.2} GB/s", bytes.value / 1e9),
        (None, Some(rate), _) => quantity(rate.value, &format!("{}/s", kernel.operation)),
        (None, None, Some(seconds)) => quantity(seconds.value, "s"),
        _ => "–".to_owned(),
    }
}

/// Formats speed-up, half interval and efficiency, such as `1.97 ±0.02 99 %`.
fn format_speed_up(cell: &BenchCell) -> String {
    if cell.invalid.is_some() {
        return "failed".to_owned();
    }
    let Some(speed_up) = cell.speed_up else {
        return "–".to_owned();
    };
    let half = match (speed_up.low, speed_up.high) {
        (Some(low), Some(high)) if high > low => format!(" ±{:.2}", 0.5 * (high - low)),
        (Some(_), Some(_)) => String::new(),
        _ => " ±?".to_owned(),
    };
    let efficiency = cell.efficiency.map_or_else(String::new, |efficiency| {
        format!(" {:.0} %", 100.0 * efficiency)
    });
    format!("{:.2}{half}{efficiency}", speed_up.value)
}

fn format_kernel_heading(kernel: &BenchKernel, palette: Palette) -> String {
    let title = palette.strong(&visible(&kernel.kernel));
    let baseline = kernel.baseline_cell();
    let baseline = baseline.map_or_else(String::new, |cell| {
        format!(": {} is {}", visible(&cell.name), format_rate(kernel, cell))
    });
    let mut text = format!("\n{title}{baseline}\n");
    if !kernel.cache_fit.is_empty() {
        text.push_str(&paragraph("  ", "  ", &kernel.cache_fit));
        text.push('\n');
    }
    text
}

/// A table of speed-ups, threads × placements.
fn format_scaling_table(kernel: &BenchKernel, palette: Palette) -> String {
    let mut families: Vec<&str> = Vec::new();
    let mut threads: Vec<usize> = Vec::new();
    for cell in &kernel.cells {
        if !families.contains(&cell.family.as_str()) {
            families.push(&cell.family);
        }
        if !threads.contains(&cell.threads) {
            threads.push(cell.threads);
        }
    }
    let mut text = format_kernel_heading(kernel, palette);
    for part in families.chunks(MAX_PLACEMENTS) {
        let mut header = vec!["threads".to_owned()];
        header.extend(part.iter().map(|family| shorten(family, NAME_WIDTH)));
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let row = |threads: &usize| {
            let mut row = vec![threads.to_string()];
            row.extend(
                part.iter()
                    .map(|family| format_cell_text(kernel, *threads, family)),
            );
            row
        };
        text.push_str(&table(&header, threads.iter().map(row).collect()));
    }
    text
}

/// The text of a cell; one that was merged with another names that.
fn format_cell_text(kernel: &BenchKernel, threads: usize, family: &str) -> String {
    let mut of_row = kernel.cells.iter().filter(|cell| cell.threads == threads);
    if let Some(cell) = of_row.clone().find(|cell| cell.family == family) {
        return format_speed_up(cell);
    }
    let stem = |name: &str| name.split('*').next().unwrap_or_default().to_owned();
    let is_twin = |cell: &&BenchCell| cell.same_as.iter().any(|name| stem(name) == family);
    of_row.find(is_twin).map_or_else(
        || "·".to_owned(),
        |cell| shorten(&format!("= {}", cell.family), NAME_WIDTH),
    )
}

/// A table of speed-ups, kernels × instruction sets.
fn format_builds_table(kernels: &[&BenchKernel], palette: Palette) -> String {
    let Some(first) = kernels.first() else {
        return String::new();
    };
    let mut isas: Vec<&str> = Vec::new();
    for cell in &first.cells {
        if !isas.contains(&cell.isa.as_str()) {
            isas.push(&cell.isa);
        }
    }
    let mut header = vec!["kernel", "threads", "placement"];
    header.extend(&isas);
    let mut rows = Vec::new();
    for kernel in kernels {
        let mut seen: Vec<(usize, &str)> = Vec::new();
        for cell in &kernel.cells {
            let line = (cell.threads, cell.placement.as_str());
            if seen.contains(&line) {
                continue;
            }
            seen.push(line);
            let mut row = vec![
                kernel.kernel.clone(),
                cell.threads.to_string(),
                shorten(&cell.placement, NAME_WIDTH),
            ];
            let of_line = |c: &&BenchCell| (c.threads, c.placement.as_str()) == line;
            row.extend(isas.iter().map(|isa| {
                let mut cells = kernel.cells.iter().filter(of_line);
                let found = cells.find(|cell| cell.isa == *isa);
                found.map_or_else(|| "·".to_owned(), format_speed_up)
            }));
            rows.push(row);
        }
    }
    let title = format!("Builds: speed over {}", visible(&first.baseline));
    format!("\n{}\n{}", palette.strong(&title), table(&header, rows))
}

/// Formats a ratio of times, such as `4.85 (4.61–5.02)`. Larger sizes take much longer: a ratio of
/// speeds would have no digits left.
fn format_time_ratio(cell: &BenchCell) -> String {
    let Some(speed_up) = cell.speed_up else {
        return "–".to_owned();
    };
    let value = three_digits(1.0 / speed_up.value);
    match (speed_up.low, speed_up.high) {
        (Some(low), Some(high)) if high > low => {
            let ends = (three_digits(1.0 / high), three_digits(1.0 / low));
            format!("{value} ({}–{})", ends.0, ends.1)
        }
        (Some(_), Some(_)) => value,
        _ => format!("{value} (no interval)"),
    }
}

fn format_sizes_table(kernel: &BenchKernel, palette: Palette) -> String {
    let rows = kernel
        .cells
        .iter()
        .map(|cell| {
            vec![
                cell.size.map_or_else(|| "default".to_owned(), round_bytes),
                cell.threads.to_string(),
                format_rate(kernel, cell),
                format_time_ratio(cell),
            ]
        })
        .collect();
    let header = ["size", "threads", "rate", "time over the first"];
    format!(
        "{}{}",
        format_kernel_heading(kernel, palette),
        table(&header, rows)
    )
}

/// A table of the scores of the most threads, or the newest build; the record has the others.
fn format_scores_table(record: &Bench, palette: Palette) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (index, score) in record.scores.iter().enumerate() {
        let is_same = |other: &&pinwise_record::GroupScore| {
            (other.question, &other.group) == (score.question, &score.group)
        };
        let has_later = record.scores[index + 1..]
            .iter()
            .any(|other| is_same(&other));
        if has_later || score.kernels.len() < 2 {
            continue;
        }
        rows.push(vec![
            score.group.clone(),
            shorten(&score.cell, 24),
            shorten(&score.reference, 18),
            format!("{:.2}", score.score),
            count(score.kernels.len(), "kernel"),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    let title = palette.strong("Scores: geometric means of speed over the reference");
    let header = ["group", "cell", "reference", "score", "of"];
    format!("\n{title}\n{}", table(&header, rows))
}

fn list_conclusions(record: &Bench, palette: Palette) -> String {
    if record.conclusions.is_empty() {
        return String::new();
    }
    let mut text = "\n".to_owned();
    for sentence in &record.conclusions {
        let folded = paragraph("", "  ", sentence);
        text.push_str(&format!("{}\n", palette.strong(&folded)));
    }
    text + &next_step(&record.advice, &[])
}

fn describe_method(record: &Bench, palette: Palette) -> String {
    let named = palette.record(&record.id);
    let spent = duration(Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default());
    let stopped = match record.stopped {
        Some(Stopped::Precision) => "every interval as narrow as requested",
        Some(Stopped::Budget) => "some hit the time budget",
        Some(Stopped::Runs) => "some hit the run budget",
        Some(Stopped::Interrupted) => "interrupted",
        Some(Stopped::Failed) => "some arms failed",
        None => NOT_ENDED,
    };
    let done = record.kernels.len();
    if record.planned == 0 {
        let line = format!("Nothing was measured. {named}");
        return paragraph("", "", &line);
    }
    let comparisons = if done == record.planned {
        count(done, "comparison")
    } else {
        format!("{done} of {}", count(record.planned, "comparison"))
    };
    let line = format!(
        "{comparisons} in random blocks (seed {}), {spent}; {stopped}. Intervals: 95 % simultaneous over all cells of a comparison. {named}",
        record.seed
    );
    paragraph("", "", &line)
}

/// One row per cell.
#[must_use]
pub fn list_bench_rows(record: &Bench) -> Table {
    let mut table = Table::new([
        "kernel",
        "group",
        "question",
        "comparison",
        "cell",
        "threads",
        "placement",
        "cpus",
        "isa",
        "size",
        "seconds",
        "rate",
        "bytes_per_s",
        "speed_up",
        "speed_up_low",
        "speed_up_high",
        "efficiency",
    ]);
    for kernel in &record.kernels {
        for cell in &kernel.cells {
            let question = serde_json::to_value(kernel.question).unwrap_or_default();
            table.push([
                Cell::text(&kernel.kernel),
                Cell::text(&kernel.group),
                Cell::text(question.as_str().unwrap_or_default()),
                Cell::text(&kernel.comparison),
                Cell::text(&cell.name),
                Cell::whole(cell.threads),
                Cell::text(&cell.placement),
                Cell::text(&cell.cpus),
                Cell::text(&cell.isa),
                Cell::count(cell.size),
                Cell::number(cell.seconds.map(|e| e.value)),
                Cell::number(cell.rate.map(|e| e.value)),
                Cell::number(cell.bytes_per_s.map(|e| e.value)),
                Cell::number(cell.speed_up.map(|e| e.value)),
                Cell::number(cell.speed_up.and_then(|e| e.low)),
                Cell::number(cell.speed_up.and_then(|e| e.high)),
                Cell::number(cell.efficiency),
            ]);
        }
    }
    table
}
