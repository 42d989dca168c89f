//! A gate as text, as Markdown for a pull request, and as rows.

use super::comparison::{findings, heading, place};
use super::style::{Palette, paragraph, quantity, shorten, table_without, visible, width};
use super::table::{Cell, Table};
use pinwise_format::{count, duration, percent};
use pinwise_record::{GateBenchmark, GateDecision, GateOutcome, GateRecord};
use std::time::Duration;

/// Longest name of a benchmark in the table, columns.
const NAME_WIDTH: usize = 30;

/// The whole gate for a terminal.
#[must_use]
pub fn gate(record: &GateRecord, palette: Palette) -> String {
    let mut text = heading(&record.title(), &record.host, None, palette);
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
    let least = [header[5], header[1], header[2]];
    let rows = order_by_outcome(record).map(row);
    text.push_str(&format!(
        "\n{}",
        table_without(&least, &[], &header, rows.collect())
    ));
    for benchmark in order_by_outcome(record).filter(|benchmark| needs_words(benchmark)) {
        text.push_str(&format!("{}\n", paragraph("  ", "  ", &benchmark.sentence)));
    }
    text.push_str(&findings(&record.findings, palette));
    text.push_str(&format!(
        "\n{}\n",
        palette.faint(&paragraph(
            "",
            "",
            &format!("{}. {}", method(record), palette.record(&record.id))
        ))
    ));
    text.push_str(&format!("\n{}", answer(record, palette)));
    text
}

/// The verdict, and what to do: last, beside the prompt.
fn answer(record: &GateRecord, palette: Palette) -> String {
    let sentence = paragraph("", "", &record.verdict.sentence);
    let mut text = match record.verdict.decision {
        GateDecision::Pass => format!("{}\n{sentence}\n", palette.good("PASS")),
        GateDecision::Fail => format!("{}\n{sentence}\n", palette.bad("FAIL")),
        GateDecision::Broken => format!("{}\n{sentence}\n", palette.bad("BROKEN")),
        // The sentence begins with the word.
        _ => format!("{}\n", palette.warn(&sentence)),
    };
    if !record.verdict.advice.is_empty() {
        text.push_str(&format!(
            "{}\n",
            paragraph("→ ", "  ", &record.verdict.advice)
        ));
    }
    text
}

/// What needs attention first: slower, failed, undecided, then the rest in the
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

/// Does its row leave something unmentioned?
fn needs_words(benchmark: &GateBenchmark) -> bool {
    benchmark.problem.is_some()
        || benchmark.outcome == GateOutcome::Missing
        || benchmark.is_slower_by_cpu()
        || benchmark.is_open_but_for_cpu()
}

