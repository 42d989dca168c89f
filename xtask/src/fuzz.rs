//! All fuzz targets under libFuzzer, a few seconds each: enough for inputs near the seeds.
//! `fuzz/README.md` explains longer searches.
//!
//! Without a sanitizer the compiler flags are stable, and no other toolchain is needed. Findings fail
//! the check and stay in `fuzz/libfuzzer/artifacts`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::programs::{cargo, find, read_output, root, step, target};

/// Time for each target if there are enough processors.
const EACH: Duration = Duration::from_secs(10);
/// Time for all targets together.
const ALL: Duration = Duration::from_secs(170);
/// An input that needs more time, s, or memory, MiB, is a finding.
const TIMEOUT_S: u32 = 10;
const MEMORY_MIB: u32 = 1024;
/// Printed lines of a failed target.
const SHOWN: usize = 30;

/// The flags with which libFuzzer sees the code that an input reaches.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Checks that the lock file of libFuzzer's own workspace is up to date. Only `check --all` builds
/// it, but any new dependency of the crates makes it stale.
pub(crate) fn check_lock() -> Result<()> {
    let manifest = ["--manifest-path", "fuzz/libfuzzer/Cargo.toml"];
    step(cargo(&["update", "--workspace", "--locked", "--quiet"]).args(manifest))
        .context("cargo update --workspace --manifest-path fuzz/libfuzzer/Cargo.toml mends it")
}

/// Builds the targets and runs them side by side. `each` is the time of one; without it, as in
/// `check`, each starts with the same inputs on every machine, so that failures can be reproduced.
pub(crate) fn fuzz(each: Option<Duration>) -> Result<()> {
    let Some(program) = build()? else {
        return Ok(());
    };
    let targets = list_targets()?;
    let seed = if each.is_none() { 1 } else { 0 };
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    let each = each.unwrap_or_else(|| time_per_target(targets.len(), lanes));
    eprintln!(
        "xtask: {} fuzz targets, {} s each, {lanes} at once",
        targets.len(),
        each.as_secs()
    );
    let open = Mutex::new(VecDeque::from(targets));
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(target) = open.lock().ok().and_then(|mut open| open.pop_front()) {
            let line = match run(&program, &target, each, seed) {
                Ok(done) => format!("fuzz {target}: {done}"),
                Err(error) => {
                    if let Ok(mut failed) = failed.lock() {
                        failed.push(target.clone());
                    }
                    format!("fuzz {target} failed: {error:#}")
                }
            };
            eprintln!("{line}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(work);
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort();
    if !failed.is_empty() {
        bail!("fuzz targets failed: {}", failed.join(", "));
    }
    Ok(())
}

/// The time of one target with which all end in time.
fn time_per_target(targets: usize, lanes: usize) -> Duration {
    let rounds = targets.div_ceil(lanes).max(1);
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    EACH.min(ALL / rounds).max(Duration::from_secs(1))
}

/// The one program of all targets; `None`, with a message, if it cannot be built here.
fn build() -> Result<Option<PathBuf>> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if find(&compiler).is_none() {
        eprintln!(
            "SKIPPED fuzz targets: libFuzzer needs a C++ compiler, and there is no {compiler} (apt-get install g++)"
        );
        return Ok(None);
    }
    let folder = target().join("fuzz");
    // With a named platform the flags do not apply to build scripts.
    let host = read_host()?;
    let mut command = cargo(&["build", "--release", "--locked", "--quiet"]);
    command
        .args(["--manifest-path", "fuzz/libfuzzer/Cargo.toml", "--target"])
        .arg(&host)
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    step(&mut command)?;
    Ok(Some(folder.join(host).join("release/any")))
}

fn read_host() -> Result<String> {
    let text = read_output(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Lists the targets, each of which has a folder of seeds.
fn list_targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("fuzz/seeds"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Runs a target and returns libFuzzer's last line if it found nothing. libFuzzer chooses a seed for
/// 0.
fn run(program: &Path, target: &str, each: Duration, seed: u32) -> Result<String> {
    let fuzz = root().join("fuzz");
    let artifacts = fuzz.join("libfuzzer/artifacts").join(target);
    let corpus = fuzz.join("corpus").join(target);
    for folder in [&artifacts, &corpus] {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    let output = Command::new(program)
        .args([&corpus, &fuzz.join("seeds").join(target)])
        .arg(format!("-max_total_time={}", each.as_secs()))
        .arg(format!("-seed={seed}"))
        .arg(format!("-timeout={TIMEOUT_S}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .env("PINWISE_FUZZ", target)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let done = text.lines().rfind(|line| line.starts_with("Done "));
        return Ok(done.context("it ended early")?.to_owned());
    }
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    bail!("{}\n{last}", output.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_targets_end_in_time() {
        let seconds = |targets, lanes| time_per_target(targets, lanes).as_secs();
        assert_eq!(seconds(31, 2), 10);
        assert_eq!(seconds(31, 1), 5);
        assert_eq!(seconds(1, 8), 10);
        assert_eq!(seconds(1000, 1), 1);
    }
}
