//! The fields of records for people and for the page, from the schema.

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

/// Writes the schema and the files generated from it.
pub(crate) fn write() -> Result<()> {
    let test = "schema_tests::the_schema_file_matches_the_types";
    let mut types = cargo(&[
        "test",
        // For one package cargo would compile nearly everything again, with other features.
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
    std::fs::write(&path, format_tables()?).with_context(|| path.display().to_string())?;
    eprintln!("xtask: the fields of records are in {}", path.display());
    Ok(())
}

/// Writes the types that the page is checked with, from the schema alone, since the page is built
/// before anything is compiled.
pub(crate) fn write_types() -> Result<()> {
    let folder = root().join("web/generated");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("records.ts");
    let text = render_types(FIRST_LINES, declare_type)?
        + &render_types(SCHEMAS, format_version)?
        + "} as const;\n";
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// All fields of all records as tables.
pub(crate) fn format_tables() -> Result<String> {
    render_types(INTRODUCTION, format_table)
}

/// Renders every type of the schema, after an introduction.
fn render_types(introduction: &str, render: impl Fn(&str, &Value) -> String) -> Result<String> {
    let text = std::fs::read_to_string(root().join(SCHEMA)).context(SCHEMA)?;
    let schema: Value = serde_json::from_str(&text).context(SCHEMA)?;
    let all = schema["$defs"].as_object().context("no $defs")?;
    let mut types: Vec<(&str, &Value)> = all.iter().map(|(name, of)| (&**name, of)).collect();
    types.sort_by_key(|(name, of)| (kind(of).is_none(), *name));
    let texts = types.iter().map(|(name, of)| render(name, of));
    Ok(introduction.to_owned() + &texts.collect::<String>())
}

/// The name of a whole record's schema.
fn kind(of: &Value) -> Option<&str> {
    of["properties"]["schema"]["const"].as_str()
}

/// The version of a whole record's schema, as a property; empty of other types.
fn format_version(_: &str, of: &Value) -> String {
    let schema = kind(of).and_then(|schema| schema.strip_prefix("pinwise."));
    let split = schema.and_then(|schema| schema.split_once('/'));
    split.map_or_else(String::new, |(name, version)| {
        format!("  {}: {version},\n", quote_property(name))
    })
}

/// The forms of a value; the value itself if it has one form.
fn list_forms(of: &Value) -> Vec<&Value> {
    let several = of["anyOf"].as_array().or(of["oneOf"].as_array());
    several.map_or_else(|| vec![of], |forms| forms.iter().collect())
}

fn reference(of: &Value) -> Option<&str> {
    of["$ref"].as_str().and_then(|path| path.rsplit('/').next())
}

fn read_description(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    text.replace('\n', " ")
}

/// A type's heading and its fields or words.
fn format_table(name: &str, of: &Value) -> String {
    let heading = kind(of).map_or_else(|| name.to_owned(), |schema| format!("`{schema}`"));
    let mut text = format!(
        "\n<a id=\"{name}\"></a>\n\n## {heading}\n\n{}\n\n",
        read_description(of)
    );
    let words: Vec<&Value> = list_forms(of)
        .into_iter()
        .filter(|form| form.get("const").is_some())
        .collect();
    if let Some(fields) = of["properties"].as_object() {
        text.push_str("| Field | Value | Meaning |\n|---|---|---|\n");
        for (field, value) in fields {
            let meaning = read_description(value).replace('|', "\\|");
            text.push_str(&format!(
                "| `{field}` | {} | {meaning} |\n",
                describe_value(value)
            ));
        }
    } else if !words.is_empty() {
        text.push_str("| Word | Meaning |\n|---|---|\n");
        for word in words {
            let meaning = read_description(word).replace('|', "\\|");
            text.push_str(&format!(
                "| `{}` | {meaning} |\n",
                constant_text(&word["const"])
            ));
        }
    } else {
        for form in list_forms(of) {
            let meaning = read_description(form);
            text.push_str(&format!("- {}: {meaning}\n", describe_value(form)));
        }
    }
    text
}

fn constant_text(word: &Value) -> String {
    word.as_str()
        .map_or_else(|| word.to_string(), str::to_owned)
}

/// The kind of a value, for people.
fn describe_value(of: &Value) -> String {
    if let Some(name) = reference(of) {
        return format!("[{name}](#{name})");
    }
    if let Some(word) = of.get("const") {
        return format!("`{}`", constant_text(word));
    }
    if of["anyOf"].is_array() || of["oneOf"].is_array() {
        let several: Vec<String> = list_forms(of).into_iter().map(describe_value).collect();
        return several.join(" or ");
    }
    let one = |kind: &str| match kind {
        "array" if of["prefixItems"].is_array() => {
            let places = of["prefixItems"].as_array().into_iter().flatten();
            let places: Vec<String> = places.map(describe_value).collect();
            format!("[{}]", places.join(", "))
        }
        "array" => format!("list: {}", describe_value(&of["items"])),
        "object" if of["additionalProperties"].is_object() => {
            format!("map: {}", describe_value(&of["additionalProperties"]))
        }
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "whole number".to_owned(),
        other => other.to_owned(),
    };
    let kinds = list_kinds(of);
    if kinds.is_empty() {
        return "anything".to_owned();
    }
    let named: Vec<String> = kinds.into_iter().map(one).collect();
    named.join(" or ")
}

/// The JSON types of a value.
fn list_kinds(of: &Value) -> Vec<&str> {
    match &of["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The declaration of a type for the page.
fn declare_type(name: &str, of: &Value) -> String {
    let about = format!("\n/** {} */\n", read_description(of));
    if of["properties"].is_object() && list_forms(of).len() == 1 {
        format!("{about}export interface {name} {}\n", to_typescript(of))
    } else {
        format!("{about}export type {name} = {};\n", to_typescript(of))
    }
}

/// The TypeScript type of a value.
fn to_typescript(of: &Value) -> String {
    if let Some(name) = reference(of) {
        return name.to_owned();
    }
    if let Some(word) = of.get("const") {
        return word.to_string();
    }
    if of["anyOf"].is_array() || of["oneOf"].is_array() {
        let mut several: Vec<String> = list_forms(of).into_iter().map(to_typescript).collect();
        several.dedup();
        // An open set of words: a plain `string` would absorb them.
        if several.len() > 1 && several.last().is_some_and(|last| last == "string") {
            several.pop();
            several.push("(string & {})".to_owned());
        }
        return several.join(" | ");
    }
    let one = |kind: &str| match kind {
        "array" if of["prefixItems"].is_array() => {
            let places = of["prefixItems"].as_array().into_iter().flatten();
            let places: Vec<String> = places.map(to_typescript).collect();
            format!("[{}]", places.join(", "))
        }
        "array" => match to_typescript(&of["items"]) {
            item if item.contains(['|', '&']) => format!("({item})[]"),
            item => format!("{item}[]"),
        },
        "object" if of["properties"].is_object() => {
            let fields = of["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(name, value)| {
                let about = read_description(value);
                let about = if about.is_empty() {
                    about
                } else {
                    format!("  /** {about} */\n")
                };
                let name = quote_property(name);
                let mut value = to_typescript(value);
                if !value.ends_with("null") {
                    value.push_str(" | null");
                }
                format!("{about}  {name}?: {value};\n")
            });
            format!("{{\n{}}}", fields.collect::<String>())
        }
        "object" => format!(
            "Record<string, {}>",
            to_typescript(&of["additionalProperties"])
        ),
        "integer" => "number".to_owned(),
        other => other.to_owned(),
    };
    let kinds = list_kinds(of);
    if kinds.is_empty() {
        return "unknown".to_owned();
    }
    let named: Vec<String> = kinds.into_iter().map(one).collect();
    named.join(" | ")
}

/// A field's name, quoted if TypeScript requires it.
fn quote_property(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain {
        name.to_owned()
    } else {
        format!("'{name}'")
    }
}
