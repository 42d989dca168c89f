//! Figures of traces of twelve programs beside what the kernel says of them,
//! over all tiers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Setting;
use super::process::median;
use crate::programs::find_or_install;

const TIERS: [&str; 5] = ["proc", "switch", "cpu-wide", "tracepoint", "bpf"];
const ROUNDS: usize = 3;
/// A user of every Debian whom nothing runs as.
const USER: &str = "games";
/// Figures may differ by this much, or are marked as bounds.
const ALLOWED: f64 = 0.03;
/// What is less is not judged, s and switches: two clocks cannot agree on it.
const LEAST_S: f64 = 0.05;
const LEAST_SWITCHES: f64 = 100.0;

/// Programs: a name, what it needs, and its command line in a folder of its own.
const PROGRAMS: [(&str, &str, &str); 12] = [
    ("hackbench", "hackbench", "hackbench -g 4 -l 400"),
    ("Java", "java", "java -cp . Pool"),
    ("Go", "go", "./pool"),
    ("Python pool", "python3", "python3 pool.py"),
    ("make -j2", "make", "make -s clean && make -s -j2"),
    (
        "fork storm",
        "sh",
        "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done",
    ),
    (
        "stress-ng cpu",
        "stress-ng",
        "stress-ng --cpu 4 -t 2 --temp-path .",
    ),
    (
        "stress-ng switch",
        "stress-ng",
        "stress-ng --switch 2 -t 1 --temp-path .",
    ),
    ("500 threads", "cc", "./threads 500"),
    ("2,000 threads", "cc", "./threads 2000"),
    ("PostgreSQL", "postgres pgbench", "./postgres.sh"),
    ("nginx", "nginx ab", "./nginx.sh"),
];

/// Debian's packages, where it is not called like the program.
const PACKAGES: [(&str, &str); 7] = [
    ("ab", "apache2-utils"),
    ("hackbench", "rt-tests"),
    ("java", "default-jdk-headless"),
    ("go", "golang-go"),
    ("cc", "gcc"),
    ("postgres", "postgresql"),
    ("pgbench", "postgresql-contrib"),
];

const FILES: [(&str, &str); 7] = [
    (
        "Pool.java",
        "import java.util.stream.*;
public class Pool {
  public static void main(String[] a) {
    double s = IntStream.range(0, 400).parallel().mapToDouble(i -> {
      double x = i; for (int k = 0; k < 1_000_000; k++) x = Math.sqrt(x * x + k); return x; }).sum();
    System.out.println(s);
  }
}
",
    ),
    (
        "pool.go",
        "package main
import (\"fmt\"; \"sync\")
func main() {
  var w sync.WaitGroup
  c := make(chan int)
  for g := 0; g < 8; g++ {
    w.Add(1)
    go func() { defer w.Done(); s := 0; for i := range c { for k := 0; k < 3000; k++ { s += i ^ k } }; fmt.Println(s) }()
  }
  for i := 0; i < 200000; i++ { c <- i }
  close(c)
  w.Wait()
}
",
    ),
    (
        "pool.py",
        "from multiprocessing import Pool
def work(n):
    return sum(i * i for i in range(n))
if __name__ == '__main__':
    with Pool(4) as pool:
        print(sum(pool.map(work, [20000] * 400)))
",
    ),
    (
        "Makefile",
        "OBJECTS = $(foreach n,1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20,o$(n).o)
all: $(OBJECTS)
o%.o: unit.c
\t$(CC) -O2 -c -o $@ unit.c
clean:
\trm -f $(OBJECTS)
",
    ),
    (
        "unit.c",
        "#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
int f(int x) { return printf(\"%f\", sqrt(x)); }
",
    ),
    (
        "threads.c",
        "#include <pthread.h>
#include <stdlib.h>
static void *work(void *n) { volatile long x = 0; for (long i = 0; i < 2000000; i++) x += i; return n; }
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  pthread_t all[2000];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < n; i++) pthread_create(&all[i], &small, work, 0);
  for (int i = 0; i < n; i++) pthread_join(all[i], 0);
}
",
    ),
    (
        "postgres.sh",
        "#!/bin/sh
set -e
rm -rf data
initdb -D data -A trust >/dev/null
postgres -D data -k $PWD -c listen_addresses= -c autovacuum=off >/dev/null 2>&1 &
server=$!
until pgbench -h $PWD -i -q postgres >/dev/null 2>&1; do sleep 0.1; done
pgbench -h $PWD -c 4 -t 1000 -n postgres >/dev/null 2>&1
kill -INT $server
wait $server || true
",
    ),
];

const NGINX: &str = "#!/bin/sh
cat >nginx.conf <<END
pid nginx.pid;
error_log stderr;
worker_processes 2;
events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
  server { listen 127.0.0.1:18089; location / { return 200 hello; } } }
END
nginx -p . -c nginx.conf -g 'daemon off;' 2>/dev/null &
server=$!
until ab -q -n 1 http://127.0.0.1:18089/ >/dev/null 2>&1; do sleep 0.1; done
ab -q -n 20000 -c 8 http://127.0.0.1:18089/ >/dev/null
kill $server
wait $server || true
";

/// What two of them say of one figure.
#[derive(Debug, Clone, Default)]
struct Figure {
    kernel: Vec<f64>,
    ratio: Vec<f64>,
    is_at_least: bool,
    is_at_most: bool,
    /// Less than this is not judged.
    least: f64,
}

