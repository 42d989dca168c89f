//! A gate as text, as Markdown for a pull request, and as rows.

use super::comparison::{describe_findings, describe_host, format_heading, next_step};
use super::style::{Palette, paragraph, quantity, shorten, table_without, visible, width};
use super::table::{Cell, Table};
use pinwise_format::{count, duration, percent};
use pinwise_record::{GateBenchmark, GateDecision, GateOutcome, GateRecord};
use std::time::Duration;

/// Longest name of a benchmark in the table, columns.
const NAME_WIDTH: usize = 30;

/// The whole gate for a terminal.
#[must_use]
pub fn render_gate(record: &GateRecord, palette: Palette) -> String {
    let mut text = format_heading(&record.title(), &record.host, None, palette);
    let header = [
        "benchmark",
        record.base.name.as_str(),
        record.head.name.as_str(),
        "change",
        "interval",
        "pairs",
        "verdict",
    ];
    let header = header.map(|word| shorten(word, 12));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let optional = [header[5], header[1], header[2]];
    let rows = order_by_outcome(record).map(format_benchmark_row);
    text.push_str(&format!(
        "\n{}",
        table_without(&optional, &[], &header, rows.collect())
    ));
    for benchmark in order_by_outcome(record).filter(|benchmark| needs_sentence(benchmark)) {
        text.push_str(&format!("{}\n", paragraph("  ", "  ", &benchmark.sentence)));
    }
    text.push_str(&describe_findings(&record.findings, palette));
    text.push_str(&format!(
        "\n{}\n",
        palette.faint(&paragraph(
            "",
            "",
            &format!(
                "{}. {}",
                describe_method(record),
                palette.record(&record.id)
            )
        ))
    ));
    text.push_str(&format!("\n{}", describe_verdict(record, palette)));
    text
}

/// The verdict and advice; printed last, next to the prompt.
fn describe_verdict(record: &GateRecord, palette: Palette) -> String {
    let sentence = paragraph("", "", &record.verdict.sentence);
    let text = match record.verdict.decision {
        GateDecision::Pass => format!("{}\n{sentence}\n", palette.good("PASS")),
        GateDecision::Fail => format!("{}\n{sentence}\n", palette.bad("FAIL")),
        GateDecision::Broken => format!("{}\n{sentence}\n", palette.bad("BROKEN")),
        // The sentence begins with the word.
        _ => format!("{}\n", palette.warn(&sentence)),
    };
    text + &next_step(&visible(&record.verdict.advice), &[])
}

/// The benchmarks that need attention first: slower, failed, undecided, then the rest in the
/// order of the suite.
fn order_by_outcome(record: &GateRecord) -> impl Iterator<Item = &GateBenchmark> {
    let rank = |benchmark: &GateBenchmark| match benchmark.outcome {
        GateOutcome::Slower => 0,
        GateOutcome::Failed | GateOutcome::Missing => 1,
        GateOutcome::Undecided => 2,
        _ => 3,
    };
    let mut sorted: Vec<&GateBenchmark> = record.benchmarks.iter().collect();
    sorted.sort_by_key(|benchmark| rank(benchmark));
    sorted.into_iter()
}

/// Does its row lack something that its sentence says?
fn needs_sentence(benchmark: &GateBenchmark) -> bool {
    benchmark.problem.is_some()
        || benchmark.outcome == GateOutcome::Missing
        || benchmark.is_decided_by_cpu() && benchmark.outcome == GateOutcome::Slower
        || benchmark.is_open_but_for_cpu()
}

fn format_benchmark_row(benchmark: &GateBenchmark) -> Vec<String> {
    let (medians, unit) = benchmark.decisive_medians();
    let [base, head] = medians.map(|value| match value {
        Some(value) => quantity(value, unit),
        None => "–".to_owned(),
    });
    let [change, interval] = format_effect(benchmark);
    vec![
        shorten_start(&benchmark.name),
        base,
        head,
        change,
        interval,
        benchmark.pairs.len().to_string(),
        visible(&benchmark.standing),
    ]
}

/// Benchmarks of a framework have a common prefix, such as `tests/test_codec.py::`: a long name
/// keeps its end.
fn shorten_start(text: &str) -> String {
    let text = visible(text);
    if width(&text) <= NAME_WIDTH {
        return text;
    }
    let mut ends = text.char_indices().map(|(start, _)| &text[start..]);
    let end = ends.find(|end| width(end) < NAME_WIDTH);
    format!("…{}", end.unwrap_or_default())
}

