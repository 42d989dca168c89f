//! Documents keep their promises: the commands in them and in help can be run, and print what the
//! documents say. They are run as by a new user: with an empty home, no configuration and the usual
//! tools, and once more by one who is not root.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};

use crate::support::{
    copy_program, heed_signals, makes_all_replays, pinwise, recorded_trace, root, skipped, texts,
};

/// The folders of programs on a minimal system.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// An ordinary user, who needs no name.
const SOMEBODY: u32 = 65_534;

/// The smallest machine that hwloc could have written.
const HWLOC_XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1">
<object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" local_memory="1024"/>
<object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"><object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"/></object>
<object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1"><object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1"/></object>
</object></topology>
"#;

/// Two programs that share a machine.
const PLAN: &str = "[[program]]\nname = \"a\"\ncommand = \"sleep 0.03\"\n\
                    [[program]]\nname = \"b\"\ncommand = \"sleep 0.05\"\n";

/// A rule that matches no process here.
const RULES: &str =
    "[[rule]]\nname = \"a\"\nexecutable = \"no-such-program\"\nplace = \"compact\"\n";

/// A study that takes almost no time.
const STUDY: &str = "[[step]]\nname = \"quick\"\nrun = [\"compare\", \"--machine\", \"sim:core:2 pu:2\", \"--place\", \"os-default\", \"--place\", \"spread*2\", \"--max-runs\", \"4\", \"--\", \"prog\"]\n";

/// A folder with everything that the examples name, which is their user's home.
struct Stage {
    folder: tempfile::TempDir,
    /// The user who runs them; `None`: the user of the tests.
    user: Option<u32>,
    /// The stage that this one is a copy of, kept for other tests to copy.
    _beginning: Option<Arc<Self>>,
}

/// Stages before their first example, by user; kept as long as a test uses one.
static BEGINNINGS: Mutex<BTreeMap<Option<u32>, Weak<Stage>>> = Mutex::new(BTreeMap::new());

impl Stage {
    fn new() -> Self {
        Self::new_for_user(None)
    }

