//! The schemas of all outputs.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Where schemas refer to definitions.
const PREFIX: &str = "#/$defs/";

/// The output of each command, and the types that it consists of.
pub struct Outputs {
    /// The schema of each command's output, by the command.
    pub roots: Vec<(&'static str, Value)>,
    /// The types by name.
    pub definitions: Map<String, Value>,
}

impl Outputs {
    /// Those of this program.
    #[must_use]
    pub fn new() -> Outputs {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let roots = headroom::json_schemas(&mut generator);
        Outputs {
            roots: roots.into_iter().map(|(command, schema)| (command, schema.to_value())).collect(),
            definitions: generator.take_definitions(true),
        }
    }

    /// The type that a schema refers to.
    pub(super) fn definition<'a>(&'a self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = referred(schema)?;
        Some((name, self.definitions.get(name)?))
    }

    /// How often each type is referred to.
    pub(super) fn references(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        let roots = self.roots.iter().map(|(_, schema)| schema);
        for schema in roots.chain(self.definitions.values()) {
            each_reference(schema, &mut |name| *counts.entry(name).or_default() += 1);
        }
        counts
    }

    /// A schema of its own for a command: with the types that it needs.
    #[must_use]
    pub fn schema(&self, command: &str) -> Option<Value> {
        let (_, root) = self.roots.iter().find(|(name, _)| *name == command)?;
        let mut needed = BTreeSet::new();
        self.need(root, &mut needed);
        let definitions: Map<String, Value> =
            needed.into_iter().map(|name| (name.to_owned(), self.definitions[name].clone())).collect();
        let mut schema = root.clone();
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        schema["title"] = json!(format!("headroom {command}"));
        schema["$defs"] = Value::Object(definitions);
        Some(schema)
    }

    fn need<'a>(&'a self, schema: &'a Value, needed: &mut BTreeSet<&'a str>) {
        let mut found = Vec::new();
        each_reference(schema, &mut |name| found.push(name));
        for name in found {
            if needed.insert(name) {
                self.need(&self.definitions[name], needed);
            }
        }
    }
}

impl Default for Outputs {
    fn default() -> Outputs {
        Outputs::new()
    }
}

/// The name of the type that a schema refers to.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(PREFIX)
}

fn each_reference<'a>(schema: &'a Value, found: &mut impl FnMut(&'a str)) {
    referred(schema).into_iter().for_each(&mut *found);
    match schema {
        Value::Object(fields) => fields.values().for_each(|value| each_reference(value, found)),
        Value::Array(items) => items.iter().for_each(|value| each_reference(value, found)),
        _ => {}
    }
}

/// Writes a file for each command, named after it: `fleet-incidents.schema.json`.
///
/// # Errors
/// If a file or the directory cannot be written.
pub fn write_schemas(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let outputs = Outputs::new();
    for (command, _) in &outputs.roots {
        let schema = outputs.schema(command).map(|schema| format!("{schema:#}\n")).unwrap_or_default();
        fs::write(directory.join(format!("{}.schema.json", file_name(command))), schema)?;
    }
    Ok(())
}

/// Letters and digits, with a hyphen for anything between them.
fn file_name(command: &str) -> String {
    let words = command.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join("-")
}
