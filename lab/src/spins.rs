//! Programs that wait and programs that work under `pinwise spin attach`: how many waits are found
//! or named by the output as not detectable, and how many that work are taken for waits.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Setting;
use crate::figures::package_of;
use crate::process::{copy_programs, read_record};
use crate::table::Table;
use xtask::programs::{find_or_install, root, step};

/// Minimum share of a waiting program's CPU time that must be found.
const MIN_FOUND_SHARE: f64 = 0.5;
/// Maximum share of a working program's CPU time that may be taken for waiting.
const MAX_FALSE_SHARE: f64 = 0.05;

/// Compiler and command line (`$T`: tests/data/programs, `$S`: lab/programs/spins).
const BUILDS: [(&str, &str); 11] = [
    ("cc", "cc -O2 -pthread -o waits $T/waits.c"),
    ("cc", "cc -O2 -pthread -o polls $T/polls.c"),
    ("cc", "cc -O2 -pthread -o work $T/work.c"),
    ("g++", "g++ -O2 -pthread -o waits-cpp $S/waits.cpp"),
    ("rustc", "rustc -O --edition 2021 -o waits-rust $S/waits.rs"),
    (
        "rustc",
        "rustc -O --edition 2021 -o try-recv $T/try_recv.rs",
    ),
    ("rustc", "rustc -O --edition 2021 -o mutex-rust $T/mutex.rs"),
    (
        "go",
        "for name in gosched mutex; do go build -o $name $T/$name.go; done",
    ),
    ("go", "go build -o waits-go $S/waits.go"),
    ("go", "go build -o pool pool.go"),
    ("java", "javac -d . $S/Waits.java $T/CasLock.java Pool.java"),
];

/// Ways to wait by language, as arguments of a command. Java waits for 3 s, so that its compiler
/// has run.
const WAITS: [(&str, &str, &str); 9] = [
    (
        "C",
        "./waits {} 0.4",
        "ttas tas cmpxchg backoff ticket ticket_pause mcs clh seqlock barrier peterson \
         volatile_flag status_bit progress pointers rw_lock until_time until_ticks count_up \
         count_down look_rarely count_attempts empty_polls table_polls try_locks epoll_empty \
         poll_empty receive_empty",
    ),
    ("C", "./polls {} 0.6", "yield"),
    (
        "C++",
        "./waits-cpp {} 0.6",
        "test_and_set yields exchange try_lock future deadline locked_look queues_in_turn naps \
         select_empty readable_bytes",
    ),
    (
        "Rust",
        "./waits-rust {} 0.6",
        "hint yield_now exchange try_lock try_read once deadline timeout",
    ),
    ("Rust", "./try-recv {} 0.6", "channel sync_channel flag"),
    (
        "Go",
        "./waits-go {} 0.6",
        "flag default exchange try_lock length deadline",
    ),
    (
        "Java",
        "java -cp . Waits {} 3",
        "flag hint yields exchange try_lock queue future deadline",
    ),
    ("Java", "java -cp . CasLock 3 {}", "cas ticket"),
    (
        "Python",
        "python3 $S/waits.py {} 0.6",
        "event try_lock queue receive select",
    ),
];

/// Programs that work, in the same form.
const WORK: [(&str, &str, &str); 8] = [
    (
        "C",
        "./work {} 0.4",
        "copy zero length compare chase ring_of_one lookup sorting search checksum parser \
         fibonacci collatz random_numbers timed statistics sequence bits polynomial greatest \
         first_of prime events datagrams",
    ),
    ("C", "./polls {} 0.6", "drain clock"),
    ("Rust", "./{} 0.6", "mutex-rust"),
    ("Rust", "./try-recv {} 0.6", "queue"),
    ("Go", "./{} 0.6", "mutex pool"),
    ("Java", "java -cp . {}", "Pool"),
    ("Python", "python3 {}.py", "pool table"),
    (
        "pinwise",
        "$PINWISE --store none --quiet bench kernel {} --work 20",
        "integer fibonacci napierian eratosthenes quicksort mean-sd whetstone fft mandelbrot pi \
         chase tree tiff-rotate90 tiff-rotate tiff-blur png-rotate90 png-rotate png-blur",
    ),
];

