//! Records as files, in formats that other programs read.

use std::path::Path;

use anyhow::{Context, bail};

use super::args::{Format, ResultArgs};
use super::files::{NamedFile, write_file};
use pinwise_record::{AnyRecord, StoredRecord};
use pinwise_report::Palette;

/// Renders a record in a format; an error if its kind does not have it.
pub(super) fn render_as(format: Format, record: &AnyRecord, id: &str) -> anyhow::Result<String> {
    let kind = record.kind().name();
    Ok(match (format, record) {
        (Format::Json, _) => format!("{}\n", record.to_json()?),
        (Format::Csv, _) => {
            let rows = pinwise_report::list_rows(record)?.with_context(|| {
                format!("record {id} is a {kind}, which has no rows: --format text, json or html")
            })?;
            rows.csv()?
        }
        (Format::Markdown, AnyRecord::Comparison(record)) => {
            pinwise_report::render_markdown(record)
        }
        (Format::Markdown, AnyRecord::Gate(record)) => pinwise_report::render_gate_markdown(record),
        (Format::Hyperfine, AnyRecord::Comparison(record)) => {
            let text = serde_json::to_string_pretty(&pinwise_report::render_hyperfine(record))?;
            format!("{text}\n")
        }
        (Format::Markdown | Format::Hyperfine, _) => bail!(
            "record {id} is a {kind}: --format text, json, html, or csv of one with rows (Markdown is of comparisons and gates, hyperfine's JSON of comparisons)"
        ),
        (Format::Xml, AnyRecord::Topology(record)) => {
            pinwise_report::render_topology_xml(&record.to_topology(), record)
        }
        (Format::Xml, _) => bail!("--format xml describes machines; {id} is a {kind}"),
        (Format::Text | Format::Html, _) => {
            pinwise_report::render_record(record, Palette::new(false))
        }
    })
}

/// Writes the page of a record, if one was requested.
pub(super) fn write_page<R: StoredRecord>(record: &R, path: Option<&Path>) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, &super::report::render_page(record)?),
        None => Ok(()),
    }
}

/// The requested files of an experiment: option, format, path.
fn list_requested_files(args: &ResultArgs) -> impl Iterator<Item = (&'static str, Format, &Path)> {
    let files = [
        ("--export-json", Format::Json, &args.export_json),
        ("--export-csv", Format::Csv, &args.export_csv),
        ("--export-markdown", Format::Markdown, &args.export_markdown),
        (
            "--export-hyperfine",
            Format::Hyperfine,
            &args.export_hyperfine,
        ),
    ];
    files
        .into_iter()
        .filter_map(|(option, format, path)| Some((option, format, path.as_deref()?)))
}

/// Writes the requested files of an experiment.
pub(super) fn write_results<R>(record: &R, args: &ResultArgs) -> anyhow::Result<()>
where
    R: StoredRecord + Clone + Into<AnyRecord>,
{
    for (_, format, path) in list_requested_files(args) {
        let text = render_as(format, &record.clone().into(), &record.entry().id)?;
        write_file(path, &text)?;
    }
    write_page(record, args.report.as_deref())
}

/// The requested files of an experiment, to check them before it starts.
pub(super) fn list_result_files(args: &ResultArgs) -> Vec<NamedFile<'_>> {
    let files = list_requested_files(args).map(|(option, _, path)| NamedFile { option, path });
    let report = args.report.iter().map(|path| NamedFile {
        option: "--report",
        path,
    });
    files.chain(report).collect()
}
