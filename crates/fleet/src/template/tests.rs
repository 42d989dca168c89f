use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn make_task(folder: &str) -> Task {
    Task {
        fleet: "f1".to_owned(),
        folder: PathBuf::from(folder),
        owner: 1000,
    }
}

fn choose_nodes(nodes: &[&str]) -> Choice {
    Choice {
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        count: nodes.len(),
        left_out: Vec::new(),
    }
}

fn open_template(name: &str) -> Template {
    Template::parse(find_built_in(name).unwrap()).unwrap()
}

#[test]
fn built_in_templates_say_what_they_run() {
    let wanted = NodeRequest {
        time: Some(Duration::from_secs(5400)),
        ..NodeRequest::default()
    };
    let folder = "/shared/it's here";
    for (name, text) in BUILT_IN {
        let template = Template::parse(text).unwrap();
        assert_eq!(template.name(), name);
        let plan = template
            .plan(&make_task(folder), &wanted, &choose_nodes(&["n1"]))
            .unwrap();
        insta::assert_snapshot!(format!("template_{name}"), plan);
    }
}

#[test]
fn options_that_are_not_given_leave_no_line() {
    let plan = |wanted: &NodeRequest| {
        let plan = open_template("pbs").plan(&make_task("/f"), wanted, &choose_nodes(&["n1"]));
        plan.unwrap()
    };
    let without = plan(&NodeRequest::default());
    assert!(
        !without.contains("walltime") && !without.contains("#PBS -q"),
        "{without}"
    );
    let with = plan(&NodeRequest {
        partition: Some("a b".to_owned()),
        ..NodeRequest::default()
    });
    assert!(with.contains("#PBS -q 'a b'\n"), "{with}");
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    let check = |text: &str, place: &str, words: &str| {
        let error = Template::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(place) && error.contains(words), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    };
    let with = |line: &str| format!("name = \"x\"\n[submit]\ncommand = \"a\"\njob = '(a)'\n{line}");
    assert!(Template::parse(&with("")).is_ok());
    check("", "1:1", "name");
    check("name = \"a b\"\n[submit]\nscript = \"a\"", "1:8", "letters");
    check(
        "name = \"x\"\n[submit]",
        "2:1",
        "neither command nor script",
    );
    check(
        "name = \"x\"\n[submit]\ncommand = \"a\"",
        "3:11",
        "job is missing",
    );
    check(
        "name = \"x\"\n[submit]\ncommand = \"a\"\njob = 'a'",
        "4:7",
        "no group",
    );
    check(
        "name = \"x\"\n[submit]\ncommand = \"a\"\njob = '('",
        "4:7",
        "not a regular expression",
    );
    check(
        "name = \"x\"\n[submit]\ncommand = \"go {nodes}\"\njob = '(a)'",
        "3:15",
        "{nodes}",
    );
    check(
        "name = \"x\"\n[submit]\ncommand = \"go {job}\"\njob = '(a)'",
        "3:15",
        "no value here",
    );
    check(&with("quote = \"sh\""), "5:9", "shell or json");
    check(&with("ending = \"/x\""), "5:10", "ending");
    check(&with("retry = 3"), "5:1", "retry");
    check(&with("[limits]\nparallel = 0"), "6:12", "1 to 256");
    check(
        &with("[status]\ncommand = \"a\"\nstates = [{ pattern = 'a', stage = \"gone\" }]"),
        "7:",
        "stage",
    );
    check(&with("[nodes]\nprefix = \"../\""), "6:10", "letters");
}

