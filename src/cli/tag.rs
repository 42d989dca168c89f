//! `tag`: labels of stored records.

use serde_json::json;

use super::Exit;
use super::args::{Global, TagArgs};
use super::opening::changed_store;
use super::terminal::Terminal;
use pinwise_record::Summary;
use pinwise_report::visible;
use pinwise_store::{Store, TagChange};

pub(super) fn tag(global: &Global, args: &TagArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut store = changed_store(global)?;
    // A wrong id is reported before any record is changed.
    for id in &args.ids {
        store.load(id)?;
    }
    let mut all = Vec::new();
    for id in &args.ids {
        all.push(retag(&mut store, id, args)?);
    }
    if terminal.is_json() {
        let records: Vec<_> = all
            .iter()
            .map(|r| json!({ "id": r.id, "before": r.before, "tags": r.after }))
            .collect();
        terminal.print_json(&json!({ "records": records }))?;
        return Ok(Exit::Done);
    }
    let text: String = all.iter().map(|one| message(one, args)).collect();
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

/// The changes, and the requested ones that changed nothing.
fn message(one: &TagChange, args: &TagArgs) -> String {
    let listed = |tags: &[String]| match tags {
        [] => "no tag".to_owned(),
        tags => tags.join(", "),
    };
    let mut parts = vec![format!("{}: {}", one.id, listed(&one.after))];
    let added: Vec<&str> = only_in(&one.after, &one.before);
    let removed: Vec<&str> = only_in(&one.before, &one.after);
    if !added.is_empty() {
        parts.push(format!("added {}", added.join(", ")));
    }
    if !removed.is_empty() {
        parts.push(format!("removed {}", removed.join(", ")));
    }
    let absent = args.remove.iter().filter(|tag| !one.before.contains(tag));
    let absent: Vec<&str> = absent.map(String::as_str).collect();
    if !absent.is_empty() {
        parts.push(format!("had no {}", absent.join(", ")));
    }
    format!("{}\n", visible(&parts.join("; ")))
}

fn only_in<'a>(tags: &'a [String], others: &[String]) -> Vec<&'a str> {
    let only = tags.iter().filter(|tag| !others.contains(tag));
    only.map(String::as_str).collect()
}
