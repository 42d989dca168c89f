//! What traced threads were blocked in, in one line.

use super::style::visible;
use pinwise_format::{count_of, percent};
use pinwise_record::{BlockedIn, BlockedPart, BlockedRecord};

/// Processes and reasons in the line; the record has more.
const MAX_PROCESSES: usize = 3;
const MAX_PARTS: usize = 4;

/// Shares of the polls that found a thread blocked; `None` if none did, or only those that awaited
/// the end of others.
pub(super) fn describe_blocked(seen: &[BlockedRecord]) -> Option<String> {
    let known = seen.iter().map(|process| (process, list_waits(process)));
    let known = known.filter(|(_, parts)| !parts.is_empty());
    let known: Vec<(&BlockedRecord, Vec<BlockedPart>)> = known.collect();
    let [(_, first), others @ ..] = known.as_slice() else {
        return None;
    };
    if others.is_empty() {
        return Some(format!("{} at its blocked threads", describe_parts(first)));
    }
    let shown = known.iter().take(MAX_PROCESSES).map(|(process, parts)| {
        let name = visible(&process.name);
        format!("{name} ({}): {}", process.process, describe_parts(parts))
    });
    let mut parts: Vec<String> = shown.collect();
    let more = known.len().saturating_sub(MAX_PROCESSES) as u64;
    if more > 0 {
        parts.push(count_of(more, "more process", "more processes"));
    }
    Some(parts.join("; "))
}

/// Who awaits the end of others does not say what they wait for, nor do idle threads.
fn list_waits(process: &BlockedRecord) -> Vec<BlockedPart> {
    let mut parts = process.active_parts();
    parts.retain(|part| part.what != BlockedIn::Thread);
    parts
}

fn describe_parts(parts: &[BlockedPart]) -> String {
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    let share = |looks: u64| percent(looks as f64 / all as f64);
    let shown = parts.iter().take(MAX_PARTS);
    let shown = shown.map(|part| format!("{} {}", visible(part.what.words()), share(part.looks)));
    let shown: Vec<String> = shown.collect();
    let looks = count_of(all, "look", "looks");
    format!("{} of {looks}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::BlockedThread;

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
        // Who awaits the end of others does not say what they wait for.
        let joins = [(BlockedIn::Thread, 41), (BlockedIn::Mutex, 22)];
        let joined = [process(7, "job", &joins)];
        let line = describe_blocked(&joined).unwrap();
        assert_eq!(line, "a lock 100 % of 22 looks at its blocked threads");
        assert_eq!(describe_blocked(&[process(7, "job", &joins[..1])]), None);
        let server = process(7, "server", &[(BlockedIn::Lock, 3), (BlockedIn::Timer, 1)]);
        assert_eq!(
            describe_blocked(std::slice::from_ref(&server)).as_deref(),
            Some(
                "a lock, work or another thread (futex) 75.0 %, a timer (sleep) 25.0 % of 4 looks \
                 at its blocked threads"
            )
        );
        // The main thread of a server sleeps all the time.
        let thread = |what: BlockedIn, is_idle| {
            let text = r#"{"thread":8,"name":"","looks":3,"what":"lock","wakes":null}"#;
            let parts = vec![BlockedPart { what, looks: 3 }];
            BlockedThread {
                parts,
                is_idle,
                ..serde_json::from_str(text).unwrap()
            }
        };
        let threads = vec![
            thread(BlockedIn::Socket, false),
            thread(BlockedIn::Timer, true),
        ];
        let parts = [(BlockedIn::Timer, 3), (BlockedIn::Socket, 3)];
        let idle = BlockedRecord {
            threads,
            ..process(7, "server", &parts)
        };
        let line = describe_blocked(&[idle]).unwrap();
        assert_eq!(line, "a socket 100 % of 3 looks at its blocked threads");
        let hidden = |pid| process(pid, "a\u{1b}", &[(BlockedIn::Unknown, 1)]);
        let all = [server, hidden(8), hidden(9), hidden(10)];
        let line = describe_blocked(&all).unwrap();
        assert!(line.contains("(8): unknown 100 % of 1 look;"), "{line}");
        assert!(line.ends_with("; 1 more process"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}
