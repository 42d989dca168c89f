//! Files in and out, and `export`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};

use super::Exit;
use super::args::{ExportArgs, Global, ResultArgs};
use super::history::needed_store;
use super::terminal::Terminal;
use crate::record::{
    BENCH_SCHEMA, Bench, COMPARISON_SCHEMA, Comparison, Keepsake, SEARCH_SCHEMA, SearchRecord,
    TOPOLOGY_SCHEMA, TRACE_SCHEMA, TraceRecord,
};
use crate::report;

pub(super) fn stored(
    global: &Global,
    args: &ExportArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if args.format.parquet {
        return parquet(global, args, terminal);
    }
    let stored = needed_store(global)?.load(&args.id)?;
    let form = match &args.format {
        format if format.csv => Form::Csv,
        format if format.markdown => Form::Markdown,
        format if format.hyperfine => Form::Hyperfine,
        _ => Form::Json,
    };
    let text = if stored.is_of(COMPARISON_SCHEMA) {
        form.render(&stored.comparison()?)?
    } else if form == Form::Json {
        format!("{}\n", stored.body)
    } else if stored.is_of(BENCH_SCHEMA) {
        form.render_bench(&stored.kept(BENCH_SCHEMA)?)?
    } else if stored.is_of(TRACE_SCHEMA) {
        form.render_trace(&stored.kept(TRACE_SCHEMA)?)?
    } else if stored.is_of(SEARCH_SCHEMA) {
        form.render_search(&stored.kept(SEARCH_SCHEMA)?)?
    } else if stored.is_of(TOPOLOGY_SCHEMA) {
        bail!(
            "record {} is a machine, not an experiment: --json only (pinwise show {0} --format svg draws it)",
            stored.entry.id
        );
    } else {
        bail!(
            "record {} has no runs of its own: --json only",
            stored.entry.id
        );
    };
    match &args.output {
        Some(path) => write_file(path, &text)?,
        None => terminal.print(&text)?,
    }
    Ok(Exit::Done)
}

/// The rows of the CSV, with types. Binary: a terminal would be garbled.
fn parquet(global: &Global, args: &ExportArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    if args.output.is_none() && terminal.is_read_by_people() {
        bail!("--parquet is binary, which no terminal shows: name a file with -o FILE");
    }
    let stored = needed_store(global)?.load(&args.id)?;
    let rows = if stored.is_of(COMPARISON_SCHEMA) {
        report::csv(&stored.comparison()?)?
    } else if stored.is_of(BENCH_SCHEMA) {
        report::bench_csv(&stored.kept(BENCH_SCHEMA)?)?
    } else if stored.is_of(TRACE_SCHEMA) {
        report::trace_csv(&stored.kept(TRACE_SCHEMA)?)?
    } else if stored.is_of(SEARCH_SCHEMA) {
        report::search_csv(&stored.kept(SEARCH_SCHEMA)?)?
    } else {
        bail!(
            "record {} has no runs of its own: --json only",
            stored.entry.id
        );
    };
    let bytes = as_parquet(&rows)?;
    match &args.output {
        Some(path) => write_bytes(path, &bytes)?,
        None => terminal.print_bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

#[cfg(feature = "parquet")]
fn as_parquet(rows: &str) -> anyhow::Result<Vec<u8>> {
    report::parquet::from_csv(rows).context("writing Parquet")
}

#[cfg(not(feature = "parquet"))]
fn as_parquet(_rows: &str) -> anyhow::Result<Vec<u8>> {
    bail!("this pinwise was built without Parquet (cargo feature parquet): --csv has the same rows")
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
            Self::Csv => report::csv(record)?,
            Self::Markdown => report::markdown(record),
            Self::Hyperfine => {
                let text = serde_json::to_string_pretty(&report::hyperfine(record))?;
                format!("{text}\n")
            }
        })
    }

    fn render_trace(self, record: &TraceRecord) -> anyhow::Result<String> {
        match self {
            Self::Json => Ok(format!("{}\n", serde_json::to_string(record)?)),
            Self::Csv => Ok(report::trace_csv(record)?),
            Self::Markdown | Self::Hyperfine => {
                bail!("record {} is a trace: --json or --csv", record.id)
            }
        }
    }

    fn render_search(self, record: &SearchRecord) -> anyhow::Result<String> {
        match self {
            Self::Json => Ok(format!("{}\n", serde_json::to_string(record)?)),
            Self::Csv => Ok(report::search_csv(record)?),
            Self::Markdown | Self::Hyperfine => bail!(
                "record {} is a search: --json or --csv (pinwise show {0} --format svg draws it)",
                record.id
            ),
        }
    }

    fn render_bench(self, record: &Bench) -> anyhow::Result<String> {
        match self {
            Self::Json => Ok(format!("{}\n", serde_json::to_string(record)?)),
            Self::Csv => Ok(report::bench_csv(record)?),
            Self::Markdown | Self::Hyperfine => bail!(
                "record {} is a bench of many comparisons: --json or --csv, or export a comparison of it (pinwise history)",
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
pub(super) fn page<R: Keepsake + serde::Serialize>(
    record: &R,
    path: Option<&Path>,
) -> anyhow::Result<()> {
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

/// Files that shall be written can be: told before an hour of measuring, not
/// after. None is left behind, since there may be no result.
pub(super) fn check_writable(args: &ResultArgs) -> anyhow::Result<()> {
    let files = asked_for(args).map(|(option, _, path)| (option, path));
    let report = args.report.iter().map(|path| ("--report", path.as_path()));
    let files: Vec<(&'static str, &Path)> = files.chain(report).collect();
    check_files(&files)
}

/// The same of files by option.
pub(super) fn check_files(files: &[(&'static str, &Path)]) -> anyhow::Result<()> {
    for (option, path) in files {
        if *option == "--report" {
            super::report::template()?;
        }
        let is_new = !path.exists();
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("{option} {}", path.display()))?;
        if is_new {
            #[expect(clippy::disallowed_methods, reason = "cli made it a moment ago")]
            std::fs::remove_file(path).with_context(|| format!("{option} {}", path.display()))?;
        }
    }
    Ok(())
}

pub(super) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    write_bytes(path, text.as_bytes())
}

#[expect(
    clippy::disallowed_methods,
    reason = "cli writes what the user asked for"
)]
fn write_bytes(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Longest file read: the largest captures and matrices have a few megabytes,
/// and a device has no end.
const LONGEST_FILE: u64 = 256 << 20;

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
pub(super) fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(LONGEST_FILE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_FILE {
        anyhow::bail!("it is longer than {} MiB", LONGEST_FILE >> 20);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
