//! `mixin.libsonnet`, as monitoring mixins have it: rules, alerts and dashboards in hidden fields, the page of the runbooks as
//! configuration.
//!
//! Rules and alerts stand in it as JSON: `std.parseYaml` of jsonnet 0.18, which Debian 12 has, fails on texts of several lines.

use crate::alerts::{ALERT_GROUP, ALERT_INTERVAL, RUNBOOKS, runbook_anchor};
use crate::{Alert, alerts, groups};
use serde_json::{Value, json};

/// The first line of each YAML and jsonnet file.
pub const MARK: &str = "Written by headroom fleet; changes are lost when it is written again.";

/// Name of the annotation that holds the anchor, until the page of the runbooks is put before it.
const ANCHOR_KEY: &str = "runbook_anchor";

/// The mixin, with the files of dashboards beside it.
pub(crate) fn mixin(dashboards: &[&str]) -> String {
    let dashboards: String =
        dashboards.iter().map(|name| format!("    '{name}': import '{name}',\n")).collect();
    format!(
        "// {MARK}\n// Dashboards are the files beside it.\n{{\n  _config+:: {{ headroomRunbooks: {} }},\n  \
         prometheusRules+:: {{\n    groups+: {},\n  }},\n  prometheusAlerts+:: {{\n    groups+: [{}],\n  }},\n  \
         grafanaDashboards+:: {{\n{dashboards}  }},\n}}\n",
        json!(RUNBOOKS),
        written(&rule_groups()),
        alert_group(),
    )
}

fn rule_groups() -> Value {
    let group = |group: crate::Group| {
        let rule = |rule: crate::Rule| json!({"record": rule.record, "expr": rule.expression});
        let rules: Vec<Value> = group.rules.into_iter().map(rule).collect();
        json!({"name": group.name, "interval": group.interval, "rules": rules})
    };
    groups().into_iter().map(group).collect()
}

/// The group of alerts; jsonnet puts the page of the runbooks before each anchor.
fn alert_group() -> String {
    let rule = |alert: Alert| {
        json!({
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.holds,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary,
                "description": alert.description,
                ANCHOR_KEY: runbook_anchor(alert.name),
            },
        })
    };
    let rules: Vec<Value> = alerts().into_iter().map(rule).collect();
    format!(
        "{{\n      name: '{ALERT_GROUP}',\n      interval: '{ALERT_INTERVAL}',\n      rules: [\n        \
         rule {{\n          annotations: {{\n            summary: rule.annotations.summary,\n            \
         description: rule.annotations.description,\n            \
         runbook_url: $._config.headroomRunbooks + rule.annotations.{ANCHOR_KEY},\n          }},\n        }}\n        \
         for rule in {}\n      ],\n    }}",
        written(&Value::from(rules))
    )
}

/// A value of ours has only string keys, so that writing it cannot fail.
fn written(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default().replace('\n', "\n    ")
}
