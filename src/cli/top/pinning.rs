//! Parses the CPUs that a user types for a pin, and adds settings of threads that a trace lacks.

use std::collections::BTreeMap;

use pinwise_machine::linux::thread_settings;
use pinwise_placement::Placement;
use pinwise_record::TopRecord;
use pinwise_report::top::View;
use pinwise_topology::{CpuSet, Topology};

/// Threads around the chosen one whose masks are read: more than any screen shows, but few enough
/// that the cost is negligible.
const MAX_READ_THREADS: usize = 200;

/// Adds the masks and policies of the threads that are likely to be shown.
pub(super) fn add_settings(record: &mut TopRecord, view: &View) {
    let arranged = view.arrange_threads(record);
    let first = view
        .find_chosen_row(&arranged)
        .saturating_sub(MAX_READ_THREADS / 2);
    let near = arranged.iter().skip(first).take(MAX_READ_THREADS);
    let settings: BTreeMap<i32, (String, String)> = near
        .filter_map(|thread| {
            let (cpus, policy) = thread_settings(thread.thread)?;
            Some((thread.thread, (cpus.to_string(), policy.to_owned())))
        })
        .collect();
    record.add_settings(&settings);
}

/// Parses CPUs: a list such as `0-3,8`, or a placement.
///
/// # Errors
/// What is wrong with the text, or for an empty one what to type.
pub(super) fn parse_cpus(text: &str, topology: &Topology) -> Result<CpuSet, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("CPUs such as 0-3,8 or a placement such as one-core; Esc: no pin".to_owned());
    }
    let cpus = if text.starts_with(|c: char| c.is_ascii_digit()) {
        CpuSet::parse_list(text).map_err(|error| error.to_string())?
    } else {
        let placement: Placement = text.parse().map_err(|error| format!("{error}"))?;
        let realised = placement
            .realise(topology)
            .map_err(|error| error.to_string())?;
        if realised.memory.is_some() {
            return Err("a running thread keeps its memory policy: leave out /mem=".to_owned());
        }
        realised.cpus
    };
    let absent = cpus.difference(&topology.online);
    if !absent.is_empty() {
        return Err(format!("this machine has no CPU {absent}"));
    }
    Ok(cpus)
}

/// Describes what the pin typed so far would do; `now` is the thread's present mask.
pub(super) fn preview_pin(text: &str, topology: &Topology, now: Option<&str>) -> String {
    match parse_cpus(text, topology) {
        Ok(cpus) => match now {
            Some(now) => format!("CPUs {cpus}; now {now}. Enter pins it, Esc cancels"),
            None => "the thread has ended; Esc cancels".to_owned(),
        },
        Err(reason) => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Topology {
        Topology::from_synthetic("package:1 l3:2 core:2 pu:2").unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = parse_cpus(text, &machine());
        let found = found.map(|cpus| cpus.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn cpu_lists_and_placements_are_parsed() {
        check("0-2", Ok("0-2"));
        check(" 3 ", Ok("3"));
        check("one-llc:1", Ok("4-7"));
        check("one-core", Ok("0-1"));
        check("", Err("0-3,8"));
        check("8", Err("no CPU 8"));
        check("3-1", Err("reversed"));
        check("1x", Err("1x"));
        check("nowhere", Err("nowhere"));
        check("one-core/mem=bind", Err("/mem="));
        check("one-llc:9", Err("9"));
    }

    #[test]
    fn the_preview_lists_the_changes() {
        let message = preview_pin("one-core", &machine(), Some("0-7"));
        assert_eq!(message, "CPUs 0-1; now 0-7. Enter pins it, Esc cancels");
    }
}
