//! Lays records out as text, CSV, Markdown, hyperfine's JSON and hwloc's XML.
//!
//! Functions such as [`render_bench`] return the text of a record, those such as
//! [`list_bench_rows`] its rows for CSV. All are pure: they compute nothing that is not in the
//! record, print nothing and open no file. Text fits 80 columns and is understandable without
//! colour. Strings from commands and hosts may be hostile: their control characters are made
//! visible.
//!
//! ```
//! use pinwise_record::TopologyRecord;
//! use pinwise_report::{Palette, render_topology};
//! use pinwise_topology::Topology;
//!
//! let machine = Topology::from_synthetic("core:2 pu:2")?;
//! let record = TopologyRecord::new(&machine, &[]);
//! assert!(render_topology(&machine, &record, Palette::default()).contains("4 CPUs, 2 cores"));
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
mod trace_tiers;
mod wiring;
mod xml;

pub use bench::{list_bench_rows, render_bench};
pub use change::render_record_diff;
pub use comparison::{render_comparison, render_comparison_answer};
pub use diff::render_topology_diff;
pub use doctor::render_doctor;
pub use emission::render_emission;
pub use export::{list_run_rows, render_hyperfine, render_markdown};
pub use fleet::render_fleet_report;
pub use fleet_diff::render_fleet_diff;
pub use fleet_node::{render_fleet_node, render_fleet_plan};
pub use fleet_status::render_fleet_status;
pub use gate::{list_gate_rows, render_gate, render_gate_markdown, render_gate_not_made};
pub use gate_history::render_gate_history;
pub use history::{Line, render_history};
pub use jitter::{list_jitter_rows, render_jitter};
pub use kernel::{KernelRow, render_kernel_list, render_kernel_run};
pub use placement::explain_placement;
pub use placements::render_placements;
pub use prediction::render_prediction;
pub use profile::{ProfileShown, render_folded, render_profile};
pub use profile_diff::render_profile_diff;
pub use recipes::render_recipes;
pub use render::{describe_applied, list_rows, render_partly_read, render_record};
pub use reproduction::{ReportRow, render_report_list, render_reproduction};
pub use rules::{render_rule_change, render_rules, render_systemd_unit};
pub use search::{list_search_rows, render_search};
pub use spin::{
    render_spin_advice, render_spin_attach, render_spin_check, render_spin_pause,
    render_spin_prediction, render_spin_replay, render_spin_scan,
};
pub use style::{Palette, lay_out_for_columns, visible, visible_data, visible_lines};
pub use table::Table;
pub use topology::render_topology;
pub use trace::{render_trace, render_trace_answer};
pub use trace_events::{TraceCsv, TracePerfetto};
pub use trace_tiers::render_tiers;
pub use wiring::render_replay;
pub use xml::render_topology_xml;

/// The width of text in columns, where no terminal has another.
pub const WIDTH: usize = 80;
