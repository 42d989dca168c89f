//! The text of ftrace: refused with a reason, or no more events than its lines can hold, and every
//! export can write them.

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    crate::invariants::check_import(bytes);
}
