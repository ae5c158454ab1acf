//! The files that Prometheus, vmalert, Grafana and jsonnet read.

pub use crate::jsonnet::MARK;

use crate::alerts::{ALERT_GROUP, ALERT_INTERVAL, runbook_anchor};
use crate::{Alert, Group, alerts, dashboards, groups, jsonnet};
use std::fmt::Write;

/// A file: its name, and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// `headroom-rules.yml`.
pub fn rules() -> Vec<File> {
    let mut text = format!("# {MARK}\ngroups:\n");
    for Group { name, interval, rules } in groups() {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  - name: {name}\n    interval: {interval}\n    rules:");
        for rule in rules {
            let _ = writeln!(text, "      - record: {}", rule.record);
            block(&mut text, "expr", &rule.expression);
        }
    }
    vec![File { name: "headroom-rules.yml".into(), text }]
}

/// `headroom-alerts.yml`. `runbooks` is the page of the runbooks, with a heading for each alert.
pub fn alerts_file(runbooks: &str) -> Vec<File> {
    let mut text =
        format!("# {MARK}\ngroups:\n  - name: {ALERT_GROUP}\n    interval: {ALERT_INTERVAL}\n    rules:\n");
    for Alert { name, expression, holds, severity, summary, description } in alerts() {
        let _ = writeln!(text, "      - alert: {name}");
        block(&mut text, "expr", &expression);
        let _ = writeln!(text, "        for: {holds}\n        labels:\n          severity: {severity}");
        let _ = writeln!(text, "        annotations:");
        let runbook = format!("{runbooks}{}", runbook_anchor(name));
        for (key, value) in [("summary", summary), ("description", description), ("runbook_url", &runbook)] {
            let _ = writeln!(text, "          {key}: {}", quoted(value));
        }
    }
    vec![File { name: "headroom-alerts.yml".into(), text }]
}

/// A JSON file for each dashboard, and `mixin.libsonnet` for those who build with jsonnet.
pub fn dashboard_files() -> Vec<File> {
    let json = |name: &str, json: &serde_json::Value| File {
        name: format!("{name}.json"),
        // A value of ours has only string keys, so that writing it cannot fail.
        text: serde_json::to_string_pretty(json).unwrap_or_default() + "\n",
    };
    let mut files: Vec<File> = dashboards().iter().map(|one| json(one.name, &one.json)).collect();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let text = jsonnet::mixin(&names);
    files.push(File { name: "mixin.libsonnet".into(), text });
    files
}

/// A key of a rule with a text of several lines.
fn block(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "        {key}: |-");
    for line in value.lines() {
        let _ = writeln!(text, "          {line}");
    }
}

/// A string of YAML, which is that of JSON.
fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}
