//! The JSON Schema of all records, made from their types.
//!
//! `schema/records.json` holds it; a test compares, and writes it anew where
//! `cargo xtask gen` asks for that.

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
fn document() -> Value {
    let mut generator = SchemaGenerator::default();
    let mut roots = Vec::new();
    let mut names = Vec::new();
    for kind in Kind::ALL {
        let root = kind.json_schema(&mut generator).to_value();
        let name = root["$ref"].as_str().and_then(|r| r.rsplit('/').next());
        names.push((name.expect("a reference to a type").to_owned(), kind));
        roots.push(root);
    }
    let mut types = Value::Object(generator.take_definitions(true));
    for (name, kind) in names {
        types[&name]["properties"]["schema"] = json!({ "const": kind.schema() });
    }
    plain(&mut types);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of pinwise",
        "anyOf": roots,
        "$defs": types,
    })
}

/// Takes what only Rust's documentation understands out of descriptions.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

#[test]
fn the_schema_file_is_what_the_types_say() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/records.json");
    let fresh = format!("{:#}\n", document());
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
