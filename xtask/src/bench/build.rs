//! How long a release build from nothing takes.

use std::time::Instant;

use anyhow::Result;

use super::Setting;
use crate::programs::{cargo, step};

pub(super) fn run(setting: &Setting) -> Result<String> {
    let folder = setting.folder.path().join("build");
    // What is downloaded is not what is measured.
    step(&mut cargo(&["fetch", "--locked"]))?;
    let started = Instant::now();
    step(cargo(&["build", "--release", "--locked"]).env("CARGO_TARGET_DIR", &folder))?;
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    let size = std::fs::metadata(folder.join("release/pinwise"))?.len();
    Ok(format!(
        "## Build

Release build from nothing: {minutes:.1} minutes; the binary has {:.1} MB.",
        size as f64 / 1e6
    ))
}
