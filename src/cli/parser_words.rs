//! What the parser says, in one line and in words for people.

/// The parser's words in one line, its hint among them.
pub(super) fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let parts: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        // What the parser proposes for any word works for few.
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .collect();
    // What is missing or possible is on lines of its own.
    let mut line = parts.join("; ").replace(":; ", ": ");
    for (theirs, ours) in WORDS {
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

/// What the parser says, in words for people.
const WORDS: [(&str, &str); 10] = [
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
