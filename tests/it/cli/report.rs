//! `report` and `compare --report`: records as one page.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;

use super::Stage;

#[path = "../../../crates/report/src/columns_reader.rs"]
mod columns_reader;

const LINE: &str =
    "compare --machine sim:slow.toml --seed 1 --place os-default --place cpu:0 --max-runs 12";

/// Parses the data of a page as a browser does; long data are compressed.
#[track_caller]
fn parse_data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"pinwise-data\">").unwrap();
    let (data, _) = rest.split_once("</script").unwrap();
    let parsed = if data.starts_with('{') {
        serde_json::from_str(data)
    } else {
        let bytes = STANDARD.decode(data).unwrap();
        let mut columns = String::new();
        let mut decoder = DeflateDecoder::new(&bytes[..]);
        decoder.read_to_string(&mut columns).unwrap();
        serde_json::from_str(&columns_reader::from_columns(&columns))
    };
    parsed.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_report_contains_the_whole_record() {
    let stage = Stage::new();
    let record = stage.run_for_json(&format!("{LINE} --tag night --report at-once.html -- prog"));
    let ran = stage.run_ok("record report last -o later.html");
    assert_eq!(ran.out, "later.html\n");
    for name in ["at-once.html", "later.html"] {
        let page = stage.read(name);
        assert!(page.contains("<noscript><pre>prog"), "{name}");
        let data = parse_data(&page);
        assert_eq!(data["from"], "file");
        assert_eq!(data["records"][0]["record"], record, "{name}");
        let entry = &data["records"][0]["entry"];
        assert_eq!(entry["id"], record["id"], "{name}");
        assert_eq!(entry["tags"], serde_json::json!(["night"]), "{name}");
        assert_eq!(entry["complete"], true, "{name}");
        assert_eq!(entry["verdict"], record["verdict"]["sentence"], "{name}");
        assert_eq!(entry["figures"][1]["name"], "cpu:0", "{name}");
    }
}

#[test]
fn every_experiment_writes_its_report() {
    let stage = Stage::new();
    for (line, schema) in [
        (
            "bench pi --machine sim:same.toml --threads 1,2 --budget 20s",
            "pinwise.bench/1",
        ),
        (
            "search --machine sim:share.toml --threads 2 --max-runs 12 -- prog",
            "pinwise.search/1",
        ),
        (
            "compare --self --machine sim:same.toml --max-runs 6 -- prog",
            "pinwise.comparison/1",
        ),
    ] {
        let (command, rest) = line.split_once(' ').unwrap();
        let record = stage.run_for_json(&format!("{command} --report r.html {rest}"));
        let data = parse_data(&stage.read("r.html"));
        assert_eq!(record["schema"], schema);
        assert_eq!(data["records"][0]["record"], record, "{line}");
    }
}

#[test]
fn several_records_and_files_go_into_one_report() {
    let stage = Stage::new();
    let first = stage.run_for_json(&format!("{LINE} -- prog"));
    let second = stage.run_for_json("topology --machine sim:slow.toml");
    stage.write("machine.json", &second.to_string());
    let id = first["id"].as_str().unwrap();
    stage.run_ok(&format!("record report {id} machine.json -o both.html"));
    let data = parse_data(&stage.read("both.html"));
    assert_eq!(data["records"][0]["record"], first);
    assert_eq!(data["records"][1]["record"], second);
    assert_eq!(data["records"][1]["entry"]["id"], "machine.json");
    let printed = stage.run_ok("record report machine.json -o -").out;
    assert_eq!(parse_data(&printed)["records"][0]["record"], second);
}

#[test]
fn without_a_name_a_report_overwrites_no_file() {
    let stage = Stage::new();
    let id = stage.run_for_json(&format!("{LINE} -- prog"))["id"].clone();
    let name = format!("pinwise-{}.html", id.as_str().unwrap());
    let ran = stage.run_ok("record report last");
    assert_eq!(ran.out, "pinwise-YYYYMMDD-HHMMSS-xxxxxxxx.html\n");
    assert_eq!(
        parse_data(&stage.read(&name))["records"][0]["entry"]["id"],
        id
    );
    stage.write(&name, "mine");
    let ran = stage.run("record report last");
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("exists already"), "{}", ran.err);
    assert_eq!(stage.read(&name), "mine");
}

#[test]
fn strings_of_a_record_do_not_become_markup() {
    let stage = Stage::new();
    let hostile = "</script><img src=x onerror=alert(1)>";
    let mut record = stage.run_for_json(&format!("{LINE} -- prog"));
    record["arms"][1]["name"] = hostile.into();
    record["tags"] = serde_json::json!([hostile]);
    stage.write("hostile.json", &record.to_string());
    stage.run_ok("record report hostile.json -o hostile.html");
    let page = stage.read("hostile.html");
    assert!(!page.contains("<img"));
    let data = parse_data(&page);
    assert_eq!(data["records"][0]["record"], record);
    assert_eq!(data["records"][0]["entry"]["tags"][0], hostile);
}
