//! `gate`: verdicts and exit statuses on simulated machines, builds and benchmark frameworks on the
//! real one.

use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{
    decode_output, has_program, pinwise, report_skip, root, split_words, wait_until,
};

const MACHINE: &str = "topology = \"package:1 core:4 pu:1\"
[workload.default]
base_s = 0.2
[workload.\"head/parse\"]
base_s = 0.208
[workload.\"head/broken\"]
base_s = 0.2
exit = 3
[noise]
kind = \"lognormal\"
sd = 0.02
";

const SUITE: &str = "[[benchmark]]
name = \"parse\"
run = \"parse big.json\"
[[benchmark]]
name = \"encode\"
run = \"encode big.json\"
min_effect = \"2%\"
[[benchmark]]
name = \"broken\"
run = \"broken\"
";

/// A folder with a simulated machine, a suite and a store, in which pinwise runs.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        stage.write("machine.toml", MACHINE);
        stage.write("suite.toml", SUITE);
        stage
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes an executable shell script.
    fn write_script(&self, name: &str, text: &str) {
        self.write(name, &format!("#!/bin/sh\n{text}\n"));
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path().join(name), may_run).unwrap();
    }

    fn gate(&self, arguments: &[&str]) -> Output {
        let mut command = pinwise(&self.path().join("store.db"));
        command
            .current_dir(self.path())
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .arg("gate")
            .args(arguments);
        command.output().unwrap()
    }

    /// Runs pinwise in the folder `project`.
    fn run_in_project(&self, line: &str) -> Output {
        let mut command = pinwise(&self.path().join("store.db"));
        command
            .current_dir(self.path().join("project"))
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .args(split_words(line));
        command.output().unwrap()
    }

    /// Runs a gate on the simulated machine.
    fn gate_simulated(&self, arguments: &[&str]) -> Output {
        let fixed = ["base", "head", "--suite", "suite.toml", "--seed", "1"];
        let machine = ["--machine", "sim:machine.toml"];
        self.gate(&[&fixed[..], &machine, arguments].concat())
    }

    #[track_caller]
    fn gate_for_json(&self, arguments: &[&str]) -> Value {
        let output = self.gate(&[arguments, &["--format", "json"]].concat());
        let (out, err) = decode_output(&output);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"))
    }
}

/// Checks the exit status, and that standard output contains these words.
#[track_caller]
fn check(output: &Output, status: i32, words: &str) {
    let (out, err) = decode_output(output);
    assert_eq!(output.status.code(), Some(status), "{out}{err}");
    assert!(out.contains(words), "{out}{err}");
}

#[test]
fn every_verdict_has_its_exit_status() {
    let stage = Stage::new();
    let slower = stage.gate_simulated(&["--filter", "parse|encode", "--budget", "5m"]);
    check(&slower, 1, "FAIL\n1 of 2 benchmarks is slower: parse by ");
    let same = stage.gate_simulated(&["--filter", "encode", "--budget", "5m"]);
    check(
        &same,
        0,
        "PASS\nNo benchmark is slower by 2.0 % or more in the typical run: 1 passed.",
    );
    let short = ["--filter", "encode", "--budget", "4s"];
    let run_short = |more: &[&str]| stage.gate_simulated(&[&short[..], more].concat());
    check(
        &run_short(&[]),
        3,
        "\n\nUndecided: the benchmark may be slower by 2.0 % or more",
    );
    check(&run_short(&["--undecided", "pass"]), 0, "Undecided: ");
    check(&run_short(&["--undecided", "fail"]), 1, "Undecided: ");
    check(&run_short(&["--bisect"]), 125, "Undecided: ");
    let broken = stage.gate_simulated(&["--filter", "encode|broken", "--budget", "5m"]);
    check(&broken, 2, "BROKEN\n1 of 2 benchmarks could not be judged");
    check(&broken, 2, "failed with exit status 3.");
}

