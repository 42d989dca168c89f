//! The runs of a search as rows.

use crate::export::{list_run_columns, make_run_cells};
use crate::table::{Cell, Table};
use pinwise_record::{SearchRecord, SearchStep};

/// One row per run, in order of time.
#[must_use]
pub fn list_search_rows(record: &SearchRecord) -> Table {
    let own = ["arm", "threads_set", "cpus", "step"];
    let mut table = Table::new(own.into_iter().chain(list_run_columns()));
    for run in &record.runs {
        let arm = record.arms.get(run.arm);
        let own = [
            Cell::text(arm.map_or("", |arm| &arm.name)),
            Cell::count(arm.and_then(|arm| arm.threads)),
            Cell::text(arm.map_or("", |arm| &arm.cpus)),
            Cell::text(name_step(run.step)),
        ];
        table.push(own.into_iter().chain(make_run_cells(&run.run)));
    }
    table
}

/// The step's name in records.
const fn name_step(step: SearchStep) -> &'static str {
    match step {
        SearchStep::Warmup => "warmup",
        SearchStep::Profiling => "profiling",
        SearchStep::Search => "search",
        SearchStep::Refinement => "refinement",
        SearchStep::Confirmation => "confirmation",
        SearchStep::OtherCpus => "other_cpus",
        SearchStep::Least => "least",
    }
}
