//! Lines of ftrace.
