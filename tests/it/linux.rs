//! The compiled command on the real host: what it grants, how it reacts to bad commands, bad
//! stores and signals, and that it leaves nothing behind.
//!
//! No test depends on speed: waits are long, and what is asserted holds at any moment.

mod companions;
mod ended;
mod failing;
mod groups;
mod interrupts;
mod jitter;
mod joint;
mod kernels;
mod killed;
mod limited;
mod measured;
mod placed;
mod scheduling;
mod spin_pause;
mod stored;
mod trace;
mod trace_bpf;
mod trace_interrupts;
mod trial;
mod workload;
