//! What traced threads were blocked in, in one line.

use super::style::visible;
use pinwise_format::{count_of, percent};
use pinwise_record::BlockedRecord;

/// Processes and reasons in the line; the record has more.
const MAX_PROCESSES: usize = 3;
const MAX_PARTS: usize = 4;

/// Shares of the polls that found a thread blocked; `None` if none did.
pub(super) fn describe_blocked(seen: &[BlockedRecord]) -> Option<String> {
    let [first, others @ ..] = seen else {
        return None;
    };
    if others.is_empty() {
        return Some(format!("{} at its blocked threads", describe_parts(first)));
    }
    let shown = seen.iter().take(MAX_PROCESSES).map(|process| {
        let name = visible(&process.name);
        format!("{name} ({}): {}", process.process, describe_parts(process))
    });
    let mut parts: Vec<String> = shown.collect();
    let more = seen.len().saturating_sub(MAX_PROCESSES) as u64;
    if more > 0 {
        parts.push(count_of(more, "more process", "more processes"));
    }
    Some(parts.join("; "))
}

fn describe_parts(process: &BlockedRecord) -> String {
    let share = |looks: u64| percent(looks as f64 / process.looks.max(1) as f64);
    let parts: Vec<String> = process
        .parts
        .iter()
        .take(MAX_PARTS)
        .map(|part| format!("{} {}", visible(part.what.words()), share(part.looks)))
        .collect();
    let looks = count_of(process.looks, "look", "looks");
    format!("{} of {looks}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{BlockedIn, BlockedPart};

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
