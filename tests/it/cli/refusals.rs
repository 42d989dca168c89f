//! Bad input: one line that names what is wrong and what would be right, exit
//! status 2, nothing on standard output, nothing stored.

use super::{Stage, check};

/// Runs lines that must be refused; all of them make one snapshot.
#[track_caller]
pub(super) fn refused(stage: &Stage, name: &str, lines: impl IntoIterator<Item = String>) {
    let mut all = String::new();
    for line in lines {
        let ran = stage.run(&line);
        assert_eq!(ran.status, 2, "{ran}");
        assert!(ran.out.is_empty(), "{ran}");
        // Notes may come before it.
        let errors = ran.err.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{ran}");
        assert!(
            ran.err.lines().last().unwrap().starts_with("error: "),
            "{ran}"
        );
        all.push_str(&format!("$ pinwise {line}\n{}\n", ran.err));
    }
    check(&format!("refused-{name}"), &all);
}

const COMPARE: &str = "compare --machine sim:same.toml";

/// `compare` with these arguments on the machine where nothing matters.
fn compare(arguments: &[&str]) -> Vec<String> {
    let line = |arguments: &&str| format!("{COMPARE} {arguments}");
    arguments.iter().map(line).collect()
}

#[test]
fn placements() {
    let lines = [
        "one-per-coar",
        "frobnicate",
        "",
        "*2",
        "one-core:x",
        "one-core:7",
        "one-core/mem=far",
        "one-llc",
        "p-cores",
        "os-default*2",
        "spread*9",
        "spread*0",
        "compact:1",
        "cpu",
        "cpu:",
        "cpu:9",
        "cpu:0,x",
        "cpu:3-1",
        "cpu:99999999",
        "mask:0xg",
        "mask:0x0",
        "shape:",
        "shape:core=9",
        "shape:core=0",
        "shape:die=1",
        "shape:core=1,core=2",
        "shape:cpu=9",
        "shape:core=2,cpu=1",
        "shape:cpu=1,smt=1",
        "tree:",
        "tree:2x",
        "tree:0c",
        "tree:9c",
        "tree:1cP",
        "tree:.1c",
        "tree:1c..1t",
        "tree:1c+.1t",
        "tree:1l.1c",
        "tree:1c*2",
    ]
    .map(|name| format!("{COMPARE} --place os-default --place '{name}' -- prog"));
    refused(&Stage::new(), "placements", lines);
}

#[test]
fn memory_policies() {
    let two = "compare --machine 'sim:package:2 [numa(memory=1GB)] core:2 pu:1'";
    let lines = [
        "compare --machine 'sim:core:2 pu:1' --memory bind -- prog".to_owned(),
        format!("{two} --memory far -- prog"),
        format!("{two} --memory bind:7 -- prog"),
        format!("{two} --memory local:0 -- prog"),
        format!("{two} --memory bind: -- prog"),
        format!("{two} --memory bind --place cpu:0/mem=local -- prog"),
        format!("{two} --memory bind --self -- prog"),
        format!("{two} --memory bind --pid 1"),
    ];
    refused(&Stage::new(), "memory", lines);
}

#[test]
fn numbers() {
    let lines = compare(&[
        "--budget 5 -- prog",
        "--budget 5x -- prog",
        "--budget 0s -- prog",
        "--timeout soon -- prog",
        "--precision 5 -- prog",
        "--precision 200% -- prog",
        "--min-effect 0% -- prog",
        "--min-effect x -- prog",
        "--fail-if-slower 2 -- prog",
        "--fail-if-slower=-1% -- prog",
        "--max-runs 0 -- prog",
        "--max-runs many -- prog",
        "--warmup=-1 -- prog",
        "--seed x -- prog",
        "--threads-env 0 -- prog",
    ]);
    refused(&Stage::new(), "numbers", lines);
}

#[test]
fn metrics() {
    let lines = compare(&[
        "--metric speed -- prog",
        "--metric '' -- prog",
        "--metric 'regex:([0-9]+)' -- prog",
        "--metric 'regex:( lower' -- prog",
        "--metric 'json:a lower' -- prog",
        "--metric 'json:.a[x] higher' -- prog",
        "--metric 'regex:x lower' --output inherit -- prog",
    ]);
    refused(&Stage::new(), "metrics", lines);
}

