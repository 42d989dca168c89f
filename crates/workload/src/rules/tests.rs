//! Rules read, refused and matched.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone, Default)]
struct FakeProcess {
    executable: Option<&'static str>,
    cgroup: Option<&'static str>,
    user: Option<u32>,
    command_line: Option<Vec<u8>>,
    asked: Vec<&'static str>,
}

impl Process for FakeProcess {
    fn executable(&mut self) -> Option<&[u8]> {
        self.asked.push("executable");
        self.executable.map(str::as_bytes)
    }
    fn cgroup(&mut self) -> Option<&[u8]> {
        self.asked.push("cgroup");
        self.cgroup.map(str::as_bytes)
    }
    fn user(&mut self) -> Option<u32> {
        self.asked.push("user");
        self.user
    }
    fn command_line(&mut self) -> Option<&[u8]> {
        self.asked.push("command-line");
        self.command_line.as_deref()
    }
}

const FILE: &str = r#"
[[rule]]
name = "store"
executable = "redis-server"
cgroup = "/system.slice/**"
place = "one-llc:0"
nice = -5

[[rule]]
name = "jobs"
user = "build"
command-line = '-j ?\d+$'
place = "compact*2"

[[rule]]
name = "rest of python"
executable = "/usr/**/python3*"
user = 1000
nice = 10
"#;

fn rules() -> Rules {
    let mut rules = Rules::parse(FILE).unwrap();
    rules
        .look_up_users(|name| (name == "build").then_some(7))
        .unwrap();
    rules
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = rules();
    assert!(rules.warnings.is_empty() && rules.need_users());
    let mut redis = FakeProcess {
        executable: Some("/usr/bin/redis-server"),
        cgroup: Some("/system.slice/redis.service"),
        ..FakeProcess::default()
    };
    assert_eq!(rules.first_match(&mut redis), Some(0));
    // What no rule asks for is not looked up.
    assert_eq!(redis.asked, ["executable", "cgroup"]);
    redis.executable = Some("/usr/bin/redis-server (deleted)");
    assert_eq!(rules.first_match(&mut redis), Some(0));
    redis.cgroup = Some("/user.slice");
    assert_eq!(rules.first_match(&mut redis), None);
    let mut make = FakeProcess {
        executable: Some("/usr/bin/make"),
        user: Some(7),
        command_line: Some(b"make -j 8".to_vec()),
        ..FakeProcess::default()
    };
    assert_eq!(rules.first_match(&mut make), Some(1));
    // The ends are the ends of the command line, not of a line in it.
    make.command_line = Some(b"make -j8\n all".to_vec());
    assert_eq!(rules.first_match(&mut make), None);
    let mut python = FakeProcess {
        executable: Some("/usr/lib/a/python3.11"),
        user: Some(1000),
        ..FakeProcess::default()
    };
    assert_eq!(rules.first_match(&mut python), Some(2));
    python.user = None;
    assert_eq!(rules.first_match(&mut python), None);
    // What is unknown does not match.
    assert_eq!(rules.first_match(&mut FakeProcess::default()), None);
}

