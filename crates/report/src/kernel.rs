//! A run of a built-in workload, and the list of them, as text.

use super::comparison::render_answer;
use super::style::{Palette, paragraph, quantity};
use pinwise_format::{bytes, round_bytes, seconds};
use pinwise_record::KernelRecord;

/// A kernel of the list.
#[derive(Debug, Clone, Copy)]
pub struct KernelRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its group.
    pub group: &'a str,
    /// What it does.
    pub about: &'a str,
    /// Source of its definition.
    pub source: &'a str,
    /// The operation that is counted.
    pub operation: &'a str,
    /// What `--size` means, and its default.
    pub size: Option<(&'a str, u64)>,
    /// Is its hot loop compiled for each instruction set?
    pub has_versions: bool,
}

/// One run of a kernel.
#[must_use]
pub fn render_kernel_run(record: &KernelRecord, palette: Palette) -> String {
    let threads = match record.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads, {} split", record.split),
    };
    let size = match record.size {
        Some(size) => format!(", size {size}"),
        None => String::new(),
    };
    let chosen = record.chosen.as_ref().map_or(String::new(), |chosen| {
        format!("{}\n", paragraph("  loop: ", "    ", chosen))
    });
    format!(
        "  {} {} in {}, {threads}{size}\n  {} ({}), working set {} a thread\n{chosen}  checksum {} of {} units of work\n{}",
        quantity(record.operations as f64, "").trim_end(),
        record.operation,
        seconds(record.seconds),
        record.isa,
        record.isa_version,
        bytes(record.working_set_bytes as f64),
        record.checksum,
        record.work,
        render_answer(&record.answer, palette)
    )
}

/// The list of kernels.
#[must_use]
pub fn render_kernel_list(rows: &[KernelRow<'_>]) -> String {
    let mut out = String::new();
    for row in rows {
        out += &format!("{} ({})\n", row.name, row.group);
        out += &paragraph("  ", "  ", &format!("{}.", row.about));
        out += "\n";
        let size = row.size.map_or(String::new(), |(of, default)| {
            let default = match of.contains("bytes") {
                true => round_bytes(default),
                false => default.to_string(),
            };
            format!(" --size: {of}, {default} by default.")
        });
        let isa = if row.has_versions {
            " --isa chooses its loop."
        } else {
            ""
        };
        let rest = format!(
            "Counts {}.{size}{isa} After: {}.",
            row.operation, row.source
        );
        out += &paragraph("  ", "  ", &rest);
        out += "\n";
    }
    out
}
