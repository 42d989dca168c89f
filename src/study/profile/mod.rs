//! Profiles of commands and processes as records.