#[test]
fn a_gate_is_stored_and_exported() {
    let stage = Stage::new();
    let files = split_words("--export-markdown comment.md --export-csv pairs.csv");
    let arguments = ["--filter", "parse|encode", "--report", "page.html"];
    let output = stage.gate_simulated(&[&files[..], &arguments].concat());
    let (shown, _) = decode_output(&output);
    let read = |name: &str| std::fs::read_to_string(stage.path().join(name)).unwrap();
    let comment = read("comment.md");
    assert!(comment.starts_with("<!-- pinwise gate -->\n### ❌ head against base"));
    assert!(comment.contains("| parse | "), "{comment}");
    let (title, _) = comment.split_once("\n\n").unwrap();
    assert!(title.ends_with("suite.toml (2 benchmarks)"), "{title}");
    let pairs = read("pairs.csv");
    assert!(
        pairs.starts_with(
            "benchmark,pair,at_s,first,base,head,unit,base_cpu_s,head_cpu_s\nparse,0,"
        )
    );
    assert!(read("page.html").contains("pinwise.gate/1"));
    let show = |format: &str| {
        let mut command = pinwise(&stage.path().join("store.db"));
        let arguments = ["record", "show", "last", "--format", format];
        decode_output(&command.args(arguments).output().unwrap()).0
    };
    assert_eq!(show("text"), shown);
    assert_eq!(show("markdown"), comment);
    assert_eq!(show("csv"), pairs);
}

/// Shell code that sets `noise` to a pseudo-random number below 251, the same in every test.
const NOISE: &str = "n=$(($(cat ../count 2>/dev/null || echo 0) + 1)); echo $n > ../count
noise=$((n * n * 7919 % 251))";

/// A script that prints a figure with noise of some thousandths.
fn figure_script(figure: u32) -> String {
    format!("{NOISE}; echo \"figure=$(({figure}000 + noise * {figure} / 100))\"")
}

#[test]
fn each_build_runs_in_its_own_folder() {
    let stage = Stage::new();
    stage.write_script("before/say", &figure_script(100));
    stage.write_script("after/say", &figure_script(150));
    stage.write_script("after/added", "exit 0");
    let suite = "[[benchmark]]\nname = \"say\"\nrun = \"./say\"\nmetric = \"regex:figure=([0-9]+) lower\"\n\
        [[benchmark]]\nname = \"added\"\nrun = \"./added\"\n";
    stage.write("own.toml", suite);
    let record = stage.gate_for_json(&split_words(
        "before after --suite own.toml --max-pairs 30 --seed 1",
    ));
    assert_eq!(record["verdict"]["decision"], "fail", "{record:#}");
    let [say, added] = &record["benchmarks"].as_array().unwrap()[..] else {
        panic!("{record:#}")
    };
    assert_eq!(say["outcome"], "slower");
    let [base, head] = ["base", "head"].map(|build| say[build].as_f64().unwrap() / 1000.0);
    assert!((100.0..101.0).contains(&base) && (150.0..151.0).contains(&head));
    assert_eq!(added["outcome"], "new");
}

