//! Writes records into the page of `pinwise serve`, so that it opens from disk and needs no
//! network.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::columns::lay_out_in_columns;
use crate::markup::escape;
use crate::render;
use crate::style::{Palette, lay_out_for_columns, visible};
use pinwise_record::{AnyRecord, Entry, GateHistory, Summary};

/// The page as built by `cargo xtask web`; `None` in a binary built without.
pub const PAGE: Option<&str> = EMBEDDED;

#[cfg(has_page)]
const EMBEDDED: Option<&str> = Some(include_str!("../page.html"));
#[cfg(not(has_page))]
const EMBEDDED: Option<&str> = None;

/// How to get a binary with the page.
pub const WITHOUT_PAGE: &str = "this pinwise was built without its page, which needs Node 20.19 or newer: in pinwise's source run 'cargo xtask web', then 'cargo install --path .', or set PINWISE_PAGE to a page.html that was built elsewhere (text works without it: pinwise record show)";

/// The element of the built page that is replaced by the data.
const DATA_ELEMENT: &str = r#"<script type="application/json" id="pinwise-data">{"from":"site","packed":"columns"}</script>"#;

/// The tags around what a browser without JavaScript shows.
const WITHOUT_SCRIPT: (&str, &str) = ("<noscript>", "</noscript>");

/// Data of at least this many bytes are compressed; shorter data stay readable in the file.
const MIN_COMPRESSED_BYTES: usize = 64 << 10;

/// For browsers without JavaScript: the most records with their full text; others have only title
/// and verdict.
const MAX_FULL_TEXTS: usize = 20;

/// A line of the history in the page's form.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    id: &'a str,
    schema: &'a str,
    time: &'a str,
    host: &'a str,
    title: &'a str,
    verdict: &'a str,
    complete: bool,
    #[serde(flatten)]
    summary: &'a Summary,
}

impl<'a> Line<'a> {
    /// Makes a line from an entry and its record's summary.
    #[must_use]
    pub fn new(entry: &'a Entry, summary: &'a Summary) -> Self {
        Self {
            id: &entry.id,
            schema: &entry.schema,
            time: &entry.time,
            host: &entry.host,
            title: &entry.title,
            verdict: &entry.verdict,
            complete: entry.is_complete,
            summary,
        }
    }
}

/// A record for a page.
#[derive(Debug, Serialize)]
pub struct PageRecord<'a> {
    /// Its line of the history.
    pub entry: Line<'a>,
    /// The record as JSON.
    pub record: &'a RawValue,
}

/// The difference between two of the records.
#[derive(Debug, Serialize)]
pub struct ShownDiff<'a> {
    /// Id of the first record.
    pub a: &'a str,
    /// Id of the second record.
    pub b: &'a str,
    /// The difference, a record itself.
    pub record: Box<RawValue>,
}

#[derive(Serialize)]
struct Data<'a> {
    from: &'static str,
    pinwise_version: &'static str,
    records: &'a [PageRecord<'a>],
    diffs: &'a [ShownDiff<'a>],
    histories: &'a [GateHistory],
}

/// Was this page built for this version?
#[must_use]
pub fn has_place_for_data(page: &str) -> bool {
    page.contains(DATA_ELEMENT)
}

/// Writes records into `page`, which is [`PAGE`]: as data, and as text for browsers without
/// JavaScript.
///
/// # Errors
/// If the page has no element for the data, or if JSON cannot be written.
pub fn fill_page(
    page: &str,
    records: &[PageRecord<'_>],
    diffs: &[ShownDiff<'_>],
    histories: &[GateHistory],
) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(&Data {
        from: "file",
        pinwise_version: env!("CARGO_PKG_VERSION"),
        records,
        diffs,
        histories,
    })?;
    let data = if data.len() < MIN_COMPRESSED_BYTES {
        escape_for_script(&data)
    } else {
        compress(&lay_out_in_columns(&data)?).map_err(serde_json::Error::io)?
    };
    let (before, after) = page.split_once(DATA_ELEMENT).ok_or_else(|| {
        serde::ser::Error::custom("the page was built with another version of pinwise")
    })?;
    let before = insert_records(before, records);
    Ok(format!(
        "{before}<script type=\"application/json\" id=\"pinwise-data\">{data}</script>{after}"
    ))
}

/// Compresses data in columns for the page's `unpack`: base64 (RFC 4648) of DEFLATE (RFC 1951).
fn compress(data: &str) -> std::io::Result<String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data.as_bytes())?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// Replaces the page's hint on JavaScript by the records' text.
fn insert_records(before: &str, records: &[PageRecord<'_>]) -> String {
    let (open, close) = WITHOUT_SCRIPT;
    let parts = before.split_once(open).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(close)?;
        Some((head, tail))
    });
    let Some((head, tail)) = parts else {
        return before.to_owned();
    };
    let (whole, brief) = records.split_at(records.len().min(MAX_FULL_TEXTS));
    let texts = whole.iter().map(render_text);
    let text: Vec<String> = texts.chain(brief.iter().map(render_line)).collect();
    let lines: Vec<_> = text
        .iter()
        .flat_map(|one| one.lines())
        .map(escape)
        .collect();
    format!("{head}{open}<pre>{}</pre>{close}{tail}", lines.join("\n"))
}

