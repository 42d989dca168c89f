//! The folder in which examples run, with all files that they name.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};

use super::quick::shorten;
use super::{find_blocks, read_documents_with_examples};
use crate::support::{
    copy_program, decode_output, read_recorded_trace, reset_signals, root, send_signal,
};

/// The folders of programs on a minimal system.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The id of an ordinary user.
pub(super) const SOMEBODY: u32 = 65_534;

/// A small machine in hwloc's format.
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

/// A folder with all files that the examples name. It is the home of their user.
pub(super) struct Stage {
    folder: tempfile::TempDir,
    /// The user who runs the examples; `None`: the user of the tests.
    user: Option<u32>,
    /// The template of this stage, kept for other tests to copy.
    _template: Option<Arc<Self>>,
}

/// Stages before their first example, by user. They exist as long as a test uses a copy.
static TEMPLATES: Mutex<BTreeMap<Option<u32>, Weak<Stage>>> = Mutex::new(BTreeMap::new());

impl Stage {
    pub(super) fn new() -> Self {
        Self::new_for_user(None)
    }

    /// Copies the template, which takes a dozen commands to build.
    pub(super) fn new_for_user(user: Option<u32>) -> Self {
        let template = {
            let mut templates = TEMPLATES.lock().unwrap();
            let existing = templates.get(&user).and_then(Weak::upgrade);
            existing.unwrap_or_else(|| {
                let template = Arc::new(Self::build(user));
                templates.insert(user, Arc::downgrade(&template));
                template
            })
        };
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            user,
            _template: Some(template.clone()),
        };
        let copied = Command::new("cp")
            .arg("-a")
            .arg(template.path("."))
            .arg(stage.path("."))
            .status();
        assert!(copied.unwrap().success());
        stage
    }

    fn build(user: Option<u32>) -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            user,
            _template: None,
        };
        let page = root().join("tests/data/page.html");
        std::fs::copy(page, stage.path("page.html")).unwrap();
        // Other users may have no access to the folder of the built program.
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
        for text in read_documents_with_examples()
            .iter()
            .flat_map(|text| find_blocks(text, "toml"))
        {
            // The first line names the file if other examples read it.
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
            std::fs::write(stage.path(name), read_recorded_trace(recorded)).unwrap();
        }
        std::fs::copy(stage.path("machine.xml"), stage.path("server.xml")).unwrap();
        for name in ["before", "after"] {
            let record = stage.run("pinwise topology --format json");
            std::fs::write(stage.path(&format!("{name}.json")), record).unwrap();
            stage.run(&format!("pinwise topology --save {name}.capture"));
        }
        std::fs::write(stage.path("study.toml"), STUDY).unwrap();
        // Profiles to compare, and a record to show and export.
        for name in ["old", "new"] {
            stage.run(&format!(
                "pinwise profile --export-json {name}.json -- {name}"
            ));
        }
        stage.run("pinwise compare --machine sim:machine.toml --seed 1 -- prog");
        // An example copies this store.
        let store = ".local/share/pinwise/pinwise.db";
        std::fs::copy(stage.path(store), stage.path("store.db")).unwrap();
        std::os::unix::fs::chown(stage.path("store.db"), user, user).unwrap();
        stage
    }

    /// A command of the examples' user, whose environment has no settings.
    fn command(&self, program: &str) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("PATH", format!("{}:{USUAL_PATH}", folder.display()));
        // These tests need a page, but not its content, which has its own tests.
        if pinwise_report::page::PAGE.is_none() {
            command.env("PINWISE_PAGE", folder.join("page.html"));
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        reset_signals(&mut command);
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
    pub(super) fn try_example(&self, line: &str) {
        let Some(line) = use_local_server(&shorten(line)) else {
            return;
        };
        // The newest record must have a verdict.
        if line.contains("apply last") {
            self.run("pinwise compare --machine sim:machine.toml --seed 1 -- prog");
        }
        // A copied fleet folder cannot be resumed, so that the template has none.
        let needs_fleet = line.contains("nightly") || line.starts_with("pinwise fleet ");
        if needs_fleet && !self.path("pinwise-fleet").exists() {
            self.run("pinwise fleet submit --launcher local --nodes 1 --id nightly study.toml");
            for _ in 0..2 {
                self.run("pinwise compare --machine sim:machine.toml --seed 1 -- prog");
            }
        }
        if line.starts_with("pinwise serve") {
            return self.check_site(&line);
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
        match self.find_reason_to_skip(&line) {
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

    /// Checks that the site prints its address and ends on SIGTERM. It opens no browser, and takes
    /// any port, as the one of the example may be in use.
    #[track_caller]
    fn check_site(&self, line: &str) {
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
        send_signal(site.id(), "TERM");
        assert!(site.wait().unwrap().success(), "{line}");
        assert!(
            address.starts_with("http://127.0.0.1:"),
            "{line}: {address}"
        );
    }

    /// Why a line cannot be run here, if so.
    fn find_reason_to_skip(&self, line: &str) -> Option<String> {
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

    /// Runs one line as a shell would; returns its standard output.
    #[track_caller]
    pub(super) fn run(&self, line: &str) -> String {
        let words = shell_words::split(line).unwrap();
        let output = self.pinwise().args(&words[1..]).output().unwrap();
        let (out, err) = decode_output(&output);
        // A user who is not root may be refused what needs that, with a message.
        let is_refused = self.user.is_some() && output.status.code() == Some(2);
        let message = err.to_lowercase();
        let rights = ["root", "permi", "cap_"];
        let lacks_rights = is_refused && rights.iter().any(|word| message.contains(word));
        if lacks_rights || err.contains("is not available here") {
            eprintln!("SKIPPED {line}: {err}");
            return out;
        }
        // A gate may fail by chance or because of this machine, but not by an error.
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

/// Replaces the database of a line by one of the tests; `None`, with a message, if there is no
/// server.
fn use_local_server(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let Some(url) = words.find(|word| word.starts_with("postgres://")) else {
        return Some(line.to_owned());
    };
    let own = crate::store::server::create_database()?;
    Some(line.replace(url, &own))
}
