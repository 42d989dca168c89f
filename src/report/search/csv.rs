//! The runs of a search for other programs.

use crate::record::{SearchRecord, SearchRun, SearchStep};
use crate::report::export::{RUN_FIELDS, run_fields};

/// One line per run, in order of time.
///
/// # Errors
/// The CSV writer's words, in the unlikely case that it has any.
pub fn search_csv(record: &SearchRecord) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["arm", "threads_set", "cpus", "step"];
    header.extend(RUN_FIELDS);
    writer.write_record(header)?;
    for run in &record.runs {
        writer.write_record(fields(record, run))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn fields(record: &SearchRecord, run: &SearchRun) -> Vec<String> {
    let arm = record.arms.get(run.arm);
    let text = |value: Option<String>| value.unwrap_or_default();
    let mut fields = vec![
        text(arm.map(|arm| arm.name.clone())),
        text(arm.and_then(|arm| Some(arm.threads?.to_string()))),
        text(arm.map(|arm| arm.cpus.clone())),
        step(run.step).to_owned(),
    ];
    fields.extend(run_fields(&run.run));
    fields
}

/// As the record has it.
const fn step(step: SearchStep) -> &'static str {
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