#[test]
fn commands_and_parameters() {
    let lines = compare(&[
        "",
        "--",
        "''",
        "\"prog 'x\"",
        "--place os-default -- prog",
        "--place one-core --place cpu:0 -- prog",
        "--command a --command b -- prog",
        "--command a --command ''",
        "--command a --command b --name x --name y --name z",
        "--command a --command b --name x --name x",
        "--name x -- prog",
        "--name x 'prog 1'",
        "--command prog --name x",
        "--baseline cpu:1 --place os-default --place cpu:0 -- prog",
        "--parameter t=1,2 prog",
        "--parameter t=1,2",
        "--parameter t 'prog {t}'",
        "--parameter t= 'prog {t}'",
        "--parameter t=1,,2 'prog {t}'",
        "--parameter t=9..1 'prog {t}'",
        "--parameter t=1..100000 'prog {t}'",
        "--parameter t=1,2 --parameter t=3,4 'prog {t}'",
        "--parameter a=1..1000 --parameter b=1..1000 'prog {a} {b}'",
        "--env FOO --place os-default --place cpu:0 -- prog",
        "--prepare \"'\" --place os-default --place cpu:0 -- prog",
        "--export-json missing/x.json -- prog",
    ]);
    let stage = Stage::new();
    refused(&stage, "commands", lines);
    assert!(
        stage.json("record history")["records"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn options_and_subcommands() {
    let lines = [
        "frobnicate",
        "compaer -- prog",
        "compare --frobnicate -- prog",
        "compare --place -- prog",
        "compare --self prog argument",
        "compare --score best -- prog",
        "--format yaml topology",
        "--format xml doctor",
        "topology --watch 60s",
        "topology --measure --from x.xml",
        "topology replay missing.csv",
        "topology diff missing.xml",
        "--color sometimes topology",
        "topology --from a --save b",
        "topology --placements 2 --explain compact",
        "--machine sim:pu:4 topology --placements 0",
        "--machine sim:pu:4 topology --placements 5",
        "--machine sim:pu:4 topology --placements x",
        "--machine sim:pu:4 --format xml topology --placements",
        "record history --limit 0",
        "record show",
        "record history --format csv",
        "compare --format markdown --machine sim:pu:2 -- prog",
        "record show last --format csv --json",
        "run",
        "run --machine sim:pu:2 -- true",
        "run --place nowhere -- true",
        "doctor --machine sim:pu:2",
        "compare --self --machine sim:pu:2",
        "compare --self --machine sim:pu:2 --arms 1 -- prog",
        "compare --self --machine sim:pu:2 --arms 27 -- prog",
        "compare --self --machine sim:pu:2 --place cpu:7 -- prog",
    ]
    .map(str::to_owned);
    refused(&Stage::new(), "options", lines);
}

#[test]
fn simulated_machines() {
    let stage = Stage::new();
    let files = [
        (
            "key",
            "topology = \"core:2 pu:1\"\n[noise]\nsd = 0.01\nspeeed = 1\n",
        ),
        ("table", "topology = \"core:2 pu:1\"\n[effekts]\n"),
        ("quote", "topology = \"core:2 pu:1\n"),
        ("type", "topology = 3\n"),
        ("no-topology", "[effects]\n"),
        ("no-base", "topology = \"pu:1\"\n[workload.default]\n"),
        ("level", "topology = \"core:2 qu:1\"\n"),
        (
            "placement",
            "topology = \"core:2 pu:1\"\n[effects]\n\"one-coer\" = 1.1\n",
        ),
        (
            "cpu",
            "topology = \"core:2 pu:1\"\n[effects]\n\"cpu:5\" = 1.1\n",
        ),
        (
            "negative",
            "topology = \"core:2 pu:1\"\n[effects]\n\"cpu:0\" = -1\n",
        ),
        ("kind", "topology = \"pu:2\"\n[noise]\nkind = \"pink\"\n"),
        (
            "no-series",
            "topology = \"pu:2\"\n[noise]\nseries = \"none.csv\"\n",
        ),
        (
            "series",
            "topology = \"pu:2\"\n[noise]\nseries = \"series.csv\"\n",
        ),
        (
            "packed",
            "topology = \"pu:2\"\n[noise]\nseries = \"series.csv.xz\"\n",
        ),
        ("wiring", "topology = \"pu:2\"\n[wiring]\nsmt = 14\n"),
        (
            "other-cpus",
            "topology = \"pu:2\"\n[wiring]\ntopology = \"pu:4\"\n",
        ),
        (
            "state",
            "topology = \"pu:2\"\n[[wiring.states]]\ntopology = \"pu:2\"\n",
        ),
    ];
    stage.write("series.csv", "wall,user\n0.1,0.1\nfast,0.1\n");
    stage.write("series.csv.xz", "this is not xz");
    let mut lines = Vec::new();
    for (name, text) in files {
        stage.write(&format!("{name}.toml"), text);
        lines.push(format!("compare --machine sim:{name}.toml -- prog"));
    }
    lines.extend(
        [
            "topology --machine remote",
            "topology --machine sim:",
            "topology --machine sim:missing.toml",
            "topology --machine 'sim:core:2'",
            "topology --machine 'sim:core:0 pu:1'",
            "topology --machine 'sim:l3(size=32MB):2 pu:1'",
            "topology --machine 'sim:core:99999 pu:99999'",
        ]
        .map(str::to_owned),
    );
    refused(&stage, "machines", lines);
}

#[test]
fn stores() {
    let stage = Stage::new();
    std::fs::create_dir(stage.folder.path().join("folder")).unwrap();
    let lines = [
        "record history --store postgres://127.0.0.1:1/db",
        "record history --store sqlite:",
        "record history --store none",
        "record history --store same.toml",
        "record history --store ./folder",
        "record history --store same.toml/pinwise.db",
        "record show last",
        "record show missing",
        "record show missing --format csv",
    ]
    .map(str::to_owned);
    refused(&stage, "stores", lines);
}

#[test]
fn files_of_machines() {
    let stage = Stage::new();
    let files = [
        ("empty", ""),
        ("text", "hello\n"),
        (
            "v1.xml",
            "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n<topology>\n<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\"/></topology>",
        ),
        ("v4.xml", "<topology version=\"4.0\"/>"),
        ("html.xml", "<html></html>"),
        (
            "cut.xml",
            "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n<object type=\"Machine\">",
        ),
        (
            "no-cpus.xml",
            "<topology version=\"2.0\"><object type=\"Machine\"/></topology>",
        ),
        (
            "bitmap.xml",
            "<topology version=\"2.0\">\n<object type=\"PU\" os_index=\"0\" cpuset=\"zero\"/></topology>",
        ),
        ("newer.capture", "pinwise-capture 2\n"),
        ("line.capture", "pinwise-capture 1\nno tab here\n"),
    ];
    std::fs::create_dir(stage.folder.path().join("folder")).unwrap();
    let mut lines = vec![
        "topology --from missing".to_owned(),
        "topology --from folder".to_owned(),
        "topology --save folder".to_owned(),
    ];
    for (name, text) in files {
        stage.write(name, text);
        lines.push(format!("topology --from {name}"));
    }
    refused(&stage, "files", lines);
}