pub(super) fn run(setting: &Setting) -> Result<String> {
    let folder = prepared()?;
    let script = folder.join("figures.py");
    std::fs::write(&script, include_str!("figures.py"))?;
    let mut rows = String::new();
    let mut beyond = 0;
    for (name, needed, line) in PROGRAMS {
        for needed in needed.split(' ') {
            find_or_install(needed, package(needed))?;
        }
        for tier in TIERS {
            let figures = measured(setting, &folder, &script, tier, line)?;
            let cells: Vec<String> = figures.iter().map(|f| cell(f, &mut beyond)).collect();
            rows += &format!("| {name} | {tier} | {} |\n", cells.join(" | "));
        }
        eprintln!("xtask: {name}: done");
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(format!(
        "## Figures of traces

Twelve programs under each tier. The trace's figures stand as ratios to the
kernel's, the median of {ROUNDS} runs each: CPU time and switches to getrusage of
the program's parent, queued time and threads to the `schedstat` of each thread once
it has ended, which a tracer (ptrace, in every run) keeps there until it is read.
≥, ≤, ≈: the trace says itself that it is a lower bound, an upper one, or both.
–: less than {LEAST_S} s or {LEAST_SWITCHES} switches, or ends of threads, which
getrusage does not count, make more than 3 % of them. **Bold**: further than {} %
away and not marked ({beyond} of {} cells).

| program | tier | CPU time | queued | switches | threads |
|:---|:---|---:|---:|---:|---:|
{rows}",
        ALLOWED * 100.0,
        rows.lines().count() * 4,
    ))
}

fn package(program: &str) -> &str {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    known.map_or(program, |(_, package)| package)
}

/// A folder of that user with all programs in it.
fn prepared() -> Result<std::path::PathBuf> {
    // Below `target` it could not be entered by another user.
    let folder = std::env::temp_dir().join(format!("pinwise-figures-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let others = [("nginx.sh", NGINX), ("exits.c", include_str!("exits.c"))];
    for (name, text) in FILES.into_iter().chain(others) {
        std::fs::write(folder.join(name), text)?;
    }
    for name in ["postgres.sh", "nginx.sh"] {
        std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755))?;
    }
    std::fs::create_dir_all(folder.join("t"))?;
    for line in [
        "cc -O1 -pthread -o threads threads.c",
        "cc -O1 -o exits exits.c",
        "javac Pool.java",
        "go build -o pool pool.go",
    ] {
        let mut words = line.split(' ');
        let program = words.next().context("a command")?;
        find_or_install(program, package(program))?;
        let made = Command::new(program)
            .args(words)
            .current_dir(&folder)
            .status()?;
        ensure!(made.success(), "{line} failed");
    }
    std::fs::copy(std::env::current_exe()?, folder.join("xtask"))?;
    let owner = format!("{USER}:");
    let owned = Command::new("chown")
        .arg("-R")
        .arg(owner)
        .arg(&folder)
        .status()?;
    ensure!(owned.success(), "the folder cannot be given to {USER}");
    Ok(folder)
}

/// CPU time, queued, switches, threads.
fn measured(
    setting: &Setting,
    folder: &Path,
    script: &Path,
    tier: &str,
    line: &str,
) -> Result<[Figure; 4]> {
    let mut figures: [Figure; 4] = Default::default();
    for _ in 0..ROUNDS {
        let output = Command::new("python3")
            .arg(script)
            .arg(&setting.pinwise)
            .arg(folder.join("xtask"))
            .arg(folder.join("exits"))
            .args([USER, tier, "sh", "-c", line])
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(
            output.status.success(),
            "{tier}: {line} could not be traced"
        );
        let output_text: Value = serde_json::from_slice(&output.stdout)?;
        let at_least = output_text["at_least"].to_string();
        let at_most = output_text["at_most"].to_string();
        let keys = [
            ("cpu_s", "cpu_time", LEAST_S),
            ("wait_s", "queued", LEAST_S),
            ("switches", "switches", LEAST_SWITCHES),
            ("threads", "threads", 0.0),
        ];
        let ends = output_text["trace"]["threads"].as_f64().unwrap_or(0.0);
        for (figure, (key, bound, least)) in figures.iter_mut().zip(keys) {
            let kernel = output_text["kernel"][key].as_f64().unwrap_or(f64::NAN);
            let mut trace = output_text["trace"][key].as_f64().unwrap_or(f64::NAN);
            if key == "switches" && ends > ALLOWED * trace {
                trace = f64::NAN;
            }
            figure.kernel.push(kernel);
            figure.ratio.push(trace / kernel);
            figure.least = least;
            figure.is_at_least |= at_least.contains(bound);
            figure.is_at_most |= at_most.contains(bound);
        }
    }
    Ok(figures)
}

fn cell(figure: &Figure, beyond: &mut usize) -> String {
    let kernel = median(figure.kernel.clone());
    let ratio = median(figure.ratio.clone());
    if !ratio.is_finite() || kernel < figure.least {
        return "–".to_owned();
    }
    // The truth may lie this far below and above what is printed.
    let (mark, below, above) = match (figure.is_at_least, figure.is_at_most) {
        (false, false) => ("", ALLOWED, ALLOWED),
        (true, false) => ("≥ ", ALLOWED, f64::INFINITY),
        (false, true) => ("≤ ", f64::INFINITY, ALLOWED),
        (true, true) => ("≈ ", f64::INFINITY, f64::INFINITY),
    };
    let text = format!("{mark}{ratio:.3}");
    if (-above..=below).contains(&(ratio - 1.0)) {
        return text;
    }
    *beyond += 1;
    format!("**{text}**")
}