/// A script that lists these benchmarks and runs one, as Google Benchmark does.
fn google_script(names: &str) -> String {
    format!(
        "case \"$1\" in --benchmark_list_tests=true) printf '{names}'; exit;; esac
{NOISE}
name=$(echo \"$1\" | sed 's/.*=^//; s/\\$$//')
echo '{{\"context\": {{}}, \"benchmarks\": [{{\"name\": \"'$name'\", \"run_type\": \"iteration\", \"real_time\": 5.00'$noise', \"time_unit\": \"us\"}}]}}'"
    )
}

#[test]
fn benchmarks_of_a_framework_that_one_build_lacks_are_named() {
    let stage = Stage::new();
    stage.write_script("before/bench", &google_script("BM_a\\nBM_b\\n"));
    stage.write_script("after/bench", &google_script("BM_a\\nBM_c\\n"));
    let suite = "[[benchmark]]\nadapter = \"google-benchmark\"\nrun = \"./bench\"\n";
    stage.write("own.toml", suite);
    let record = stage.gate_for_json(&split_words(
        "before after --suite own.toml --max-pairs 30 --seed 1",
    ));
    assert_eq!(record["verdict"]["decision"], "broken", "{record:#}");
    let benchmarks = record["benchmarks"].as_array().unwrap();
    let outcomes: Vec<[&str; 2]> = benchmarks
        .iter()
        .map(|benchmark| ["name", "outcome"].map(|key| benchmark[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        outcomes,
        [["BM_a", "passed"], ["BM_b", "missing"], ["BM_c", "new"]]
    );
    let base_s = benchmarks[0]["base"].as_f64().unwrap();
    assert!((5.0e-6..5.1e-6).contains(&base_s), "{base_s}");
}

/// Whether git is installed; if not, the test is reported as skipped.
fn has_git() -> bool {
    let has_git = has_program("git");
    if !has_git {
        report_skip("git is not installed");
    }
    has_git
}

/// Makes a repository of the folder, with its files as the first commit.
fn create_repository(folder: &Path) {
    run_git(folder, &["init", "-q"]);
    run_git(folder, &["add", "-A"]);
    run_git(folder, &["commit", "-qm", "one"]);
}

#[track_caller]
fn run_git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let mut command = Command::new("git");
    command.current_dir(folder).args(identity).args(arguments);
    let output = command.output().unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "git {arguments:?}: {err}");
    out
}

/// Checks that the two gates that had figures are one step of the benchmark's history.
fn check_history(stage: &Stage, folder: &Path) {
    let history = |benchmark: &str, format: &str| {
        stage.run_in_project(&format!(
            "record history --trend {benchmark} --format {format}"
        ))
    };
    check(&history("say", "text"), 0, "  worse: +");
    let (found, _) = decode_output(&history("say", "json"));
    let found: Value = serde_json::from_str(&found).unwrap();
    let [step] = found["steps"].as_array().unwrap().as_slice() else {
        panic!("{found}");
    };
    assert_eq!(step["records"].as_array().unwrap().len(), 2, "{found}");
    let commit = |name: &str| run_git(folder, &["rev-parse", name]).trim().to_owned();
    assert_eq!(step["base"], commit("HEAD~2"), "{found}");
    assert_eq!(step["head"], commit("HEAD~1"), "{found}");
    let unknown = history("said", "text");
    let (_, err) = decode_output(&unknown);
    assert_eq!(unknown.status.code(), Some(2), "{err}");
    assert!(err.contains("no gate has such a benchmark (say)"), "{err}");
}

#[test]
fn revisions_are_built_once_and_leave_the_repository_alone() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    let folder = stage.path().join("project");
    stage.write_script("project/say.in", &figure_script(100));
    stage.write(
        "project/suite.toml",
        "build = \"cp say.in say; echo built >> ../times\"\n[[benchmark]]\nname = \"say\"\n\
         run = \"./say\"\nmetric = \"regex:figure=([0-9]+) lower\"\n",
    );
    create_repository(&folder);
    stage.write_script("project/say.in", &figure_script(101));
    run_git(&folder, &["commit", "-qam", "two"]);
    stage.write_script("project/say.in", "exit 1");
    run_git(&folder, &["commit", "-qam", "three"]);
    let state =
        || run_git(&folder, &["worktree", "list"]) + &run_git(&folder, &["status", "--short"]);
    let before = state();
    let run = |base: &str, head: &str| {
        let options = "--suite suite.toml --min-effect 0.5% -r 30 --seed=1";
        stage.run_in_project(&format!("gate {base} {head} {options}"))
    };
    check(&run("HEAD~2", "HEAD~1"), 1, "say by ");
    check(&run("HEAD~2", "HEAD~1"), 1, "say by ");
    check(&run("HEAD~2", "HEAD"), 2, "it fails in HEAD: ");
    // As in a hook, where variables of git name the user's work tree.
    let mut hook = pinwise(&stage.path().join("store.db"));
    let arguments = split_words("gate HEAD~1 HEAD~1 --suite suite.toml -r 9");
    hook.current_dir(&folder)
        .env("XDG_CACHE_HOME", stage.path().join("cache-of-hook"))
        .env("GIT_DIR", folder.join(".git"))
        .env("GIT_INDEX_FILE", folder.join(".git/index"))
        .args(arguments);
    assert_ne!(hook.output().unwrap().status.code(), Some(2));
    assert_eq!(state(), before);
    check_history(&stage, &folder);
    // The history shows the commits that the names meant then.
    let [base, head] = ["HEAD~2", "HEAD~1"].map(|name| {
        let commit = run_git(&folder, &["rev-parse", name]);
        format!("{name} ({})", &commit[..7])
    });
    check(
        &stage.run_in_project("record list"),
        0,
        &format!("{head} against {base}"),
    );
    let built = std::fs::read_to_string(find_clone(&stage).unwrap().join("times")).unwrap();
    assert_eq!(built.lines().count(), 3, "not one build for each commit");
}

