//! Records as files, in the forms that other programs read.

use std::path::Path;

use anyhow::{Context, bail};

use super::args::{Format, ResultArgs};
use super::files::{Named, write_file};
use pinwise_record::{AnyRecord, Bench, Comparison, StoredRecord};
use pinwise_report::{Palette, Table};

/// A stored record in a form that not every kind has.
pub(super) fn in_form(format: Format, record: &AnyRecord, id: &str) -> anyhow::Result<Vec<u8>> {
    let kind = record.kind().name();
    Ok(match (format, record) {
        (Format::Csv, _) => rows(record, id)?.csv()?.into_bytes(),
        (Format::Markdown, AnyRecord::Comparison(record)) => {
            Form::Markdown.render(record)?.into_bytes()
        }
        (Format::Markdown, AnyRecord::Gate(record)) => {
            pinwise_report::gate_markdown(record).into_bytes()
        }
        (Format::Hyperfine, AnyRecord::Comparison(record)) => {
            Form::Hyperfine.render(record)?.into_bytes()
        }
        (Format::Markdown | Format::Hyperfine, _) => bail!(
            "record {id} is a {kind}: --format text, json, html, or csv of one with rows (Markdown is of comparisons and gates, hyperfine's JSON of comparisons)"
        ),
        (Format::Xml, AnyRecord::Topology(record)) => {
            pinwise_report::topology_xml(&record.to_topology(), record).into_bytes()
        }
        (Format::Xml, _) => bail!("--format xml describes machines; {id} is a {kind}"),
        (Format::Text | Format::Json | Format::Html, _) => {
            pinwise_report::text(record, Palette::new(false)).into_bytes()
        }
    })
}

/// The rows of a record that has some.
fn rows(record: &AnyRecord, id: &str) -> anyhow::Result<Table> {
    pinwise_report::rows(record)?.with_context(|| {
        let kind = record.kind().name();
        format!("record {id} is a {kind}, which has no rows: --format text, json or html")
    })
}

/// What a record can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Markdown,
    Hyperfine,
}

impl Form {
    fn render(self, record: &Comparison) -> anyhow::Result<String> {
        Ok(match self {
            Self::Json => format!("{}\n", serde_json::to_string(record)?),
            Self::Csv => pinwise_report::run_rows(record).csv()?,
            Self::Markdown => pinwise_report::markdown(record),
            Self::Hyperfine => {
                let text = serde_json::to_string_pretty(&pinwise_report::hyperfine(record))?;
                format!("{text}\n")
            }
        })
    }

    fn render_bench(self, record: &Bench) -> anyhow::Result<String> {
        match self {
            Self::Json => Ok(format!("{}\n", serde_json::to_string(record)?)),
            Self::Csv => Ok(pinwise_report::bench_rows(record).csv()?),
            Self::Markdown | Self::Hyperfine => bail!(
                "record {} is a bench of many comparisons: --json or --csv, or export a comparison of it (pinwise record history)",
                record.id
            ),
        }
    }
}

/// Writes the files that a bench was asked for.
pub(super) fn bench_results(record: &Bench, args: &ResultArgs) -> anyhow::Result<()> {
    for (_, form, path) in asked_for(args) {
        write_file(path, &form.render_bench(record)?)?;
    }
    page(record, args.report.as_deref())
}

/// Writes the page of a record, where one was asked for.
pub(super) fn page<R: StoredRecord>(record: &R, path: Option<&Path>) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, &super::report::of_record(record)?),
        None => Ok(()),
    }
}

/// Files that an experiment was asked for: option, form, path.
fn asked_for(args: &ResultArgs) -> impl Iterator<Item = (&'static str, Form, &Path)> {
    let files = [
        ("--export-json", Form::Json, &args.export_json),
        ("--export-csv", Form::Csv, &args.export_csv),
        ("--export-markdown", Form::Markdown, &args.export_markdown),
        (
            "--export-hyperfine",
            Form::Hyperfine,
            &args.export_hyperfine,
        ),
    ];
    files
        .into_iter()
        .filter_map(|(option, form, path)| Some((option, form, path.as_deref()?)))
}

/// Writes the files that an experiment was asked for.
pub(super) fn results(record: &Comparison, args: &ResultArgs) -> anyhow::Result<()> {
    for (_, form, path) in asked_for(args) {
        write_file(path, &form.render(record)?)?;
    }
    page(record, args.report.as_deref())
}

/// The files that an experiment was asked for.
pub(super) fn outputs(args: &ResultArgs) -> Vec<Named<'_>> {
    let files = asked_for(args).map(|(option, _, path)| (option, path));
    let report = args.report.iter().map(|path| ("--report", path.as_path()));
    files.chain(report).collect()
}
