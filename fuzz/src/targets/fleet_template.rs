//! Templates of launchers: parsed, or refused in one line.

use pinwise_fleet::template::Template;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Err(error) = Template::parse(text) {
        let message = error.to_string();
        assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    }
}
