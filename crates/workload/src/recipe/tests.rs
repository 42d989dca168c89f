use super::*;
use proptest::prelude::*;

const SMALL: &str = r#"name = "small"
about = "Counts."
command = "{prog} -t {threads} {folder}/in 'a b'"
verify = "test -s {folder}/out {mode}"
generate = "echo {size} > in"

[programs]
prog = { package = "prog-tools", names = ["prog2", "prog"] }

[parameters]
threads = { default = "1" }
mode = { default = "x", values = ["x", "y z"] }
size = { default = "3" }
"#;

fn parse_sweep(text: &str) -> Sweep {
    text.parse().unwrap()
}

fn list_programs() -> Vec<(String, String)> {
    vec![("prog".to_owned(), "/usr/bin/prog2".to_owned())]
}

#[test]
fn placeholders_are_filled_and_quoted_in_scripts() {
    let recipe = Recipe::parse(SMALL).unwrap();
    let chosen = recipe.choices(&[parse_sweep("mode=y z"), parse_sweep("threads=4")]);
    let chosen = &chosen.unwrap()[0];
    assert_eq!(chosen.label.as_deref(), Some("mode=y z,threads=4"));
    let workload = recipe
        .build_workload(chosen, "/tmp/a b", &list_programs())
        .unwrap();
    assert_eq!(
        workload.command.argv(),
        ["/usr/bin/prog2", "-t", "4", "/tmp/a b/in", "a b"]
    );
    let verify = workload.verify.unwrap();
    assert_eq!(
        verify.argv()[2],
        "set -e\ncd '/tmp/a b'\ntest -s '/tmp/a b'/out 'y z'"
    );
    let generation = recipe
        .build_generation(chosen, "/f", &list_programs())
        .unwrap()
        .unwrap();
    assert_eq!(generation.argv()[2], "set -e\ncd /f\necho 3 > in");
    assert_eq!(workload.recipe.as_deref(), Some("small"));
}

#[test]
fn sweeps_make_arms_and_unknown_values_are_refused() {
    let recipe = Recipe::parse(SMALL).unwrap();
    let all = recipe.choices(&[parse_sweep("threads=1..3")]).unwrap();
    let labels: Vec<_> = all.iter().filter_map(|c| c.label.as_deref()).collect();
    assert_eq!(labels, ["threads=1", "threads=2", "threads=3"]);
    assert!(recipe.choices(&[]).unwrap()[0].label.is_none());
    for (text, expected) in [
        (
            "depth=1",
            "has no parameter 'depth' (it has: mode, size, threads)",
        ),
        ("mode=q", "takes x, y z there"),
        ("threads=many", "takes a whole number there"),
        ("size=1,2", "depends on size: give it one value at a time"),
    ] {
        let error = recipe
            .choices(&[parse_sweep(text)])
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(recipe.choices(&[parse_sweep("size=5")]).is_ok());
}

#[test]
fn servers_last_for_a_run_or_for_all() {
    let server = "\n[server]\nstart = \"serve {threads} &\"\nstop = \"kill 1\"\n";
    let whole = Recipe::parse(&format!("{SMALL}{server}")).unwrap();
    let chosen = &whole.choices(&[]).unwrap()[0];
    let (start, stop) = whole.build_server(chosen, "/f", &list_programs()).unwrap();
    assert!(start.unwrap().argv()[2].ends_with("serve 1 &"));
    assert!(stop.unwrap().argv()[2].ends_with("kill 1"));
    assert_eq!(
        whole
            .build_workload(chosen, "/f", &list_programs())
            .unwrap()
            .prepare,
        None
    );
    assert!(whole.choices(&[parse_sweep("threads=1,2")]).is_err());
    let each = Recipe::parse(&format!("{SMALL}{server}per = \"run\"\n")).unwrap();
    let chosen = &each.choices(&[parse_sweep("threads=1,2")]).unwrap()[1];
    let (start, stop) = each.build_server(chosen, "/f", &list_programs()).unwrap();
    assert_eq!((start, stop), (None, None));
    let workload = each.build_workload(chosen, "/f", &list_programs()).unwrap();
    assert!(workload.prepare.unwrap().argv()[2].ends_with("serve 2 &"));
    assert!(workload.conclude.unwrap().argv()[2].ends_with("kill 1"));
}

/// Text of the small recipe => its replacement => the error.
const REFUSED: &str = r#"
name = "small" => name = "A b" => 1: name: lower-case letters, digits and hyphens, at most 40
about = "Counts." => about = "" => 2: about: it is empty
verify = => verfy = => 4: unknown field `verfy`, expected one of `name`, `about`, `threads`, `programs`, `parameters`, `generate`, `command`, `script`, `input`, `prepare`, `conclude`, `verify`, `expect`, `metric`, `unit`, `environment`, `timeout_s`, `server`
{threads}  => {thread}  => 3: command: {thread} is neither a parameter, a program nor the folder
-t {threads}  =>  => 11: parameters.threads: {threads} is not used
'a b'" => 'a b" => 3: command: '{prog} -t {threads} {folder}/in 'a b': a quote is not closed
'a b'" => > out" => 3: command: '>' would reach the program as it is: use script
command = => metric = "speed"\ncommand = => 3: metric: 'speed' is not a metric (known: wall or time, user, system or sys, cpu, max-rss, cycles, instructions, 'regex:… higher|lower', 'json:.path higher|lower', 'prometheus:NAME higher|lower')
command = => unit = "x"\ncommand = => 3: unit: the metric wall is in s already
command = => timeout_s = 0.0\ncommand = => 3: timeout_s: seconds, above 0 and below a day
command = => script = "x"\ncommand = => 3: script: command and script exclude each other
command = => prepare = => 1: command: missing: a command or script to measure
verify = => conclude = => 1: verify: missing: a check of the output, verify or expect
verify = => expect = "("\nverify = => 4: expect: found open group without closing ')'
"x", "y z" => "y z" => 12: parameters.mode: the default is not one of the values
"prog2" => "bin/prog2" => 8: programs.prog: write names of programs, without a folder"#;

#[test]
fn errors_name_line_and_key() {
    for row in REFUSED.trim_start().lines() {
        let cells: Vec<&str> = row.split(" => ").collect();
        assert!(SMALL.contains(cells[0]), "{row}");
        let text = SMALL.replacen(cells[0], &cells[1].replace("\\n", "\n"), 1);
        let error = Recipe::parse(&text).unwrap_err();
        assert_eq!(error.to_string(), cells[2]);
    }
}

proptest! {
    #[test]
    fn values_reach_the_command_as_they_are(value in "[ -~]{1,12}") {
        let text = SMALL.replace("threads = { default = \"1\" }", "threads = { default = \"x\" }");
        let recipe = Recipe::parse(&text).unwrap();
        let sweep = Sweep { name: "threads".to_owned(), values: vec![value.clone()] };
        let chosen = &recipe.choices(&[sweep]).unwrap()[0];
        let workload = recipe.build_workload(chosen, "/f", &list_programs()).unwrap();
        prop_assert_eq!(&workload.command.argv()[2], &value);
    }
}