    /// Copies a stage that a dozen commands made.
    fn new_for_user(user: Option<u32>) -> Self {
        let beginning = {
            let mut all = BEGINNINGS.lock().unwrap();
            let kept = all.get(&user).and_then(Weak::upgrade);
            kept.unwrap_or_else(|| {
                let made = Arc::new(Self::build(user));
                all.insert(user, Arc::downgrade(&made));
                made
            })
        };
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            user,
            _beginning: Some(beginning.clone()),
        };
        let all = beginning.path(".");
        let copied = Command::new("cp")
            .arg("-a")
            .arg(all)
            .arg(stage.path("."))
            .status();
        assert!(copied.unwrap().success());
        stage
    }

    fn build(user: Option<u32>) -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            user,
            _beginning: None,
        };
        let page = root().join("tests/data/page.html");
        std::fs::copy(page, stage.path("page.html")).unwrap();
        // The way to the tests' own binary may be closed to others.
        copy_program(env!("CARGO_BIN_EXE_pinwise"), &stage.path("pinwise"));
        std::os::unix::fs::chown(stage.folder.path(), user, user).unwrap();
        for (name, text) in [
            ("prog", "#!/bin/sh\nexit 0\n"),
            ("old", "#!/bin/sh\nexit 0\n"),
            ("new", "#!/bin/sh\nexit 0\n"),
            ("bench", "#!/bin/sh\necho 123.5 req/s\n"),
            ("xz", "#!/bin/sh\nexit 0\n"),
        ] {
            let path = stage.path(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::write(stage.path("big.tar"), "a").unwrap();
        std::fs::write(stage.path("rules.toml"), RULES).unwrap();
        std::fs::write(stage.path("plan.toml"), PLAN).unwrap();
        std::fs::write(stage.path("machine.xml"), HWLOC_XML).unwrap();
        for text in list_pages_with_examples()
            .iter()
            .flat_map(|text| blocks(text, "toml"))
        {
            // The first line names the file that others read.
            let name = text.lines().next().and_then(|line| line.strip_prefix("# "));
            if let Some(name) = name {
                std::fs::write(stage.path(name), text).unwrap();
            }
        }
        std::fs::write(
            stage.path("matrix.csv"),
            ",30,100,100\n30,,100,100\n100,100,,30\n100,100,30,\n",
        )
        .unwrap();
        for (name, recorded) in [("perf.data", "sched.data"), ("trace.txt", "plain.txt")] {
            std::fs::write(stage.path(name), recorded_trace(recorded)).unwrap();
        }
        std::fs::copy(stage.path("machine.xml"), stage.path("server.xml")).unwrap();
        for name in ["before", "after"] {
            let record = stage.run("pinwise topology --format json");
            std::fs::write(stage.path(&format!("{name}.json")), record).unwrap();
            stage.run(&format!("pinwise topology --save {name}.capture"));
        }
        std::fs::write(stage.path("study.toml"), STUDY).unwrap();
        // Something to compare, and then to show and export.
        for name in ["old", "new"] {
            stage.run(&format!(
                "pinwise profile --export-json {name}.json -- {name}"
            ));
        }
        stage.run("pinwise compare --machine sim:machine.toml --seed 1 -- prog");
        // The store of an example that copies one.
        let store = ".local/share/pinwise/pinwise.db";
        std::fs::copy(stage.path(store), stage.path("store.db")).unwrap();
        std::os::unix::fs::chown(stage.path("store.db"), user, user).unwrap();
        stage
    }

    /// A command of the examples' user, who has set nothing.
    fn command(&self, program: &str) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("PATH", format!("{}:{USUAL_PATH}", folder.display()));
        // What is tested is what goes into a page; its own tests see the real one.
        if pinwise_report::page::PAGE.is_none() {
            command.env("PINWISE_PAGE", folder.join("page.html"));
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        heed_signals(&mut command);
        command
    }

    fn pinwise(&self) -> Command {
        self.command(self.path("pinwise").to_str().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs an example, unless it needs a program that is not installed.
    #[track_caller]
    fn try_example(&self, line: &str) {
        let Some(line) = use_local_server(&quick(line)) else {
            return;
        };
        // The newest record is one that has an answer.
        if line.contains("apply last") {
            self.run("pinwise compare --machine sim:machine.toml --seed 1 -- prog");
        }
        // Jobs of a copied folder are not taken up again, so it is no part of the stage.
        let needs_fleet = line.contains("nightly") || line.starts_with("pinwise fleet ");
        if needs_fleet && !self.path("pinwise-fleet").exists() {
            self.run("pinwise fleet submit --launcher local --nodes 1 --id nightly study.toml");
            for _ in 0..2 {
                self.run("pinwise compare --machine sim:machine.toml --seed 1 -- prog");
            }
        }
        if line.starts_with("pinwise serve") {
            return self.serve(&line);
        }
        // A running service, for examples that watch or place it: a small program, because
        // the symbols of a large one take seconds to read.
        let mut service = line.contains("--pid 4711").then(|| {
            let mut shell = self.command("sh");
            shell.args(["-c", "while :; do :; done"]).spawn().unwrap()
        });
        let line = match &service {
            Some(service) => line
                .replace("--pid 4711", &format!("--pid {}", service.id()))
                .replace("--for 10m", "--for 100ms"),
            None => line,
        };
        match self.missing(&line) {
            None => {
                self.run(&line);
            }
            Some(why) => eprintln!("SKIPPED {line}: {why}"),
        }
        if let Some(service) = &mut service {
            service.kill().unwrap();
            service.wait().unwrap();
        }
    }

    /// A site that starts, prints its address, and ends on SIGTERM. There is no
    /// browser to open it, and the port may be in use.
    #[track_caller]
    fn serve(&self, line: &str) {
        let line = line.replace(" --open", "").replace(" --port 8080", "");
        let words = shell_words::split(&line).unwrap();
        let mut site = self
            .pinwise()
            .args(&words[1..])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        std::io::BufReader::new(site.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let killed = Command::new("kill").arg(site.id().to_string()).status();
        assert!(killed.unwrap().success());
        assert!(site.wait().unwrap().success(), "{line}");
        assert!(
            address.starts_with("http://127.0.0.1:"),
            "{line}: {address}"
        );
    }

    /// What the recipe of a line lacks here.
    fn missing(&self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        if words[1..].starts_with(&["fleet", "submit"]) && !words.contains(&"--launcher") {
            return Some("tests/it/fleet_slurm.rs runs it on a cluster".to_owned());
        }
        if words.contains(&"--realtime") {
            let asked = self.command("chrt").args(["-f", "1", "true"]).output();
            let is_permitted = asked.is_ok_and(|asked| asked.status.success());
            return (!is_permitted).then(|| "real-time priority is not permitted".to_owned());
        }
        let at = words.iter().position(|word| *word == "--recipe")?;
        let all = self.run("pinwise bench recipes --format json");
        let all: serde_json::Value = serde_json::from_str(&all).unwrap();
        let recipes = all["recipes"].as_array().unwrap();
        let recipe = recipes
            .iter()
            .find(|recipe| recipe["name"] == words[at + 1])?;
        let is_here = recipe["available"].as_bool().unwrap();
        (!is_here).then(|| format!("not installed: {}", recipe["missing"]))
    }

    /// Runs one line as a shell would; standard output.
    #[track_caller]
    fn run(&self, line: &str) -> String {
        let words = shell_words::split(line).unwrap();
        let output = self.pinwise().args(&words[1..]).output().unwrap();
        let (out, err) = texts(&output);
        // A user who is not root may be refused what needs that, with a message.
        let is_refused = self.user.is_some() && output.status.code() == Some(2);
        let said = err.to_lowercase();
        let needs = ["root", "permi", "cap_"];
        let says_why = is_refused && needs.iter().any(|word| said.contains(word));
        if says_why || err.contains("is not available here") {
            eprintln!("SKIPPED {line}: {err}");
            return out;
        }
        // A gate may close by chance, or since this machine is so; an example must
        // not be an error.
        let gates = [
            "pinwise gate",
            "--fail-if-slower",
            "--check",
            "--max-spin",
            "--max-blind-gap",
        ];
        let has_gate = gates.iter().any(|gate| line.contains(gate));
        let is_gate = has_gate && matches!(output.status.code(), Some(1 | 3));
        assert!(output.status.success() || is_gate, "{line}: {err}");
        out
    }
}

/// Documents whose examples take half of the time of all.
const LONG: [&str; 4] = [
    "docs/machine.md",
    "docs/search.md",
    "docs/spin.md",
    "docs/tracing.md",
];

/// A test for each document with examples: they run side by side.
macro_rules! documents {
    ($($test:ident: $path:literal,)*) => {
        const WITH_EXAMPLES: &[&str] = &[$($path),*];

        $(
            #[test]
            fn $test() {
                try_examples($path, &Stage::new());
            }
        )*

        /// As a user who is not root.
        mod as_an_ordinary_user {
            use super::*;

            $(
                #[test]
                fn $test() {
                    // SAFETY: geteuid has no preconditions.
                    #[expect(unsafe_code, reason = "one system call that cannot fail")]
                    let is_root = unsafe { libc::geteuid() } == 0;
                    let is_left_out = LONG.contains(&$path) && !makes_all_replays();
                    match is_root {
                        true if is_left_out => {
                            skipped("root runs it; `cargo xtask check --all`, a user, too");
                        }
                        true => try_examples($path, &Stage::new_for_user(Some(SOMEBODY))),
                        false => skipped("only root becomes another user"),
                    }
                }
            )*
        }
    };
}

documents! {
    examples_of_readme_run: "README.md",
    examples_of_apply_run: "docs/apply.md",
    examples_of_devices_run: "docs/devices.md",
    examples_of_fleet_run: "docs/fleet.md",
    examples_of_gate_run: "docs/gate.md",
    examples_of_machine_run: "docs/machine.md",
    examples_of_page_run: "docs/page.md",
    examples_of_records_run: "docs/records.md",
    examples_of_rules_run: "docs/rules.md",
    examples_of_search_run: "docs/search.md",
    examples_of_spin_run: "docs/spin.md",
    examples_of_tracing_run: "docs/tracing.md",
    examples_of_wiring_run: "docs/wiring.md",
}

#[track_caller]
fn try_examples(path: &str, stage: &Stage) {
    let text = read(path);
    let lines = blocks(&text, "sh").flat_map(str::lines);
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("pinwise ")).collect();
    for line in lines {
        stage.try_example(line);
    }
}

fn list_pages_with_examples() -> Vec<String> {
    WITH_EXAMPLES.iter().map(|path| read(path)).collect()
}

/// README and the documents beside it and in `docs`.
fn all_documents() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["", "docs"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = Path::new(folder).join(name);
            if path.extension().is_some_and(|kind| kind == "md") {
                paths.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    paths
}

#[test]
fn every_document_with_examples_is_tried() {
    for path in all_documents() {
        let text = read(&path);
        let mut lines = blocks(&text, "sh").flat_map(str::lines);
        let has_commands = lines.any(|line| line.starts_with("pinwise "));
        let has_output = blocks(&text, "console").next().is_some();
        let is_tried = WITH_EXAMPLES.contains(&path.as_str());
        assert_eq!(has_commands || has_output, is_tried, "{path}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A line with a foreign database, with one of the tests' own instead; `None`, with a message, if
/// there is no server.
fn use_local_server(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let Some(url) = words.find(|word| word.starts_with("postgres://")) else {
        return Some(line.to_owned());
    };
    let own = crate::store::server::database()?;
    Some(line.replace(url, &own))
}

/// Fenced blocks of one language.
fn blocks<'a>(text: &'a str, language: &'a str) -> impl Iterator<Item = &'a str> {
    text.split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// An example as it can be run quickly, without its comment.
fn quick(line: &str) -> String {
    let line = line.split("  #").next().unwrap().trim();
    let line = line.split("   #").next().unwrap().trim();
    let line = line.split(" > ").next().unwrap().trim();
    // What git would run.
    let line = line.trim_start_matches("git bisect run ");
    // Builds that are only named, on a machine for which that is enough.
    if line.starts_with("pinwise gate ") && !line.contains("--machine") {
        let line = line.replace(" --bisect", "");
        return format!("{line} --machine sim:builds.toml --undecided pass --max-pairs 7");
    }
    if line.contains("--measure") && !line.contains("--machine") {
        let line = line.replace("--watch 60s", "--watch 500ms");
        return format!("{line} --wiring-only --budget 200ms");
    }
    if line.contains(" bench jitter") {
        // CPUs of a machine that may not be this one.
        let line = line.replace(" --cpus 2-3", " --cpus 0");
        return line.replace(" --for 1m", "") + " --for 100ms";
    }
    let is_bench = line.starts_with("pinwise bench ") && !line.contains("bench recipes");
    if is_bench && !line.contains("bench kernel") && !line.contains("--machine") {
        // One kernel of a suite; the simulated machine has whole ones.
        let line = line
            .replace("--suite memory", "triad")
            .replace("--suite smt", "whetstone");
        return format!("{line} --max-runs 1 --warmup 0 --work 1");
    }
    match line.split(' ').nth(1).unwrap_or_default() {
        "trace" | "top" => return quick_trace(line),
        "spin" | "profile" => return quick_spin(line),
        // Rules stay in force until they are ended, and are recorded in /run.
        "apply" if line.contains(" rules run ") => {
            let line = line.replace(" --dry-run", "").replace(" --once", "");
            return format!("{line} --dry-run --once");
        }
        // What other tests leave behind is theirs.
        "apply" if line.contains(" restore") && !line.contains("--dry-run") => {
            return format!("{line} --dry-run");
        }
        _ => {}
    }
    // An example of a file of one's own, and of CPUs that may not be here.
    let line = &line
        .replace("./my.toml", "compile")
        .replace(
            "--recipe compile",
            "--recipe compile --parameter functions=30",
        )
        .replace("--bind 0,1", "");
    let line = &line
        .replace("--size 1GiB", "--size 16MiB")
        .replace("--seconds 2s", "--seconds 100ms");
    // Each report is tried by tests of its own.
    let line = &line.replace("reproduce --all", "reproduce hyperthread-fill");
    if line.starts_with("pinwise reproduce ") && !line.contains("--simulated") {
        return format!("{} --budget 1s", line.replace(" --budget 2m", ""));
    }
    // Numbers of threads are those of a machine that may not be this one.
    let line = &line
        .replace("search --threads 16 --budget 2m", "search --threads 1 -r 4")
        .replace(
            "--joint plan.toml",
            "--joint plan.toml -r 24 --confirm 6 --store none",
        )
        .replace("search --threads 2 ", "search --threads 1 ")
        .replace("--threads 16", "--threads 1");
    // The record is of that machine.
    let line = &line.replace("apply last", "apply last --machine sim:machine.toml");
    // One record is not two.
    let line = &line.replace("diff last last", "diff before.json after.json");
    match line.strip_prefix("pinwise compare ") {
        Some(rest) if !line.contains("--machine") => {
            // One run decides nothing.
            let rest = rest.replace("--fail-if-slower", "--undecided pass --fail-if-slower");
            format!("pinwise compare --max-runs 1 --warmup 0 {rest}")
        }
        _ => line.to_owned(),
    }
}

/// A short trace; of `top` one frame.
fn quick_trace(line: &str) -> String {
    let line = line
        .replace("--for 10s", "--for 100ms")
        .replace("--for 5s", "--for 100ms");
    // Who may not read tracepoints is refused.
    let format = "/sys/kernel/tracing/events/irq/softirq_entry/format";
    let line = match std::fs::read(format) {
        Ok(_) => line,
        Err(_) => line.replace(" --interrupts", ""),
    };
    if line == "pinwise trace tiers" {
        return format!("{line} --for 100ms");
    }
    // The recording's threads have other numbers.
    if line.contains(" import ") {
        return line.replace("--pid 4711 ", "");
    }
    if line.starts_with("pinwise top") && !line.contains("--once") {
        return format!("{line} --once");
    }
    line
}

/// The laboratory, short.
fn quick_spin(line: &str) -> String {
    let line = line
        .replace("--for 10s", "--for 100ms")
        .replace("--for 5s", "--for 100ms")
        .replace("req higher", "req/s higher");
    let words: Vec<&str> = line.split(' ').collect();
    match words[2] {
        "pause" if !line.contains("--for") => format!("{line} --for 200ms"),
        "replay" if line.contains("contend") => format!("{line} --items 3"),
        "replay" => {
            let line = line.replace("1..9ms", "8..9ms").replace(" --items 10", "");
            let is_short = line.contains("--delays");
            let delays = if is_short { "" } else { " --delays 8..9ms" };
            format!("{line}{delays} --items 2")
        }
        // The examples' binaries do not exist here.
        "scan" => {
            let (options, _) = line.rsplit_once(' ').unwrap();
            format!("{options} /bin/sh")
        }
        "diff" => line
            .replace("before.json", "old.json")
            .replace("after.json", "new.json"),
        _ => line,
    }
}

#[test]
fn documents_show_the_real_output() {
    let stage = Stage::new();
    let mut seen = 0;
    for block in list_pages_with_examples()
        .iter()
        .flat_map(|text| blocks(text, "console"))
    {
        let (command, shown) = block.split_once('\n').unwrap();
        let printed = stage.run(command.strip_prefix("$ ").unwrap());
        let (printed, shown) = (mask_ids(&printed), mask_ids(shown));
        assert_eq!(printed.trim_end(), shown.trim_end(), "{command}");
        seen += 1;
    }
    assert!(seen > 0, "the output has moved");
}

/// Record ids contain the time and random digits.
fn mask_ids(text: &str) -> String {
    let id = regex_lite::Regex::new(r"\d{8}-\d{6}-[0-9a-f]{8}").unwrap();
    id.replace_all(text, "ID").into_owned()
}

/// A test for the examples of some commands' help: what one shows may need what one
/// before it left.
macro_rules! helps {
    ($($test:ident: $commands:expr,)*) => {
        /// The commands whose examples are tried.
        pub(crate) const HELPS: &[&[&str]] = &[$(&$commands),*];

        $(
            #[test]
            fn $test() {
                try_helps(&$commands);
            }
        )*
    };
}

helps! {
    help_examples_of_questions_and_records_run: [
        "apply", "", "topology", "search", "search predict", "gate", "compare", "record show",
        "run", "completions", "trace", "trace import", "trace tiers", "top", "record history",
        "record tag", "record diff", "record report", "serve", "record prune", "record copy",
    ],
    help_examples_of_spin_run: [
        "spin", "spin pause", "spin predict", "spin replay", "spin attach", "spin advise", "spin scan",
    ],
    help_examples_of_profiles_run: ["profile diff", "profile"],
    help_examples_of_kernels_run: ["bench", "bench kernel", "bench jitter", "bench recipes"],
    help_examples_of_reports_run: ["reproduce"],
    help_examples_of_rules_run: ["apply rules check", "apply rules run", "apply rules unit", "apply restore"],
    help_examples_of_fleets_run: [
        "fleet status", "fleet collect", "fleet resume", "fleet cancel", "fleet simulate",
    ],
}

#[test]
fn help_examples_of_all_commands_are_tried() {
    assert!(HELPS.concat().len() > 40, "the commands have moved");
}

#[track_caller]
fn try_helps(commands: &[&str]) {
    let stage = Stage::new();
    for command in commands {
        let help = stage.run(&format!("pinwise {command} --help"));
        let examples = help.split("Examples:\n").nth(1).expect("examples");
        for line in examples.lines().take_while(|line| !line.trim().is_empty()) {
            // The ids in examples do not exist here.
            let line = line.trim().replace("20261121-2132", "last");
            let line = line.replace("20261122", "last");
            // What another program does first was done already.
            let line = line.split("; ").last().unwrap().to_owned();
            let is_elsewhere = line.starts_with("ssh ");
            // Placing a foreign process is tested elsewhere.
            let is_elsewhere = is_elsewhere || line.contains("--pid 4242");
            if line == "pinwise doctor" || line.contains("search --resume") || is_elsewhere {
                continue;
            }
            stage.try_example(&line);
        }
    }
}

#[test]
fn the_reference_matches_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = pinwise(&folder.path().join("store.db"))
        .args(["generate", "reference"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let fresh = std::fs::read_to_string(folder.path().join("cli.md")).unwrap();
    let kept = read("docs/cli.md");
    assert!(fresh == kept, "docs/cli.md is old: run `cargo xtask gen`");
}

/// The doc tests of the package compile them; rustdoc adds what an example lacks and hides lines,
/// but a user who pastes an example gets neither.
#[test]
fn rust_examples_are_whole_programs() {
    let guide = read("docs/library.md");
    let examples: Vec<&str> = blocks(&guide, "rust").collect();
    assert!(!examples.is_empty(), "the examples have moved");
    for example in examples {
        assert!(example.contains("fn main()"), "{example}");
        let has_hidden = example.lines().any(|line| line.starts_with("# "));
        assert!(!has_hidden, "{example}");
    }
}

#[test]
fn links_lead_somewhere() {
    let link = regex_lite::Regex::new(r"\]\(([^)#]+)").unwrap();
    for document in all_documents() {
        let text = read(&document);
        for target in link.captures_iter(&text).map(|found| found[1].to_owned()) {
            let is_elsewhere = target.contains("://");
            let folder = Path::new(&document).parent().unwrap();
            let path = root().join(folder).join(&target);
            assert!(is_elsewhere || path.exists(), "{document}: {target}");
        }
    }
}