fn format_effect(benchmark: &GateBenchmark) -> [String; 2] {
    let or_dash = |text: String| match text.as_str() {
        "" => "–".to_owned(),
        _ => text,
    };
    [or_dash(benchmark.change()), or_dash(benchmark.interval())]
}

fn describe_method(record: &GateRecord) -> String {
    let pairs = record.benchmarks.iter().map(|b| b.pairs.len()).sum();
    let elapsed = Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default();
    format!(
        "{} in {}; error over the suite {}. Intervals hold for the suite together, the limit (≤ or ≥) of a benchmark that passed for it alone",
        count(pairs, "pair"),
        duration(elapsed),
        percent(record.plan.alpha)
    )
}

/// Marks the comment in a pull request, so that scripts find it.
const MARKER: &str = "<!-- pinwise gate -->";

/// A comment for a pull request: the verdict, what needs attention, and the
/// whole table folded.
#[must_use]
pub fn render_gate_markdown(record: &GateRecord) -> String {
    let sign = match record.verdict.decision {
        GateDecision::Pass => "✅",
        GateDecision::Fail => "❌",
        GateDecision::Broken => "⚠️",
        _ => "❔",
    };
    let mut text = format!(
        "{MARKER}\n### {sign} {}\n\n{}\n",
        escape_markdown(&record.title()),
        escape_markdown(&record.verdict.sentence)
    );
    if !record.verdict.advice.is_empty() {
        text.push_str(&format!("\n{}\n", escape_markdown(&record.verdict.advice)));
    }
    let is_quiet = |benchmark: &&GateBenchmark| {
        matches!(benchmark.outcome, GateOutcome::Passed) && !benchmark.is_change(record.plan.alpha)
    };
    let (quiet, loud): (Vec<_>, Vec<_>) = order_by_outcome(record).partition(is_quiet);
    if !loud.is_empty() {
        text.push_str(&format!("\n{}", format_markdown_table(record, &loud)));
    }
    for benchmark in loud.iter().filter(|benchmark| needs_sentence(benchmark)) {
        text.push_str(&format!("\n{}\n", escape_markdown(&benchmark.sentence)));
    }
    if !quiet.is_empty() {
        text.push_str(&format!(
            "\n<details><summary>{} passed</summary>\n\n{}\n</details>\n",
            count(quiet.len(), "benchmark"),
            format_markdown_table(record, &quiet)
        ));
    }
    for finding in &record.findings {
        text.push_str(&format!("\n{}\n", escape_markdown(&finding.sentence)));
    }
    text.push_str(&format!(
        "\n<sub>{}; {}. pinwise {}</sub>\n",
        escape_markdown(&describe_method(record)),
        escape_markdown(&describe_host(&record.host)),
        escape_markdown(&record.pinwise_version)
    ));
    text
}

/// A comment that says why a gate could not be made, so that an earlier comment is not mistaken for
/// its result.
#[must_use]
pub fn render_gate_not_made(base: &str, head: &str, why: &str) -> String {
    format!(
        "{MARKER}\n### ⚠️ {} against {}: not judged\n\n{}\n",
        escape_markdown(head),
        escape_markdown(base),
        escape_markdown(why)
    )
}

/// Escapes text so that names in it cannot act as Markdown or HTML.
fn escape_markdown(text: &str) -> String {
    let escaped = visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('|', "\\|");
    let mut text = String::new();
    for c in escaped.chars() {
        if matches!(c, '`' | '*' | '_' | '[' | ']' | '~') {
            text.push('\\');
        }
        text.push(c);
        // No mention, no reference to an issue, no link.
        if matches!(c, '@' | '#' | ':') {
            text.push_str("<!-- -->");
        }
    }
    text
}

