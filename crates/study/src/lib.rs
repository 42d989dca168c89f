//! Experiments: runs plans on a machine and writes records.
//!
//! A plan says what to run where, a machine runs it, the statistics judge, and the record states the
//! result: sentences, findings, and the commands that apply the answer. Nothing is printed here, no
//! file is opened, and no clock is read but the machine's: a simulated machine is measured by the
//! same code as a real one.
//!
//! ```
//! use pinwise_machine::Host;
//! use pinwise_sim::SimulatedMachine;
//! use pinwise_study::compare::{ComparePlan, NoObserver, run};
//! use pinwise_workload::Command;
//!
//! let mut machine = SimulatedMachine::open("core:2 pu:2", 1)?;
//! let (topology, _) = machine.topology()?;
//! let placements = ["os-default".parse()?, "one-per-core".parse()?];
//! let command = Command::from_line("prog")?;
//! let plan = ComparePlan::compare_placements(command, &topology, &placements)?;
//! let record = run(&plan, &mut machine, &mut NoObserver)?;
//! assert_eq!(record.contrasts[0].baseline, "os-default");
//! println!("{}", record.contrasts[0].sentence);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

pub mod bench;
mod causes;
pub mod change;
pub mod compare;
mod error;
pub mod gate;
mod host;
pub mod jitter;
pub mod joint;
mod launchers;
pub mod live;
pub mod load;
pub mod probe;
pub mod profile;
pub mod reproduce;
pub mod search;
pub mod spin;
mod throttling;
pub mod trace;

use pinwise_machine::MachineError;

pub use error::StudyError;

/// Did the user interrupt?
#[must_use]
pub fn is_interrupt(error: &anyhow::Error) -> bool {
    let machine = error.downcast_ref::<MachineError>();
    matches!(machine, Some(MachineError::Interrupted))
}
