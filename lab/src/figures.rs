//! Figures of traces of thirty programs compared with the kernel's own, by tier, and the named
//! causes compared with the planted ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Setting;
use crate::process::{Group, compile, copy_programs};
use crate::rounds::median;
use crate::table::Table;
use xtask::programs::{find_or_install, root};

const TIERS: [&str; 5] = ["proc", "switch", "cpu-wide", "tracepoint", "bpf"];
const ROUNDS: usize = 3;
/// A user of every Debian system without processes.
const USER: &str = "games";
/// Tolerance of figures that are not marked as bounds.
const ALLOWED: f64 = 0.03;
/// Causes that must not be named unless planted.
const PLANTED_ONLY: [&str; 3] = ["throttled", "scheduling_class", "mask"];
/// Shorter times and fewer switches are not judged.
const MIN_SECONDS: f64 = 0.05;
const MIN_SWITCHES: f64 = 100.0;
/// Tolerated difference of the two clocks, s.
const CLOCKS_S: f64 = 0.01;

struct Program {
    name: &'static str,
    /// The programs that it needs.
    needed: &'static str,
    /// Its command line, in a folder of its own.
    line: &'static str,
    /// The user that it runs as. Only root may ask for some of the planted causes.
    user: &'static str,
    /// Commands that run beside it, outside the trace.
    beside: &'static [&'static str],
    /// The planted causes of most of its queueing, any of which may be named; empty if none was
    /// planted.
    causes: Vec<&'static str>,
}

/// Commands that keep the first two CPUs busy.
const BUSY_CPUS: &[&str] = &[
    "exec taskset -c 0 ./threads 0 1000000000000",
    "exec taskset -c 1 ./threads 0 1000000000000",
];

/// Name :: needed programs :: command line.
const NATURAL: &str = "\
hackbench :: hackbench :: hackbench -g 4 -l 400
Java :: java :: java -cp . Pool
Go :: go :: ./pool
Python pool :: python3 :: python3 pool.py
make -j2 :: make :: make -s clean && make -s -j2
fork storm :: sh :: i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done
stress-ng cpu :: stress-ng :: stress-ng --cpu 4 -t 2 --temp-path .
stress-ng switch :: stress-ng :: stress-ng --switch 2 -t 1 --temp-path .
stress-ng yield :: stress-ng :: stress-ng --yield 2 -t 1 --temp-path .
500 threads :: cc :: ./threads 500
2,000 threads :: cc :: ./threads 2000
PostgreSQL :: postgres pgbench :: ./postgres.sh
nginx :: nginx ab :: ./nginx.sh
Redis :: redis-server :: ./redis.sh
xz, two threads :: xz :: seq 1000000 | xz -1 -T2 --block-size=1MiB > /dev/null
tar through gzip :: gzip :: tar -cf - /usr/include | gzip -1 > /dev/null
sort, two threads :: sort :: seq 800000 | rev | sort -n --parallel=2 > /dev/null
SQLite :: python3 :: python3 table.py
OpenSSL :: openssl :: openssl speed -seconds 1 -multi 2 sha256
OpenMP :: cc :: ./openmp 1
mpirun, two processes :: mpirun :: mpirun --oversubscribe -n 2 ./threads 2 100000000";

/// Programs with planted causes of queueing. Name :: command line :: `busy` if CPUs are kept busy
/// beside it :: causes.
const PLANTED: &str = "\
pipe on one CPU :: taskset -c 0 perf bench sched pipe -l 60000 :: :: own_threads mask
three threads on one CPU :: taskset -c 0 ./threads 3 400000000 :: :: own_threads mask
six threads on two CPUs :: taskset -c 0,1 ./threads 6 400000000 :: :: own_threads
beside busy CPUs :: taskset -c 0,1 ./threads 2 1000000000 :: busy :: other_processes
nice 10 beside busy CPUs :: nice -n 10 taskset -c 0,1 ./threads 2 200000000 :: busy :: other_processes
quota of a child :: ./quota.sh ./threads 2 300000000 :: :: throttled
SCHED_IDLE beside busy CPUs :: chrt -i 0 taskset -c 0,1 ./threads 2 20000000 :: busy :: scheduling_class
SCHED_DEADLINE, 20 of 100 ms :: chrt -d -T 20000000 -D 100000000 -P 100000000 0 ./threads 0 600000000 :: :: scheduling_class
SCHED_FIFO beside busy CPUs :: taskset -c 0 chrt -f 10 ./threads 0 4000000000 :: busy :: scheduling_class";

