//! The answers of `pinwise compare` about ten real programs with its own placements: three times
//! alone and three times beside a busy process.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Setting;
use crate::process::{Group, copy_programs};
use crate::table::Table;
use xtask::programs::step;

/// Time budget of each comparison.
const BUDGET: Duration = Duration::from_secs(20);
/// Comparisons of a program under each load.
const TIMES: usize = 3;
/// Busy processes beside a comparison: none, then one.
const LOADS: [usize; 2] = [0, 1];

/// Programs: a name, and a line for `sh` in a folder that `setup.sh` has filled.
const PROGRAMS: [(&str, &str); 10] = [
    (
        "xz, two threads",
        "xz -1 -T2 --block-size=1MiB -c xz.in > /dev/null",
    ),
    ("bzip2", "bzip2 -c bzip2.in > /dev/null"),
    ("tar through gzip", "tar -cf - tar | gzip -c > /dev/null"),
    (
        "sort, two threads",
        "LC_ALL=C sort -n --parallel=2 sort.in > /dev/null",
    ),
    ("Python, two processes", "python3 pool.py"),
    ("a compile, make -j2", "make -s -j2 -C make"),
    ("Go, two goroutines", "./pair"),
    ("Java, parallel stream", "java -Xshare:auto -cp . Sum"),
    ("SQLite, one thread", "python3 table.py"),
    ("Redis and its benchmark", "./redis.sh"),
];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let mut table = Table::new(
        "answers",
        "program | alone | beside a busy process | longest, of the budget | contradicted",
    );
    let mut all_answers = Vec::new();
    copy_programs("answers", setting.folder.path())?;
    step(Command::new("./setup.sh").current_dir(setting.folder.path()))?;
    for (name, line) in PROGRAMS {
        let answers = run_comparisons(setting, name, line)?;
        table.add_row(format!("{name} | {}", format_cells(&answers).join(" | ")));
        all_answers.push(answers);
    }
    table.publish()?;
    let answers = || all_answers.iter().flatten();
    let contradicted = all_answers
        .iter()
        .filter(|answers| are_contradictory(answers));
    let recommended = answers().filter(|answer| answer.recommends.is_some());
    println!(
        "\nOf {} answers {} recommend a command, of {} programs {} contradict one; the longest \
         comparison took {} of its budget.",
        answers().count(),
        recommended.count(),
        all_answers.len(),
        contradicted.count(),
        longest_share(answers()),
    );
    Ok(())
}

/// The answer of one comparison.
struct Answer {
    /// Busy processes beside it.
    load: usize,
    taken: Duration,
    recommends: Option<String>,
    /// Arms that are called slower.
    slower: Vec<String>,
    /// The sentence on the first arm.
    text: String,
}

fn run_comparisons(setting: &Setting, name: &str, line: &str) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    for load in LOADS {
        for _ in 0..TIMES {
            let others = Group::start_busy(load)?;
            let answer = run_comparison(setting, line, load);
            answers.push(answer.with_context(|| name.to_owned())?);
            drop(others);
        }
    }
    Ok(answers)
}

fn run_comparison(setting: &Setting, line: &str, load: usize) -> Result<Answer> {
    let started = Instant::now();
    let output = Command::new(&setting.pinwise)
        .args(["compare", "--store", "none", "--format", "json", "--budget"])
        .arg(format!("{}s", BUDGET.as_secs()))
        .args(["--", "sh", "-c", line])
        .current_dir(setting.folder.path())
        .stderr(Stdio::piped())
        .output()?;
    let elapsed = started.elapsed();
    let record: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("pinwise compare printed no record: {errors}")
    })?;
    Answer::from_record(&record, load, elapsed)
        .context("the record lacks an expected field (has its schema changed?)")
}

impl Answer {
    fn from_record(record: &Value, load: usize, taken: Duration) -> Option<Self> {
        let commands = record["verdict"]["commands"].as_array()?;
        let best = record["best"].as_str().map(str::to_owned);
        let recommends = best.filter(|_| !commands.is_empty());
        let contrasts = record["contrasts"].as_array()?;
        let text = |contrast: &Value, name: &str| contrast[name].as_str().map(str::to_owned);
        let slower = contrasts.iter().filter(|c| c["verdict"] == "slower");
        let slower = slower.filter_map(|c| text(c, "arm")).collect();
        let sentence = match contrasts.first() {
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
            text: sentence,
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
fn longest_share<'a>(answers: impl Iterator<Item = &'a Answer>) -> String {
    let longest = answers.map(|answer| answer.taken).max();
    let share = longest.unwrap_or_default().div_duration_f64(BUDGET);
    format!("{:.0} %", 100.0 * share)
}

fn format_cells(answers: &[Answer]) -> [String; 4] {
    let list = |load: usize| {
        let answers = answers.iter().filter(|answer| answer.load == load);
        answers
            .map(|answer| answer.text.as_str())
            .collect::<Vec<&str>>()
            .join("<br>")
    };
    let contradicted = if are_contradictory(answers) {
        "yes"
    } else {
        "no"
    };
    [
        list(LOADS[0]),
        list(LOADS[1]),
        longest_share(answers.iter()),
        contradicted.to_owned(),
    ]
}
