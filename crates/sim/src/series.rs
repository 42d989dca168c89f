//! Recorded runs, replayed as noise.
//!
//! A series has what models lack: moving levels, intermittent load, heavy tails, and their
//! sequence.

use std::io::{self, BufReader, Read};
use std::path::Path;

use lzma_rust2::XzReader;

use super::checker::DescriptionError;

/// One recorded run, relative to the series' median.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedRun {
    /// Wall-clock time over the median of the series.
    pub(super) factor: f64,
    /// User time over wall-clock time.
    pub(super) user_share: Option<f64>,
    /// System time over wall-clock time.
    pub(super) sys_share: Option<f64>,
}

/// Recorded runs in time order.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) runs: Vec<RecordedRun>,
}

/// Shorter series repeat too soon.
const MIN_RUNS: usize = 10;

/// Limit on a series, and on the memory for unpacking it: a packed file of a few kilobytes may
/// unpack to any size.
const LONGEST_BYTES: u64 = 256 << 20;

/// Reads a CSV with a column `wall` (seconds) and optionally `user`, `sys`, `arm`.
pub(super) fn load(path: &Path, arm: Option<u32>) -> Result<Series, DescriptionError> {
    let text = read(path)?;
    parse(&text, arm).map_err(|(line, reason)| DescriptionError::Toml {
        path: path.display().to_string(),
        line,
        reason,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, DescriptionError> {
    let unreadable = |error: io::Error| DescriptionError::Unreadable {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a simulated machine is made of its files; this is the Edge"
    )]
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let is_packed = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("xz"));
    let bytes = if is_packed {
        unpack(BufReader::new(file), LONGEST_BYTES)
    } else {
        read_at_most(file, LONGEST_BYTES)
    };
    bytes.map_err(unreadable)
}

pub(super) fn unpack(packed: impl Read, longest: u64) -> io::Result<Vec<u8>> {
    let kib = u32::try_from(LONGEST_BYTES / 1024).unwrap_or(u32::MAX);
    read_at_most(XzReader::new_mem_limit(packed, true, kib), longest)
}

fn read_at_most(reader: impl Read, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let reason = format!("it is longer than {} MiB", longest >> 20);
        return Err(io::Error::other(reason));
    }
    Ok(bytes)
}

type BadLine = (usize, String);

pub(super) fn parse(bytes: &[u8], arm: Option<u32>) -> Result<Series, BadLine> {
    let mut reader = csv::Reader::from_reader(bytes);
    let headers = reader
        .headers()
        .map_err(|error| (1, error.to_string()))?
        .clone();
    let column = |name: &str| headers.iter().position(|header| header.trim() == name);
    let wall = column("wall").ok_or_else(|| (1, "there is no column 'wall'".to_owned()))?;
    let (user, sys, arms) = (column("user"), column("sys"), column("arm"));
    let mut rows: Vec<(f64, Option<f64>, Option<f64>)> = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let line = index + 2;
        let record = record.map_err(|error| (line, error.to_string()))?;
        let number = |column: usize| record.get(column)?.trim().parse::<f64>().ok();
        let is_wanted = match (arm, arms) {
            (Some(wanted), Some(column)) => {
                number(column).is_some_and(|n| (n - f64::from(wanted)).abs() < 0.5)
            }
            _ => true,
        };
        if !is_wanted {
            continue;
        }
        let time = number(wall)
            .filter(|t| *t > 0.0 && t.is_finite())
            .ok_or_else(|| (line, "'wall' is not a time above 0".to_owned()))?;
        rows.push((time, user.and_then(number), sys.and_then(number)));
    }
    if rows.len() < MIN_RUNS {
        let found = rows.len();
        return Err((1, format!("{found} runs are too few (at least {MIN_RUNS})")));
    }
    let times: Vec<f64> = rows.iter().map(|row| row.0).collect();
    let median = pinwise_stats::describe::quantile(&times, 0.5);
    let runs = rows
        .into_iter()
        .map(|(wall, user, sys)| RecordedRun {
            factor: wall / median,
            user_share: user.map(|u| u / wall),
            sys_share: sys.map(|s| s / wall),
        })
        .collect();
    Ok(Series { runs })
}
