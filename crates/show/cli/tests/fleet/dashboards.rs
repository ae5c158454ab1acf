//! Each expression of a dashboard on a real server, and the rules of Grafana's linter that can be checked without it.

use crate::ranking::{three_shards, victoria_with_all};
use crate::rules::{inlined, rules, write_rules};
use crate::servers::{Server, has_prometheus};
use crate::synthetic::now_unix_s;
use serde_json::Value;

/// The names of the dashboards, and what is in them.
pub fn dashboards() -> Vec<(&'static str, Value)> {
    let read = |file: mixin::File| {
        (file.name.strip_suffix(".json").unwrap(), serde_json::from_str(&file.text).unwrap())
    };
    mixin::dashboards().into_iter().map(read).collect()
}

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().unwrap()
}

fn expressions(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// With values for the variables, and the expressions of recording rules for their names.
fn filled_in(expression: &str) -> String {
    let mut text = expression.to_owned();
    for (record, _) in rules() {
        while let Some(at) = text.find(&record) {
            let rest = &text[at + record.len()..];
            // With its conditions, and the range of what is recorded.
            let after = rest.strip_prefix('{').map_or(rest, |rest| rest.split_once('}').unwrap().1);
            let after =
                ["[15m])", "[13h])"].iter().find_map(|range| after.strip_prefix(range)).unwrap_or(after);
            let before = text[..at].strip_suffix("last_over_time(").unwrap_or(&text[..at]).to_owned();
            text = format!("{before}({}){after}", inlined(&record));
        }
    }
    for (variable, value) in [
        ("$cluster", ".*"),
        ("$job", ".+"),
        ("$instance", ".+"),
        ("$mount", ".+"),
        ("$source", ".+"),
        ("$__rate_interval", "5m"),
    ] {
        text = text.replace(variable, value);
    }
    text
}

/// Ending of an expression that counts, which gives zero where there is nothing to count.
const OR_ZERO: &str = " or vector(0)";

/// Each expression returns data of the fleet of `ranking`, the part before "or vector(0)" too.
fn check_expressions(server: &Server, now_unix_s: u64) {
    let mut with_zero = 0;
    for (name, dashboard) in dashboards() {
        for expression in expressions(&dashboard) {
            let counted = expression.strip_suffix(OR_ZERO);
            with_zero += usize::from(counted.is_some());
            let counted = counted.unwrap_or(&expression);
            assert!(!counted.contains("vector("), "{counted}");
            let found = server.query(&filled_in(counted), now_unix_s);
            assert!(!found.is_empty(), "{name}: no data for {counted}");
        }
    }
    assert!(with_zero >= 3, "{with_zero} expressions with {OR_ZERO}");
}

#[test]
fn each_expression_of_a_dashboard_returns_data_of_three_joined_shards() {
    if !has_prometheus() {
        return;
    }
    let now = now_unix_s();
    let (_shards, joined) = three_shards(now);
    check_expressions(&joined, now);
}

#[test]
fn each_expression_of_a_dashboard_returns_data_in_victoriametrics() {
    let now = now_unix_s();
    let Some(victoria) = victoria_with_all("", now) else { return };
    check_expressions(&victoria, now);
}

#[test]
fn dashboards_keep_the_rules_of_the_linter() {
    for (name, json) in dashboards() {
        assert!(json["editable"] == false && json["uid"] == name && !json["title"].is_null(), "{name}");
        let variables = json["templating"]["list"].as_array().unwrap();
        let variable = |wanted: &str| variables.iter().find(|one| one["name"] == wanted);
        let source = variable("datasource").unwrap();
        assert!(source["type"] == "datasource" && source["query"] == "prometheus", "{name}");
        for required in ["job", "instance"] {
            let one = variable(required).unwrap_or_else(|| panic!("{name}: no variable {required}"));
            assert!(one["multi"] == true && one["includeAll"] == true && one["allValue"] == ".+", "{name}");
            assert_eq!(one["datasource"]["uid"], "$datasource");
        }
        for panel in panels(&json) {
            let title = panel["title"].as_str().unwrap();
            assert!(!title.is_empty() && !panel["description"].as_str().unwrap().is_empty(), "{name}");
            assert_eq!(panel["datasource"]["uid"], "$datasource", "{title}");
            assert!(
                !panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap().is_empty(),
                "{title}: no unit"
            );
            for target in panel["targets"].as_array().unwrap() {
                let expression = target["expr"].as_str().unwrap();
                for rate in ["rate(", "increase(", "irate("] {
                    let ranges = expression.matches(rate).count();
                    assert!(
                        ranges <= expression.matches("[$__rate_interval]").count(),
                        "{title}: {expression}"
                    );
                }
                let shared = expression.contains("storage:");
                for label in ["job=~\"$job\"", "instance=~\"$instance\""] {
                    assert!(shared || expression.contains(label), "{title}: {expression}");
                }
                // Counters and buckets are never shown without a rate.
                let totals = expression.matches("_total{").count() + expression.matches("_bucket{").count();
                assert_eq!(totals, expression.matches("rate(").count(), "{title}: {expression}");
            }
        }
        let ids: Vec<&Value> = panels(&json).iter().map(|panel| &panel["id"]).collect();
        let mut different = ids.clone();
        different.dedup();
        assert_eq!(ids.len(), different.len());
    }
}

#[test]
fn a_directory_is_filled_and_a_file_of_others_is_not_replaced() {
    let headroom = programs::Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    for _ in 0..2 {
        assert!(headroom.run(&["fleet", "dashboards", path]).status.success());
        write_rules(dir.path());
    }
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let dashboards =
        ["database", "fleet", "host", "incident", "volume"].map(|name| format!("headroom-{name}.json"));
    assert!(dashboards.iter().all(|name| names.contains(name)), "{names:?}");
    assert!(
        names.contains(&"mixin.libsonnet".to_owned()) && names.contains(&"headroom-alerts.yml".to_owned())
    );
    std::fs::write(dir.path().join("headroom-rules.yml"), "groups: []\n").unwrap();
    let refused = headroom.run(&["fleet", "rules", path]);
    assert_eq!(refused.status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(dir.path().join("headroom-rules.yml")).unwrap(), "groups: []\n");
}
