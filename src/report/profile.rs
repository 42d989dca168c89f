//! Profiles as text.
