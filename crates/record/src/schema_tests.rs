//! The JSON Schema of all records, made from their types.
//!
//! `schema/records.json` holds it; a test compares them, and writes the file if `cargo xtask gen`
//! asks for that.

use std::path::PathBuf;

use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::Kind;

/// What makes the test write the file.
const WRITE: &str = "PINWISE_WRITE_SCHEMA";

/// The schema of a set of words, open for those of newer versions.
pub(super) fn open(mut known: Schema) -> Schema {
    let newer = json!({ "type": "string", "description": "A word of a newer version." });
    let mut words = match known.remove("oneOf") {
        Some(Value::Array(words)) => words,
        _ => vec![json!({ "enum": known.remove("enum") })],
    };
    words.push(newer);
    known.insert("anyOf".to_owned(), Value::Array(words));
    known
}

/// The whole document: `anyOf` the kinds, their types under `$defs`.
fn document() -> String {
    let mut generator = SchemaGenerator::default();
    let (names, roots): (Vec<_>, Vec<_>) = Kind::ALL
        .map(|kind| kind.json_schema(&mut generator))
        .into_iter()
        .unzip();
    let mut types = generator.take_definitions(true);
    for (name, kind) in names.iter().zip(Kind::ALL) {
        let tagged = types.remove(kind.schema());
        let mut record = tagged.unwrap_or_else(|| panic!("{name} is not tagged as {kind:?}"));
        record["properties"]["schema"] = json!({ "const": kind.schema() });
        if let Some(required) = record["required"].as_array_mut() {
            required.insert(0, "schema".into());
        }
        types.insert((*name).to_owned(), record);
    }
    let mut types = Value::Object(types);
    strip_rust_markup(&mut types);
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of pinwise",
        "anyOf": roots,
        "$defs": types,
    });
    // A type's name there is its tag, in which JSON pointers escape the slash.
    let mut text = format!("{document:#}\n");
    for (name, kind) in names.iter().zip(Kind::ALL) {
        let tag = kind.schema().replace('/', "~1");
        text = text.replace(&format!("/{tag}\""), &format!("/{name}\""));
    }
    text
}

/// Takes what only Rust's documentation understands out of descriptions.
fn strip_rust_markup(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
            fields.values_mut().for_each(strip_rust_markup);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_rust_markup),
        _ => {}
    }
}

#[test]
fn the_schema_file_matches_the_types() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/records.json");
    let fresh = document();
    if std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, fresh).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        fresh == kept,
        "schema/records.json is not what the types say; run `cargo xtask gen` and commit it"
    );
}
