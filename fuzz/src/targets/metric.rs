//! On the first line a metric such as `regex:(\d+) req/s higher`, below it a program's output: the
//! result is a cost that ratios can be made of, or a reason why there is none.

use pinwise_workload::{Metric, RunFigures};

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let at = bytes.iter().position(|&byte| byte == b'\n');
    let (spec, output) = bytes.split_at(at.unwrap_or(bytes.len()));
    let Ok(spec) = std::str::from_utf8(spec) else { return };
    let metric: Metric = match spec.parse() {
        Ok(metric) => metric,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let again: Metric = metric.to_string().parse().expect("it was read before");
    assert_eq!(again.to_string(), metric.to_string());
    let run = RunFigures {
        wall_s: 1.5,
        user_s: Some(1.0),
        sys_s: Some(0.25),
        max_rss_bytes: Some(1 << 20),
        output: Some(output),
        ..RunFigures::default()
    };
    match metric.read(&run) {
        Ok(value) => {
            let cost = metric.cost(value);
            assert!(cost > 0.0 && cost.is_finite(), "{value} costs {cost}");
            let same = again.read(&run).expect("the same metric reads the same");
            assert!(same.total_cmp(&value).is_eq());
        }
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
}
