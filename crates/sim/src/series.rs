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
const MAX_BYTES: u64 = 256 << 20;

/// Reads a CSV with a column `wall` (seconds) and optionally `user`, `sys`, `arm`.
pub(super) fn load_series(path: &Path, arm: Option<u32>) -> Result<Series, DescriptionError> {
    let text = read_bytes(path)?;
    parse_series(&text, arm).map_err(|(line, reason)| DescriptionError::Toml {
        path: path.display().to_string(),
        line,
        reason,
    })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, DescriptionError> {
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
        unpack_xz(BufReader::new(file), MAX_BYTES)
    } else {
        read_at_most(file, MAX_BYTES)
    };
    bytes.map_err(unreadable)
}

pub(super) fn unpack_xz(packed: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let kib = u32::try_from(MAX_BYTES / 1024).unwrap_or(u32::MAX);
    read_at_most(XzReader::new_mem_limit(packed, true, kib), max_bytes)
}

fn read_at_most(reader: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let reason = format!("longer than {} MiB", max_bytes >> 20);
        return Err(io::Error::other(reason));
    }
    Ok(bytes)
}

/// The line, from 1, and what is wrong in it.
type LineError = (usize, String);

/// Parses a CSV, for one arm or for all.
pub(super) fn parse_series(bytes: &[u8], arm: Option<u32>) -> Result<Series, LineError> {
    let mut reader = csv::Reader::from_reader(bytes);
    let headers = reader
        .headers()
        .map_err(|error| (1, error.to_string()))?
        .clone();
    let column = |name: &str| headers.iter().position(|header| header.trim() == name);
    let wall = column("wall").ok_or_else(|| (1, "no column 'wall'".to_owned()))?;
    let (user, sys, arms) = (column("user"), column("sys"), column("arm"));
    let mut rows: Vec<(f64, Option<f64>, Option<f64>)> = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let line = index + 2;
        let record = record.map_err(|error| (line, error.to_string()))?;
        let number = |column: usize| record.get(column)?.trim().parse::<f64>().ok();
        let is_other_arm = match (arm, arms) {
            (Some(arm), Some(column)) => {
                number(column).is_none_or(|n| (n - f64::from(arm)).abs() >= 0.5)
            }
            _ => false,
        };
        if is_other_arm {
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
