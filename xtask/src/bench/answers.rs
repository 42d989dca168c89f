//! What `pinwise compare` answers about ten real programs with its own
//! placements: three times alone and three times beside a busy process.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Setting;
use super::process::{BUSY, Group};

/// Of each comparison.
const BUDGET: Duration = Duration::from_secs(20);
/// Comparisons of a program under each load.
const TIMES: usize = 3;
/// How many busy processes run beside the comparisons: those alone, those not.
const LOADS: [usize; 2] = [0, 1];

/// A program: its name, what makes its files, and what runs it; both for `sh`.
struct Program {
    name: &'static str,
    setup: &'static str,
    line: &'static str,
}

const PROGRAMS: [Program; 10] = [
    Program {
        name: "xz, two threads",
        setup: "head -c 6000000 /usr/bin/perf > xz.in || head -c 6000000 /dev/urandom > xz.in",
        line: "xz -1 -T2 --block-size=1MiB -c xz.in > /dev/null",
    },
    Program {
        name: "bzip2",
        setup: "head -c 2000000 xz.in > bzip2.in",
        line: "bzip2 -c bzip2.in > /dev/null",
    },
    Program {
        name: "tar through gzip",
        setup: "mkdir -p tar && for i in $(seq 40); do head -c 150000 xz.in > tar/$i; done",
        line: "tar -cf - tar | gzip -c > /dev/null",
    },
    Program {
        name: "sort, two threads",
        setup: "seq 400000 | awk '{ print ($1 * 7919) % 1000003 }' > sort.in",
        line: "LC_ALL=C sort -n --parallel=2 sort.in > /dev/null",
    },
    Program {
        name: "Python, two processes",
        setup: "cat > pool.py <<'END'
from multiprocessing import Pool
def work(n):
    return sum(i * i for i in range(n))
if __name__ == '__main__':
    with Pool(2) as pool:
        pool.map(work, [200_000] * 8)
END",
        line: "python3 pool.py",
    },
    Program {
        name: "a compile, make -j2",
        setup: "mkdir -p make && cd make && for i in 1 2 3 4; do
for k in $(seq 120); do echo \"int f${i}_$k(int x) { for (int i = 0; i < x; i++) x += i * $k; return x; }\"; done > $i.c; done
printf 'all: 1.o 2.o 3.o 4.o\\n%%.o: %%.c again\\n\\tcc -O1 -c $< -o $@\\nagain:\\n' > Makefile",
        line: "make -s -j2 -C make",
    },
    Program {
        name: "Go, two goroutines",
        setup: "cat > pair.go <<'END'
package main
import \"sync\"
func main() {
	var group sync.WaitGroup
	for k := 0; k < 2; k++ {
		group.Add(1)
		go func() {
			defer group.Done()
			table := make(map[int]int)
			for i := 0; i < 600000; i++ { table[i*7919%50021] += i }
		}()
	}
	group.Wait()
}
END
go build -o pair pair.go",
        line: "./pair",
    },
    Program {
        name: "Java, parallel stream",
        setup: "cat > Sum.java <<'END'
public class Sum {
    public static void main(String[] a) {
        System.out.println(java.util.stream.LongStream.range(0, 30_000_000).parallel().map(i -> i * i % 7).sum());
    }
}
END
javac Sum.java",
        line: "java -Xshare:auto -cp . Sum",
    },
    Program {
        name: "SQLite, one thread",
        setup: "cat > table.py <<'END'
import sqlite3
base = sqlite3.connect(':memory:')
base.execute('create table t (a integer, b text)')
base.executemany('insert into t values (?, ?)', ((i * 7919 % 100003, str(i)) for i in range(150000)))
base.execute('create index i on t (a)')
print(base.execute('select count(*), sum(length(b)) from t where a between 1000 and 50000').fetchone())
END",
        line: "python3 table.py",
    },
    Program {
        name: "Redis and its benchmark",
        setup: "redis-server --version",
        line: "redis-server --port 0 --unixsocket \"$PWD/r.sock\" --save '' --daemonize no > /dev/null & server=$!
until [ -S r.sock ]; do sleep 0.01; done
redis-benchmark -q -s \"$PWD/r.sock\" -n 6000 -c 4 -t set,get > /dev/null
kill $server; wait $server; rm -f r.sock",
    },
];

pub(super) fn run(setting: &Setting) -> Result<String> {
    let mut rows = String::new();
    let mut all = Vec::new();
    for program in &PROGRAMS {
        sh(program.setup, setting.folder.path())
            .with_context(|| format!("setting up {}", program.name))?;
        let answers = program.answers(setting)?;
        let row = format!("| {} | {} |", program.name, cells(&answers).join(" | "));
        eprintln!("xtask: {row}");
        let _ = writeln!(rows, "{row}");
        all.push(answers);
    }
    Ok(section(&rows, &all))
}

