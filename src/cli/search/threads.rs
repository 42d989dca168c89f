//! Parses `--threads` of a search: numbers, or a range, of which only some numbers are tried.

use anyhow::bail;

/// Parses the numbers of threads to search, ascending. The error for more than `cpus` threads
/// suggests the command `compare`.
pub(super) fn parse_threads(text: &str, cpus: usize, compare: &str) -> anyhow::Result<Vec<usize>> {
    let parse_number =
        |text: &str, word: &str, cpus: usize| parse_number(text, word, cpus, compare);
    let mut found = match text.split_once("..") {
        Some((first, last)) => {
            let first = parse_number(text, first, cpus)?;
            let last = match last.trim() {
                "" => cpus,
                last => parse_number(text, last, cpus)?,
            };
            if first > last {
                bail!("--threads '{text}': the range is reversed");
            }
            list_thread_counts(first, last)
        }
        None => text
            .split(',')
            .map(|word| parse_number(text, word, cpus))
            .collect::<anyhow::Result<_>>()?,
    };
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn parse_number(text: &str, word: &str, cpus: usize, compare: &str) -> anyhow::Result<usize> {
    let word = word.trim();
    if word == "max" {
        return Ok(cpus);
    }
    let bad = || {
        format!(
            "--threads '{text}': write a number from 1, a list such as 4,8,16, or a range such as 1..16 or 1..max"
        )
    };
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || word.bytes().all(|byte| byte == b'0') {
        bail!("{}", bad());
    }
    // A number with too many digits is also more than there are CPUs.
    let threads = word.parse().unwrap_or(usize::MAX);
    if threads > cpus {
        return Err(too_many_threads_error(
            &format!("--threads {text}"),
            cpus,
            compare,
        ));
    }
    Ok(threads)
}

/// The error for more threads than CPUs; `compare` is the command that allows them.
pub(in crate::cli) fn too_many_threads_error(
    argument: &str,
    cpus: usize,
    compare: &str,
) -> anyhow::Error {
    let allowed = if cpus == 1 {
        "1 CPU is".to_owned()
    } else {
        format!("{cpus} CPUs are")
    };
    anyhow::anyhow!(
        "{argument}: only {allowed} allowed here, and every thread gets one of its own (more threads than CPUs: {compare})"
    )
}

/// 1, 2, 3, 4, 6, 8, 12, 16 …: powers of two and one and a half times those, with both ends of the
/// range. Steps grow since costs depend on ratios of thread counts, not on differences.
fn list_thread_counts(first: usize, last: usize) -> Vec<usize> {
    let mut steps = vec![first, last];
    let mut power = 1usize;
    while power <= last {
        steps.push(power);
        steps.push(power + power / 2);
        let Some(next) = power.checked_mul(2) else {
            break;
        };
        power = next;
    }
    steps.retain(|step| (first..=last).contains(step));
    steps.sort_unstable();
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_lists_and_ranges() {
        let counts = |text: &str| parse_threads(text, 96, "").unwrap();
        assert_eq!(counts("8"), [8]);
        assert_eq!(counts("16,4, 8,4"), [4, 8, 16]);
        assert_eq!(counts("max"), [96]);
        let all = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];
        assert_eq!(counts("1..96"), all);
        assert_eq!(counts("1.."), all);
        assert_eq!(counts("1..max"), all);
        assert_eq!(counts("5..7"), [5, 6, 7]);
        assert_eq!(counts("7..33"), [7, 8, 12, 16, 24, 32, 33]);
        assert_eq!(counts("5..5"), [5]);
    }

    #[test]
    fn invalid_numbers_are_refused_by_name() {
        for bad in [
            "", "0", "0..4", "x", "1,,2", "-1", "1.5", "..4", "1...4", "4..2",
        ] {
            let message = format!(
                "{:#}",
                parse_threads(bad, 8, "pinwise compare").unwrap_err()
            );
            assert!(
                message.starts_with(&format!("--threads '{bad}': ")),
                "{message}"
            );
        }
        for (bad, cpus) in [
            ("9", 8),
            ("1..9", 8),
            ("2", 1),
            ("99999999999999999999999", 8),
        ] {
            let message = format!(
                "{:#}",
                parse_threads(bad, cpus, "pinwise compare").unwrap_err()
            );
            assert!(
                message.contains(&format!("--threads {bad}: only {cpus} CPU")),
                "{message}"
            );
        }
    }

    proptest! {
        #[test]
        fn tried_numbers_of_a_range_have_both_ends_and_no_wide_gap(first in 1usize..3000, more in 0usize..3000) {
            let (last, steps) = (first + more, list_thread_counts(first, first + more));
            prop_assert_eq!(steps.first(), Some(&first));
            prop_assert_eq!(steps.last(), Some(&last));
            prop_assert!(steps.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
            prop_assert!(steps.len() <= 26);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}", cpus in 1usize..400) {
            if let Ok(found) = parse_threads(&text, cpus, "") {
                prop_assert!(found.iter().all(|threads| (1..=cpus).contains(threads)));
            }
        }
    }
}
