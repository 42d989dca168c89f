//! Parses output of Slurm 22.05.8 on the cluster of `tests/env/slurm`.

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::call::format_message;
use super::{jobs, nodes, parse_job_id, script};
use crate::launcher::{Choice, JobState, Launcher, NodeRequest, Stage, Task};
use pinwise_record::FleetJob;

const SINFO: &str = include_str!("golden/sinfo.txt");
const SQUEUE: &str = include_str!("golden/squeue.txt");
const RESTARTS: &str = include_str!("golden/restarts.txt");
const NAME: &str = "pinwise-f";

fn choose(wanted: &NodeRequest) -> Result<Choice, String> {
    nodes::choose(wanted, &nodes::parse_sinfo(SINFO).unwrap()).map_err(|error| error.to_string())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn request_partition(name: &str) -> NodeRequest {
    NodeRequest {
        partition: Some(name.to_owned()),
        ..NodeRequest::default()
    }
}

fn request_list(list: &str) -> NodeRequest {
    NodeRequest {
        list: Some(list.to_owned()),
        ..NodeRequest::default()
    }
}

#[test]
fn drained_and_dead_nodes_are_not_asked_and_reported() {
    let choice = choose(&request_partition("all")).unwrap();
    assert_eq!(choice.nodes, names(&["n1", "n3"]));
    assert_eq!(choice.count, 2);
    assert_eq!(
        choice.left_out,
        names(&["n2: draining: bad DIMM | \"x", "n4: down: Not responding"])
    );
    let named = choose(&request_list("n[1-2]")).unwrap();
    assert_eq!(named.nodes, names(&["n1"]));
    assert_eq!(named.left_out.len(), 1);
    let error = choose(&request_list("n2,n4")).unwrap_err();
    assert!(
        error.starts_with("no node is usable: n2: draining"),
        "{error}"
    );
}

#[test]
fn states_with_a_sign_are_those_without() {
    let check = |state: &str, is_asked: bool| {
        let found = nodes::parse_sinfo(&format!("a|{state}|p*|(null)|none\n")).unwrap();
        let choice = nodes::choose(&request_partition("p"), &found);
        assert_eq!(choice.is_ok(), is_asked, "{state}");
    };
    for state in [
        "idle",
        "idle~",
        "idle#",
        "mixed-",
        "IDLE",
        "reserved",
        "planned",
        "maint",
        "powered_down",
    ] {
        check(state, true);
    }
    for state in [
        "down",
        "down*",
        "drained*",
        "idle*",
        "fail",
        "DRAINED",
        "inval",
        "draining@",
    ] {
        check(state, false);
    }
}

#[test]
fn unsuitable_nodes_are_reported() {
    let check = |wanted: &NodeRequest, words: &str| {
        let error = choose(wanted).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains('\n'), "{error}");
    };
    check(&NodeRequest::default(), "no nodes given");
    check(
        &request_list("n[1-9]"),
        "Slurm has no node n5 (sinfo -N lists the nodes)",
    );
    check(
        &request_list("n["),
        "--nodelist 'n[': a bracket is not closed",
    );
    check(
        &request_partition("nope"),
        "no partition 'nope' with nodes (there are all, short)",
    );
    let constraint = |text: &str| NodeRequest {
        constraint: Some(text.to_owned()),
        ..NodeRequest::default()
    };
    check(&constraint("gpu"), "--constraint: no node has 'gpu'");
    check(
        &constraint("[f1|f2]*2"),
        "with --nodes N Slurm itself reads it",
    );
    check(&constraint("f1&\u{1b}[2J"), "\\u{1b}[2J");
    assert_eq!(
        choose(&constraint("f1|f3&any")).unwrap().nodes,
        names(&["n1", "n3"])
    );
    let mut both = request_list("n1,n3");
    both.constraint = Some("f3".to_owned());
    let choice = choose(&both).unwrap();
    assert_eq!(choice.nodes, names(&["n3"]));
    assert!(choice.left_out[0].starts_with("n1: not in the requested partition"));
}

