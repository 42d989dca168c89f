//! `profile diff`: subtracts two profiles, stored or in files.

use std::path::Path;

use anyhow::{Context, bail};

use crate::cli::args::{Global, ProfileDiffArgs};
use crate::cli::ending::keep_and_show;
use crate::cli::files::NamedFile;
use crate::cli::opening::open_store;
use crate::cli::opening::require_store;
use crate::cli::outputs::check_outputs;
use crate::cli::plan::new_id_and_start;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, files};
use pinwise_record::{Kind, ProfileDiff, ProfileRecord};
use pinwise_store::{Store, records_back};

/// The most records that `last~N` searches.
const MAX_LISTED_RECORDS: usize = 10_000;

pub(super) fn diff(
    global: &Global,
    args: &ProfileDiffArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let json = args.export_json.iter();
    let json = json.map(|path| NamedFile {
        option: "--export-json",
        path,
    });
    let inputs = [
        ("BEFORE", Path::new(&args.before)),
        ("AFTER", Path::new(&args.after)),
    ]
    .map(|(option, path)| NamedFile { option, path });
    check_outputs(global, &json.collect::<Vec<_>>(), &inputs)?;
    let before = load_profile(global, &args.before)?;
    let after = load_profile(global, &args.after)?;
    let store = open_store(global)?;
    let mut record = ProfileDiff::between(&before, &after)?;
    (record.id, record.started) = new_id_and_start();
    let show = || {
        terminal.show(&record, |record, palette| {
            pinwise_report::render_profile_diff(record, args.top, palette)
        })?;
        files::write_json(args.export_json.as_deref(), &record)
    };
    keep_and_show(store, &record, terminal, show, Exit::Done)
}

/// Loads the profile that an argument names: a file, or a record of the store.
fn load_profile(global: &Global, text: &str) -> anyhow::Result<ProfileRecord> {
    let path = Path::new(text);
    if path.is_file() {
        let content = files::read_file(path).with_context(|| text.to_owned())?;
        return pinwise_record::read(&content).with_context(|| text.to_owned());
    }
    if path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("json"))
    {
        bail!("{text}: no such file");
    }
    let store = require_store(global)?;
    let id = match records_back(text) {
        Some(back) => find_profile_back(&store, text, back as usize)?,
        None if text.starts_with("last") => {
            bail!("'{text}': write last, or last~1 for the profile before it")
        }
        None => text.to_owned(),
    };
    Ok(store.load(&id)?.decode()?)
}

/// The id of the profile `back` before the newest.
fn find_profile_back(store: &Store, text: &str, back: usize) -> anyhow::Result<String> {
    let entries = store.list(MAX_LISTED_RECORDS)?;
    let mut profiles = entries
        .iter()
        .filter(|entry| entry.schema == Kind::Profile.schema());
    let many = profiles.clone().count();
    let found = profiles.nth(back).map(|entry| entry.id.clone());
    found.with_context(|| {
        let stored = match many {
            0 => "the store has no profile".to_owned(),
            1 => "the store has 1 profile".to_owned(),
            many => format!("the store has {many} profiles"),
        };
        format!("'{text}': {stored} (pinwise profile -- COMMAND makes one)")
    })
}
