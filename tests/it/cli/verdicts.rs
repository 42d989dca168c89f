//! What `compare` and `aa` conclude, one machine per conclusion.

use super::Stage;

#[test]
fn a_winner_comes_with_its_command() {
    let ran = Stage::new().snapshot(
        "winner",
        "compare --machine sim:share.toml --seed 1 -- prog -t 2",
    );
    assert!(ran.out.contains("→ Run: taskset -c 0-3 prog -t 2\n"));
}

#[test]
fn arms_that_are_the_same() {
    let ran = Stage::new().snapshot(
        "same",
        "compare --machine sim:same.toml --seed 1 --place os-default --place cpu:0 -- prog",
    );
    assert!(ran.out.contains("All arms are the same within ±1.0 %"));
}

#[test]
fn nothing_beats_doing_nothing() {
    let ran = Stage::new().snapshot(
        "leave-alone",
        "compare --machine sim:slow.toml --seed 1 -- prog",
    );
    assert!(ran.out.contains("Leave it alone"));
}

#[test]
fn undecided_says_what_is_possible_and_how_long_it_takes() {
    let stage = Stage::new();
    let line =
        "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --budget 30s";
    let ran = stage.snapshot("undecided", &format!("{line} -- prog"));
    assert!(
        ran.out.contains("more for ±5.0 %") && ran.out.contains("min for ±1.0 %"),
        "{ran}"
    );
    assert!(ran.err.contains("Too noisy for this budget"), "{ran}");
}

#[test]
fn clearly_worse_arms_stop_using_time() {
    let stage = Stage::new();
    let arms = "--place os-default --place one-core --place one-package";
    let line = format!("compare --machine sim:hopeless.toml --seed 1 {arms} --budget 60s -- prog");
    let ran = stage.snapshot("clearly-worse", &line);
    assert!(ran.out.contains("blocks of up to 3 runs"), "{ran}");
    let json = stage.run(&format!(
        "{} --format json -- prog",
        line.trim_end_matches(" -- prog")
    ));
    let record: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let confirmed = |arm: usize| {
        let runs = record["arms"][arm]["runs"].as_array().unwrap().iter();
        runs.filter(|run| run["phase"] == "confirmation").count() as u64
    };
    let dropped = &record["contrasts"][0];
    assert_eq!(dropped["arm"], "one-core");
    assert_eq!(dropped["verdict"], "slower");
    assert_eq!(dropped["dropped_after"].as_u64(), Some(confirmed(1)));
    // The time goes to those that may still be the choice.
    assert_eq!(confirmed(0), confirmed(2));
    assert!(confirmed(0) > 2 * confirmed(1), "{}", confirmed(0));
    // None is dropped where every width was asked for.
    let all = stage.run(&line.replace("--budget", "--precision 0.1% --budget"));
    assert!(all.out.contains("blocks of 3 runs"), "{all}");
}

#[test]
fn too_few_runs_allow_no_claim() {
    let stage = Stage::new();
    let line = "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0";
    stage.snapshot("one-run", &format!("{line} --max-runs 1 -- prog"));
    stage.snapshot("four-runs", &format!("{line} --max-runs 4 -- prog"));
}

/// Runs of 0.5 s: what is said, and that no more blocks are begun than fit.
#[test]
fn a_budget_is_kept_and_what_it_allows_is_reported() {
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
        let record = stage.json(&format!("{line} --budget {budget} -- prog"));
        assert_eq!(record["blocks"], blocks, "{ran}");
        let most_s = if blocks == 1 { 1.3 } else { 4.4 };
        assert!(record["elapsed_s"].as_f64().unwrap() < most_s, "{ran}");
    }
    let enough = stage.run(&format!("{line} --budget 30s --min-effect 30% -- prog"));
    assert!(!enough.err.contains("too short"), "{enough}");
}

#[test]
fn a_gate_that_is_open_says_so() {
    let stage = Stage::new();
    let line = "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --max-runs 20 --fail-if-slower 2%";
    let open = stage.snapshot("limit-undecided", &format!("{line} -- prog"));
    assert_eq!(open.status, 3, "{open}");
    let words = "--fail-if-slower: cpu:0 is undecided at 2.0 %: between ";
    assert!(open.err.contains(words), "{open}");
    let status = |more: &str| stage.run(&format!("{line} {more} -- prog")).status;
    assert_eq!(status("--undecided pass"), 0);
    assert_eq!(status("--undecided fail"), 1);
    // That there is no verdict is another matter.
    assert_eq!(status("--undecided pass --require-verdict"), 3);
    let alone = line.replace("--fail-if-slower 2%", "--undecided pass");
    assert_eq!(stage.run(&format!("{alone} -- prog")).status, 2);
}

