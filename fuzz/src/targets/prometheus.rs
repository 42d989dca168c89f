//! On the first line a query such as `rate(requests{code="200"})`, below it two readings of a page,
//! separated by a line `---`: a figure, or the reason why there is none.

use pinwise_workload::{Query, join_two_readings};

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (query, pages) = text.split_once('\n').unwrap_or((&text, ""));
    let Some(query) = Query::parse(query) else { return };
    let again = Query::parse(&query.to_string()).expect("it was read before");
    assert_eq!(again, query);
    let (first, second) = pages.split_once("\n---\n").unwrap_or(("", pages));
    let both = join_two_readings(first.as_bytes(), second.as_bytes(), 0.5);
    for page in [
        pages.to_owned(),
        String::from_utf8_lossy(&both).into_owned(),
    ] {
        if let Err(reason) = query.read(&page) {
            assert!(!reason.to_string().is_empty());
        }
    }
}
