//! The text of ftrace: refused with a reason, or events that are no more than
//! its lines could hold, and that every export can write.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| invariants::check_import(bytes));