/// Renders a record with [`render::render_record`], or in one line if it cannot be read.
fn render_text(shown: &PageRecord<'_>) -> String {
    match AnyRecord::read(shown.record.get()) {
        Ok(record) => {
            lay_out_for_columns(None, || render::render_record(&record, Palette::default())) + "\n"
        }
        Err(_) => render_line(shown),
    }
}

/// Renders id, title and verdict.
fn render_line(shown: &PageRecord<'_>) -> String {
    let Line {
        id, title, verdict, ..
    } = &shown.entry;
    visible(&format!("{id}  {title}: {verdict}"))
}

/// Makes JSON safe in a `<script>`: without `<`, which could begin an end tag or a comment, and
/// without characters that scripts take for line breaks. In JSON these occur only in strings, where
/// an escape means the same.
fn escape_for_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 64);
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    fn make_page(title: &str, body: &str) -> String {
        let entry = Entry {
            id: "1".to_owned(),
            schema: "pinwise.trace/1".to_owned(),
            time: String::new(),
            host: title.to_owned(),
            title: title.to_owned(),
            verdict: String::new(),
            is_complete: true,
        };
        let summary = Summary::default();
        let record: Box<RawValue> = serde_json::from_str(body).unwrap();
        let shown = PageRecord {
            entry: Line::new(&entry, &summary),
            record: &record,
        };
        let template = format!("<a><noscript>off</noscript>{DATA_ELEMENT}<b>");
        fill_page(&template, &[shown], &[], &[]).unwrap()
    }

    /// What a browser takes for the element's text, unpacked as the page does.
    fn unpack_data(page: &str) -> serde_json::Value {
        let (_, rest) = page.split_once("id=\"pinwise-data\">").unwrap();
        let (data, _) = rest.split_once("</script").unwrap();
        if data.starts_with('{') {
            return serde_json::from_str(data).unwrap();
        }
        let bytes = STANDARD.decode(data).unwrap();
        let mut columns = String::new();
        let mut decoder = flate2::read::DeflateDecoder::new(&bytes[..]);
        decoder.read_to_string(&mut columns).unwrap();
        serde_json::from_str(&crate::columns::reader::from_columns(&columns)).unwrap()
    }

    #[test]
    fn long_data_are_compressed() {
        let names: Vec<String> = (0..9000).map(|n| format!("name {n}")).collect();
        let body = serde_json::to_string(&names).unwrap();
        let page = make_page("title", &body);
        assert!(page.len() < body.len() / 2, "{} bytes", page.len());
        assert_eq!(
            unpack_data(&page)["records"][0]["record"][8999],
            "name 8999"
        );
    }

    #[test]
    fn browsers_without_javascript_show_the_text() {
        let record = pinwise_record::examples::build_search(5, true);
        let body = serde_json::to_string(&record).unwrap();
        let page = make_page("<b>title", &body);
        let (_, rest) = page.split_once("<noscript><pre>").unwrap();
        let (text, _) = rest.split_once("</pre></noscript>").unwrap();
        let expected = render::render_record(&AnyRecord::read(&body).unwrap(), Palette::default());
        let lines: Vec<_> = expected.lines().map(escape).collect();
        assert_eq!(text.trim_end(), lines.join("\n").trim_end());

        let of_no_kind = make_page("<b>title", "{}");
        assert!(of_no_kind.contains("<pre>1  &lt;b&gt;title: </pre>"));
        assert!(!of_no_kind.contains("off"));
    }

    #[test]
    fn no_string_ends_the_script() {
        let hostile = "</script><img src=x onerror=alert(1)><!--<script>\u{2028}";
        let body = serde_json::json!({ "name": hostile }).to_string();
        let page = make_page(hostile, &body);
        assert_eq!(page.matches("</script").count(), 1);
        assert!(!page.contains("<img") && !page.contains("<!--") && !page.contains('\u{2028}'));
        let data = unpack_data(&page);
        assert_eq!(data["records"][0]["record"]["name"], hostile);
        assert_eq!(data["records"][0]["entry"]["title"], hostile);
    }

    #[test]
    fn a_page_of_another_version_is_refused() {
        assert!(fill_page("<a>", &[], &[], &[]).is_err());
    }

    #[test]
    fn the_embedded_page_has_a_place_for_data() {
        if let Some(embedded) = PAGE {
            assert!(fill_page(embedded, &[], &[], &[]).is_ok());
            assert!(embedded.len() <= 900_000, "{} bytes", embedded.len());
        }
    }

    proptest! {
        #[test]
        fn any_string_round_trips(text in any::<String>()) {
            let body = serde_json::to_string(&[&text]).unwrap();
            let data = unpack_data(&make_page(&text, &body));
            prop_assert_eq!(data["records"][0]["record"][0].as_str(), Some(text.as_str()));
        }
    }
}