fn section(rows: &str, all: &[Vec<Answer>]) -> String {
    let answers = || all.iter().flatten();
    let contradicted = all.iter().filter(|answers| are_contradictory(answers));
    let recommended = answers().filter(|answer| answer.recommends.is_some());
    format!(
        "## Answers on real programs

`pinwise compare --budget {budget} -- PROGRAM` with its own placements (on two CPUs the
default and one-core), {TIMES} times alone and {TIMES} times beside a process that keeps a CPU
busy. Each answer: what is said of the first one-core placement, the estimate, and the
interval; *use* where a command was recommended. *Contradicted*: an answer recommends what
another of the same program, under whichever load, calls slower.

| program | alone | beside a busy process | longest, of the budget | contradicted |
|---|---|---|---|---|
{rows}
Of {} answers {} recommend a command, of {} programs {} contradict one; the longest
comparison took {} of its budget.
",
        answers().count(),
        recommended.count(),
        all.len(),
        contradicted.count(),
        longest(answers()),
        budget = format_args!("{}s", BUDGET.as_secs()),
    )
}

/// What one comparison said.
struct Answer {
    /// Busy processes beside it.
    load: usize,
    taken: Duration,
    recommends: Option<String>,
    /// Arms that are called slower.
    slower: Vec<String>,
    /// What is said of the first arm.
    text: String,
}

impl Program {
    fn answers(&self, setting: &Setting) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for load in LOADS {
            for _ in 0..TIMES {
                let start = |_| Group::start(Command::new("sh").args(["-c", BUSY]));
                let others: Vec<Group> = (0..load).map(start).collect::<Result<_>>()?;
                answers.push(self.answer(load, setting)?);
                drop(others);
            }
        }
        Ok(answers)
    }

    fn answer(&self, load: usize, setting: &Setting) -> Result<Answer> {
        let started = Instant::now();
        let output = Command::new(&setting.pinwise)
            .args(["compare", "--store", "none", "--format", "json", "--budget"])
            .arg(format!("{}s", BUDGET.as_secs()))
            .args(["--", "sh", "-c", self.line])
            .current_dir(setting.folder.path())
            .stderr(Stdio::piped())
            .output()?;
        let taken = started.elapsed();
        let record: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            format!("pinwise compare of {} said {said}", self.name)
        })?;
        Answer::of(&record, load, taken).with_context(|| format!("the record of {}", self.name))
    }
}

impl Answer {
    fn of(record: &Value, load: usize, taken: Duration) -> Option<Self> {
        let commands = record["verdict"]["commands"].as_array()?;
        let best = record["best"].as_str().map(str::to_owned);
        let recommends = best.filter(|_| !commands.is_empty());
        let contrasts = record["contrasts"].as_array()?;
        let text = |contrast: &Value, name: &str| contrast[name].as_str().map(str::to_owned);
        let slower = contrasts.iter().filter(|c| c["verdict"] == "slower");
        let slower = slower.filter_map(|c| text(c, "arm")).collect();
        let said = match contrasts.first() {
            None => text(&record["verdict"], "sentence")?,
            Some(contrast) => {
                let effect = &contrast["effect"];
                let used = match recommends == text(contrast, "arm") {
                    true => ", use",
                    false => "",
                };
                let interval = text(effect, "interval").filter(|text| !text.is_empty());
                let interval = interval.unwrap_or_else(|| "too few runs".to_owned());
                let (verdict, change) = (text(contrast, "verdict")?, text(effect, "text")?);
                format!("{verdict} {change} ({interval}){used}")
            }
        };
        Some(Self {
            load,
            taken,
            recommends,
            slower,
            text: said,
        })
    }
}

fn are_contradictory(answers: &[Answer]) -> bool {
    let mut recommended = answers
        .iter()
        .filter_map(|answer| answer.recommends.as_ref());
    recommended.any(|arm| answers.iter().any(|answer| answer.slower.contains(arm)))
}

/// The share of its budget that the longest comparison took.
fn longest<'a>(answers: impl Iterator<Item = &'a Answer>) -> String {
    let longest = answers.map(|answer| answer.taken).max();
    let share = longest.unwrap_or_default().div_duration_f64(BUDGET);
    format!("{:.0} %", 100.0 * share)
}

fn cells(answers: &[Answer]) -> [String; 4] {
    let of = |load: usize| {
        let said = answers.iter().filter(|answer| answer.load == load);
        said.map(|answer| answer.text.as_str())
            .collect::<Vec<&str>>()
            .join("<br>")
    };
    let contradicted = if are_contradictory(answers) {
        "yes"
    } else {
        "no"
    };
    [
        of(LOADS[0]),
        of(LOADS[1]),
        longest(answers.iter()),
        contradicted.to_owned(),
    ]
}

fn sh(script: &str, folder: &Path) -> Result<()> {
    let status = Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        bail!("{script} ended with {status}");
    }
    Ok(())
}
