//! The text of ftrace: refused with a reason, or events that are no more than
//! its lines could hold, and that every export can write.


/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    crate::invariants::check_import(bytes);
}
