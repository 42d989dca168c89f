//! Escapes text for XML and HTML: strings of hosts and records must not become markup, nor make a
//! file that parsers reject.

use std::borrow::Cow;

/// Escapes text for the content of an element or a quoted attribute. Line breaks and tabs become
/// character references; characters that XML 1.0 cannot contain (section 2.2) are escaped as in
/// Rust.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| is_xml_character(c) && !"&<>\"'\n\r\t".contains(c);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\r' | '\t' => escaped.push_str(&format!("&#{};", u32::from(c))),
            c if is_xml_character(c) => escaped.push(c),
            c => escaped.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(escaped)
}

fn is_xml_character(c: char) -> bool {
    match c {
        '\n' | '\r' | '\t' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(escape("AMD EPYC™"), "AMD EPYC™");
        assert_eq!(
            escape("<a b='c'>&\"\n"),
            "&lt;a b=&#39;c&#39;&gt;&amp;&quot;&#10;"
        );
        assert_eq!(escape("\0\u{1b}\u{ffff}"), "\\u{0}\\u{1b}\\u{ffff}");
    }

    proptest! {
        #[test]
        fn any_text_is_an_attribute(text in any::<String>()) {
            let xml = format!("<a b=\"{}\">{}</a>", escape(&text), escape(&text));
            let document = roxmltree::Document::parse(&xml);
            prop_assert!(document.is_ok(), "{xml}");
        }
    }
}
