//! Lays records out as text, CSV, Markdown, hyperfine's JSON and hwloc's XML.
//!
//! A function named after a record, such as [`bench()`], returns its text. All are pure: they
//! compute nothing that is not in the record, print nothing and open no file. Text fits 80 columns
//! and is understandable without colour. Strings from commands and hosts may be hostile: their
//! control characters are made visible.
//!
//! ```
//! use pinwise_record::TopologyRecord;
//! use pinwise_report::{Palette, topology};
//! use pinwise_topology::Topology;
//!
//! let machine = Topology::from_synthetic("core:2 pu:2")?;
//! let record = TopologyRecord::new(&machine, &[]);
//! assert!(topology(&machine, &record, Palette::default()).contains("4 CPUs, 2 cores"));
//! # Ok::<(), pinwise_topology::SyntheticError>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

mod bench;
mod change;
mod columns;
mod comparison;
mod devices;
mod diff;
mod doctor;
mod emission;
mod export;
mod fleet;
mod fleet_diff;
mod fleet_node;
mod fleet_status;
mod gate;
mod gate_history;
mod history;
mod jitter;
mod kernel;
mod markup;
mod measured;
pub mod page;
mod placement;
mod placements;
mod prediction;
mod profile;
mod profile_diff;
mod recipes;
mod render;
mod reproduction;
mod rules;
mod search;
mod spin;
mod style;
mod table;
pub mod top;
mod topology;
mod trace;
mod trace_blocked;
mod trace_events;
mod trace_interrupts;
mod trace_rows;
mod wiring;
mod xml;

pub use bench::{bench, bench_rows};
pub use change::record_diff;
pub use comparison::{comparison, comparison_answer};
pub use diff::topology_diff;
pub use doctor::doctor;
pub use emission::emission;
pub use export::{hyperfine, markdown, run_rows};
pub use fleet::fleet_report;
pub use fleet_diff::fleet_diff;
pub use fleet_node::{fleet_node, fleet_plan};
pub use fleet_status::fleet_status;
pub use gate::{gate, gate_markdown, gate_not_made, gate_rows};
pub use gate_history::gate_history;
pub use history::{Line, history};
pub use jitter::{jitter, jitter_rows};
pub use kernel::{KernelRow, kernel, kernels};
pub use placement::explain;
pub use placements::placements;
pub use prediction::prediction;
pub use profile::{ProfileShown, folded, profile};
pub use profile_diff::profile_diff;
pub use recipes::recipes;
pub use render::{describe_applied, partly, rows, text};
pub use reproduction::{ReportRow, reports, reproduction};
pub use rules::{rule_change, rules, rules_unit};
pub use search::{search, search_rows};
pub use spin::{
    spin_advice, spin_attach, spin_check, spin_pause, spin_prediction, spin_replay, spin_scan,
};
pub use style::{Palette, lay_out_for_columns, visible, visible_data, visible_lines};
pub use table::Table;
pub use topology::topology;
pub use trace::{tiers, trace};
pub use trace_events::{TraceCsv, TracePerfetto};
pub use wiring::replay;
pub use xml::topology_xml;

/// The width of text in columns, where no terminal has another.
pub const WIDTH: usize = 80;
