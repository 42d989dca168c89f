//! Files in and out, and `export`.

use std::path::Path;

use anyhow::Context;

use super::Exit;
use super::args::{ExportArgs, Global, ResultArgs};
use super::history::needed_store;
use super::terminal::Terminal;
use crate::record::Comparison;
use crate::report;

pub(super) fn stored(
    global: &Global,
    args: &ExportArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let record = needed_store(global)?.load(&args.id)?.comparison()?;
    let text = if args.format.csv {
        report::csv(&record)?
    } else if args.format.markdown {
        report::markdown(&record)
    } else if args.format.hyperfine {
        format!(
            "{}\n",
            serde_json::to_string_pretty(&report::hyperfine(&record))?
        )
    } else {
        format!("{}\n", serde_json::to_string(&record)?)
    };
    match &args.output {
        Some(path) => write_file(path, &text)?,
        None => terminal.print(&text)?,
    }
    Ok(Exit::Done)
}

/// Writes the files that an experiment was asked for.
pub(super) fn results(record: &Comparison, args: &ResultArgs) -> anyhow::Result<()> {
    if let Some(path) = &args.export_json {
        write_file(path, &format!("{}\n", serde_json::to_string(record)?))?;
    }
    if let Some(path) = &args.export_csv {
        write_file(path, &report::csv(record)?)?;
    }
    if let Some(path) = &args.export_markdown {
        write_file(path, &report::markdown(record))?;
    }
    if let Some(path) = &args.export_hyperfine {
        let text = serde_json::to_string_pretty(&report::hyperfine(record))?;
        write_file(path, &format!("{text}\n"))?;
    }
    Ok(())
}

/// Files that shall be written can be: told before an hour of measuring, not
/// after. None is left behind, since there may be no result.
pub(super) fn check_writable(args: &ResultArgs) -> anyhow::Result<()> {
    let files = [
        ("--export-json", &args.export_json),
        ("--export-csv", &args.export_csv),
        ("--export-markdown", &args.export_markdown),
        ("--export-hyperfine", &args.export_hyperfine),
    ];
    for (option, path) in files {
        let Some(path) = path else { continue };
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

#[expect(
    clippy::disallowed_methods,
    reason = "cli writes what the user asked for"
)]
pub(super) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
pub(super) fn read_file(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