#[track_caller]
fn check_refusal(text: &str, line: usize, column: usize, why: &str) {
    let error = Rules::parse(text).unwrap_err();
    let position = Position { line, column };
    assert_eq!(error.position, position, "{error}");
    assert!(error.reason.contains(why), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[test]
fn mistakes_have_a_line_and_a_column() {
    let rule = |lines: &str| format!("[[rule]]\nname = \"a\"\n{lines}");
    check_refusal("", 1, 1, "no rule");
    check_refusal("x = 1", 1, 1, "unknown field");
    check_refusal("[[rule]\n", 1, 8, "");
    check_refusal(&rule("exe = \"x\"\nnice = 1"), 3, 1, "unknown field");
    check_refusal(&rule("executable = \"x\""), 2, 8, "does nothing");
    check_refusal(&rule("nice = 1"), 2, 8, "no pattern");
    check_refusal(&rule("executable = \"x\"\nnice = 20"), 4, 8, "-20");
    check_refusal(&rule("executable = \"x\"\nnice = \"1\""), 4, 8, "");
    check_refusal(
        &rule("executable = \"a/b\"\nnice = 1"),
        3,
        14,
        "never match",
    );
    check_refusal(&rule("executable = \"[a\"\nnice = 1"), 3, 14, "no ]");
    check_refusal(
        &rule("  cgroup = \"x.slice\"\nnice = 1"),
        3,
        12,
        "never match",
    );
    check_refusal(&rule("command-line = '('\nnice = 1"), 3, 16, "command-line");
    check_refusal(&rule("executable = \" \"\nnice = 1"), 3, 14, "empty");
    check_refusal(&rule("user = -1\nnice = 1"), 3, 8, "name or a number");
    check_refusal(&rule("user = \"\"\nnice = 1"), 3, 8, "not a name");
    check_refusal(&rule("executable = \"x\"\nplace = \"\""), 4, 9, "empty");
    let twice = format!("{0}{0}", rule("executable = \"x\"\nnice = 1\n"));
    check_refusal(&twice, 6, 8, "line 2");
    let long = format!("[[rule]]\nname = \"{}\"", "x".repeat(61));
    check_refusal(&long, 2, 8, "60 characters");
    // Columns count characters.
    check_refusal("[[rule]]\nname = \"ä\"; x", 2, 11, "");
    check_refusal(&"#".repeat(2 << 20), 1, 1, "KiB");
}

#[test]
fn unknown_users_are_refused() {
    let mut rules = Rules::parse(FILE).unwrap();
    let error = rules.look_up_users(|_| None).unwrap_err();
    assert_eq!(
        error.position,
        Position {
            line: 11,
            column: 8
        }
    );
    assert!(error.reason.contains("'build'"), "{error}");
}

#[test]
fn rules_after_a_wider_one_are_reported() {
    #[track_caller]
    fn check(first: &str, second: &str, is_covered: bool) {
        let text = format!(
            "[[rule]]\nname = \"a\"\nnice = 1\n{first}\n[[rule]]\nname = \"b\"\nnice = 1\n{second}"
        );
        let rules = Rules::parse(&text).unwrap();
        assert_eq!(!rules.warnings.is_empty(), is_covered, "{first} {second}");
        if let Some(warning) = rules.warnings.first() {
            assert_eq!(warning.position.line, 6);
            assert!(warning.reason.contains("'b' can never match"));
        }
    }
    check("executable = \"x\"", "executable = \"x\"\nuser = 1", true);
    check("executable = \"*\"", "user = 1", true);
    check("executable = \"x\"\nuser = 1", "executable = \"x\"", false);
    check("executable = \"x\"", "executable = \"y\"", false);
}

#[test]
fn rules_that_anybody_can_match_are_warned_of() {
    #[track_caller]
    fn check(lines: &str, known: &[(usize, &str)]) {
        let text = format!("[[rule]]\nname = \"a\"\n{lines}");
        let warnings = Rules::parse(&text).unwrap().warnings();
        assert_eq!(warnings.len(), known.len(), "{lines}: {warnings:?}");
        for (warning, (line, words)) in warnings.iter().zip(known) {
            assert_eq!(warning.position.line, *line, "{warning}");
            assert!(warning.reason.contains(words), "{warning}");
        }
    }
    let any_file = (2, "any file of that name");
    check("executable = \"db\"\nplace = \"cpu:1\"", &[any_file]);
    check("executable = \"db\"\nnice = 1", &[any_file]);
    check(
        "executable = \"db\"\nnice = -1",
        &[(4, "raises the priority of any user's"), any_file],
    );
    check("executable = \"/bin/db\"\nnice = -1", &[(4, "LD_PRELOAD")]);
    for harmless in [
        "executable = \"db\"\nuser = 7\nnice = -1",
        "executable = \"/bin/db\"\nnice = 1",
        // Nothing is given, or every process is meant.
        "executable = \"db\"\nplace = \"os-default\"",
        "executable = \"*\"\nplace = \"cpu:1\"",
    ] {
        check(harmless, &[]);
    }
}

proptest! {
    #[test]
    fn matching_is_by_all_patterns_and_in_order(
        wishes in prop::collection::vec((prop::option::of("[abc*?]{1,3}"), prop::option::of(0u32..3)), 1..6),
        name in "[abc]{1,3}", user in 0u32..3,
    ) {
        let wishes: Vec<_> = wishes.into_iter().filter(|(e, u)| e.is_some() || u.is_some()).collect();
        prop_assume!(!wishes.is_empty());
        let mut text = String::new();
        for (index, (executable, user)) in wishes.iter().enumerate() {
            text += &format!("[[rule]]\nname = \"{index}\"\nnice = 1\n");
            text += &executable.as_ref().map_or(String::new(), |e| format!("executable = \"{e}\"\n"));
            text += &user.map_or(String::new(), |u| format!("user = {u}\n"));
        }
        let mut rules = Rules::parse(&text).unwrap();
        rules.look_up_users(|_| None).unwrap();
        let path: &'static str = Box::leak(format!("/opt/{name}").into_boxed_str());
        let mut someone = FakeProcess { executable: Some(path), user: Some(user), ..FakeProcess::default() };
        let expected = wishes.iter().position(|(e, u)| {
            e.as_ref().is_none_or(|e| Glob::parse(e).unwrap().matches(name.as_bytes())) && u.is_none_or(|u| u == user)
        });
        prop_assert_eq!(rules.first_match(&mut someone), expected);
    }
}
