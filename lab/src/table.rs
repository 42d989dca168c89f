//! Tables: printed as Markdown, for `docs/benchmarks.md`, and written as CSV.

use std::path::PathBuf;

use anyhow::Result;
use xtask::programs::target;

/// A table of results.
pub(crate) struct Table {
    name: String,
    /// Its cells, separated by ` | `, as those of rows.
    head: String,
    rows: Vec<String>,
}

impl Table {
    /// The name is that of its CSV file.
    pub(crate) fn new(name: &str, head: &str) -> Self {
        Self {
            name: name.to_owned(),
            head: head.to_owned(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, and prints it to standard error at once, since some take an hour.
    pub(crate) fn add_row(&mut self, row: String) {
        eprintln!("lab: {row}");
        self.rows.push(row);
    }

    /// Prints and writes the table, unless a filter left it empty.
    pub(crate) fn publish(self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns = self.head.split(" | ").count();
        println!("\n{}:\n\n| {} |", self.name, self.head);
        println!("|{}", "---|".repeat(columns));
        for row in &self.rows {
            println!("| {row} |");
        }
        let folder = target().join("lab");
        std::fs::create_dir_all(&folder)?;
        let path: PathBuf = folder.join(format!("{}.csv", self.name));
        let mut file = csv::Writer::from_path(&path)?;
        for row in std::iter::once(&self.head).chain(&self.rows) {
            // Emphasis and code are for Markdown.
            file.write_record(row.split(" | ").map(|cell| cell.replace(['*', '`'], "")))?;
        }
        file.flush()?;
        eprintln!("lab: wrote {}", path.display());
        Ok(())
    }
}
