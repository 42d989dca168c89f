//! `record tag`: shows and changes the tags of stored records.

use serde_json::json;

use super::Exit;
use super::args::{Global, TagArgs};
use super::opening::open_store_to_change;
use super::terminal::Terminal;
use pinwise_record::Summary;
use pinwise_report::visible;
use pinwise_store::{Store, TagChange};

pub(super) fn tag(global: &Global, args: &TagArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut store = open_store_to_change(global)?;
    // A wrong id is reported before any record is changed.
    for id in &args.ids {
        store.load(id)?;
    }
    let mut changes = Vec::new();
    for id in &args.ids {
        changes.push(retag(&mut store, id, args)?);
    }
    if terminal.is_json() {
        let records: Vec<_> = changes
            .iter()
            .map(|r| json!({ "id": r.id, "before": r.before, "tags": r.after }))
            .collect();
        terminal.print_json(&json!({ "records": records }))?;
        return Ok(Exit::Done);
    }
    let text: String = changes
        .iter()
        .map(|change| describe_change(change, args))
        .collect();
    terminal.print(&text)?;
    Ok(Exit::Done)
}

fn retag(store: &mut Store, id: &str, args: &TagArgs) -> anyhow::Result<TagChange> {
    if args.add.is_empty() && args.remove.is_empty() {
        let stored = store.load(id)?;
        let tags = Summary::from_json(&stored.body).tags;
        return Ok(TagChange {
            id: stored.entry.id,
            before: tags.clone(),
            after: tags,
        });
    }
    let change = |tags: &[String]| {
        let kept = tags.iter().filter(|tag| !args.remove.contains(tag));
        let mut after: Vec<String> = kept.cloned().collect();
        for tag in &args.add {
            if !after.contains(tag) {
                after.push(tag.clone());
            }
        }
        after
    };
    Ok(store.retag(id, change)?)
}

/// Describes a record's tags, what changed, and tags to remove that it did not have.
fn describe_change(change: &TagChange, args: &TagArgs) -> String {
    let list_tags = |tags: &[String]| match tags {
        [] => "no tag".to_owned(),
        tags => tags.join(", "),
    };
    let mut parts = vec![format!("{}: {}", change.id, list_tags(&change.after))];
    let added: Vec<&str> = list_only_in(&change.after, &change.before);
    let removed: Vec<&str> = list_only_in(&change.before, &change.after);
    if !added.is_empty() {
        parts.push(format!("added {}", added.join(", ")));
    }
    if !removed.is_empty() {
        parts.push(format!("removed {}", removed.join(", ")));
    }
    let absent = args
        .remove
        .iter()
        .filter(|tag| !change.before.contains(tag));
    let absent: Vec<&str> = absent.map(String::as_str).collect();
    if !absent.is_empty() {
        parts.push(format!("had no {}", absent.join(", ")));
    }
    format!("{}\n", visible(&parts.join("; ")))
}

fn list_only_in<'a>(tags: &'a [String], others: &[String]) -> Vec<&'a str> {
    let only = tags.iter().filter(|tag| !others.contains(tag));
    only.map(String::as_str).collect()
}
