//! Documents keep their promises.
