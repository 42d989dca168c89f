//! Templates of launchers: parsed, or refused in one line.

use crate::invariants::check_refusal;
use pinwise_fleet::template::Template;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Err(error) = Template::parse(text) {
        check_refusal(&error);
    }
}
