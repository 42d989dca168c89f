//! `--threads` of a search: numbers, and the ladder for a range.

use anyhow::bail;

/// Numbers of threads to be searched, ascending. `compare`: the command for more than `cpus`.
pub(super) fn parse(text: &str, cpus: usize, compare: &str) -> anyhow::Result<Vec<usize>> {
    let number = |text: &str, word: &str, cpus: usize| number(text, word, cpus, compare);
    let mut found = match text.split_once("..") {
        Some((first, last)) => {
            let first = number(text, first, cpus)?;
            let last = match last.trim() {
                "" => cpus,
                last => number(text, last, cpus)?,
            };
            if first > last {
                bail!("--threads '{text}': the range is reversed");
            }
            ladder(first, last)
        }
        None => text
            .split(',')
            .map(|word| number(text, word, cpus))
            .collect::<anyhow::Result<_>>()?,
    };
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn number(text: &str, word: &str, cpus: usize, compare: &str) -> anyhow::Result<usize> {
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
    // What is too long for a number is beyond the CPUs as well.
    let threads = word.parse().unwrap_or(usize::MAX);
    if threads > cpus {
        return Err(beyond(&format!("--threads {text}"), cpus, compare));
    }
    Ok(threads)
}

/// More threads than CPUs; `what` names the argument, and `compare` the command that tries them.
pub(in crate::cli) fn beyond(what: &str, cpus: usize, compare: &str) -> anyhow::Error {
    let allowed = if cpus == 1 {
        "1 CPU is".to_owned()
    } else {
        format!("{cpus} CPUs are")
    };
    anyhow::anyhow!(
        "{what}: only {allowed} allowed here, and every thread gets one of its own (more threads than CPUs: {compare})"
    )
}

/// 1, 2, 3, 4, 6, 8, 12, 16 …: powers of two and one and a half times those,
/// with both ends. Costs change with the ratio of threads, not with their
/// difference.
fn ladder(first: usize, last: usize) -> Vec<usize> {
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
        let counts = |text: &str| parse(text, 96, "").unwrap();
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
    fn what_makes_no_sense_is_refused_by_name() {
        for bad in [
            "", "0", "0..4", "x", "1,,2", "-1", "1.5", "..4", "1...4", "4..2",
        ] {
            let message = format!("{:#}", parse(bad, 8, "pinwise compare").unwrap_err());
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
            let message = format!("{:#}", parse(bad, cpus, "pinwise compare").unwrap_err());
            assert!(
                message.contains(&format!("--threads {bad}: only {cpus} CPU")),
                "{message}"
            );
        }
    }

    proptest! {
        #[test]
        fn ladders_have_both_ends_and_no_wide_gap(first in 1usize..3000, more in 0usize..3000) {
            let (last, steps) = (first + more, ladder(first, first + more));
            prop_assert_eq!(steps.first(), Some(&first));
            prop_assert_eq!(steps.last(), Some(&last));
            prop_assert!(steps.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
            prop_assert!(steps.len() <= 26);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}", cpus in 1usize..400) {
            if let Ok(found) = parse(&text, cpus, "") {
                prop_assert!(found.iter().all(|threads| (1..=cpus).contains(threads)));
            }
        }
    }
}