#[test]
fn another_baseline() {
    Stage::new().snapshot(
        "baseline",
        "compare --machine sim:slow.toml --seed 1 --baseline cpu:0 --place os-default --place cpu:0 --max-runs 20 -- prog",
    );
}

#[test]
fn a_placebo_is_no_choice() {
    let ran = Stage::new().snapshot(
        "placebo",
        "compare --machine sim:slow.toml --seed 1 --place os-default --place cpu:0 --placebo --max-runs 12 -- prog",
    );
    // Undecided against the placebo is no gain that could still be had.
    assert!(ran.out.contains("Leave it alone"), "{ran}");
    assert!(ran.out.contains("The placebo did not differ"), "{ran}");
}

#[test]
fn a_placebo_that_differs_is_a_false_alarm() {
    // At most one seed in twenty gives one.
    let ran = Stage::new().snapshot(
        "placebo-alarm",
        "compare --machine sim:slow.toml --seed 9 --place os-default --place cpu:0 --placebo --max-runs 12 -- prog",
    );
    assert!(ran.out.contains("The placebo differed"), "{ran}");
}

#[test]
fn twenty_identical_arms() {
    let ran = Stage::new().snapshot(
        "twenty-identical",
        &format!(
            "compare --machine sim:twenty.toml --seed 1{} --max-runs 15 -- prog",
            twenty_cpus()
        ),
    );
    assert!(!ran.out.contains("is best"), "{ran}");
    assert!(ran.out.contains("Eliminated in screening"), "{ran}");
}

#[test]
fn the_best_of_twenty_one() {
    let ran = Stage::new().snapshot(
        "twenty-winner",
        &format!(
            "compare --machine sim:twenty.toml --seed 1 --place os-default{} --max-runs 15 -- picky",
            twenty_cpus()
        ),
    );
    assert!(ran.out.contains("cpu:7 is best"), "{ran}");
}

fn twenty_cpus() -> String {
    (0..20).map(|cpu| format!(" --place cpu:{cpu}")).collect()
}

#[test]
fn a_long_command_is_not_broken() {
    let ran = Stage::new().snapshot(
        "long-command",
        "compare --machine sim:share.toml --seed 1 --place os-default --place one-llc -- prog --input '/srv/data/a file with a long name.dat' --output /dev/null --threads 2",
    );
    assert!(ran.out.lines().any(|line| {
        line.starts_with("→ Run: taskset -c 0-3 prog ") && line.ends_with("--threads 2")
    }));
}

#[test]
fn hostile_names_cannot_fool_a_terminal() {
    Stage::new().snapshot(
        "hostile-names",
        "compare --machine sim:programs.toml --seed 3 --max-runs 8 --command \"old '\u{1b}[31mred'\" --command new --name \"a\u{7}b\" --name 'one\ntwo'",
    );
}

#[test]
fn placements_that_are_the_same_here_are_merged() {
    let ran = Stage::new().snapshot(
        "merged",
        "compare --machine sim:share.toml --seed 1 --place os-default --place compact --place one-llc --place one-numa --place cpu:0-3 --max-runs 20 -- prog",
    );
    assert!(ran.err.contains("merged"), "{ran}");
}

#[test]
fn the_noise_floor() {
    let stage = Stage::new();
    stage.snapshot(
        "aa",
        "compare --self --machine sim:same.toml --seed 1 -- prog",
    );
    stage.snapshot(
        "aa-noisy",
        "compare --self --machine sim:noisy.toml --seed 1 --arms 4 --max-runs 50 -- prog",
    );
}

#[test]
fn a_false_alarm_is_called_one() {
    let ran = Stage::new().snapshot(
        "aa-false-alarm",
        "compare --self --machine sim:same.toml --seed 141 -- prog",
    );
    assert!(ran.out.contains("False alarm"), "{ran}");
}
