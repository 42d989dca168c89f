//! Quotes words for a shell, so that they can be pasted.

/// Quotes the words of a command line, in one line.
#[must_use]
pub fn line(words: impl IntoIterator<Item: AsRef<str>>) -> String {
    let words = words.into_iter().map(|word| self::word(word.as_ref()));
    words.collect::<Vec<String>>().join(" ")
}

/// Quotes a word.
#[must_use]
pub fn word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(is_unprintable) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    // A terminal could run the text before a line feed as soon as it is pasted, so printf makes it.
    // `$(…)` strips trailing line feeds: `$'…'`, which bash and zsh know, keeps them.
    let (open, close) = match word.ends_with('\n') {
        false => ("\"$(printf '", "')\""),
        true => ("$'", "'"),
    };
    let mut text = open.to_owned();
    for c in word.chars() {
        match c {
            '%' if !word.ends_with('\n') => text.push_str("%%"),
            // At the beginning it would be an option.
            c if matches!(c, '\'' | '\\' | '-') || is_unprintable(c) => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    text.push_str(&format!("\\{byte:03o}"));
                }
            }
            c => text.push(c),
        }
    }
    text.push_str(close);
    text
}

/// Would it be shown as an escape?
fn is_unprintable(c: char) -> bool {
    !matches!(c, '\'' | '"' | '\\') && c.escape_debug().len() > 1
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_stay_words() {
        let line = [
            "a b",
            "it's",
            "",
            "x\ny%",
            "-\u{202e}\\'",
            "\n",
            "plain",
            "ä",
        ];
        assert_eq!(
            super::line(&line),
            r#"'a b' 'it'\''s' '' "$(printf 'x\012y%%')" "$(printf '\055\342\200\256\134\047')" $'\012' plain 'ä'"#
        );
    }
}
