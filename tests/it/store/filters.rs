//! Filters find what a plain search of every line finds.

use pinwise_record::{Comparison, Entry, Kind, Record, StoredRecord};
use pinwise_store::{Filter, ListedRecord, Store};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Place, list_places, simulate_comparison};

/// A comparison with the schema of a newer pinwise.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Newer(Comparison);

impl Record for Newer {
    const KIND: Kind = Kind::Comparison;
}

impl StoredRecord for Newer {
    fn entry(&self) -> Entry {
        Entry {
            schema: "pinwise.comparison/9".to_owned(),
            ..self.0.entry()
        }
    }
}

/// Stores records that differ in everything that a filter compares.
fn fill_store(place: &Place) -> Store {
    let mut store = place.open();
    let base = simulate_comparison("base");
    for number in 0..12 {
        let mut record = base.clone();
        record.id = format!("r{number:02}");
        record.started = format!("2026-01-{:02}T00:00:00Z", 1 + number % 5);
        record.host.simulated = false;
        let host = ["eins", "zwei", "drei"][number % 3];
        record.host.machine.hostname = Some(host.to_owned());
        let tags: &[&str] = [&[], &["nightly"][..], &["\u{c4}GIR", "x"]][number % 7 % 3];
        record.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        match number % 4 {
            0 => store.keep(&Newer(record)).unwrap(),
            2 => store.begin(&record).unwrap(),
            _ => store.keep(&record).unwrap(),
        }
    }
    store
}

/// The records that match a filter, by comparing each line.
fn search_plainly(all: &[ListedRecord], filter: &Filter) -> Vec<ListedRecord> {
    let fits = |line: &&ListedRecord| {
        let entry = &line.entry;
        let kind = entry.schema.split_once('/').map_or("", |(name, _)| name);
        let text = format!(
            "{} {} {} {} {:?}",
            entry.id, entry.title, entry.host, entry.verdict, line.summary.tags
        )
        .to_lowercase();
        filter.host.as_ref().is_none_or(|host| &entry.host == host)
            && filter
                .schema
                .as_ref()
                .is_none_or(|s| &entry.schema == s || kind.ends_with(s.as_str()))
            && filter
                .tag
                .as_ref()
                .is_none_or(|tag| line.summary.tags.contains(tag))
            && filter
                .subject
                .as_ref()
                .is_none_or(|s| line.summary.subject.as_ref() == Some(s))
            && filter
                .text
                .iter()
                .flat_map(|t| t.split_whitespace())
                .all(|w| text.contains(&w.to_lowercase()))
    };
    all.iter().filter(fits).cloned().collect()
}

#[test]
fn without_filter_all_records_are_found_newest_first() {
    for place in list_places() {
        let store = fill_store(&place);
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.total, 12);
        assert_eq!(found.hosts, ["drei", "eins", "zwei"]);
        assert_eq!(
            found.schemas,
            ["pinwise.comparison/1", "pinwise.comparison/9"]
        );
        assert_eq!(found.tags, ["nightly", "x", "ÄGIR"]);
        let entries: Vec<_> = found.lines.iter().map(|l| l.entry.clone()).collect();
        let mut listed = store.list(100).unwrap();
        listed.sort_by(|a, b| b.time.cmp(&a.time));
        assert_eq!(entries, listed);
        assert!(entries.is_sorted_by(|a, b| a.time >= b.time));
        assert!(
            found
                .lines
                .iter()
                .all(|line| !line.summary.figures.is_empty())
        );
        let subject = found.lines[0].summary.subject.clone();
        let same = Filter {
            subject,
            ..Filter::default()
        };
        assert_eq!(store.find(&same).unwrap().total, 12);
    }
}

thread_local! {
    /// Stores that are filled once, as the tests only read them.
    static FILLED: Vec<(Place, Store)> = {
        let places = list_places();
        let filled = places.into_iter().map(|place| {
            let store = fill_store(&place);
            (place, store)
        });
        filled.collect()
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn filters_match_a_plain_search(
        host in prop::option::of(prop::sample::select(vec!["eins", "zwei", "vier"])),
        schema in prop::option::of(prop::sample::select(vec!["comparison", "pinwise.comparison/9", "trace"])),
        tag in prop::option::of(prop::sample::select(vec!["nightly", "x", "none"])),
        text in prop::option::of(prop::sample::select(vec!["R0", "ägir 1", "PROG", "", "%", "prog eins"])),
        limit in prop::option::of(0usize..6),
        offset in 0usize..4,
    ) {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let filter = Filter { host: own(host), schema: own(schema), tag: own(tag), text: own(text), limit, offset, subject: None };
        FILLED.with(|stores| {
            for (_, store) in stores {
                let all = store.find(&Filter::default()).unwrap().lines;
                let expected = search_plainly(&all, &filter);
                let found = store.find(&filter).unwrap();
                prop_assert_eq!(found.total, expected.len());
                let page: Vec<ListedRecord> = expected.into_iter().skip(offset).take(limit.unwrap_or(usize::MAX)).collect();
                prop_assert_eq!(&found.lines, &page);
                let mut passed = Vec::new();
                store.visit_bodies(&filter, |entry, _| passed.push(entry)).unwrap();
                let page: Vec<_> = page.into_iter().map(|line| line.entry).collect();
                prop_assert_eq!(passed, page);
            }
            Ok(())
        })?;
    }
}
