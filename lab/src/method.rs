//! Error rates, coverage and power of the whole procedure, replayed through
//! the simulated machine with known truth: arms that differ by a factor or not
//! at all, and arms that differ in spread, shape, warm-up or after-effect. Beside
//! it, what a plain sweep with sequential blocks and Welch's test says about the
//! same recorded runs.

mod builds;
mod cells;
mod change;
#[path = "../../tests/it/replay.rs"]
mod replay;
#[path = "../../tests/it/sessions.rs"]
mod sessions;
mod sweeps;
mod unlike;

use anyhow::{Context, Result};
use replay::{Cell, Tally, independent_noise, read_series, replay};

/// Recordings of the project, and how loaded the machine was.
const SERIES: [(&str, &str); 6] = [
    ("light_cpu", "light"),
    ("medium_mem", "medium"),
    ("aa_cpu2", "medium"),
    ("aa_bg", "on/off"),
    ("aa_cpu1", "heavy"),
    ("aa_mem1", "heavy"),
];

/// Comparisons of a cell.
const REPLAYS: usize = 1_000;

/// The parsed arguments.
struct Arguments {
    replays: usize,
    filter: String,
}

impl Arguments {
    /// Whether a cell's label contains every part of the filter.
    fn selects(&self, label: &str) -> bool {
        self.filter.split('+').all(|part| label.contains(part))
    }

    /// Replays a cell, half of it on a second thread.
    fn replay(&self, cell: &Cell) -> Tally {
        let half = self.replays / 2;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| replay(cell, half, 1_000_000));
            let own = replay(cell, self.replays - half, 0);
            own.plus(other.join().unwrap_or_default())
        })
    }
}

/// A noise: its name and its description.
type Noise = (String, String);

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let replays = arguments.first().map_or(Ok(REPLAYS), |text| text.parse());
    let arguments = Arguments {
        replays: replays.context("REPLAYS must be a whole number")?,
        filter: arguments.get(1).cloned().unwrap_or_default(),
    };
    let mut noises: Vec<Noise> = SERIES
        .iter()
        .map(|(name, load)| {
            let noise = read_series(&format!("{name}.csv.xz"));
            (format!("{name} ({load})"), noise)
        })
        .collect();
    noises.push((
        "independent, pair SD 2.5 %".to_owned(),
        independent_noise(0.0175),
    ));
    cells::publish(&noises, &arguments)?;
    cells::publish_judges(&noises, &arguments)?;
    builds::publish(&noises, &arguments)?;
    unlike::publish(&arguments)?;
    change::publish_sessions(&noises, &arguments)?;
    change::publish_fleets(&arguments)?;
    sweeps::publish(&arguments)
}
