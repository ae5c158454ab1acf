//! The names in rules, alerts, dashboards and the queries of `headroom fleet` are those that the agent exposes.

use metrics::FAMILIES;
use regex::Regex;
use std::collections::BTreeSet;

fn expressions() -> Vec<String> {
    let rules = mixin::groups().into_iter().flat_map(|group| group.rules).map(|rule| rule.expression);
    let alerts = mixin::alerts().into_iter().map(|alert| alert.expression);
    let dashboards = mixin::dashboards().into_iter().map(|dashboard| dashboard.json.to_string());
    let scope = fleet::Scope { filters: Vec::new(), lookback_s: 3600, trend_from_samples: false };
    let queries = fleet::Part::ALL.into_iter().map(|part| part.expression(&scope).text);
    let incidents = fleet::incidents_within(&scope, 3600).text;
    rules.chain(alerts).chain(dashboards).chain(queries).chain([incidents]).collect()
}

#[test]
fn each_name_is_a_family_of_the_agent_or_a_rule() {
    let records: BTreeSet<String> =
        mixin::groups().iter().flat_map(|group| &group.rules).map(|rule| rule.record.to_owned()).collect();
    let families: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    // A name with a colon is a rule's.
    let names = Regex::new(
        r"[a-z_]+:headroom_[a-z_]+:[a-z0-9_]+|storage:[a-z_]+:[a-z]+|headroom_[a-z_]+|process_[a-z_]+",
    )
    .unwrap();
    let mut unused = families.clone();
    for expression in expressions() {
        for name in names.find_iter(&expression).map(|found| found.as_str()) {
            let family = ["_total", "_bucket"].into_iter().find_map(|end| name.strip_suffix(end));
            let family = family.unwrap_or(name);
            unused.remove(family);
            assert!(
                records.contains(name) || families.contains(family),
                "{name} is not a family in: {expression}"
            );
        }
    }
    assert!(unused.is_empty(), "on no dashboard and in no rule: {unused:?}");
}

#[test]
fn no_rule_uses_another_one_of_its_group() {
    for group in mixin::groups() {
        for rule in &group.rules {
            let others = group.rules.iter().filter(|other| rule.expression.contains(other.record));
            let others: Vec<&str> = others.map(|other| other.record).collect();
            assert!(others.is_empty(), "{} uses {others:?} of the group {}", rule.record, group.name);
        }
    }
}

#[test]
fn each_alert_has_a_runbook() {
    let page = include_str!("../../../../docs/reference/fleet.md");
    for alert in mixin::alerts() {
        assert!(
            page.contains(&format!("### {}", alert.name)),
            "docs/reference/fleet.md has no {}",
            alert.name
        );
    }
}