fn format_markdown_table(record: &GateRecord, benchmarks: &[&GateBenchmark]) -> String {
    let mut text = format!(
        "| benchmark | {} | {} | change | interval | pairs | verdict |\n|:---|---:|---:|---:|:---|---:|:---|\n",
        escape_markdown(&record.base.name),
        escape_markdown(&record.head.name)
    );
    for benchmark in benchmarks {
        let mut cells = format_benchmark_row(benchmark);
        cells[0].clone_from(&benchmark.name);
        let cells: Vec<String> = cells.iter().map(|text| escape_markdown(text)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// One row per pair.
#[must_use]
pub fn list_gate_rows(record: &GateRecord) -> Table {
    let mut table = Table::new([
        "benchmark",
        "pair",
        "at_s",
        "first",
        "base",
        "head",
        "unit",
        "base_cpu_s",
        "head_cpu_s",
    ]);
    for benchmark in &record.benchmarks {
        for (number, pair) in benchmark.pairs.iter().enumerate() {
            table.push([
                Cell::text(&benchmark.name),
                Cell::whole(number),
                Cell::number(pair.at_s),
                Cell::text(if pair.head_first { "head" } else { "base" }),
                Cell::number(pair.base),
                Cell::number(pair.head),
                Cell::text(&benchmark.metric.unit),
                Cell::number(pair.base_cpu_s),
                Cell::number(pair.head_cpu_s),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::EffectRecord;

    #[test]
    fn long_names_keep_their_end() {
        let shown = |value| shorten_start(&format!("tests/test_codec.py::test_decode[{value}]"));
        assert_eq!(shown(0), "…test_codec.py::test_decode[0]");
        assert_ne!(shown(0), shown(1));
        assert_eq!(width(&shown(0)), NAME_WIDTH);
        assert_eq!(
            shorten_start("BenchmarkParse/size=8"),
            "BenchmarkParse/size=8"
        );
        let wide = shorten_start(&"字".repeat(40));
        assert!(wide.ends_with('字') && width(&wide) <= NAME_WIDTH, "{wide}");
    }

    #[test]
    fn a_change_of_cpu_time_has_medians_of_cpu_time() {
        let effect = |percent: f64| EffectRecord::from_percent(percent, Some(1.0), Some(9.0));
        let benchmark = |decides: bool| -> GateBenchmark {
            serde_json::from_value(serde_json::json!({
                "name": "b", "command": ["b"], "metric": {
                    "name": "wall", "unit": "s", "better": "lower", "label": "wall-clock time",
                    "better_word": "faster", "worse_word": "slower",
                },
                "min_effect": 0.01, "outcome": "slower", "standing": "", "sentence": "",
                "change": "", "interval": "", "base": 2.0, "head": 1.9,
                "pairs": [{
                    "at_s": 0.0, "base": 2.0, "head": 1.9, "head_first": true,
                    "base_cpu_s": 0.4, "head_cpu_s": 0.42,
                }],
                "effect": effect(2.0),
                "cpu": { "ratio": 1.05, "effect": effect(5.0), "decides": decides },
            }))
            .unwrap()
        };
        assert_eq!(
            format_effect(&benchmark(true)),
            ["+5.0 % CPU", "+1.0 to +9.0 %"]
        );
        assert_eq!(
            format_benchmark_row(&benchmark(true))[1..3],
            ["400 ms", "420 ms"]
        );
        assert_eq!(
            format_benchmark_row(&benchmark(false))[1..3],
            ["2.00 s", "1.90 s"]
        );
        assert_eq!(
            format_effect(&benchmark(false)),
            ["+2.0 %", "+1.0 to +9.0 %"]
        );
    }

    #[test]
    fn a_passed_benchmark_shows_the_limit_that_it_passed_by() {
        let benchmark = |better: &str, high: f64| -> GateBenchmark {
            serde_json::from_value(serde_json::json!({
                "name": "b", "command": ["b"], "metric": {
                    "name": "wall", "unit": "s", "better": better, "label": "wall-clock time",
                    "better_word": "faster", "worse_word": "slower",
                },
                "min_effect": 0.01, "outcome": "passed", "standing": "", "sentence": "",
                "change": "", "interval": "", "pairs": [], "ratio": 0.95, "high_alone": high,
                "effect": EffectRecord::from_percent(-5.0, Some(-9.0), Some(4.0)),
            }))
            .unwrap()
        };
        let passed = benchmark("lower", 1.009);
        assert_eq!(format_effect(&passed), ["−5.0 %", "≤ +0.9 %"]);
        assert_eq!(passed.describe_outcome(0.05), "passed");
        assert_eq!(format_effect(&benchmark("higher", 1.009))[1], "≥ −0.9 %");
        // Its own limit differs from the suite's.
        let mut faster = benchmark("lower", 0.97);
        assert_eq!(format_effect(&faster), ["−5.0 %", "≤ −3.0 %"]);
        for (q, standing) in [(0.06, "passed"), (0.05, "passed (faster)")] {
            faster.q = Some(q);
            assert_eq!(faster.describe_outcome(0.05), standing);
        }
    }

    #[test]
    fn names_stay_text_in_markdown() {
        let hostile = "HEAD~1 @team #1 http://b `x` *y* <img> [z](b) a|b";
        let shown = escape_markdown(hostile);
        for broken in [
            "D~", "@team", "#1", "http://", " `x`", " *y*", "<img", " [z]", " a|",
        ] {
            assert!(!shown.contains(broken), "{broken}: {shown}");
        }
    }
}