#[test]
fn the_folder_here_is_named_by_its_branch() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    let folder = stage.path().join("project");
    stage.write_script("project/say", &figure_script(100));
    stage.write(
        "project/suite.toml",
        "[[benchmark]]\nname = \"say\"\nrun = \"./say\"\nmetric = \"regex:figure=([0-9]+) lower\"\n",
    );
    create_repository(&folder);
    run_git(&folder, &["checkout", "-qb", "feature"]);
    stage.write_script("project/say", &figure_script(90));
    let gate = stage.run_in_project("gate HEAD . --suite suite.toml -r 9 --seed=1");
    let (out, err) = decode_output(&gate);
    let title = "feature, modified against HEAD (";
    assert!(out.starts_with(title), "{out}{err}");
}

#[test]
fn variants_of_a_build_are_pooled_and_their_spread_is_reported() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    let folder = stage.path().join("project");
    stage.write(
        "project/suite.toml",
        "build = \"echo $PINWISE_VARIANT >variant; cat variant >>../variants\"\n\
         [[benchmark]]\nname = \"say\"\nrun = \"./say\"\n\
         metric = \"regex:figure=([0-9]+) lower\"\n",
    );
    stage.write_script("project/say", "echo figure=$((10000 + $$ % 7))");
    create_repository(&folder);
    // 2 % more in the first variant, 4 % in the second.
    stage.write_script(
        "project/say",
        "echo figure=$((10000 + 200 * $(cat variant) + $$ % 7))",
    );
    run_git(&folder, &["commit", "-qam", "two"]);
    for variant in [1, 2, 2] {
        let line = format!("gate HEAD~1 HEAD --suite suite.toml -r 30 --variant {variant}");
        check(&stage.run_in_project(&line), 1, "say by ");
    }
    let built = std::fs::read_to_string(find_clone(&stage).unwrap().join("variants")).unwrap();
    assert_eq!(
        built, "1\n1\n2\n2\n",
        "not one build for each variant and commit"
    );
    let (found, _) =
        decode_output(&stage.run_in_project("record history --trend say --format json"));
    let found: Value = serde_json::from_str(&found).unwrap();
    let between = found["steps"][0]["between"].as_f64().unwrap();
    assert!((0.005..0.02).contains(&between), "{found}");
    let method = found["method"].as_str().unwrap();
    assert!(
        method.contains("a standard deviation of up to "),
        "{method}"
    );
    let (shown, _) = decode_output(&stage.run_in_project("record show last --format json"));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["head"]["variant"], 2, "{shown}");
}

