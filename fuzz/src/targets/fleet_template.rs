//! Templates of launchers: read, or refused in one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise::fleet::template::Template;

fuzz_target!(|text: &str| {
    if let Err(error) = Template::parse(text) {
        let told = error.to_string();
        assert!(!told.is_empty() && !told.contains('\n'), "{told}");
    }
});
