//! Regular expressions that match one name.

/// A pattern that matches exactly this text, in POSIX extended, Go's and Java's regular expressions. Google
/// Benchmark 1.7.1 rejects a backslash before `]` and `}`; alone they are literal everywhere.
pub(super) fn exact_pattern(text: &str) -> String {
    let mut pattern = String::from("^");
    for c in text.chars() {
        if "\\.+*?()|[{^$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}