fn list_programs() -> Vec<Program> {
    let cells = |row: &'static str| row.split("::").map(str::trim).collect::<Vec<_>>();
    let natural = NATURAL.lines().map(cells).map(|cells| Program {
        name: cells[0],
        needed: cells[1],
        line: cells[2],
        user: USER,
        beside: &[],
        causes: Vec::new(),
    });
    let planted = PLANTED.lines().map(cells).map(|cells| Program {
        name: cells[0],
        needed: "cc",
        line: cells[1],
        user: "root",
        beside: if cells[2].is_empty() { &[] } else { BUSY_CPUS },
        causes: cells[3].split(' ').collect(),
    });
    natural.chain(planted).collect()
}

/// Debian packages whose names differ from the program's.
const PACKAGES: [(&str, &str); 10] = [
    ("mpirun", "openmpi-bin"),
    ("perf", "linux-perf"),
    ("xz", "xz-utils"),
    ("ab", "apache2-utils"),
    ("hackbench", "rt-tests"),
    ("java", "default-jdk-headless"),
    ("go", "golang-go"),
    ("cc", "gcc"),
    ("postgres", "postgresql"),
    ("pgbench", "postgresql-contrib"),
];

/// A figure of the kernel and the ratio of the trace's to it, per round.
#[derive(Debug, Clone, Default)]
struct Figure {
    kernel: Vec<f64>,
    ratio: Vec<f64>,
    is_at_least: bool,
    is_at_most: bool,
    /// Smaller figures are not judged.
    least: f64,
    /// Smaller differences are not judged.
    slack: f64,
}

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let folder = prepare_programs()?;
    let mut table = Table::new(
        "trace-figures",
        "program | tier | CPU time | queued | switches | threads | cause",
    );
    let (mut beyond, mut wrong) = (0, 0);
    let programs = list_programs();
    for program in &programs {
        for needed in program.needed.split(' ') {
            find_or_install(needed, package_of(needed))?;
        }
        for tier in TIERS {
            let (figures, causes) = measure_run(setting, &folder, tier, program)?;
            let cells: Vec<String> = figures
                .iter()
                .map(|f| format_figure(f, &mut beyond))
                .collect();
            let cause = format_cause(&causes, program, &mut wrong);
            let cells = cells.join(" | ");
            table.add_row(format!("{} | {tier} | {cells} | {cause}", program.name));
        }
    }
    std::fs::remove_dir_all(&folder)?;
    table.publish()?;
    println!(
        "\n{beyond} of {} figures are further than {} % away and not marked; {wrong} causes are \
         wrong.",
        programs.len() * TIERS.len() * 4,
        ALLOWED * 100.0,
    );
    Ok(())
}

/// The Debian package of a program.
pub(crate) fn package_of(program: &str) -> &str {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    known.map_or(program, |(_, package)| package)
}