fn row(benchmark: &GateBenchmark) -> Vec<String> {
    let (medians, unit) = benchmark.decisive_medians();
    let [base, head] = medians.map(|value| match value {
        Some(value) => quantity(value, unit),
        None => "–".to_owned(),
    });
    let [change, interval] = effect(benchmark);
    vec![
        name(&benchmark.name),
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
fn name(text: &str) -> String {
    let text = visible(text);
    if width(&text) <= NAME_WIDTH {
        return text;
    }
    let mut ends = text.char_indices().map(|(start, _)| &text[start..]);
    let end = ends.find(|end| width(end) < NAME_WIDTH);
    format!("…{}", end.unwrap_or_default())
}

fn effect(benchmark: &GateBenchmark) -> [String; 2] {
    let or_dash = |text: String| match text.as_str() {
        "" => "–".to_owned(),
        _ => text,
    };
    [or_dash(benchmark.change()), or_dash(benchmark.interval())]
}

fn method(record: &GateRecord) -> String {
    let pairs = record.benchmarks.iter().map(|b| b.pairs.len()).sum();
    let elapsed = Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default();
    format!(
        "{} in {}; error over the suite {}. Intervals hold for the suite together, the limit (≤ or ≥) of a benchmark that passed for it alone",
        count(pairs, "pair"),
        duration(elapsed),
        percent(record.plan.alpha)
    )
}

/// Marks the comment of a pull request, so that it is found again.
const MARKER: &str = "<!-- pinwise gate -->";

/// A comment for a pull request: the verdict, what needs attention, and the
/// whole table folded.
#[must_use]
pub fn gate_markdown(record: &GateRecord) -> String {
    let sign = match record.verdict.decision {
        GateDecision::Pass => "✅",
        GateDecision::Fail => "❌",
        GateDecision::Broken => "⚠️",
        _ => "❔",
    };
    let mut text = format!(
        "{MARKER}\n### {sign} {}\n\n{}\n",
        cell(&record.title()),
        cell(&record.verdict.sentence)
    );
    if !record.verdict.advice.is_empty() {
        text.push_str(&format!("\n{}\n", cell(&record.verdict.advice)));
    }
    let is_quiet = |benchmark: &&GateBenchmark| {
        matches!(benchmark.outcome, GateOutcome::Passed) && !benchmark.is_change(record.plan.alpha)
    };
    let (quiet, loud): (Vec<_>, Vec<_>) = order_by_outcome(record).partition(is_quiet);
    if !loud.is_empty() {
        text.push_str(&format!("\n{}", markdown_table(record, &loud)));
    }
    for benchmark in loud.iter().filter(|benchmark| needs_words(benchmark)) {
        text.push_str(&format!("\n{}\n", cell(&benchmark.sentence)));
    }
    if !quiet.is_empty() {
        text.push_str(&format!(
            "\n<details><summary>{} passed</summary>\n\n{}\n</details>\n",
            count(quiet.len(), "benchmark"),
            markdown_table(record, &quiet)
        ));
    }
    for finding in &record.findings {
        text.push_str(&format!("\n{}\n", cell(&finding.sentence)));
    }
    text.push_str(&format!(
        "\n<sub>{}; {}. pinwise {}</sub>\n",
        cell(&method(record)),
        cell(&place(&record.host)),
        cell(&record.pinwise_version)
    ));
    text
}

/// A comment in place of a gate that could not be made, so that an earlier one is not mistaken for
/// it.
#[must_use]
pub fn gate_not_made(base: &str, head: &str, why: &str) -> String {
    format!(
        "{MARKER}\n### ⚠️ {} against {}: not judged\n\n{}\n",
        cell(head),
        cell(base),
        cell(why)
    )
}

/// Text that no Markdown or HTML of a name can break out of.
fn cell(text: &str) -> String {
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
        // Neither a mention, nor an issue, nor a link.
        if matches!(c, '@' | '#' | ':') {
            text.push_str("<!-- -->");
        }
    }
    text
}

fn markdown_table(record: &GateRecord, benchmarks: &[&GateBenchmark]) -> String {
    let mut text = format!(
        "| benchmark | {} | {} | change | interval | pairs | verdict |\n|:---|---:|---:|---:|:---|---:|:---|\n",
        cell(&record.base.name),
        cell(&record.head.name)
    );
    for benchmark in benchmarks {
        let mut cells = row(benchmark);
        cells[0].clone_from(&benchmark.name);
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// One row per pair.
#[must_use]
pub fn gate_rows(record: &GateRecord) -> Table {
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
        let shown = |value| name(&format!("tests/test_codec.py::test_decode[{value}]"));
        assert_eq!(shown(0), "…test_codec.py::test_decode[0]");
        assert_ne!(shown(0), shown(1));
        assert_eq!(width(&shown(0)), NAME_WIDTH);
        assert_eq!(name("BenchmarkParse/size=8"), "BenchmarkParse/size=8");
        let wide = name(&"字".repeat(40));
        assert!(wide.ends_with('字') && width(&wide) <= NAME_WIDTH, "{wide}");
    }

    #[test]
    fn a_change_of_cpu_time_stands_beside_its_own_medians() {
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
            super::effect(&benchmark(true)),
            ["+5.0 % CPU", "+1.0 to +9.0 %"]
        );
        assert_eq!(row(&benchmark(true))[1..3], ["400 ms", "420 ms"]);
        assert_eq!(row(&benchmark(false))[1..3], ["2.00 s", "1.90 s"]);
        assert_eq!(
            super::effect(&benchmark(false)),
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
        assert_eq!(effect(&passed), ["−5.0 %", "≤ +0.9 %"]);
        assert_eq!(passed.describe_outcome(0.05), "passed");
        assert_eq!(effect(&benchmark("higher", 1.009))[1], "≥ −0.9 %");
        // Its own limit differs from the suite's.
        let mut faster = benchmark("lower", 0.97);
        assert_eq!(effect(&faster), ["−5.0 %", "≤ −3.0 %"]);
        for (q, standing) in [(0.06, "passed"), (0.05, "passed (faster)")] {
            faster.q = Some(q);
            assert_eq!(faster.describe_outcome(0.05), standing);
        }
    }

    #[test]
    fn names_stay_text_in_markdown() {
        let hostile = "HEAD~1 @team #1 http://b `x` *y* <img> [z](b) a|b";
        let shown = cell(hostile);
        for broken in [
            "D~", "@team", "#1", "http://", " `x`", " *y*", "<img", " [z]", " a|",
        ] {
            assert!(!shown.contains(broken), "{broken}: {shown}");
        }
    }
}
