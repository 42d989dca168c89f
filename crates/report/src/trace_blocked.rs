//! Describes in one line what traced threads were blocked in.

use super::style::visible;
use pinwise_format::{count_of, percent};
use pinwise_record::{BlockedIn, BlockedPart, BlockedRecord};

/// The most processes, and reasons of a process, in the line; the record has all.
const MAX_PROCESSES: usize = 3;
const MAX_PARTS: usize = 4;

/// Describes the shares of the polls that found a thread blocked. `None` if none did, or if threads
/// only waited for others to end.
pub(super) fn describe_blocked(seen: &[BlockedRecord]) -> Option<String> {
    let known = seen.iter().filter(|process| count_looks(process) > 0);
    let known: Vec<&BlockedRecord> = known.collect();
    let [first, others @ ..] = known.as_slice() else {
        return None;
    };
    if others.is_empty() {
        return Some(format!("{} at its blocked threads", describe_parts(first)));
    }
    let shown = known.iter().take(MAX_PROCESSES).map(|process| {
        let name = visible(&process.name);
        format!("{name} ({}): {}", process.process, describe_parts(process))
    });
    let mut parts: Vec<String> = shown.collect();
    let more = known.len().saturating_sub(MAX_PROCESSES) as u64;
    if more > 0 {
        parts.push(count_of(more, "more process", "more processes"));
    }
    Some(parts.join("; "))
}

/// The reasons that count: not a thread's wait for others to end, which explains nothing.
fn list_reasons(process: &BlockedRecord) -> impl Iterator<Item = &BlockedPart> {
    let parts = process.parts.iter();
    parts.filter(|part| part.what != BlockedIn::Thread)
}

fn count_looks(process: &BlockedRecord) -> u64 {
    list_reasons(process).map(|part| part.looks).sum()
}

fn describe_parts(process: &BlockedRecord) -> String {
    let all = count_looks(process);
    let share = |looks: u64| percent(looks as f64 / all as f64);
    let parts: Vec<String> = list_reasons(process)
        .take(MAX_PARTS)
        .map(|part| format!("{} {}", visible(part.what.words()), share(part.looks)))
        .collect();
    let looks = count_of(all, "look", "looks");
    format!("{} of {looks}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(process: i32, name: &str, parts: &[(BlockedIn, u64)]) -> BlockedRecord {
        BlockedRecord {
            process,
            name: name.to_owned(),
            looks: parts.iter().map(|(_, looks)| looks).sum(),
            parts: parts
                .iter()
                .map(|(what, looks)| BlockedPart {
                    what: what.clone(),
                    looks: *looks,
                })
                .collect(),
            threads: Vec::new(),
        }
    }

    #[test]
    fn shares_are_of_looks_at_blocked_threads() {
        assert_eq!(describe_blocked(&[]), None);
        // A thread that waits for others to end is left out.
        let joins = [(BlockedIn::Thread, 41), (BlockedIn::Mutex, 22)];
        let joined = [process(7, "job", &joins)];
        let line = describe_blocked(&joined).unwrap();
        assert_eq!(
            line,
            "a lock (mutex) 100 % of 22 looks at its blocked threads"
        );
        assert_eq!(describe_blocked(&[process(7, "job", &joins[..1])]), None);
        let server = process(7, "server", &[(BlockedIn::Lock, 3), (BlockedIn::Timer, 1)]);
        assert_eq!(
            describe_blocked(std::slice::from_ref(&server)).as_deref(),
            Some(
                "a lock, work or another thread (futex) 75.0 %, a timer (sleep) 25.0 % of 4 looks \
                 at its blocked threads"
            )
        );
        let hidden = |pid| process(pid, "a\u{1b}", &[(BlockedIn::Unknown, 1)]);
        let all = [server, hidden(8), hidden(9), hidden(10)];
        let line = describe_blocked(&all).unwrap();
        assert!(line.contains("(8): unknown 100 % of 1 look;"), "{line}");
        assert!(line.ends_with("; 1 more process"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}
