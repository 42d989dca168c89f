//! Parses the queries of addresses, such as `host=a&text=xz&limit=50`.

use axum::http::StatusCode;

use super::problem::Problem;
use pinwise_store::Filter;

/// Number of records of one answer by default.
const DEFAULT_LIMIT: usize = 200;
/// Maximum number of records of one answer.
const MAX_LIMIT: usize = 5_000;

/// Parses the filter of a list of records. Unknown parameters are refused: a misspelt filter would
/// otherwise show all records.
pub(super) fn parse_filter(query: &str) -> Result<Filter, Problem> {
    let mut filter = Filter {
        limit: Some(DEFAULT_LIMIT),
        ..Filter::default()
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let words = Some(value.to_string()).filter(|v| !v.is_empty());
        match &*name {
            "host" => filter.host = words,
            "schema" => filter.schema = words,
            "tag" => filter.tag = words,
            "subject" => filter.subject = words,
            "text" => filter.text = words,
            "limit" => filter.limit = Some(parse_number(&name, &value)?.min(MAX_LIMIT)),
            "offset" => filter.offset = parse_number(&name, &value)?,
            _ => {
                return Err(invalid_query(format!(
                    "The history has no filter '{name}'."
                )));
            }
        }
    }
    Ok(filter)
}

/// Parses the benchmark of `benchmark=NAME`, and a filter without a limit from the other
/// parameters.
pub(super) fn parse_benchmark(query: &str) -> Result<(String, Filter), Problem> {
    let (named, others): (Vec<_>, Vec<_>) = form_urlencoded::parse(query.as_bytes())
        .partition(|(name, value)| name == "benchmark" && !value.is_empty());
    let others = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(others)
        .finish();
    let filter = Filter {
        limit: None,
        ..parse_filter(&others)?
    };
    match named.into_iter().next_back() {
        Some((_, benchmark)) => Ok((benchmark.into_owned(), filter)),
        None => Err(invalid_query("No benchmark given.".to_owned())),
    }
}

/// Parses the two ids of `a=ID&b=ID`.
pub(super) fn parse_pair(query: &str) -> Result<(String, String), Problem> {
    let find_id = |wanted: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find(|(name, value)| name == wanted && !value.is_empty())
            .map(|(_, value)| value.into_owned())
            .ok_or_else(|| invalid_query(format!("No record '{wanted}' given.")))
    };
    Ok((find_id("a")?, find_id("b")?))
}

fn parse_number(name: &str, value: &str) -> Result<usize, Problem> {
    // SQLite's limits are 32 bits.
    let found = value.parse::<u32>().ok();
    found
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| invalid_query(format!("{name}={value} is not a number of records.")))
}

fn invalid_query(error: String) -> Problem {
    let hint = "Filters are host, schema, tag, subject, text, limit and offset; two records are compared by a and b; a history of gates is of one benchmark.";
    Problem::new(StatusCode::BAD_REQUEST, error, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn filters_are_read() {
        let found = parse_filter("host=a%20b&text=xz+-k&tag=&limit=999999&offset=20").unwrap();
        let wanted = Filter {
            host: Some("a b".to_owned()),
            text: Some("xz -k".to_owned()),
            limit: Some(MAX_LIMIT),
            offset: 20,
            ..Filter::default()
        };
        assert_eq!(found, wanted);
        assert_eq!(parse_filter("").unwrap().limit, Some(DEFAULT_LIMIT));
        for wrong in [
            "hots=a",
            "limit=-1",
            "limit=many",
            "offset=99999999999999999999",
        ] {
            assert_eq!(parse_filter(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn a_history_of_gates_names_its_benchmark() {
        let (name, found) = parse_benchmark("benchmark=a+%26b&subject=gate+%C2%B7+s%26t").unwrap();
        assert_eq!(name, "a &b");
        assert_eq!(found.subject.as_deref(), Some("gate · s&t"));
        assert_eq!(found.limit, None);
        for wrong in ["", "benchmark=", "benchmark=a&hots=b"] {
            assert_eq!(parse_benchmark(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn two_records_are_named() {
        let found = parse_pair("b=2&a=1%2f").unwrap();
        assert_eq!(found, ("1/".to_owned(), "2".to_owned()));
        assert!(parse_pair("a=1").is_err() && parse_pair("a=1&b=").is_err());
    }

    proptest! {
        #[test]
        fn any_query_is_read_or_refused(query in "\\PC{0,60}") {
            if let Ok(found) = parse_filter(&query) {
                prop_assert!(found.limit.unwrap() <= MAX_LIMIT);
            }
            let _ = parse_pair(&query);
        }

        #[test]
        fn any_word_comes_back(host in any::<String>(), text in any::<String>(), limit in 0usize..=MAX_LIMIT) {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("host", &host)
                .append_pair("text", &text)
                .append_pair("limit", &limit.to_string())
                .finish();
            let found = parse_filter(&query).unwrap();
            prop_assert_eq!(found.host.unwrap_or_default(), host);
            prop_assert_eq!(found.text.unwrap_or_default(), text);
            prop_assert_eq!(found.limit, Some(limit));
        }
    }
}
