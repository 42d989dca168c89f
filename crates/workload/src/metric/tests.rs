//! Names of metrics, and figures read from output.

use super::*;

#[track_caller]
fn check(metric: &str, output: &str, expected: Result<f64, &str>) {
    let metric: Metric = metric.parse().unwrap();
    let run = RunFigures {
        output: Some(output.as_bytes()),
        ..RunFigures::default()
    };
    match (metric.read(&run), expected) {
        (Ok(value), Ok(wanted)) => assert!((value - wanted).abs() < 1e-9, "{value}"),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
        (got, wanted) => panic!("{got:?} instead of {wanted:?}"),
    }
}

#[test]
fn figures_are_read_from_the_output() {
    check("regex:(\\d+) req/s higher", "did 1250 req/s", Ok(1250.0));
    check("regex:rate=([\\d,.]+) higher", "rate=1,250.5\n", Ok(1250.5));
    check("regex:score \\d+ lower", "score 7", Err("not a number"));
    check("regex:x(\\d+) lower", "nothing", Err("matches nothing"));
    check("regex:x(\\d+) lower", "x0", Err("above 0"));
    // Its inverse would be infinite.
    check("regex:(.*) higher", "1e-310", Err("above 0"));
    check("json:.a.b[1] lower", r#"{"a":{"b":[1,2.5]}}"#, Ok(2.5));
    check("json:.a higher", r#"{"a":"3e2"} trailing"#, Ok(300.0));
    check("json:.c higher", r#"{"a":1}"#, Err("matches nothing"));
    check("json:.a higher", "not json", Err("needs JSON"));
    check("cycles", "", Err("not available"));
    let page = "a 0\nqueue{n=\"1\"} 3\nqueue{n=\"2\"} 4\n";
    check("prometheus:queue{n=\"2\"} lower", page, Ok(4.0));
    check("prometheus:queue lower", page, Err("2 series"));
    check("prometheus:gone higher", page, Err("no such metric: gone"));
    check("prometheus:a lower", page, Err("above 0"));
    check("prometheus:rate(a) lower", page, Err("two readings"));
    check("rate(a) lower", page, Err("two readings"));
}

#[test]
fn units_that_change_from_run_to_run_are_not_dropped() {
    let with_unit = r"regex:99%\s+([0-9.]+[mu]?s) lower";
    check(with_unit, "  99%   812.00us\n", Ok(812e-6));
    check(with_unit, "  99%     1.21ms\n", Ok(1.21e-3));
    check(
        r"regex:took ([0-9.a-zµ]+[a-z]) lower",
        "took 1m2.5s",
        Ok(62.5),
    );
    let metric: Metric = with_unit.parse().unwrap();
    assert_eq!((metric.unit(), metric.is_count()), ("s", Some(false)));
    assert!(metric.is_time());
    // Without it, 812 and 1.21 would be compared.
    let without = r"regex:99%\s+([0-9.]+) lower";
    let better = r"'us' behind it, which may be another in the next run: take the unit into the group, 'regex:99%\s+([0-9.]+[a-zµ]+) lower'";
    check(without, "  99%   812.00us\n", Err(better));
    check(
        r"regex:99%\s+([0-9.]+)[mu]?s lower",
        "99% 1.2ms",
        Err("take the unit"),
    );
    check(
        r"regex:99%\s+([0-9.]+[a-zµ]+) lower",
        "99% 1.2ms",
        Ok(1.2e-3),
    );
    // A pattern that names the unit, another word behind it, and a unit apart from it.
    check(r"regex:took (\d+)ms lower", "took 12ms", Ok(12.0));
    check(r"regex:(\d+) lower", "12messages", Ok(12.0));
    check(
        r"regex:99% in ([0-9.]+) secs lower",
        "99% in 0.25 secs",
        Ok(0.25),
    );
    check(r"regex:(\S+) lower", "12", Ok(12.0));
}

#[test]
fn rates_are_inverted() {
    let rate: Metric = "regex:(\\d+) higher".parse().unwrap();
    assert!((rate.cost(4.0) - 0.25).abs() < 1e-12);
    let time: Metric = "wall".parse().unwrap();
    assert!((time.cost(4.0) - 4.0).abs() < 1e-12);
}

#[test]
fn counts_times_and_unknown_figures_are_distinguished() {
    let is_count = |text: &str| text.parse::<Metric>().unwrap().is_count();
    for count in ["max-rss", "cycles", "instructions"] {
        assert_eq!(is_count(count), Some(true), "{count}");
    }
    for time in [
        "wall",
        "cpu",
        r"regex:took (\d+)ms lower",
        r"regex:(\d+) req/s higher",
        "json:.summary.elapsed_ns lower",
        "json:.Latency lower",
        "prometheus:request_seconds lower",
    ] {
        assert_eq!(is_count(time), Some(false), "{time}");
    }
    for unknown in [
        r"regex:faults:\s+(\d+) lower",
        "json:.migrations lower",
        "prometheus:switches_total lower",
    ] {
        assert_eq!(is_count(unknown), None, "{unknown}");
    }
}

#[test]
fn errors_name_the_metric() {
    let error = |text: &str| text.parse::<Metric>().unwrap_err().to_string();
    assert!(error("speed").contains("'speed' is not a metric"));
    assert!(Metric::names().all(|name| error("speed").contains(name)));
    assert!(error("regex:(\\d+)").contains("higher or lower"));
    assert!(error("regex:( higher").contains("regex:("));
    assert!(error("prometheus:sum(a) lower").contains("rate(…)"));
    assert!(error("json:a lower").contains(".summary.rates[0]"));
    assert!(error("json:.a[x] lower").contains("a path"));
    assert!(error("json:.a[0 lower").contains("a path"));
    assert!(error("regex:(a{500}){200} lower").contains("size"));
}
