//! The fields of records for people and for the page, from the schema that the
//! types of records gave.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::programs::{cargo, root, step, target};

const SCHEMA: &str = "schema/records.json";
const INTRODUCTION: &str = "# Fields of records

Made from the types by `cargo xtask gen`. `docs/records.md` says what a record is,
which command prints which, and what tables cannot say. First the kinds of record, then
the types of their parts, by name. *Or null*: what is not known.
";
const FIRST_LINES: &str =
    "// Made by `cargo xtask web` from schema/records.json: what records hold. A page also
// shows what it finds of a damaged record, so that each field may be missing.
";

const SCHEMAS: &str = "
/** The newest version of each schema. */
export const SCHEMAS = {
";

/// Writes the schema, and what is made from it.
pub(crate) fn write() -> Result<()> {
    let test = "schema_tests::the_schema_file_matches_the_types";
    let mut types = cargo(&[
        "test",
        // Of one package cargo would compile nearly all again, with other features.
        "--workspace",
        "--quiet",
        "--locked",
        "--lib",
        test,
    ]);
    step(types.env("PINWISE_WRITE_SCHEMA", "1"))?;
    write_types()?;
    let path = target().join("generated/record-fields.md");
    std::fs::create_dir_all(target().join("generated"))?;
    std::fs::write(&path, tables()?).with_context(|| path.display().to_string())?;
    eprintln!("xtask: the fields of records are in {}", path.display());
    Ok(())
}

/// Writes the types that the page is checked with. It is built before anything is
/// compiled, so they are made from the schema alone.
pub(crate) fn write_types() -> Result<()> {
    let folder = root().join("web/generated");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("records.ts");
    let text = make_table(FIRST_LINES, type_declaration)?
        + &make_table(SCHEMAS, version)?
        + "} as const;\n";
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// All fields of all records as tables.
pub(crate) fn tables() -> Result<String> {
    make_table(INTRODUCTION, table)
}

/// Renders every type of the schema, after an introduction.
fn make_table(introduction: &str, render: impl Fn(&str, &Value) -> String) -> Result<String> {
    let text = std::fs::read_to_string(root().join(SCHEMA)).context(SCHEMA)?;
    let schema: Value = serde_json::from_str(&text).context(SCHEMA)?;
    let all = schema["$defs"].as_object().context("no $defs")?;
    let mut types: Vec<(&str, &Value)> = all.iter().map(|(name, of)| (&**name, of)).collect();
    types.sort_by_key(|(name, of)| (kind(of).is_none(), *name));
    let texts = types.iter().map(|(name, of)| render(name, of));
    Ok(introduction.to_owned() + &texts.collect::<String>())
}

/// The schema's name that a whole record has.
fn kind(of: &Value) -> Option<&str> {
    of["properties"]["schema"]["const"].as_str()
}

/// The version of a whole record's schema, as a property; empty of other types.
fn version(_: &str, of: &Value) -> String {
    let schema = kind(of).and_then(|schema| schema.strip_prefix("pinwise."));
    let split = schema.and_then(|schema| schema.split_once('/'));
    split.map_or_else(String::new, |(name, version)| {
        format!("  {}: {version},\n", property(name))
    })
}

/// The forms that a value may have; only the value itself if it has one form.
fn forms(of: &Value) -> Vec<&Value> {
    let several = of["anyOf"].as_array().or(of["oneOf"].as_array());
    several.map_or_else(|| vec![of], |forms| forms.iter().collect())
}

fn reference(of: &Value) -> Option<&str> {
    of["$ref"].as_str().and_then(|path| path.rsplit('/').next())
}

fn description(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    text.replace('\n', " ")
}

/// A type's heading and its fields or words.
fn table(name: &str, of: &Value) -> String {
    let heading = kind(of).map_or_else(|| name.to_owned(), |schema| format!("`{schema}`"));
    let mut text = format!(
        "\n<a id=\"{name}\"></a>\n\n## {heading}\n\n{}\n\n",
        description(of)
    );
    let words: Vec<&Value> = forms(of)
        .into_iter()
        .filter(|form| form.get("const").is_some())
        .collect();
    if let Some(fields) = of["properties"].as_object() {
        text.push_str("| Field | Value | Meaning |\n|---|---|---|\n");
        for (field, value) in fields {
            let meaning = description(value).replace('|', "\\|");
            text.push_str(&format!(
                "| `{field}` | {} | {meaning} |\n",
                words_of(value)
            ));
        }
    } else if !words.is_empty() {
        text.push_str("| Word | Meaning |\n|---|---|\n");
        for word in words {
            let meaning = description(word).replace('|', "\\|");
            text.push_str(&format!(
                "| `{}` | {meaning} |\n",
                constant_text(&word["const"])
            ));
        }
    } else {
        for form in forms(of) {
            let meaning = description(form);
            text.push_str(&format!("- {}: {meaning}\n", words_of(form)));
        }
    }
    text
}

fn constant_text(word: &Value) -> String {
    word.as_str()
        .map_or_else(|| word.to_string(), str::to_owned)
}

/// What a value is, for people.
fn words_of(of: &Value) -> String {
    if let Some(name) = reference(of) {
        return format!("[{name}](#{name})");
    }
    if let Some(word) = of.get("const") {
        return format!("`{}`", constant_text(word));
    }
    if of["anyOf"].is_array() || of["oneOf"].is_array() {
        let several: Vec<String> = forms(of).into_iter().map(words_of).collect();
        return several.join(" or ");
    }
    let one = |kind: &str| match kind {
        "array" if of["prefixItems"].is_array() => {
            let places = of["prefixItems"].as_array().into_iter().flatten();
            let places: Vec<String> = places.map(words_of).collect();
            format!("[{}]", places.join(", "))
        }
        "array" => format!("list: {}", words_of(&of["items"])),
        "object" if of["additionalProperties"].is_object() => {
            format!("map: {}", words_of(&of["additionalProperties"]))
        }
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "whole number".to_owned(),
        other => other.to_owned(),
    };
    let kinds = kinds(of);
    if kinds.is_empty() {
        return "anything".to_owned();
    }
    let named: Vec<String> = kinds.into_iter().map(one).collect();
    named.join(" or ")
}

/// The types that JSON has for a value.
fn kinds(of: &Value) -> Vec<&str> {
    match &of["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A type for the page.
fn type_declaration(name: &str, of: &Value) -> String {
    let about = format!("\n/** {} */\n", description(of));
    if of["properties"].is_object() && forms(of).len() == 1 {
        format!("{about}export interface {name} {}\n", typescript(of))
    } else {
        format!("{about}export type {name} = {};\n", typescript(of))
    }
}

/// What a value is, for TypeScript.
fn typescript(of: &Value) -> String {
    if let Some(name) = reference(of) {
        return name.to_owned();
    }
    if let Some(word) = of.get("const") {
        return word.to_string();
    }
    if of["anyOf"].is_array() || of["oneOf"].is_array() {
        let mut several: Vec<String> = forms(of).into_iter().map(typescript).collect();
        several.dedup();
        // A set of words that is open: `string` alone would swallow them.
        if several.len() > 1 && several.last().is_some_and(|last| last == "string") {
            several.pop();
            several.push("(string & {})".to_owned());
        }
        return several.join(" | ");
    }
    let one = |kind: &str| match kind {
        "array" if of["prefixItems"].is_array() => {
            let places = of["prefixItems"].as_array().into_iter().flatten();
            let places: Vec<String> = places.map(typescript).collect();
            format!("[{}]", places.join(", "))
        }
        "array" => match typescript(&of["items"]) {
            item if item.contains(['|', '&']) => format!("({item})[]"),
            item => format!("{item}[]"),
        },
        "object" if of["properties"].is_object() => {
            let fields = of["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(name, value)| {
                let about = description(value);
                let about = if about.is_empty() {
                    about
                } else {
                    format!("  /** {about} */\n")
                };
                let name = property(name);
                let mut value = typescript(value);
                if !value.ends_with("null") {
                    value.push_str(" | null");
                }
                format!("{about}  {name}?: {value};\n")
            });
            format!("{{\n{}}}", fields.collect::<String>())
        }
        "object" => format!(
            "Record<string, {}>",
            typescript(&of["additionalProperties"])
        ),
        "integer" => "number".to_owned(),
        other => other.to_owned(),
    };
    let kinds = kinds(of);
    if kinds.is_empty() {
        return "unknown".to_owned();
    }
    let named: Vec<String> = kinds.into_iter().map(one).collect();
    named.join(" | ")
}

/// A field's name, quoted if TypeScript needs that.
fn property(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain {
        name.to_owned()
    } else {
        format!("'{name}'")
    }
}