#[test]
fn unused_options_of_a_template_are_refused() {
    let refused = |template: &Template, wanted: NodeRequest, words: &str| {
        let error = template.choose(&wanted).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let list = Some("n1".to_owned());
    let ssh = open_template("ssh");
    refused(&ssh, NodeRequest::default(), "--nodelist");
    refused(
        &ssh,
        NodeRequest {
            count: Some(3),
            ..NodeRequest::default()
        },
        "--nodes: ",
    );
    let partition = Some("p".to_owned());
    refused(
        &ssh,
        NodeRequest {
            list: list.clone(),
            partition,
            ..NodeRequest::default()
        },
        "--partition",
    );
    refused(
        &ssh,
        NodeRequest {
            list: Some("n[".to_owned()),
            ..NodeRequest::default()
        },
        "--nodelist 'n['",
    );
    let count = Some(2);
    let local = open_template("local")
        .choose(&NodeRequest {
            count,
            ..NodeRequest::default()
        })
        .unwrap();
    assert_eq!(local.nodes, ["local-1", "local-2"]);
}

#[test]
fn names_for_kubernetes_are_labels_and_differ() {
    assert_eq!(to_dns_label("pinwise-f1-n1"), "pinwise-f1-n1");
    let names = [
        "pinwise-F1-n1",
        "pinwise-f1_n1",
        "pinwise-f1.n1",
        "pinwise-f1-n1-",
    ];
    let long = "n".repeat(80);
    let labels: std::collections::BTreeSet<String> = names
        .iter()
        .copied()
        .chain([long.as_str()])
        .map(to_dns_label)
        .collect();
    assert_eq!(labels.len(), 5);
    let is_label = |label: &String| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        label.len() <= 63 && label.chars().all(plain) && !label.ends_with('-')
    };
    assert!(labels.iter().all(is_label), "{labels:?}");
}

#[test]
fn jobs_are_reported_at_once_and_a_refusal_stops_submitting() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("nodes")).unwrap();
    let text = "name = \"x\"\n[submit]\ncommand = \"test {node} != n3 || { echo no >&2; exit 1; }; echo job {node}\"\njob = '^job (.*)$'";
    let template = Template::parse(text).unwrap();
    let task = make_task(&folder.path().display().to_string());
    let mut jobs = Vec::new();
    let choice = choose_nodes(&["n1", "n2", "n3", "n4"]);
    let mut on_job = |job: FleetJob| jobs.push(job.id);
    let submitted = template.submit(&task, &NodeRequest::default(), &choice, "now", &mut on_job);
    assert_eq!(submitted.unwrap_err().to_string(), "x: no");
    assert_eq!(jobs, ["n1", "n2"]);
}

#[test]
fn only_names_of_nodes_get_into_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let text = format!(
        "name = \"x\"\n[submit]\ncommand = \"touch {mark}; echo 1\"\njob = '(1)'\n\
         [status]\ncommand = \"touch {mark}\"\n[cancel]\ncommand = \"touch {mark}\"\n",
        mark = mark.display()
    );
    let template = Template::parse(&text).unwrap();
    let task = make_task(&folder.path().display().to_string());
    for odd in [
        "-oProxyCommand=x",
        "a b",
        "a@b",
        "a;b",
        "",
        "..",
        "a/b",
        "a\nb",
    ] {
        let jobs = [FleetJob {
            id: "1".to_owned(),
            node: Some(odd.to_owned()),
            submitted: "now".to_owned(),
        }];
        let submitted = template.submit(
            &task,
            &NodeRequest::default(),
            &choose_nodes(&[odd]),
            "now",
            &mut |_| {},
        );
        let refused = [
            submitted.unwrap_err(),
            template.query_states(&task, &jobs).unwrap_err(),
            template.cancel(&task, &jobs).unwrap_err(),
        ];
        for error in refused {
            assert!(
                error.to_string().contains("not the name of a node"),
                "{error}"
            );
        }
        assert!(!mark.exists(), "{odd:?}");
    }
}

proptest! {
    /// Any folder name is one word of the shell, and a text of YAML.
    #[test]
    fn values_stay_one_word(folder in "/[ -.0-~é]{1,20}") {
        let plan = |name: &str| {
            open_template(name).plan(&make_task(&folder), &NodeRequest::default(), &choose_nodes(&["n1"])).unwrap()
        };
        let words = shell_words::split(&plan("local")).unwrap();
        prop_assert_eq!(&words[1], &format!("{folder}/pinwise"));
        prop_assert_eq!(&words[4], &folder);
        let manifest = plan("kubernetes");
        let line = manifest.lines().find_map(|l| l.trim().strip_prefix("mountPath: ")).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(line).unwrap(), folder);
    }

    #[test]
    fn any_text_is_a_template_or_refused(text in "(name = \"x\"\n|\\[submit\\]\n|command = \"[a{}]{0,5}\"\n|job = '[()a]{0,4}'\n|script = \"\\PC{0,4}\"\n){0,6}") {
        if let Ok(template) = Template::parse(&text) {
            let _ = template.plan(&make_task("/f"), &NodeRequest::default(), &choose_nodes(&["n1"]));
        }
    }
}
