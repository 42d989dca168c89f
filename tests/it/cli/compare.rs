//! `compare`: commands, placements and metrics as arms, budgets, gates, and exit statuses.

use super::Stage;
use crate::replay::read_series;
use crate::support::decode_output;

const PROGRAMS: &str = "compare --machine sim:programs.toml --seed 3 --max-runs 30";

#[test]
fn commands_are_parsed_as_by_hyperfine() {
    let stage = Stage::new();
    let arms = |line: &str| {
        let record = stage.run_for_json(&format!("compare --machine sim:programs.toml {line}"));
        let arms = record["arms"].as_array().unwrap().clone();
        assert_eq!(arms[0]["runs"].as_array().unwrap().len(), 6, "{line}");
        let names = arms
            .iter()
            .map(|arm| arm["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(arms("-r 6 -w 1 'old -x' new"), ["old -x", "new"]);
    assert_eq!(arms("--runs 6 -n a -n b 'old -x' 'new -x'"), ["a", "b"]);
    assert_eq!(
        arms("-r 6 -i -L threads 1,2 'old -t {threads}'"),
        ["threads=1", "threads=2"]
    );
    // A program with arguments needs no `--`, and a list of CPUs no `cpu:`.
    let record =
        stage.run_for_json("compare --machine sim:same.toml -r 6 --place 0 --place 1 sh run.sh");
    let commands = record["arms"][0]["command"].to_string();
    assert_eq!(commands, r#"["sh","run.sh"]"#);
    assert_eq!(record["arms"][1]["name"], "cpu:1");
}

#[test]
fn arms_of_commands_have_distinct_names() {
    let stage = Stage::new();
    let record = stage.run_for_json(&format!(
        "{PROGRAMS} --command old --command old --command old"
    ));
    let names = |record: &serde_json::Value| {
        let arms = record["arms"].as_array().unwrap().iter();
        let names = arms.map(|arm| arm["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(names(&record), ["old", "old (2)", "old (3)"]);
    // Names go by position; a command without one is its own name.
    let record = stage.run_for_json(&format!(
        "{PROGRAMS} --command old --command new --name before"
    ));
    assert_eq!(names(&record), ["before", "new"]);
    // A failure may be accepted, and a faster arm passes any gate.
    for line in [
        "--ignore-failure --command old --command broken",
        "--command new --command old --fail-if-slower 0%",
    ] {
        stage.run_ok(&format!("{PROGRAMS} {line}"));
    }
}

#[test]
fn memory_policies_are_arms_of_each_placement() {
    let stage = Stage::new();
    let compare = "compare --machine sim:nodes.toml --seed 1 --threads-env 8";
    // Name, policy and nodes of each arm.
    let arms = |options: &str| -> Vec<String> {
        let record = stage.run_for_json(&format!("{compare} --max-runs 8 {options} -- prog"));
        let text = |value: &serde_json::Value| value.to_string().replace('"', "");
        let arms = record["arms"].as_array().unwrap().iter();
        arms.map(|arm| {
            let place = &arm["placement"];
            [&arm["name"], &place["memory"], &place["memory_nodes"]]
                .map(text)
                .join(" ")
        })
        .collect()
    };
    assert_eq!(
        arms("--memory interleave --memory bind:1"),
        [
            "os-default null []",
            "os-default/mem=interleave interleave [0,1]",
            "os-default/mem=bind:1 bind [1]",
        ]
    );
    assert_eq!(
        arms("--memory weighted --memory preferred --place one-numa --place spread*8"),
        [
            "one-numa null []",
            "one-numa/mem=weighted weighted [0]",
            "one-numa/mem=preferred preferred [0]",
            "spread*8 null []",
            "spread*8/mem=weighted weighted [0,1]",
            "spread*8/mem=preferred preferred [0,1]",
        ]
    );
    // The same nodes by two names are one arm.
    assert_eq!(arms("--memory bind --memory bind:0-1").len(), 2);
    let merged = format!("{compare} --max-runs 8 --memory bind --memory bind:0-1 -v -- prog");
    let merged = stage.run_ok(&merged);
    let same = "for the same CPUs and memory as os-default/mem=bind here: merged.";
    assert!(merged.err.contains(same), "{merged}");
    let text = merged.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = "means the same CPUs and memory as os-default/mem=bind here and was merged";
    assert!(text.contains(same), "{merged}");
    let record = stage.run_for_json(&format!(
        "{compare} --memory interleave --max-runs 30 -- prog"
    ));
    let verdict = &record["contrasts"][0];
    assert_eq!(verdict["verdict"], "faster", "{verdict}");
}

#[test]
fn metrics_that_a_run_lacks_are_reported() {
    let metrics = [
        "regex:nothing lower",
        "regex:simulated (\\w+) lower",
        "json:.a lower",
        "cycles",
        "max-rss",
    ];
    let lines = metrics.map(|metric| {
        let places = "--place os-default --place cpu:0";
        format!("compare --machine sim:same.toml --seed 1 --metric '{metric}' {places} -- prog")
    });
    let lines = lines.each_ref().map(String::as_str);
    Stage::new().check_transcript("metric-missing", &lines);
}

#[test]
fn a_verdict_can_be_required() {
    let stage = Stage::new();
    let line = "--seed 1 --place os-default --place cpu:0 --max-runs 10 --require-verdict -- prog";
    let status = |machine: &str| {
        stage
            .run(&format!("compare --machine sim:{machine}.toml {line}"))
            .status
    };
    assert_eq!(status("noisy"), 3);
    assert_eq!(status("slow"), 0);
}

/// At 80 and at 120 columns.
#[test]
fn two_arms_without_findings_take_at_most_twelve_lines() {
    let stage = Stage::new();
    for machine in ["slow", "same", "noisy"] {
        for columns in ["80", "120"] {
            let places = "--place os-default --place cpu:0 --budget 30s";
            let line = format!("compare --machine sim:{machine}.toml --seed 1 {places} -- prog");
            let output = stage.command(&line).env("COLUMNS", columns).output();
            let (out, _) = decode_output(&output.unwrap());
            assert!(!out.contains("Findings"), "{out}");
            assert!((8..=12).contains(&out.lines().count()), "{columns}: {out}");
        }
    }
}

#[test]
fn an_undecided_comparison_ends_with_the_command_that_decides_it() {
    let stage = Stage::new();
    stage.write(
        "wavering.toml",
        "topology = \"package:1 core:2 pu:1\"\n[workload.default]\nbase_s = 0.5\n[noise]\nsd = 0.03\n",
    );
    let efforts = [
        ("--max-runs 12", "--max-runs "),
        ("-r 12", "--max-runs "),
        ("-M12", "--max-runs "),
        ("--budget 15s", "--budget "),
        // Both limits would end it again: they are replaced by one.
        ("--runs=12 --budget 15s", "--max-runs "),
    ];
    for (effort, more) in efforts {
        let places = "--place os-default --place cpu:0 --min-effect 2%";
        let line = format!("{effort} {places} -- prog -r 12");
        let line = format!("compare --machine sim:wavering.toml --seed 1 {line}");
        let ran = stage.run_ok(&line);
        assert!(ran.out.contains("\nUndecided: "), "{ran}");
        let next = ran.out.lines().last().unwrap_or_default();
        let next = next.strip_prefix("→ Run: pinwise ").unwrap_or_default();
        assert!(next.starts_with(&format!("compare {more}")), "{ran}");
        assert!(next.ends_with(" --min-effect 2% -- prog -r 12"), "{ran}");
        let again = stage.run_ok(next);
        assert!(!again.out.contains("\nUndecided: "), "{again}");
    }
}

#[test]
fn one_arm_alone_is_timed() {
    let stage = Stage::new();
    let timed = "compare --machine sim:slow.toml --seed 1 --place cpu:0";
    stage.check_snapshot("timed", &format!("{timed} -- prog"));
    let record = stage.run_for_json(&format!("{timed} -- prog"));
    let arms = record["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 1);
    assert_eq!(record["contrasts"].as_array().unwrap().len(), 0);
    assert_eq!(record["verdict"]["kind"], "timed");
    let estimate = &arms[0]["estimate"];
    let [low, high] = ["low", "high"].map(|end| estimate[end].as_f64().unwrap());
    assert!(low < 0.55 && 0.55 < high && high < 1.02 * low, "{estimate}");
    // The number of runs follows --max-runs and --precision.
    let runs = |line: &str| {
        let record = stage.run_for_json(line);
        record["arms"][0]["runs"].as_array().unwrap().len()
    };
    assert_eq!(runs(&format!("{timed} -r 3 -- prog")), 3);
    let wide = runs(&format!("{timed} --precision 5% -- prog"));
    assert!(wide < arms[0]["runs"].as_array().unwrap().len(), "{wide}");
    let refused = stage.run(&format!("{timed} --fail-if-slower 2% -- prog"));
    assert_eq!(refused.status, 2, "{refused}");
    for shown in ["show", "export", "report"] {
        stage.run_ok(&format!("record {shown} last"));
    }
}

#[test]
fn a_comparison_without_figures_is_not_stored() {
    let stage = Stage::new();
    let metric = "--metric 'regex:nothing lower' --place os-default --place cpu:0";
    let failed = stage.run(&format!("compare --machine sim:same.toml {metric} -- prog"));
    assert_eq!(failed.status, 2, "{failed}");
    assert!(!failed.out.contains("Record "), "{failed}");
    let kept = stage.run_for_json("record list");
    assert_eq!(kept["records"].as_array().map(Vec::len), Some(0), "{kept}");
}

#[test]
fn a_seed_repeats_the_runs_and_another_does_not() {
    let stage = Stage::new();
    let runs = |seed: u32| {
        let mut record = stage.run_for_json(&format!(
            "compare --machine sim:slow.toml --seed {seed} --place os-default --place cpu:0 --max-runs 12 -- prog"
        ));
        // Only id and time of the experiment differ.
        let fields = record.as_object_mut().unwrap();
        fields.remove("id");
        fields.remove("started");
        record
    };
    assert_eq!(runs(7), runs(7));
    assert_ne!(runs(7)["arms"], runs(8)["arms"]);
    let orders = |record: &serde_json::Value| -> Vec<u64> {
        let runs = record["arms"][0]["runs"].as_array().unwrap();
        runs.iter()
            .map(|run| run["order"].as_u64().unwrap())
            .collect()
    };
    assert_ne!(orders(&runs(7)), orders(&runs(8)));
}

#[test]
fn without_a_seed_the_drawn_one_is_recorded_and_repeats() {
    let stage = Stage::new();
    let line = "compare --machine sim:slow.toml --place os-default --place cpu:0 --max-runs 8";
    let drawn = stage.run_for_json(&format!("{line} -- prog"));
    let seed = drawn["seed"].as_u64().unwrap();
    let again = stage.run_for_json(&format!("{line} --seed {seed} -- prog"));
    assert_eq!(drawn["arms"], again["arms"]);
}

#[test]
fn quiet_means_no_notes() {
    let stage = Stage::new();
    let line = "compare --machine sim:share.toml --seed 1 --max-runs 8";
    let loud = stage.run_ok(&format!("{line} -- prog"));
    let quiet = stage.run_ok(&format!("{line} --quiet -- prog"));
    assert!(loud.err.contains("keeps 2 CPUs busy"), "{loud}");
    assert!(quiet.err.is_empty(), "{quiet}");
    assert_eq!(loud.out, quiet.out);
}

#[test]
fn quiet_keeps_warnings() {
    let stage = Stage::new();
    let line = "compare --machine sim:same.toml --seed 1 --max-runs 8 --place os-default";
    let ran = stage.run_ok(&format!("{line} --place cpu:0 --quiet -- prog '>' out"));
    assert!(ran.err.starts_with("warning: "), "{ran}");
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
    let help = stage.run_ok("compare --help").out;
    assert!(help.contains("Only warnings and errors"), "{help}");
}

#[test]
fn the_id_of_an_unstored_record_is_not_printed() {
    let stage = Stage::new();
    let line = "compare --machine sim:same.toml --seed 1 --max-runs 8 --place os-default \
                --place cpu:0";
    let kept = stage.run_ok(&format!("{line} -- prog"));
    assert!(kept.out.contains("Record "), "{kept}");
    let lost = stage.run_ok(&format!("{line} --store none -- prog"));
    assert!(!lost.out.contains("Record "), "{lost}");
    assert!(lost.out.contains("Not stored.\n"), "{lost}");
}

/// Under load wall-clock time varies. CPU time decides then, unless only wall-clock time is
/// requested.
#[test]
fn cpu_time_decides_between_two_commands_under_load() {
    let stage = Stage::new();
    stage.write(
        "loaded.toml",
        &format!(
            "topology = \"core:2 pu:1\"\n[workload.old]\nbase_s = 0.2\n\
             [workload.new]\nbase_s = 0.206\n[workload.copy]\nbase_s = 0.2\n[noise]\n{}\n",
            read_series("aa_cpu1.csv.xz")
        ),
    );
    let line = "compare --machine sim:loaded.toml --seed 1 --max-runs 60";
    let commands = "--command old --command new";
    stage.check_snapshot("compared-by-cpu-time", &format!("{line} {commands}"));
    let compare = |more: &str| stage.run_for_json(&format!("{line} {more} {commands}"));
    let found = compare("");
    let contrast = &found["contrasts"][0];
    assert_eq!(contrast["verdict"], "undecided");
    assert_eq!(contrast["cpu_time"]["decides"], true);
    assert_eq!(found["verdict"]["kind"], "best");
    assert_eq!(found["best"], "old");
    let by_wall = compare("--metric wall");
    assert_eq!(by_wall["contrasts"][0]["cpu_time"]["decides"], false);
    assert_eq!(by_wall["verdict"]["kind"], "undecided");
    // The same CPU time ends it as well.
    let line_of_same = line.replace("--seed 1", "--seed 3 --min-effect 2%");
    let same = stage.run_for_json(&format!("{line_of_same} --command old --command copy"));
    assert_eq!(same["verdict"]["kind"], "same");
    assert_eq!(same["stopped"], "precision");
    assert_eq!(same["arms"][1]["standing"], "same CPU time");
    let sentence = same["verdict"]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("copy needs the same CPU time as old, between "),
        "{sentence}"
    );
    // The limit applies to CPU time, too.
    let status = |limit: &str| {
        stage
            .run(&format!("{line} --fail-if-slower {limit} {commands}"))
            .status
    };
    assert_eq!(status("1%"), 1);
    assert_eq!(status("3%"), 3);
}

#[test]
fn clearly_worse_arms_stop_using_time() {
    let stage = Stage::new();
    let arms = "--place os-default --place one-core --place one-package";
    let line = format!("compare --machine sim:hopeless.toml --seed 1 {arms} --budget 60s");
    let record = stage.run_for_json(&format!("{line} -- prog"));
    let confirmed = |arm: usize| {
        let runs = record["arms"][arm]["runs"].as_array().unwrap().iter();
        runs.filter(|run| run["phase"] == "confirmation").count() as u64
    };
    let dropped = &record["contrasts"][0];
    assert_eq!(dropped["arm"], "one-core");
    assert_eq!(dropped["verdict"], "slower");
    assert_eq!(dropped["dropped_after"].as_u64(), Some(confirmed(1)));
    // The other arms get the time.
    assert_eq!(confirmed(0), confirmed(2));
    assert!(confirmed(0) > 2 * confirmed(1), "{}", confirmed(0));
    // With --precision no arm is dropped.
    let all = stage.run(&format!("{line} --precision 0.1% -- prog"));
    assert!(all.out.contains("blocks of 3 runs"), "{all}");
}

/// Runs take 0.5 s.
#[test]
fn no_more_blocks_are_run_than_the_budget_allows_and_short_ones_are_warned_of() {
    let stage = Stage::new();
    let line = "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0";
    for (budget, blocks, message) in [
        ("600ms", 1, "too short for one block"),
        ("2s", 1, "too short for a verdict"),
        (
            "4s",
            3,
            "a verdict takes at least 6 such blocks (--budget 9s)",
        ),
    ] {
        let ran = stage.run(&format!("{line} --budget {budget} -- prog"));
        assert!(ran.err.contains(message), "{ran}");
        let record = stage.run_for_json(&format!("{line} --budget {budget} -- prog"));
        assert_eq!(record["blocks"], blocks, "{ran}");
        let most_s = if blocks == 1 { 1.3 } else { 4.4 };
        assert!(record["elapsed_s"].as_f64().unwrap() < most_s, "{ran}");
    }
    let enough = stage.run(&format!("{line} --budget 30s --min-effect 30% -- prog"));
    assert!(!enough.err.contains("too short"), "{enough}");
}

#[test]
fn an_undecided_gate_exits_with_the_chosen_status() {
    let stage = Stage::new();
    let line = "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --max-runs 20 --fail-if-slower 2%";
    let status = |more: &str| stage.run(&format!("{line} {more} -- prog")).status;
    assert_eq!(status("--undecided pass"), 0);
    assert_eq!(status("--undecided fail"), 1);
    // A required verdict has its own exit status.
    assert_eq!(status("--undecided pass --require-verdict"), 3);
    let alone = line.replace("--fail-if-slower 2%", "--undecided pass");
    assert_eq!(stage.run(&format!("{alone} -- prog")).status, 2);
}