#[test]
fn slurm_is_not_asked_for_more_nodes_than_there_are() {
    let wanted = |count| NodeRequest {
        count: Some(count),
        ..NodeRequest::default()
    };
    let choice = choose(&wanted(4)).unwrap();
    assert_eq!((choice.count, choice.nodes.len()), (4, 0));
    let error = choose(&wanted(5)).unwrap_err();
    assert_eq!(error, "--nodes 5: only 4 nodes match the request");
    let mut unknown = request_partition("nope");
    unknown.count = Some(5);
    assert_eq!(
        choose(&unknown).unwrap().count,
        5,
        "sbatch reports it better"
    );
}

fn submit_jobs(jobs: &[(&str, Option<&str>)]) -> Vec<FleetJob> {
    let job = |(id, node): &(&str, Option<&str>)| FleetJob {
        id: (*id).to_owned(),
        node: node.map(str::to_owned),
        submitted: "2026-11-23T02:33:10Z".to_owned(),
    };
    jobs.iter().map(job).collect()
}

#[test]
fn jobs_are_reported_by_node_with_slurms_words() {
    let submitted = submit_jobs(&[
        ("10", Some("n1")),
        ("11", Some("n1")),
        ("12", None),
        ("13", None),
        ("14", Some("n4")),
        ("15", Some("n4")),
        ("4711", Some("n3")),
    ]);
    let listed = jobs::parse_squeue(SQUEUE, NAME).unwrap();
    let states = jobs::combine_states(&submitted, &listed, &jobs::parse_restarts(RESTARTS));
    let line = |state: &JobState| {
        let node = state.node.as_deref().unwrap_or("-");
        format!(
            "{} {node} {:?} {} {}",
            state.job, state.stage, state.restarts, state.description
        )
    };
    let lines: Vec<String> = states.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "10 n1 Ended 0 COMPLETED",
            "11 n1 Failed 0 FAILED (NonZeroExitCode)",
            "12 n1 Running 0 RUNNING",
            "12 n3 Running 0 RUNNING",
            "13_3 - Queued 0 PENDING (JobArrayTaskLimit)",
            "13_1 - Queued 1 PENDING (JobArrayTaskLimit)",
            "13_2 n2 Running 0 RUNNING",
            // A job with another name: the number was reused.
            "14 n4 Unknown 0 Slurm no longer knows this job",
            "15 n4 Failed 0 NODE_FAIL (NodeDown)",
            "4711 n3 Unknown 0 Slurm no longer knows this job",
        ]
    );
}

#[test]
fn accounting_is_parsed_as_in_its_man_page() {
    let text = "7|CANCELLED by 1000|n[1-2]|pinwise-f\n8_2|NODE_FAIL|None assigned|pinwise-f\n\
                9|COMPLETED|n1|other|name\n";
    let listed = jobs::parse_sacct(text, NAME).unwrap();
    let submitted = submit_jobs(&[("7", None), ("8", None), ("9", None)]);
    let states = jobs::combine_states(&submitted, &listed, &std::collections::BTreeMap::new());
    let stages: Vec<Stage> = states.iter().map(|state| state.stage).collect();
    assert_eq!(
        stages,
        [Stage::Failed, Stage::Failed, Stage::Failed, Stage::Unknown]
    );
    assert_eq!(states[0].description, "CANCELLED by 1000");
}

#[test]
fn messages_of_slurm_are_shown_on_format_message() {
    let check = |text: &str, wanted: &str| assert_eq!(format_message(text, "sbatch"), wanted);
    check(
        "sbatch: error: invalid partition specified: nope\n\
         sbatch: error: Batch job submission failed: Invalid partition name specified\n",
        "invalid partition specified: nope; \
         Batch job submission failed: Invalid partition name specified",
    );
    check(
        "slurm_load_jobs error: Invalid job id specified\n",
        "slurm_load_jobs error: Invalid job id specified",
    );
    check("sbatch: \u{1b}]0;x\u{7}\n\n", "\\u{1b}]0;x\\u{7}");
    assert!(format_message(&"ä".repeat(5000), "sbatch").chars().count() < 500);
}

