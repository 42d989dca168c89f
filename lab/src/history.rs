//! The time of lists of a store of 100,000 records.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::Setting;
use crate::process::{measure, read_record};
use crate::rounds::{format_quartiles, median, take_turns};
use crate::table::Table;
use xtask::programs::read_output;

const RECORDS: u64 = 100_000;
const ROUNDS: usize = 9;

/// One record in this many has the runs of a whole comparison, 20 KB; the others have its plan and
/// arms only.
const LARGE: u64 = 5;

/// The name and the options of each list.
const LISTS: [(&str, &[&str]); 6] = [
    ("`pinwise record history`", &["record", "history"]),
    (
        "`record history --limit 200`",
        &["record", "history", "--limit", "200"],
    ),
    (
        "`record history --host node-7 --tag nightly`",
        &["record", "history", "--host", "node-7", "--tag", "nightly"],
    ),
    (
        "`record history --text 'prog-3 node-11'`",
        &["record", "history", "--text", "prog-3 node-11"],
    ),
    (
        "`record history --limit 100000 --format json`",
        &["record", "history", "--limit", "100000", "--format", "json"],
    ),
    ("`record show last`", &["record", "show", "last"]),
];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let path = setting.folder.path().join("history.db");
    fill_store(setting, &path)?;
    let store = format!("sqlite:{}", path.display());
    let bytes = std::fs::metadata(&path)?.len();
    println!("\nA store of {:.0} MB:", bytes as f64 / 1e6);
    // The first round fills the system's cache.
    let taken = take_turns(1 + ROUNDS, LISTS.len() + 1, |index| {
        let mut command = match LISTS.get(index) {
            Some((_, options)) => {
                let mut command = Command::new(&setting.pinwise);
                command.args(["--store", &store]).args(*options);
                command
            }
            None => scan_with_sqlite(&path),
        };
        Ok(1e3 * measure(&mut command)?.wall.as_secs_f64())
    })?;
    let scanned = median(&taken[LISTS.len()][1..]);
    let names = LISTS.iter().map(|(name, _)| *name);
    let names = names.chain(["`sqlite3`: every body read, its host taken out of it"]);
    let mut table = Table::new("history", "what | ms | over the scan");
    for (name, times) in names.zip(&taken) {
        let times = &times[1..];
        let over = median(times) / scanned;
        table.add_row(format!(
            "{name} | {} | {over:.3}",
            format_quartiles(times, 0)
        ));
    }
    table.publish()
}

fn scan_with_sqlite(path: &Path) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-c", "import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute('SELECT json_extract(body, \"$.host.hostname\"), count(*) FROM record GROUP BY 1')
print(len(rows.fetchall()))"])
        .arg(path);
    command
}

/// Has pinwise create the store with one record, and inserts variations of it in one transaction: as
/// many comparisons would take days.
fn fill_store(setting: &Setting, path: &Path) -> Result<()> {
    let store = format!("sqlite:{}", path.display());
    let mut first = Command::new(&setting.pinwise);
    first
        .args(["--machine", "sim:core:2 pu:1", "--store", &store])
        .args(["--format", "json", "compare", "--place", "os-default"])
        .args(["--place", "cpu:0", "--max-runs", "16", "--seed", "1"])
        .args(["--precision", "0.0001%", "--", "prog"]);
    // A real record of about 20 KB.
    let sample: Value = read_record(&mut first)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let rows = setting.folder.path().join("rows.jsonl");
    let mut text = String::new();
    for number in 0..RECORDS {
        text.push_str(&vary_record(&sample, number, &mut random)?.to_string());
        text.push('\n');
    }
    std::fs::write(&rows, text)?;
    let mut command = Command::new("python3");
    command.args(["-c", LOAD]).arg(path).arg(&rows);
    read_output(&mut command)?;
    std::fs::remove_file(rows)?;
    let mut list = Command::new(&setting.pinwise);
    list.args(["--store", &store])
        .args(["record", "history", "--limit", "1", "--format", "json"]);
    let listed: Value = read_record(&mut list)?;
    if listed["total"] != RECORDS {
        bail!("the store has {} records, not {RECORDS}", listed["total"]);
    }
    Ok(())
}

/// Replaces the records of a store and their lines of the history, in the form that pinwise writes.
const LOAD: &str = "import sqlite3, sys, json
store = sqlite3.connect(sys.argv[1])
store.execute('PRAGMA foreign_keys = ON')
outline = json.loads(store.execute('SELECT body FROM outline').fetchone()[0])
with store, open(sys.argv[2]) as rows:
    store.execute('DELETE FROM record')
    for number, line in enumerate(rows):
        r = json.loads(line)
        title = ' '.join(r['arms'][0]['command'])
        entry = (r['id'], r['schema'], r['started'], r['host']['hostname'], title,
            r['verdict']['sentence'])
        outline.update(tags=r['tags'], subject=title)
        words = '\\n'.join([r['id'], title, entry[3], entry[5]] + r['tags']).lower()
        store.execute('INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, 1, ?)', entry + (line.strip(),))
        store.execute('INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)',
            (number, *entry, title, words))
        store.execute('INSERT INTO outline VALUES (?, ?)', (number, json.dumps(outline)))
        store.executemany('INSERT INTO tag VALUES (?, ?)', [(tag, number) for tag in r['tags']])
";

fn vary_record(sample: &Value, number: u64, random: &mut ChaCha8Rng) -> Result<Value> {
    let mut record = sample.clone();
    let (day, second) = (number / 500, number % 500 * 170);
    record["id"] = json!(format!(
        "{number:08}-{:06x}-{:08x}",
        second,
        random.random::<u32>()
    ));
    record["started"] = json!(format!(
        "{}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        2025 + day / 336,
        1 + day % 336 / 28,
        1 + day % 28,
        second / 3600,
        second / 60 % 60,
        second % 60
    ));
    record["host"]["hostname"] = json!(format!("node-{}", random.random_range(0..40)));
    record["host"]["simulated"] = json!(false);
    record["tags"] = match number % 3 {
        0 => json!(["nightly"]),
        1 => json!([]),
        _ => json!(["nightly", format!("release-{}", number / 10_000)]),
    };
    let command = json!([format!("prog-{}", random.random_range(0..50)), "--fast"]);
    let arms = record["arms"]
        .as_array_mut()
        .context("a comparison has arms")?;
    for arm in arms {
        arm["command"] = command.clone();
        if !number.is_multiple_of(LARGE) {
            arm["runs"] = json!([]);
            arm["other_runs"] = json!([]);
        }
    }
    Ok(record)
}