/// Creates a folder of that user with all programs in it.
fn prepare_programs() -> Result<std::path::PathBuf> {
    // Another user could not enter a folder below `target`.
    let folder = std::env::temp_dir().join(format!("pinwise-figures-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    copy_programs("figures", &folder)?;
    std::fs::create_dir_all(folder.join("t"))?;
    let options = ["-O1", "-pthread"];
    compile(&folder, "figures/threads.c", "threads", &options)?;
    compile(&folder, "figures/exits.c", "exits", &["-O1"])?;
    let openmp = "../../tests/data/programs/openmp.c";
    compile(&folder, openmp, "openmp", &["-O1", "-fopenmp"])?;
    for shared in ["table.py", "redis.sh"] {
        let source = root().join("lab/programs/answers").join(shared);
        std::fs::copy(source, folder.join(shared))?;
    }
    for line in ["javac Pool.java", "go build -o pool pool.go"] {
        let mut words = line.split(' ');
        let program = words.next().context("a command")?;
        find_or_install(program, package_of(program))?;
        let output = Command::new(program)
            .args(words)
            .current_dir(&folder)
            .status()?;
        ensure!(output.success(), "{line} failed");
    }
    std::fs::copy(std::env::current_exe()?, folder.join("lab"))?;
    let owner = format!("{USER}:");
    let owned = Command::new("chown")
        .arg("-R")
        .arg(owner)
        .arg(&folder)
        .status()?;
    ensure!(owned.success(), "the folder cannot be given to {USER}");
    Ok(folder)
}

/// CPU time, time queued, switches and threads; and the time queued by cause, s, over all rounds.
fn measure_run(
    setting: &Setting,
    folder: &Path,
    tier: &str,
    program: &Program,
) -> Result<([Figure; 4], BTreeMap<String, f64>)> {
    let mut figures: [Figure; 4] = Default::default();
    let mut causes = BTreeMap::new();
    let start = |line: &&str| {
        let mut command = Command::new("sh");
        Group::start(command.args(["-c", line]).current_dir(folder))
    };
    let _beside = program
        .beside
        .iter()
        .map(start)
        .collect::<Result<Vec<_>>>()?;
    for _ in 0..ROUNDS {
        let output = Command::new("python3")
            .arg(folder.join("figures.py"))
            .arg(&setting.pinwise)
            .arg(folder.join("lab"))
            .arg(folder.join("exits"))
            .args([program.user, tier, "sh", "-c", program.line])
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(
            output.status.success(),
            "{tier}: {} could not be traced",
            program.name
        );
        let report: Value = serde_json::from_slice(&output.stdout)?;
        let at_least = report["at_least"].to_string();
        let at_most = report["at_most"].to_string();
        let keys = [
            ("cpu_s", "cpu_time", MIN_SECONDS, CLOCKS_S),
            ("wait_s", "queued", MIN_SECONDS, CLOCKS_S),
            ("switches", "switches", MIN_SWITCHES, 0.0),
            ("threads", "threads", 0.0, 0.0),
        ];
        let ends = report["trace"]["threads"].as_f64().unwrap_or(0.0);
        for (figure, (key, bound, least, slack)) in figures.iter_mut().zip(keys) {
            let kernel = report["kernel"][key].as_f64().unwrap_or(f64::NAN);
            let mut trace = report["trace"][key].as_f64().unwrap_or(f64::NAN);
            if key == "switches" && ends > ALLOWED * trace {
                trace = f64::NAN;
            }
            figure.kernel.push(kernel);
            figure.ratio.push(trace / kernel);
            (figure.least, figure.slack) = (least, slack);
            figure.is_at_least |= at_least.contains(bound);
            figure.is_at_most |= at_most.contains(bound);
        }
        for (cause, seconds) in report["causes"].as_object().into_iter().flatten() {
            let name = cause.trim_end_matches("_s").to_owned();
            *causes.entry(name).or_insert(0.0) += seconds.as_f64().unwrap_or(0.0);
        }
    }
    Ok((figures, causes))
}

/// The cause of most of the time queued. It is wrong if another was planted, or if none was and a
/// cause of [`PLANTED_ONLY`] has more than the tolerated share.
fn format_cause(causes: &BTreeMap<String, f64>, program: &Program, wrong: &mut usize) -> String {
    let total: f64 = causes.values().sum();
    let longest = causes.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((name, seconds)) = longest.filter(|_| total >= MIN_SECONDS) else {
        return "–".to_owned();
    };
    let seconds_of = |name: &str| causes.get(name).copied().unwrap_or(0.0);
    let is_wrong = match &program.causes[..] {
        [] => {
            { PLANTED_ONLY.iter() }
                .map(|name| seconds_of(name))
                .sum::<f64>()
                > ALLOWED * total
        }
        planted => !planted.contains(&name.as_str()),
    };
    let text = format!("{name} {:.0} %", 100.0 * seconds / total);
    if !is_wrong {
        return text;
    }
    *wrong += 1;
    format!("**{text}**")
}

fn format_figure(figure: &Figure, beyond: &mut usize) -> String {
    let kernel = median(&figure.kernel);
    let ratio = median(&figure.ratio);
    if !ratio.is_finite() || kernel < figure.least {
        return "–".to_owned();
    }
    // The truth may be this far below and above the printed value.
    let (mark, below, above) = match (figure.is_at_least, figure.is_at_most) {
        (false, false) => ("", ALLOWED, ALLOWED),
        (true, false) => ("≥ ", ALLOWED, f64::INFINITY),
        (false, true) => ("≤ ", f64::INFINITY, ALLOWED),
        (true, true) => ("≈ ", f64::INFINITY, f64::INFINITY),
    };
    let text = format!("{mark}{ratio:.3}");
    let is_close = (ratio - 1.0).abs() * kernel <= figure.slack;
    if is_close || (-above..=below).contains(&(ratio - 1.0)) {
        return text;
    }
    *beyond += 1;
    format!("**{text}**")
}
