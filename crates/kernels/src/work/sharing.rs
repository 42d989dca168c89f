//! Threads that share data: one counter for all, and messages between pairs.
//!
//! No lock is taken. A waiting thread spins for a while and then yields, so that threads on one CPU
//! finish, too.

mod counter;
mod ring;

pub(super) use counter::SHARED_COUNTER;
pub(super) use ring::PRODUCER_CONSUMER;
