//! Threads that share data: one counter for all, and messages between pairs.
//!
//! No lock is taken. Who waits spins for a while and then yields, so that
//! threads that were put on one CPU come to an end, too.

mod counter;
mod ring;

pub(super) use counter::SHARED_COUNTER;
pub(super) use ring::PRODUCER_CONSUMER;
