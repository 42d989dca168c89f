//! `spin replay` for real, as far as the machine at hand lets it.

use std::process::Output;

use serde_json::Value;

use crate::support::{self, split_words};

fn replay(line: &str) -> Output {
    let start = split_words("--store none --format json spin replay");
    support::run(&[&start[..], &split_words(line)].concat())
}

/// For real: counts are exact whatever the noise, and of two delays the one that misses a look
/// takes longer by far. Tried a few times in case others disturb it.
#[test]
fn a_real_waiter_is_late_as_predicted() {
    for _ in 0..3 {
        let cell = "--pause-ns 43 --cpu-count 24 --delays 2ms,5ms --items 4 --repeat 1";
        let output = replay(cell);
        let (out, err) = support::decode_output(&output);
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(2), "{err}");
            return support::report_skip(err.trim());
        }
        let record: Value = serde_json::from_str(&out).unwrap();
        let cells = record["algorithms"][0]["cells"].as_array().unwrap();
        let [missed, seen] = [&cells[0], &cells[1]].map(|cell| &cell["measured"]);
        if missed.is_null() || seen.is_null() {
            continue;
        }
        assert_eq!(missed["hints"], 492_050, "{missed}");
        assert_eq!(seen["hints"], 164_000, "{seen}");
        let late = |of: &Value| of["lateness_us"].as_f64().unwrap();
        assert!(late(missed) > 2.0 * late(seen), "{missed} {seen}");
        return;
    }
    support::report_skip("other programs disturbed all items, three times");
}

#[test]
fn threads_contend_and_all_get_the_lock() {
    let algorithms = "--algorithm rust_std_mutex --algorithm futex";
    let contend = format!("--experiment contend {algorithms} --threads 2,3 --repeat 1");
    let output = replay(&contend);
    let (out, err) = support::decode_output(&output);
    if !output.status.success() {
        return support::report_skip(err.trim());
    }
    let record: Value = serde_json::from_str(&out).unwrap();
    for of in record["algorithms"].as_array().unwrap() {
        assert_eq!(of["cells"].as_array().unwrap().len(), 0);
        let cells = of["contention"].as_array().unwrap();
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
