//! Pages, two readings, and malformed queries.

use super::*;
use proptest::prelude::*;

const PAGE: &str = "# HELP requests_total Requests.\n# TYPE requests_total counter\n\
    requests_total{path=\"/a\",code=\"200\"} 100 1395066363000\n\
    requests_total{path=\"/b \\\"x\\\"\",code=\"200\",} 20\n\
    requests_totally 5\nup 1\nload 2.5e0 # {trace=\"a\"} 0.5\n\
    latency_bucket{le=\"0.1\"} 0\nlatency_bucket{le=\"0.2\"} 0\n\
    latency_bucket{le=\"+Inf\"} 0\nlatency_sum 0\nlatency_count 0\nodd{ 3\nnan NaN\n";
const LATER: &str = "requests_total{path=\"/a\",code=\"200\"} 150\n\
    requests_total{path=\"/b \\\"x\\\"\",code=\"200\"} 30\nrequests_total{path=\"/new\"} 40\n\
    latency_bucket{le=\"0.1\"} 50\nlatency_bucket{le=\"0.2\"} 90\n\
    latency_bucket{le=\"+Inf\"} 100\nlatency_sum 12\nlatency_count 100\nup 1\n";

#[track_caller]
fn check(query: &str, expected: Result<f64, &str>) {
    let query = Query::parse(query).unwrap();
    let both = join_two_readings(PAGE.as_bytes(), LATER.as_bytes(), 2.0);
    let text = match query.needs_two_readings() {
        true => String::from_utf8(both).unwrap(),
        false => PAGE.to_owned(),
    };
    match (query.read(&text), expected) {
        (Ok(value), Ok(wanted)) => assert!((value - wanted).abs() < 1e-9, "{query}: {value}"),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
        (got, wanted) => panic!("{query}: {got:?} instead of {wanted:?}"),
    }
}

#[test]
fn figures_are_read_from_a_page() {
    check("load", Ok(2.5));
    check("requests_total{path=\"/a\"}", Ok(100.0));
    check("requests_total{ path = \"/b \\\"x\\\"\" , }", Ok(20.0));
    check("requests_total", Err("2 series"));
    check("requests", Err("no such metric: requests"));
    check("odd", Err("no such metric"));
    check("nan", Err("no such metric"));
    check("up{a=\"b\"}", Err("no such metric: up{a=\"b\"}"));
}

#[test]
fn figures_are_computed_between_two_readings() {
    check("rate(requests_total)", Ok(50.0));
    check("rate(requests_total{path=\"/a\"})", Ok(25.0));
    check("rate(up)", Err("did not grow"));
    check("rate(gone)", Err("no such metric"));
    check("mean(latency)", Ok(0.12));
    check("median(latency)", Ok(0.1));
    check("p70(latency)", Ok(0.15));
    check("p95(latency)", Ok(0.2));
    check("p99.9(requests_total)", Err("requests_total_bucket"));
    let rate = Query::parse("rate(a)").unwrap();
    let fell = join_two_readings(b"a 5\n", b"a 3\n", 1.0);
    let fell = String::from_utf8(fell).unwrap();
    assert_eq!(rate.read(&fell), Err(Missing::Reset("a".to_owned())));
    assert!(matches!(rate.read("a 5\n"), Err(Missing::OneReading(_))));
}

#[test]
fn malformed_queries_are_refused() {
    for bad in [
        "",
        "1a",
        "a b",
        "a{",
        "a{b}",
        "a{b=\"c}",
        "a{b=\"c\"}x",
        "p0(a)",
        "p100(a)",
        "p(a)",
        "sum(a)",
        "rate(a",
        "a{b=\"c\"d=\"e\"}",
    ] {
        assert_eq!(Query::parse(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn any_written_series_is_read(name in "[a-z_:][a-z0-9_:]{0,8}", label in "[a-z_]{1,5}", text in "[ -~\n]{0,8}", value in -1e12f64..1e12) {
        let series = write_selector(&name, [(label.as_str(), &text)].into_iter());
        let page = format!("other 1\n{series} {value:?} 17\n");
        let query = Query::parse(&series).unwrap();
        prop_assert_eq!(query.read(&page), Ok(value));
    }

    #[test]
    fn quantiles_are_within_their_buckets(counts in prop::collection::vec(0u32..50, 1..8), share in 0.01f64..0.99) {
        let mut total = 0;
        let mut page = String::new();
        for (index, count) in counts.iter().enumerate() {
            total += count;
            page.push_str(&format!("h_bucket{{le=\"{}\"}} {total}\n", index + 1));
        }
        page.push_str(&format!("h_bucket{{le=\"+Inf\"}} {total}\n"));
        let query = Query { aggregation: Aggregation::Quantile(share), name: "h".to_owned(), labels: Vec::new() };
        let both = String::from_utf8(join_two_readings(b"", page.as_bytes(), 1.0)).unwrap();
        match query.read(&both) {
            Ok(value) => prop_assert!((0.0..=counts.len() as f64).contains(&value), "{}", value),
            Err(error) => prop_assert!(total == 0, "{}", error),
        }
    }
}
