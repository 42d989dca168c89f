//! `spin replay` on the real host, if it can be measured here.

use std::process::Output;

use serde_json::Value;

use crate::support::{decode_output, report_skip, run, split_words};

fn replay(line: &str) -> Output {
    let start = split_words("--store none --format json spin replay");
    run(&[&start[..], &split_words(line)].concat())
}

/// Counts of hints are exact whatever the noise; of two delays, the one that ends just after a
/// check is noticed much later. Repeated in case other programs disturb it.
#[test]
fn a_real_waiter_is_late_as_predicted() {
    for _ in 0..3 {
        let cell = "--pause-ns 43 --cpu-count 24 --delays 2ms,5ms --items 4 --repeat 1";
        let output = replay(cell);
        let (out, err) = decode_output(&output);
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(2), "{err}");
            return report_skip(err.trim());
        }
        let record: Value = serde_json::from_str(&out).unwrap();
        let cells = record["algorithms"][0]["cells"].as_array().unwrap();
        let [missed, seen] = [&cells[0], &cells[1]].map(|cell| &cell["measured"]);
        if missed.is_null() || seen.is_null() {
            continue;
        }
        assert_eq!(missed["hints"], 492_050, "{missed}");
        assert_eq!(seen["hints"], 164_000, "{seen}");
        let lateness_us = |cell: &Value| cell["lateness_us"].as_f64().unwrap();
        assert!(
            lateness_us(missed) > 2.0 * lateness_us(seen),
            "{missed} {seen}"
        );
        return;
    }
    report_skip("other programs disturbed all items, three times");
}

#[test]
fn threads_contend_and_all_get_the_lock() {
    let algorithms = "--algorithm rust_std_mutex --algorithm futex";
    let contend = format!("--experiment contend {algorithms} --threads 2,3 --repeat 1");
    let output = replay(&contend);
    let (out, err) = decode_output(&output);
    if !output.status.success() {
        return report_skip(err.trim());
    }
    let record: Value = serde_json::from_str(&out).unwrap();
    for algorithm in record["algorithms"].as_array().unwrap() {
        assert_eq!(algorithm["cells"].as_array().unwrap().len(), 0);
        let cells = algorithm["contention"].as_array().unwrap();
        assert_eq!(cells.len(), 2);
        for cell in cells {
            assert!(
                cell["operations_per_cpu_s"].as_f64().unwrap() > 0.0,
                "{cell}"
            );
        }
    }
    let spun = &record["algorithms"][1]["contention"][0]["spinning_share"];
    assert_eq!(spun.as_f64(), Some(0.0));
}