#[test]
fn a_bisection_skips_commits_that_do_not_build_and_stops_at_mistakes() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path().join("good")).unwrap();
    std::fs::create_dir(stage.path().join("bad")).unwrap();
    stage.write("good/ok", "");
    stage.write(
        "own.toml",
        "build = \"test -e ok\"\n[[benchmark]]\nrun = \"true\"\n",
    );
    let status = |arguments: &[&str]| {
        let output = stage.gate(&[arguments, &["--bisect", "-r", "2"]].concat());
        output.status.code().unwrap()
    };
    assert_eq!(status(&["good", "bad", "--suite", "own.toml"]), 125);
    assert_eq!(status(&["bad", "good", "--suite", "own.toml"]), 128);
    assert_eq!(status(&["good", "good", "--suite", "none.toml"]), 128);
    assert_eq!(
        status(&["good", "good", "--suite", "own.toml", "--bugdet", "1s"]),
        128
    );
}

#[test]
fn a_failed_build_is_repeated() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    let folder = stage.path().join("project");
    stage.write("project/file", "");
    create_repository(&folder);
    let run = |build: &str| {
        let suite = format!("build = \"{build}\"\n[[benchmark]]\nrun = \"true\"\n");
        stage.write("project/suite.toml", &suite);
        decode_output(&stage.run_in_project("gate HEAD HEAD --suite suite.toml -r 2")).1
    };
    let good = "echo good > state";
    assert!(run(good).contains("building HEAD"));
    assert!(!run(good).contains("building HEAD"));
    assert!(run("echo bad > state; exit 1").contains("build failed"));
    let of_project = std::fs::read_dir(find_clone(&stage).unwrap()).unwrap();
    let left: Vec<_> = of_project.map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.is_file()), "{left:?}");
    assert!(run(good).contains("building HEAD"));
}

/// Creates a project of one commit. Its build writes its pid to `begun`, waits for the file `go`,
/// and adds a line to `built`.
fn commit_slow_build(stage: &Stage) {
    stage.write("project/file", "");
    stage.write(
        "project/suite.toml",
        "build = \"echo $$ > ../begun; while ! test -e ../go; do sleep 0.01; done; echo >> ../built\"\n\
         [[benchmark]]\nrun = \"true\"\n",
    );
    create_repository(&stage.path().join("project"));
}

/// Starts a gate of that project with this store.
fn start_gate(stage: &Stage, store: &str) -> Child {
    let mut command = pinwise(&stage.path().join(store));
    command
        .current_dir(stage.path().join("project"))
        .env("XDG_CACHE_HOME", stage.path().join("cache"))
        .args(["gate", "HEAD", "HEAD", "--suite", "suite.toml", "-r", "2"])
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The folder of the cloned repository, if it exists yet.
fn find_clone(stage: &Stage) -> Option<std::path::PathBuf> {
    let all = std::fs::read_dir(stage.path().join("cache/pinwise/gate")).ok()?;
    all.flatten().map(|entry| entry.path()).next()
}

#[test]
fn a_build_ends_with_pinwise() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    commit_slow_build(&stage);
    let mut gate = start_gate(&stage, "store.db");
    let mut builder = String::new();
    wait_until("the build begins", || {
        let begun = find_clone(&stage).map(|folder| std::fs::read_to_string(folder.join("begun")));
        builder = begun.and_then(Result::ok).unwrap_or_default();
        builder.ends_with('\n')
    });
    gate.kill().unwrap();
    gate.wait().unwrap();
    let builder = Path::new("/proc").join(builder.trim());
    wait_until("the build has ended", || !builder.exists());
}

#[test]
fn a_commit_is_built_by_one_gate_at_a_time() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    commit_slow_build(&stage);
    let first = start_gate(&stage, "first.db");
    let has_begun = || find_clone(&stage).is_some_and(|folder| folder.join("begun").exists());
    wait_until("the build begins", has_begun);
    let mut second = start_gate(&stage, "second.db");
    let mut lines = std::io::BufReader::new(second.stderr.take().unwrap()).lines();
    let message = lines.find(|line| line.as_ref().is_ok_and(|l| l.contains("another gate")));
    assert!(message.is_some(), "the second gate does not wait");
    let clones = find_clone(&stage).unwrap();
    std::fs::write(clones.join("go"), "").unwrap();
    lines.for_each(drop);
    for (gate, name) in [(first, "first"), (second, "second")] {
        let output = gate.wait_with_output().unwrap();
        let (_, err) = decode_output(&output);
        // After two pairs the gate is undecided.
        assert_eq!(output.status.code(), Some(3), "{name}: {err}");
    }
    let built = std::fs::read_to_string(clones.join("built")).unwrap();
    assert_eq!(built.lines().count(), 1, "built more than once");
}

