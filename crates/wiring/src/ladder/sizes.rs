//! Chooses the working sets to load next, so that few are enough.

use super::Point;
use pinwise_format::whole_usize;

/// Sizes nearer to each other are not refined further, in octaves: a knee is then known to a factor
/// of 1.1.
const MIN_SPACING: f64 = 0.2;

/// Spacing of the first sizes, in octaves: every cache is at least twice as large as the one
/// before.
const FIRST_SPACING: f64 = 0.5;

/// Chooses up to `most` sizes from `smallest` to `largest` bytes, in ascending order: a coarse grid at
/// first, then the middles of the steepest climbs. Empty once all knees are narrow.
#[must_use]
pub fn next_sizes(points: &[Point], smallest: usize, largest: usize, most: usize) -> Vec<usize> {
    let mut known: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| (smallest..=largest).contains(&point.bytes) && point.ns > 0.0)
        .map(|point| ((point.bytes.max(1) as f64).log2(), point.ns.ln()))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sizes = if known.len() < 2 {
        make_grid(smallest, largest, most)
    } else {
        choose_middles(&known, most)
    };
    sizes.retain(|size| {
        (smallest..=largest).contains(size) && points.iter().all(|p| p.bytes != *size)
    });
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn make_grid(smallest: usize, largest: usize, most: usize) -> Vec<usize> {
    if most == 0 || smallest > largest {
        return Vec::new();
    }
    let (low, high) = (
        (smallest.max(1) as f64).log2(),
        (largest.max(1) as f64).log2(),
    );
    let steps = whole_usize(((high - low) / FIRST_SPACING).ceil())
        .min(most.saturating_sub(1))
        .max(1);
    let step = (high - low) / steps as f64;
    let inside = (1..steps).map(|index| round_to_page(low + step * index as f64));
    let ends = [smallest, largest].into_iter().take(most);
    inside.chain(ends).take(most.max(1)).collect()
}

/// Chooses the middles of climbs, the widest and highest ones first.
fn choose_middles(known: &[(f64, f64)], most: usize) -> Vec<usize> {
    let mut climbs: Vec<(f64, f64)> = known
        .windows(2)
        .map(|pair| {
            let width = pair[1].0 - pair[0].0;
            let rise = (pair[1].1 - pair[0].1).abs();
            (rise * width, f64::midpoint(pair[0].0, pair[1].0), width)
        })
        // Noise is not followed: 15 % at half an octave.
        .filter(|(rise, _, width)| *width > MIN_SPACING && *rise > 0.08)
        .map(|(rise, middle, _)| (rise, middle))
        .collect();
    climbs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let middles = climbs.into_iter().take(most);
    middles.map(|(_, middle)| round_to_page(middle)).collect()
}

/// Rounds to whole pages, or to whole lines if there are only a few pages.
fn round_to_page(log2_bytes: f64) -> usize {
    let unit = if log2_bytes < 16.0 { 256.0 } else { 4096.0 };
    let bytes = (log2_bytes.exp2() / unit).round().max(1.0) * unit;
    whole_usize(bytes)
}
