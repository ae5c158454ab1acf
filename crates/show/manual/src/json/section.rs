//! Sections of the page: one for each command, and one for each type that is used more than once.

use super::cell::{alternatives, bare, description, figure, is_nullable, meaning, type_words};
use super::outputs::Outputs;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Types with more keys than these have a section of their own.
const KEYS_IN_PLACE: usize = 24;
/// More values than these have a section of their own.
const VALUES_IN_A_CELL: usize = 6;

/// The page as far as it is written.
pub struct Sections<'a> {
    outputs: &'a Outputs,
    references: BTreeMap<&'a str, usize>,
    text: String,
    /// Types that were linked to: sections that are to be written.
    linked: BTreeSet<&'a str>,
}

impl<'a> Sections<'a> {
    /// An empty page.
    pub fn new(outputs: &'a Outputs) -> Sections<'a> {
        Sections { outputs, references: outputs.references(), text: String::new(), linked: BTreeSet::new() }
    }

    /// The section of a command.
    pub fn root(&mut self, command: &str, schema: &'a Value) {
        let (is_list, item) = match schema.get("items") {
            Some(items) => (true, items),
            None => (false, schema),
        };
        let Some((_, definition)) = self.outputs.definition(item) else { return };
        self.write(format_args!("\n## {command}\n\n"));
        let about = meaning(description(self.outputs, item), false);
        let prefix = if is_list { "[]." } else { "" };
        let about = if is_list { format!("A list. Each: {about}") } else { about };
        self.write(format_args!("{about}.\n"));
        self.object(definition, prefix);
    }

    /// The sections of types, and the page.
    pub fn finish(mut self) -> String {
        self.write(format_args!("\n## Types\n"));
        let mut written = BTreeSet::new();
        while let Some(name) = self.linked.iter().find(|name| !written.contains(*name)).copied() {
            // In the order of the alphabet: what a section links to may come before it, so that all are found first.
            written.insert(name);
            let text = std::mem::take(&mut self.text);
            self.type_section(name);
            self.text = text;
        }
        for name in self.linked.clone() {
            self.type_section(name);
        }
        self.text
    }

    fn type_section(&mut self, name: &'a str) {
        let definition = &self.outputs.definitions[name];
        let about = meaning(description(self.outputs, definition), false);
        self.write(format_args!("\n### {name}\n\n{about}.\n"));
        match alternatives(definition) {
            Some(alternatives) => self.variants(&alternatives),
            None if definition.get("enum").is_some() => self.values(definition),
            None => self.object(definition, ""),
        }
    }

    fn object(&mut self, definition: &'a Value, prefix: &str) {
        self.write(format_args!("\n| key | type | |\n|---|---|---|\n"));
        self.rows(definition, prefix);
    }

    fn rows(&mut self, definition: &'a Value, prefix: &str) {
        let required: Vec<&str> = definition
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let Some(properties) = definition.get("properties").and_then(Value::as_object) else { return };
        for (key, schema) in properties {
            let absent = !required.contains(&key.as_str());
            self.row(&format!("{prefix}{key}"), schema, absent);
        }
    }

    fn row(&mut self, path: &str, schema: &'a Value, absent: bool) {
        let outputs = self.outputs;
        let about = meaning(description(outputs, schema), absent);
        let or = match (is_nullable(schema), absent) {
            (_, true) => ", absent",
            (true, false) => ", null",
            (false, false) => "",
        };
        // Each level of lists adds [] to the path.
        let (mut inner, mut path) = (bare(schema), path.to_owned());
        while let Some(items) = inner.get("items").filter(|_| self.is_in_place(inner)) {
            (inner, path) = (bare(items), path + "[]");
        }
        if let Some((name, definition)) = outputs.definition(inner)
            && self.is_written_in_place(name, definition)
        {
            let kind = if path.ends_with("[]") { "list" } else { "object" };
            self.write(format_args!("| `{path}` | {kind}{or} | {about} |\n"));
            self.rows(definition, &format!("{path}."));
            return;
        }
        let values =
            outputs.definition(inner).and_then(|(name, definition)| self.values_in_a_cell(name, definition));
        let (words, about) = match values {
            Some(values) => (values, about),
            None => (self.words(schema), about),
        };
        let path = if path.ends_with("[]") && words.starts_with("list") {
            path.trim_end_matches("[]").into()
        } else {
            path
        };
        self.write(format_args!("| `{path}` | {words}{or} | {about} |\n"));
    }

    /// Whether the items of a list are objects that are written in its place.
    fn is_in_place(&self, list: &'a Value) -> bool {
        let Some(items) = list.get("items") else { return false };
        let items = bare(items);
        if items.get("items").is_some() {
            return self.is_in_place(items);
        }
        let definition = self.outputs.definition(items);
        definition.is_some_and(|(name, definition)| self.is_written_in_place(name, definition))
    }

    /// Whether an object's keys follow that of what it is in.
    fn is_written_in_place(&self, name: &str, definition: &Value) -> bool {
        let properties = definition.get("properties").and_then(Value::as_object);
        self.references.get(name) == Some(&1)
            && properties.is_some_and(|all| all.len() <= KEYS_IN_PLACE)
            && alternatives(definition).is_none()
    }

    /// The type in words, with links.
    fn words(&mut self, schema: &'a Value) -> String {
        let linked = std::cell::RefCell::new(Vec::new());
        let words = type_words(self.outputs, schema, &|name| {
            linked.borrow_mut().push(name.to_owned());
            format!("[{name}](#{})", name.to_lowercase())
        });
        for name in linked.into_inner() {
            if let Some((name, _)) = self.outputs.definitions.get_key_value(&name) {
                self.linked.insert(name);
            }
        }
        words
    }

    /// The values of a small enum that is used once.
    fn values_in_a_cell(&self, name: &str, definition: &Value) -> Option<String> {
        let few = |count: usize| count <= VALUES_IN_A_CELL && self.references.get(name) == Some(&1);
        let names: Vec<&str> = match (definition.get("enum"), alternatives(definition)) {
            (Some(values), _) => values.as_array()?.iter().filter_map(Value::as_str).collect(),
            (None, Some(all)) => all.iter().map(|one| one.get("const")?.as_str()).collect::<Option<_>>()?,
            _ => return None,
        };
        few(names.len()).then(|| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
    }

    /// Values without descriptions.
    fn values(&mut self, definition: &Value) {
        let values = definition.get("enum").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<String> =
            values.map(|value| format!("`{}`", value.as_str().unwrap_or_default())).collect();
        self.write(format_args!("\n{}.\n", values.join(", ")));
    }

    /// A row for each alternative: a word, or an object with its keys.
    fn variants(&mut self, alternatives: &[&'a Value]) {
        self.write(format_args!("\n| value | |\n|---|---|\n"));
        for alternative in alternatives {
            let about = meaning(description(self.outputs, alternative), false);
            if let Some(word) = alternative.get("const").and_then(Value::as_str) {
                self.write(format_args!("| `{word}` | {about} |\n"));
            } else if let Some(words) = alternative.get("enum").and_then(Value::as_array) {
                for word in words.iter().filter_map(Value::as_str) {
                    self.write(format_args!("| `{word}` | |\n"));
                }
            } else if let Some(properties) = alternative.get("properties").and_then(Value::as_object) {
                let (form, mut keys) = self.object_variant(properties);
                if self.outputs.definition(alternative).is_some() {
                    keys.push(format!("and the keys of {}", self.words(alternative)));
                }
                let keys = if keys.is_empty() { String::new() } else { format!(": {}", keys.join("; ")) };
                self.write(format_args!("| {form} | {about}{keys} |\n"));
            } else if figure(alternative).is_none() {
                let words = self.words(alternative);
                self.write(format_args!("| {words} | {about} |\n"));
            }
        }
    }

    /// How an object is recognised, `kind`: `fixed`, and its other keys in words.
    fn object_variant(&mut self, properties: &'a Map<String, Value>) -> (String, Vec<String>) {
        let mut form = String::new();
        let mut keys = Vec::new();
        for (key, schema) in properties {
            match schema.get("const").and_then(Value::as_str) {
                Some(word) => form = format!("`{key}`: `{word}`"),
                None => {
                    let (words, about) =
                        (self.words(schema), meaning(description(self.outputs, schema), false));
                    let about = if about.is_empty() { String::new() } else { format!(", {about}") };
                    keys.push(format!("`{key}` ({words}{about})"));
                }
            }
        }
        match properties.keys().next() {
            Some(only) if form.is_empty() && properties.len() == 1 => {
                (format!("`{{\"{only}\": ...}}`"), keys)
            }
            _ if form.is_empty() => ("object".into(), keys),
            _ => (form, keys),
        }
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a String takes all");
    }
}