#[test]
fn the_number_of_a_job_is_read() {
    for (output, wanted) in [
        ("12\n", "12"),
        ("12;east\n", "12"),
        ("site: hello\n12\n\n", "12"),
    ] {
        assert_eq!(parse_job_id(output).unwrap(), wanted);
    }
    for bad in [
        "",
        "\n",
        "Submitted batch job 12",
        "-1",
        "123456789012345678901",
        "\u{1b}[2J",
    ] {
        let error = parse_job_id(bad).unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

fn task(folder: &str) -> Task {
    Task {
        fleet: "f".to_owned(),
        folder: PathBuf::from(folder),
        owner: 1000,
    }
}

#[test]
fn each_requested_node_has_its_own_job() {
    let wanted = NodeRequest {
        partition: Some("all".to_owned()),
        account: Some("a b".to_owned()),
        time: Some(Duration::from_secs(3725)),
        ..NodeRequest::default()
    };
    let choice = Choice {
        nodes: names(&["n1", "n2", "n3", "n4", "n5"]),
        count: 5,
        left_out: Vec::new(),
    };
    let plan = super::Slurm
        .plan(&task("/shared/my 'fleet'/100%"), &wanted, &choice)
        .unwrap();
    insta::assert_snapshot!(plan);
}

#[test]
fn several_nodes_are_one_job_or_an_array() {
    let choice = Choice {
        count: 16,
        ..Choice::default()
    };
    let words = |is_array| {
        let wanted = NodeRequest {
            count: Some(16),
            is_array,
            ..NodeRequest::default()
        };
        let jobs = script::plan_jobs(&task("/f"), &wanted, &choice).unwrap();
        assert_eq!(jobs.len(), 1);
        jobs[0].arguments.join(" ")
    };
    let common = "--open-mode=append --exclusive --mem=0 --requeue --export=ALL";
    assert_eq!(
        words(false),
        format!(
            "--parsable --job-name=pinwise-f --output=/f/log/%j.txt {common} --nodes=16 \
             --ntasks=16 --ntasks-per-node=1 --no-kill /f/job.sh"
        )
    );
    assert_eq!(
        words(true),
        format!(
            "--parsable --job-name=pinwise-f --output=/f/log/%A_%a.txt {common} --nodes=1 \
             --ntasks=1 --array=1-16 /f/job.sh"
        )
    );
}

#[test]
fn folders_that_slurm_would_misread_are_refused() {
    for bad in ["/a\\b", "/a\nb", "a/b", "/a\u{1b}b"] {
        let error = script::write_script(&task(bad)).unwrap_err().to_string();
        assert!(error.contains("--dir"), "{error}");
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}

/// Lines as in a listing, and arbitrary ones.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        "([0-9_\\[\\],n|*A-Z()\u{1b}-]{0,30}\n){0,4}",
        "[0-9]{1,3}\\|[A-Z_]{1,9}\\|n\\[[0-9,-]{1,12}\\]\\|pinwise-f\\|[^\n]{0,9}",
        "n[0-9]\\|[a-z*~]{1,9}\\|[a-z*]{1,5}\\|[a-z,]{0,9}\\|[^\n]{0,20}",
    ]
}

proptest! {
    #[test]
    fn no_listing_breaks_a_reader(text in hostile()) {
        let submitted = submit_jobs(&[("1", Some("n1")), ("22", None)]);
        let is_printable = |words: &str| !words.contains(char::is_control);
        match (jobs::parse_squeue(&text, NAME), jobs::parse_sacct(&text, NAME)) {
            (Ok(listed), Ok(more)) => {
                let all: Vec<_> = listed.into_iter().chain(more).collect();
                let states = jobs::combine_states(&submitted, &all, &jobs::parse_restarts(&text));
                prop_assert!(states.iter().all(|state| is_printable(&state.description)));
            }
            (first, second) => {
                let first = first.err().map(|error| error.to_string());
                let second = second.err().map(|error| error.to_string());
                prop_assert!(first.iter().chain(&second).all(|words| is_printable(words)));
            }
        }
        match nodes::parse_sinfo(&text) {
            Ok(found) => {
                if let Ok(choice) = nodes::choose(&request_partition("all"), &found) {
                    prop_assert!(choice.left_out.iter().all(|words| is_printable(words)));
                }
            }
            Err(error) => prop_assert!(is_printable(&error.to_string())),
        }
        prop_assert!(is_printable(&format_message(&text, "sbatch")));
    }
}
