//! The list of stored records, as text.

use super::style::{columns, paragraph, shorten, visible};
use pinwise_format::{count, shell};

/// One entry of the history.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The record's id.
    pub id: &'a str,
    /// The machine it ran on.
    pub host: &'a str,
    /// What it is about.
    pub title: &'a str,
    /// The result, in words.
    pub verdict: &'a str,
    /// The user's tags.
    pub tags: &'a [String],
    /// The number of other parts of the same bench or fleet, which are not listed, and their tag.
    pub more_like_it: Option<(usize, &'a str)>,
}

/// The list for a terminal, in the given order.
#[must_use]
pub fn render_history(lines: &[Line<'_>]) -> String {
    if lines.is_empty() {
        return "Nothing has been recorded yet.\n".to_owned();
    }
    lines.iter().map(format_line).collect()
}

fn format_line(line: &Line<'_>) -> String {
    let mut text = format!(
        "{}  {:<10}  {}\n",
        visible(line.id),
        shorten(line.host, 10),
        shorten(
            line.title,
            columns().saturating_sub(line.id.len().min(30) + 14)
        )
    );
    // Traces without findings have none.
    if !line.verdict.is_empty() {
        let verdict = paragraph("    ", "    ", line.verdict);
        text.push_str(&format!("{verdict}\n"));
    }
    if !line.tags.is_empty() {
        let tags = paragraph("    tags: ", "          ", &line.tags.join(", "));
        text.push_str(&format!("{tags}\n"));
    }
    if let Some((others, tag)) = line.more_like_it {
        let others = count(others, "other part");
        let tag = shell::word(&visible(tag));
        text.push_str(&format!(
            "    and {others}: pinwise record history --tag {tag}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_verdict_takes_one_line() {
        let line = |verdict| Line {
            id: "20261124-054801-9605c291",
            host: "local",
            title: "trace of make",
            verdict,
            tags: &[],
            more_like_it: None,
        };
        assert_eq!(render_history(&[line("")]).lines().count(), 1);
        let two = render_history(&[line("No placement is faster.")]);
        assert_eq!(two.lines().nth(1), Some("    No placement is faster."));
    }
}
