//! Rewrites the messages of clap's parser for users, in one line.

/// The parser's message in one line, with its hint.
pub(super) fn to_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let parts: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        // The parser gives this tip for any word, and it rarely works.
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .collect();
    // Missing arguments and possible values are on lines of their own.
    let mut line = parts.join("; ").replace(":; ", ": ");
    for (theirs, ours) in REPLACEMENTS {
        line = line.replace(theirs, ours);
    }
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    match line.strip_prefix("missing: ") {
        Some(names) => format!(
            "missing: {}",
            names.replace(['<', '>'], "").replace("...", "")
        ),
        None => line.to_owned(),
    }
}

/// Phrases of the parser, and what replaces them.
const REPLACEMENTS: [(&str, &str); 10] = [
    ("the argument '", "'"),
    ("'[COMMAND_LINE]...'", "a command"),
    ("'[COMMAND_LINE]'", "a command"),
    ("'[COMMAND]...'", "a command"),
    ("'[KERNEL]...'", "a kernel"),
    ("'[NAME]'", "a name"),
    (
        "the following required arguments were not provided",
        "missing",
    ),
    (
        "invalid digit found in string",
        "write a whole number, not below 0",
    ),
    (
        "cannot parse integer from empty string",
        "write a whole number, not below 0",
    ),
    (
        "number too large to fit in target type",
        "the number is too large",
    ),
];
