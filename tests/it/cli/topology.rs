//! `topology`: machines of many shapes as text, and the CPUs of placements.

use super::{FinishedRun, Stage};

#[test]
fn equivalents_of_a_placement_are_what_apply_prints() {
    let stage = Stage::new();
    let line = "topology --machine 'sim:core:2 pu:2'";
    let explained = stage.run_for_json(&format!("{line} --explain one-core/mem=bind"));
    assert_eq!(explained["cpus"], "0-1");
    assert_eq!(explained["mask"], "0x3");
    assert_eq!(explained["memory"], "bind");
    assert_eq!(explained["memory_nodes"], serde_json::json!([0]));
    let equivalents = explained["equivalents"].as_array().unwrap();
    assert_eq!(equivalents.len(), 5);
    for equivalent in equivalents {
        let tool = equivalent["tool"].as_str().unwrap();
        let applied = stage.run_for_json(&format!(
            "apply --machine 'sim:core:2 pu:2' --as {tool} --place one-core/mem=bind"
        ));
        let pieces = applied["tools"][0]["pieces"].as_array().unwrap();
        let command = pieces.iter().find_map(|piece| piece["command"].as_str());
        let line = equivalent["setting"].as_str().unwrap();
        assert!(line.ends_with(command.unwrap()), "{tool}: {line}");
    }
}

#[test]
fn a_saved_topology_is_read_again() {
    let stage = Stage::new();
    let saved = stage.run_ok("topology --save own.capture");
    assert!(
        saved.err.ends_with("files saved to own.capture\n"),
        "{saved}"
    );
    let own = stage.run_for_json("topology");
    let read = stage.run_for_json("topology --from own.capture");
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
    // A capture without half of the CPUs is readable, but reported as incomplete.
    let lines: Vec<&str> = whole
        .lines()
        .take_while(|line| !line.starts_with("sys/devices/system/cpu/cpu4"))
        .collect();
    stage.write("cut.capture", &(lines.join("\n") + "\nend\n"));
    let ran = stage.check_snapshot("topology-cut", "topology --from cut.capture");
    assert!(ran.out.contains("incomplete"), "{ran}");
}

#[track_caller]
fn check_one_error(ran: &FinishedRun) {
    assert_eq!(ran.status, 2, "{ran}");
    assert!(ran.err.starts_with("error: "), "{ran}");
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
}

#[test]
fn listed_placements_mean_the_cpus_beside_them() {
    let stage = Stage::new();
    for machine in [
        "--machine 'sim:package:2 l3:2 core:2 pu:2' topology",
        "topology --from hybrid.xml",
    ] {
        let found = stage.run_for_json(&format!("{machine} --placements 3"));
        let shapes = found["threads"][0]["shapes"].as_array().unwrap();
        assert!(shapes.len() > 1, "{found}");
        for shape in shapes {
            let name = shape["name"].as_str().unwrap();
            let explained = stage.run_for_json(&format!("{machine} --explain {name}"));
            for key in ["cpus", "packages", "cores"] {
                assert_eq!(explained[key], shape[key], "{name}");
            }
        }
    }
}