#[test]
fn revisions_have_their_submodules() {
    if !has_git() {
        return;
    }
    let stage = Stage::new();
    let [folder, part] = ["project", "part"].map(|name| stage.path().join(name));
    stage.write_script("part/say", &figure_script(100));
    stage.write("project/suite.toml", "[[benchmark]]\nrun = \"part/say\"\n");
    for folder in [&folder, &part] {
        create_repository(folder);
    }
    let local = ["-c", "protocol.file.allow=always"];
    let part = part.display().to_string();
    run_git(
        &folder,
        &[&local[..], &["submodule", "add", "-q", &part]].concat(),
    );
    run_git(&folder, &["commit", "-qm", "two"]);
    let run = || stage.run_in_project("gate HEAD . --suite suite.toml -r 2");
    run_git(&folder, &["submodule", "--quiet", "deinit", "-f", "part"]);
    let refused = run();
    let (_, err) = decode_output(&refused);
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(
        err.contains("BASE 'HEAD': the submodule part is missing: "),
        "{err}"
    );
    run_git(
        &folder,
        &[&local[..], &["submodule", "--quiet", "update", "--init"]].concat(),
    );
    let output = run();
    assert_eq!(
        output.status.code(),
        Some(3),
        "{:?}",
        decode_output(&output)
    );
}

#[test]
fn the_comment_of_an_earlier_gate_is_replaced() {
    let stage = Stage::new();
    stage.write("comment.md", "<!-- pinwise gate -->\n### PASS\n");
    let script = root().join(".github/actions/gate/comment.sh");
    let comment = |listed: &str| {
        let noted = stage.path().join("asked");
        let _ = std::fs::remove_file(&noted);
        stage.write_script(
            "bin/gh",
            &format!(
                "echo \"$@\" >> {}\ncase \"$*\" in *--paginate*) printf '{listed}';; esac",
                noted.display()
            ),
        );
        let path = format!("{}:/usr/bin:/bin", stage.path().join("bin").display());
        let status = Command::new("sh")
            .arg(&script)
            .arg("comment.md")
            .current_dir(stage.path())
            .envs([
                ("PATH", path.as_str()),
                ("REPOSITORY", "o/r"),
                ("PULL_REQUEST", "7"),
            ])
            .status();
        assert!(status.unwrap().success());
        std::fs::read_to_string(noted).unwrap()
    };
    let first = comment("");
    assert!(
        first.contains("startswith(\"<!-- pinwise gate -->\")"),
        "{first}"
    );
    assert!(
        first.ends_with("api --method POST repos/o/r/issues/7/comments --field body=@comment.md\n")
    );
    let again = comment("42\\n43\\n");
    assert!(
        again.ends_with(
            "api --method PATCH repos/o/r/issues/comments/42 --field body=@comment.md\n"
        )
    );
}

#[test]
fn a_failed_build_replaces_the_comment_of_a_passed_gate() {
    let stage = Stage::new();
    let suite = "build = \"exit 7\"\n[[benchmark]]\nrun = \"true\"\n";
    stage.write("fails.toml", suite);
    stage.write("comment.md", "it passed before");
    std::fs::create_dir(stage.path().join("here")).unwrap();
    let suite = ["here", "here", "--suite", "fails.toml"];
    let output = stage.gate(&[&suite[..], &["--export-markdown", "comment.md"]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let comment = std::fs::read_to_string(stage.path().join("comment.md")).unwrap();
    assert!(comment.contains("not judged"), "{comment}");
}
