//! Cells of tables: the type and the meaning of a key.

use super::outputs::{Outputs, referred};
use serde_json::Value;

/// A figure that may be unknown: the schema of the known one.
pub fn figure(schema: &Value) -> Option<&Value> {
    let [known, unknown] = &schema.get("anyOf")?.as_array()?[..] else { return None };
    let properties = unknown.get("properties")?.as_object()?;
    (properties.len() == 1 && properties.contains_key("unknown")).then_some(known)
}

/// The alternatives of a type, without null.
pub fn alternatives(schema: &Value) -> Option<Vec<&Value>> {
    let all = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    Some(all.iter().filter(|one| one.get("type").is_none_or(|kind| kind != "null")).collect())
}

/// Whether null is one of its values.
pub fn is_nullable(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let by_type = schema
        .get("type")
        .is_some_and(|kind| is_null(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_null)));
    let of = schema.get("anyOf").and_then(Value::as_array);
    by_type || of.is_some_and(|all| all.iter().any(|one| one.get("type").is_some_and(is_null)))
}

/// The schema without null, and without a reference to nothing else than a figure.
pub fn bare(schema: &Value) -> &Value {
    if figure(schema).is_none()
        && let Some(alternatives) = schema.get("anyOf").and(alternatives(schema))
        && let [only] = alternatives[..]
    {
        return bare(only);
    }
    schema
}

/// Whether a type is only a name for a number, a text or a list, or one of the standard library.
fn is_plain(definition: &Value) -> bool {
    let keys = ["properties", "enum", "anyOf", "oneOf"];
    is_duration(definition) || keys.iter().all(|key| definition.get(key).is_none())
}

/// Whether it is the standard library's, whose fields have no comments.
fn is_duration(definition: &Value) -> bool {
    let properties = definition.get("properties").and_then(Value::as_object);
    properties.is_some_and(|all| all.len() == 2 && all.contains_key("secs") && all.contains_key("nanos"))
}

/// The type in words; `link` names a type that has a section.
pub fn type_words(outputs: &Outputs, schema: &Value, link: &impl Fn(&str) -> String) -> String {
    let schema = bare(schema);
    if let Some((name, definition)) = outputs.definition(schema) {
        return match figure(definition) {
            Some(known) => format!("{} or unknown", type_words(outputs, known, link)),
            None if is_plain(definition) => type_words(outputs, definition, link),
            None => link(name),
        };
    }
    if let Some(known) = figure(schema) {
        return format!("{} or unknown", type_words(outputs, known, link));
    }
    if let Some(tuple) = schema.get("prefixItems").and_then(Value::as_array) {
        let parts: Vec<String> = tuple.iter().map(|part| type_words(outputs, part, link)).collect();
        return format!("[{}]", parts.join(", "));
    }
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.as_array()?.first()?.as_str()));
    match kind {
        Some("object") if is_duration(schema) => "object of `secs`, `nanos`".into(),
        Some("array") => match schema.get("items") {
            Some(items) => format!("list of {}", plural(&type_words(outputs, items, link))),
            None => "list".into(),
        },
        Some("object") => match schema.get("additionalProperties").filter(|of| of.is_object()) {
            Some(of) => format!("{} by name", plural(&type_words(outputs, of, link))),
            None => "object".into(),
        },
        Some("boolean") => "true, false".into(),
        Some(kind) => kind.into(),
        None => "any".into(),
    }
}

fn plural(words: &str) -> String {
    match words {
        "string" | "integer" | "number" | "object" => format!("{words}s"),
        _ => words.into(),
    }
}

/// The comment on a field, for a reader of JSON and of Markdown.
pub fn meaning(description: &str, absent: bool) -> String {
    let text = description.split_whitespace().collect::<Vec<&str>>().join(" ");
    let text = text.replace("`None`", if absent { "absent" } else { "null" });
    let text = text.replace("[`", "`").replace("`]", "`");
    let text = text.replace('|', "\\|").replace('<', "\\<");
    text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
}

/// The description of a schema, or of the type that it refers to.
pub fn description<'a>(outputs: &'a Outputs, schema: &'a Value) -> &'a str {
    let own = schema.get("description").and_then(Value::as_str);
    own.or_else(|| outputs.definitions.get(referred(schema)?)?.get("description")?.as_str())
        .unwrap_or_default()
}
