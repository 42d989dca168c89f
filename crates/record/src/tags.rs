//! Labels of a record, which change after it was written.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// Longest tag, in characters.
const LONGEST_TAG: usize = 64;

/// Checks that a tag can be distinguished from others at sight.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_tag(tag: &str) -> Result<(), String> {
    if tag.trim().is_empty() {
        return Err("a tag must not be empty".to_owned());
    }
    if tag.trim() != tag {
        return Err("a tag must not begin or end with a space".to_owned());
    }
    if tag.chars().any(char::is_control) {
        return Err("a tag must not hold control characters".to_owned());
    }
    let length = tag.chars().count();
    if length > LONGEST_TAG {
        return Err(format!(
            "the tag has {length} characters, of {LONGEST_TAG} at most"
        ));
    }
    Ok(())
}

/// A record's text with these tags instead of its own. Everything else stays as it was written,
/// to the letter.
///
/// # Errors
/// The JSON parser's, if it is not a record.
pub fn replace_tags(body: &str, tags: &[String]) -> Result<String, serde_json::Error> {
    let mut fields: Fields<'_> = serde_json::from_str(body)?;
    let value = to_raw_value(tags)?;
    fields.0.retain(|(name, _)| name != "tags");
    let mut text = serde_json::to_string(&fields)?;
    text.truncate(text.len() - 1);
    let separator = if fields.0.is_empty() { "" } else { "," };
    Ok(format!("{text}{separator}\"tags\":{value}}}"))
}

/// A record's text under another id. Everything else stays as it was written,
/// to the letter.
///
/// # Errors
/// The JSON parser's, if it is not a record.
pub fn replace_id(body: &str, id: &str) -> Result<String, serde_json::Error> {
    let mut fields: Fields<'_> = serde_json::from_str(body)?;
    let value = to_raw_value(id)?;
    fields.0.retain(|(name, _)| name != "id");
    let at = fields.0.len().min(1);
    fields.0.insert(at, ("id".to_owned(), &value));
    serde_json::to_string(&fields)
}

/// The id of a record's text; `None` if it has none.
#[must_use]
pub fn read_id(body: &str) -> Option<String> {
    let fields: Fields<'_> = serde_json::from_str(body).ok()?;
    let (_, id) = fields.0.iter().find(|(name, _)| name == "id")?;
    serde_json::from_str(id.get()).ok()
}

/// Fields in their original order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_change_and_nothing_else() {
        let check = |body: &str, wanted: &str| {
            let tags = ["a\"b".to_owned()];
            assert_eq!(replace_tags(body, &tags).unwrap(), wanted);
        };
        check("{}", r#"{"tags":["a\"b"]}"#);
        check(
            r#"{"z":1.0000,"tags":["x"],"a":{"y":[1e3 ,2]}}"#,
            r#"{"z":1.0000,"a":{"y":[1e3 ,2]},"tags":["a\"b"]}"#,
        );
        for damaged in ["", "[]", "{\"a\":", "3"] {
            assert!(replace_tags(damaged, &[]).is_err(), "{damaged}");
        }
    }

    #[test]
    fn an_id_changes_and_nothing_else() {
        let check = |body: &str, wanted: &str| assert_eq!(replace_id(body, "n").unwrap(), wanted);
        check("{}", r#"{"id":"n"}"#);
        check(
            r#"{"schema":"s","id":"x","a":1.000,"id":3}"#,
            r#"{"schema":"s","id":"n","a":1.000}"#,
        );
        assert!(replace_id("[]", "n").is_err());
        assert_eq!(read_id(r#"{"schema":"s","id":"x"}"#).as_deref(), Some("x"));
        assert_eq!(read_id(r#"{"schema":"s"}"#), None);
    }

    #[test]
    fn indistinguishable_tags_are_refused() {
        for good in ["nightly", "ä b", &"x".repeat(64)] {
            assert_eq!(check_tag(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "a\nb", "\u{1b}[1m", " a", &"x".repeat(65)] {
            assert!(check_tag(bad).is_err(), "{bad:?}");
        }
    }
}