/// Common programs: the name, and a line for `sh`.
const TOOLS: [(&str, &str); 20] = [
    ("xz", "seq 400000 | xz -1"),
    ("bzip2", "seq 400000 | bzip2"),
    ("gzip", "seq 900000 | gzip -6"),
    ("sha256sum", "seq 9000000 | sha256sum"),
    ("cksum", "seq 9000000 | cksum"),
    ("sort", "seq 400000 | rev | sort -n"),
    (
        "awk",
        "awk 'BEGIN { for (i = 0; i < 4000000; i++) x += i % 7; print x }'",
    ),
    ("grep", "seq 4000000 | grep -c '7.*3$'"),
    ("sed", "seq 900000 | sed 's/\\(.\\)7/7\\1/g'"),
    ("tr", "seq 9000000 | tr 0-9 a-j | wc"),
    ("od", "seq 900000 | od -x"),
    ("tar", "tar -cf - /usr/include"),
    ("find", "find /usr -name '*.h' -newer /bin/sh"),
    (
        "perl",
        "perl -e '$s += $_ * $_ % 7 for 1..6000000; print $s'",
    ),
    ("openssl", "openssl speed -seconds 1 sha256"),
    ("make", "make -s clean && make -s"),
    ("sh", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"),
    ("stress-ng", "stress-ng --matrix 1 -t 1 --temp-path ."),
    ("redis-server", "./redis.sh"),
    ("nginx", "./nginx.sh"),
];

/// Waits that are known not to be detected, and the words of the output about them.
const UNSEEN: [(&str, &str); 13] = [
    ("C++ locked_look", "a lock for each look"),
    ("C++ queues_in_turn", "several queues"),
    ("C++ naps", "short sleeps"),
    ("C++ readable_bytes", "system calls that do not poll"),
    ("Rust timeout", "system calls that do not poll"),
    ("Java exchange", "a JVM's first compilers"),
    ("Java try_lock", "a JVM's first compilers"),
    ("Java cas", "a JVM's first compilers"),
    ("Python event", "interpreters"),
    ("Python try_lock", "interpreters"),
    ("Python queue", "interpreters"),
    ("Python receive", "interpreters"),
    ("Python select", "interpreters"),
];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let folder = setting.folder.path();
    for programs in ["answers", "figures"] {
        copy_programs(programs, folder)?;
    }
    std::fs::create_dir_all(folder.join("t"))?;
    for (needed, line) in BUILDS {
        find_or_install(needed, package_of(needed))?;
        step(&mut shell_command(setting, line))?;
    }
    publish_waits(setting)?;
    publish_work(setting)
}

fn publish_waits(setting: &Setting) -> Result<()> {
    let mut table = Table::new("spin-waits", "language | way | spins | seen as");
    let (mut found, mut said, mut all) = (0, 0, 0);
    for (language, line, ways) in WAITS {
        for way in ways.split_whitespace() {
            let seen = attach(setting, &line.replace("{}", way))?;
            let unseen = { UNSEEN.iter() }.find(|(name, _)| *name == format!("{language} {way}"));
            let is_said = unseen.is_some_and(|(_, words)| seen.text.contains(words));
            let kind = match (seen.share >= MIN_FOUND_SHARE, is_said) {
                (true, _) => seen.kind,
                (false, true) => "said not to be seen".to_owned(),
                (false, false) => "**missed**".to_owned(),
            };
            all += 1;
            found += usize::from(seen.share >= MIN_FOUND_SHARE);
            said += usize::from(seen.share < MIN_FOUND_SHARE && is_said);
            let share = 100.0 * seen.share;
            table.add_row(format!("{language} | {way} | {share:.1} % | {kind}"));
        }
    }
    table.publish()?;
    println!("\nOf {all} waits {found} were found, {said} are said not to be seen.");
    Ok(())
}

fn publish_work(setting: &Setting) -> Result<()> {
    let mut table = Table::new("spin-work", "language | work | spins");
    let (mut mistaken, mut all) = (0, 0);
    let mut add_row = |language: &str, name: &str, line: &str| -> Result<()> {
        let seen = attach(setting, line)?;
        let share = format!("{:.1} %", 100.0 * seen.share);
        all += 1;
        let cell = match seen.share < MAX_FALSE_SHARE {
            true => share,
            false => format!("**{share}**, {}", seen.kind),
        };
        mistaken += usize::from(seen.share >= MAX_FALSE_SHARE);
        table.add_row(format!("{language} | {name} | {cell}"));
        Ok(())
    };
    for (language, line, names) in WORK {
        for name in names.split_whitespace() {
            add_row(language, name, &line.replace("{}", name))?;
        }
    }
    for (needed, line) in TOOLS {
        find_or_install(needed, package_of(needed))?;
        add_row("–", needed, line)?;
    }
    table.publish()?;
    println!("\nOf {all} programs that work {mistaken} were taken for waits.");
    Ok(())
}

/// The result of `spin attach` for a program.
struct AttachResult {
    /// The share of its CPU time that is spinning.
    share: f64,
    /// The kind of the hottest place.
    kind: String,
    /// The text output, on one line.
    text: String,
}

fn attach(setting: &Setting, line: &str) -> Result<AttachResult> {
    let store = setting.folder.path().join("spins.db");
    let store = format!("sqlite:{}", store.display());
    let mut attach = shell_command(
        setting,
        "exec $PINWISE --store $STORE spin attach --hz 3989 -- sh -c \"$LINE\"",
    );
    let output = attach
        .env("STORE", &store)
        .env("LINE", line)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "{line} could not be observed");
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut show = Command::new(&setting.pinwise);
    show.args(["--store", &store, "--format", "json"]);
    show.args(["record", "show", "last"]);
    let record: Value = read_record(&mut show)?;
    let figure = |name: &str| record[name].as_f64().with_context(|| format!("no {name}"));
    let kind = record["places"][0]["kind"].as_str().unwrap_or("–");
    Ok(AttachResult {
        share: figure("spin_share")?,
        kind: kind.to_owned(),
        text,
    })
}

/// A line for `sh`, in the folder with all programs.
fn shell_command(setting: &Setting, line: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-ec", line])
        .current_dir(setting.folder.path())
        .env("S", root().join("lab/programs/spins"))
        .env("T", root().join("tests/data/programs"))
        .env("PINWISE", &setting.pinwise);
    command
}
