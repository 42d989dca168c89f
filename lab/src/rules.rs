//! The cost of rules while 200 processes a second are started, and the time until a new process is
//! placed, with the kernel's notification and with polling.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Setting;
use crate::process::compile;
use crate::rounds::format_quartiles;
use crate::table::Table;
use xtask::programs::read_output;

/// Process starts a second.
const RATE: u64 = 200;
/// Duration of the starts, s.
const SECONDS: u64 = 20;
/// Processes whose placement is timed, alone and in the storm each.
const PLACED: usize = 200;
const SEED: u64 = 20_261_122;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let folder = setting.folder.path();
    let starter = compile(folder, "rules.c", "starter", &["-O1"])?;
    let waiter = folder.join("waiter");
    std::fs::copy(&starter, &waiter)?;
    let file = folder.join("rules.toml");
    std::fs::write(
        &file,
        format!(
            "[[rule]]\nname = \"waiter\"\nexecutable = '{}'\nplace = \"cpu:0\"\n\
             [[rule]]\nname = \"other\"\nexecutable = \"redis-server\"\nplace = \"compact\"\n",
            waiter.display()
        ),
    )?;
    let mut table = Table::new(
        "rules",
        "events | share of one CPU | by ticks | µs a start | \
         placed alone, median (quartiles) ms | placed in the storm, median (quartiles) ms | \
         never placed",
    );
    for (name, options) in [
        ("process connector", &[][..]),
        ("polling, 100 ms", &["--poll-only"]),
    ] {
        let mut rules = RunningRules::start(setting, &file, options)?;
        let figures = measure(&mut rules, &starter, &waiter)?;
        table.add_row(format!("{name} | {}", figures.format_row()));
    }
    table.publish()
}

struct Figures {
    share: f64,
    ticks: f64,
    alone: Vec<f64>,
    storm: Vec<f64>,
    never: usize,
}

impl Figures {
    fn format_row(self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let each = self.share / 100.0 * 1e6 / RATE as f64;
        format!(
            "{:.2} % | {:.2} % | {each:.0} | {} | {} | {}",
            self.share,
            self.ticks,
            format_quartiles(&self.alone, 1),
            format_quartiles(&self.storm, 1),
            self.never
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds and ticks")]
fn measure(rules: &mut RunningRules, starter: &Path, waiter: &Path) -> Result<Figures> {
    let mut chance = ChaCha8Rng::seed_from_u64(SEED);
    let mut never = 0;
    let alone = time_placements(waiter, &mut chance, &mut never)?;
    let before = rules.read_cpu_time()?;
    let began = Instant::now();
    let mut storm = Command::new(starter);
    let words = ["start", &RATE.to_string(), &SECONDS.to_string()];
    read_output(storm.args(words).arg("/bin/true"))?;
    let seconds = began.elapsed().as_secs_f64();
    let after = rules.read_cpu_time()?;
    let long = (SECONDS * 4).to_string();
    let mut storm = Command::new(starter)
        .args(["start", &RATE.to_string(), &long, "/bin/true"])
        .stdout(Stdio::null())
        .spawn()?;
    let in_storm = time_placements(waiter, &mut chance, &mut never);
    storm.kill()?;
    storm.wait()?;
    Ok(Figures {
        share: (after.0 - before.0) as f64 / 1e9 / seconds * 100.0,
        ticks: (after.1 - before.1) as f64 / 100.0 / seconds * 100.0,
        alone,
        storm: in_storm?,
        never,
    })
}

/// Milliseconds until each of many processes was placed.
fn time_placements(waiter: &Path, chance: &mut ChaCha8Rng, never: &mut usize) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(PLACED);
    for _ in 0..PLACED {
        std::thread::sleep(Duration::from_millis(chance.random_range(30..130)));
        let output = Command::new(waiter).output()?;
        match String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse::<f64>()
        {
            Ok(micros) => all.push(micros / 1000.0),
            Err(_) => *never += 1,
        }
    }
    Ok(all)
}

/// The program that applies the rules, stopped when dropped.
struct RunningRules(Child);

impl RunningRules {
    fn start(setting: &Setting, file: &Path, options: &[&str]) -> Result<Self> {
        let state = setting.folder.path().join("state");
        let mut command = Command::new(&setting.pinwise);
        command.args(["apply", "rules", "run", "--state"]);
        command.arg(&state).arg(file).args(options);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let rules = Self(command.spawn()?);
        // It first reads all processes.
        std::thread::sleep(Duration::from_secs(1));
        Ok(rules)
    }

    /// CPU time so far: ns by the scheduler, and ticks of 10 ms.
    fn read_cpu_time(&mut self) -> Result<(u64, u64)> {
        if let Some(status) = self.0.try_wait()? {
            bail!("pinwise apply rules ended: {status}");
        }
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id()));
        let clock = read("schedstat")?;
        let clock = clock.split(' ').next().context("schedstat is empty")?;
        let stat = read("stat")?;
        let (_, fields) = stat.rsplit_once(')').context("stat has no name")?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: Result<Vec<u64>, _> = ticks.map(str::parse).collect();
        Ok((clock.parse()?, ticks?.iter().sum()))
    }
}

impl Drop for RunningRules {
    fn drop(&mut self) {
        // SIGTERM, so that all processes are restored.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
