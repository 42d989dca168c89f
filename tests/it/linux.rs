//! The compiled command on the real host: what it grants, what it makes of bad
//! commands, bad stores and signals, and what it leaves behind, which is
//! nothing.
//!
//! No test depends on speed: waits have generous ends, and what is asserted
//! holds at whatever moment it is looked at.

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
