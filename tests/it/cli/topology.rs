//! `topology`: machines of many shapes as text, and the CPUs of placements.

use super::{Ran, Stage};

#[test]
fn a_small_machine_as_json() {
    let stage = Stage::new();
    let line = "topology --machine 'sim:core:2 pu:2'";
    let explained = stage.json(&format!("{line} --explain one-core/mem=bind"));
    assert_eq!(explained["cpus"], "0-1");
    assert_eq!(explained["mask"], "0x3");
    assert_eq!(explained["memory"], "bind");
    assert_eq!(explained["memory_nodes"], serde_json::json!([0]));
    // What is shown is what `apply --as` prints.
    let shown = explained["equivalents"].as_array().unwrap();
    assert_eq!(shown.len(), 5);
    for one in shown {
        let tool = one["tool"].as_str().unwrap();
        let applied = stage.json(&format!(
            "apply --machine 'sim:core:2 pu:2' --as {tool} --place one-core/mem=bind"
        ));
        let pieces = applied["tools"][0]["pieces"].as_array().unwrap();
        let command = pieces.iter().find_map(|piece| piece["command"].as_str());
        let line = one["setting"].as_str().unwrap();
        assert!(line.ends_with(command.unwrap()), "{tool}: {line}");
    }
}

#[test]
fn a_saved_topology_is_read_again() {
    let stage = Stage::new();
    let saved = stage.succeed("topology --save own.capture");
    assert!(
        saved.err.ends_with("files saved to own.capture\n"),
        "{saved}"
    );
    let own = stage.json("topology");
    let read = stage.json("topology --from own.capture");
    assert_eq!(own["shape_hash"], read["shape_hash"]);
    assert_eq!(own["counts"], read["counts"]);
}

#[test]
fn truncated_captures_are_refused() {
    let stage = Stage::new();
    let whole = stage.read("2s2c2t.capture");
    for part in 0..40 {
        let cut = whole.len() * part / 40;
        stage.write("cut.capture", &whole[..cut]);
        let ran = stage.run("topology --from cut.capture");
        ran.check_form();
        check_one_error(&ran);
    }
    // Whole lines, but half of the CPUs are missing: that is reported.
    let lines: Vec<&str> = whole
        .lines()
        .take_while(|line| !line.starts_with("sys/devices/system/cpu/cpu4"))
        .collect();
    stage.write("cut.capture", &(lines.join("\n") + "\nend\n"));
    let ran = stage.snapshot("topology-cut", "topology --from cut.capture");
    assert!(ran.out.contains("incomplete"), "{ran}");
}

#[track_caller]
fn check_one_error(ran: &Ran) {
    assert_eq!(ran.status, 2, "{ran}");
    assert!(ran.err.starts_with("error: "), "{ran}");
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
}

/// Every listed name means the CPUs beside it.
#[test]
fn listed_placements_can_be_asked_for() {
    let stage = Stage::new();
    for machine in [
        "--machine 'sim:package:2 l3:2 core:2 pu:2' topology",
        "topology --from hybrid.xml",
    ] {
        let found = stage.json(&format!("{machine} --placements 3"));
        let shapes = found["threads"][0]["shapes"].as_array().unwrap();
        assert!(shapes.len() > 1, "{found}");
        for shape in shapes {
            let name = shape["name"].as_str().unwrap();
            let explained = stage.json(&format!("{machine} --explain {name}"));
            for (key, same) in [
                ("cpus", "cpus"),
                ("packages", "packages"),
                ("cores", "cores"),
            ] {
                assert_eq!(explained[key], shape[same], "{name}");
            }
        }
    }
}
