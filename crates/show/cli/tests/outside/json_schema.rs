//! Output of commands with `--json` equals their schemas, to the last key.

use programs::Headroom;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schemas of all commands.
struct Schemas {
    roots: Vec<(&'static str, schemars::Schema)>,
    definitions: Map<String, Value>,
}

impl Schemas {
    fn new() -> Schemas {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let roots = headroom::json_schemas(&mut generator);
        Schemas { roots, definitions: generator.take_definitions(true) }
    }

    fn verify(&self, command: &str, value: &Value) {
        let (_, schema) = self.roots.iter().find(|(name, _)| *name == command).expect(command);
        if let Err(error) = self.matches(schema.as_value(), value) {
            panic!("headroom {command}: {error}\n{value:#}");
        }
    }

    /// Whether a value is one that the schema allows; unlike JSON Schema, keys that it does not name are not allowed.
    fn matches(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let definition = &self.definitions[name.rsplit('/').next().unwrap_or_default()];
            return self.matches(&with_own(definition, schema), value);
        }
        if let Some(alternatives) =
            schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
        {
            let tried: Vec<Result<(), String>> =
                alternatives.iter().map(|one| self.matches(one, value)).collect();
            let all = || {
                tried.iter().filter_map(|one| one.as_ref().err().cloned()).collect::<Vec<String>>().join("; ")
            };
            return if tried.iter().any(Result::is_ok) { Ok(()) } else { Err(all()) };
        }
        let constant = schema.get("const").is_none_or(|only| only == value);
        let listed = schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value));
        if !constant || !listed || !has_type(schema, value) {
            return Err(format!("{value} is not {schema}"));
        }
        match value {
            Value::Object(fields) => self.fields_match(schema, fields),
            Value::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| {
                let of =
                    schema.get("prefixItems").and_then(|all| all.get(at)).or_else(|| schema.get("items"));
                of.map_or(Ok(()), |of| self.matches(of, item)).map_err(|error| format!("[{at}]{error}"))
            }),
            _ => Ok(()),
        }
    }

    fn fields_match(&self, schema: &Value, fields: &Map<String, Value>) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing = required.filter_map(Value::as_str).find(|key| !fields.contains_key(*key));
        if let Some(key) = missing {
            return Err(format!(".{key} is missing"));
        }
        fields.iter().try_for_each(|(key, value)| {
            let named = schema.get("properties").and_then(|all| all.get(key));
            let of = named.or_else(|| schema.get("additionalProperties").filter(|of| of.is_object()));
            let of = of.ok_or_else(|| format!(".{key} is not in the schema"))?;
            self.matches(of, value).map_err(|error| format!(".{key}: {error}"))
        })
    }
}

/// A type with the keys that stand beside its reference, as of a variant whose tag is one of its keys.
fn with_own(definition: &Value, reference: &Value) -> Value {
    let mut both = definition.clone();
    if let Some(own) = reference.get("properties").and_then(Value::as_object) {
        for (key, schema) in own {
            both["properties"][key] = schema.clone();
        }
    }
    both
}

fn has_type(schema: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => true,
    }
}

#[test]
fn what_commands_print_is_what_their_schemas_say() {
    let (schemas, headroom) = (Schemas::new(), Headroom::new());
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (dir, a, b, chart) =
        (place.path().to_str().unwrap(), file("a.dat"), file("b.dat"), file("chart.svg"));
    let verify = |command: &str, arguments: &[&str]| schemas.verify(command, &headroom.json(arguments));

    verify("measure", &["measure", "--quick", "--size", "64M", dir]);
    verify("check", &["check", dir, "--preliminary"]);
    verify("storage", &["storage", dir]);
    verify("simulate --fit", &["simulate", "--fit", dir, "--what-if", "disks=3"]);
    let short = ["--size", "16M", "--duration", "1s", "--warm-up", "0s"];
    let run = |more: &[&str]| verify("run", &[&["run"], &short[..], more].concat());
    run(&[dir, "--preset", "oltp"]);
    run(&[
        dir,
        "--rate",
        "200/s",
        "--writes",
        "50",
        "--verify",
        "checksum",
        "--sync",
        "fsync",
        "--set",
        "sync-every=10",
    ]);
    run(&["--layout", "span", &a, &b]);
    let steps = ["--sweep=1,4", "--duration", "300ms", "--warm-up", "0s"];
    verify("run --sweep", &[&["run", "--layout", "span,stripe:64K", &a, &b], &steps[..]].concat());
    verify("compare", &["compare", "run:1", "run:2"]);
    verify("history chart", &["history", "chart", "1", "2", "--kind", "load-curve", "--out", &chart]);
    verify("history capture", &["history", "capture", "--source", "devices:"]);
    verify("history capture", &["history", "capture", "--source", "devices:"]);
    verify("history intervals", &["history", "intervals"]);
    verify("watch", &["watch", "--source", "devices:", "--once"]);
    verify("history analyze", &["history", "analyze"]);
    verify("history", &["history"]);
    verify("history captures", &["history", "captures"]);
    verify("history path", &["history", "path"]);
    verify("history pack", &["history", "pack"]);
    verify("history incidents", &["history", "incidents"]);
    verify("sources discover", &["sources", "discover"]);
    verify("sources doctor", &["sources", "doctor", "--source", "devices:"]);
    verify("history matrices", &["history", "matrices"]);
    verify("storage clean", &["storage", "clean", dir]);
    verify("--version", &["--version"]);
}

#[test]
fn a_schema_refuses_what_it_does_not_name() {
    let schemas = Schemas::new();
    let (_, schema) = schemas.roots.iter().find(|(name, _)| *name == "history path").unwrap();
    let refused = |value: Value| schemas.matches(schema.as_value(), &value).unwrap_err();
    assert_eq!(refused(serde_json::json!({})), ".path is missing");
    assert_eq!(refused(serde_json::json!({ "path": "/x", "more": 1 })), ".more is not in the schema");
    assert!(refused(serde_json::json!({ "path": 1 })).starts_with(".path: 1 is not"));
}
