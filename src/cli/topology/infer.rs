//! `topology infer`: infers the wiring from a recorded latency matrix.

use std::path::Path;

use anyhow::Context;

use crate::cli::terminal::Terminal;
use crate::cli::{Exit, files};
use pinwise_record::ReplayRecord;
use pinwise_wiring::{Evidence, PairMatrix, infer};

pub(super) fn infer_recorded(file: &Path, terminal: &Terminal) -> anyhow::Result<Exit> {
    let shown = file.display();
    let text = files::read_machine_file(file).with_context(|| format!("topology infer {shown}"))?;
    let matrix = PairMatrix::from_csv(&text).with_context(|| format!("topology infer {shown}"))?;
    let cpus = matrix.cpus().to_vec();
    let wiring = infer(&Evidence {
        latency_ns: matrix,
        contention: None,
    });
    let record = ReplayRecord::new(&cpus, &wiring);
    terminal.show(&record, pinwise_report::render_replay)?;
    Ok(Exit::Done)
}
